"""The search space: values to try by line, and the minimum reserve."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from random import Random
from typing import Any

from budgetkit.budget import Allocation, Budget, Reserve, Share, brief
from budgetkit.budget.amounts import amount_of, tokens_of
from budgetkit.counters import Count, count_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, budget_of
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.lab.deciding.answers import (
    AnswerReserve,
    answer_reserve,
    recorded_lengths,
    reserve_of_answers,
)
from budgetkit.lab.deciding.objectives import Objective
from budgetkit.message import Data, Raw
from budgetkit.plan import with_undeclared
from budgetkit.pruning import OldestFirst, Policy, policy_of
from budgetkit.trace import Trace

Setting = Raw  # the name of a value, by line
Values = Mapping[
    str, Mapping[Any, Any]
]  # the values of a line by the names that a table gives them
NO_CAP = "no cap"
CANNOT_BE_PLANNED = "cannot be planned for every conversation"


def candidates(
    budget: AnyBudget,
    traces: AnyTrace,
    counter: AnyCounter,
    risk: float = 0.05,
    locked: Collection[str] = (),
) -> dict[str, Data]:
    """Return the values to try for each unlocked line.

    Explorers and :func:`budgetkit.lab.deciding.tune` use the same values. The answer's reserve is at least that of
    :func:`budgetkit.lab.deciding.answer_reserve`. A cap is tried at 0.5, 1 and 1.5 times its size, and the remainder
    with less than everything left.

    Parameters
    ----------
    budget : Budget, str, Path or Mapping
        The current budget.
    traces : sequence of Trace, str or Path
        The conversations, or their paths or names.
    counter : str, Model or callable
        Function from text to tokens.
    risk : float, default 0.05
        Accepted share of answers longer than their reserve.
    locked : collection of str
        Lines to keep unchanged.

    Returns
    -------
    dict
        Sizes of each line in tokens, by name; None means no cap.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> values = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-5.4"))
    >>> {line: [*sizes] for line, sizes in values.items() if line in ("output", "history")}
    {'output': ['78', '139', '200'], 'history': ['no cap', '300', '200', '100']}
    """
    budget = with_undeclared(budget_of(budget), {})
    traces = traces_of(traces)
    count = count_of(counter)
    sizes: dict[str, list[int | None]] = {}

    # The answer: what answers need, the present reserve, and half-way.
    reserve = reserve_of_answers(budget)
    if reserve is not None and recorded_lengths(traces, count):
        least = answer_reserve(traces, count, risk).tokens
        now = budget.sizes[reserve.name]
        tried = [least, (least + now) // 2, now] if now > least else [least, 2 * least]
        sizes[reserve.name] = [size for size in tried if size < budget.window]

    # Caps; the remainder has none, and is tried with less than all.
    for section, cap in budget.caps.items():
        if section == budget.remainder and cap is None:
            parts = [budget.usable * quarters // 4 for quarters in (3, 2, 1)]
            sizes[section] = [None, *(size for size in parts if size > 0)]
        elif cap:
            sizes[section] = [cap // 2, cap, cap * 3 // 2]
    return {
        line: {NO_CAP if size is None else f"{size:,}": size for size in of_line}
        for line, of_line in sizes.items()
        if of_line and line not in locked
    }


def setting_text(setting: Setting) -> str:
    """Format a setting on one line, as "output 500, history 2,000"."""
    return ", ".join(f"{line} {value}" for line, value in setting.items())


def sizes_of(values: Values, setting: Mapping[str, str]) -> Data:
    """Return the sizes of a setting; a policy is kept as a name."""
    return {
        line: name if line == "policy" else values[line][name] for line, name in setting.items()
    }


def settings_to_try(values: Values, trials: int, seed: int) -> tuple[list[Data], str]:
    """Return all settings of these values, or a random sample.

    Examples
    --------
    >>> lines = {"output": {500: 500, 1_000: 1_000}, "window": dict.fromkeys(range(4_000, 8_000))}
    >>> settings, search = settings_to_try(lines, trials=3, seed=0)
    >>> len(settings), search
    (3, 'drawn by the seed')
    """
    choices = [list(by_name) for by_name in values.values()]
    if prod(map(len, choices)) <= trials:
        drawn: Iterable[tuple[Any, ...]] = product(*choices)
        search = "all"
    else:
        random = Random(seed)
        once: dict[tuple[Any, ...], None] = {}  # keeps the order, and each setting once
        while len(once) < trials:
            once[tuple(random.choice(names) for names in choices)] = None
        drawn = once
        search = "drawn by the seed"
    return [dict(zip(values, setting, strict=True)) for setting in drawn], search


def values_of(vary: Mapping[str, Iterable[Any]]) -> dict[str, dict[Any, Any]]:
    """Return the values of each line by name."""
    values = {}
    for line, choices in vary.items():
        by_name = dict(choices) if isinstance(choices, Mapping) else {c: c for c in choices}
        if line == "policy":
            by_name = {name: policy_of(choice) for name, choice in by_name.items()}
        if not by_name:
            raise ValueError(f"No values for {brief(line)}. Pass at least one.")
        values[line] = by_name
    if not values:
        raise ValueError(
            "Nothing to vary. Pass lines with values, such as {'output': [500, 1_000]}."
        )
    return values


@dataclass(frozen=True)
class SearchSpace:
    """The current budget and policy, the values to try, and the minimum reserve."""

    budget: Budget
    policy: Policy
    values: Values
    floor: AnswerReserve | None = None

    def with_floor(self, traces: Sequence[Trace], count: Count, risk: float | None) -> SearchSpace:
        """Add the minimum reserve if a setting may go below it."""
        reserve = reserve_of_answers(self.budget)
        if risk is None or reserve is None or not recorded_lengths(traces, count):
            return self
        follows_window = isinstance(reserve.size, Share) and "window" in self.values
        if reserve.name not in self.values and not follows_window:
            return self
        return replace(self, floor=answer_reserve(traces, count, risk))

    def apply(self, setting: Setting) -> tuple[Budget, Policy]:
        """Return the budget and the policy of a setting."""
        lines = {line: self.values[line][name] for line, name in setting.items()}
        policy = lines.pop("policy", self.policy)
        return (self.budget.assign(**lines) if lines else self.budget), policy

    def is_present(self, setting: Setting) -> bool:
        """Return True if a setting is the current one."""
        try:
            return self.apply(setting) == (self.budget, self.policy)
        except ValueError:  # the budget refuses such sizes
            return False

    def is_short(self, setting: Setting) -> bool:
        """Return True if a setting reserves too little for answers."""
        reserve = reserve_of_answers(self.budget)
        if self.floor is None or reserve is None:
            return False
        signed = replace(self, budget=replace(self.budget, deficit="signed"))
        try:
            budget, _ = signed.apply(setting)
        except ValueError:  # it cannot be planned, whatever the answers need
            return False
        return budget.sizes[reserve.name] < self.floor.tokens

    def present(self) -> Data:
        """Return the current setting."""
        now = {line.name: line.tokens for line in self.budget}
        now |= {"window": self.budget.window}
        setting = {}
        for line, by_name in self.values.items():
            value: Any = self.policy if line == "policy" else now[line]
            otherwise = "present" if line == "policy" else value
            setting[line] = next((n for n, v in by_name.items() if v == value), otherwise)
        return setting

    def tokens(self, line: str, name: Any) -> int:
        """Return a line's value in tokens; no cap means the whole window."""
        value = self.values[line][name]
        if isinstance(value, Mapping):
            value = value.get("cap", value.get("size"))
        elif isinstance(value, Reserve):
            value = value.size
        elif isinstance(value, Allocation):
            value = value.cap
        if value is None:
            return self.budget.window
        return tokens_of(amount_of("size", value), self.budget.window)

    def size(self, setting: Setting) -> int:
        """Return the size of each line of a setting, in tokens."""
        return sum(self.tokens(line, name) for line, name in setting.items() if line != "policy")

    def notices(self, settings: Sequence[Setting], reasons: Sequence[str]) -> Iterator[str]:
        """Return a notice about settings that reserve too little for answers."""
        reserve = reserve_of_answers(self.budget)
        if self.floor is None or reserve is None:
            return
        need = f"{self.floor.tokens:,}"
        if self.is_short({}):
            now = self.budget.sizes[reserve.name]
            yield f"The present reserve of {now:,} tokens is below the {need} that answers need."
        below = sum(reason not in ("", CANNOT_BE_PLANNED) for reason in reasons)
        if below:
            yield (
                f"{below:,} of {len(settings):,} settings were left out because they reserve less than the "
                f"{need} tokens that answers need. {self.floor.sentence}"
            )

    def corner(self, best: Setting, tried: Sequence[Setting], objective: Objective) -> list[str]:
        """Warn about a setting at the edge of the tried values."""
        ends = []
        for line, name in best.items():
            names = {setting[line] for setting in tried}
            if len(names) < 2:
                continue
            if line == "policy":
                if not isinstance(self.values[line][name], OldestFirst):
                    return []
                ends.append(f"policy {name} is the simplest")
                continue
            sizes = {choice: self.tokens(line, choice) for choice in names}
            if sizes[name] == max(sizes.values()):
                ends.append(f"{line} {name} is the largest")
            elif sizes[name] == min(sizes.values()):
                ends.append(f"{line} {name} is the smallest")
            else:
                return []
        if not ends:
            return []
        why = "A better one may lie beyond; try more values."
        if objective.at_a_corner:
            why = f"It wins because the objective counts {objective.at_a_corner}"
        return [f"It is at the edge of the values tried: {', '.join(ends)}. {why}"]
