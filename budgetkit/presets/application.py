"""Budgets by kind of application (anchor): caps as parts of the window, a reserve, and a shared pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Fill, Reserve
from budgetkit.budget.amounts import Amount, Share, amount_of
from budgetkit.budget.quoting import quoted
from budgetkit.files import Table, read_toml
from budgetkit.presets.window import Window, window_of

#: The sources that anchor knows, in the order of a request, with their importance and which items of each stay.
SECTIONS: Mapping[str, dict[str, Any]] = Table(
    lambda: read_toml("presets.toml")["application"]["sections"]
)
ROLES = Table(lambda: read_toml("presets.toml")["roles"]["application"])
#: For budgets that have a section of tool results.
TOOL_ROLES = {"tool": "tool", "function": "tool"}
#: What of a budget these presets leave to change: all but the window and the lines, which they write.
_SETTINGS = tuple(
    f.name for f in fields(Budget) if f.name not in ("window", "reserves", "allocations")
)


def chat(
    window: Window, *, output: Amount | float = 0.15, fill: Fill = "prefix", **changes: Any
) -> Budget:
    """Split a window for a conversation with moderate retrieval.

    System 10 %, memory 10 %, conversation 20 %, retrieval 25 %, answer 15 %; the shared pool has the rest.

    Parameters
    ----------
    window : int, Model or str
        Size of the context window, in tokens.
    output : float, int or Share, default 0.15
        Reserve for the answer: a part of the window, but no more than the model's longest answer, or tokens.
    fill : {"prefix", "skip", "knapsack"}
        Prefix as anchor documents it, or skip as its code fills one source.
    **changes
        Other fields of `budgetkit.Budget`.

    Returns
    -------
    Budget
        Remainder "conversation"; too many tokens are an error.

    Raises
    ------
    ValueError
        If the window is below 10 tokens, so that a part comes to none.
    TypeError
        If a field is unknown, or one that the preset writes.

    Notes
    -----
    Shares: anchor, "Token Budget Management" (document 004).

    Examples
    --------
    >>> chat(8_192)
    Budget(chat: window=8192, output=1228, system=819, memory=819, retrieval=2048, conversation=1638, \
user=pool, shared_pool=1640)
    """
    return _application("chat", window, output, fill, changes)


def rag(
    window: Window, *, output: Amount | float = 0.15, fill: Fill = "prefix", **changes: Any
) -> Budget:
    """Split a window in which retrieval dominates.

    System 10 %, memory 5 %, conversation 10 %, retrieval 40 %, answer 15 %; the shared pool has the rest.

    Parameters
    ----------
    window, output, fill, **changes
        As in :func:`chat`.

    Returns
    -------
    Budget
        Remainder "conversation"; too many tokens are an error.

    Raises
    ------
    ValueError
        If the window is below 20 tokens, so that a part comes to none.
    TypeError
        As in :func:`chat`.

    Notes
    -----
    Shares: anchor, "Token Budget Management" (document 004).

    Examples
    --------
    >>> rag(8_192).shared_pool
    1641
    """
    return _application("rag", window, output, fill, changes)


def agent(
    window: Window, *, output: Amount | float = 0.15, fill: Fill = "prefix", **changes: Any
) -> Budget:
    """Split a window for an agent with tools.

    System 15 %, memory 10 %, conversation 15 %, retrieval 20 %, tool results 15 %, answer 15 %; the shared
    pool has the rest.

    Parameters
    ----------
    window, output, fill, **changes
        As in :func:`chat`.

    Returns
    -------
    Budget
        Remainder "conversation"; too many tokens are an error.

    Raises
    ------
    ValueError
        If the window is below 10 tokens, so that a part comes to none.
    TypeError
        As in :func:`chat`.

    Notes
    -----
    Shares: anchor, "Token Budget Management" (document 004).

    Examples
    --------
    >>> agent(8_192).cap("tool"), agent(8_192).shared_pool
    (1228, 823)
    """
    return _application(
        "agent", window, output, fill, {"roles": {**ROLES, **TOOL_ROLES}, **changes}
    )


def _application(
    name: str, window: Window, output: Amount | float, fill: Fill, changes: Mapping[str, Any]
) -> Budget:
    caps = read_toml("presets.toml")["application"]["caps"][name] | {"user": None}
    sections = [
        Allocation(section, caps[section] and Share(caps[section]), fill=fill, **row)
        for section, row in SECTIONS.items()
        if section in caps
    ]
    shares = window_of(window)
    answer = _answer(amount_of("output", output), shares["window"], shares.get("max_output"))
    return with_pool(name, Reserve("output", answer, serves="output"), sections, shares, changes)


def _answer(size: Amount, window: int, longest: int | None) -> Amount:
    """Limit a share of the window to the longest answer that the model writes: what is beyond is never used.

    >>> _answer(Share(0.15), 128_000, 16_384), _answer(Share(0.15), 128_000, None)
    (Share(0.15, 0, 16384), Share(0.15))
    """
    if (
        not isinstance(size, Share)
        or not longest
        or size.at_least > longest
        or size.of(window) <= longest
    ):
        return size
    return replace(size, at_most=longest)


def with_pool(
    name: str,
    reserve: Reserve,
    sections: Sequence[Allocation],
    shares: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> Budget:
    """Return anchor's kind of budget: sources without a cap share the pool, item by item."""
    if unknown := [field for field in changes if field not in _SETTINGS]:
        hint = f"it has output, fill, {', '.join(_SETTINGS)}; name one of them, or change a line with assign"
        raise TypeError(f"{name} has no setting {quoted(unknown)}; {hint}")
    settings: dict[str, Any] = {
        "order": "pool by item",
        "deficit": "raise",
        "undeclared": "pool",
        "name": name,
    }
    settings |= {"remainder": "conversation", "roles": ROLES, **shares, **changes}
    return Budget(reserves=[reserve], allocations=sections, **settings)
