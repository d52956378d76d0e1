"""``budgetkit replay``: a conversation through a budget and a policy, request by request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.extras.shell.compare_command import no_price
from budgetkit.extras.shell.inputs import policies_named
from budgetkit.extras.shell.options import with_conversation
from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.lab.replay import replay
from budgetkit.requests import Framing
from budgetkit.trace.conversation import Trace

_SHOWN = [
    "request",
    "limit",
    "history",
    "others",
    "sent",
    "cached",
    "dropped",
    "dropped_messages",
    "over",
]


@click.command("replay")
@with_conversation
@click.option(
    "-p",
    "--policy",
    default="oldest first",
    show_default=True,
    help="What leaves the history, and when.",
)
@click.option("--by", type=click.Choice(["turn", "request"]), default="turn", show_default=True)
@click.option(
    "--price", help="The model whose prices hold; that of --model, or of the file, when left out."
)
def command(
    trace: Trace,
    budget: Budget,
    count: Any,
    framing: Framing,
    as_json: bool,
    policy: Any,
    by: Any,
    price: str | None,
    model: str | None,
    **_: Any,
) -> None:
    """Send a conversation through a budget and a pruning policy."""
    ((name, rule),) = policies_named([policy]).items()
    named = price or model or trace.model
    lines = replace(budget, undeclared="pool")
    outcome = replay(trace, lines, rule, counter=count, framing=framing, by=by, prices=named)
    frame = outcome.frame()
    totals = outcome.totals()
    if as_json:
        return show_json({"totals": totals, "requests": frame.to_dict("records")})
    show_table(f"{trace.id}, {name}, in tokens", _SHOWN, frame[_SHOWN].to_numpy().tolist())
    show_table("All requests", ["what", "tokens, number or dollars"], totals.items())
    if named is None:
        show_lines(
            [
                "No model is named, so there is no cost in dollars; --price names the model whose prices hold."
            ]
        )
    elif totals["cost"] != totals["cost"]:
        show_lines([no_price(named)])
    return None
