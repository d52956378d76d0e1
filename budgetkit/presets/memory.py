"""Budgets whose answer is what remains: for the history (Octopus), for memory (the memory engine)."""

from __future__ import annotations

from typing import Any, Literal

from budgetkit.budget.allocation import Allocation, Reserve
from budgetkit.budget.amounts import Amount, Share, amount_of
from budgetkit.budget.budget import Budget, WindowKind
from budgetkit.budget.quoting import brief
from budgetkit.files import read_toml
from budgetkit.presets.window import Window, window_of

#: What Octopus promises to the history, in tokens (document 000).
HISTORY_FLOOR = 4_000


def working_memory(
    window: Window = 100_000,
    *,
    output: Amount | float = 4_096,
    current: Literal["actual", "fixed", "larger"] = "actual",
    incoming: int = 500,
    knowledge: Amount | float = 3_000,
    episodes: Amount | float = 1_000,
    history_floor: int = HISTORY_FLOOR,
    best: int | None = 3,
    kind: WindowKind | None = None,
) -> Budget:
    """Octopus: the history gets what the other five components leave.

    history = window - system - procedure - knowledge - episodes - current - output

    Only the history shrinks when the window is full. Its two documents disagree on the last two terms: one
    counts the current message and reserves the answer's tokens, the other holds a fixed 500 for the current
    message and its tool results, and lets the window leave room for the answer already.

    Parameters
    ----------
    window : int, Model or str, default 100,000
        Size of the context window, in tokens. In one below 8,096 the defaults of `output`, `knowledge` and
        `episodes` exceed it, and the formula's deficit is told; give smaller ones.
    output : int, float or Share, default 4,096
        Reserve for the answer.
    current : {"actual", "fixed", "larger"}
        What the current message claims: what it counts, `incoming` tokens and no more, or the larger of both.
    incoming : int, default 500
        What "fixed" and "larger" hold back, in tokens.
    knowledge, episodes : int, float or Share
        Caps of the retrieved sections.
    history_floor : int, default 4,000
        Promised to the history by a plan, in tokens, even where the window is overrun. A running conversation lets the
        promise give way rather than send more than the window.
    best : int, optional
        How many passages and episodes at most; 3.
    kind : {"shared", "input", "usable"}, optional
        What the window holds; "usable" for one that leaves room for the answer already, where `output` claims
        nothing. Without it a model's own, or "shared".

    Returns
    -------
    Budget
        Remainder "history"; a deficit is shown as a negative number.

    Raises
    ------
    ValueError
        If `current` is none of the three.

    Notes
    -----
    Formulas and defaults: Octopus, guides "Token Budget" and "Working Memory" (documents 000 and 002).

    Examples
    --------
    The example of each document.

    >>> import budgetkit as bk
    >>> demand = {"system": 1_200, "procedure": 300, "knowledge": 1_500, "episodes": 400, "current": 100}
    >>> bk.allocate(working_memory(150_000, output=8_192), demand)["history"].limit
    138308
    >>> bk.allocate(working_memory(150_000, kind="usable", current="fixed"), demand)["history"].limit
    146100
    """
    size = window_of(window) | ({} if kind is None else {"kind": kind})
    if current not in ("actual", "fixed", "larger"):
        raise ValueError(
            f"current is {brief(current)}; known are actual, fixed, larger; choose one of them"
        )
    if current == "actual":
        incoming_reserves = []
    else:
        incoming_reserves = [Reserve("incoming", incoming, serves="current")]
    return Budget(
        reserves=[
            Reserve("output", amount_of("output", output), serves="output"),
            *incoming_reserves,
        ],
        deficit="signed",
        remainder="history",
        **_named(
            "working_memory",
            knowledge={"cap": amount_of("knowledge", knowledge), "limit_items": best},
            episodes={"cap": amount_of("episodes", episodes), "limit_items": best},
            history={"floor": min(history_floor, size["window"])},
            current={"cap": incoming if current == "fixed" else None},
        ),
        **size,
    )


def memory_engine(
    window: Window,
    *,
    output: Amount | float = Share(0.15, 500, 4_096),
    safety: Amount | float = Share(0.05),
    constrained_below: int = 1_000,
) -> Budget:
    """Memory engine: memory gets what the conversation and reserves derived from the model leave.

    memory = max(0, window - messages - directive - max(500, min(4096, 15 %)) - 5 %)

    Parameters
    ----------
    window : int, Model or str
        Size of the context window, in tokens.
    output : int, float or Share
        Reserve for the answer; 15 % of the window, from 500 to 4,096 tokens.
    safety : int, float or Share
        Held back against a wrong count; 5 % of the window.
    constrained_below : int, default 1,000
        Memory counts as constrained below so many tokens.

    Returns
    -------
    Budget
        Remainder "memory"; a deficit is clamped to 0.

    Notes
    -----
    Formula: memory engine, milestone 3.5.2 (document 001). Its own table of memory budgets does not follow
    from it; see ADR-0039.

    Examples
    --------
    >>> import budgetkit as bk
    >>> bk.allocate(memory_engine(128_000), {"messages": 3})["memory"].limit
    117501
    """
    output = amount_of("output", output)
    safety = amount_of("safety", safety)
    return Budget(
        reserves=[Reserve("output", output, serves="output"), Reserve("safety", safety)],
        deficit="clamp",
        remainder="memory",
        constrained_below=constrained_below,
        **_named("memory_engine"),
        **window_of(window),
    )


def _named(name: str, **tables: dict[str, Any]) -> dict[str, Any]:
    """Return what the table of presets says of one: its sections, with what is given for each, and its roles."""
    table = read_toml("presets.toml")
    sections = [
        Allocation(s, **row, **tables.get(s, {})) for s, row in table[name]["sections"].items()
    ]
    return {"name": name, "allocations": sections, "roles": table["roles"][name]}
