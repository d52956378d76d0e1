"""Sessions of coding agents: Codex, Gemini CLI, Cline and OpenCode."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import Any

from budgetkit.budget import brief
from budgetkit.files import database_rows, plain_name
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import format_table, unpacked, value_at, without_empty
from budgetkit.requests.reading.pairing import LocatedMessage, pair_results, raw_of
from budgetkit.requests.reading.parts import as_list, content_of, objects_in
from budgetkit.requests.reading.records import Records, read_records
from budgetkit.requests.reading.request import as_object
from budgetkit.requests.reading.usage import seconds
from budgetkit.trace.importers import (
    COPIED,
    ITEMS,
    UNREADABLE,
    billed,
    count_damaged,
    notes_of,
    text_or_none,
    unknown_kinds,
    without_fields,
)
from budgetkit.trace.jsonl import Numbered

_PARENT = "forked_from_id|source.subagent.thread_spawn.parent_thread_id"
# In seconds; copied records have shorter gaps, and no request is answered as quickly.
_PAUSE = 1.0
_NEAR = 20  # messages searched for the answer of a request


def codex_conversation(lines: list[Numbered], notes: list[str]) -> Data:
    """Convert the records of a Codex session to a conversation.

    Requests that were copied from an earlier session are not counted.

    Examples
    --------
    >>> item = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Hello world"}}
    >>> raw_of(codex_conversation([(1, item)], [])["messages"][0])["content"]
    'Hello world'
    """
    read = Records()
    compactions: list[Data] = []
    usage: list[Data] = []
    about: Data = {}
    # the time of the newest copied record, or None
    copied_until: float | None = None
    copied = 0
    last_sums: Any = (None, None)  # of the last request, to recognise a record that repeats them
    started: Any = None  # time of the newest record that the next request sends
    for line, record in lines:
        if not isinstance(record, Mapping):
            continue
        kind = record.get("type")
        if kind not in format_table("marks")["codex"]:
            kind = None
        payload = value_at(record, "payload") if kind else record
        time = record.get("timestamp")

        if kind == "session_meta" and "id" not in about and value_at(payload, _PARENT):
            copied_until = seconds(time)
        elif copied_until is not None:
            is_copied = seconds(time) - copied_until < _PAUSE
            copied_until = max(copied_until, seconds(time)) if is_copied else None

        # The record's part of the prompt: the instructions, an item, or the items left by a compaction.
        items: list[Any] = []
        if kind == "session_meta" or (kind is None and "id" not in about):
            # Codex repeats this record whenever it resumes a session; only the first one is used.
            instructions = text_or_none(value_at(payload, "base_instructions.text|instructions"))
            if instructions and "id" not in about:
                items = [{"role": "system", "content": instructions}]
            known = {name: value_at(payload, name) for name in ("id", "model")}
            about = without_empty(**known) | about
            about.setdefault("id", None)
        elif kind == "turn_context":
            about["model"] = value_at(payload, "model")
        elif kind == "compacted":
            compactions.append({"at": len(read.messages), "first_kept": len(read.messages)})
            # The size before the compaction is that of the last request with its answer.
            if usage and (prompt := usage[-1]["context_tokens"]):
                compactions[-1]["before_tokens"] = prompt + usage[-1]["output_tokens"]
            summary = {"role": "assistant", "content": value_at(payload, "message")}
            items = value_at(payload, "replacement_history.*") or [summary]
        elif kind == "response_item" or (kind is None and "payload" not in record):
            items = [payload]
        items = [
            LocatedMessage(line, item)
            for item in objects_in(items)
            if "role" in item or item.get("type") not in ("ghost_snapshot", None)
        ]
        messages_before = len(read.messages)
        read = read_records(items, ITEMS, about.get("model"), read)
        if kind == "compacted":
            compactions[-1]["messages"] = len(read.messages) - messages_before
        added = read.messages[messages_before:]
        if added and raw_of(added[-1]).get("role") != "assistant":
            started = time

        # The usage of a request follows its answer.
        info = value_at(payload, "info")
        window = value_at(payload, "model_context_window|info.model_context_window")
        if type(window) is int:
            about["window"] = window
        if kind != "event_msg" or not isinstance(info, Mapping):
            continue
        total, latest = value_at(info, "total_token_usage"), value_at(info, "last_token_usage")
        sums = (total, latest or _growth(total, last_sums[0]))
        places = range(len(read.messages))[: -1 - _NEAR : -1]
        answers = (n for n in places if raw_of(read.messages[n]).get("role") == "assistant")
        place = next(answers, None)
        counted = billed(sums[1], place, about.get("model"), time=time, started=started)
        if counted is None or sums == last_sums:
            continue
        last_sums = sums
        if copied_until is not None:
            copied += 1
            continue
        usage.append(counted)
        started = time  # tool results are written before this record, so the next request starts at its time

    notes = [*notes, *pair_results(read.messages, strict=False)]
    notes += notes_of({COPIED: copied})
    compactions = [
        compaction for compaction in compactions if compaction["at"] < len(read.messages)
    ]
    session = {"id": about.get("id"), "messages": read.messages, "usage": usage, "format": "codex"}
    return session | without_empty(
        compactions=compactions, window=about.get("window"), warnings=notes
    )


def _growth(total: Any, before: Any) -> Data | None:
    """Return the usage of the last request from running totals.

    Return None if the totals are unchanged. If a total has decreased, the totals were reset, so they are the usage.

    >>> _growth({"input_tokens": 2_100}, {"input_tokens": 1_000})
    {'input_tokens': 1100}
    """
    if not isinstance(total, Mapping) or total == before:
        return None
    counts, counts_before = (
        {name: n for name, n in as_object(sums).items() if type(n) is int}
        for sums in (total, before)
    )
    growth = {name: n - counts_before.get(name, 0) for name, n in counts.items()}
    return growth if min(growth.values(), default=0) >= 0 else counts  # the totals were reset


_ANSWERS = ("gemini", "model")


def gemini_documents(session: Raw) -> list[Data]:
    """Convert a Gemini CLI session to the format of Gemini's API.

    Examples
    --------
    >>> session = {"sessionId": "s1", "messages": [{"type": "user", "content": "Hello world"}]}
    >>> gemini_documents(session)[0]["messages"][0]["parts"]
    [{'text': 'Hello world'}]
    """
    # A session of either file format has a header and records.
    header = without_fields(session, "messages")
    records = as_list(session.get("messages"))
    unreadable = count_damaged(records, "gemini-cli")
    if isinstance(session.get("lines"), list):
        unreadable = count_damaged(session["lines"], "gemini-cli-line")
        header = {}
        by_id: dict[str, Raw] = {}
        for line in objects_in(session["lines"]):
            if isinstance(line.get("$set"), Mapping):
                fields = line["$set"]
                header |= without_fields(fields, "messages")
                by_id |= {
                    record["id"]: record
                    for record in objects_in(fields.get("messages"))
                    if text_or_none(record.get("id"))
                }
            elif "$rewindTo" in line:
                # remove the reverted record and all after it
                names = [*by_id, line["$rewindTo"]]
                by_id = {name: by_id[name] for name in names[: names.index(line["$rewindTo"])]}
            elif text_or_none(line.get("id")) and "type" in line:
                by_id[line["id"]] = line
            else:
                header |= line
        records = list(by_id.values())
        unreadable += count_damaged(records, "gemini-cli")

    messages: list[Data] = []
    aside = 0
    model = None
    answered: set[str] = set()  # ids of calls whose results are in the same record
    for record in objects_in(records):
        if record.get("type") == "user":
            parts = _parts(record.get("content"))
            ids = (str(value_at(part, "functionResponse.id")) for part in parts)
            new = [part for part, id in zip(parts, ids, strict=True) if id not in answered]
            if new or not parts:
                messages.append({"role": "user", "parts": new, **_about(record)})
        elif record.get("type") in _ANSWERS:
            model = record.get("model") or model
            messages += _answer(record)
            results = value_at(record, "toolCalls.*.result.*.functionResponse.id") or ()
            answered.update(map(str, chain(*results)))
        elif "type" in record:
            aside += 1  # shown only to the user: info, warning, error
    notes = notes_of(
        {
            "Left out {} line{} that Gemini CLI displayed but did not send.": aside,
            UNREADABLE: unreadable,
        }
    )
    return [{**header, "messages": messages, **without_empty(model=model, warnings=notes)}]


def _answer(record: Raw) -> list[Data]:
    """Return an answer with its calls, followed by the calls' results."""
    thoughts = objects_in(record.get("thoughts"))
    calls = objects_in(record.get("toolCalls"))
    parts: list[Any] = []
    for thought in thoughts:
        texts = (thought.get("subject"), thought.get("description"))
        parts.append({"text": "\n".join(map(str, filter(None, texts))), "thought": True})
    parts += _parts(record.get("content"))
    parts += [
        {"functionCall": {name: call.get(name) for name in ("id", "name", "args")}}
        for call in calls
    ]
    usage = without_empty(usage=record.get("tokens"))
    answer = {"role": "model", "parts": parts, **_about(record), **usage}
    results = [part for call in calls for part in _parts(call.get("result"))]
    return [answer, *([{"role": "user", "parts": results}] if results else [])]


