"""Sessions of coding agents, an event a line: Claude Code, pi, which writes much the same, and Codex.

Claude Code writes an answer in several lines, one for each block, all of one message id; they are joined. What
its sub-agents said ("side chains") is a conversation of its own. Lines that hold no message are kept aside.

A compaction takes what was said before out of all later requests, but for what it keeps, and puts a summary there. It
stays where it stands: ``compactions`` lists the index of the summary and that of the first message kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from budgetkit.framing.paths import filled, found
from budgetkit.trace.importers.formats import table
from budgetkit.trace.importers.pairing import paired
from budgetkit.trace.importers.records import Records, read_records
from budgetkit.trace.importers.usage import usage_of
from budgetkit.trace.jsonl import LocatedMessage, Numbered, placed

Raw = Mapping[str, Any]


def matches(value: Raw) -> bool:
    """Say whether a line is an event of a session: it names an event, and has no role itself."""
    if value.get("type") in table("marks")["codex"]:
        return isinstance(value.get("payload"), Mapping)
    if "type" not in value and {"id", "timestamp", "instructions"} <= value.keys():
        return True  # the first line of Codex as it was until 2025
    other = {*table("marks")["no_event"], *(() if "uuid" in value or "subtype" in value else ("content",))}
    return value.get("type") in table("marks")["event"] and not other & value.keys()


def conversations(numbered: Iterable[Numbered]) -> Iterator[Numbered]:
    """Read a session: the main conversation, then that of its sub-agents, each with the line it starts on."""
    lines = [(line, value) for line, value in numbered]
    kinds = [value.get("type") for _, value in lines if isinstance(value, Mapping)]
    if any(kind in table("marks")["codex"] for kind in kinds) or "type" not in lines[0][1]:
        yield lines[0][0], _codex(lines)
        return
    others = [value for _, value in lines if not _is_event(value)]
    for side in (False, True):
        chain = [(line, v) for line, v in lines if not _is_event(v) or bool(v.get("isSidechain")) is side]
        first = next(((line, v) for line, v in chain if _is_event(v)), None)
        if first is not None:
            yield first[0], _conversation(chain, first[1], [] if side else others, side)


def _is_event(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("message"), Mapping)


def _conversation(lines: list[tuple[int, Any]], first: Raw, others: list[Any], side: bool) -> dict[str, Any]:
    read, compactions, preserved = Records(), list[dict[str, Any]](), list[Any]()
    places: dict[Any, int] = {}
    for line, event, said in _joined(lines):
        start = len(read.messages)
        places |= {_key(event.get("id")): start, _key(event.get("uuid")): start, ("line", line): start}
        if event.get("isCompactSummary") is True or (event.get("type") == "compaction" and not side):
            kept = places.get(_key(event.get("firstKeptEntryId")), start)
            if isinstance(at := event.get("firstKeptEntryIndex"), int):
                kept = places.get(("line", lines[min(max(at, 0), len(lines) - 1)][0]), start)
            besides = [places[_key(uuid)] for uuid in preserved if _key(uuid) in places]
            compactions.append({"at": start, "first_kept": kept, **filled(kept=besides)})
        preserved = found(event, "compactMetadata.preservedMessages.uuids.*") or preserved
        if said is None:
            continue
        counted = usage_of(said.pop("usage", None), 0, said.get("model"))
        for message in read_records([said]).messages:
            read.messages.append(LocatedMessage(line, {**placed(message)[1], **_about(event)}))
        if counted and counted["context_tokens"] and len(read.messages) > start:
            read.usage.append({**counted, "message_index": len(read.messages) - 1})
    session = next((o for o in others if isinstance(o, Mapping) and o.get("type") == "session"), {})
    name = {**first, **session}.get("sessionId") or session.get("id")
    id = f"{name} side chain" if name and side else name
    said = {"id": id, "messages": read.messages, "usage": read.usage, "other_lines": others, "format": "session"}
    return said | filled(compactions=compactions, warnings=paired(read.messages, strict=True))


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _joined(lines: list[tuple[int, Any]]) -> Iterator[tuple[int, Raw, dict[str, Any] | None]]:
    """Give each event once, with all blocks of its message; an event without a message comes with None."""
    held: tuple[int, Raw, dict[str, Any] | None] | None = None
    for line, event in ((line, each) for line, each in lines if isinstance(each, Mapping)):
        said = _named(event)
        id, before = (said or {}).get("id"), held[2] if held else None
        if held and said and before and id and before.get("id") == id and before.get("role") == said.get("role"):
            held = (held[0], held[1], {**before, **said, "content": [*_list(before), *_list(said)]})
            continue
        if held:
            yield held
        held = (line, event, said)
    if held:
        yield held


def _named(event: Raw) -> dict[str, Any] | None:
    """Return an event's message with its role under the usual name; a compaction's message is its summary."""
    message = event.get("message")
    if event.get("type") in ("compaction", "branch_summary", "custom_message"):
        told = event.get("summary", event.get("content"))
        return {"role": "user", "content": told} if isinstance(told, str | list) else None
    if not isinstance(message, Mapping):
        return None
    if message.get("role") == "toolResult":
        result = {"type": "tool_result", "tool_use_id": message.get("toolCallId"), "content": message.get("content")}
        return {**message, "role": "user", "content": [result | filled(is_error=bool(message.get("isError")))]}
    if message.get("role") == "bashExecution":
        return {"role": "user", "content": "\n".join(str(message.get(name) or "") for name in ("command", "output"))}
    content = message.get("content")
    return {**message, "content": content if isinstance(content, str | list) else None}


def _list(message: Raw) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": str(content)}]


def _about(event: Raw) -> dict[str, Any]:
    """Keep what an event says about its message: when, where, by whom."""
    kept = {name: each for name, each in event.items() if name != "message"}
    return {"event": kept, **({"timestamp": kept["timestamp"]} if "timestamp" in kept else {})}


def _codex(lines: list[tuple[int, Any]]) -> dict[str, Any]:
    """Read a Codex session, whose lines hold items of OpenAI Responses, the model, or what was counted."""
    read, compactions, others = Records(), [], []
    about: dict[str, Any] = {}
    for line, event in lines:
        kind = event.get("type") if isinstance(event, Mapping) else None
        payload = found(event, "payload") if kind in table("marks")["codex"] else event
        items = [payload] if kind == "response_item" or (kind not in table("marks")["codex"] and "id" in about) else []
        if kind == "compacted":
            compactions.append({"at": len(read.messages), "first_kept": len(read.messages)})
            items = found(event, "payload.replacement_history.*") or [
                {"role": "assistant", "content": found(event, "payload.message")}
            ]
        elif not items:
            others.append(event)
        if kind == "session_meta" or (kind is None and "id" not in about):
            about |= {"id": found(payload, "id"), "model": found(payload, "model")}
            text = found(payload, "base_instructions.text|instructions")
            items = [{"role": "system", "content": text}] if isinstance(text, str) and text else []
        about |= {"model": found(payload, "model")} if kind == "turn_context" else {}
        read = read_records(
            [LocatedMessage(line, each) for each in items if _is_message(each)], None, about.get("model"), read
        )
        told = usage_of(found(payload, "info.last_token_usage"), _last_answer(read.messages), about.get("model"))
        if told and told["message_index"] >= 0 and told["context_tokens"]:
            read.usage = [*(u for u in read.usage if u["message_index"] != told["message_index"]), told]
    compactions = [each for each in compactions if each["at"] < len(read.messages)]
    said = {"messages": read.messages, "usage": read.usage, "other_lines": others, "format": "codex"}
    notes = paired(read.messages, strict=False)
    return {"id": about.get("id"), **said, **filled(compactions=compactions, warnings=notes)}


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and ("role" in item or item.get("type") not in ("ghost_snapshot", None))


def _last_answer(messages: list[Any]) -> int:
    roles = [placed(each)[1].get("role") for each in messages[-20:]]
    return next((len(messages) - 1 - i for i, role in enumerate(reversed(roles)) if role == "assistant"), -1)
