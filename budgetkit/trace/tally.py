"""Tally: a conversation's sizes by section, with one counter and framing.

    demand(turn, section) = tokens of earlier turns in the section + tokens that this turn adds

Tool schemas count in every turn, passages only in the turn that retrieved them. A request's priming, the few tokens
that start the answer, is added to the first message of the turn, so that a turn's items add up to its request.
Everything is counted once. A turn's items are slices of the tally, and the demand of all turns is computed from two
running sums per section.

An example with one token per letter: "sss" (system), "qqqqq" (user), "aaaa" (assistant), then "tt" (user):

    message              0           1            2            3
    past                 system 3    history 5    history 4    history 2      section and tokens after its turn
    present              system 3    current 5    history 4    current 2      section and tokens during its turn
    running past         history: 0 0 5 9 11                                  before each message, and after the last
    turn 2 (start 3, sent 4)    demand: system 3, history 9, current 2
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

import budgetkit.frames as pd
from budgetkit.budget.errors import wrong_type
from budgetkit.files import Table, read_toml
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message, Passage, Raw
from budgetkit.plan import Flags, Ints, Item
from budgetkit.requests.reading.parts import as_list, objects_in


@dataclass(frozen=True)
class Turn:
    """The range of messages of one turn.

    Parameters
    ----------
    number : int
        Turn number, counting from 1.
    start : int
        Index of the turn's first message, usually the user message.
    sent : int
        Index after the last message that the turn's last request sends.
    end : int
        Index after the turn's last message.
    """

    number: int
    start: int
    sent: int
    end: int


def turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Divide a conversation into turns.

    Each user message starts a turn. A conversation without a user message is one turn.

    Examples
    --------
    >>> turns([Message({"role": role}) for role in ("system", "user", "assistant", "user")])
    (Turn(number=1, start=1, sent=2, end=3), Turn(number=2, start=3, sent=4, end=4))
    """
    starts = [index for index, message in enumerate(messages) if message.role == "user"] or [
        opening(messages)
    ]
    bounds = pairwise([*starts, len(messages)])
    return tuple(
        Turn(number, start, _sent(messages, start, end), end)
        for number, (start, end) in enumerate(bounds, start=1)
    )


def opening(messages: Sequence[Message]) -> int:
    """Count the system messages that open a conversation.

    Examples
    --------
    >>> opening([Message({"role": role}) for role in ("system", "developer", "user", "system")])
    2
    """
    others = (index for index, message in enumerate(messages) if message.role not in SYSTEM_ROLES)
    return next(others, len(messages))


def last_user(messages: Sequence[Message]) -> int:
    """Return the index of the last user message.

    If there is no user message, return the last index.
    """
    users = (index for index in reversed(range(len(messages))) if messages[index].role == "user")
    return next(users, len(messages) - 1)


def _sent(messages: Sequence[Message], start: int, end: int) -> int:
    """Return the index after the messages of a turn's last request."""
    for index in reversed(range(start, end)):
        if messages[index].role in RESULT_ROLES:
            return end
        if messages[index].role == "assistant":
            return index
    return end


Roles = Mapping[str, str] | Callable[[Message], str]

DEFAULT_ROLES: Mapping[str, str] = Table(
    lambda: read_toml("presets.toml")["roles"]["working_memory"]
)


def past_section(message: Message, roles: Roles) -> str:
    """Return the section of a message of an earlier turn.

    Examples
    --------
    >>> past_section(Message({"role": "developer"}), DEFAULT_ROLES)
    'system'
    >>> past_section(Message({"role": "user"}), lambda message: message.role.upper())
    'USER'
    """
    if callable(roles):
        return roles(message)
    if message.role == "developer":
        return roles.get("developer", roles.get("system", "system"))
    return roles.get(message.role, message.role)


def present_section(message: Message, roles: Roles) -> str:
    """Return the section of a message of the current turn.

    Examples
    --------
    >>> present_section(Message({"role": "tool"}), DEFAULT_ROLES)
    'current'
    """
    if not callable(roles):
        key = "current" if message.role == "user" else "step"
        if key in roles and message.role in ("user", "assistant", *RESULT_ROLES):
            return roles[key]
    return past_section(message, roles)


def section_beside_call(section: str, of_call: str, pruned: str) -> str:
    """Return the section of a tool result, given its call's section.

    If the call is in the pruned section, the result is in this section, too.

    Examples
    --------
    >>> section_beside_call("tool", "history", "history"), section_beside_call("tool", "current", "history")
    ('history', 'tool')
    """
    return of_call if of_call == pruned else section


