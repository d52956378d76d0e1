"""``budgetkit fit``: one request of a conversation in a budget, and what it loses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from budgetkit.commands.inputs import budget_of, counter_of, trace_of
from budgetkit.commands.options import budget_options
from budgetkit.commands.printed import show_json, show_lines, show_table
from budgetkit.plan import Plan, fit
from budgetkit.state import to_dict
from budgetkit.truncation import cutter


@click.command("fit")
@click.argument("file", default="-")
@budget_options
@click.option("--conversation", default="0", help="Which of several: its place from 0 on, or its id.")
@click.option("--turn", type=int, help="From 1; the last when left out.")
@click.option("--why", "section", help="Say why a section lost what it lost, and what would keep it.")
def command(
    file: str,
    budget: str,
    window: int | None,
    model_name: str | None,
    counter_name: str | None,
    as_json: bool,
    conversation: str,
    turn: int | None,
    section: str | None,
) -> None:
    """Fit one request of a conversation into a budget."""
    lines, count = budget_of(budget, window, model_name), counter_of(counter_name, model_name)
    trace = trace_of(file, conversation)
    items = trace.items(len(trace.turns) if turn is None else turn, count, lines.roles or None)
    plan = fit(replace(lines, deficit="signed", undeclared="pool"), items, cutter(count))
    why = [] if section is None else str(plan.why(section)).splitlines()
    if as_json:
        return show_json(to_dict(plan) | {"free": plan.free, "warnings": plan.warnings, "why": why})
    show_plan(f"{trace.id}: {lines.name or budget} of {lines.window:,} tokens", plan)
    show_lines([*plan.warnings, *why])


def show_plan(title: str, plan: Plan) -> None:
    """Print what each section asks for and gets."""
    rows: list[tuple[Any, ...]] = [
        (g.section, plan.budget.caps[g.section], g.demand, g.limit, g.granted, g.cut) for g in plan.grants
    ]
    rows += [("reserved", None, None, None, plan.reserved, None), ("free", None, None, None, plan.free, None)]
    show_table(title, ["section", "cap", "asks for", "may take", "gets", "loses"], rows)
