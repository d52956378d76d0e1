"""Gemini CLI: the sessions that it saves under ``chats``, one document, or one record a line.

A record of type ``gemini`` holds an answer, what the model thought, its calls together with their results, and what was
counted. In a file of lines a record that is written again replaces the earlier one of its id, and a rewind takes back a
record and all after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.paths import filled

Raw = Mapping[str, Any]
_ANSWERS = ("gemini", "model")


def documents(session: Raw) -> list[dict[str, Any]]:
    """Return a session with its messages as Gemini's API takes them.

    Examples
    --------
    >>> session = {"sessionId": "s1", "messages": [{"type": "user", "content": "Hello world"}]}
    >>> documents(session)[0]["messages"][0]["parts"]
    [{'text': 'Hello world'}]
    """
    header, records = _header_and_records(session)
    messages: list[dict[str, Any]] = []
    aside = 0
    model = None
    for record in records:
        if record.get("type") == "user":
            messages.append(
                {"role": "user", "parts": _parts(record.get("content")), **_about(record)}
            )
        elif record.get("type") in _ANSWERS:
            model = record.get("model") or model
            messages += _answer(record)
        else:
            aside += 1  # what the program told its user: info, warning, error
    if aside:
        notes = [f"lines that Gemini CLI showed and did not send are left out: {aside:,}"]
    else:
        notes = []
    return [{**header, "messages": messages, **filled(model=model, warnings=notes)}]


def _header_and_records(session: Raw) -> tuple[dict[str, Any], list[Raw]]:
    """Split a session into what is said about it and its records, in either form of file."""
    lines = session.get("lines")
    if not isinstance(lines, list):
        written = session.get("messages")
        records = written if isinstance(written, list) else []
        header = {name: value for name, value in session.items() if name != "messages"}
        return header, [record for record in records if isinstance(record, Mapping)]

    header = {}
    by_id: dict[str, Raw] = {}
    for line in lines:
        if not isinstance(line, Mapping):
            continue
        if isinstance(line.get("$set"), Mapping):
            header |= line["$set"]
        elif "$rewindTo" in line:
            by_id = _before(by_id, line["$rewindTo"])
        elif isinstance(line.get("id"), str) and "type" in line:
            by_id[line["id"]] = line
        else:
            header |= line
    return header, list(by_id.values())


def _before(by_id: Mapping[str, Raw], rewound: object) -> dict[str, Raw]:
    """Return the records before the one that was taken back."""
    stay: dict[str, Raw] = {}
    for name, record in by_id.items():
        if name == rewound:
            break
        stay[name] = record
    return stay


def _answer(record: Raw) -> list[dict[str, Any]]:
    """Return an answer with its calls, then the results of the calls."""
    thoughts = objects_in(record.get("thoughts"))
    calls = objects_in(record.get("toolCalls"))
    parts: list[Any] = [{"text": _thought(thought), "thought": True} for thought in thoughts]
    parts += _parts(record.get("content"))
    parts += [
        {"functionCall": {"id": call.get("id"), "name": call.get("name"), "args": call.get("args")}}
        for call in calls
    ]
    answer = {
        "role": "model",
        "parts": parts,
        **_about(record),
        **filled(usage=_usage(record.get("tokens"))),
    }
    results = [part for call in calls for part in _parts(call.get("result"))]
    if not results:
        return [answer]
    return [answer, {"role": "user", "parts": results}]


def _parts(content: Any) -> list[Any]:
    """List the parts of a content, which is a text, a part, or a list of both."""
    if isinstance(content, list):
        contents = content
    else:
        contents = [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in contents]
    return [part for part in parts if isinstance(part, Mapping) and part.get("text") != ""]


def _thought(thought: Raw) -> str:
    return "\n".join(str(thought[name]) for name in ("subject", "description") if thought.get(name))


def _usage(tokens: Any) -> dict[str, Any]:
    """Return what was counted under the names of Gemini's API."""
    if not isinstance(tokens, Mapping):
        return {}
    return {
        "promptTokenCount": tokens.get("input"),
        "candidatesTokenCount": tokens.get("output"),
        "thoughtsTokenCount": tokens.get("thoughts"),
        "cachedContentTokenCount": tokens.get("cached"),
    }


def _about(record: Raw) -> dict[str, Any]:
    """Return what a message made of a record carries beside its parts."""
    return filled(timestamp=record.get("timestamp"), model=record.get("model"), native=record)
