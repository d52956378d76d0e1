"""``budgetkit compare``: pruning policies side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.extras.shell.inputs import policies_named
from budgetkit.extras.shell.options import with_conversation
from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.inputs.budgets import policies_of
from budgetkit.lab.replay import Replay, rank_policies, replay
from budgetkit.requests import Framing
from budgetkit.trace.conversation import Trace

_SHOWN = [
    "policy",
    "cost",
    "sent",
    "cached",
    "cached_share",
    "dropped",
    "dropped_messages",
    "over",
    "relative_cost",
]


@click.command("compare")
@with_conversation
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    help="One to compare; all that are known when left out.",
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
    policies: tuple[str, ...],
    by: Any,
    price: str | None,
    model: str | None,
    named_options: Any,
    **_: Any,
) -> None:
    """Put pruning policies and named systems side by side on one conversation, the cheapest first.

    Where none is named, the policy of a configuration is among them.
    """
    lines = replace(budget, undeclared="pool")
    rules = policies_named(policies)
    if named_options["policy"] is not None and not policies:
        rules = policies_of([named_options["policy"]]) | rules
    named = price or model or trace.model
    options = {"counter": count, "framing": framing, "by": by, "prices": named}
    replays = {name: replay(trace, lines, rule, **options) for name, rule in rules.items()}
    table = rank_policies(replays)
    if as_json:
        return show_json(table.to_dict("records"))
    idle = [name for name, outcome in replays.items() if not acts(outcome)]
    rows = table[~table["policy"].isin(idle)]
    if idle:
        unpruned = table[table["policy"] == idle[0]].assign(
            policy=f"as it is: {len(idle)} that do not act"
        )
        rows = pd.concat([rows, unpruned]).sort_values("relative_cost", kind="stable")
    if table["cost"].notna().any():
        units = "tokens and dollars"
    else:
        units = "tokens"
    show_table(f"{trace.id}: policies, in {units}", _SHOWN, rows[_SHOWN].itertuples(index=False))
    if named is None or table["cost"].notna().all():
        notes = []
    else:
        notes = [no_price(named)]
    if named is None:
        notes.append(
            "No model is named, so there is no cost in dollars; --price names the model whose prices hold."
        )
    if by == "turn" and any(message.tool_calls for message in trace.messages):
        notes.append(
            "One request a turn is counted; --by request counts one for each answer, as bk.compare does."
        )
    if idle:
        largest = int(max(outcome.sent.max() for outcome in replays.values()))
        size = f"the largest request takes {largest:,} of {budget.window:,} tokens; --window gives a smaller one"
        notes.append(f"These do not act here: {', '.join(idle)}; {size}.")
    return show_lines(notes)


def acts(outcome: Replay) -> bool:
    """Say whether a policy has taken anything out."""
    pruned = outcome.kept
    return bool(
        np.any(pruned.dropped) or np.any(pruned.shrunk_messages) or np.any(pruned.summaries)
    )


def no_price(named: str) -> str:
    """Say that nobody knows a price, and what to do."""
    return f"No price is known for {named}, so there is no cost in dollars; --price names a model whose prices hold."
