"""Sessions of Claude Code and pi, whose records name their predecessors.

Each line is a record. Claude Code writes an answer on several lines, one per block, with the results of its calls in
between. The ids of message and request identify the parts of one answer. Messages of sub-agents are in side chains or
progress records, and become separate conversations. After a rewind, the abandoned branch stays in the file: its
messages are in no later request, but its requests were billed, so their usage is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from budgetkit.message import Data, Raw, as_text
from budgetkit.requests.reading.formats import format_table, value_at, without_empty
from budgetkit.requests.reading.pairing import LocatedMessage, pair_results, raw_of
from budgetkit.requests.reading.parts import as_list, objects_in
from budgetkit.requests.reading.records import Records, read_records, unsent_notes
from budgetkit.trace.importers import COPIED, billed, notes_of, text_or_none
from budgetkit.trace.jsonl import Numbered


def ancestors(records: Sequence[Raw]) -> list[bool]:
    """Flag the records that the last message continues, and the message itself.

    A record without an id or with a missing parent follows the previous record.

    >>> def record(id, parent):
    ...     return {"uuid": id, "parentUuid": parent, "message": {"role": "user", "content": id}}
    >>> ancestors([record("a", None), record("b", "a"), record("c", "a")])
    [True, False, True]
    """
    parents = _parents(records)
    places = (place for place in reversed(range(len(records))) if _is_event(records[place]))
    is_ancestor = [False] * len(records)
    place = next(places, -1)
    while place >= 0 and not is_ancestor[place]:
        is_ancestor[place] = True
        place = parents[place]
    return is_ancestor


def _parents(records: Sequence[Raw]) -> list[int]:
    """Return the index of each record's predecessor.

    A record without a known parent follows the previous record. The first record has the index -1.
    """
    places: dict[Any, int] = {}
    for place, record in enumerate(records):
        places.setdefault(text_or_none(record.get("uuid", record.get("id"))), place)
    places.pop(None, None)
    parents = []
    summaries: dict[Any, int] = {}  # by the last record that the compaction keeps
    for place, record in enumerate(records):
        ids = map(record.get, ("parentUuid", "parentId", "logicalParentUuid"))
        candidates = (places[name] for name in map(text_or_none, ids) if name in places)
        parent = next(candidates, place - 1)
        # A record after a compaction may name the end of the kept part; such a record follows the summary.
        summary = summaries.get(parent, place)
        parents.append(parent if summary >= place else summary)
        kept = value_at(record, "compactMetadata.preservedSegment")
        anchor, tail = (
            places.get(text_or_none(value_at(kept, f"{end}Uuid"))) for end in ("anchor", "tail")
        )
        if anchor is not None:
            summaries[tail] = anchor
    return parents


_SIDE = "side chain"


@dataclass
class Entry:
    """A message of a session, joined from its records.

    An answer on lines 5, 7 and 9 is one entry: its line is 5, its message has the blocks of all three lines, and its
    usage is the largest of the three, because the first lines are written before the answer is complete.
    """

    line: int
    record: Raw
    on_branch: bool  # True for an entry on the current branch
    started: Any  # time of the newest message that the request sends
    messages: list[Data]
    usages: list[Any]

    @cached_property
    def message(self) -> Data | None:
        """The joined message of all records, without repeated calls.

        If no record has a message, this is None.
        """
        if len(self.messages) < 2:
            return self.messages[0] if self.messages else None
        joined: Data = {}
        blocks: list[Any] = []
        ids: set[Any] = set()
        for message in self.messages:
            joined |= message
            content = message.get("content")
            if text := text_or_none(content):
                content = [{"type": "text", "text": text}]
            for block in as_list(content):
                id = text_or_none(value_at(block, "id"))
                if not id or id not in ids:
                    blocks.append(block)
                    ids.add(id)
        return joined | {"content": blocks}

    def ids(self, kind: str, field: str) -> set[str]:
        """Return the ids in a field of the blocks of a given kind."""
        blocks = chain(*(objects_in(message.get("content")) for message in self.messages))
        of_kind = (block.get(field) for block in blocks if block.get("type") == kind)
        return {*filter(None, map(text_or_none, of_kind))}

    @property
    def usage(self) -> Any:
        """The usage of the record with the most output tokens.

        If several records have the most, this is the usage of the last one.
        """
        return max(reversed(self.usages), key=_answered, default=None)


def claude_conversations(lines: list[Numbered], notes: list[str]) -> Iterator[Numbered]:
    """Yield the conversations of the main agent and of sub-agents.

    Each conversation comes with the number of its first line.
    """
    main = []
    agents: dict[str, list[Numbered]] = {}
    beginning: Raw = {}
    for line, record in _once(lines):
        agent, event = _speaker(record)
        if agent is not None and _is_event(event):
            agents.setdefault(agent, []).append((line, event))
            continue
        main.append((line, record))
        if not beginning and value_at(record, "type") == "session":
            beginning = record

    lines.clear()  # frees each record once its message is built

    # The session's name is in a separate record (pi), or in every event (Claude Code).
    first = next(((line, record) for line, record in main if _is_event(record)), None)
    events = [record for agent_lines in agents.values() for _, record in agent_lines]
    if first:
        events.insert(0, first[1])
    ids = (record.get("sessionId", record.get("id")) for record in (beginning, *events))
    name = next(filter(None, map(text_or_none, ids)), None)
    if first:
        yield first[0], _conversation(main, name, [*notes])
    for agent, records in agents.items():
        line = records[0][0]
        title = agent if agent == _SIDE else f"agent {agent}"
        side = _conversation(records, f"{name} {title}" if name else None, [], side_chain=True)
        yield line, side


def _once(lines: list[Numbered]) -> Iterator[Numbered]:
    """Yield the records, except those that a branch repeats."""
    known: dict[str, Raw] = {}
    for line, written in lines:
        record = _with_message(written)
        first: Any = record
        if _is_event(record) and isinstance(uuid := record.get("uuid"), str):
            first = known.setdefault(uuid, record)
        if first is record or first["message"] != record["message"]:
            yield line, record


def _with_message(record: Any) -> Any:
    """Add a message to an attachment or a command output.

    Any other record, and one without content, is returned unchanged.
    """
    attachment = value_at(record, "attachment")
    if isinstance(attachment, Mapping):
        kind = str(attachment.get("type"))
        paths = format_table("attachments")
        path = paths.get(f"{kind} {attachment.get('hookEvent')}", paths.get(kind))
        content = value_at(attachment, path) if path else None
        is_typed = kind == "queued_command" and attachment.get("commandMode", "prompt") == "prompt"
    elif value_at(record, "subtype") == "local_command":
        content = record.get("content")
        is_typed = False
    else:
        return record
    if isinstance(content, list) and not all(
        isinstance(part, Mapping) and "type" in part for part in content
    ):
        content = "\n".join(map(as_text, content))
    if not content or not isinstance(content, str | list) or _is_event(record):
        return record
    return {**record, "message": {"role": "user" if is_typed else "system", "content": content}}


def _speaker(record: Any) -> tuple[str | None, Any]:
    """Return a record's sub-agent (None for the main agent) and its event."""
    if not isinstance(record, Mapping):
        return None, record
    data: Any = record.get("data")
    if record.get("type") == "progress" and value_at(data, "type") == "agent_progress":
        return str(data.get("agentId") or _SIDE), data.get("message")
    called_by = record.get("parent_tool_use_id")  # in a stream
    if record.get("isSidechain") is True or isinstance(called_by, str):
        return str(record.get("agentId") or called_by or _SIDE), record
    return None, record


