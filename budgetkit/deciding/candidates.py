"""Candidates: the values that a budget's lines are tried with, from the budget and from the conversations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from budgetkit.budget import Budget, Reserve
from budgetkit.budget.validation import OUTPUT
from budgetkit.deciding.models import answer_lengths
from budgetkit.plan.allocating import with_undeclared
from budgetkit.trace import Trace

NO_CAP = "no cap"
Values = dict[str, dict[str, Any]]


def candidates(
    budget: Budget, traces: Sequence[Trace], count: Callable[[str], int], risk: float, locked: Collection[str] = ()
) -> Values:
    """Return what each line is tried with, by the name that a table gives it; nothing for a line that is locked.

    The answer's reserve never falls below what all but a share `risk` of the answers need. A cap is tried at half, at
    once and at one and a half times its size, and the remainder with less than all that is left.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> found = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-4o"), risk=0.05)
    >>> {line: [*values] for line, values in found.items() if line in ("output", "history")}
    {'output': ['79', '139', '200'], 'history': ['no cap', '300', '200', '100']}
    """
    budget = with_undeclared(budget, {})
    found: Values = {}
    reserve = answer_reserve(budget)
    if reserve is not None:
        least, now = answer_lengths(traces, count, 1 - risk)[2], budget.sizes[reserve.name]
        sizes = [least, (least + now) // 2, now] if now > least else [least, 2 * least]
        found[reserve.name] = _named([size for size in sizes if size < budget.window])
    for section, cap in budget.caps.items():
        if section == budget.remainder and cap is None:
            parts = [budget.usable * quarters // 4 for quarters in (3, 2, 1)]
            found[section] = {NO_CAP: None, **_named([size for size in parts if size > 0])}
        elif cap:
            found[section] = _named([cap // 2, cap, cap * 3 // 2])
    return {line: values for line, values in found.items() if values and line not in locked}


def answer_reserve(budget: Budget) -> Reserve | None:
    """Return the reserve of the answer itself; what is thought before it is no part of a recorded answer."""
    own = [each for each in budget.reserves if each.serves == OUTPUT and each.name != "thinking"]
    return next((each for each in own if each.name == OUTPUT), own[0] if own else None)


def tokens_of(values: Values, setting: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of a table as the sizes that it stands for; a policy stays a name."""
    return {line: name if line == "policy" else values[line][name] for line, name in setting.items()}


def _named(sizes: Sequence[int]) -> dict[str, Any]:
    return {f"{size:,}": size for size in sizes}
