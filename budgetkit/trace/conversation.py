"""Trace: a conversation, its turns, its counts and its demand by section."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import block, brief, many, one_line
from budgetkit.budget.amounts import whole_number
from budgetkit.budget.errors import wrong_kind
from budgetkit.counters import Count, count_of
from budgetkit.counters.memory import Made, Memo
from budgetkit.message import SYSTEM_ROLES, Message, Passage, Raw, empty_notices
from budgetkit.models import Model, resolve
from budgetkit.plan import Ints, Item
from budgetkit.requests import DEFAULT_FRAMING, Framing, framing_for, framing_of, read_tools
from budgetkit.requests.billing.charges import uncharged_thinking
from budgetkit.requests.reading.formats import format_label
from budgetkit.requests.reading.parts import objects_in
from budgetkit.trace.importers.documents import messages_of
from budgetkit.trace.tally import (
    DEFAULT_ROLES,
    CountedMessages,
    Roles,
    Tally,
    Turn,
    gone,
    groups_of,
    opening,
    passage_scores,
    past_section,
    present_section,
    roles_key,
    schemas_message,
    turns,
    unwritable,
)

Counts = str | Model | Count
_MOST_KEPT = 32


def title_in(fields: Raw) -> str:
    r"""Return the title among the fields of a conversation, or "".

    >>> title_in({"title": " ", "name": "Late\nparcel"})
    'Late parcel'
    """
    names = map(fields.get, ("title", "name"))
    return next(
        (" ".join(name.split()) for name in names if isinstance(name, str) and name.strip()), ""
    )


@dataclass(frozen=True, repr=False)
class Trace:
    """A conversation, with its tools and passages.

    A request's priming, the few tokens that start the answer, is charged to the section of the turn's first message. So
    the demand of a turn equals ``framing.request`` exactly.

    Parameters
    ----------
    id : str
        Name of the conversation.
    messages : sequence
        At least one message, in order: Messages, dictionaries in OpenAI's chat format, or objects of OpenAI's SDK or
        LangChain. They are stored as a tuple of Message.
    tools : tuple of Mapping
        Tool schemas, in any format that :mod:`budgetkit.requests.reading.tools` reads.
    contexts : Mapping
        Mapping from the index of a message to the passages retrieved for it.
    meta : Mapping
        Metadata of the conversation from its file.
    source : str
        File and line that the conversation was read from.
    fields : Mapping
        All other fields of the conversation, unchanged.

    Raises
    ------
    ValueError
        If there are no messages.
    TypeError
        If a value is not a message.

    Examples
    --------
    >>> trace = Trace("toy", tuple(map(Message, [
    ...     {"role": "system", "content": "Be brief."},
    ...     {"role": "user", "content": "Hello world"},
    ...     {"role": "assistant", "content": "Hello."},
    ...     {"role": "user", "content": "How are you?"},
    ... ])))
    >>> words = lambda text: len(text.split())
    >>> trace.demand(words, framing=Framing())[["system", "history", "current"]]
          system  history  current
    turn
    1          2        0        2
    2          2        3        3
    """

    id: str
    messages: tuple[Message, ...] = ()
    tools: tuple[Raw, ...] = ()
    contexts: Mapping[int, tuple[Passage, ...]] = field(default_factory=dict)
    meta: Raw = field(default_factory=dict)
    source: str = ""
    fields: Raw = field(default_factory=dict, repr=False)
    # Counting is slow and a trace never changes, so counts are cached.
    _memo: Memo = field(
        default_factory=lambda: Memo(_MOST_KEPT), init=False, repr=False, compare=False
    )

    def __repr__(self) -> str:
        parts = {"message": len(self.messages), "tool": len(self.tools)}
        parts["passage"] = sum(map(len, self.contexts.values()))
        named = ", ".join(many(number, name) for name, number in parts.items() if number)
        return f"Trace({brief(self.id)}, {named})"

    def _repr_html_(self) -> str:
        texts: dict[str, list[int]] = {}
        for message in self.messages:
            texts.setdefault(message.role, []).append(len(message.text))
        rows = [(role, len(sizes), sum(sizes)) for role, sizes in texts.items()]
        return block(
            f"Trace {self.id}: {many(len(self.turns), 'turn')}",
            [(role, characters) for role, _, characters in rows],
            [("role", "messages", "characters"), *rows],
            [
                f"{many(len(self.tools), 'tool')}, and passages for {many(len(self.contexts), 'message')}.",
                *self.warnings,
            ],
        )

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise TypeError(
                wrong_kind("id", self.id, "a string: the id comes first, Trace('mine', messages)")
            )
        if isinstance(self.messages, str | bytes | Mapping) or not isinstance(
            self.messages, Iterable
        ):
            kind = type(self.messages).__name__
            raise TypeError(f"Invalid messages of type {kind}. Expected a list of messages.")
        messages = tuple(self.messages)
        are_read = all(isinstance(message, Message) for message in messages)
        object.__setattr__(self, "messages", messages if are_read else messages_of(messages))
        object.__setattr__(self, "tools", read_tools(self.tools).listed)
        if not self.messages:
            raise ValueError(
                f"No messages in trace {brief(self.id)}. Pass at least one with a role."
            )

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns in order.

        A conversation without a user message is one turn.
        """
        return turns(self.messages)

    @property
    def turn_numbers(self) -> Ints:
        """The turn number of each message; 0 before the first turn."""
        starts = [turn.start for turn in self.turns]
        return np.searchsorted(starts, np.arange(len(self.messages)), "right").astype("int64")

    def history_section(self, roles: Roles) -> str:
        """Return the section of user messages from earlier turns."""
        users = (message for message in self.messages if message.role == "user")
        return past_section(next(users, Message({"role": "user"})), roles)

    @property
    def title(self) -> str:
        """The conversation's title on one line.

        If there is no title, this is the id.
        """
        return one_line(title_in(self.fields) or self.id)

    @cached_property
    def model(self) -> str | None:
        """The conversation's model, if the file names one.

        If the file names several models, this is the last one used that budgetkit knows or, if it knows none of them,
        the last one used.
        """
        answers = [row.get("model") for row in objects_in(self.fields.get("usage"))]
        models = [*reversed(answers), self.fields.get("model"), self.meta.get("model")]
        names = [name for name in models if isinstance(name, str) and name.strip()]
        # an answer made by the program itself, such as an error, has a model such as "<synthetic>"
        known = (name for name in dict.fromkeys(names) if resolve(name).is_known)
        return next(known, names[0] if names else None)

    @property
    def framing(self) -> Framing:
        """The framing for the conversation's model.

        If the file names no model, this is OpenAI's framing.
        """
        if self.model is None:
            return DEFAULT_FRAMING
        return framing_for(self.model)

    def framing_of(self, count: object, framing: Framing | None = None) -> Framing:
        """Return a given framing, or a default one.

        The default is the framing of the conversation's model or, if the file names no model, the framing of the
        counter's model.
        """
        if framing is None and self.model is not None:
            return self.framing
        return framing_of(count, framing)

    @property
    def format(self) -> str:
        """The format of the file, such as "ChatGPT export". Default: "OpenAI chat"."""
        return format_label(str(self.fields.get("format") or "openai-chat"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about content that was omitted, changed or not counted.

        If no message has any content, the first warning says so.
        """
        saved = self.fields.get("warnings")
        notes: list[str] = []
        if isinstance(saved, list | tuple):
            notes += (note for note in saved if isinstance(note, str))
        if self.is_silent:
            where = f"the {many(len(self.messages), 'message')} ({self.format})"
            notes.insert(0, f"No text in {where}. Export the conversation with its texts.")
        else:
            notes += self._memo.once("empty", lambda: empty_notices(self.messages))
        # Without a model, nobody knows which thinking the provider drops.
        rules = None if self.framing is DEFAULT_FRAMING else self.framing.rules
        if kinds := [*self.uncounted, *uncharged_thinking(self.messages, "chat", rules)]:
            notes.append(f"Not counted: {', '.join(kinds)}, whose tokens only the provider knows.")
        return tuple(notes)

    @property
    def is_silent(self) -> bool:
        """True if no message has text, a tool call or an image."""
        return all(message.is_silent for message in self.messages)

    @property
    def compactions(self) -> Sequence[Any]:
        """The compactions recorded in the file, in order."""
        return self.fields.get("compactions") or ()

    @cached_property
    def gone(self) -> Ints:
        """The index of the summary that replaced each message.

        A message that no summary replaced has the maximum int64 value.
        """
        return gone(self.messages, self.compactions)

    @cached_property
    def uncounted(self) -> tuple[str, ...]:
        """The kinds of content that cannot be counted, such as audio."""
        kinds = {kind for message in self.messages for kind in message.uncounted}
        return tuple(sorted(kinds.union(read_tools(self.tools).uncounted)))

    def counts(self, counter: Counts, framing: Framing | None = None) -> Ints:
        """Count the tokens of every message, and cache the counts.

        Parameters
        ----------
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.
        framing : Framing, optional
            Tokens that a message costs beyond its text; default: as in :meth:`framing_of`.

        Returns
        -------
        numpy.ndarray
            A read-only array with the tokens of each message, of shape (messages,) and dtype int64.
        """
        return self._counted(count_of(counter), self.framing_of(counter, framing)).messages

    def answers(self, counter: Counts, framing: Framing | None = None) -> Ints:
        """Count the output tokens of each answer, and cache the counts.

        Parameters
        ----------
        counter, framing
            As in :meth:`counts`.

        Returns
        -------
        numpy.ndarray
            A read-only array with the tokens of each answer, and 0 for other messages, of shape (messages,) and dtype
            int64.
        """
        framing = self.framing_of(counter, framing)
        count = count_of(counter)

        def counted() -> Ints:
            if framing.rules is not None:
                return unwritable(framing.answers(self.messages, count))
            # The bill of an answer is the count of its message, which is known.
            return unwritable(
                self.counts(count, framing)
                * [message.role == "assistant" for message in self.messages]
            )

        return self._memo.once(("answers", count, framing), counted)

    def demand(
        self, counter: Counts, roles: Roles | None = None, framing: Framing | None = None
    ) -> pd.DataFrame:
        """Return the demand of every section in each turn.

        Parameters
        ----------
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.
        roles : mapping or callable, optional
            A mapping from roles to sections (see :mod:`budgetkit.trace.tally`), or a function that returns a message's
            section.
        framing : Framing, optional
            Tokens that a message costs beyond its text; default: as in :meth:`framing_of`.

        Returns
        -------
        pandas.DataFrame
            One row per turn (index ``turn``, counting from 1) and one int64 column per section, in tokens.
            ``attrs["roles"]`` has the mapping of roles, or None for a function. ``attrs["passages"]`` has the score and
            tokens of each passage by section and turn.
        """
        roles = DEFAULT_ROLES if roles is None else roles
        tally = self.tally(counter, roles, framing)
        sections = [] if callable(roles) else list(roles.values())
        frame = tally.demand(self.turns, sections)
        frame.attrs["passages"] = tally.passages(self.turns)
        frame.attrs["roles"] = None if callable(roles) else dict(roles)
        return frame

    def items(
        self, turn: int, counter: Counts, roles: Roles | None = None, framing: Framing | None = None
    ) -> list[Item]:
        """List the items of a turn's request.

        Parameters
        ----------
        turn : int
            Turn number, counting from 1.
        counter, roles, framing
            As in :meth:`demand`.

        Returns
        -------
        list of Item
            The items in the order of the request: opening system messages, tool schemas, earlier turns, passages, and
            this turn. Each payload is a Message. A tool call and its results share a group, and the first message of
            the turn includes the priming.

        Raises
        ------
        ValueError
            If the conversation has no such turn.
        """
        return self.tally(counter, roles, framing).items(self._turn(turn))

    def request(self, turn: int) -> tuple[Message, ...]:
        """Return the messages of a turn's last request, without passages."""
        sent = self._turn(turn).sent
        return tuple(compress(self.messages, self.gone[:sent] >= sent))

    def tally(
        self, counter: Counts, roles: Roles | None = None, framing: Framing | None = None
    ) -> Tally:
        """Assign every message to its section.

        Parameters
        ----------
        counter, roles, framing
            As in :meth:`demand`.

        Returns
        -------
        Tally
            The items of each message during and after its turn, of tool schemas and of passages. The result is cached.
        """
        roles = DEFAULT_ROLES if roles is None else roles
        framing = self.framing_of(counter, framing)
        count = count_of(counter)
        key = ("tally", count, framing, roles_key(roles))
        return self._memo.once(key, lambda: self._placed(self._counted(count, framing), roles))

    def _placed(self, counted: CountedMessages, roles: Roles) -> Tally:
        """Assign all counted messages to sections."""
        table = None
        if isinstance(roles, Mapping):
            roles = table = dict(roles)
        groups = groups_of(self.messages)
        sized = list(zip(self.messages, counted.messages.tolist(), groups, strict=True))
        past, present = (
            [
                Item(place(message, roles), size, group=group, payload=message, roles=table)
                for message, size, group in sized
            ]
            for place in (past_section, present_section)
        )
        schemas = []
        if self.tools:
            message = schemas_message(self.tools)
            section = past_section(message, roles)
            schemas = [Item(section, counted.tools, payload=message, roles=table)]
        retrieved = {
            index: [
                Item(past_section(p.message, roles), size, score, payload=p.message, roles=table)
                for p, size, score in zip(
                    passages, counted.passages[index], passage_scores(passages), strict=True
                )
            ]
            for index, passages in self.contexts.items()
        }
        return Tally(
            opening=opening(self.messages),
            past=past,
            present=present,
            schemas=schemas,
            retrieved=retrieved,
            priming=counted.priming,
            gone=self.gone,
        )

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The role of each message."""
        return tuple(message.role for message in self.messages)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the cached value of a key, or make and cache it.

        A trace never changes, so the value stays valid.
        """
        return self._memo.once(key, make)

    def _turn(self, number: int) -> Turn:
        place = whole_number(number) or 0
        if not 1 <= place <= len(self.turns):
            raise ValueError(
                f"No turn {brief(number)} in trace {brief(self.id)}. Choose 1 to {len(self.turns)}."
            )
        return self.turns[place - 1]

    def _counted(self, count: Count, framing: Framing) -> CountedMessages:
        """Count the tokens of the whole conversation in one call."""

        def made() -> CountedMessages:
            passages = [passage.message for group in self.contexts.values() for passage in group]
            is_responses = self.fields.get("format") in ("codex", "openai-responses")
            form = "responses" if is_responses else "chat"
            sizes = framing.messages([*self.messages, *passages], count, form)
            sizes_of_passages = iter(sizes[len(self.messages) :])
            system = [message for message in self.messages if message.role in SYSTEM_ROLES][:1]
            return CountedMessages(
                messages=unwritable(sizes[: len(self.messages)]),
                passages={
                    index: [next(sizes_of_passages) for _ in group]
                    for index, group in self.contexts.items()
                },
                tools=framing.schemas(self.tools, count, system),
                priming=framing.primed(bool(system)),
            )

        return self._memo.once(("counted", count, framing), made)