def _is_event(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("message"), Mapping)


def _conversation(
    lines: list[Numbered], name: Any, notes: list[str], side_chain: bool = False
) -> Data:
    """Convert the records of one conversation to messages, usage and compactions."""
    read = Records()
    usage: list[Data] = []
    compactions: list[Data] = []
    places: dict[Any, int] = {}  # index of each record's message, by the record's ids and line
    boundary: Raw = {}  # Claude Code's measurements before the next summary
    settings: list[Data] = []  # changes of the thinking settings, before the next answer
    level: Any = None
    level_before: Any = None
    left_messages = left_requests = unsent = copied = 0
    summed = 0  # requests before the newest result of a run
    entries = deque(_entries(lines))
    numbers = [line for line, _ in lines]
    lines.clear()
    while entries:
        entry = entries.popleft()
        record = entry.record
        start = len(read.messages)
        if record.get("type") == "result":
            _apply_result(usage, summed, billed(record.get("usage"), None, None))
            summed = len(usage)
        ids = (record.get("id"), record.get("uuid"))
        places |= dict.fromkeys(filter(text_or_none, ids), start) | {entry.line: start}
        boundary = value_at(record, "compactMetadata") or boundary
        if record.get("type") == "thinking_level_change":
            level = record.get("thinkingLevel")

        is_copied = isinstance(record.get("forkedFrom"), Mapping)
        copied += entry.usage is not None and is_copied
        # Nothing was billed for a copied record.
        counted = None if is_copied else _usage(entry, side_chain)
        # An abandoned branch is in no later request, but its cost is kept.
        if not entry.on_branch:
            left_messages += entry.message is not None
            if counted:
                left_requests += 1
                usage.append(counted | {"left": True})
            continue
        if entry.message is None or not isinstance(entry.message.get("role"), str):
            continue
        is_compaction = record.get("type") == "compaction" and not side_chain
        if is_compaction or record.get("isCompactSummary") is True:
            compactions.append(_compaction(record, start, places, numbers, boundary))
            boundary = {}
        if entry.message["role"] == "assistant":
            if usage and level != level_before:
                settings.append({"at": start, "thinking": level})
            level_before = level
        messages = read_records([entry.message]).messages
        unsent += not messages
        for message in messages:
            timed = raw_of(message) | without_empty(timestamp=record.get("timestamp"))
            read.messages.append(LocatedMessage(entry.line, timed))
        if len(read.messages) > start and counted:
            usage.append(counted | {"message_index": len(read.messages) - 1})

    notes += unsent_notes(unsent)
    notes += notes_of(
        {
            "Not counted: {} message{} on abandoned branches.": left_messages,
            "Counted in the usage: {} request{} on abandoned branches.": left_requests,
            COPIED: copied,
        }
    )
    notes += pair_results(read.messages, strict=False)
    conversation = {"id": name, "messages": read.messages, "usage": usage, "format": "session"}
    return conversation | without_empty(compactions=compactions, settings=settings, warnings=notes)


