"""Answer lengths in conversations, and a reserve for the next answers.

    smallest reserve r with  (sum over n conversations of the share of answers longer than r, + 1) / (n + 1) <= risk

Answers in one conversation are not independent, so the conversation is the unit; see :mod:`budgetkit.promise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from budgetkit.budget import Budget, Reserve, check_choice
from budgetkit.budget.validation import OUTPUT
from budgetkit.counters import Count, count_of
from budgetkit.inputs.budgets import AnyCounter
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.message import Message
from budgetkit.plan import Ints
from budgetkit.promise import is_controlled, lacking, needed
from budgetkit.trace import Trace, usage_frame

Kind = Literal["all", "call", "text"]


@dataclass(frozen=True)
class AnswerReserve:
    """A reserve for the answer.

    Parameters
    ----------
    tokens : int
        The reserve, in tokens.
    risk : float
        Accepted average share of the next conversation's answers that are longer.
    conversations : int
        Number of conversations used.
    longest : int
        The longest observed answer, in tokens.
    cut_short : float
        Share of the observed answers that are longer than the reserve.

    Examples
    --------
    >>> AnswerReserve(90, risk=0.05, conversations=8, longest=90, cut_short=0.0).sentence
    'The longest answer seen has 90 tokens; no promise: a promise of 5 % needs 19 conversations, and there are 8.'
    """

    tokens: int
    risk: float
    conversations: int
    longest: int
    cut_short: float

    def __str__(self) -> str:
        """Return the result as a sentence."""
        return self.sentence

    @property
    def is_promise(self) -> bool:
        """True if there are enough conversations for a promise about the next one."""
        return self.conversations >= needed(self.risk)

    @property
    def sentence(self) -> str:
        """The promise of the reserve, or the reason why there is none."""
        if self.is_promise:
            return (
                f"On average, at most {100 * self.risk:g} % of the next answers are longer than {self.tokens:,} "
                f"tokens, judged by {self.conversations:,} conversations."
            )
        reason = lacking(self.conversations, self.risk)
        return f"The longest answer seen has {self.longest:,} tokens; no promise: {reason}."


def answer_reserve(
    traces: AnyTrace, counter: AnyCounter, risk: float = 0.05, kind: Kind = "all"
) -> AnswerReserve:
    """Find the smallest reserve for the answers of the next conversation.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        The conversations, or their paths or names.
    counter : str, Model or callable
        Function from text to tokens.
    risk : float, default 0.05
        Accepted share of longer answers.
    kind : {"all", "call", "text"}
        The answers to use: all, those with tool calls, or those without.

    Returns
    -------
    AnswerReserve
        A reserve by conformal risk control over conversations, or the longest observed answer without a promise if
        there are too few.

    Raises
    ------
    ValueError
        If no conversation has such an answer, or the risk is not between 0 and 1.

    Examples
    --------
    >>> import budgetkit as bk
    >>> reserve = answer_reserve(bk.load_traces("made-up-chats"), bk.counter("gpt-5.4"))
    >>> reserve.tokens, reserve.sentence
    (78, 'On average, at most 5 % of the next answers are longer than 78 tokens, judged by 48 conversations.')
    """
    check_choice("kind of answers", kind, ("all", "call", "text"))
    traces = traces_of(traces)
    lengths = recorded_lengths(traces, count_of(counter), kind)
    if not lengths:
        raise ValueError(
            f"No answers in {len(traces)} conversations. Pass conversations with answers."
        )
    sizes = np.unique(np.concatenate(lengths))
    # Fewer are above a larger number, so the least that will do is found by halving.
    high = len(sizes) - 1
    low = 0 if len(lengths) >= needed(risk) else high
    while low < high:
        middle = (low + high) // 2
        if is_controlled([float((of > sizes[middle]).mean()) for of in lengths], risk):
            high = middle
        else:
            low = middle + 1
    size = int(sizes[high])
    return AnswerReserve(
        tokens=size,
        risk=risk,
        conversations=len(lengths),
        longest=int(sizes[-1]),
        cut_short=float((np.concatenate(lengths) > size).mean()),
    )


def recorded_lengths(traces: Sequence[Trace], count: Count, kind: Kind = "all") -> list[Ints]:
    """Return the tokens of each conversation's answers.

    The length of an answer is the provider's number, if reported; otherwise its text and calls are counted.
    """
    lengths = []
    for trace in traces:
        answers = [
            place
            for place, message in enumerate(trace.messages)
            if message.role == "assistant"
            and (kind == "all" or (kind == "call") == bool(message.tool_calls))
        ]
        if not answers:
            continue
        billed: dict[int, int] = {}
        if trace.fields.get("usage"):
            usage = usage_frame(trace).dropna(subset=["message_index", "output_tokens"])
            usage = usage.loc[~usage["is_summary"], ["message_index", "output_tokens"]]
            billed = dict(usage.astype(int).values.tolist())
        tokens = [billed.get(place) or _counted(trace.messages[place], count) for place in answers]
        lengths.append(np.array(tokens, "int64"))
    return lengths


def _counted(message: Message, count: Count) -> int:
    """Count the text and the tool calls of an answer."""
    calls = (f"{call.name}{call.arguments}" for call in message.tool_calls)
    return count("".join([*message.texts, *calls]))


def reserve_of_answers(budget: Budget) -> Reserve | None:
    """Return the reserve for the answer, without thinking."""
    reserves = [
        reserve
        for reserve in budget.reserves
        if reserve.serves == OUTPUT and reserve.name != "thinking"
    ]
    return min(reserves, key=lambda reserve: reserve.name != OUTPUT, default=None)
