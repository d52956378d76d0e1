"""A pytest plugin: the fixture `budget`, a gate for prompts, tools and conversations in a project's own tests.

    def test_the_prompt_fits(budget):
        budget("support.budget.yaml", prompts={"system": SYSTEM}, tools=TOOLS, traces=["chats.jsonl"], most_cut=0.1)

Nothing is imported before a test asks for it, and a project's own fixture of that name takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture
def budget() -> Callable[..., Any]:
    """Check what is sent against a budget, given as a `Budget`, a saved one's path or a preset's name.

    It takes what `budgetkit.extras.shell.gate.check` takes; a trace may be a file, and tools an MCP server's answer.
    The test fails where the gate is closed, with the plan and the mend as its message; else what was found is returned.
    """

    def closed_or(budget: Any, **sent: Any) -> Any:
        __tracebackhide__ = True
        gate = import_module("budgetkit.extras.shell.assertion")
        outcome = gate.checked(budget, **sent)
        if not outcome.passed:
            pytest.fail(gate.printable(str(outcome)), pytrace=False)
        return outcome

    return closed_or