def enters_at_once(role: str, present: str, pruned: str) -> bool:
    """Return True if a message can be pruned in its own turn.

    The user's current question cannot be pruned.
    """
    return present == pruned and role != "user"


def schemas_message(tools: Sequence[Raw]) -> Message:
    """Wrap tool schemas in a message, to look up their section."""
    return Message({"role": "tools", "tools": list(tools)})


def roles_key(roles: Roles) -> Hashable:
    """Return a cache key that equal role tables share, rejecting other types."""
    if callable(roles):
        return roles
    if not isinstance(roles, Mapping):
        raise TypeError(wrong_type("roles", roles, "a mapping from role to section, or a function"))
    return tuple(roles.items())


_NEVER = np.iinfo(np.int64).max
#: Section of the messages that are in no request.
UNSENT = "not sent"


@dataclass(frozen=True)
class CountedMessages:
    """The tokens of messages, passages and tools under one counter and framing."""

    messages: Ints
    passages: Mapping[int, Sequence[int]]  # by the index of the message they were retrieved for
    tools: int  # all tool schemas together
    priming: int = 0


@dataclass(frozen=True)
class Tally:
    """A conversation as items, each with a section and tokens.

    Parameters
    ----------
    opening : int
        Number of opening system messages.
    past, present : list of Item
        The item of each message, as counted after its turn and during its turn.
    schemas : list of Item
        The tool schemas: one item, or none.
    retrieved : Mapping
        Mapping from the index of a message to the passages retrieved for it.
    priming : int
        Tokens of each request beyond its messages and schemas.
    gone : numpy.ndarray
        Index of the summary that replaced each message, as in :attr:`Trace.gone`, of shape (messages,) and dtype int64.
    """

    opening: int
    past: list[Item]
    present: list[Item]
    schemas: list[Item]
    retrieved: Mapping[int, list[Item]]
    priming: int
    gone: Ints

    def items(self, turn: Turn) -> list[Item]:
        """List one turn's items in the order of its request.

        Parameters
        ----------
        turn : Turn
            One turn of the conversation.

        Returns
        -------
        list of Item
            The opening system messages, the tool schemas, the earlier turns, the passages and this turn. The turn's
            first message includes the priming. If the turn has no message, the last message before the turn includes
            the priming.
        """
        # The messages that no compaction removed, of earlier turns and of this one.
        is_there = (self.gone[: turn.sent] >= turn.sent).tolist()
        past = list(compress(self.past, is_there[: turn.start]))
        present = list(compress(self.present[turn.start : turn.sent], is_there[turn.start :]))

        # The priming is added to the first message of the turn, or else to the last one before it.
        if (carrier := self._carrier(turn)) is not None:
            primed = replace(carrier, tokens=carrier.tokens + self.priming)
            if present:
                present[0] = primed
            else:
                past[-1] = primed
        head = min(self.opening, turn.start)
        return [*past[:head], *self.schemas, *past[head:], *self._passages_of(turn), *present]

    def demand(self, turns: Sequence[Turn], sections: Sequence[str]) -> pd.DataFrame:
        """Return :meth:`columns` as a frame with the index ``turn``."""
        index = pd.RangeIndex(1, len(turns) + 1, name="turn")
        return pd.DataFrame(self.columns(turns, sections), index=index)

    def columns(self, turns: Sequence[Turn], sections: Sequence[str]) -> dict[str, Ints]:
        """Return each turn's demand of every section.

        Parameters
        ----------
        turns : sequence of Turn
            The conversation's turns.
        sections : sequence of str
            Sections that get a column even without demand.

        Returns
        -------
        dict
            Mapping from each section to an int64 array with the tokens of each turn.
        """
        starts = np.array([turn.start for turn in turns])
        sents = np.array([turn.sent for turn in turns])
        table = {section: np.zeros(len(turns), "int64") for section in sections}

        def add(section: str, rows: Any, tokens: Any) -> None:
            if section not in table:
                table[section] = np.zeros(len(turns), "int64")
            table[section][rows] += tokens

        # All messages, without those that earlier compactions removed.
        parts: Any = [(1, None, sents >= 0)]
        compactions = {*self.gone[self.gone < _NEVER].tolist()}
        parts += [(-1, self.gone == at, sents > at) for at in compactions]
        for sign, only, rows in parts:
            for section, sums in running_sums(self.past, only).items():
                add(section, rows, sign * sums[starts[rows]])
            for section, sums in running_sums(self.present, only).items():
                add(section, rows, sign * (sums[sents] - sums[starts])[rows])
        # Schemas and passages are added for each request.
        for row, turn in enumerate(turns):
            for item in (*self.schemas, *self._passages_of(turn)):
                add(item.section, row, item.tokens)
            if (carrier := self._carrier(turn)) is not None:
                add(carrier.section, row, self.priming)
        return table

    def _carrier(self, turn: Turn) -> Item | None:
        """Return the item that includes the priming, or None.

        The result is None if the request has no message.
        """
        order = chain(range(turn.start, turn.sent), reversed(range(turn.start)))
        for at in order:
            if self.gone[at] >= turn.sent and self.past[at].section != UNSENT:
                return self.past[at] if at < turn.start else self.present[at]
        return None

    def passages(self, turns: Sequence[Turn]) -> dict[str, dict[int, list[tuple[float, int]]]]:
        """Return the score and tokens of each passage, by section and turn."""
        table: dict[str, dict[int, list[tuple[float, int]]]] = {}
        for number, turn in enumerate(turns, 1):
            for item in self._passages_of(turn):
                of_turn = table.setdefault(item.section, {}).setdefault(number, [])
                of_turn.append((item.score, item.tokens))
        return table

    def _passages_of(self, turn: Turn) -> list[Item]:
        """List the passages retrieved for the messages of a turn."""
        places: Sequence[int] = range(turn.start, turn.sent)
        if len(self.retrieved) < len(places):  # an agent's turn may be the whole conversation
            places = [place for place in sorted(self.retrieved) if place in places]
        return [item for place in places for item in self.retrieved.get(place, ())]


