"""A pytest plugin with the fixture `budget`, for a project's tests.

    def test_the_prompt_fits(budget):
        budget("support.budget.yaml", prompts={"system": SYSTEM}, tools=TOOLS, traces=["chats.jsonl"], most_cut=0.1)

Modules are imported when a test uses the fixture. A project's own fixture with the same name overrides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from budgetkit.extras.shell.gate import CheckResult


@pytest.fixture
def budget() -> Callable[..., Any]:
    """Return a function that checks prompts, tools and traces against a budget.

    The function takes the arguments of `budgetkit.extras.shell.gate.check`. The budget is a `Budget`, the path of a
    saved budget, or a preset's name. Traces and tools may also be given as the paths of files. If the check fails, the
    test fails with the plan and the fix as its message; otherwise the function returns the result.
    """

    def check(budget: Any, **sent: Any) -> Any:
        __tracebackhide__ = True
        outcome = check_files(budget, **sent)
        if not outcome.passed:
            quoting = import_module("budgetkit.budget.quoting")
            pytest.fail(quoting.printable(str(outcome)), pytrace=False)
        return outcome

    return check


def check_files(budget: Any, **sent: Any) -> CheckResult:
    """Run a check whose budget, tools and traces may be files.

    The budget may also be a preset's name.
    """
    gate = import_module("budgetkit.extras.shell.gate")
    inputs = import_module("budgetkit.extras.shell.inputs")
    read_traces = import_module("budgetkit.inputs.conversations").traces_of
    if isinstance(budget, str | PathLike):
        budget = inputs.settings_at(fspath(budget))
    if isinstance(sent.get("tools"), str | PathLike):
        sent["tools"] = inputs.tools_of(fspath(sent["tools"]))
    if (traces := sent.get("traces")) is not None:
        is_one = isinstance(traces, str | PathLike) or not isinstance(traces, Iterable)
        with gate.refusing_unreadable_files():
            read = map(read_traces, [traces] if is_one else traces)
            sent["traces"] = [*chain.from_iterable(read)]
    if isinstance(budget, str):
        model = inputs.model_to_check(sent.get("model"), sent.get("traces") or ())
        budget = inputs.budget_of(budget, model, sent.get("window"))
    return gate.check(budget, **sent)  # type: ignore[no-any-return]
