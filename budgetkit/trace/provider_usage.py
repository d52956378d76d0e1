"""What a provider has counted of a conversation, and beside it what is counted here for the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.message import SYSTEM_ROLES
from budgetkit.trace.conversation import Trace

_COLUMNS = ["message_index", "model", "input_tokens", "output_tokens"]
_COLUMNS += ["cache_read_tokens", "cache_write_tokens", "context_tokens"]


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


def unpaired(trace: Trace) -> list[int]:
    """List the messages that no request can hold: tool calls without all their results, and results without a call.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    list of int
        Indices of messages, ascending: messages with a call whose result never comes, the results of their other
        calls, and results of calls that are not there. A call or a result that carries no id is taken as paired.

    Notes
    -----
    Providers refuse a call without its result, so a program whose answer was broken off leaves it out of all later
    requests. Measured on a recorded coding session: one such message counts 5,565 tokens (cl100k_base), and the
    provider read 37,752 tokens before it and 37,811 after it.

    Examples
    --------
    >>> import budgetkit as bk
    >>> call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look"}}]}
    >>> said = [{"role": "user", "content": "Look."}, call, {"role": "user", "content": "Stop, never mind."}]
    >>> unpaired(bk.Trace("broken off", tuple(map(bk.Message, said))))
    [1]
    """
    callers: dict[str, int] = {}
    waiting: set[tuple[int, str]] = set()
    results: list[tuple[int, int]] = []
    for index, message in enumerate(trace.messages):
        for call in message.tool_calls:
            if call.id:
                callers[call.id] = index
                waiting.add((index, call.id))
        if answers := message.tool_call_id:
            results.append((index, caller := callers.get(answers, -1)))
            waiting.discard((caller, answers))
    broken = {-1, *(index for index, _ in waiting)}
    return sorted((broken - {-1}) | {index for index, caller in results if caller in broken})


def readings(trace: Trace, count: Callable[[str], int], framing: Framing | None = None) -> pd.DataFrame:
    """Set what the provider counted beside what is counted here.

    Parameters
    ----------
    trace : Trace
        A conversation that tells its provider's usage.
    count : callable
        From text to tokens.
    framing : Framing, optional
        What a message costs beyond its text; OpenAI's when left out.

    Returns
    -------
    DataFrame
        One row a reading: message_index (of the answer), counted (everything sent before it and not compacted away,
        tool schemas and priming included) and billed (int64, in tokens).

    Examples
    --------
    >>> import budgetkit as bk
    >>> readings(bk.load_trace("support-chat"), len).columns.tolist()
    ['message_index', 'counted', 'billed']
    """
    framing = DEFAULT_FRAMING if framing is None else framing
    tokens = trace.counts(count, framing).copy()
    tokens[unpaired(trace)] = 0
    taken = np.bincount(np.minimum(trace.gone, len(tokens)), tokens, len(tokens) + 1)[: len(tokens)].astype(np.int64)
    before = np.concatenate(([0], np.cumsum(tokens - taken)))
    system = [message for message in trace.messages if message.role in SYSTEM_ROLES][:1]
    fixed = framing.priming + framing.schemas(trace.tools, count, system)
    index, billed = (usage_frame(trace)[name].to_numpy(dtype=np.int64) for name in ("message_index", "context_tokens"))
    return pd.DataFrame({"message_index": index, "counted": before[index] + fixed, "billed": billed})
