"""The provider's token counts for a conversation, compared with budgetkit's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import budgetkit.frames as pd
from budgetkit.counters import Count
from budgetkit.message import SYSTEM_ROLES, Data, Message, Raw
from budgetkit.plan import Ints
from budgetkit.requests import Framing
from budgetkit.requests.reading.parts import objects_in
from budgetkit.requests.reading.usage import seconds
from budgetkit.trace.conversation import Trace

_OPTIONAL = [
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "billed_input_tokens",
    "billed_output_tokens",
]
_TIMES = ["time", "started"]
# The columns, and their values in records that lack them.
_DEFAULTS: Raw = {
    "message_index": -1,
    "model": "",
    **dict.fromkeys(
        [
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "context_tokens",
            "fresh_tokens",
        ],
        0,
    ),
    **dict.fromkeys(_OPTIONAL, -1),
    **dict.fromkeys(_TIMES, 0.0),
    **dict.fromkeys(["side_chain", "left", "is_summary"], False),
    **dict.fromkeys(["tier", "region", "id"], ""),
    **dict.fromkeys(["web_searches", "paid_tools", "media_tokens"], 0),
}
_MOST = 1 << 53
#: The provider's token counts, with one array per column.
Usage = Mapping[str, npt.NDArray[Any]]


def usage_columns(trace: Trace) -> Usage:
    """Return the columns of :func:`usage_frame` as arrays.

    Times are in seconds since 1970. A missing time is NaN. A missing number is -1 in columns in which the frame can
    have missing values, and 0 in all other columns.
    """
    places = range(len(trace.messages))
    rows = [
        row
        for row in objects_in(trace.fields.get("usage"))
        if type(size := row.get("context_tokens")) is int
        and 0 <= size < _MOST
        and ((place := row.get("message_index")) is None or place in places)
    ]

    columns: Data = {}
    for name, default in _DEFAULTS.items():
        values = [
            value if type(value := row.get(name)) is type(default) else default for row in rows
        ]
        columns[name] = np.array(values, object if default == "" else type(default))
    columns["model"][columns["model"] == ""] = None
    for name in _TIMES:
        columns[name] = np.array([seconds(row.get(name)) for row in rows], "float64")
    cached = columns["cache_read_tokens"] + columns["cache_write_tokens"]
    columns["fresh_tokens"] = np.maximum(0, columns["context_tokens"] - cached)
    return columns


def usage_frame(trace: Trace) -> pd.DataFrame:
    """Return the provider's token counts for each request.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    DataFrame
        One row per request, in order, with these columns:

        - message_index: index of the answer; missing if the answer is not among the messages, as on an abandoned branch
        - model: name of the model that answered, or None
        - input_tokens, output_tokens, cache_read_tokens, cache_write_tokens: the provider's counts
        - context_tokens: tokens of the whole prompt
        - fresh_tokens: prompt tokens that were neither read from a cache nor written to one
        - cache_write_5m_tokens, cache_write_1h_tokens: tokens written with that lifetime; missing if unknown
        - billed_input_tokens, billed_output_tokens: tokens billed, if the provider bills fewer tokens than it counts
        - time, started: times of the answer and of the last message sent before it, in UTC
        - side_chain: True for a request of a sub-agent
        - left: True for a request on an abandoned branch
        - is_summary: True for a request for a summary
        - tier, region: the service tier and region, or "" if they do not affect the price
        - web_searches, paid_tools: numbers of calls that cost money
        - media_tokens: tokens of audio, and of images in the answer
        - id: text that identifies an answer of Claude Code, pi or OpenCode in its copies, or ""

    Examples
    --------
    >>> import budgetkit as bk
    >>> usage_frame(bk.load_trace("support-chat")).empty
    True
    """
    columns = usage_columns(trace)
    frame = pd.DataFrame({name: values.tolist() for name, values in columns.items()})
    frame["model"] = pd.Series(columns["model"], dtype=object)
    for name in ("message_index", *_OPTIONAL):
        numbers = pd.Series(columns[name], dtype="Int64")
        frame[name] = numbers.mask(numbers < 0)
    for name in _TIMES:
        frame[name] = pd.to_datetime(columns[name], unit="s", utc=True, errors="coerce")
    return frame


def in_line(usage: Usage) -> Ints:
    """Return the indices of the requests that continue the conversation.

    Excluded are requests for summaries, requests on abandoned branches, and requests whose answer does not come after
    all earlier answers.

    >>> in_line({"message_index": np.array([1, -1, 3, 3]), "is_summary": np.zeros(4, "bool")}).tolist()
    [0, 2]
    """
    places = np.where(usage["is_summary"], -1, usage["message_index"])
    latest = np.concatenate(([0], np.maximum.accumulate(places)[:-1])) if len(places) else places
    return np.flatnonzero(places > np.maximum(latest, 0))


def unpaired(trace: Trace | Sequence[Message]) -> list[int]:
    """List the indices of messages with unpaired calls or results.

    Parameters
    ----------
    trace : Trace or sequence of Message
        The conversation.

    Returns
    -------
    list of int
        Indices of messages in ascending order: messages with a call that has no result, the results of such messages'
        other calls, and results without a call. Calls and results without an id count as paired.

    Notes
    -----
    Providers reject a call without its result, so after an interrupted answer a program omits the call from all later
    requests. In a recorded coding session, one such message had 5,565 tokens (cl100k_base), while the provider read
    37,752 tokens before it and 37,811 after it.

    Examples
    --------
    >>> import budgetkit as bk
    >>> call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look"}}]}
    >>> said = [{"role": "user", "content": "Look."}, call, {"role": "user", "content": "Stop, never mind."}]
    >>> unpaired(bk.Trace("broken off", tuple(map(bk.Message, said))))
    [1]
    """
    callers = {}
    waiting = set()
    results = []
    messages = trace.messages if isinstance(trace, Trace) else trace
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            if call.id:
                callers[call.id] = index
                waiting.add((index, call.id))
        if answers := message.tool_call_id:
            results.append((index, caller := callers.get(answers, -1)))
            waiting.discard((caller, answers))
    broken = {-1, *(index for index, _ in waiting)}
    return sorted((broken - {-1}) | {index for index, caller in results if caller in broken})


def readings(trace: Trace, counter: Count, framing: Framing | None = None) -> pd.DataFrame:
    """Compare the provider's counts with budgetkit's.

    Parameters
    ----------
    trace : Trace
        A conversation with its provider's usage.
    counter : callable
        Function that counts the tokens in a text.
    framing : Framing, optional
        Tokens that a message costs beyond its text; default: as in :meth:`Trace.framing_of`.

    Returns
    -------
    DataFrame
        One row per request whose answer is a message, with the int64 columns message_index (the answer's index),
        counted (budgetkit's count of the prompt) and billed (the provider's count). The prompt consists of tool
        schemas, priming and all earlier messages, except compacted ones and those that :func:`unpaired` lists.

    Examples
    --------
    >>> import budgetkit as bk
    >>> readings(bk.load_trace("support-chat"), len).columns.tolist()
    ['message_index', 'counted', 'billed']
    """
    usage = usage_columns(trace)
    is_placed = usage["message_index"] >= 0
    return pd.DataFrame(
        {
            "message_index": usage["message_index"][is_placed],
            "counted": counted_prompts(trace, counter, framing),
            "billed": usage["context_tokens"][is_placed],
        }
    )


def counted_prompts(trace: Trace, counter: Count, framing: Framing | None = None) -> Ints:
    """Count the prompt tokens of each request whose answer is a message."""
    framing = trace.framing_of(counter, framing)
    tokens = trace.counts(counter, framing).copy()
    tokens[unpaired(trace)] = 0
    taken = np.bincount(np.minimum(trace.gone, len(tokens)), tokens, len(tokens) + 1)[
        : len(tokens)
    ].astype("int64")
    before = np.concatenate(([0], np.cumsum(tokens - taken)))
    system = [message for message in trace.messages if message.role in SYSTEM_ROLES][:1]
    fixed = framing.priming + framing.schemas(trace.tools, counter, system)
    places = usage_columns(trace)["message_index"]
    return before[places[places >= 0]] + fixed
