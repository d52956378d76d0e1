"""OpenCode's export of a session: ``info`` of the session, and messages, each with an ``info`` and its ``parts``.

A tool's call and its result are one part. A compaction is a user's message with a part that says so, and behind it an
answer that is marked as a summary. Usage stands in the answer, or, where an answer took several steps, in each step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from budgetkit.requests.reading.pairing import paired
from budgetkit.requests.reading.paths import filled, found
from budgetkit.requests.reading.usage import usage_of

Raw = Mapping[str, Any]
_SILENT: Final = ("step-start", "step-finish", "snapshot", "patch", "compaction", "retry", "agent")


def conversation(value: Raw) -> dict[str, Any]:
    """Read an export.

    Examples
    --------
    >>> said = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hello world"}]}
    >>> conversation({"info": {"id": "s"}, "messages": [said]})["messages"][0]["content"]
    'Hello world'
    """
    messages: list[dict[str, Any]] = []
    usage: list[dict[str, Any]] = []
    compactions: list[dict[str, Any]] = []
    unknown: dict[str, int] = {}
    left_out = 0
    for record in value["messages"]:
        info = found(record, "info")
        parts = found(record, "parts")
        if (
            not isinstance(info, Mapping)
            or not isinstance(parts, list)
            or not isinstance(info.get("role"), str)
        ):
            left_out += 1
            continue
        is_summary = info.get("summary") is True and info["role"] == "assistant"
        if is_summary:
            compactions.append({"at": len(messages), "first_kept": len(messages)})
        start = len(messages)
        messages += _messages(info, [part for part in parts if isinstance(part, Mapping)], unknown)
        place = start if len(messages) > start else None
        steps = [
            part for part in parts if found(part, "type") == "step-finish" and found(part, "tokens")
        ]
        for counts in (
            [found(step, "tokens") for step in steps] if len(steps) > 1 else [info.get("tokens")]
        ):
            counted = _usage(counts, info, place)
            if counted is not None:
                usage.append(counted | filled(is_summary=is_summary))
                if is_summary:
                    compactions[-1]["before_tokens"] = counted["context_tokens"]

    notes = []
    if left_out:
        notes.append(f"records that hold no message are passed over: {left_out:,}")
    if unknown:
        kinds = ", ".join(f"{kind[:40]} ({number:,})" for kind, number in list(unknown.items())[:5])
        notes.append(
            f"parts of kinds that are not known here are passed over: {sum(unknown.values()):,}, {kinds}"
        )
    notes += paired(messages, strict=False)
    session = {
        "id": found(value, "info.id"),
        "title": found(value, "info.title"),
        "messages": messages,
    }
    read = filled(usage=usage, compactions=compactions, warnings=notes)
    return (
        {name: field for name, field in session.items() if field is not None}
        | {"format": "opencode"}
        | read
    )


def _messages(info: Raw, parts: list[Raw], unknown: dict[str, int]) -> list[dict[str, Any]]:
    """Make of one record the message and the results of its calls."""
    texts: list[dict[str, Any]] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        kind = part.get("type")
        text = part.get("text")
        if kind == "text" and isinstance(text, str):
            texts.append({"type": "text", "text": text})
        elif kind == "reasoning":
            thoughts += [text] if isinstance(text, str) and text else []
        elif kind == "tool":
            calls.append(_call(part))
            if (result := _result(part)) is not None:
                results.append(result)
        elif kind == "file":
            is_picture = str(part.get("mime")).startswith("image/")
            texts.append({**part, "type": "image" if is_picture else "file"})
        elif kind not in _SILENT:
            unknown[str(kind)] = unknown.get(str(kind), 0) + 1
    if not (texts or thoughts or calls):
        return []
    content: Any = texts or None
    if len(texts) == 1 and texts[0].keys() == {"type", "text"}:
        content = texts[0]["text"]
    message = {"role": info["role"], "content": content}
    message |= filled(reasoning_content="\n".join(thoughts), tool_calls=calls)
    message |= filled(timestamp=found(info, "time.created"), native={"info": info, "parts": parts})
    return [message, *results]


def _call(part: Raw) -> dict[str, Any]:
    function = {"name": str(part.get("tool") or ""), "arguments": _text(found(part, "state.input"))}
    return {
        "id": str(part.get("callID") or part.get("id") or ""),
        "type": "function",
        "function": function,
    }


def _result(part: Raw) -> dict[str, Any] | None:
    """Return what a tool answered; None where it never did."""
    output = found(part, "state.output|state.error")
    if output is None:
        return None
    if found(part, "state.time.compacted"):
        content = "[Old tool result content cleared]"
    else:
        content = _text(output)
    id = str(part.get("callID") or part.get("id") or "")
    return {"role": "tool", "tool_call_id": id, "content": content} | filled(
        timestamp=found(part, "state.time.end")
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "{}"
    return json.dumps(value, ensure_ascii=False)


def _usage(counts: Any, info: Raw, place: int | None) -> dict[str, Any] | None:
    """Read what a step billed; OpenCode writes what was read from a cache and what was thought beside the rest."""
    if not isinstance(counts, Mapping):
        return None
    read, written = (found(counts, f"cache.{name}") for name in ("read", "write"))
    names = {"input_tokens": counts.get("input"), "output_tokens": counts.get("output")}
    named = names | {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    counted = usage_of(
        {name: count for name, count in named.items() if count is not None},
        place,
        info.get("modelID"),
    )
    if counted is None or not counted["context_tokens"]:
        return None
    # Where a total is told, it says whether the thoughts are part of the answer; older files count them beside it.
    thoughts = counts.get("reasoning")
    total = counts.get("total")
    if type(thoughts) is int and total != counted["context_tokens"] + counted["output_tokens"]:
        counted["output_tokens"] += thoughts
    return counted | filled(time=found(info, "time.completed"), started=found(info, "time.created"))
