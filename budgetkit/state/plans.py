"""Plans as plain data: the budget, the grants, a decision for each item, and its text where that is asked for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from budgetkit.budget.allocation import check_all
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.plan import Grant, Plan
from budgetkit.plan.decisions import REASONS, Decisions
from budgetkit.plan.item import Item
from budgetkit.plan.items import Ints, Items
from budgetkit.state.budgets import budget_from, budget_to, changed_fields
from budgetkit.state.plain import keys, made, rows
from budgetkit.state.texts import texts_from, texts_to


def plan_to(plan: Plan, texts: bool = False) -> dict[str, Any]:
    """Return a plan as plain data.

    Examples
    --------
    >>> from budgetkit import Budget
    >>> plan_to(Plan(Budget(100), ()))["budget"]
    {'window': 100}
    """
    decisions = plan.decisions
    items = [_item_to(item) for item in decisions.columns.items]
    return {
        "budget": budget_to(plan.budget),
        "grants": [{f.name: getattr(g, f.name) for f in fields(Grant)} for g in plan.grants],
        "items": items,
        "kept": decisions.kept.tolist(),
        "reasons": [REASONS[i] for i in decisions.reasons],
        "cuts": sorted(decisions.cuts),
    } | ({"texts": texts_to(decisions)} if texts else {})


def plan_from(data: object) -> Plan:
    """Return the plan that plain data holds.

    Examples
    --------
    >>> from budgetkit import Budget
    >>> plan_from(plan_to(Plan(Budget(100), ()))).free
    100
    """
    parts = {"budget", "grants", "items", "kept", "reasons", "cuts"}
    found = keys("plan", data, {*parts, "texts"})
    missing = sorted(parts - set(found))
    if missing:
        raise ValueError(f"plan lacks {quoted(missing)}; it has {quoted(sorted(parts))}; save it again")
    budget = budget_from(found["budget"])
    grants = tuple(_grant_from(row) for row in rows("grants", found["grants"]))
    if [grant.section for grant in grants] != [*budget.sections]:
        raise ValueError(
            f"plan has grants for {quoted(grant.section for grant in grants)}; the sections of its budget are "
            f"{quoted(budget.sections)}; there is one grant for each, in order; save it again"
        )
    decisions = _decisions_from(found)
    _check_sums(grants, decisions)
    return Plan(budget, grants, decisions)


def _grant_from(row: object) -> Grant:
    return made("grant", _grant, keys("grant", row, {f.name for f in fields(Grant)}))


def _grant(section: str, **tokens: int) -> Grant:
    grant = Grant(section, **{name: check_tokens(name, number) for name, number in tokens.items()})
    if grant.granted > min(grant.demand, grant.limit):
        raise ValueError(
            f"grant of {brief(section)} is {grant.granted:,} of a demand of {grant.demand:,} and a limit of "
            f"{grant.limit:,} tokens; no section gets more than it asks for or may take; save it again"
        )
    return grant


def _check_sums(grants: tuple[Grant, ...], decisions: Decisions) -> None:
    """Hold the grants of a plan of items to what its items ask for and keep."""
    for grant in grants if len(decisions) else ():
        rows = decisions.columns.rows(grant.section)
        sums = int(decisions.columns.tokens[rows].sum()), int(decisions.kept[rows].sum())
        if sums != (grant.demand, grant.granted):
            raise ValueError(
                f"items of {brief(grant.section)} have {sums[0]:,} tokens and keep {sums[1]:,}; its grant says "
                f"{grant.demand:,} and {grant.granted:,}; a plan of items sums them; save it again"
            )


def _decisions_from(found: Mapping[str, Any]) -> Decisions:
    items = [_item_from(row) for row in rows("items", found["items"])]
    kept, reasons, cuts = (rows(name, found[name]) for name in ("kept", "reasons", "cuts"))
    unknown = [r for r in reasons if r not in REASONS] + [i for i in cuts if i not in range(len(items))]
    if unknown or not len(items) == len(kept) == len(reasons):
        raise ValueError(
            f"plan has {len(items)} items, {len(kept)} kept and {len(reasons)} reasons, unknown {brief(unknown)}; "
            f"there is one of each an item, of {quoted(REASONS)}; save it again"
        )
    tokens = made("kept", _column, {"kept": kept})
    numbers = np.array([REASONS.index(r) for r in reasons], dtype=np.int8)
    payloads, shorter = texts_from(found.get("texts"), len(items), cuts)
    whole = [replace(item, payload=payload) for item, payload in zip(items, payloads, strict=True)]
    return Decisions(
        Items(whole), tokens, numbers, {i: replace(items[i], tokens=kept[i], payload=shorter[i]) for i in cuts}
    )


def _column(kept: list[object]) -> Ints:
    return np.array([check_tokens("kept", tokens) for tokens in kept], dtype=np.int64)


def _item_to(item: Item) -> dict[str, Any]:
    data = {"section": item.section, "tokens": item.tokens} | changed_fields(item)
    for name in ("payload", "roles"):
        data.pop(name, None)
    return data


def _item_from(row: object) -> Item:
    found = keys("item", row, {f.name for f in fields(Item)} - {"payload", "roles"})
    return made("item", _item, found | {"group": _group_from(found.get("group"))})


def _item(section: str, tokens: int, **rest: Any) -> Item:
    """Make an item of values from anywhere; `Item` itself is made too often to look at all of them."""
    check_all("section", [section], str)
    check_all("importance", [n for n in [rest.get("importance")] if n is not None], int)
    check_all("score", [float(n) if type(n) is int else n for n in [rest.get("score", 0.0)]], float)
    return Item(section, tokens, **rest)


def _group_from(group: object) -> Hashable:
    """Read a group, whose tuples are saved as lists."""
    if isinstance(group, list):
        return tuple(map(_group_from, group))
    if isinstance(group, Mapping):
        raise ValueError(f"group of an item is {brief(group)}; groups are texts, numbers and lists of them; write one")
    return group
