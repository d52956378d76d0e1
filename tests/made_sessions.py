"""Sessions that nobody ever held, in the shapes in which coding agents write them, from a seed.

Each request is a row of numbers, as the provider would bill it. Every shape writes these rows in its own way, with the
habits that readers stumble over: answers over several lines, records of unknown kinds, numbers that are repeated.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

_BEGIN = 1_767_225_600  # 2026-01-01, in seconds


@dataclass(frozen=True)
class Request:
    """What one request bills, in tokens, and how many calls its answer makes."""

    fresh: int
    read: int
    written: int
    for_an_hour: int
    answered: int
    calls: int
    at: int

    @property
    def time(self) -> str:
        minutes, seconds = divmod(self.at, 60)
        return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"


def requests(seed: int, number: int = 12) -> list[Request]:
    """Draw the rows of a session, whose prompt grows and is mostly read from the cache."""
    rng = random.Random(seed)
    rows: list[Request] = []
    prompt, at = rng.randrange(5_000, 20_000), 0
    for place in range(number):
        written = rng.randrange(200, 4_000)
        at += rng.randrange(5, 90)
        for_an_hour = rng.choice([0, written, written // 2])
        fresh, answered, calls = rng.randrange(1, 30), rng.randrange(10, 900), rng.randrange(0, 4)
        read = prompt if place else 0
        rows.append(Request(fresh, read, written, for_an_hour, answered, calls, at))
        prompt += written
    return rows


def _lines(records: list[Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def claude_code(rows: list[Request]) -> bytes:
    """An answer over several lines of one message, results between them; the first lines count little as answered."""
    about = {"sessionId": "made-up", "isSidechain": False}
    records: list[Any] = [
        {"type": "custom-title", "customTitle": "made up", "sessionId": "made-up"},
        {"type": "a-kind-of-2030", "payload": 7, "sessionId": "made-up"},
        {
            "type": "progress",
            "data": {"type": "hook_progress"},
            "uuid": "p0",
            "parentUuid": None,
            **about,
        },
    ]
    before = "p0"

    def add(kind: str, content: Any, time: str, **more: Any) -> None:
        nonlocal before
        uuid = f"r{len(records)}"
        message = {"role": kind, "content": content, **more.pop("message", {})}
        place = {"type": kind, "uuid": uuid, "parentUuid": before, "timestamp": time}
        records.append({**about, **place, "message": message, **more})
        before = uuid

    add("user", "Please begin.", "2026-01-01T00:00:00Z")
    for number, row in enumerate(rows):
        lives = {
            "ephemeral_1h_input_tokens": row.for_an_hour,
            "ephemeral_5m_input_tokens": row.written - row.for_an_hour,
        }
        usage = {
            "input_tokens": row.fresh,
            "cache_read_input_tokens": row.read,
            "cache_creation_input_tokens": row.written,
            "cache_creation": lives,
        }
        blocks: list[Any] = [{"type": "text", "text": f"Step {number}."}]
        blocks += [
            {"type": "tool_use", "id": f"t{number}-{n}", "name": "Read", "input": {}}
            for n in range(row.calls)
        ]
        fork = before
        for place, block in enumerate(blocks):
            answered = row.answered if place == len(blocks) - 1 else 1
            counted = usage | {"output_tokens": answered}
            message = {"id": f"m{number}", "model": "claude-opus-4-6", "usage": counted}
            before = fork if place == 0 else before
            add("assistant", [block], row.time, message=message, requestId=f"q{number}")
            fork = before
            if block["type"] == "tool_use":
                result = {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
                add("user", [result], row.time)
        if not row.calls:
            add("user", "Go on.", row.time)
    return _lines(records)


def codex(rows: list[Request]) -> bytes:
    """What was counted stands behind the results, and is repeated when only the limits have changed."""

    def record(kind: str, time: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": time, "payload": payload}

    records = [
        record(
            "session_meta",
            "2026-01-01T00:00:00Z",
            id="made-up",
            base_instructions={"text": "Be brief."},
        ),
        record("turn_context", "2026-01-01T00:00:00Z", model="gpt-5.5"),
        record(
            "response_item",
            "2026-01-01T00:00:00Z",
            type="message",
            role="user",
            content="Please begin.",
        ),
    ]
    total = 0
    for number, row in enumerate(rows):
        records.append(
            record("response_item", row.time, type="reasoning", summary=[], encrypted_content="x")
        )
        records.append(
            record("response_item", row.time, type="web_search_call", status="completed")
        )
        for place in range(row.calls):
            id = f"c{number}-{place}"
            call = {"type": "function_call", "name": "run", "arguments": "{}", "call_id": id}
            records.append(record("response_item", row.time, **call))
            records.append(
                record(
                    "response_item", row.time, type="function_call_output", call_id=id, output="ok"
                )
            )
        sent = row.fresh + row.written + row.read
        total += sent + row.answered
        last = {
            "input_tokens": sent,
            "cached_input_tokens": row.read,
            "output_tokens": row.answered,
        }
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
        records += [record("event_msg", row.time, type="token_count", info=info)] * (1 + number % 2)
        records.append(record("event_msg", row.time, type="token_count", info=None))
    return _lines(records)


def pi(rows: list[Request]) -> bytes:
    """Each record names the one before it; one line was cut by another that was written at once."""
    records: list[Any] = [
        {"type": "session", "version": 3, "id": "made-up", "timestamp": "2026-01-01T00:00:00Z"}
    ]

    def add(time: str, **message: Any) -> None:
        place = {
            "id": f"e{len(records)}",
            "parentId": records[-1]["id"] if len(records) > 1 else None,
        }
        records.append({"type": "message", **place, "timestamp": time, "message": message})

    add("2026-01-01T00:00:00Z", role="user", content="Please begin.")
    for number, row in enumerate(rows):
        calls = [
            {"type": "toolCall", "id": f"t{number}-{n}", "name": "read", "arguments": {}}
            for n in range(row.calls)
        ]
        names = ("input", "cacheRead", "cacheWrite", "output")
        usage = dict(zip(names, (row.fresh, row.read, row.written, row.answered), strict=True))
        content = [{"type": "text", "text": f"Step {number}."}, *calls]
        add(row.time, role="assistant", content=content, usage=usage, model="claude-opus-4-5")
        for call in calls:
            add(
                row.time,
                role="toolResult",
                toolCallId=call["id"],
                content=[{"type": "text", "text": "ok"}],
            )
        if not calls:
            add(row.time, role="user", content="Go on.")
    first, *rest = _lines(records).split(b"\n")
    return b"\n".join([first, b'{"type":"message","id":"e0","mess{"type":"mess', *rest])


def opencode(rows: list[Request]) -> bytes:
    """A call and its result are one part; what was thought is part of the answer where a total says so."""
    said: list[Any] = [
        {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Please begin."}]}
    ]
    for number, row in enumerate(rows):
        cache = {"read": row.read, "write": row.written}
        total = row.fresh + row.read + row.written + row.answered
        tokens = {
            "input": row.fresh,
            "output": row.answered,
            "reasoning": 9,
            "cache": cache,
            "total": total,
        }
        if number % 2:  # an older version: no total, and what was thought beside the answer
            tokens |= {"output": row.answered - 9}
            del tokens["total"]
        time = {"created": (_BEGIN + row.at) * 1000, "completed": (_BEGIN + row.at) * 1000}
        info = {"role": "assistant", "modelID": "gpt-5.3-codex", "tokens": tokens, "time": time}
        state = {"status": "completed", "input": {"path": "a"}, "output": "ok"}
        parts = [
            {"type": "tool", "tool": "read", "callID": f"c{number}-{n}", "state": state}
            for n in range(row.calls)
        ]
        text = {"type": "text", "text": f"Step {number}."}
        said.append(
            {"info": info, "parts": [{"type": "step-start"}, text, *parts, {"type": "of-2030"}]}
        )
    return json.dumps({"info": {"id": "made-up", "title": "Made up"}, "messages": said}).encode()


def cline(rows: list[Request]) -> bytes:
    """The numbers stand as text in what the window shows."""
    shown: list[Any] = [
        {"ts": _BEGIN * 1000, "type": "say", "say": "text", "text": "Please begin."}
    ]
    for row in rows:
        counts = {"tokensIn": row.fresh, "tokensOut": row.answered}
        counts |= {"cacheReads": row.read, "cacheWrites": row.written}
        request = {"type": "say", "say": "api_req_started", "text": json.dumps(counts)}
        ts = (_BEGIN + row.at) * 1000
        shown += [
            {"ts": ts, **request},
            {"ts": ts, "type": "say", "say": "text", "text": "A step."},
        ]
    return json.dumps(shown).encode()


#: Every shape, by the name of its program; those of Codex and Cline say nothing of what was written.
SHAPES = {
    "claude-code": claude_code,
    "codex": codex,
    "pi": pi,
    "opencode": opencode,
    "cline": cline,
}
