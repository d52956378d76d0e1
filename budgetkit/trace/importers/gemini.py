"""Gemini: contents made of parts, the model's role called "model", function calls without an id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]


def matches(value: Raw) -> bool:
    """Say whether a value is a request to Gemini."""
    return isinstance(value.get("contents"), list) and "messages" not in value


def conversation(value: Raw) -> dict[str, Any]:
    """Read a request's body.

    Examples
    --------
    >>> call = {"functionCall": {"name": "weather", "args": {}}}
    >>> answer = {"functionResponse": {"name": "weather", "response": {"sky": "blue"}}}
    >>> contents = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]
    >>> [(m["role"], m.get("tool_call_id")) for m in conversation({"contents": contents})["messages"]]
    [('assistant', None), ('tool', 'weather-1')]
    """
    system = _either(value, "systemInstruction", "system_instruction")
    messages = [] if system is None else [_said("system", _parts(system), system)]
    waiting: dict[str, list[str]] = {}
    for content in value["contents"]:
        messages += _messages(content if isinstance(content, Mapping) else {"parts": [{"text": str(content)}]}, waiting)
    own = ("contents", "systemInstruction", "system_instruction", "tools")
    rest = {name: field for name, field in value.items() if name not in own}
    return {**rest, "messages": messages, "tools": _tools(value.get("tools")), "format": "gemini"}


def answered(candidates: Any) -> list[dict[str, Any]]:
    """Read an answer."""
    content = candidates[0].get("content") if candidates and isinstance(candidates[0], Mapping) else None
    return _messages({"role": "model", **content}, {}) if isinstance(content, Mapping) else []


def _messages(content: Raw, waiting: dict[str, list[str]]) -> list[dict[str, Any]]:
    parts = _parts(content)
    results = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), Mapping)]
    found = [_result(result, waiting) for result in results]
    calls = [_call(part["functionCall"], waiting) for part in parts if isinstance(part.get("functionCall"), Mapping)]
    rest = [part for part in parts if "functionCall" not in part and "functionResponse" not in part]
    if rest or calls or not found:
        role = "assistant" if content.get("role") == "model" else "user"
        said = _said(role, rest, content)
        found.append({**said, "tool_calls": calls} if calls else said)
    found[-1]["native"] = content
    return found


def _said(role: str, parts: list[Raw], native: Any) -> dict[str, Any]:
    thoughts = [str(part["text"]) for part in parts if part.get("thought") and "text" in part]
    kept = [_part(part) for part in parts if not part.get("thought")]
    only_text = all(set(part) == {"type", "text"} for part in kept) and len(kept) <= 1
    said = {"role": role, "content": (kept[0]["text"] if kept else None) if only_text else kept, "native": native}
    return {**said, "reasoning_content": "\n".join(thoughts)} if thoughts else said


def _part(part: Raw) -> dict[str, Any]:
    """Name what a part is: the kinds go by their fields here."""
    if "text" in part:
        return {"type": "text", **part}
    data = _either(part, "inlineData", "inline_data") or _either(part, "fileData", "file_data")
    kind = str(_either(data, "mimeType", "mime_type") or "") if isinstance(data, Mapping) else ""
    return {"type": "image" if kind.startswith("image/") else kind.partition("/")[0] or "unknown", **part}


def _call(call: Raw, waiting: dict[str, list[str]]) -> dict[str, Any]:
    name = str(call.get("name", ""))
    made = waiting.setdefault(f"{name} ever", [])
    id = str(call.get("id") or f"{name}-{len(made) + 1}")
    made.append(id)
    waiting.setdefault(name, []).append(id)
    arguments = json.dumps(call.get("args", {}), ensure_ascii=False)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(result: Raw, waiting: dict[str, list[str]]) -> dict[str, Any]:
    """Give a result the id of the oldest call of its name that has none yet."""
    name = str(result.get("name", ""))
    calls = waiting.get(name, [])
    id = str(result.get("id") or (calls[0] if calls else f"{name}-1"))
    if id in calls:
        calls.remove(id)
    text = json.dumps(result.get("response"), ensure_ascii=False)
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


def _parts(content: Any) -> list[Raw]:
    parts = content.get("parts") if isinstance(content, Mapping) else content
    listed = parts if isinstance(parts, list) else [parts]
    return [part if isinstance(part, Mapping) else {"text": str(part)} for part in listed if part is not None]


def _tools(tools: Any) -> list[Any]:
    """List the functions that tools declare; tools of another kind stay as they are."""
    found: list[Any] = []
    for tool in tools if isinstance(tools, list) else []:
        declared = _either(tool, "functionDeclarations", "function_declarations") if isinstance(tool, Mapping) else None
        found += declared if isinstance(declared, list) else [tool]
    return found


def _either(value: Raw, *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)
