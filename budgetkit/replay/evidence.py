r"""Which earlier messages a later one needs: as the trace marks it, or by a proxy that says that it is one.

A message that carries a list ``evidence`` of indices of earlier messages is taken at its word. Where no message
does, a *proxy* stands in: a later message of another turn that names what an earlier one introduced (a number, an
identifier, a path, a name in capitals) is taken to need it. That misses what is said again in other words and
counts what is named without need, so it compares policies with one another and says nothing about answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import numpy as np
import pandas as pd
import regex

from budgetkit.budget.quoting import brief
from budgetkit.message import Message
from budgetkit.trace import Trace

__all__ = ["PROXY", "evidence"]

#: What the frame calls evidence that nobody marked.
PROXY: Final = "proxy: named again"
_WORD = regex.compile(r"[\p{L}\p{N}](?:[\p{L}\p{N}_./:@#'-]*[\p{L}\p{N}])?")
_SHORTEST = 3


def evidence(trace: Trace, by: Literal["auto", "marks", "names"] = "auto") -> pd.DataFrame:
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
    if by not in ("auto", "marks", "names"):
        raise ValueError(f"evidence by {brief(by)}; known are auto, marks, names; use one of them")
    marks = [] if by == "names" else list(_marked(trace))
    rows = marks or ([] if by == "marks" else list(_named(trace)))
    frame = pd.DataFrame(rows, columns=["message", "needs", "term"]).astype({"message": "int64", "needs": "int64"})
    starts = [turn.start for turn in trace.turns]
    frame.insert(2, "turn", np.searchsorted(starts, frame["message"].to_numpy(), "right"))
    frame["source"] = "marked" if marks else PROXY
    return frame


def _marked(trace: Trace) -> Iterator[tuple[int, int, str]]:
    for index, message in enumerate(trace.messages):
        for needed in message.raw.get("evidence") or ():
            if not isinstance(needed, int) or not 0 <= needed < index:
                raise ValueError(
                    f"message {index} of trace {brief(trace.id)} marks {brief(needed)} as evidence; marks are "
                    f"indices of earlier messages, 0 to {index - 1}; correct it"
                )
            yield index, needed, ""


def _named(trace: Trace) -> Iterator[tuple[int, int, str]]:
    """Give each pair once, with the first term that joins it."""
    words = [_words(message) for message in trace.messages]
    plain = {word for each in words for word in each if word.islower()}
    starts = [turn.start for turn in trace.turns]
    turns = np.searchsorted(starts, np.arange(len(words)), "right").tolist()
    introduced: dict[str, int] = {}
    for index, message in enumerate(trace.messages):
        pairs: dict[int, str] = {}
        for word in words[index]:
            if not _is_name(word, plain):
                continue
            first = introduced.setdefault(word, index)
            if turns[first] < turns[index] and trace.messages[first].role not in ("system", "developer"):
                pairs.setdefault(first, word)
        if message.role != "tool":  # a result names what it was asked for; that it was asked stands in the call
            yield from ((index, first, word) for first, word in sorted(pairs.items()))


def _words(message: Message) -> list[str]:
    texts = [message.text, *(call.arguments for call in message.tool_calls)]
    return list(dict.fromkeys(word for text in texts for word in _WORD.findall(text)))


def _is_name(word: str, plain: set[str]) -> bool:
    """Say whether a word is likely to name one thing: it has a digit, a sign inside, or a capital of its own."""
    if len(word) < _SHORTEST:
        return False
    if any(letter.isdigit() for letter in word) or any(sign in word for sign in "_/@#"):
        return True
    return word[0].isupper() and word.lower() not in plain and any(letter.islower() for letter in word)


def needs_by_message(found: pd.DataFrame) -> Mapping[int, list[int]]:
    """Return for each message what it needs.

    Examples
    --------
    >>> needs_by_message(pd.DataFrame({"message": [4, 4], "needs": [2, 1]}))
    {4: [1, 2]}
    """
    needs: dict[int, list[int]] = {}
    for message, needed in sorted(zip(found["message"].tolist(), found["needs"].tolist(), strict=True)):
        needs.setdefault(message, []).append(needed)
    return needs