def _entries(lines: list[Numbered]) -> list[Entry]:
    """Join the records of each message into one entry.

    If one record of an answer is on the current branch, the whole answer and the results of its calls are on it, too.
    """
    records = [(line, record) for line, record in lines if isinstance(record, Mapping)]
    are_ancestors = ancestors([record for _, record in records])
    entries = []
    answers: dict[Any, Entry] = {}
    sent_at: Any = None
    for (line, record), on_branch in zip(records, are_ancestors, strict=True):
        message = _message_of(record)
        messages = [message] if message else []
        usages = [message.pop("usage", record.get("usageMetadata")) for message in messages]
        id = _answer_id(record)
        if id is not None and id in answers:
            answers[id].messages += messages
            answers[id].usages += usages
            answers[id].on_branch |= on_branch
            continue
        entries.append(Entry(line, record, on_branch, sent_at, messages, usages))
        if id is not None:
            answers[id] = entries[-1]
        if message is not None and message.get("role") != "assistant":
            sent_at = record.get("timestamp")
    calls = {id for entry in entries if entry.on_branch for id in entry.ids("tool_use", "id")}
    for entry in entries:
        entry.on_branch |= not calls.isdisjoint(entry.ids("tool_result", "tool_use_id"))
    return entries


def _answer_id(record: Raw) -> tuple[str | None, ...] | None:
    """Return the ids of an answer's message and request, or None.

    The ids identify an answer that is split over several records. Return None if the record is not an answer, or has
    neither id.
    """
    if value_at(record, "message.role") != "assistant":
        return None
    # Some proxies omit the id of the message.
    ids = text_or_none(value_at(record, "message.id")), text_or_none(record.get("requestId"))
    return ids if any(ids) else None


