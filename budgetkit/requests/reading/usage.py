"""Providers' usage records: the tokens billed for a request and its answer.

The rows of ``[[usage]]`` in ``data/formats.toml`` map meanings to the fields of each provider and program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from budgetkit.budget import check_tokens
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import format_table, one_of, value_at, without_empty

_DEEPEST = 6
_LATEST = 1e15  # milliseconds, in the year 33,658; a larger number is not a time
_ABOUT_ROW = ("by", "source", "example", "right")
#: Meanings with fields that are texts or have several numbers.
_NO_NUMBERS = ("tier", "speed", "region", "requests", "paid", "media")
_USUAL = ("standard", "standard_only", "default", "auto", "on_demand", "not_available", "global")


def usage_of(
    raw: Any, message_index: int | None, model: Any = None, around: Any = None
) -> Data | None:
    """Read a usage record from any provider.

    Return None if the record has neither tokens nor unknown fields. A tier, speed or region missing from the usage is
    read from `around`, the surrounding record.

    >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 5}, 1)["context_tokens"]
    903
    >>> usage_of({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 1)["context_tokens"]
    900
    """
    if not isinstance(raw, Mapping) or not raw:
        return None
    about_request = {
        "message_index": message_index,
        "model": model if isinstance(model, str) else None,
    }
    paths = _paths_in(frozenset(map(str, raw)))
    count = {name: _count(raw, where) for name, where in paths.items() if name != "named"}
    unknown = [
        path for path in _filled_fields(raw, ()) if path.endswith(")") or not _is_known(path)
    ]
    for name, number in count.items():
        if number is None and name not in _NO_NUMBERS:
            unknown += [
                f"{path} (not a whole number)"
                for path in paths[name]
                if isinstance(value_at(raw, path), str | float | bool)
            ]
    is_null = any(raw.get(path, "") is None for path in paths["output"])
    if is_null and count["output"] is None and count["total"] != count["input"]:
        unknown.append("output tokens (missing)")
    if raw.get("unit") not in (None, "", "TOKENS"):
        unknown.append("unit (not tokens)")
    sent = count["input"]
    if sent is None and count["output"] is None:
        sent = count["input_alone"]
    if sent is None:
        if count["output"] and not unknown:
            unknown = ["input tokens (missing)"]
        return about_request | {"context_tokens": None, "unknown": unknown} if unknown else None
    sent += count["input_beside"] or 0
    answered = (count["output"] or 0) + (count["thoughts_beside"] or 0)

    # Tokens read from and written to a cache are part of the input or in addition to it.
    apart = {f"cache_write_{life}_tokens": count[f"written_for_{life}"] for life in ("5m", "1h")}
    read = count["read_beside"] or count["read_inside"] or 0
    written = (
        count["written_beside"]
        or count["written_inside"]
        or sum(map(int, without_empty(**apart).values()))
    )
    total = count["total"]
    # LiteLLM adds Anthropic's cached tokens to prompt_tokens but keeps the separate fields.
    # For some providers, OpenCode includes them in the input, as its total shows.
    cached = read + written
    is_inside = "prompt_tokens" in raw or ("cache" in raw and total == sent + answered)
    is_beside = (count["read_beside"] or count["written_beside"]) and not is_inside
    context = sent
    if is_beside or cached > sent or (cached and total == sent + cached + answered):
        context += cached

    # The total shows whether the answer includes the thoughts; without a total, the table says so.
    if (thoughts := count["thoughts_beside"]) and total == context + answered - thoughts:
        answered -= thoughts
    elif (thoughts := count["thoughts_inside"]) and total == context + answered + thoughts:
        answered += thoughts

    if total and total > context + answered:
        unknown.append("total (more than its parts)")

    usage = about_request | {
        "input_tokens": sent,
        "output_tokens": answered,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "context_tokens": context,
    }
    apart |= {f"billed_{side}_tokens": count[f"billed_{side}"] for side in ("input", "output")}
    usage |= {name: tokens for name, tokens in apart.items() if tokens is not None}
    served = {}
    for name, places in format_table("served").items():
        words = [value_at(raw, path) for path in paths[name]]
        if not any(isinstance(word, str) for word in words):
            words = [value_at(around, places, unpack=True)]
        served[name] = next(filter(None, map(_priced_apart, words)), "")
    usage |= without_empty(
        tier=served["speed"] or served["tier"],
        region=served["region"],
        web_searches=count["searches"],
    )
    # Bedrock states the lifetime of each part written; the longer lifetime costs more.
    for written_part in value_at(raw, "cacheDetails.*") or ():
        if value_at(written_part, "ttl") == "1h":
            usage["cache_write_1h_tokens"] = _count(written_part, ["inputTokens"]) or 0
    # A compaction by the provider is a separate request whose tokens are not in the sums. Nor are those of an advisor,
    # which is another model with its own prices and is counted as a paid tool.
    paid_tools = sum(_counts(raw, paths["paid"]))
    for request in value_at(raw, "|".join(f"{path}.*" for path in paths["requests"])) or ():
        kind = request.get("type") if isinstance(request, Mapping) else None
        paid_tools += kind == "advisor_message"
        if kind == "compaction":
            for name, tokens in (usage_of(request, None) or {}).items():
                if name.endswith("_tokens") and tokens:
                    usage[name] = usage.get(name, 0) + tokens
    # Audio and generated images have their own prices; Gemini lists the tokens of each kind.
    media = sum(_counts(raw, paths["media"]))
    for side in format_table("media_lists"):
        for part in value_at(raw, side["list"]) or ():
            if value_at(part, "modality") in side["kinds"]:
                media += _count(part, ["tokenCount", "token_count"]) or 0
    return usage | without_empty(paid_tools=paid_tools, media_tokens=media, unknown=unknown)


def seconds(stamp: Any) -> float:
    """Convert a logged time to seconds since 1970.

    The time is text in ISO format, or a number of seconds or milliseconds since 1970. An invalid time becomes NaN.

    >>> seconds("2026-01-01T00:00:00Z") == seconds(1767225600000)
    True
    """
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and abs(stamp) < _LATEST:
        return stamp / 1000 if stamp > 1e11 else float(stamp)
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        return float("nan")


@cache
def _paths() -> Mapping[str, tuple[str, ...]]:
    """Return the paths of each meaning in the table of usage fields."""
    rows = format_table("usage")
    meanings = dict.fromkeys(name for row in rows for name in row if name not in _ABOUT_ROW)
    return {
        meaning: tuple("|".join(row[meaning].strip() for row in rows if meaning in row).split("|"))
        for meaning in meanings
    }


@lru_cache(maxsize=256)
def _paths_in(names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Select the paths that start with one of the given field names."""
    return {
        meaning: tuple(path for path in where if path.partition(".")[0] in names)
        for meaning, where in _paths().items()
    }


@cache
def _known_fields() -> re.Pattern[str]:
    """Return a pattern for the paths of all fields in the table."""
    return one_of(path for paths in _paths().values() for path in paths)


@lru_cache(maxsize=1024)
def _is_known(path: str) -> bool:
    return _known_fields().match(path) is not None


def _filled_fields(value: Any, steps: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of nonzero numbers and non-empty strings.

    In a path, "*" stands for a list element. A NaN in a list is marked as not a whole number. Fields nested more than
    six levels deep are left out.
    """
    if isinstance(value, Mapping | list) and len(steps) < _DEEPEST:
        fields = value.items() if isinstance(value, Mapping) else (("*", field) for field in value)
        for name, field in fields:
            yield from _filled_fields(field, (*steps, str(name)))
    elif isinstance(value, int | float | str) and not isinstance(value, bool) and value:
        path = ".".join(filter(None, steps))
        # The caller checks the numbers outside lists.
        is_nan = "*" in steps and value != value
        yield f"{path} (not a whole number)" if is_nan else path


def _priced_apart(word: Any) -> str:
    """Return a tier, speed or region if it affects the price.

    Otherwise, return "".
    """
    word = word.lower().removeprefix("on_demand_") if isinstance(word, str) else ""
    return "" if word in _USUAL else word


def _counts(raw: Raw, paths: Iterable[str]) -> Iterator[int]:
    """Yield the whole numbers at given paths, including those in lists."""
    for path in paths:
        values = value_at(raw, path)
        for value in values if isinstance(values, list) else [values]:
            if type(value) is int:
                yield check_tokens(f"{path} of a provider's usage", value)


def _count(raw: Raw, paths: Iterable[str]) -> int | None:
    """Return the first whole number at the paths, or None."""
    for path in paths:
        value = value_at(raw, path)
        if isinstance(value, Mapping):  # a number with parts below it, as in Sentry's spans
            value = value.get("")
        is_digits = isinstance(value, str) and value.isdecimal() and len(value) < 20
        if is_digits or (isinstance(value, float) and value.is_integer()):
            value = int(value)
        if type(value) is int:
            return check_tokens(f"{path} of a provider's usage", value)
    return None
