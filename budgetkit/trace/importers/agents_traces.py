"""Traces of OpenAI's Agents SDK, as a trace processor exports them: a record for the run and for each of its spans.

A span of type ``generation`` holds a whole request and its answer, one of type ``response`` often no more than the id
of an answer that OpenAI keeps. Each request of a run repeats those before it, so a run is its last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.paths import filled, found

Raw = Mapping[str, Any]


def documents(value: Raw) -> list[dict[str, Any]]:
    """Return a document for each run, with its messages as they were sent.

    Raises
    ------
    ValueError
        If the trace names answers by their ids alone.

    Examples
    --------
    >>> data = {"type": "generation", "input": [{"role": "user", "content": "Hello world"}], "output": []}
    >>> documents({"lines": [{"object": "trace.span", "span_data": data}]})[0]["messages"][0]["content"]
    'Hello world'
    """
    records = objects_in(found(value, "lines|data|spans"))
    names = {
        record.get("id"): record.get("workflow_name")
        for record in records
        if record.get("object") == "trace"
    }
    runs: list[_Run] = []
    ids_alone = 0
    for span in records:
        data = span.get("span_data")
        if isinstance(data, Mapping):
            request = _request(data)
        else:
            request = None
        if request is None:
            ids_alone += found(data, "type") == "response"
            continue
        question, answer = request
        trace = span.get("trace_id")
        counted = _with_usage(answer, found(data, "usage|response.usage"))
        run = next(
            (run for run in reversed(runs) if run.trace == trace and run.is_repeated_in(question)),
            None,
        )
        if run is None:
            run = _Run(trace=trace, messages=[*question])
            runs.append(run)
        else:
            run.messages += question[len(run.sent) :]
        run.sent = [*question, *answer]
        run.messages += counted
        run.model = _model(data) or run.model
    if ids_alone and not runs:
        problem = (
            f"{ids_alone:,} answers of which it holds the ids and no text, since OpenAI keeps them"
        )
        raise ValueError(
            f"a trace of OpenAI's Agents SDK with {problem}; save the run's input list, or give its session"
        )

    if ids_alone:
        notes = [f"answers that OpenAI keeps, of which the trace holds only ids: {ids_alone:,}"]
    else:
        notes = []
    return [
        {
            "messages": run.messages,
            **filled(id=run.trace, title=names.get(run.trace), model=run.model, warnings=notes),
        }
        for run in runs
    ]


@dataclass
class _Run:
    """One run: its messages, and what its last request and answer were, as the next request would repeat them."""

    trace: Any
    messages: list[Any]
    sent: list[Any] = field(default_factory=list)
    model: str | None = None

    def is_repeated_in(self, question: list[Any]) -> bool:
        """Say whether a request begins with all that was said in this run."""
        return question[: len(self.sent)] == self.sent


def _request(data: Raw) -> tuple[list[Any], list[Any]] | None:
    """Return what a span sent and what came back; None where it does not hold both."""
    question = data.get("input")
    answer = data.get("output")
    if data.get("type") == "response":
        answer = found(data, "response.output")
        instructions = found(data, "response.instructions")
        if isinstance(instructions, str):
            system = [{"role": "system", "content": instructions}]
        else:
            system = []
    elif data.get("type") == "generation":
        system = []
    else:
        return None
    if isinstance(question, str):
        question = [{"role": "user", "content": question}]
    if not isinstance(question, list) or not isinstance(answer, list | None):
        return None
    return [*system, *question], answer or []


def _with_usage(answer: list[Any], usage: Any) -> list[Any]:
    """Put what was counted beside the first message of an answer."""
    if not answer or not isinstance(answer[0], Mapping) or not isinstance(usage, Mapping):
        return answer
    return [{**answer[0], "usage": usage}, *answer[1:]]


def _model(data: Any) -> str | None:
    model = found(data, "model|response.model")
    return model if isinstance(model, str) else None
