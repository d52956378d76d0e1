"""Sessions of coding agents: Codex, Gemini CLI, Cline and OpenCode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from budgetkit.requests.reading.formats import Format, filled, found, seconds, table, usage_of
from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.records import LocatedMessage, Records, paired, placed, read_records
from budgetkit.trace.jsonl import Numbered

_ITEMS: Final = Format(name="", label="", items=True)
_PARENT: Final = "forked_from_id|source.subagent.thread_spawn.parent_thread_id"
# In seconds; copied records follow one another faster, and no request is answered as fast.
_PAUSE = 1.0
_NEAR = 20  # messages in which the answer of a request is looked for


def codex_conversation(lines: list[Numbered], notes: list[str]) -> dict[str, Any]:
    """Read a session of Codex.

    Examples
    --------
    >>> item = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Hello world"}}
    >>> placed(codex_conversation([(1, item)], [])["messages"][0])[1]["content"]
    'Hello world'
    """
    read = Records()
    compactions: list[dict[str, Any]] = []
    usage: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
    # the time of the newest copied record; None where none is copied
    copied_until: float | None = None
    copied = 0
    billed: Any = None  # the sums of the last request, to know a record that only repeats them
    started: Any = None  # when the newest thing was written that the next request sends
    records = [(line, record) for line, record in lines if isinstance(record, Mapping)]
    for line, record in records:
        if record.get("type") in table("marks")["codex"]:
            kind = record.get("type")
        else:
            kind = None
        payload = found(record, "payload") if kind else record
        time = record.get("timestamp")

        if kind == "session_meta" and "id" not in about and found(payload, _PARENT):
            copied_until = seconds(time)
        elif copied_until is not None and not seconds(time) - copied_until < _PAUSE:
            copied_until = None
        elif copied_until is not None:
            copied_until = max(copied_until, seconds(time))

        # What the record holds for a prompt: the instructions, an item, or all that a compaction left.
        items: list[Any] = []
        if kind == "session_meta" or (kind is None and "id" not in about):
            # Codex repeats this record at each turn that it resumes; the first one holds.
            instructions = found(payload, "base_instructions.text|instructions")
            if isinstance(instructions, str) and instructions and "id" not in about:
                items = [{"role": "system", "content": instructions}]
            about = filled(id=found(payload, "id"), model=found(payload, "model")) | about
            about.setdefault("id", None)
        elif kind == "turn_context":
            about["model"] = found(payload, "model")
        elif kind == "compacted":
            compactions.append(
                {"at": len(read.messages), "first_kept": len(read.messages)} | _tokens_before(usage)
            )
            summary = {"role": "assistant", "content": found(payload, "message")}
            items = found(payload, "replacement_history.*") or [summary]
        elif kind in ("response_item", None):
            items = [payload]
        items = [LocatedMessage(line, item) for item in items if _is_message(item)]
        messages_before = len(read.messages)
        read = read_records(items, _ITEMS, about.get("model"), read)
        if kind == "compacted":
            compactions[-1]["messages"] = len(read.messages) - messages_before
        if (
            len(read.messages) > messages_before
            and placed(read.messages[-1])[1].get("role") != "assistant"
        ):
            started = time

        # What the request billed stands behind its answer.
        info = found(payload, "info")
        window = found(payload, "model_context_window|info.model_context_window")
        if type(window) is int:
            about["window"] = window
        if kind != "event_msg" or not isinstance(info, Mapping):
            continue
        sums = (found(info, "total_token_usage"), found(info, "last_token_usage"))
        counted = usage_of(sums[1], _last_answer(read.messages), about.get("model"))
        if counted is None or not counted["context_tokens"] or sums == billed:
            continue
        billed = sums
        if copied_until is not None:
            copied += 1
            continue
        if counted["message_index"] < 0:
            counted["message_index"] = None
        usage.append(counted | filled(time=time, started=started))
        started = time  # results are written before this record, so the next request starts with it

    notes = [*notes, *paired(read.messages, strict=False)]
    if copied:
        notes.append(
            f"Requests of the session that this one continues are not counted: {copied:,}."
        )
    compactions = [
        compaction for compaction in compactions if compaction["at"] < len(read.messages)
    ]
    session = {
        "id": about.get("id"),
        "messages": read.messages,
        "usage": usage,
        "format": "codex",
    }
    return session | filled(compactions=compactions, window=about.get("window"), warnings=notes)


def _tokens_before(usage: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how much stood in the last request before a compaction, its answer among it."""
    if not usage:
        return {}
    return {"before_tokens": usage[-1]["context_tokens"] + usage[-1]["output_tokens"]}


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and (
        "role" in item or item.get("type") not in ("ghost_snapshot", None)
    )


