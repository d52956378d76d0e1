"""What the pytest fixture takes: files and names beside values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from os import PathLike, fspath
from typing import Any

from budgetkit.budget import Budget
from budgetkit.extras.shell.gate import Checked, check
from budgetkit.extras.shell.inputs import budget_of, settings_at, tools_in, tools_of
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
    tools: Any = (),
    traces: Iterable[Any] = (),
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
        tools=tools_of(fspath(tools)) if isinstance(tools, str | PathLike) else _listed(tools),
        traces=chain.from_iterable(traces_of(source) for source in _sources(traces)),
        counter=counter,
        model=model,
        **rest,
    )


def _sources(traces: Any) -> Iterable[Any]:
    """List conversations and files; one alone is taken as well."""
    return [traces] if isinstance(traces, str | PathLike | Trace) else traces


def _listed(tools: Any) -> list[dict[str, Any]]:
    if isinstance(tools, Mapping) or list(tools):
        return tools_in(tools)
    return []
