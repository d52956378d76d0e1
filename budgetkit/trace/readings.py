"""The contexts that a provider has counted, beside what is counted here for the same requests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from budgetkit.framing import DEFAULT_FRAMING, Framing
from budgetkit.trace.conversation import Trace
from budgetkit.trace.saving import usage_frame

__all__ = ["readings", "unanswered"]


def unanswered(trace: Trace) -> list[int]:
    """List the answers that are never sent again, because a tool that they call was never answered.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    list of int
        Indices of messages. No provider takes a call without its result, so a program whose answer was broken
        off leaves it out of all later requests.

    Examples
    --------
    >>> import budgetkit as bk
    >>> unanswered(bk.load_trace("support-chat"))
    []
    """
    answered = {message.tool_call_id for message in trace.messages}
    return [
        index
        for index, message in enumerate(trace.messages)
        if any(call.id not in answered for call in message.tool_calls if call.id)
    ]


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
        One row a reading: message_index (of the answer), counted (everything sent before it, tool schemas and
        priming included) and billed (int64, in tokens).

    Examples
    --------
    >>> import budgetkit as bk
    >>> readings(bk.load_trace("support-chat"), len).columns.tolist()
    ['message_index', 'counted', 'billed']
    """
    framing = DEFAULT_FRAMING if framing is None else framing
    tokens = trace.counts(count, framing).copy()
    tokens[unanswered(trace)] = 0
    before = np.concatenate(([0], np.cumsum(tokens)))
    with_system = any(message.role == "system" for message in trace.messages)
    fixed = framing.priming + framing.schemas(trace.tools, count, with_system)
    usage = usage_frame(trace)
    index = usage["message_index"].to_numpy(dtype=np.int64)
    return pd.DataFrame(
        {
            "message_index": index,
            "counted": before[index] + fixed,
            "billed": usage["context_tokens"].to_numpy(dtype=np.int64),
        }
    )