def _last_answer(messages: list[Any]) -> int:
    """Return the place of the newest answer near the end; -1 where there is none."""
    for place in range(len(messages) - 1, max(-1, len(messages) - 1 - _NEAR), -1):
        if placed(messages[place])[1].get("role") == "assistant":
            return place
    return -1


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
    answered: set[str] = set()  # the calls whose results stand beside them
    for record in records:
        if record.get("type") == "user":
            parts = _parts(record.get("content"))
            new = [
                part for part in parts if str(found(part, "functionResponse.id")) not in answered
            ]
            if new or not parts:
                messages.append({"role": "user", "parts": new, **_about(record)})
        elif record.get("type") in _ANSWERS:
            model = record.get("model") or model
            messages += _answer(record)
            answered.update(
                id
                for id in found(record, "toolCalls.*.result.*.functionResponse.id") or ()
                for id in id
                if isinstance(id, str)
            )
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
            header |= {name: field for name, field in line["$set"].items() if name != "messages"}
            by_id |= {
                record["id"]: record
                for record in objects_in(line["$set"].get("messages"))
                if isinstance(record.get("id"), str)
            }
        elif "$rewindTo" in line:
            # the record that was taken back leaves, and all after it
            names = [*by_id, line["$rewindTo"]]
            by_id = {name: by_id[name] for name in names[: names.index(line["$rewindTo"])]}
        elif isinstance(line.get("id"), str) and "type" in line:
            by_id[line["id"]] = line
        else:
            header |= line
    return header, list(by_id.values())


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
        **filled(usage=record.get("tokens")),
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


def _about(record: Raw) -> dict[str, Any]:
    """Return what a message made of a record carries beside its parts."""
    return filled(timestamp=record.get("timestamp"), model=record.get("model"), native=record)


_OF_USER: Final = ("task", "user_feedback", "user_feedback_diff")
_OF_MODEL: Final = (
    "text",
    "completion_result",
    "tool",
    "command",
    "reasoning",
    "plan_mode_respond",
    "followup",
)
_NOTE: Final = (
    "this is what Cline's window showed; the prompts themselves stand in "
    "api_conversation_history.json beside it"
)


def cline_conversation(messages: list[Any]) -> dict[str, Any]:
    """Read what the window shows; the first text is the task.

    Examples
    --------
    >>> task = {"ts": 1, "type": "say", "say": "text", "text": "Hello world"}
    >>> numbers = '{"tokensIn": 9, "tokensOut": 3, "cacheWrites": 0, "cacheReads": 0}'
    >>> request = {"ts": 2, "type": "say", "say": "api_req_started", "text": numbers}
    >>> cline_conversation([task, request])["usage"][0]["context_tokens"]
    9
    """
    shown: list[dict[str, Any]] = []
    usage: list[dict[str, Any]] = []
    for record in messages:
        line, raw = placed(record)
        if not isinstance(raw, Mapping):
            continue
        kind = raw.get("say", raw.get("ask"))
        text = raw.get("text")
        if not isinstance(text, str) or not text:
            continue
        if kind == "api_req_started":
            if (counted := _request_usage(raw, text, len(shown))) is not None:
                usage.append(counted | filled(time=raw.get("ts"), started=raw.get("ts")))
        elif kind in _OF_USER or (kind == "text" and not shown):
            shown.append({"role": "user", "content": text, "timestamp": raw.get("ts")})
        elif kind in _OF_MODEL:
            shown.append({"role": "assistant", "content": text, "timestamp": raw.get("ts")})
        elif kind == "command_output":
            shown.append({"role": "function", "content": text, "timestamp": raw.get("ts")})
    usage = [
        row if row["message_index"] < len(shown) else row | {"message_index": None} for row in usage
    ]
    return {"messages": shown, "format": "cline-ui", "warnings": [_NOTE]} | filled(usage=usage)


def _request_usage(raw: Mapping[str, Any], text: str, place: int) -> dict[str, Any] | None:
    """Read the numbers of one request; Cline writes what was read from a cache beside the rest."""
    try:
        numbers = json.loads(text)
    except ValueError:
        return None
    counted = usage_of(numbers, place, found(raw, "modelInfo.modelId"))
    if counted is not None and counted["context_tokens"]:
        return counted
    return None


_SILENT: Final = ("step-start", "step-finish", "snapshot", "patch", "compaction", "retry", "agent")


def opencode_conversation(value: Raw) -> dict[str, Any]:
    """Read an export.

    Examples
    --------
    >>> said = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hello world"}]}
    >>> opencode_conversation({"info": {"id": "s"}, "messages": [said]})["messages"][0]["content"]
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
            counted = _step_usage(counts, info, place)
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


def _step_usage(counts: Any, info: Raw, place: int | None) -> dict[str, Any] | None:
    """Read the usage of a step and its times; None for a step that sent nothing."""
    counted = usage_of(counts, place, info.get("modelID"))
    if counted is None or not counted["context_tokens"]:
        return None
    return counted | filled(time=found(info, "time.completed"), started=found(info, "time.created"))
