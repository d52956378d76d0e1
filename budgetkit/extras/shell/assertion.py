"""What the pytest fixture takes: files and names beside values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from os import PathLike, fspath
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.old_names import renamed
from budgetkit.extras.shell.gate import Checked, check
from budgetkit.extras.shell.inputs import budget_of, tools_in, tools_of
from budgetkit.extras.shell.terminal import printable
from budgetkit.trace.conversation import Trace
from budgetkit.trace.loading import load_traces

__all__ = ["checked", "printable"]


@renamed(count="counter")
def checked(
    budget: Budget | str | PathLike[str],
    *,
    window: int | None = None,
    tools: Any = (),
    traces: Iterable[Any] = (),
    model: Any = None,
    counter: Any = None,
    **rest: Any,
) -> Checked:
    """Check with files read and names looked up."""
    if isinstance(budget, str | PathLike):
        budget = budget_of(fspath(budget), window, model)
    return check(
        budget,
        window=window,
        tools=tools_of(fspath(tools)) if isinstance(tools, str | PathLike) else _listed(tools),
        traces=chain.from_iterable([each] if isinstance(each, Trace) else load_traces(each) for each in traces),
        counter=counter,
        model=model,
        **rest,
    )


def _listed(tools: Any) -> list[dict[str, Any]]:
    return tools_in(tools) if isinstance(tools, Mapping) or list(tools) else []