def _parts(content: Any) -> list[Any]:
    """List the parts of a message's content, which may be plain text.

    Empty texts are left out.
    """
    contents = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in contents]
    return [part for part in objects_in(parts) if part.get("text") != ""]


def _about(record: Raw) -> Data:
    """Return a message's time and model, and its original record."""
    return without_empty(
        timestamp=record.get("timestamp"), model=record.get("model"), native=record
    )


_NOTE = "Read from Cline's window. For the actual prompts, load api_conversation_history.json from the same folder."


def cline_conversation(value: Raw) -> Data:
    """Convert the messages displayed in Cline's window to a conversation.

    Examples
    --------
    >>> task = {"ts": 1, "type": "say", "say": "text", "text": "Hello world"}
    >>> numbers = '{"tokensIn": 9, "tokensOut": 3, "cacheWrites": 0, "cacheReads": 0}'
    >>> request = {"ts": 2, "type": "say", "say": "api_req_started", "text": numbers}
    >>> cline_conversation({"messages": [task, request]})["usage"][0]["context_tokens"]
    9
    """
    roles = format_table("shown_by_cline")
    shown: list[Data] = []
    usage: list[Data] = []
    for record in value["messages"]:
        raw = raw_of(record)
        text = text_or_none(value_at(raw, "text"))
        if text is None:
            continue
        kind = raw.get("say", raw.get("ask"))
        time = raw.get("ts")
        if kind == "api_req_started":
            # Cline writes cached tokens separately; Roo and Kilo, which name the protocol, include them.
            numbers = unpacked(text)
            if value_at(numbers, "apiProtocol"):
                numbers["prompt_tokens"] = numbers.get("tokensIn")
            model = value_at(raw, "modelInfo.modelId")
            counted = billed(numbers, len(shown), model, time=time, started=time)
            usage += [counted] if counted else []
        elif role := roles.get(str(kind)):
            if kind == "text" and not shown:  # the task
                role = "user"
            shown.append({"role": role, "content": text, "timestamp": time})
    for row in usage:
        if row["message_index"] == len(shown):  # the request was never answered
            row["message_index"] = None
    unreadable = count_damaged(map(raw_of, value["messages"]), "cline-ui")
    notes = [_NOTE, *notes_of({UNREADABLE: unreadable})]
    conversation = {"messages": shown, "format": "cline-ui", "warnings": notes}
    return conversation | without_empty(usage=usage)


