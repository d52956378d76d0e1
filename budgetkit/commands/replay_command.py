"""``budgetkit replay``: a conversation through a budget and a policy, request by request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import policy_of, trace_of
from budgetkit.commands.options import conversation_option, with_budget
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import replay

_SHOWN = ["request", "limit", "history", "others", "sent", "cached", "dropped", "dropped_messages", "over"]


@click.command("replay")
@click.argument("file", default="-")
@with_budget
@conversation_option
@click.option("-p", "--policy", default="oldest-first", show_default=True, help="What leaves the history, and when.")
@click.option("--by", type=click.Choice(["turn", "request"]), default="turn", show_default=True)
def command(
    file: str, budget: Budget, count: Any, as_json: bool, conversation: str, policy: str, by: Any, **_: Any
) -> None:
    """Send a conversation through a budget and a pruning policy."""
    trace, rule = trace_of(file, conversation), policy_of(policy)
    found = replay(trace, replace(budget, undeclared="pool"), rule, count=count, by=by)
    frame = found.frame()
    if as_json:
        return show_json({"totals": found.totals(), "requests": frame.to_dict("records")})
    show_table(f"{trace.id} under {rule!r}, in tokens", _SHOWN, frame[_SHOWN].to_numpy().tolist())
    show_table("All requests", ["what", "tokens or number"], found.totals().items())
