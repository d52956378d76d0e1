"""``budgetkit compare``: pruning policies side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import KNOWN_POLICIES, policy_of, trace_of
from budgetkit.commands.options import conversation_option, with_budget
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import rank_policies, replay

_SHOWN = ["policy", "sent", "cached", "cached_share", "dropped", "dropped_messages", "over", "relative_cost"]


@click.command("compare")
@click.argument("file", default="-")
@with_budget
@conversation_option
@click.option("-p", "--policy", "policies", multiple=True, help="One to compare; all that are known when left out.")
def command(
    file: str, budget: Budget, count: Any, as_json: bool, conversation: str, policies: tuple[str, ...], **_: Any
) -> None:
    """Put pruning policies side by side on one conversation, the cheapest input first."""
    trace, lines = trace_of(file, conversation), replace(budget, undeclared="pool")
    rules = {name: policy_of(name) for name in policies or KNOWN_POLICIES}
    table = rank_policies({name: replay(trace, lines, rule, count=count) for name, rule in rules.items()})
    if as_json:
        return show_json(table.to_dict("records"))
    show_table(f"{trace.id}: policies, in tokens", _SHOWN, table[_SHOWN].itertuples(index=False))
