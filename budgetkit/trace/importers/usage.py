"""What providers say they counted, under one set of names.

Some count what they read from and wrote to a cache inside the prompt, some beside it; ``context_tokens`` is the whole
prompt in both cases, ``output_tokens`` the whole answer, thoughts among it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.budget.amounts import check_tokens
from budgetkit.trace.importers.paths import found

# What was counted by: where the prompt and the answer stand; then what of the cache is inside the prompt.
_INPUT = (
    "input_tokens|prompt_tokens|promptTokenCount|inputTokens|promptTokens|input|prompt|inputUsage"
    "|prompt_token_count|llm.token_count.prompt"
)
_OUTPUT = (
    "output_tokens|completion_tokens|candidatesTokenCount|outputTokens|completionTokens|output|completion|outputUsage"
    "|candidates_token_count"
)
_THOUGHTS = "thoughtsTokenCount|thoughts_token_count"  # Gemini alone counts them beside the answer
_BESIDE_READ = (
    "cache_read_input_tokens|cacheReadInputTokens|cacheReadInputTokenCount|cache_read_tokens|cacheRead"
    "|input_cached_tokens|input_cache_read"
)
_BESIDE_WRITTEN = (
    "cache_creation_input_tokens|cacheWriteInputTokens|cacheWriteInputTokenCount|cache_write_tokens|cacheWrite"
    "|input_cache_creation"
)
_INSIDE_READ = (
    "prompt_tokens_details.cached_tokens|input_tokens_details.cached_tokens|input_token_details.cache_read"
    "|cachedContentTokenCount|cached_content_token_count|cached_input_tokens|cachedInputTokens|cached_tokens|cached"
    "|prompt_details.cache_read|cache_read.input_tokens|prompt_tokens_details.cache_read"
)
_INSIDE_WRITTEN = (
    "input_token_details.cache_creation|prompt_details.cache_write|cache_creation.input_tokens"
    "|prompt_tokens_details.cache_creation_tokens"
)


def usage_of(raw: Any, message_index: int, model: Any = None) -> dict[str, Any] | None:
    """Read one usage record, as a provider or an agent's log wrote it; None where no input was counted.

    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping):
        return None
    sent = _count(raw, _INPUT if found(raw, _OUTPUT) is not None else f"{_INPUT}|totalTokens")
    if sent is None:
        return None
    # litellm adds what Anthropic counts beside the prompt to prompt_tokens, and leaves the fields standing
    inside = "prompt_tokens" in raw
    read, written = _count(raw, _BESIDE_READ), _count(raw, _BESIDE_WRITTEN)
    beside = 0 if inside else (read or 0) + (written or 0)
    return {
        "message_index": message_index,
        "model": model if isinstance(model, str) else None,
        "input_tokens": sent,
        "output_tokens": (_count(raw, _OUTPUT) or 0) + (_count(raw, _THOUGHTS) or 0),
        "cache_read_tokens": read or _count(raw, _INSIDE_READ) or 0,
        "cache_write_tokens": written or _count(raw, _INSIDE_WRITTEN) or 0,
        "context_tokens": sent + beside,
    }


def _count(raw: Mapping[str, Any], paths: str) -> int | None:
    """Return the first whole number that stands at one of several paths."""
    for path in paths.split("|"):
        value = found(raw, path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return check_tokens(f"{path} of a provider's usage", value)
    return None
