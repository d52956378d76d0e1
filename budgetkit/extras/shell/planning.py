"""Planning commands: ``budgetkit fit``, ``replay`` and ``compare``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from budgetkit.budget import many
from budgetkit.extras.shell.inputs import BudgetCase, with_conversation
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.lab.replay.cost import Prices, known_prices
from budgetkit.lab.replay.outcome import Replay, rank_policies
from budgetkit.lab.replay.prefix import By
from budgetkit.lab.replay.replaying import replay
from budgetkit.message import Data
from budgetkit.plan import fit
from budgetkit.pruning import Policy
from budgetkit.pruning.policies.systems import policies_of
from budgetkit.state import to_dict
from budgetkit.trace import Trace
from budgetkit.truncation import cutter


@with_conversation
def fit_command(
    case: BudgetCase, trace: Trace, as_json: bool, turn: int | None, section: str | None
) -> None:
    """Fit one request of a conversation into a budget."""
    budget = case.budget
    turn = len(trace.turns) if turn is None else turn
    items = trace.items(turn, case.counter, budget.roles or None, case.framing)
    cut = cutter(case.counter, case.framing)
    plan = fit(replace(budget, deficit="signed", undeclared="pool"), items, cut)
    why = str(plan.why(section)).splitlines() if section else []
    if as_json:
        return show_json(to_dict(plan) | {"free": plan.free, "warnings": plan.warnings, "why": why})
    caps = budget.caps
    rows: list[Any] = [
        (g.section, caps.get(g.section), g.demand, g.limit, g.granted, g.cut) for g in plan.grants
    ]
    rows += [(name, None, None, None, getattr(plan, name), None) for name in ("reserved", "free")]
    columns = ["section", "cap", "demand", "limit", "granted", "cut"]
    show_table(f"{trace.id}: a window of {budget.window:,} tokens", columns, rows)
    show_lines(*plan.warnings, *why)


_REPLAYED = [
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


@with_conversation
def replay_command(
    case: BudgetCase,
    trace: Trace,
    as_json: bool,
    policy: str | None,
    by: By,
    price: str | None,
) -> None:
    """Replay a conversation under a budget and a pruning policy."""
    rules = policies_of([policy or case.policy or "oldest first"])
    prices, replays = _replays(case, trace, rules, by, price)
    ((name, outcome),) = replays.items()
    frame = outcome.frame()
    totals = outcome.totals()
    if as_json:
        return show_json({"totals": totals, "requests": frame})
    show_table(f"{trace.id}, {name}, in tokens", _REPLAYED, frame[_REPLAYED].to_numpy().tolist())
    show_table("All requests", ["total", "tokens, number or dollars"], totals.items())
    return show_lines(*_cost_notes(prices, totals["cost"] == totals["cost"]))


def _replays(
    case: BudgetCase, trace: Trace, rules: Mapping[str, Policy], by: By, price: str | None
) -> tuple[Prices | None, dict[str, Replay]]:
    """Replay a conversation under several policies, and return the prices used.

    The prices are None if no model is named.
    """
    model = price or case.model or trace.model
    prices = None if model is None else known_prices(model)
    budget = replace(case.budget, undeclared="pool")
    options: Data = {"counter": case.counter, "framing": case.framing, "by": by, "prices": prices}
    return prices, {name: replay(trace, budget, rule, **options) for name, rule in rules.items()}


def _cost_notes(prices: Prices | None, has_costs: bool) -> list[str]:
    """Explain a missing cost in dollars, and suggest a fix.

    If there are costs, the list is empty.
    """
    if has_costs:
        return []
    problem = "no model is named"
    if prices is not None:
        problem = f"the price of {prices.model} is unknown"
    return [f"No cost in dollars: {problem}. Name a model with --price."]


_COMPARED = [
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


@with_conversation
def compare_command(
    case: BudgetCase,
    trace: Trace,
    as_json: bool,
    policies: tuple[str, ...],
    by: By,
    price: str | None,
) -> None:
    """Compare pruning policies and systems on a conversation, cheapest first.

    Without names, all policies are compared, including the policy of the configuration.
    """
    rules = policies_of([*policies] or None)
    if case.policy is not None and not policies:
        rules = policies_of([case.policy]) | rules
    prices, replays = _replays(case, trace, rules, by, price)
    table = rank_policies(replays)
    if as_json:
        return show_json(table)
    idle = [name for name, outcome in replays.items() if not outcome.acts.any()]
    rows = table[~table["policy"].isin(idle)]
    if idle:
        unpruned = table[table["policy"] == idle[0]].assign(
            policy=f"unpruned: {many(len(idle), 'policy', 'policies')} without effect"
        )
        rows = pd.concat([rows, unpruned]).sort_values("relative_cost", kind="stable")
    has_costs = bool(table["cost"].notna().all())
    units = "tokens and dollars" if table["cost"].notna().any() else "tokens"
    show_table(
        f"{trace.id}: policies, in {units}", _COMPARED, rows[_COMPARED].itertuples(index=False)
    )
    notes = _cost_notes(prices, has_costs)
    if by == "turn" and any(message.tool_calls for message in trace.messages):
        notes.append(
            "Each turn counts as one request. Use --by request to count each answer as one."
        )
    if idle:
        largest = int(max(outcome.sent.max() for outcome in replays.values()))
        size = f"the largest request takes {largest:,} of {case.budget.window:,} tokens"
        notes.append(
            f"Policies without effect: {', '.join(idle)}; {size}. Use --window to set a smaller window."
        )
    return show_lines(*notes)