def opencode_conversation(value: Raw) -> Data:
    """Convert an OpenCode export to a conversation.

    Examples
    --------
    >>> message = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hello world"}]}
    >>> opencode_conversation({"info": {"id": "s"}, "messages": [message]})["messages"][0]["content"]
    'Hello world'
    """
    messages: list[Data] = []
    usage: list[Data] = []
    compactions: list[Data] = []
    unknown = Counter[str]()
    unreadable = 0
    for record in value["messages"]:
        info = value_at(record, "info")
        parts = value_at(record, "parts")
        if not isinstance(parts, list) or not isinstance(value_at(info, "role"), str):
            unreadable += 1
            continue
        is_summary = info.get("summary") is True and info["role"] == "assistant"
        if is_summary:
            compactions.append({"at": len(messages), "first_kept": len(messages)})
        unreadable += count_damaged(parts, "opencode")
        start = len(messages)
        messages += _messages(info, objects_in(parts), unknown)
        place = start if len(messages) > start else None
        finished = (part for part in parts if value_at(part, "type") == "step-finish")
        # A step without a request has no usage.
        steps = [counts for part in finished if (counts := value_at(part, "tokens"))]
        if len(steps) < 2:
            steps = [info.get("tokens")]
        request = {
            "time": value_at(info, "time.completed"),
            "started": value_at(info, "time.created"),
            "is_summary": is_summary,
        }
        # A fork repeats the times of an answer, but not its id.
        times = request["started"], request["time"]
        for step, counts in enumerate(steps):
            id = f"{times} {step}" if all(times) else ""
            counted = billed(counts, place, info.get("modelID"), id=id, **request)
            if counted is not None:
                usage.append(counted)
                if is_summary:
                    compactions[-1]["before_tokens"] = counted["context_tokens"]

    notes = notes_of({UNREADABLE: unreadable}) + unknown_kinds(unknown)
    notes += pair_results(messages, strict=False)
    return {"messages": messages, "format": "opencode"} | without_empty(
        id=value_at(value, "info.id"),
        title=value_at(value, "info.title"),
        usage=usage,
        compactions=compactions,
        warnings=notes,
    )


