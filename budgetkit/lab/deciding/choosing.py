"""Choosing: which settings may be chosen, which of them is the best, and what must be said beside it.

The present setting is a candidate. Of settings that come to the same it stays, and of others the larger is taken. A
reserve for the answer that recorded answers do not keep to is no candidate, nor is what cannot be planned for every
conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from budgetkit.budget import Allocation, Budget, Reserve, Share
from budgetkit.budget.amounts import amount_of, tokens_of
from budgetkit.budget.quoting import quoted
from budgetkit.lab.deciding.answers import (
    AnswerReserve,
    answer_reserve,
    recorded_lengths,
    reserve_of_answers,
)
from budgetkit.lab.deciding.gain import Floats
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.trace import Trace

Setting = Mapping[str, Any]
Values = Mapping[str, Mapping[Any, Any]]
CANNOT_BE_PLANNED: Final = "cannot be planned for every conversation"
#: Objectives whose means differ by less come to the same.
TIE: Final = 1e-9


def with_setting(
    budget: Budget, setting: Setting, policy: Policy, values: Values
) -> tuple[Budget, Policy]:
    """Return the budget with a setting's lines, and the policy that it names, else the present one."""
    lines = {line: values[line][name] for line, name in setting.items() if line != "policy"}
    if "policy" in setting:
        pruned_by = values["policy"][setting["policy"]]
    else:
        pruned_by = policy
    return (budget.assign(**lines) if lines else budget), pruned_by


def answer_floor(
    budget: Budget,
    values: Values,
    traces: Sequence[Trace],
    count: Callable[[str], int],
    risk: float | None,
) -> AnswerReserve | None:
    """Return what answers need, where a setting could reserve less; None where none can, or none is recorded."""
    reserve = reserve_of_answers(budget)
    if risk is None or reserve is None:
        return None
    follows_window = isinstance(reserve.size, Share) and "window" in values
    if reserve.name not in values and not follows_window:
        return None
    if not recorded_lengths(traces, count):
        return None
    return answer_reserve(traces, count, risk)


def is_below(budget: Budget, setting: Setting, values: Values, floor: AnswerReserve | None) -> bool:
    """Say whether a setting reserves less for the answer than answers need; the present one is there to compare."""
    reserve = reserve_of_answers(budget)
    if floor is None or reserve is None or not setting:
        return False
    lines = {line: values[line][name] for line, name in setting.items() if line != "policy"}
    try:
        changed = replace(budget, deficit="signed").assign(**lines)
    except ValueError:  # it cannot be planned, whatever the answers need
        return False
    return changed.sizes[reserve.name] < floor.tokens


def why_not(
    budget: Budget, setting: Setting, values: Values, floor: AnswerReserve | None, scores: Floats
) -> str:
    """Return why a setting may not be chosen; empty where it may."""
    if floor is not None and is_below(budget, setting, values, floor):
        return f"reserves less than the {floor.tokens:,} tokens that answers need"
    if np.isnan(scores[:, 0]).any():
        return CANNOT_BE_PLANNED
    return ""


def left_out_notice(
    budget: Budget,
    settings: Sequence[Setting],
    left_out: Sequence[str],
    floor: AnswerReserve | None,
) -> Iterator[str]:
    """Say how many settings were left out for what answers need, and whether the present one is below that too."""
    reserve = reserve_of_answers(budget)
    if floor is not None and reserve is not None and _is_short(budget, floor):
        now = budget.sizes[reserve.name]
        yield f"The present reserve of {now:,} tokens is below the {floor.tokens:,} that answers need."
    below = sum(reason != "" and reason != CANNOT_BE_PLANNED for reason in left_out)
    if below and floor is not None:
        yield (
            f"{below:,} of {len(settings):,} settings were left out: they reserve less than the {floor.tokens:,} "
            f"tokens that answers need ({floor.sentence})."
        )


def chosen_row(
    budget: Budget,
    settings: Sequence[Setting],
    values: Values,
    policy: Policy,
    means: Floats,
    left_out: Sequence[str],
    brings_more: npt.NDArray[np.bool_],
    floor: AnswerReserve | None,
) -> int | None:
    """Return the row of the best setting by the means, the present one first; None where the present one stays.

    Of settings that come to the same the present one is taken, else the larger. A present reserve that is below what
    answers need does not stay.
    """
    allowed = [row for row, reason in enumerate(left_out) if not reason]
    if not allowed:
        raise ValueError(_none_allowed(settings, values, left_out))

    # The present setting stays where no other may be chosen, or none is better.
    is_short = _is_short(budget, floor)
    bounded = [row for row in allowed if not brings_more[row]]
    if not bounded and not is_short:
        return None
    bounded = bounded or allowed
    least = min(float(means[1 + row]) for row in bounded)
    near = TIE * max(1.0, abs(least))
    tied = [row for row in bounded if means[1 + row] <= least + near]
    for row in tied:
        if is_present(budget, settings[row], values, policy):
            return row
    if means[0] <= least + near and not is_short:
        return None
    return max(tied, key=lambda row: (_size(budget, settings[row], values), -row))


