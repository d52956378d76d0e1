"""Conversations of agent frameworks, and recorded provider answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from budgetkit.message import Data, Raw, as_text
from budgetkit.requests.reading.formats import (
    Format,
    format_table,
    unpacked,
    value_at,
    without_empty,
)
from budgetkit.requests.reading.parts import as_list, content_of, is_item, objects_in
from budgetkit.requests.reading.records import is_record, read_records
from budgetkit.trace.importers import (
    ITEMS,
    UNREADABLE,
    count_damaged,
    notes_of,
    text_or_none,
    without_fields,
)


def pydantic_ai_documents(value: Raw) -> list[Data]:
    """Convert pydantic-ai messages to records whose parts have types.

    Examples
    --------
    >>> request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello world"}]}
    >>> pydantic_ai_documents({"messages": [request]})[0]["messages"][0]["content"]
    'Hello world'
    """
    messages: list[Data] = []
    instructions: dict[str, None] = {}
    model: Any = None
    records = as_list(value.get("lines") or value.get("messages"))
    for raw in objects_in(records):
        parts = objects_in(raw.get("parts"))
        if raw.get("kind") == "response":
            model = raw.get("model_name") or model
            about = {"usage": raw.get("usage"), "model": raw.get("model_name")}
            messages.append(_record("assistant", parts, raw) | without_empty(**about))
            continue
        if text := text_or_none(raw.get("instructions")):
            if not instructions:
                messages.append(_record("system", [text], {"instructions": text}))
            instructions[text] = None
        for part in parts:
            role = "system" if part.get("part_kind") == "system-prompt" else "user"
            content = part.get("content")
            if part.get("tool_name"):
                content = [part]
            messages.append(
                _record(role, content if isinstance(content, list) else [content], part)
            )

    later = "Not counted: {} later version{} of the instructions."
    unreadable = count_damaged(records, "pydantic-ai")
    notes = notes_of({later: max(0, len(instructions) - 1), UNREADABLE: unreadable})
    about = without_fields(value, "lines", "messages")
    return [{**about, "messages": messages, **without_empty(model=model, warnings=notes)}]


def _record(role: str, parts: list[Any], native: Raw) -> Data:
    """Return a record whose parts have types."""
    about = without_empty(timestamp=native.get("timestamp"))
    return {"role": role, "content": content_of([*map(_typed, parts)]), **about, "native": native}


def _typed(part: Any) -> Data:
    """Return a part with its type, as named in ``data/formats.toml``."""
    if not isinstance(part, Mapping):
        return {"type": "text", "text": as_text(part)}
    kind = str(part.get("part_kind") or part.get("kind"))
    if kind == "text":
        return {"type": "text", "text": as_text(part.get("content"))}
    more = {"content": as_text(part.get("content"))} if part.get("tool_name") else {}
    return {**part, "type": kind, **more}


def agents_traces_documents(value: Raw) -> list[Data]:
    """Return a document for each run in a trace of OpenAI Agents.

    A document has the messages of all requests and answers of the run.

    Raises
    ------
    ValueError
        If the trace refers to answers only by their ids.

    Examples
    --------
    >>> data = {"type": "generation", "input": [{"role": "user", "content": "Hello world"}], "output": []}
    >>> agents_traces_documents({"lines": [{"object": "trace.span", "span_data": data}]})[0]["messages"][0]["content"]
    'Hello world'
    """
    entries = as_list(value_at(value, "lines|data|spans"))
    records = objects_in(entries)
    names = {
        record.get("id"): record.get("workflow_name")
        for record in records
        if record.get("object") == "trace"
    }
    runs: list[_Run] = []
    ids_alone = 0
    for span in records:
        data = span.get("span_data")
        request = _request(data) if isinstance(data, Mapping) else None
        if request is None:
            ids_alone += value_at(data, "type") == "response"
            continue
        question, answer = request
        trace = span.get("trace_id")
        usage = value_at(data, "usage|response.usage")
        counted = [*answer]
        if isinstance(usage, Mapping) and answer and isinstance(answer[0], Mapping):
            counted[0] = {**answer[0], "usage": usage}
        # A request that starts with everything sent by a run continues it.
        of_trace = (run for run in reversed(runs) if run.trace == trace)
        run = next((run for run in of_trace if question[: len(run.sent)] == run.sent), None)
        if run is None:
            runs.append(run := _Run(trace))
        run.messages += question[len(run.sent) :] + counted
        run.sent = [*question, *answer]
        run.model = text_or_none(value_at(data, "model|response.model")) or run.model
    if ids_alone and not runs:
        raise ValueError(
            f"The trace has only the ids of its answers ({ids_alone:,}), because OpenAI stores the texts. "
            "Save the run's input list, or pass its session."
        )

    notes = notes_of(
        {
            "Not counted: {} answer{} that OpenAI stores, with only an id here.": ids_alone,
            UNREADABLE: count_damaged(entries, "openai-agents"),
        }
    )
    return [
        {"messages": run.messages}
        | without_empty(id=run.trace, title=names.get(run.trace), model=run.model, warnings=notes)
        for run in runs
    ]


@dataclass
class _Run:
    """An agent's run: its messages, and its last request with the answer.

    A request that starts with all messages in `sent` continues the run.
    """

    trace: Any
    messages: list[Any] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    model: str | None = None


def _request(data: Raw) -> tuple[list[Any], list[Any]] | None:
    """Return a span's request and answer, or None for other spans."""
    question = data.get("input")
    answer = data.get("output")
    system = []
    if data.get("type") == "response":
        answer = value_at(data, "response.output")
        instructions = value_at(data, "response.instructions")
        if isinstance(instructions, str):
            system = [{"role": "system", "content": instructions}]
    elif data.get("type") != "generation":
        return None
    if isinstance(question, str):
        question = [{"role": "user", "content": question}]
    if not isinstance(question, list) or not isinstance(answer, list | None):
        return None
    return [*system, *question], answer or []


