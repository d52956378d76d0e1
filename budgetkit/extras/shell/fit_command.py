"""``budgetkit fit``: one request of a conversation in a budget, and what it loses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from budgetkit.budget import Budget
from budgetkit.extras.shell.options import with_conversation
from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.plan import fit
from budgetkit.requests import Framing
from budgetkit.state import to_dict
from budgetkit.trace.conversation import Trace
from budgetkit.truncation import cutter


@click.command("fit")
@with_conversation
@click.option("--turn", type=int, help="From 1; the last when left out.")
@click.option(
    "--why", "section", help="Say why a section lost what it lost, and what would keep it."
)
def command(
    trace: Trace,
    budget: Budget,
    count: Any,
    framing: Framing,
    as_json: bool,
    turn: int | None,
    section: str,
    **_: Any,
) -> None:
    """Fit one request of a conversation into a budget."""
    items = trace.items(
        len(trace.turns) if turn is None else turn, count, budget.roles or None, framing
    )
    plan = fit(replace(budget, deficit="signed", undeclared="pool"), items, cutter(count, framing))
    if section:
        why = str(plan.why(section)).splitlines()
    else:
        why = []
    if as_json:
        return show_json(to_dict(plan) | {"free": plan.free, "warnings": plan.warnings, "why": why})
    caps = budget.caps
    rows: list[Any] = [
        (g.section, caps.get(g.section), g.demand, g.limit, g.granted, g.cut) for g in plan.grants
    ]
    rows += [(name, None, None, None, getattr(plan, name), None) for name in ("reserved", "free")]
    columns = ["section", "cap", "asks for", "may take", "gets", "loses"]
    show_table(f"{trace.id}: a window of {budget.window:,} tokens", columns, rows)
    show_lines([*plan.warnings, *why])