def _answered(usage: Any) -> int:
    tokens = value_at(usage, "output_tokens")
    return tokens if type(tokens) is int else -1


def _message_of(event: Raw) -> Data | None:
    """Return an event's message or a compaction's summary, or None."""
    if event.get("type") in ("compaction", "branch_summary", "custom_message"):
        text = event.get("summary", event.get("content"))
        return {"role": "user", "content": text} if isinstance(text, str | list) else None
    message = event.get("message")
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    # A result without an id answers the oldest call.
    about = {"tool_call_id": ""} if message.get("role") == "tool" else {}
    return {**about, **message, "content": content if isinstance(content, str | list) else None}


def _usage(entry: Entry, side_chain: bool) -> Data | None:
    """Return the usage and times of an answer's request.

    Return None if nothing was billed, as after an error.
    """
    # pi repeats the record's own id and time in a fork.
    own = text_or_none(entry.record.get("id")), text_or_none(entry.record.get("timestamp"))
    ids = next(filter(all, (_answer_id(entry.record) or ("",), own)), ())
    return billed(
        entry.usage,
        None,
        value_at(entry.message, "model") or value_at(entry.record, "model"),
        time=entry.record.get("timestamp"),
        started=entry.started,
        side_chain=side_chain,
        id=" ".join(map(str, ids)),
    )


def _apply_result(usage: list[Data], first: int, result: Data | None) -> None:
    """Correct the usage of a streamed run with its result.

    For a single request, the result replaces the usage. For several requests, the result has the total length of their
    answers, and the missing tokens are added to the last answer.
    """
    rows = usage[first:]
    if not rows or result is None:
        return
    if len(rows) == 1:
        rows[0] |= {name: count for name, count in result.items() if name.endswith("_tokens")}
        return
    lacking = result["output_tokens"] - sum(row["output_tokens"] for row in rows)
    rows[-1]["output_tokens"] += max(0, lacking)


def _compaction(
    record: Raw, start: int, places: Mapping[Any, int], numbers: list[int], boundary: Raw
) -> Data:
    """Return a compaction's position, kept messages and previous prompt size."""
    entry: str | int | None = text_or_none(record.get("firstKeptEntryId"))
    number = record.get("firstKeptEntryIndex")
    if isinstance(number, int):
        entry = numbers[min(max(number, 0), len(numbers) - 1)]
    uuids = value_at(boundary, "preservedMessages.uuids.*") or []
    kept_slots = [places[uuid] for uuid in map(text_or_none, uuids) if uuid in places]
    head, tail = (
        places.get(text_or_none(value_at(boundary, f"preservedSegment.{end}Uuid")))
        for end in ("head", "tail")
    )
    if not uuids and head is not None and tail is not None:
        kept_slots = [*range(head, tail + 1)]
    before = value_at(boundary, "preTokens") or record.get("tokensBefore")
    measured = without_empty(
        before_tokens=before if type(before) is int else 0, trigger=value_at(boundary, "trigger")
    )
    first_kept = places.get(entry, start)
    return {"at": start, "first_kept": first_kept} | without_empty(kept=kept_slots) | measured
