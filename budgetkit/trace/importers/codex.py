"""Codex' sessions: a record a line, which holds an item of OpenAI Responses, the model, or what was counted.

Each request ends in a record of what it billed. Codex writes that record again when only its limits have changed, with
the same sums; such a record is no request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from budgetkit.requests.reading.formats import Format, table
from budgetkit.requests.reading.located import LocatedMessage, placed
from budgetkit.requests.reading.pairing import paired
from budgetkit.requests.reading.paths import filled, found
from budgetkit.requests.reading.records import Records, read_records
from budgetkit.requests.reading.usage import usage_of
from budgetkit.trace.jsonl import Numbered

_ITEMS: Final = Format(name="", label="", items=True)
_NEAR = 20  # messages in which the answer of a request is looked for


def conversation(lines: list[Numbered], notes: list[str]) -> dict[str, Any]:
    """Read a session of Codex; records that hold no item are kept aside.

    Examples
    --------
    >>> item = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Hello world"}}
    >>> placed(conversation([(1, item)], [])["messages"][0])[1]["content"]
    'Hello world'
    """
    read = Records()
    compactions: list[dict[str, Any]] = []
    aside: list[Any] = []
    usage: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
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

        # What the record holds for a prompt: the instructions, an item, or all that a compaction left.
        items: list[Any] = []
        if kind == "session_meta" or (kind is None and "id" not in about):
            about |= {"id": found(payload, "id"), "model": found(payload, "model")}
            instructions = found(payload, "base_instructions.text|instructions")
            if isinstance(instructions, str) and instructions:
                items = [{"role": "system", "content": instructions}]
        elif kind == "turn_context":
            about["model"] = found(payload, "model")
        elif kind == "compacted":
            compactions.append(
                {"at": len(read.messages), "first_kept": len(read.messages)} | _before(usage)
            )
            summary = {"role": "assistant", "content": found(payload, "message")}
            items = found(payload, "replacement_history.*") or [summary]
        elif kind in ("response_item", None):
            items = [payload]
        if kind not in ("response_item", "compacted", None):
            aside.append(record)

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
        if counted["message_index"] < 0:
            counted["message_index"] = None
        usage.append(counted | filled(time=time, started=started))
        started = time  # results are written before this record, so the next request starts with it

    notes = [*notes, *paired(read.messages, strict=False)]
    compactions = [
        compaction for compaction in compactions if compaction["at"] < len(read.messages)
    ]
    session = {
        "id": about.get("id"),
        "messages": read.messages,
        "usage": usage,
        "other_lines": aside,
    }
    return (
        session
        | {"format": "codex"}
        | filled(compactions=compactions, window=about.get("window"), warnings=notes)
    )


def _before(usage: list[dict[str, Any]]) -> dict[str, Any]:
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