def stored_session(source: str | PathLike[str]) -> Data | None:
    """Read an OpenCode session from its database or files.

    `source` is a session's file, or the path of a database followed by a session's id. Return None for any other path.
    """
    path = Path(expanduser(source))
    database = path.parent
    storage = database.parent.parent
    is_stored = database.suffix == ".db"
    is_file = database.parent.name == "session" and (storage / "message" / path.stem).is_dir()
    if not (is_stored or is_file):
        return None

    def records(table: str, of: str, id: str) -> list[Data]:
        if is_stored:
            query = f"SELECT id, data FROM {table} WHERE {of}_id = ? ORDER BY id"
            rows = database_rows(database, query, id)
            return [{**json.loads(data), "id": name} for name, data in rows]
        folder = storage / table / plain_name(id)
        is_inside = folder.resolve() == storage.resolve() / table / id
        files = sorted(folder.glob("*.json")) if is_inside else []
        return [
            json.loads(file.read_bytes())
            for file in files
            if file.is_file() and not file.is_symlink()
        ]

    messages = [
        {"info": info, "parts": records("part", "message", str(info["id"]))}
        for info in records("message", "session", path.stem)
    ]
    if not is_stored:
        return {"info": json.loads(path.read_bytes()), "messages": messages}
    titles = database_rows(database, "SELECT title FROM session WHERE id = ?", path.name)
    if not titles:
        session = f"{brief(path.name)} in {database.name}"
        raise ValueError(
            f"Unknown session {session}. To list all sessions, run: budgetkit sessions"
        )
    return {"info": {"id": path.name, "title": titles[0][0]}, "messages": messages}


def _messages(info: Raw, parts: list[Raw], unknown: Counter[str]) -> list[Data]:
    """Convert a record to its message and the results of its calls."""
    content: list[Data] = []
    calls: list[Data] = []
    ends: Data = {}
    for part in parts:
        kind = part.get("type")
        if kind in ("text", "reasoning"):
            if text := text_or_none(part.get("text")):
                content.append({"type": kind, "text": text})
        elif kind == "tool":
            id = part.get("callID") or part.get("id")
            output = value_at(part, "state.output|state.error")
            # A call without an output was never answered.
            if output is not None and value_at(part, "state.time.compacted"):
                output = "[Old tool result content cleared]"
            ends[str(id)] = value_at(part, "state.time.end")
            call = {"toolCallId": id, "toolName": part.get("tool"), "output": output}
            calls.append({"type": "dynamic-tool", "input": value_at(part, "state.input"), **call})
        elif kind == "file":
            is_picture = str(part.get("mime")).startswith("image/")
            content.append({**part, "type": "image" if is_picture else "file"})
        elif kind not in format_table("marks")["opencode_aside"]:
            unknown[str(kind)] += 1
    if not (content or calls):
        return []
    record = {"role": info["role"], "content": content_of([*content, *calls])}
    record |= without_empty(timestamp=value_at(info, "time.created"))
    record["native"] = {"info": info, "parts": parts}
    messages: list[Data] = read_records([record]).messages
    for message in messages:
        message |= without_empty(timestamp=ends.get(message.get("tool_call_id", "")))
    return messages
