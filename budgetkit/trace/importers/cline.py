"""Cline's ``ui_messages.json``: what its window shows, with the numbers of each request among it.

What was sent stands in another file, ``api_conversation_history.json``. So the texts here are what a person saw: system
prompt and tool results are missing or shortened, and a note says so; the numbers are the provider's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from budgetkit.requests.reading.located import placed
from budgetkit.requests.reading.paths import filled, found
from budgetkit.requests.reading.usage import usage_of

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


def conversation(messages: list[Any]) -> dict[str, Any]:
    """Read what the window shows; the first text is the task.

    Examples
    --------
    >>> task = {"ts": 1, "type": "say", "say": "text", "text": "Hello world"}
    >>> numbers = '{"tokensIn": 9, "tokensOut": 3, "cacheWrites": 0, "cacheReads": 0}'
    >>> request = {"ts": 2, "type": "say", "say": "api_req_started", "text": numbers}
    >>> conversation([task, request])["usage"][0]["context_tokens"]
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
            if (counted := _usage(text, len(shown))) is not None:
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


def _usage(text: str, place: int) -> dict[str, Any] | None:
    """Read the numbers of one request; Cline writes what was read from a cache beside the rest."""
    try:
        numbers = json.loads(text)
    except ValueError:
        return None
    named = {
        "input_tokens": found(numbers, "tokensIn"),
        "output_tokens": found(numbers, "tokensOut"),
        "cache_read_input_tokens": found(numbers, "cacheReads"),
        "cache_creation_input_tokens": found(numbers, "cacheWrites"),
    }
    counted = usage_of({name: count for name, count in named.items() if count is not None}, place)
    if counted is not None and counted["context_tokens"]:
        return counted
    return None
