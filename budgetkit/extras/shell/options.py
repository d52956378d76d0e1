"""The options that several commands share: which budget, which counter, and which conversation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from warnings import warn

import click
from click.core import ParameterSource

from budgetkit.counters import basis_for, counter, nearer_sentence
from budgetkit.extras.shell.inputs import budget_of, settings_at, trace_of
from budgetkit.extras.shell.terminal import printable
from budgetkit.inputs.configuration import filled_in
from budgetkit.inputs.conversations import opening_model
from budgetkit.requests import framing_for
from budgetkit.trace.conversation import Trace
from budgetkit.trace.loading import shipped_traces
from budgetkit.trace.opening import intake

_OPTIONS = (
    click.option(
        "-b",
        "--budget",
        default="chat",
        show_default=True,
        help="A configuration, a saved budget, or a preset's name.",
    ),
    click.option(
        "-w",
        "--window",
        type=int,
        help="Its window, in tokens; a preset's is the model's when left out.",
    ),
    click.option(
        "-m",
        "--model",
        help="The model: its window and counter; else the conversation's own, else gpt-4o.",
    ),
    click.option(
        "-c", "--counter", "counting", help="How to count, such as chars/4; else the model's."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)


def with_budget(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, and call it with the budget and the counter that they come to."""

    @wraps(command)
    def called(
        budget: str, window: int | None, model: str | None, counting: str | None, **rest: Any
    ) -> Any:
        trace = rest.get("trace")
        settings = settings_at(budget)
        model, counting, own_policy = filled_in(settings, model, counting)
        if own_policy is not None and _is_left_out("policy"):
            rest["policy"] = own_policy
        opened = opening_model(model, trace)
        lines = budget_of(settings, window, model, trace)
        if counting is None:
            count = counter(opened if opened.is_known else opened.name)
        else:
            count = counter(counting)
        if basis_for(count, opened.facts) != "exact":
            sentences = filter(None, [f"Counted with {count.name}.", nearer_sentence(count)])
            click.echo(printable(" ".join(sentences)), err=True)
        if trace is not None:
            # the model's framing, whatever counter is named: as the explorers count the same conversation
            rest["framing"] = framing_for(opened)
        return command(
            budget=lines,
            count=count,
            model=model,
            window=window,
            named_options={"budget": budget, "counter": counting, "policy": own_policy},
            **rest,
        )

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def _is_left_out(option: str) -> bool:
    """Say whether an option of the command was not typed."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.DEFAULT


def with_conversation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options and those of a conversation, and call it with what they come to."""
    with_lines = with_budget(command)

    @wraps(with_lines)
    def called(file: str, conversation: str, **rest: Any) -> Any:
        trace = trace_of(file, conversation)
        if file not in shipped_traces():
            click.echo(read_line(trace), err=True)
        # The first of a silent one was said on loading.
        for explanation in trace.warnings[trace.is_silent :]:
            warn(explanation, stacklevel=1)
        return with_lines(trace=trace, **rest)

    explanation = "Which of several: its number, from 1; its id or its title."
    chosen = click.option("--conversation", default="1", show_default=True, help=explanation)
    return click.argument("file", default="-")(chosen(called))


def read_line(trace: Trace) -> str:
    """Say what was read of a file, as the strip of an explorer says it; its notes are warnings of their own.

    Examples
    --------
    >>> read_line(Trace("toy", [{"role": "user", "content": "Hello"}]))
    'Read: OpenAI chat, 1 message: 1 user'
    """
    facts = intake([trace])
    sentences = [sentence for sentence in facts.sentences if sentence not in facts.notes]
    return printable(f"Read: {'; '.join(sentences)}")
