"""Answers: what a provider sent back, in any shape or as a stream of events, read as the messages after the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from budgetkit.requests.reading.formats import Format, table
from budgetkit.requests.reading.parts import is_item
from budgetkit.requests.reading.paths import found, unpacked
from budgetkit.requests.reading.records import is_record, read_records

_ITEMS: Final = Format(name="", label="", items=True)
_ROOM = 12


def answered(answer: Any, sent: list[Any], row: Format) -> tuple[list[Any], Any]:
    """Return the messages of an answer, and the usage that it reports."""
    answer = assembled(_unless_text(answer))
    where = "usage|usageMetadata|usage_metadata|metadata.usage"
    if isinstance(answer, Mapping):
        counted = found(answer, where, unpack=True)
    else:
        counted = None
    read = read_records(_records(answer), row if row.of else _ITEMS).messages
    if len(read) > len(sent) and read[: len(sent)] == sent:
        read = read[len(sent) :]  # some logs keep the whole conversation as the answer
    return read, counted


def _records(answer: Any) -> list[Any]:
    """Find what an answer says, in any provider's shape, and return it as records."""
    for _ in range(_ROOM):
        answer = _unless_text(answer)
        if isinstance(answer, str):
            if not answer:
                return []
            return [{"role": "assistant", "content": answer}]
        if isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], list):
            answer = answer[0]
        if isinstance(answer, list) and any(map(_is_message, answer)):
            return [_as_said(entry) for entry in answer]
        if isinstance(answer, Mapping) and (_is_said(answer) or is_item(answer)):
            return [_as_said(answer)]
        if (
            isinstance(answer, list)
            and answer
            and all(isinstance(e, Mapping) and "type" in e for e in answer)
        ):
            return [{"role": "assistant", "content": answer}]
        inside = found(answer, table("paths")["answer"], unpack=True)
        if inside is None:
            return []
        if isinstance(inside, list) and inside and not any(map(_is_message, inside)):
            return [{"role": "assistant", "content": inside}]
        answer = inside
    return []


def _unless_text(answer: Any) -> Any:
    """Parse an answer that a log stored as JSON text; an answer that only looks like JSON stays text."""
    inside = unpacked(answer)
    if inside is answer or (isinstance(inside, list) and inside and is_record(inside[0])):
        return inside
    fields = [
        "role",
        *(
            name
            for name in table("marks")["answer"]
            if isinstance(found(inside, name), list | Mapping)
        ),
    ]
    if isinstance(inside, Mapping) and any(name in inside for name in fields):
        return inside
    return answer


def _is_message(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (
        "role" in entry or (is_record(entry) and not is_item(entry))
    )


def _is_said(answer: Mapping[str, Any]) -> bool:
    if "role" in answer:
        return bool({"content", "tool_calls", "parts"} & answer.keys())
    return is_record(answer)


def _as_said(answer: Any) -> Any:
    """Give the assistant's role to an answer that does not say who speaks."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    if (
        isinstance(answer, Mapping)
        and answer.get("role") is None
        and ("parts" in answer or "content" in answer)
    ):
        if "type" not in answer or "role" in answer:
            return {**answer, "role": "assistant"}
        return answer
    return answer


def model_of(answer: Any, model: Any) -> Any:
    """Return the model that an answer names, or the one that was asked."""
    if isinstance(answer, Mapping):
        named = found(answer, "model|modelVersion", unpack=True)
    else:
        named = None
    return named if isinstance(named, str) else model


Event = Mapping[str, Any]


def assembled(answer: Any) -> Any:
    r"""Join streamed events, given as a list or as text, into the answer they make; return anything else unchanged.

    >>> chunk = {"choices": [{"delta": {"content": "Hello"}}]}
    >>> assembled([chunk, chunk, {"choices": [], "usage": {"prompt_tokens": 9}}])
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'HelloHello'}], 'usage': {'prompt_tokens': 9}}
    """
    if isinstance(answer, str) and answer.startswith(("data:", "event:")):
        answer = [
            unpacked(line[5:].strip()) for line in answer.splitlines() if line.startswith("data:")
        ]
    if isinstance(answer, list):
        events = [event for event in answer if isinstance(event, dict)]
    else:
        events = []
    whole = next(
        (
            at
            for event in events
            if isinstance(at := event.get("response"), dict) and "output" in at
        ),
        None,
    )
    if whole is not None and events[-1].get("type") == "response.completed":
        return events[-1]["response"]
    if events and all("candidates" in event or "usageMetadata" in event for event in events):
        parts = [
            part for event in events for part in found(event, "candidates.0.content.parts.*") or []
        ]
        return {"role": "model", "parts": parts, "usage": _usage(events)}
    names = table("streams")
    if not any(found(event, names["mark"]) is not None for event in events):
        return answer
    return {"role": "assistant", "content": _blocks(events, names), "usage": _usage(events)}


def _blocks(events: Sequence[Event], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Join the pieces of each text, thought and call, in the order in which they began."""
    blocks: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events:
        calls = found(event, names["calls"])
        for piece in calls if isinstance(calls, list) else [event]:
            at = str(found(piece, names["index"]))
            if isinstance(name := found(piece, names["name"]), str):
                call = {
                    "type": "tool_call",
                    "id": found(piece, names["id"]),
                    "name": name,
                    "arguments": "",
                }
                blocks.setdefault(("arguments", at), call)
            for field, kind in (
                ("text", "text"),
                ("thinking", "thinking"),
                ("arguments", "tool_call"),
            ):
                if isinstance(text := found(piece, names[field]), str) and (
                    text or field != "thinking"
                ):
                    block = blocks.setdefault((field, at), {"type": kind, field: ""})
                    block[field] += text
    return list(blocks.values())


def _usage(events: Sequence[Event]) -> dict[str, Any]:
    """Merge the usage of several events; later values win."""
    usages = [
        at for event in events if isinstance(at := found(event, table("streams")["usage"]), dict)
    ]
    return {key: value for usage in usages for key, value in usage.items() if value is not None}
