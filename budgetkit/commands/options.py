"""The options that several commands share: which budget, which counter, and which conversation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from warnings import warn

import click

from budgetkit.commands.inputs import budget_of, trace_of
from budgetkit.counters import counter

_OPTIONS = (
    click.option("-b", "--budget", default="chat", show_default=True, help="A saved budget, or a preset's name."),
    click.option("-w", "--window", type=int, help="Its window, in tokens; a preset's is 8,192 without a model."),
    click.option("-m", "--model", help="The model: its window for a preset, and its counter."),
    click.option("-c", "--counter", "counting", help="How to count, such as chars/4; else the model's."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)


def with_budget(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, and call it with the budget and the counter that they come to."""

    @wraps(command)
    def called(budget: str, window: int | None, model: str | None, counting: str | None, **rest: Any) -> Any:
        count = counter(counting or model or "o200k_base")
        return command(budget=budget_of(budget, window, model), count=count, model=model, **rest)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def with_conversation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options and those of a conversation, and call it with what they come to."""

    @wraps(command)
    def called(file: str, conversation: str, **rest: Any) -> Any:
        trace = trace_of(file, conversation)
        for told in trace.warnings[trace.is_silent :]:  # the first of a silent one was said on loading
            warn(told, stacklevel=1)
        return command(trace=trace, **rest)

    told = "Which of several: its number, from 1; its id or its title."
    chosen = click.option("--conversation", default="1", show_default=True, help=told)
    return click.argument("file", default="-")(with_budget(chosen(called)))
