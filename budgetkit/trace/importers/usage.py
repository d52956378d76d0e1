"""What providers say they counted, under one set of names.

Anthropic's ``input_tokens`` leaves out what was read from and written to the cache; OpenAI's and Gemini's
contain it. ``context_tokens`` is the whole prompt in both cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.budget.amounts import check_tokens

_INPUT = ("input_tokens", "prompt_tokens", "promptTokenCount", "input")
_OUTPUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "output")
_READ = ("cache_read_input_tokens", "cache_read_tokens", "cacheRead")
_WRITE = ("cache_creation_input_tokens", "cache_write_tokens", "cacheWrite")
_INSIDE = ("cached_tokens", "cachedContentTokenCount", "cached")


def usage_of(raw: Any, message_index: int, model: str | None = None) -> dict[str, Any] | None:
    """Read one usage record.

    Examples
    --------
    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping):
        return None
    sent = _first(raw, _INPUT)
    if sent is None:
        return None
    details = [raw.get(name) for name in ("prompt_tokens_details", "input_tokens_details")]
    inside = _first(raw, _INSIDE) or next((_first(d, _INSIDE) for d in details if isinstance(d, Mapping)), None) or 0
    read, write = _first(raw, _READ) or 0, _first(raw, _WRITE) or 0
    return {
        "message_index": message_index,
        "model": model,
        "input_tokens": sent,
        "output_tokens": _first(raw, _OUTPUT) or 0,
        "cache_read_tokens": read or inside,
        "cache_write_tokens": write,
        "context_tokens": sent + read + write,
    }


def _first(raw: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return check_tokens(f"{name} of a provider's usage", value)
    return None
