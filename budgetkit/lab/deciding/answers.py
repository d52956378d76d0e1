"""Answers: how long they are in conversations, and how much to reserve for the next one.

    smallest reserve r with  (sum over n conversations of the share of answers longer than r, + 1) / (n + 1) <= risk

The answers of one conversation are alike, so the conversation is the unit: see :mod:`budgetkit.promise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from budgetkit.budget import Budget, Reserve
from budgetkit.budget.quoting import brief
from budgetkit.budget.validation import OUTPUT
from budgetkit.message import Message
from budgetkit.promise import is_controlled, lacking, needed
from budgetkit.trace import Trace

Ints = npt.NDArray[np.int64]
Kind = Literal["all", "call", "text"]
_DRAWS = 2_000


@dataclass(frozen=True)
class AnswerReserve:
    """How much to reserve for an answer.

    Parameters
    ----------
    tokens : int
        The reserve, in tokens.
    risk : float
        Share of the next conversation's answers that may be longer, in the mean.
    conversations : int
        On how many it rests.
    longest : int
        The longest answer seen, in tokens.
    cut_short : float
        Share of the answers seen that are longer than the reserve.

    Examples
    --------
    >>> AnswerReserve(90, risk=0.05, conversations=8, longest=90, cut_short=0.0).sentence
    'the longest answer seen has 90 tokens; no promise: a promise of 5 % needs 19 conversations; there are 8'
    """

    tokens: int
    risk: float
    conversations: int
    longest: int
    cut_short: float

    @property
    def is_promise(self) -> bool:
        """Whether there are conversations enough to promise something of the next one."""
        return self.conversations >= needed(self.risk)

    @property
    def sentence(self) -> str:
        """What the reserve promises, or that it promises nothing."""
        if self.is_promise:
            return f"at most {100 * self.risk:g} % of the next answers are longer than {self.tokens:,} tokens"
        reason = lacking(self.conversations, self.risk)
        return f"the longest answer seen has {self.longest:,} tokens; no promise: {reason}"


def answer_reserve(
    traces: Sequence[Trace], count: Callable[[str], int], risk: float = 0.05, kind: Kind = "all"
) -> AnswerReserve:
    """Find the smallest reserve that holds all but a share of the answers of the next conversation.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    count : callable
        From text to tokens.
    risk : float, default 0.05
        Share of the answers that may be longer.
    kind : {"all", "call", "text"}
        Which answers: all, those that call tools, or those that do not.

    Returns
    -------
    AnswerReserve
        By conformal risk control over conversations; the longest answer seen, and no promise, where they are too few.

    Raises
    ------
    ValueError
        If no conversation has such an answer, or the risk is not between 0 and 1.

    Examples
    --------
    >>> import budgetkit as bk
    >>> reserve = answer_reserve(bk.load_traces("made-up-chats"), bk.counter("gpt-4o"))
    >>> reserve.tokens, reserve.sentence
    (78, 'at most 5 % of the next answers are longer than 78 tokens')
    """
    lengths = _present(traces, count, kind)
    tokens = np.unique(np.concatenate(lengths))
    longest = int(tokens[-1])

    size = longest
    if len(lengths) >= needed(risk):
        # Fewer answers are longer than a larger reserve, so the smallest that will do is found by halving.
        low, high = 0, len(tokens) - 1
        while low < high:
            middle = (low + high) // 2
            losses = [float((answers > tokens[middle]).mean()) for answers in lengths]
            if is_controlled(losses, risk):
                high = middle
            else:
                low = middle + 1
        size = int(tokens[high])

    longer = float((np.concatenate(lengths) > size).mean())
    return AnswerReserve(tokens=size, risk=risk, conversations=len(lengths), longest=longest, cut_short=longer)


def answer_lengths(
    traces: Sequence[Trace], count: Callable[[str], int], share: float = 0.95, seed: int = 0
) -> tuple[int, int | None, int | None]:
    """Return the length that a share of the recorded answers keeps to, and its interval.

    It describes the answers that were recorded; how much to reserve for the next is what
    :func:`budgetkit.lab.deciding.answer_reserve` finds.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    count : callable
        From text to tokens.
    share : float, default 0.95
        Share of the answers that are to have room.
    seed : int, default 0
        The same seed draws the same.

    Returns
    -------
    tuple of int or None
        The quantile in tokens, and its 95 % interval from drawing conversations again, since the answers of
        one conversation are alike; None for both ends with fewer than the conversations that a promise of such a
        share needs: 19 for 0.95, 99 for 0.99.

    Raises
    ------
    ValueError
        If no conversation has an answer.

    Examples
    --------
    >>> import budgetkit as bk
    >>> answer_lengths(bk.load_traces("made-up-chats"), bk.counter("gpt-4o"))
    (77, 76, 79)
    """
    lengths = _present(traces, count, "all")
    quantile = int(np.quantile(np.concatenate(lengths), share, method="higher"))
    if not 0 < share < 1 or len(lengths) < needed(1 - share):
        return quantile, None, None

    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(lengths), (_DRAWS, len(lengths)))
    resampled = [np.concatenate([lengths[place] for place in places]) for places in drawn]
    quantiles = [np.quantile(answers, share, method="higher") for answers in resampled]
    low, high = np.quantile(quantiles, [0.025, 0.975])
    return quantile, int(low), int(high)


def recorded_lengths(traces: Sequence[Trace], count: Callable[[str], int], kind: Kind = "all") -> list[Ints]:
    """Count the answers of each conversation that has some."""
    lengths = []
    for trace in traces:
        answers = [message for message in trace.messages if _is_of_kind(message, kind)]
        if answers:
            lengths.append(np.array([count("".join(message.texts)) for message in answers], dtype=np.int64))
    return lengths


def reserve_of_answers(budget: Budget) -> Reserve | None:
    """Return the reserve of the answer itself; what is thought before it is no part of a recorded answer."""
    reserves = [reserve for reserve in budget.reserves if reserve.serves == OUTPUT and reserve.name != "thinking"]
    named = [reserve for reserve in reserves if reserve.name == OUTPUT]
    return next(iter([*named, *reserves]), None)


def _present(traces: Sequence[Trace], count: Callable[[str], int], kind: Kind) -> list[Ints]:
    if kind not in ("all", "call", "text"):
        raise ValueError(f"answers of kind {brief(kind)}; known are 'all', 'call' and 'text'; give one of these")
    lengths = recorded_lengths(traces, count, kind)
    if not lengths:
        raise ValueError(f"{len(traces)} conversations without an answer; a reserve is read off answers; give some")
    return lengths


def _is_of_kind(message: Message, kind: Kind) -> bool:
    if message.role != "assistant":
        return False
    return kind == "all" or (kind == "call") == bool(message.tool_calls)
