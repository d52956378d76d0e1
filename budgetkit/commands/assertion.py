"""What the pytest fixture takes: files and names beside values."""

from collections.abc import Iterable, Mapping
from itertools import chain
from os import PathLike, fspath
from typing import Any

from budgetkit.budget import Budget
from budgetkit.commands.gate import Checked, check
from budgetkit.commands.inputs import budget_of, tools_in, tools_of
from budgetkit.commands.terminal import printable
from budgetkit.counters import counter
from budgetkit.models import model as model_named
from budgetkit.trace.conversation import Trace
from budgetkit.trace.loading import load_traces

__all__ = ["checked", "printable"]


def checked(
    budget: Budget | str | PathLike[str],
    *,
    window: int | None = None,
    tools: Any = (),
    traces: Iterable[Any] = (),
    model: Any = None,
    count: Any = None,
    **rest: Any,
) -> Checked:
    """Check with files read and names looked up."""
    name = model if isinstance(model, str) else None
    known = model_named(model, unknown="raise") if isinstance(model, str) else model
    return check(
        budget if isinstance(budget, Budget) else budget_of(fspath(budget), window, name),
        tools=tools_of(fspath(tools)) if isinstance(tools, str | PathLike) else _listed(tools),
        traces=chain.from_iterable([each] if isinstance(each, Trace) else load_traces(each) for each in traces),
        count=counter(count or known or "o200k_base") if count is None or isinstance(count, str) else count,
        model=known,
        **rest,
    )


def _listed(tools: Any) -> list[dict[str, Any]]:
    return tools_in(tools) if isinstance(tools, Mapping) or list(tools) else []