def unwritable(tokens: npt.ArrayLike) -> Ints:
    """Return token counts as a read-only array, which can be cached."""
    array = np.array(tokens, "int64")
    array.flags.writeable = False
    return array


def gone(messages: Sequence[Message], compactions: Any) -> Ints:
    """Return the index of the summary that replaced each message.

    A message that no summary replaced has the maximum int64 value.
    """
    last = np.full(len(messages), _NEVER, dtype="int64")
    for compaction in objects_in(compactions):
        at = compaction.get("at")
        first_kept = compaction.get("first_kept")
        if type(at) is not int or type(first_kept) is not int:
            continue
        if not 0 <= first_kept <= at < len(messages):
            continue

        # Everything before the first kept message is removed, except the listed ones. A message removed by an earlier
        # compaction keeps that compaction's index.
        stay = [slot for slot in as_list(compaction.get("kept")) if type(slot) is int]
        index = np.arange(opening(messages), first_kept)
        index = index[(last[index] == _NEVER) & ~np.isin(index, stay)]
        last[index] = at
    return last


def passage_scores(passages: Sequence[Passage]) -> list[float]:
    """Return the scores of passages.

    If a score is missing, all scores are derived from the ranks.
    """
    scores = [passage.score for passage in passages if passage.score is not None]
    if len(scores) < len(passages):
        return [1 / rank for rank in range(1, len(passages) + 1)]
    return scores


def groups_of(messages: Sequence[Message]) -> list[Hashable]:
    """Return each message's group, shared by a tool call and its results.

    A message that neither calls a tool nor answers a call has the group None.
    """
    groups = []
    callers: dict[str | None, Hashable] = {}
    for index, message in enumerate(messages):
        group = callers.get(answered_call(message))
        if message.tool_calls:
            group = ("tool calls", index)
            callers.update({call.id: group for call in message.tool_calls})
        groups.append(group)
    return groups


def answered_call(message: Message) -> str | None:
    """Return the id of the call that a message answers, or None.

    For a function message, which has no id, return "".
    """
    if message.role == "function":
        return ""
    return message.tool_call_id


def running_sums(items: Sequence[Item], only: Flags | None = None) -> dict[str, Ints]:
    """Return running token sums by section, starting with 0.

    If `only` is given, the items that it marks as false count as 0.
    """
    sections = dict.fromkeys(item.section for item in items)
    tokens = {section: [0] * (1 + len(items)) for section in sections}
    for place, item in enumerate(items):
        if only is None or only[place]:
            tokens[item.section][place + 1] = item.tokens
    return {section: np.cumsum(sizes, dtype="int64") for section, sizes in tokens.items()}
