"""``budgetkit report``: an explorer of a conversation as one file of HTML, to share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import policies_named
from budgetkit.commands.options import with_conversation
from budgetkit.commands.printed import show_json
from budgetkit.explorer.budget import BudgetExplorer
from budgetkit.replay.explorer import ConversationExplorer
from budgetkit.trace.conversation import Trace


@click.command("report")
@with_conversation
@click.option("-o", "--output", default="report.html", show_default=True, help="Where to; it ends with .html.")
@click.option("-p", "--policy", "policies", multiple=True, help="A pruning policy, such as octopus; again for more.")
@click.option("--plan", "is_plan", is_flag=True, help="Show how the budget plans each turn, without pruning policies.")
def command(
    trace: Trace, output: str, policies: tuple[str, ...], budget: Budget, is_plan: bool, as_json: bool, **given: Any
) -> None:
    """Write a report of a conversation: one file of HTML, which needs no kernel and no network."""
    counted = {"model": given["model"], "counter": given["count"]}
    if is_plan:
        BudgetExplorer(budget, trace, **counted).save(output)
    else:
        ConversationExplorer(trace, budget, policies_named(policies) if policies else None, **counted).save(output)
    size = Path(output).expanduser().stat().st_size
    if as_json:
        return show_json({"report": output, "bytes": size})
    click.echo(f"{output}: {size / 1_000:,.0f} kB, in a window of {budget.window:,} tokens; --window gives another")
