"""``budgetkit compare``: pruning policies side by side."""

from __future__ import annotations

from dataclasses import replace

import click

from budgetkit.commands.inputs import KNOWN_POLICIES, budget_of, counter_of, policy_of, trace_of
from budgetkit.commands.options import budget_options
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import rank_policies, replay

_SHOWN = ["policy", "sent", "cached", "cached_share", "dropped", "dropped_messages", "over", "relative_cost"]


@click.command("compare")
@click.argument("file", default="-")
@budget_options
@click.option("--conversation", default="0", help="Which of several: its place from 0 on, or its id.")
@click.option("-p", "--policy", "policies", multiple=True, help="One to compare; all that are known when left out.")
def command(
    file: str,
    budget: str,
    window: int | None,
    model_name: str | None,
    counter_name: str | None,
    as_json: bool,
    conversation: str,
    policies: tuple[str, ...],
) -> None:
    """Put pruning policies side by side on one conversation, the cheapest input first."""
    trace, count = trace_of(file, conversation), counter_of(counter_name, model_name)
    lines = replace(budget_of(budget, window, model_name), undeclared="pool")
    rules = {name: policy_of(name) for name in policies or KNOWN_POLICIES}
    table = rank_policies({name: replay(trace, lines, rule, count=count) for name, rule in rules.items()})
    if as_json:
        return show_json(table.to_dict("records"))
    show_table(f"{trace.id}: policies, in tokens", _SHOWN, table[_SHOWN].itertuples(index=False))
