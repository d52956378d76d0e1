"""What has left a conversation and comes back: which of its texts a question asks for, by the words they share.

    score(text) = sum over words of the question of idf x tf (k + 1) / (tf + k (1 - b + b length / mean length))
    idf         = ln(1 + (n - df + 0.5) / (df + 0.5))

BM25 with k = 1.5 and b = 0.75 (S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009). A word is a run of letters and digits; where a script writes no gaps, a character.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import regex

from budgetkit.message import Message
from budgetkit.pruning.dropping import StartOn
from budgetkit.pruning.history import NEVER, History, Slots
from budgetkit.pruning.policies.pruners import BringBack

Floats = npt.NDArray[np.float64]
_WORD: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|[\p{L}\p{M}\p{N}_]+",
    regex.V1,
)
_K = 1.5
_B = 0.75


def words_of(text: str) -> list[str]:
    """Return the words of a text.

    Examples
    --------
    >>> words_of("Where is A-1734?"), words_of("在哪里")
    (['where', 'is', 'a', '1734'], ['在', '哪', '里'])
    """
    return [word.casefold() for word in _WORD.findall(text)]


class Index:
    """Texts by their words; of a growing list, any beginning can be asked.

    Examples
    --------
    >>> index = Index(["the parcel is late", "thank you", "which parcel"])
    >>> index.scores("my parcel", 2).round(2).tolist(), index.scores("my parcel", 3).round(2).tolist()
    ([0.6, 0.0], [0.38, 0.0, 0.53])
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._lengths = array("d")
        self._found: dict[str, tuple[array[int], array[float]]] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add one text, the next of the list."""
        words = words_of(text)
        for word, often in Counter(words).items():
            places, times = self._found.setdefault(word, (array("q"), array("d")))
            places.append(len(self._lengths))
            times.append(often)
        self._lengths.append(len(words))

    def scores(self, question: str, first: int) -> Floats:
        """Return a score for each of the first texts, 0 where no word is shared."""
        lengths = np.array(self._lengths[:first])
        total = np.zeros(first)
        if not first:
            return total
        long = _K * (1 - _B + _B * lengths / max(float(lengths.mean()), 1.0))
        for word in set(words_of(question)) & self._found.keys():
            places, times = self._found[word]
            count_before = bisect_left(places, first)
            at = np.array(places[:count_before])
            often = np.array(times[:count_before])
            rare = np.log(1 + (first - count_before + 0.5) / (count_before + 0.5))
            total[at] += rare * often * (_K + 1) / (often + long[at])
        return total


def chosen(
    score: Floats,
    left: list[bool],
    slots: Slots,
    beside: dict[int, list[int]],
    room: int,
    neighbours: int,
) -> tuple[int, ...]:
    """Take the best hits that fit, each with the messages beside it."""
    places = set[int]()
    for hit in np.argsort(-score, kind="stable")[: int((score > 0).sum())].tolist():
        near = [hit, *(hit + sign * step for step in range(1, neighbours + 1) for sign in (1, -1))]
        for place in near:
            if not 0 <= place < len(score) or not left[place] or place in places:
                continue
            whole = [slot for slot in beside[slots.unit[place]] if left[slot]]
            size = sum(slots.tokens[slot] for slot in whole)
            if size <= room:
                places.update(whole)
                room -= size
    return tuple(sorted(places))


def beginning_with(back: tuple[int, ...], role: str, slots: Slots) -> tuple[int, ...]:
    """Leave out what stands before the first message of a role, where these messages begin a request."""
    first = next((place for place, slot in enumerate(back) if slots.role[slot] == role), len(back))
    return back[first:]


def units_of(slots: Slots) -> dict[int, list[int]]:
    """Return the slots of each unit, by the unit's number."""
    beside: dict[int, list[int]] = {}
    for slot, unit in enumerate(slots.unit):
        beside.setdefault(unit, []).append(slot)
    return beside


class Archive:
    """Every message of a conversation, as it came, and where its words stand."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = []
        self._index = Index()
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Add one message, with its words."""
        self.messages.append(message)
        self._index.add(spoken(message))

    def returns(
        self, history: History, policy: BringBack, limit: int, start: int, start_on: StartOn = "any"
    ) -> tuple[int, ...]:
        """Name the messages that come back to a request whose turn starts here."""
        left = [gone != NEVER for gone in history.gone]
        if not any(left[:start]):
            return ()
        return brought_back(
            policy,
            self._index,
            history.slots,
            units_of(history.slots),
            left=left,
            turn=self.messages[start:],
            start=start,
            limit=limit,
            history_tokens=history.tokens,
            begins_with="any" if history.members else start_on,
        )


def brought_back(
    policy: BringBack,
    index: Index,
    slots: Slots,
    beside: dict[int, list[int]],
    *,
    left: list[bool],
    turn: Sequence[Message],
    start: int,
    limit: int,
    history_tokens: int,
    begins_with: StartOn,
) -> tuple[int, ...]:
    """Name the messages that come back to a request whose turn starts at a slot, of those that have left before it.

    It is the one step of a replay and of a running conversation. What comes back has the policy's part of the history's
    limit, and no more than what the history leaves of that.
    """
    left_before = [*left[:start], *[False] * (len(left) - start)]
    scores = index.scores(question(turn), start) * left_before[:start]
    room = min(policy.returns(limit), limit - history_tokens)
    back = chosen(scores, left_before, slots, beside, room, policy.neighbours)
    if begins_with == "any":
        return back
    return beginning_with(back, begins_with, slots)


def question(turn: Sequence[Message]) -> str:
    """Return what a turn asks: what its user says, or how it begins."""
    return " ".join(message.text for message in turn if message.role == "user") or (
        turn[0].text if turn else ""
    )


def spoken(message: Message) -> str:
    """Return the words of a message, those of its tool calls among them."""
    return " ".join([message.text, *(call.arguments for call in message.tool_calls)])
