"""Candidates: the values that a budget's lines are tried with, and which settings of them are tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from math import prod
from random import Random
from typing import Any

from budgetkit.counters import count_of
from budgetkit.inputs import budget_of, traces_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter
from budgetkit.inputs.conversations import AnyTrace
from budgetkit.lab.deciding.answers import answer_reserve, recorded_lengths, reserve_of_answers
from budgetkit.plan.limits import with_undeclared

NO_CAP = "no cap"
Values = dict[str, dict[str, Any]]


def candidates(
    budget: AnyBudget,
    traces: AnyTrace,
    counter: AnyCounter,
    risk: float = 0.05,
    locked: Collection[str] = (),
) -> Values:
    """Return what each line is tried with, by the name that a table gives it; nothing for a line that is locked.

    An explorer and :func:`budgetkit.lab.deciding.tune` try the same. The answer's reserve never falls below what
    :func:`budgetkit.lab.deciding.answer_reserve` finds. A cap is tried at half, at once and at one and a half times its
    size, and the remainder with less than all that is left.

    Parameters
    ----------
    budget : Budget, str, Path or Mapping
        The present setting, or what holds it.
    traces : sequence of Trace, str or Path
        The conversations, or what holds them.
    counter : str, Model or callable
        From text to tokens.
    risk : float, default 0.05
        Share of the answers that may be longer than their reserve.
    locked : collection of str
        Lines that stay as they are.

    Returns
    -------
    dict
        For each line its sizes in tokens by name, None for no cap.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> values = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-4o"))
    >>> {line: [*sizes] for line, sizes in values.items() if line in ("output", "history")}
    {'output': ['78', '139', '200'], 'history': ['no cap', '300', '200', '100']}
    """
    budget = with_undeclared(budget_of(budget), {})
    traces = traces_of(traces)
    count = count_of(counter)
    values: Values = {}

    # The answer: what answers need, the present reserve, and half-way.
    reserve = reserve_of_answers(budget)
    if reserve is not None and recorded_lengths(traces, count):
        least = answer_reserve(traces, count, risk).tokens
        now = budget.sizes[reserve.name]
        if now > least:
            sizes = [least, (least + now) // 2, now]
        else:
            sizes = [least, 2 * least]
        values[reserve.name] = _by_name([size for size in sizes if size < budget.window])

    # Caps; the remainder has none, and is tried with less than all.
    for section, cap in budget.caps.items():
        if section == budget.remainder and cap is None:
            parts = [budget.usable * quarters // 4 for quarters in (3, 2, 1)]
            values[section] = {NO_CAP: None, **_by_name([size for size in parts if size > 0])}
        elif cap:
            values[section] = _by_name([cap // 2, cap, cap * 3 // 2])
    return {line: sizes for line, sizes in values.items() if sizes and line not in locked}


def tokens_of(values: Values, setting: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of a table as the sizes that it stands for; a policy stays a name."""
    return {
        line: name if line == "policy" else values[line][name] for line, name in setting.items()
    }


def settings_to_try(
    values: Mapping[str, Mapping[Any, Any]], trials: int, seed: int
) -> tuple[list[dict[str, Any]], str]:
    """Return all settings of these values, or so many drawn by the seed, none twice; and which of the two it is.

    Examples
    --------
    >>> lines = {"output": {500: 500, 1_000: 1_000}, "window": dict.fromkeys(range(4_000, 8_000))}
    >>> settings, search = settings_to_try(lines, trials=3, seed=0)
    >>> len(settings), search
    (3, 'drawn by the seed')
    """
    choices = [list(by_name) for by_name in values.values()]
    if prod(map(len, choices)) <= trials:
        return [dict(zip(values, setting, strict=True)) for setting in product(*choices)], "all"

    random = Random(seed)
    drawn: dict[tuple[Any, ...], None] = {}  # keeps the order, and each setting once
    while len(drawn) < trials:
        drawn[tuple(random.choice(names) for names in choices)] = None
    return [dict(zip(values, setting, strict=True)) for setting in drawn], "drawn by the seed"


def _by_name(sizes: Sequence[int]) -> dict[str, Any]:
    return {f"{size:,}": size for size in sizes}
