"""Usage: the tokens that a provider counted, under one set of names.

Some count what they read from and wrote to a cache inside the prompt, some beside it; ``context_tokens`` is the whole
prompt in both cases, ``output_tokens`` the whole answer, thoughts among it. Where a provider says for how long it keeps
what it wrote, ``cache_write_5m_tokens`` and ``cache_write_1h_tokens`` are the parts of ``cache_write_tokens``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.budget.amounts import check_tokens
from budgetkit.requests.reading.formats import table
from budgetkit.requests.reading.paths import found


def usage_of(raw: Any, message_index: int | None, model: Any = None) -> dict[str, Any] | None:
    """Read one usage record of any provider; None where it counts no input.

    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping):
        return None
    names = table("usage")
    sent = _count(raw, names["input"])
    if sent is None and found(raw, names["output"]) is None:
        sent = _count(raw, "totalTokens")  # what Gemini says when it is asked to count
    if sent is None:
        return None
    # litellm adds what Anthropic counts beside the prompt to prompt_tokens, and leaves the fields standing
    inside = "prompt_tokens" in raw
    read, written = (_count(raw, names[f"{what}_beside"]) or 0 for what in ("read", "written"))
    counted = {
        "message_index": message_index,
        "model": model if isinstance(model, str) else None,
        "input_tokens": sent,
        "output_tokens": (_count(raw, names["output"]) or 0)
        + (_count(raw, names["thoughts"]) or 0),
        "cache_read_tokens": read or _count(raw, names["read_inside"]) or 0,
        "cache_write_tokens": written or _count(raw, names["written_inside"]) or 0,
        "context_tokens": sent + (0 if inside else read + written),
    }
    for life in ("5m", "1h"):
        tokens = _count(raw, names[f"written_for_{life}"])
        if tokens is not None:
            counted[f"cache_write_{life}_tokens"] = tokens
    return counted


def _count(raw: Mapping[str, Any], paths: str) -> int | None:
    """Return the first whole number that stands at one of several paths."""
    for path in paths.split("|"):
        value = found(raw, path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return check_tokens(f"{path} of a provider's usage", value)
    return None
