"""``budgetkit replay``: a conversation through a budget and a policy, request by request."""

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import policies_named
from budgetkit.commands.options import with_conversation
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import replay
from budgetkit.trace.conversation import Trace

_SHOWN = ["request", "limit", "history", "others", "sent", "cached", "dropped", "dropped_messages", "over"]


@click.command("replay")
@with_conversation
@click.option("-p", "--policy", default="oldest first", show_default=True, help="What leaves the history, and when.")
@click.option("--by", type=click.Choice(["turn", "request"]), default="turn", show_default=True)
def command(trace: Trace, budget: Budget, count: Any, as_json: bool, policy: str, by: Any, **_: Any) -> None:
    """Send a conversation through a budget and a pruning policy."""
    ((name, rule),) = policies_named([policy]).items()
    found = replay(trace, replace(budget, undeclared="pool"), rule, count=count, by=by)
    frame = found.frame()
    if as_json:
        return show_json({"totals": found.totals(), "requests": frame.to_dict("records")})
    show_table(f"{trace.id}, {name}, in tokens", _SHOWN, frame[_SHOWN].to_numpy().tolist())
    show_table("All requests", ["what", "tokens or number"], found.totals().items())
