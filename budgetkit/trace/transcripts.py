"""Conversations written as text: "User:" lines, Aider's chat history, exports of Cursor."""

from __future__ import annotations

import re
from typing import Any

from budgetkit.framing.paths import filled
from budgetkit.trace.jsonl import Numbered

_AIDER = re.compile(r"^# aider chat started at (.*)$", re.MULTILINE)
_CURSOR = re.compile(r"^_Exported on .* from Cursor.*_\s*$", re.MULTILINE)
_CURSOR_TURN = re.compile(r"^(?:---\s*\n+)?\*\*(User|Cursor)\*\*[ \t]*$", re.MULTILINE)
_SPEAKER = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*|__)?"
    r"(user|human|you|me|customer|assistant|ai|bot|agent|chatgpt|gpt|claude|gemini|copilot|model|system)"
    r"(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|(?<=\*\*)$|(?<=__)$)[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
_ROLES = {"system": "system"} | dict.fromkeys(("user", "human", "you", "me", "customer"), "user")  # others assist


def read(text: str, name: str) -> list[Numbered] | None:
    """Read a text as conversations; None for a text that names no speaker."""
    if _AIDER.match(text.lstrip()):
        return _aider(text)
    if (exported := _CURSOR.search(text, 0, 2_000)) is not None:
        said = _said(text[exported.end() :], _CURSOR_TURN, "cursor")
        return [(1, {"title": text.splitlines()[0].strip("# "), **said})]
    first = _SPEAKER.search(text)
    if first is None or text[: first.start()].strip():
        return None
    return [(1, _said(text, _SPEAKER, "transcript"))]


def _said(text: str, turn: re.Pattern[str], format: str) -> dict[str, Any]:
    """Split a text at its speakers; text before the first speaker is left out, and a warning says so."""
    found = list(turn.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    texts = [text[each.end() : end].strip().removesuffix("\n---") for each, end in zip(found, ends, strict=True)]
    roles = [_ROLES.get(each[1].lower(), "assistant") for each in found]
    messages = [{"role": role, "content": said.strip()} for role, said in zip(roles, texts, strict=True)]
    before = text[: found[0].start()].strip(" \n-") if found else ""
    warnings = [f"{len(before):,} characters before the first speaker are left out"] if before else []
    return {"messages": messages, "format": format, **filled(warnings=warnings)}


def _aider(text: str) -> list[Numbered]:
    """Read Aider's history: "####" is the user, ">" Aider's own output, which is left out; the rest is the model."""
    starts = [*_AIDER.finditer(text)]
    ends = [each.start() for each in starts[1:]] + [len(text)]
    found: list[Numbered] = []
    for start, end in zip(starts, ends, strict=True):
        messages: list[dict[str, str]] = []
        lines = text[start.end() : end].splitlines()
        for line in (each for each in lines if not each.startswith(">")):
            role = "user" if line.startswith("#### ") else "assistant"
            if messages and (messages[-1]["role"] == role or not line.strip()):
                messages[-1]["content"] += "\n" + line.removeprefix("#### ")
            elif line.strip():
                messages.append({"role": role, "content": line.removeprefix("#### ")})
        said = [{**message, "content": message["content"].strip()} for message in messages]
        aside = sum(line.startswith(">") for line in lines)
        told = filled(warnings=[f"{aside:,} lines of Aider's own output are left out"] if aside else [])
        number = text.count("\n", 0, start.start()) + 1
        found.append((number, {"id": start[1].strip(), "messages": said, "format": "aider", **told}))
    return [each for each in found if each[1]["messages"]] or found
