"""Conversations written as text: transcripts, Aider's history and Cursor's exports.

Speakers are marked by lines such as "User:" or headings such as "## User". A text is read in the style of its first
speaker: if that is a heading, a line "User:" below is part of a message.
"""

from __future__ import annotations

import re
from typing import Any

from budgetkit.budget import many
from budgetkit.requests.reading.formats import without_empty
from budgetkit.trace.jsonl import Numbered

_AIDER = re.compile(r"^# aider chat started at (.*)$", re.MULTILINE)
_CURSOR = re.compile(r"^_Exported on .* from Cursor.*_\s*$", re.MULTILINE)
_CURSOR_TURN = re.compile(r"^(?:---\s*\n)?\*\*(User|Cursor)\*\*[ \t]*$", re.MULTILINE)

_USERS = "user|human|you|me|customer"
_NAMES = f"{_USERS}|assistant|ai|bot|agent|chatgpt|gpt|claude|gemini|codex|(?:github )?copilot|model|system"
_SPEAKER = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]+|\*\*|__)?({_NAMES})(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|(?<=\*\*)$|(?<=__)$)[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
# A whole line; text in brackets after the name is a model or a time.
_HEADING = re.compile(
    rf"^#{{1,6}}[ \t]++(?:\*\*|__)?({_NAMES}|prompt|response)(?:\*\*|__)?"
    r"[ \t]*+(?:[(\[][^\n]*[)\]][ \t]*+)?:?(?:\*\*|__)?[ \t]*+$",
    re.MULTILINE | re.IGNORECASE,
)
# What VS Code copies of a whole chat: the name of its user, and Copilot's.
_COPILOT = re.compile(r"^GitHub Copilot: ", re.MULTILINE)
_FIRST_NAME = re.compile(r"\s*([^\s:][^:\n]{0,60}): ")
# Others assist.
_ROLES = {"system": "system"} | dict.fromkeys((*_USERS.split("|"), "prompt"), "user")


def read_transcript(text: str) -> list[Numbered] | None:
    """Read a text as conversations, or return None without speakers."""
    if (start := _AIDER.search(text)) and (not text[: start.start()].strip() or "\n#### " in text):
        return _aider(text)
    exported = _CURSOR.search(text, 0, 2_000)
    if exported is not None and _CURSOR_TURN.search(text, exported.end()) is not None:
        conversation = _split(text[exported.end() :], _CURSOR_TURN, "cursor")
        return [(1, {"title": text.splitlines()[0].strip("# "), **conversation})]
    user = _FIRST_NAME.match(text)
    if user and _COPILOT.search(text) and not _SPEAKER.match(text):
        # A chat copied from VS Code, with a user under any name.
        turn = re.compile(rf"^({re.escape(user[1])}|GitHub Copilot): ", re.MULTILINE)
        return [(1, _split(text, turn, user=user[1].lower()))]

    speaker = _SPEAKER.search(text)
    heading = _HEADING.search(text)
    if heading is not None and (speaker is None or heading.start() <= speaker.start()):
        conversation = _split(text, _HEADING)
        roles = {message["role"] for message in conversation["messages"]}
        # a page of documentation may have one heading of that name; a chat has two people
        if len(roles) > 1 or not text[: heading.start()].strip():
            return [(1, conversation)]
    if speaker is None or text[: speaker.start()].strip():
        return None
    return [(1, _split(text, _SPEAKER))]


def _split(
    text: str, turn: re.Pattern[str], format: str = "transcript", user: str = ""
) -> dict[str, Any]:
    """Split a text at its speakers; warn about text before the first one."""
    turns = list(turn.finditer(text))
    ends = [following.start() for following in turns[1:]] + [len(text)]
    messages = []
    for speaker, end in zip(turns, ends, strict=True):
        name = speaker[1].lower()
        role = "user" if name == user else _ROLES.get(name, "assistant")
        content = text[speaker.end() : end].strip().removesuffix("\n---")
        messages.append({"role": role, "content": content.strip()})
    conversation = {"messages": messages, "format": format}
    before = text[: turns[0].start()].strip(" \n-") if turns else ""
    if before:
        conversation["warnings"] = [
            f"Left out: {len(before):,} characters before the first speaker."
        ]
    return conversation


def _aider(text: str) -> list[Numbered]:
    """Read Aider's history without Aider's own output."""
    headers = [*_AIDER.finditer(text)]
    # A history that was cut begins in the middle of a session.
    starts = [(0, 0, "")] + [(header.start(), header.end(), header[1]) for header in headers]
    ends = [header.start() for header in headers] + [len(text)]
    sessions = []
    number = 1  # the line that a session begins on
    counted_to = 0
    for (start, after, title), end in zip(starts, ends, strict=True):
        number += text.count("\n", counted_to, start)
        counted_to = start
        lines = text[after:end].splitlines()

        # Lines of one speaker are put together at the end: to lengthen a text line by line takes its length each time.
        turns: list[tuple[str, list[str]]] = []
        for line in lines:
            if line.startswith(">"):
                continue
            role = "user" if line.startswith("#### ") else "assistant"
            if turns and (turns[-1][0] == role or not line.strip()):
                turns[-1][1].append(line.removeprefix("#### "))
            elif line.strip():
                turns.append((role, [line.removeprefix("#### ")]))
        messages = [{"role": role, "content": "\n".join(texts).strip()} for role, texts in turns]

        aside = sum(line.startswith(">") for line in lines)
        warnings = [f"Left out: {many(aside, 'line')} of Aider's own output."] if aside else []
        conversation = {
            "messages": messages,
            "format": "aider",
            **without_empty(id=title.strip(), warnings=warnings),
        }
        sessions.append((number, conversation))
    return [numbered for numbered in sessions if numbered[1]["messages"]] or sessions
