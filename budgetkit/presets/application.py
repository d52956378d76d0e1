"""Budgets for typical applications: chat, retrieval, agents and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal

from budgetkit.budget.allocation import Allocation, Fill, Reserve, check_choice
from budgetkit.budget.amounts import Amount, Share, amount_of, check_tokens
from budgetkit.budget.budget import Budget, WindowKind
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.validation import check_window
from budgetkit.files import Table, read_toml
from budgetkit.message import Data, Raw
from budgetkit.models import Model, model, resolve

Window = int | Model | str
#: A number in a string, such as "8k", which means tokens and not a model's name.
_NUMBER: Final = re.compile(r"\s*[-+]?\d[\d.,_ ]*+[kKmM]?\s*+")


def window_of(window: Window) -> Data:
    """Return the budget fields that depend on the window.

    The fields are the size of the window and, for a model, the window's kind and the longest answer.

    Examples
    --------
    >>> window_of(8192)
    {'window': 8192}
    >>> window_of("gpt-5.4")
    {'window': 1050000, 'kind': 'shared', 'max_output': 128000}
    >>> window_of("8k")
    Traceback (most recent call last):
    ...
    TypeError: Invalid window: '8k'. Expected a whole number of tokens, or a Share for a ratio.
    """
    if isinstance(window, str) and not _NUMBER.fullmatch(window):
        resolve(window, must_know=True)
        window = model(window)  # warns about a model that has ended
    if isinstance(window, Model):
        return {"window": window.window, "kind": window.kind, "max_output": window.max_output}
    check_window(tokens := check_tokens("window", window), 0, 0)
    return {"window": tokens}


#: The sources that anchor knows, in the order of a request, with their importance and the items to keep.
SECTIONS: Mapping[str, Data] = Table(lambda: read_toml("presets.toml")["application"]["sections"])
ROLES = Table(lambda: read_toml("presets.toml")["roles"]["application"])
#: Roles for budgets with a section for tool results.
TOOL_ROLES = {"tool": "tool", "function": "tool"}
#: The fields of a budget that can be changed in these presets: all except the window and the lines.
_SETTINGS = tuple(
    f.name for f in fields(Budget) if f.name not in ("window", "reserves", "allocations")
)


def chat(
    window: Window, *, output: Amount | float = 0.15, fill: Fill = "prefix", **changes: Any
) -> Budget:
    """Split a window for a conversation with moderate retrieval.

    The system prompt gets 10 % of the window, memory 10 %, the conversation 20 %, retrieval 25 % and the answer 15 %;
    the remaining 20 % form the shared pool.

    Parameters
    ----------
    window : int, Model or str
        Context window in tokens, or a model or its name.
    output : float, int or Share, default 0.15
        Reserve for the answer, in tokens or as a share of the window. A share is limited to the model's longest answer.
    fill : {"prefix", "skip", "knapsack"}
        Filling rule: "prefix" as in anchor's documentation, "skip" as in anchor's code.
    **changes
        Other fields of `budgetkit.Budget`.

    Returns
    -------
    Budget
        A budget whose remainder is "conversation". An overflow raises an error.

    Raises
    ------
    ValueError
        If the window is below 10 tokens, because a share would then be 0 tokens.
    TypeError
        If a field is unknown or set by the preset.

    Notes
    -----
    The shares are those of anchor's "Token Budget Management" (document 004).

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
    """Split a window dominated by retrieval.

    The system prompt gets 10 % of the window, memory 5 %, the conversation 10 %, retrieval 40 % and the answer 15 %;
    the remaining 20 % form the shared pool.

    Parameters
    ----------
    window, output, fill, **changes
        As in :func:`chat`.

    Returns
    -------
    Budget
        A budget whose remainder is "conversation". An overflow raises an error.

    Raises
    ------
    ValueError
        If the window is below 20 tokens, because a share would then be 0 tokens.
    TypeError
        As in :func:`chat`.

    Notes
    -----
    The shares are those of anchor's "Token Budget Management" (document 004).

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

    The system prompt gets 15 % of the window, memory 10 %, the conversation 15 %, retrieval 20 %, tool results 15 % and
    the answer 15 %; the remaining 10 % form the shared pool.

    Parameters
    ----------
    window, output, fill, **changes
        As in :func:`chat`.

    Returns
    -------
    Budget
        A budget whose remainder is "conversation". An overflow raises an error.

    Raises
    ------
    ValueError
        If the window is below 10 tokens, because a share would then be 0 tokens.
    TypeError
        As in :func:`chat`.

    Notes
    -----
    The shares are those of anchor's "Token Budget Management" (document 004).

    Examples
    --------
    >>> agent(8_192).cap("tool"), agent(8_192).shared_pool
    (1228, 823)
    """
    return _application(
        "agent", window, output, fill, {"roles": {**ROLES, **TOOL_ROLES}, **changes}
    )


