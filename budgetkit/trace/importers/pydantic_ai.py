"""pydantic-ai: the messages that ``all_messages_json`` writes.

A message is a request or a response, and each of its parts says what it is: a request may hold a system text, what the
user said and what tools answered; a response a text, thoughts and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.requests.reading.parts import as_text
from budgetkit.requests.reading.paths import filled, found

Raw = Mapping[str, Any]
_CALLS = ("tool-call", "builtin-tool-call", "native-tool-call")
_RESULTS = ("tool-return", "builtin-tool-return", "native-tool-return")


def documents(value: Raw) -> list[dict[str, Any]]:
    """Return messages of pydantic-ai as messages in OpenAI's form.

    Examples
    --------
    >>> request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello world"}]}
    >>> documents({"messages": [request]})[0]["messages"][0]["content"]
    'Hello world'
    """
    messages: list[dict[str, Any]] = []
    instructions: list[str] = []
    written = value.get("lines") or value.get("messages")
    for raw in written if isinstance(written, list) else []:
        if isinstance(raw, Mapping):
            parts = raw.get("parts")
        else:
            parts = None
        if not isinstance(parts, list):
            continue
        records = [part for part in parts if isinstance(part, Mapping)]
        if raw.get("kind") == "response":
            messages += _response(raw, records)
            continue
        text = raw.get("instructions")
        if isinstance(text, str) and text and text not in instructions:
            instructions.append(text)
            if len(instructions) == 1:
                messages.append(
                    {"role": "system", "content": text, "native": {"instructions": text}}
                )
        messages += [_requested(part) for part in records]

    notes = []
    if len(instructions) > 1:
        later = len(instructions) - 1
        notes.append(
            f"instructions that took the place of the first ones, which are counted: {later:,}"
        )
    about = {name: field for name, field in value.items() if name not in ("lines", "messages")}
    models = [message["model"] for message in messages if "model" in message]
    model = models[-1] if models else None
    return [{**about, "messages": messages, **filled(model=model, warnings=notes)}]


def _requested(part: Raw) -> dict[str, Any]:
    """Return one part of a request as a message."""
    kind = part.get("part_kind")
    content = part.get("content")
    about = filled(timestamp=part.get("timestamp")) | {"native": part}
    is_answer_to_call = kind in _RESULTS or (kind == "retry-prompt" and part.get("tool_name"))
    if is_answer_to_call:
        return {**_result(part), **about}
    if kind == "system-prompt":
        return {"role": "system", "content": as_text(content), **about}
    return {"role": "user", "content": _content(content), **about}


def _response(raw: Raw, parts: list[Raw]) -> list[dict[str, Any]]:
    """Return a response as the assistant's message, and after it the results of tools that the provider runs."""
    texts: list[Any] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        kind = part.get("part_kind")
        if kind in _CALLS:
            function = {
                "name": str(part.get("tool_name") or ""),
                "arguments": as_text(part.get("args")),
            }
            calls.append(
                {
                    "id": str(part.get("tool_call_id") or ""),
                    "type": "function",
                    "function": function,
                }
            )
        elif kind in _RESULTS:
            results.append({**_result(part), "native": part})
        elif kind == "thinking":
            thoughts.append(as_text(part.get("content")))
        elif kind == "text":
            texts.append({"type": "text", "text": as_text(part.get("content"))})
        else:
            # A file, an image: what nobody can count is named.
            texts.append({**part, "type": str(kind)})
    answer = {"role": "assistant", "content": _one_text(texts)}
    extras = filled(
        tool_calls=calls, reasoning_content="\n".join(thoughts), usage=_usage(raw.get("usage"))
    )
    about = filled(timestamp=raw.get("timestamp"), model=raw.get("model_name"))
    return [{**answer, **extras, **about, "native": raw}, *results]


def _result(part: Raw) -> dict[str, Any]:
    id = str(part.get("tool_call_id") or "")
    return {
        "role": "tool",
        "tool_call_id": id,
        **filled(name=part.get("tool_name")),
        "content": as_text(part.get("content")),
    }


def _content(content: Any) -> Any:
    """Return what a user said: a text, or a list of texts, pictures and files."""
    if not isinstance(content, list):
        return as_text(content)
    parts: list[dict[str, Any]] = []
    for entry in content:
        if not isinstance(entry, Mapping):
            parts.append({"type": "text", "text": as_text(entry)})
        elif entry.get("kind") == "image-url" or str(entry.get("media_type")).startswith("image/"):
            parts.append({"type": "image_url", "image_url": {"url": str(entry.get("url") or "")}})
        else:
            parts.append({**entry, "type": str(entry.get("kind") or "file")})
    return _one_text(parts)


def _one_text(parts: list[Any]) -> Any:
    """Return a single text as a text, several parts as a list, and None for nothing."""
    if len(parts) == 1 and parts[0].get("type") == "text":
        return parts[0]["text"]
    return parts or None


def _usage(usage: Any) -> dict[str, Any]:
    """Return what was counted; pydantic-ai counts what a cache holds inside the input."""
    if not isinstance(usage, Mapping):
        return {}
    cached = {
        "cached_tokens": usage.get("cache_read_tokens"),
        "cache_creation_tokens": usage.get("cache_write_tokens"),
    }
    return {
        "prompt_tokens": found(usage, "input_tokens|request_tokens"),
        "completion_tokens": found(usage, "output_tokens|response_tokens"),
        "prompt_tokens_details": cached,
    }
