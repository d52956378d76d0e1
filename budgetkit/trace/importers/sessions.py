"""Sessions of Claude Code, pi and Codex, with one record per line.

These programs add kinds of records with every version, so the readers accept any file: records without a message are
omitted, records of unknown kinds are counted in a note, and lines that are not JSON, as left by two programs that write
at the same time, are omitted with a warning.

A compaction replaces earlier messages in all later requests, except those it keeps, with a summary. The messages stay
in place; ``compactions`` lists the index of the summary and that of the first message kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from budgetkit.message import Raw
from budgetkit.requests.reading.formats import format_table, value_at
from budgetkit.trace.importers import agents, claude_code, unknown_kinds
from budgetkit.trace.jsonl import BrokenLine, Numbered, broken_lines

#: Number of unknown records after which a file is no longer taken for a session.
LOOKED_AT = 200


def matches(value: Any) -> bool:
    """Return True for a session record, which has an event but no role.

    >>> matches({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Hello world"}})
    True
    >>> matches({"role": "user", "content": "Hello world"})
    False
    """
    if not isinstance(value, Mapping):
        return False
    if value.get("type") in format_table("marks")["codex"]:
        return isinstance(value.get("payload"), Mapping)
    if "type" not in value and {"id", "timestamp", "instructions"} <= value.keys():
        return True  # the first line of Codex as it was until 2025
    if "role" in value or not isinstance(value.get("type"), str):
        return False
    if isinstance(value.get("sessionId"), str):
        return True  # every record of Claude Code but a few names its session
    is_event = "uuid" in value or "subtype" in value
    other = {*format_table("marks")["no_event"], *(() if is_event else ("content",))}
    return value.get("type") in format_table("marks")["event"] and not other & value.keys()


def looked_at(numbered: Iterator[Numbered]) -> tuple[list[Numbered], bool]:
    """Read records until one shows whether this is a session.

    The first records may be of unknown kinds, but each has a kind and no role.

    Returns
    -------
    list of Numbered
        The records read so far.
    bool
        True if it is a session.
    """
    records = []
    for line, value in islice(numbered, LOOKED_AT):
        records.append((line, value))
        if matches(value):
            return records, True
        has_kind = isinstance(value_at(value, "type"), str) or len(records) > 1
        if not has_kind or (isinstance(value, Mapping) and "role" in value):
            break
    return records, False


def session_conversations(numbered: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield the main conversation and the sub-agents' conversations, with their first lines."""
    lines: list[Numbered] = []
    broken = []
    dropped = format_table("marks")["dropped"]
    for line, value in numbered:
        if isinstance(value, BrokenLine):
            broken.append(line)
            lines.append((line, None))
        elif isinstance(value, Mapping):
            # What no prompt holds is dropped here, since it is the larger half of a session.
            lines.append(
                (line, {name: field for name, field in value.items() if name not in dropped})
            )
        else:
            lines.append((line, value))

    notes = []
    if broken:
        notes.append(broken_lines(broken))
    kinds = Counter(_kind(value) for _, value in lines if isinstance(value, Mapping))
    marks = format_table("marks")
    known = {*marks["event"], *marks["codex"], *marks["aside"], None}
    notes += unknown_kinds({kind: n for kind, n in kinds.items() if kind and kind not in known})
    first = next((value for _, value in lines if isinstance(value, Mapping)), {})
    if any(kind in marks["codex"] for kind in kinds) or "type" not in first:
        yield lines[0][0], agents.codex_conversation(lines, notes)
    else:
        yield from claude_code.claude_conversations(lines, notes)


def _kind(value: Raw) -> str | None:
    """Return the kind of a record, or None for a message."""
    kind = value.get("type")
    attached = value_at(value, "attachment.type")
    if isinstance(attached, str) and attached not in format_table("attachments"):
        return f"attachment {attached}"
    return kind if isinstance(kind, str) and not isinstance(value.get("message"), Mapping) else None
