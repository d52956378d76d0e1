r"""Which earlier messages a later one needs: as the trace marks it, or by a proxy that says that it is one.

A message that carries a list ``evidence`` is taken at its word. Each mark names an earlier message: by its index in
the trace, counted from 0, or by the ``id`` or ``dia_id`` that it carries, as public sets write it::

    {"messages": [{"role": "user", "content": "I moved to Bergen.", "id": "D1:3"}, ...,
                  {"role": "user", "content": "Where do I live?", "evidence": ["D1:3"]}]}

Where no message is marked, a *proxy* stands in: a later message of another turn that has a word of which an earlier one
was the first, and which stands in few messages, is taken to need it. That misses what is said again in other words and
counts what is named without need, so it compares policies with one another and says nothing about answers. How well it
ranks policies where there are marks is measured by ``python -m benchmarks.promised`` and stands in
``benchmarks/promised-and-observed.md``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
import pandas as pd
import regex

from budgetkit.budget.quoting import brief
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.trace import Trace

#: What the frame calls evidence that nobody marked.
PROXY: Final = "proxy: rare word again"
_WORD = regex.compile(r"[\p{L}\p{N}](?:[\p{L}\p{N}_./:@#'-]*[\p{L}\p{N}])?")
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./:@#'-]*[A-Za-z0-9])?")  # in ASCII the same, faster
_SHORTEST = 3
_MOST = 3  # messages that a word stands in, to tell anything


def evidence(trace: AnyTrace, by: Literal["auto", "marks", "names"] = "auto") -> pd.DataFrame:
    """List which message needs which earlier one.

    Parameters
    ----------
    trace : Trace
        The conversation.
    by : {"auto", "marks", "names"}
        The trace's own marks, the proxy, or the marks where there are any.

    Returns
    -------
    DataFrame
        One row a pair. Columns message and needs (indices in the trace, needs < message), turn (of the message),
        term (what is named; empty for marks) and source ("marked", or the name of the proxy).

    Raises
    ------
    ValueError
        If a mark is no index of an earlier message, or `by` is unknown.

    Examples
    --------
    >>> said = ["My order is A-1734.", "Noted.", "Where is A-1734?", "On its way."]
    >>> roles = ["user", "assistant"] * 2
    >>> messages = [Message({"role": r, "content": c}) for r, c in zip(roles, said)]
    >>> evidence(Trace("toy", tuple(messages)))[["message", "needs", "term"]].values.tolist()
    [[2, 0, 'A-1734']]
    """
    trace = trace_of(trace)
    if by not in ("auto", "marks", "names"):
        raise ValueError(f"evidence by {brief(by)}; known are auto, marks, names; use one of them")
    marks = [] if by == "names" else list(_marked(trace))
    rows = marks or ([] if by == "marks" else list(_named(trace)))
    frame = pd.DataFrame(rows, columns=["message", "needs", "term"]).astype(
        {"message": "int64", "needs": "int64"}
    )
    starts = [turn.start for turn in trace.turns]
    frame.insert(2, "turn", np.searchsorted(starts, frame["message"].to_numpy(), "right"))
    frame["source"] = "marked" if marks else PROXY
    return frame


def _marked(trace: Trace) -> Iterator[tuple[int, int, str]]:
    names: dict[object, int] = {}
    for index, message in enumerate(trace.messages):
        for mark in message.raw.get("evidence") or ():
            is_index = isinstance(mark, int) and not isinstance(mark, bool)
            if is_index:
                needed = mark
            elif isinstance(mark, str):
                needed = names.get(mark)
            else:
                needed = None
            if needed is None or not 0 <= needed < index:
                raise ValueError(
                    f"message {index} of trace {brief(trace.id)} marks {brief(mark)} as evidence; marks are "
                    f"ids or indices of earlier messages, 0 to {index - 1}; correct it"
                )
            yield index, needed, ""
        for key in ("id", "dia_id"):
            if isinstance(message.raw.get(key), str):
                names.setdefault(message.raw[key], index)


def _named(trace: Trace) -> Iterator[tuple[int, int, str]]:
    """Give each pair once, with the word that tells most: in fewest messages, then a name, then the longest."""
    words = [_words(message) for message in trace.messages]
    vocabulary = {word for message_words in words for word in message_words}
    lower = {word for word in vocabulary if word.islower() and word.isalpha()}
    folded = {w: w.casefold() for w in vocabulary}
    often = Counter(
        word for message_words in words for word in {folded[word] for word in message_words}
    )
    turns = np.searchsorted(
        [turn.start for turn in trace.turns], np.arange(len(words)), "right"
    ).tolist()
    introduced: dict[str, int] = {}
    for index, message in enumerate(trace.messages):
        shared = [word for word in words[index] if 1 < often[folded[word]] <= _MOST]
        earlier = [
            w for w in shared if turns[introduced.setdefault(folded[w], index)] < turns[index]
        ]
        pairs: dict[int, str] = {}
        for word in sorted(
            earlier, key=lambda word: (often[folded[word]], word.lower() in lower, -len(word))
        ):
            if trace.messages[first := introduced[folded[word]]].role not in SYSTEM_ROLES:
                pairs.setdefault(first, word)
        # A result names what it was asked for; that it was asked stands in the call.
        if message.role != "tool":
            yield from ((index, first, word) for first, word in sorted(pairs.items()))


def _words(message: Message) -> list[str]:
    texts = [message.text, *(call.arguments for call in message.tool_calls)]
    words = dict.fromkeys(
        word for text in texts for word in (_PLAIN if text.isascii() else _WORD).findall(text)
    )
    return [word for word in words if len(word) >= _SHORTEST]
