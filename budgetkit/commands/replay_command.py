"""``budgetkit replay``: a conversation through a budget and a policy, request by request."""

from __future__ import annotations

from dataclasses import replace

import click

from budgetkit.commands.inputs import budget_of, counter_of, policy_of, trace_of
from budgetkit.commands.options import budget_options
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import replay

_SHOWN = ["request", "limit", "history", "others", "sent", "cached", "dropped", "dropped_messages", "over"]


@click.command("replay")
@click.argument("file", default="-")
@budget_options
@click.option("--conversation", default="0", help="Which of several: its place from 0 on, or its id.")
@click.option("-p", "--policy", default="oldest-first", show_default=True, help="What leaves the history, and when.")
@click.option("--by", type=click.Choice(["turn", "request"]), default="turn", show_default=True)
def command(
    file: str,
    budget: str,
    window: int | None,
    model_name: str | None,
    counter_name: str | None,
    as_json: bool,
    conversation: str,
    policy: str,
    by: str,
) -> None:
    """Send a conversation through a budget and a pruning policy."""
    trace, rule = trace_of(file, conversation), policy_of(policy)
    lines = replace(budget_of(budget, window, model_name), undeclared="pool")
    found = replay(trace, lines, rule, count=counter_of(counter_name, model_name), by="turn" if by == "turn" else by)
    frame = found.frame()
    if as_json:
        return show_json({"totals": found.totals(), "requests": frame.to_dict("records")})
    show_table(f"{trace.id} under {rule!r}, in tokens", _SHOWN, frame[_SHOWN].to_numpy().tolist())
    show_table("All requests", ["what", "tokens or number"], list(found.totals().items()))
