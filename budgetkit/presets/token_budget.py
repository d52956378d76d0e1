"""A budget by sources of one's own (anchor), under the names and the rules of anchor's document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Fill, Reserve, check_choice
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.presets.application import ROLES, SECTIONS, TOOL_ROLES, with_pool

FIELDS = {"source", "max_tokens", "priority", "overflow_strategy"}
STRATEGIES = ("truncate", "drop")


def token_budget(
    total_tokens: int,
    allocations: Iterable[Mapping[str, Any]] = (),
    reserve_tokens: int = 0,
    *,
    fill: Fill = "prefix",
    **changes: Any,
) -> Budget:
    """Write a budget as anchor's `TokenBudget` and `BudgetAllocation` are written, held to their rules.

    Parameters
    ----------
    total_tokens : int
        Size of the context window, in tokens; above 0.
    allocations : iterable of mapping
        Each with a ``source`` (system, memory, retrieval, conversation, tool or user), ``max_tokens`` above 0, and
        where it is not the default a ``priority`` from 1 to 10 (5) and an ``overflow_strategy``, "truncate" or "drop".
    reserve_tokens : int, default 0
        Held back for the answer, in tokens.
    fill : {"prefix", "skip", "knapsack"}
        Prefix as anchor documents it, or skip as its code fills one source.
    **changes
        Other fields of `budgetkit.Budget`.

    Returns
    -------
    Budget
        Sources that have no allocation draw on the shared pool. System and user are required, unless their strategy
        is "drop".

    Raises
    ------
    ValueError
        If a number, a source or a strategy is none of these, a source stands twice, or all of it exceeds the total.

    Notes
    -----
    Fields, defaults and rules: anchor, "Token Budget Management" (document 004).

    Examples
    --------
    >>> system = {"source": "system", "max_tokens": 800, "priority": 10}
    >>> token_budget(8_192, [system, {"source": "retrieval", "max_tokens": 3_200}], 1_200).shared_pool
    2992
    """
    _within("total_tokens", total_tokens, 1)
    lines = [_rule(row) for row in allocations]
    twice = [a.section for a in lines if [b.section for b in lines].count(a.section) > 1]
    if twice:
        problem = f"{quoted(dict.fromkeys(twice))} is allocated twice"
        raise ValueError(f"{problem}; one allocation a source; keep one of them")
    by_source = {"user": Allocation("user", required=True, importance=9)} | {
        a.section: a for a in lines
    }
    sections = [replace(by_source[source], fill=fill) for source in SECTIONS if source in by_source]
    settings = {
        "window": total_tokens,
        "roles": {**ROLES, **(TOOL_ROLES if "tool" in by_source else {})},
        "remainder": "conversation" if "conversation" in by_source else None,
    }
    reserve = Reserve("output", check_tokens("reserve_tokens", reserve_tokens), serves="output")
    return with_pool("token_budget", reserve, sections, settings, changes)


def _rule(row: Mapping[str, Any]) -> Allocation:
    unknown = (
        sorted(str(key) for key in row if key not in FIELDS)
        if isinstance(row, Mapping)
        else [brief(row)]
    )
    if unknown or not {"source", "max_tokens"} <= set(row):
        hint = "it has a source and max_tokens, and may have priority and overflow_strategy; write these"
        raise ValueError(f"an allocation is {brief(row)}; {hint}")
    source = row["source"]
    strategy = row.get("overflow_strategy", "truncate")
    check_choice("source", source, tuple(SECTIONS))
    check_choice(f"overflow_strategy of {source}", strategy, STRATEGIES)
    return Allocation(
        source,
        _within(f"max_tokens of {source}", row["max_tokens"], 1),
        importance=_within(f"priority of {source}", row.get("priority", 5), 1, 10),
        overflow=strategy,
        keep=SECTIONS[source].get("keep", "first"),
        required=SECTIONS[source].get("required", False) and strategy == "truncate",
    )


def _within(what: str, number: object, least: int, most: int | None = None) -> int:
    tokens = check_tokens(what, number)
    if tokens < least or (most is not None and tokens > most):
        if most is None:
            range_text = f"above {least - 1}"
        else:
            range_text = f"from {least} to {most}"
        raise ValueError(
            f"{what} is {tokens:,}; anchor's document has it {range_text}; give such a number"
        )
    return tokens
