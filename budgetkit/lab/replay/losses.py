"""Memory after pruning: the share of needed messages still present."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np
import regex

import budgetkit.frames as pd
from budgetkit.budget import brief, check_choice
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.lab.replay.outcome import Replay
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.plan import Flags, Ints
from budgetkit.pruning import NEVER
from budgetkit.trace import Trace

#: The source of evidence that the trace does not mark.
PROXY = "proxy: repeated rare word"
_WORD = regex.compile(r"[\p{L}\p{N}](?:[\p{L}\p{N}_./:@#'-]*[\p{L}\p{N}])?")
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./:@#'-]*[A-Za-z0-9])?")  # for ASCII, faster
_SHORTEST = 3
_MOST = 3  # a word is rare if no more messages contain it


def evidence(trace: AnyTrace, by: Literal["auto", "marks", "names"] = "auto") -> pd.DataFrame:
    """List pairs of a message and a needed earlier message.

    Parameters
    ----------
    trace : Trace
        The conversation in which to look for needed messages.
    by : {"auto", "marks", "names"}
        Source of the pairs: "marks" uses the needed messages that the trace marks, and "names" uses repeated rare
        words. "auto" uses marks if the trace has any, otherwise words.

    Returns
    -------
    DataFrame
        One row for each pair, with the columns message and needs (indices in the trace, needs < message), turn (of the
        message), term (the shared word; empty for marks) and source ("marked" or the value of `PROXY`).

    Raises
    ------
    ValueError
        If a mark is not the id or index of an earlier message, or `by` is unknown.

    Examples
    --------
    >>> said = ["My order is A-1734.", "Noted.", "Where is A-1734?", "On its way."]
    >>> roles = ["user", "assistant"] * 2
    >>> messages = [Message({"role": r, "content": c}) for r, c in zip(roles, said)]
    >>> evidence(Trace("toy", tuple(messages)))[["message", "needs", "term"]].values.tolist()
    [[2, 0, 'A-1734']]
    """
    trace = trace_of(trace)
    check_choice("by", by, ("auto", "marks", "names"))
    marks = [] if by == "names" else list(_pairs_by_mark(trace))
    rows = marks or ([] if by == "marks" else list(_pairs_by_name(trace)))
    frame = pd.DataFrame(rows, columns=["message", "needs", "term"]).astype(
        {"message": "int64", "needs": "int64"}
    )
    frame.insert(2, "turn", trace.turn_numbers[frame["message"]])
    frame["source"] = "marked" if marks else PROXY
    return frame


def _pairs_by_mark(trace: Trace) -> Iterator[tuple[int, int, str]]:
    names: dict[object, int] = {}
    for index, message in enumerate(trace.messages):
        for mark in message.raw.get("evidence") or ():
            needed = mark if type(mark) is int else names.get(str(mark))
            if needed is None or not 0 <= needed < index:
                raise ValueError(
                    f"Invalid evidence {brief(mark)} in message {index} of trace {brief(trace.id)}. Use the id or "
                    "index of an earlier message."
                )
            yield index, needed, ""
        for key in ("id", "dia_id"):
            if isinstance(message.raw.get(key), str):
                names.setdefault(message.raw[key], index)


def _pairs_by_name(trace: Trace) -> Iterator[tuple[int, int, str]]:
    """Yield messages with the earlier messages that introduced their rare words.

    A word is rare if at most three messages contain it. The introducing message belongs to an earlier turn and is not a
    system message. Tool results need no message, because they repeat words of their calls.
    """
    words = [_words(message) for message in trace.messages]
    folded = {word: word.casefold() for of_message in words for word in of_message}
    lower = {word for word in folded if word.islower() and word.isalpha()}
    often = Counter(word for of_message in words for word in {folded[w] for w in of_message})
    turns = trace.turn_numbers.tolist()
    introduced: dict[str, int] = {}
    for index, message in enumerate(trace.messages):
        shared = [word for word in words[index] if 1 < often[folded[word]] <= _MOST]
        shared.sort(key=lambda word: (often[folded[word]], word.lower() in lower, -len(word)))
        pairs: dict[int, str] = {}
        for word in shared:
            first = introduced.setdefault(folded[word], index)
            is_earlier = turns[first] < turns[index]
            if is_earlier and trace.messages[first].role not in SYSTEM_ROLES:
                pairs.setdefault(first, word)
        # A tool result repeats words of its call, so only the call counts as needing them.
        if message.role != "tool":
            yield from ((index, first, word) for first, word in sorted(pairs.items()))


def _words(message: Message) -> list[str]:
    texts = [message.text, *(call.arguments for call in message.tool_calls)]
    words = dict.fromkeys(
        word for text in texts for word in (_PLAIN if text.isascii() else _WORD).findall(text)
    )
    return [word for word in words if len(word) >= _SHORTEST]


def losses(outcome: Replay, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the share of needed messages present in each request.

    Parameters
    ----------
    outcome : Replay
        A replay, from :func:`budgetkit.replay`.
    pairs : DataFrame, optional
        The needed messages, from :func:`budgetkit.lab.replay.losses.evidence`.

    Returns
    -------
    DataFrame
        One row for each request, with the columns request, turn, needed, present and possible (int64, numbers of
        pairs), share (float64, missing if nothing is needed) and source. The column possible is the maximum with
        hindsight: the most pairs whose earlier messages fit into the history's limit together. Summarised messages, and
        tool results replaced by placeholders, count as absent.

    Examples
    --------
    >>> import budgetkit as bk
    >>> trace = bk.load_trace("support-chat")
    >>> outcome = bk.replay(trace, bk.presets.working_memory(50_000), bk.policies.OldestFirst())
    >>> bool((losses(outcome)["share"].dropna() == 1).all())
    True
    """
    pairs = evidence(outcome.trace) if pairs is None else pairs
    placed = outcome.placed
    requests = len(placed.requests)
    at, needs, there = needed_there(outcome, pairs)
    needed = np.bincount(at, minlength=requests)
    present = np.bincount(at[there], minlength=requests)
    limits = np.maximum(outcome.columns[outcome.section]["limit"], 0)
    possible = np.zeros(requests, "int64")
    for request in np.unique(at).tolist():
        # The smallest needed messages first, the last one in part.
        slots, wanted = np.unique(needs[at == request], return_counts=True)
        size = np.where(placed.prunable[slots], placed.tokens[slots], 0)
        order = np.argsort(size / wanted, kind="stable")
        size = size[order]
        left = limits[request] - (np.cumsum(size) - size)
        part = np.where(size == 0, 1, np.clip(left / np.maximum(size, 1), 0, 1))
        possible[request] = int((part * wanted[order]).sum() + 1e-9)
    return pd.DataFrame(
        {
            **outcome.places,
            "needed": needed,
            "present": present,
            "possible": possible,
            "share": np.where(needed > 0, present / np.maximum(needed, 1), np.nan),
            "source": pairs["source"].iloc[0] if len(pairs) else "none found",
        }
    )


def needed_there(outcome: Replay, pairs: pd.DataFrame) -> tuple[Ints, Ints, Flags]:
    """Return the request, the needed message and its presence for each pair.

    A needed message is present if no policy removed, summarised or shrunk it up to the pair's request. Pairs without a
    request are left out.
    """
    sents = outcome.placed.sents
    asks = np.array([role == "assistant" for role in outcome.trace.roles], "bool")
    later, needs = (pairs[name].to_numpy("int64") for name in ("message", "needs"))
    # An answer belongs to the request that ends before it; any other message to the first that sends it.
    at = np.searchsorted(sents, later + ~asks[later], "left")
    is_sent = at < len(sents)
    at, needs = at[is_sent], needs[is_sent]
    there = ~outcome.placed.unsent[needs]
    for column in (outcome.kept.gone, outcome.kept.shrunk):
        since = np.array(column, "int64")[needs]
        there &= (since == NEVER) | (since > at)
    return at, needs, there
