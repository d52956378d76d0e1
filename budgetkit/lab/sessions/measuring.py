"""What each message of a recorded session holds, as its provider's prompts grew, so that a replay begins with the bill.

    what came between two requests = by how much the prompt grew      (shared out as the texts are long)

A replay of these sizes sends the prompts that were billed, to the token, as long as its rule does as the session did.
Where a prompt shrank although nothing was compacted, as where thinking is left out, what is missing is taken from the
newest messages before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from budgetkit.lab.sessions.session import Session
from budgetkit.plan.items import Flags, Floats, Ints
from budgetkit.requests import Framing
from budgetkit.requests.billing.charges import Count
from budgetkit.requests.billing.messages import AnyMessage
from budgetkit.trace import Trace, unpaired
from budgetkit.trace.provider_usage import in_line


@dataclass(frozen=True, slots=True)
class MeasuredFraming(Framing):
    """Sizes as a provider billed them, message by message; any other message is counted as usual.

    Examples
    --------
    >>> from budgetkit.message import Message
    >>> framing = MeasuredFraming(measured=(70, 30))
    >>> dialogue = [Message({"role": "user", "content": "Go."}), Message({"role": "assistant", "content": "I do."})]
    >>> framing.messages(dialogue, len), framing.message(dialogue[0], len)
    ([70, 30], 3)
    """

    measured: tuple[int, ...] = ()

    def messages(self, messages: Iterable[AnyMessage], counter: Count) -> list[int]:
        """Return what was billed of the whole conversation; a summary that a rule writes is counted."""
        listed = [*messages]
        if len(listed) == len(self.measured):
            return [*self.measured]
        return Framing.messages(self, listed, counter)


@dataclass(frozen=True, slots=True)
class Measured:
    """What the messages of a session hold, and what its log does not, in tokens.

    `rows` are the places, in the session's usage, of the requests that stand in line.
    """

    unlogged: int
    sizes: Ints
    rows: Ints


def summaries_of(trace: Trace) -> Flags:
    """Say which messages are summaries that the session's own compactions wrote.

    Examples
    --------
    >>> said = [{"role": "user", "content": "Go."}, {"role": "user", "content": "What was done."}]
    >>> summaries_of(Trace("toy", said, fields={"compactions": [{"at": 1, "first_kept": 1}]})).tolist()
    [False, True]
    """
    is_summary = np.zeros(len(trace.messages), dtype=np.bool_)
    for compaction in trace.fields.get("compactions") or ():
        at = int(compaction["at"])
        is_summary[at : at + int(compaction.get("messages", 1))] = True
    return is_summary


def measure(session: Session) -> Measured:
    """Share out each prompt's growth among the messages that came before it.

    Examples
    --------
    >>> import budgetkit as bk
    >>> measured = measure(bk.Session(bk.load_trace("made-up-session")))
    >>> measured.unlogged, measured.sizes[:3].tolist(), len(measured.rows)
    (74000, [29, 112, 1030], 139)
    """
    trace = session.trace
    usage = session.usage
    rows = in_line(usage)
    places = usage["message_index"].iloc[rows].to_numpy(dtype=np.int64)
    prompts = usage["context_tokens"].to_numpy(dtype=np.int64)[rows]
    expected: Floats = np.asarray(trace.counts(session.count) * session.counted[1])
    expected[unpaired(trace)] = 0
    is_summary = summaries_of(trace)
    gone = trace.gone
    sizes = np.zeros(len(expected))
    unlogged = 0
    begin = 0
    for end, prompt in zip(places.tolist(), prompts.tolist(), strict=True):
        group = np.arange(begin, end)
        there = np.flatnonzero(gone[:begin] >= end)
        compacted = group[is_summary[group]]
        if begin == 0:
            unlogged = max(0, int(prompt - round(expected[group].sum())))
        growth = float(prompt - unlogged - sizes[there].sum())
        if len(compacted):
            # A summary takes what is left after the new messages, as far as anything is.
            sizes[group] = _shared(expected[group], min(growth, float(expected[group].sum())))
            sizes[compacted] += max(0.0, growth - float(sizes[group].sum()))
        elif growth >= 0 and len(group):
            sizes[group] = _shared(expected[group], growth)
        else:
            sizes[group] = expected[group]
        lacking = unlogged + sizes[there].sum() + sizes[group].sum() - prompt
        if lacking > 0:
            _take(sizes, there, float(lacking))
        begin = end
    sizes[begin:] = expected[begin:]
    return Measured(unlogged=unlogged, sizes=_whole(sizes), rows=rows)


def _shared(expected: Floats, tokens: float) -> Floats:
    """Share tokens out in the proportion of what is expected; all to the first where nothing is."""
    tokens = max(0.0, tokens)
    total = float(expected.sum())
    if total <= 0:
        return np.where(np.arange(len(expected)) == 0, tokens, 0.0)
    return np.asarray(expected * (tokens / total))


def _take(sizes: Floats, there: Ints, tokens: float) -> None:
    """Take tokens from messages, the newest first."""
    for place in there[::-1].tolist():
        part = min(tokens, float(sizes[place]))
        sizes[place] -= part
        tokens -= part
        if tokens <= 0:
            return


def _whole(sizes: Floats) -> Ints:
    """Round sizes so that every sum from the first on is rounded, too, and not a sum of roundings.

    >>> _whole(np.array([0.4, 0.4, 0.4])).tolist()
    [0, 1, 0]
    """
    sums = np.round(np.concatenate(([0.0], np.cumsum(sizes)))).astype(np.int64)
    return np.asarray(np.diff(sums))
