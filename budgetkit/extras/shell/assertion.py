"""What the pytest fixture takes: files and names beside values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from os import PathLike, fspath
from typing import Any

from budgetkit.budget import Budget
from budgetkit.extras.shell.gate import Checked, check
from budgetkit.extras.shell.inputs import budget_of, settings_at, tools_of
from budgetkit.extras.shell.terminal import printable
from budgetkit.inputs.budgets import AnyBudget
from budgetkit.inputs.configuration import Configuration
from budgetkit.inputs.conversations import traces_of
from budgetkit.trace.conversation import Trace

__all__ = ["checked", "printable"]


def checked(
    budget: Budget | Configuration | str | PathLike[str],
    *,
    window: int | None = None,
    tools: Any = None,
    traces: Iterable[Any] | None = None,
    model: Any = None,
    counter: Any = None,
    **rest: Any,
) -> Checked:
    """Return the gate's report, after files are read and names looked up."""
    settings: AnyBudget = (
        budget if isinstance(budget, Budget | Configuration) else settings_at(fspath(budget))
    )
    if isinstance(settings, str):
        settings = budget_of(settings, window, model)
    return check(
        settings,
        window=window,
        tools=tools_of(fspath(tools)) if isinstance(tools, str | PathLike) else tools,
        traces=None
        if traces is None
        else chain.from_iterable(traces_of(source) for source in _sources(traces)),
        counter=counter,
        model=model,
        **rest,
    )


def _sources(traces: Any) -> Iterable[Any]:
    """List conversations and files; one alone is taken as well."""
    return [traces] if isinstance(traces, str | PathLike | Trace) else traces