def _application(
    name: str, window: Window, output: Amount | float, fill: Fill, changes: Raw
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
    """Cap the answer's share at the model's longest answer.

    A larger share would reserve tokens that the model never uses. A fixed number of tokens is returned unchanged.

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
    shares: Raw,
    changes: Raw,
) -> Budget:
    """Return a budget whose uncapped sections compete for the pool by item.

    `changes` sets other fields of the budget, and may also replace this order.
    """
    if unknown := [field for field in changes if field not in _SETTINGS]:
        raise TypeError(
            unknown_name(f"setting of {name}:", unknown[0], ("output", "fill", *_SETTINGS))
        )
    settings: Data = {
        "order": "pool by item",
        "deficit": "raise",
        "undeclared": "pool",
        "name": name,
    }
    settings |= {"remainder": "conversation", "roles": ROLES, **shares, **changes}
    return Budget(reserves=[reserve], allocations=sections, **settings)


#: Octopus' guaranteed minimum for the history, in tokens (document 000).
HISTORY_FLOOR = 4_000
#: Octopus' reserve for the answer, in tokens (document 000).
OUTPUT_TOKENS = 4_096


def working_memory(
    window: Window = 100_000,
    *,
    output: Amount | float = OUTPUT_TOKENS,
    current: Literal["actual", "fixed", "larger"] = "actual",
    incoming: int = 500,
    knowledge: Amount | float = 3_000,
    episodes: Amount | float = 1_000,
    history_floor: int = HISTORY_FLOOR,
    best: int | None = 3,
    kind: WindowKind | None = None,
) -> Budget:
    """Split a window as Octopus does; the history gets the remainder.

    history = window - system - procedure - knowledge - episodes - current - output

    Only the history shrinks when the window is full. The two documents of Octopus disagree on the last two terms. The
    first counts the current message and reserves the tokens of the answer. The second reserves a fixed 500 tokens for
    the current message and its tool results, in a window that already excludes the answer.

    Parameters
    ----------
    window : int, Model or str, default 100,000
        Context window in tokens, or a model or its name. Below 8,096 tokens the default `output`, `knowledge` and
        `episodes` exceed the window; pass smaller amounts.
    output : int, float or Share, default 4,096
        Reserve for the answer.
    current : {"actual", "fixed", "larger"}
        Tokens claimed by the current message: its count, `incoming`, or the larger of the two.
    incoming : int, default 500
        Tokens reserved for the current message if `current` is "fixed" or "larger".
    knowledge, episodes : int, float or Share
        Caps of the sections "knowledge" and "episodes".
    history_floor : int, default 4,000
        Tokens that a plan guarantees to the history, even if the window overflows. In a running conversation the window
        takes precedence over this guarantee.
    best : int, optional
        Maximum number of passages and of episodes, or None for any number. Default: 3.
    kind : {"shared", "input", "usable"}, optional
        Content of the window. A "usable" window already excludes the answer, so `output` is not subtracted. Default:
        the kind of the model's window, or "shared".

    Returns
    -------
    Budget
        A budget whose remainder is "history". A deficit is a negative number.

    Raises
    ------
    ValueError
        If `current` is unknown, or if an `output` other than the default fills the window.

    Notes
    -----
    The formulas and defaults are those of Octopus' guides "Token Budget" and "Working Memory" (documents 000 and 002).

    Examples
    --------
    These are the examples in the two documents.

    >>> import budgetkit as bk
    >>> demand = {"system": 1_200, "procedure": 300, "knowledge": 1_500, "episodes": 400, "current": 100}
    >>> bk.allocate(working_memory(150_000, output=8_192), demand)["history"].limit
    138308
    >>> bk.allocate(working_memory(150_000, kind="usable", current="fixed"), demand)["history"].limit
    146100
    """
    size = window_of(window) | ({} if kind is None else {"kind": kind})
    check_choice("current", current, ("actual", "fixed", "larger"))
    if current == "actual":
        incoming_reserves = []
    else:
        incoming_reserves = [Reserve("incoming", incoming, serves="current")]
    reserves = [Reserve("output", amount_of("output", output), serves="output"), *incoming_reserves]
    budget = Budget(
        reserves=reserves,
        deficit="signed",
        remainder="history",
        **_preset_lines(
            "working_memory",
            knowledge={"cap": amount_of("knowledge", knowledge), "limit_items": best},
            episodes={"cap": amount_of("episodes", episodes), "limit_items": best},
            history={"floor": min(check_tokens("history_floor", history_floor), size["window"])},
            current={"cap": incoming if current == "fixed" else None},
        ),
        **size,
    )
    if output != OUTPUT_TOKENS:  # in a small window the default is shown as a deficit
        check_window(budget.window, budget.reserved, 0)
    return budget


def memory_engine(
    window: Window,
    *,
    output: Amount | float = Share(0.15, 500, 4_096),
    safety: Amount | float = Share(0.05),
    constrained_below: int = 1_000,
) -> Budget:
    """Split a window as the memory engine does; memory gets the remainder.

    By default, both reserves are shares of the window:

    memory = max(0, window - messages - directive - max(500, min(4096, 0.15 * window)) - 0.05 * window)

    Parameters
    ----------
    window : int, Model or str
        Context window in tokens, or a model or its name.
    output : int, float or Share
        Reserve for the answer; default: 15 % of the window, from 500 to 4,096 tokens.
    safety : int, float or Share
        Reserve for counting errors; default: 5 % of the window.
    constrained_below : int, default 1,000
        Size below which memory counts as constrained, in tokens.

    Returns
    -------
    Budget
        A budget whose remainder is "memory". A deficit is clamped to 0.

    Notes
    -----
    The formula is that of the memory engine's milestone 3.5.2 (document 001). The document's table of memory budgets
    contradicts the formula; see ADR-0039.

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
        **_preset_lines("memory_engine"),
        **window_of(window),
    )


def _preset_lines(name: str, **tables: Data) -> Data:
    """Return the name, allocations and roles of a preset.

    `tables` gives further fields of the allocations, by section.
    """
    table = read_toml("presets.toml")
    sections = [
        Allocation(s, **row, **tables.get(s, {})) for s, row in table[name]["sections"].items()
    ]
    return {"name": name, "allocations": sections, "roles": table["roles"][name]}
