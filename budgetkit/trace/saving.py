"""Saving: a conversation as one line of JSON that reads back as the same conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from budgetkit.trace.conversation import Trace
from budgetkit.trace.turns import last_user

__all__ = ["to_line", "usage_frame"]

_COLUMNS = ["message_index", "model", "input_tokens", "output_tokens"]
_COLUMNS += ["cache_read_tokens", "cache_write_tokens", "context_tokens"]


def to_line(trace: Trace) -> str:
    """Write a conversation in OpenAI's chat format, on one line.

    Parameters
    ----------
    trace : Trace
        The conversation, of whichever format it was read from.

    Returns
    -------
    str
        JSON without a line break; a file of such lines is what :func:`budgetkit.load_traces` reads.

    Examples
    --------
    >>> import budgetkit as bk
    >>> to_line(bk.Trace("toy", (bk.Message({"role": "user", "content": "Hello world"}),)))
    '{"id": "toy", "messages": [{"role": "user", "content": "Hello world"}]}'
    """
    record: dict[str, Any] = {"id": trace.id, "messages": [dict(message.raw) for message in trace.messages]}
    meta = dict(trace.meta)
    own = {index: len(trace.messages[index].contexts) for index in trace.contexts}
    outside = {index: found[own[index] :] for index, found in trace.contexts.items() if found[own[index] :]}
    for index, found in outside.items():
        passages = [dict(passage.raw) for passage in found]
        if len(outside) == 1 and index == meta.get("contexts_apply_to_message", last_user(trace.messages)):
            record["contexts"] = passages
        else:
            record["messages"][index]["contexts"] = [*(trace.messages[index].raw.get("contexts") or ()), *passages]
    if trace.tools:
        record["tools"] = list(trace.tools)
    if meta:
        record["meta"] = meta
    line = json.dumps({**record, **trace.fields}, ensure_ascii=False)
    # no file can hold half of a character but as an escape
    return json.dumps({**record, **trace.fields}) if re.search("[\ud800-\udfff]", line) else line


def usage_frame(trace: Trace) -> pd.DataFrame:
    """Return what the provider counted, where the trace tells.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    DataFrame
        One row an answer. Columns message_index (of the answer), model, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens and context_tokens: the whole prompt.

    Examples
    --------
    >>> import budgetkit as bk
    >>> usage_frame(bk.load_trace("support-chat")).empty
    True
    """
    listed = trace.fields.get("usage")
    rows = [row for row in listed if _is_reading(row, len(trace.messages))] if isinstance(listed, list | tuple) else []
    return pd.DataFrame([{name: row.get(name) for name in _COLUMNS} for row in rows], columns=_COLUMNS)


def _is_reading(row: Any, messages: int) -> bool:
    """Say whether a usage record gives the prompt's size for a message of this conversation."""
    index, context = map(row.get, ("message_index", "context_tokens")) if isinstance(row, Mapping) else (None, None)
    return type(index) is int and type(context) is int and 0 <= index < messages and 0 <= context < 1 << 53