def _none_allowed(settings: Sequence[Setting], values: Values, left_out: Sequence[str]) -> str:
    """Say why no setting may be chosen."""
    if set(left_out) == {CANNOT_BE_PLANNED}:
        planned = CANNOT_BE_PLANNED.removeprefix("cannot ")
        return f"none of {len(settings):,} settings can {planned}; vary {quoted(values)} less"
    reasons = " or ".join(sorted({*left_out}))
    return (
        f"none of {len(settings):,} settings may be chosen: each {reasons}; vary {quoted(values)} otherwise, or give "
        "risk=None"
    )


def present_setting(budget: Budget, values: Values, policy: Policy) -> dict[str, Any]:
    """Return what the lines that vary are at present, by the names of the table where they have one."""
    lines = {line.name: line.tokens for line in budget} | {"window": budget.window}
    setting: dict[str, Any] = {}
    for line, by_name in values.items():
        now = policy if line == "policy" else lines[line]
        default = "present" if line == "policy" else now
        setting[line] = next((name for name, value in by_name.items() if value == now), default)
    return setting


def corner(best: Setting, values: Values, budget: Budget, objective: str) -> list[str]:
    """Say where a setting stands at the ends of all that was tried: then more of the same might be better still.

    Examples
    --------
    >>> budget = Budget(1_000, [], [])
    >>> corner({"window": 2_000}, {"window": {1_000: 1_000, 2_000: 2_000}}, budget, "cut")[0][:58]
    'It is a corner: window 2000 is the largest that was tried.'
    """
    ends = []
    for line, name in best.items():
        tried = values[line]
        if len(tried) < 2:
            continue
        if line == "policy":
            if not isinstance(tried[name], OldestFirst):
                return []
            ends.append(f"policy {name} is the plainest")
            continue
        sizes = {choice: _tokens(budget, value) for choice, value in tried.items()}
        if sizes[name] == max(sizes.values()):
            ends.append(f"{line} {name} is the largest that was tried")
        elif sizes[name] == min(sizes.values()):
            ends.append(f"{line} {name} is the smallest that was tried")
        else:
            return []
    if not ends:
        return []
    return [f"It is a corner: {', '.join(ends)}. {_CORNERS.get(objective, _CORNER)}"]


_CORNER = "The best may lie beyond; try more."
_CORNERS = {
    "cut": "It wins because the objective counts only what is cut: whatever leaves the history more room cuts less. "
    "What more room costs, in money and in room for the answer, is not in it.",
    "evidence": "It wins because the objective counts only what is lost: whatever leaves the history more room loses "
    "less. What more room costs, in money and in room for the answer, is not in it.",
    "cost": "It wins because the objective counts only money: whatever sends less costs less. What is lost by it is "
    "not in it.",
    "uncached": "It wins because the objective counts only what is read anew: what is never cut stays in the cache. "
    "What more room costs is not in it.",
}


def is_present(budget: Budget, setting: Setting, values: Values, policy: Policy) -> bool:
    """Say whether a setting leaves the budget and the policy as they are."""
    try:
        return with_setting(budget, setting, policy, values) == (budget, policy)
    except ValueError:  # the budget refuses such sizes
        return False


def _is_short(budget: Budget, floor: AnswerReserve | None) -> bool:
    reserve = reserve_of_answers(budget)
    return floor is not None and reserve is not None and budget.sizes[reserve.name] < floor.tokens


def _size(budget: Budget, setting: Setting, values: Values) -> int:
    """Return all lines of a setting in tokens; a line without a cap may take the whole window."""
    return sum(
        _tokens(budget, values[line][name]) for line, name in setting.items() if line != "policy"
    )


def _tokens(budget: Budget, value: Any) -> int:
    """Return an amount in tokens; no cap is the whole window."""
    if isinstance(value, Mapping):
        value = value.get("cap", value.get("size"))
    if isinstance(value, Reserve):
        value = value.size
    if isinstance(value, Allocation):
        value = value.cap
    if value is None:
        return budget.window
    amount = amount_of("size", value)
    return tokens_of(amount, budget.window)