_DEEPEST = 12


def answered(answer: Any, sent: list[Any], row: Format, notes: list[str]) -> tuple[list[Any], Any]:
    """Return the messages of an answer and its reported usage, adding notes.

    If a request asked for several answers, only the first one is read. Messages of the request
    that a log repeats in the answer are removed.
    """
    others: set[int] = set()
    answer = assembled(_unless_text(answer), others)
    notes += notes_of({"Not counted: {} other answer{} to the same request.": len(others)})
    where = "usage|usageMetadata|usage_metadata|metadata.usage"
    counted = None
    if isinstance(answer, Mapping):  # Ollama's counts are in the answer itself
        counted = value_at(answer, where, unpack=True)
        counted = counted or {key: answer[key] for key in answer if key.endswith("eval_count")}
    read = read_records(_records(answer), row if row.of else ITEMS).messages
    if len(read) > len(sent) and read[: len(sent)] == sent:
        read = read[len(sent) :]  # some logs store the whole conversation as the answer
    return read, counted


_SPEAKERS = re.compile(r"\n\n(Human|Assistant):")


def searches_in(answer: Any, model: Any) -> int:
    """Count the billed web searches in an answer.

    The answer's usage does not include searches. OpenAI bills searches but not opened pages. Gemini 3 bills each query,
    and earlier versions bill each answer with at least one query.

    >>> searches_in({"output": [{"type": "web_search_call", "action": {"type": "search"}}]}, "gpt-5")
    1
    """
    calls = objects_in(value_at(answer, "output"))
    actions = [value_at(c, "action.type") for c in calls if c.get("type") == "web_search_call"]
    queries = value_at(answer, "candidates.0.groundingMetadata.webSearchQueries") or ()
    is_by_answer = str(model).rpartition("/")[2].startswith(("gemini-1", "gemini-2"))
    return sum(kind in (None, "search") for kind in actions) + (
        min(1, len(queries)) if is_by_answer else len(queries)
    )


def _records(answer: Any) -> list[Any]:
    """Convert any provider's answer to records."""
    for _ in range(_DEEPEST):
        answer = _unless_text(answer)
        if isinstance(answer, str):
            # Anthropic's first data sets have a whole conversation in one text.
            if answer.startswith("\n\nHuman:"):
                pieces = _SPEAKERS.split(answer)[1:]
                turns = zip(pieces[::2], pieces[1::2], strict=True)
                return [{"role": role, "content": text.strip()} for role, text in turns]
            return [{"role": "assistant", "content": answer}] if answer else []
        if isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], list):
            answer = answer[0]
        if isinstance(answer, list) and any(map(_is_message, answer)):
            return [_with_role(entry) for entry in answer]
        if isinstance(answer, Mapping):
            has_text = bool({"content", "tool_calls", "parts"} & answer.keys())
            if is_item(answer) or (has_text if "role" in answer else is_record(answer)):
                return [_with_role(answer)]
        if isinstance(answer, list) and all(isinstance(step, str) for step in answer):
            answer = "\n".join(answer)
            continue
        is_list = isinstance(answer, list) and answer
        if is_list and all(value_at(entry, "type") is not None for entry in answer):
            return [{"role": "assistant", "content": answer}]
        inside = value_at(answer, format_table("paths")["answer"], unpack=True)
        if inside is None:
            return []
        if isinstance(inside, list) and inside and not any(map(_is_message, inside)):
            return [{"role": "assistant", "content": inside}]
        answer = inside
    return []


