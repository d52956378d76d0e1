"""``budgetkit report``: an explorer of a conversation as one file of HTML, to share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.commands.inputs import policy_of, trace_of
from budgetkit.commands.options import conversation_option, with_budget
from budgetkit.commands.printed import show_json
from budgetkit.explorer.budget import BudgetExplorer
from budgetkit.replay.explorer import ConversationExplorer


@click.command("report")
@click.argument("file", default="-")
@with_budget
@conversation_option
@click.option("-o", "--output", default="report.html", show_default=True, help="Where to; it ends with .html.")
@click.option("-p", "--policy", "policies", multiple=True, help="A pruning policy, such as octopus; again for more.")
@click.option("--plan", "is_plan", is_flag=True, help="Show how the budget plans each turn, without pruning policies.")
def command(
    file: str,
    budget: Budget,
    count: Any,
    model: str | None,
    as_json: bool,
    conversation: str,
    output: str,
    policies: tuple[str, ...],
    is_plan: bool,
) -> None:
    """Write a report of a conversation: one file of HTML, which needs no kernel and no network."""
    trace = trace_of(file, conversation)
    explorer: Any = (
        BudgetExplorer(budget, trace, model=model, counter=count)
        if is_plan
        else ConversationExplorer(
            trace, budget, {name: policy_of(name) for name in policies} or None, model=model, counter=count
        )
    )
    explorer.save(output)
    size = Path(output).expanduser().stat().st_size
    if as_json:
        return show_json({"report": output, "bytes": size})
    click.echo(f"{output}: {size / 1_000:,.0f} kB")
