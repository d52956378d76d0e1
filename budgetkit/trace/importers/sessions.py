"""Sessions of Claude Code, pi and Codex, with one record per line.

These programs add kinds of records with every version, so the readers accept any file: records without a message are
omitted, records of unknown kinds are counted in a note, and lines that are not JSON, as left by two programs that write
at the same time, are omitted with a warning.

In all later requests, a compaction replaces earlier messages with a summary, except the messages that the compaction
keeps. The conversation still has all messages; ``compactions`` lists the index of the summary and the index of the
first message kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from budgetkit.message import Raw
from budgetkit.requests.reading.formats import format_table, value_at
from budgetkit.trace.importers import (
    UNREADABLE,
    agents,
    claude_code,
    is_damaged,
    notes_of,
    unknown_kinds,
    without_fields,
)
from budgetkit.trace.jsonl import BrokenLine, Numbered, broken_lines

#: Names of the formats whose readers are here.
SESSIONS = ("session", "codex")


def session_conversations(numbered: Iterable[Numbered], format: str) -> Iterator[Numbered]:
    """Yield the conversations of the main agent and of sub-agents.

    Each conversation comes with the number of its first line.
    """
    lines: list[Numbered] = []
    broken = []
    unreadable = 0
    dropped = format_table("marks")["dropped"]
    for line, value in numbered:
        if isinstance(value, BrokenLine):
            broken.append(line)
        elif is_damaged(value, format):
            unreadable += 1
            # The usage of a damaged answer is read.
            value = value if format != "codex" else None
        # Records that are in no prompt are dropped here; they are most of a session.
        is_record = isinstance(value, Mapping)
        lines.append((line, without_fields(value, *dropped) if is_record else None))

    notes = [broken_lines(broken)] if broken else []
    notes += notes_of({UNREADABLE: unreadable})
    kinds = Counter(_kind(value) for _, value in lines if isinstance(value, Mapping))
    marks = format_table("marks")
    known = {*marks["codex"], *marks["aside"], None}
    notes += unknown_kinds({kind: n for kind, n in kinds.items() if kind and kind not in known})
    if format == "codex":
        yield lines[0][0], agents.codex_conversation(lines, notes)
    else:
        yield from claude_code.claude_conversations(lines, notes)


def _kind(value: Raw) -> str | None:
    """Return the kind of a record, or None for a message.

    For an attachment of an unknown kind, the result starts with "attachment". Compactions of Qwen Code, which are not
    read, have the kind "chat_compression".
    """
    kind = value.get("type")
    if value.get("subtype") == "chat_compression":
        return "chat_compression"
    attached = value_at(value, "attachment.type")
    if isinstance(attached, str) and attached not in format_table("attachments"):
        return f"attachment {attached}"
    return kind if isinstance(kind, str) and not isinstance(value.get("message"), Mapping) else None