def _unless_text(answer: Any) -> Any:
    """Parse an answer that a log stored as JSON text.

    An answer that only looks like JSON stays text.
    """
    inside = unpacked(answer)
    if inside is answer or (isinstance(inside, list) and inside and is_record(inside[0])):
        return inside
    if not isinstance(inside, Mapping):
        return answer
    marks = [inside.get(name) for name in format_table("marks")["answer"]]
    is_answer = "role" in inside or any(isinstance(mark, list | Mapping) for mark in marks)
    return inside if is_answer else answer


def _is_message(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (
        "role" in entry or (is_record(entry) and not is_item(entry))
    )


def _with_role(answer: Any) -> Any:
    """Add the assistant's role to an answer without a role."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    if isinstance(answer, Mapping) and answer.get("role") is None:
        has_content = "parts" in answer or "content" in answer
        if has_content and ("type" not in answer or "role" in answer):
            return {**answer, "role": "assistant"}
    return answer


def model_of(answer: Any, model: Any) -> Any:
    """Return the model named in an answer, or the requested model."""
    where = "model|modelVersion"
    named = value_at(answer, where, unpack=True) if isinstance(answer, Mapping) else None
    return named if isinstance(named, str) else model


def _first_choice(answer: Raw, others: set[int], is_event: bool = False) -> Raw:
    """Keep only the first of several alternative answers.

    The indices of the other answers are added to a set.

    >>> _first_choice({"choices": [{"text": "Hello"}, {"text": "Hi"}]}, set())
    {'choices': [{'text': 'Hello'}]}
    """
    for name in ("choices", "candidates"):
        choices: dict[int, Any] = {}
        for place, choice in enumerate(as_list(answer.get(name))):
            index = value_at(choice, "index")
            choices.setdefault(index if type(index) is int else place, choice)
        first = 0 if is_event else min(choices, default=0)
        others.update(choices.keys() - {first})
        if choices:
            answer = {**answer, name: [choices[first]] if first in choices else []}
    # LangChain has a list of answers for each prompt.
    others.update(range(1, len(as_list(value_at(answer, "generations.0")))))
    return answer


# Lines with the fields of an event stream; some servers also send comments, which begin with a colon.
_EVENT_STREAM = re.compile(r"(?:(?:data|event|id|retry)?:[^\n]*+\s*+)++")


def assembled(answer: Any, others: set[int]) -> Any:
    r"""Join streamed events into an answer, leaving any other value unchanged.

    >>> chunk = {"choices": [{"delta": {"content": "Hello"}}]}
    >>> assembled([chunk, chunk, {"choices": [], "usage": {"prompt_tokens": 9}}], set())
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'HelloHello'}], 'usage': {'prompt_tokens': 9}}
    """
    if isinstance(answer, str) and _EVENT_STREAM.fullmatch(answer):
        lines = (line for line in answer.split("\n") if line.startswith("data:"))
        answer = objects_in([unpacked(line[5:].strip()) for line in lines]) or answer
    if isinstance(answer, Mapping):
        answer = _first_choice(answer, others)
    events = [_first_choice(event, others, is_event=True) for event in objects_in(answer)]
    for last in events[-1:]:
        if last.get("type") == "response.completed" and value_at(events, "*.response.output"):
            return last["response"]
    if events and all("candidates" in event or "usageMetadata" in event for event in events):
        parts = value_at(events, "*.candidates.0.content.parts.*") or ()
        return {"role": "model", "parts": [*chain(*parts)], "usage": _usage(events)}
    names = format_table("streams")
    if not any(value_at(event, names["mark"]) is not None for event in events):
        return answer

    # Join the pieces of each text, thought and call, in the order in which they began.
    blocks: dict[tuple[str, str], Data] = {}
    for event in events:
        calls = value_at(event, names["calls"])
        for piece in calls if isinstance(calls, list) else [event]:
            at = str(value_at(piece, names["index"]))
            if isinstance(name := value_at(piece, names["name"]), str):
                call = {"type": "tool_call", "id": value_at(piece, names["id"]), "name": name}
                blocks.setdefault(("arguments", at), call | {"arguments": ""})
            for part in ("text", "thinking", "arguments"):
                text = value_at(piece, names[part])
                if isinstance(text, str) and (text or part != "thinking"):
                    kind = "tool_call" if part == "arguments" else part
                    block = blocks.setdefault((part, at), {"type": kind, part: ""})
                    block[part] += text
    return {"role": "assistant", "content": [*blocks.values()], "usage": _usage(events)}


def _usage(events: Sequence[Raw]) -> Data:
    """Merge the usage of several events, preferring later values."""
    usages = objects_in([value_at(event, format_table("streams")["usage"]) for event in events])
    return {key: value for usage in usages for key, value in usage.items() if value is not None}
