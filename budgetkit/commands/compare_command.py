"""``budgetkit compare``: pruning policies side by side."""

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import policies_named
from budgetkit.commands.options import with_conversation
from budgetkit.commands.printed import show_json, show_table
from budgetkit.replay import rank_policies, replay
from budgetkit.trace.conversation import Trace

_SHOWN = ["policy", "sent", "cached", "cached_share", "dropped", "dropped_messages", "over", "relative_cost"]


@click.command("compare")
@with_conversation
@click.option("-p", "--policy", "policies", multiple=True, help="One to compare; all that are known when left out.")
def command(trace: Trace, budget: Budget, count: Any, as_json: bool, policies: tuple[str, ...], **_: Any) -> None:
    """Put pruning policies side by side on one conversation, the cheapest input first."""
    lines, rules = replace(budget, undeclared="pool"), policies_named(policies).items()
    table = rank_policies({name: replay(trace, lines, rule, count=count) for name, rule in rules})
    if as_json:
        return show_json(table.to_dict("records"))
    show_table(f"{trace.id}: policies, in tokens", _SHOWN, table[_SHOWN].itertuples(index=False))
