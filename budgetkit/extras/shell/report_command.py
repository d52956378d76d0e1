"""``budgetkit report``: an explorer of a conversation as one file of HTML, to share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.extras.shell.inputs import policies_named
from budgetkit.extras.shell.options import with_conversation
from budgetkit.extras.shell.printed import show_json
from budgetkit.lab.explorers.budget import BudgetExplorer
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.presets import PRESETS
from budgetkit.trace.conversation import Trace


@click.command("report")
@with_conversation
@click.option(
    "-o", "--output", default="report.html", show_default=True, help="Where to; it ends with .html."
)
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    help="A pruning policy, such as octopus; again for more.",
)
@click.option(
    "--plan",
    "is_plan",
    is_flag=True,
    help="Show how the budget plans each turn, without pruning policies.",
)
def command(
    trace: Trace,
    output: str,
    policies: tuple[str, ...],
    budget: Budget,
    is_plan: bool,
    as_json: bool,
    model: str | None,
    window: int | None,
    named_options: dict[str, Any],
    **_: Any,
) -> None:
    """Write a report of a conversation: one file of HTML, which needs no kernel and no network."""
    # What was named is handed on as it was, so that the report opens as the explorer of the same arguments does.
    preset = named_options["budget"]
    lines = preset if preset in PRESETS else budget
    named: dict[str, Any] = {"model": model, "window": window, "counter": named_options["counter"]}
    explorer: BudgetExplorer | ConversationExplorer
    if is_plan:
        explorer = BudgetExplorer(lines, trace, **named)
    else:
        explorer = ConversationExplorer(
            trace, lines, policies_named(policies) if policies else None, **named
        )
    explorer.save(output)
    size = Path(output).expanduser().stat().st_size
    if as_json:
        return show_json({"report": output, "bytes": size})
    click.echo(
        f"{output}: {size / 1_000:,.0f} kB, in a window of {explorer.budget.window:,} tokens; --window gives another"
    )
