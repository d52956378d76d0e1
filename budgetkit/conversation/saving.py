"""Save and load running conversations as plain data.

Only the remaining messages are saved, renumbered, so that the file stays small.

    {"budgetkit": 1, "budget": {...}, "section": "history", "tools": [...], "inbox": [...], "sent": [...],
     "requests": 3, "settings": {...},
     "conversation": {
         "slots":  [{"unit": 0, "tokens": 9, "turn": 1, "is_result": false, "importance": 0, "size": 9, "state": 1,
                     "role": "user"}, ...],
         "lines":  [{"slot": 0, "message": {"role": "user", "content": "Hello world"}, "tokens": 9, "past": "history",
                     "present": "current", "stamp": 1, "sent": true}, ...], ...}}

A slot is a message's position in the conversation; a line is a message that is or will be sent. For the settings see
:mod:`budgetkit.conversation.saved_settings`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated

from pydantic import Field, StrictBool, TypeAdapter

from budgetkit import state
from budgetkit.budget import Budget, brief
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.errors import wrong_kind
from budgetkit.conversation.running_tally import RunningTally, TallyEntry
from budgetkit.conversation.saved_settings import SavedSettings, refusing
from budgetkit.message import Data, Message
from budgetkit.plan import Item, with_undeclared
from budgetkit.pruning import NEVER, SHRUNK, WHOLE, History, Slots
from budgetkit.pruning.history import WAITING
from budgetkit.state import VERSION, check_version, plain_data

#: A whole number, as JSON writes it.
Whole = Annotated[int, Field(strict=True, ge=-MOST_TOKENS, le=2 * MOST_TOKENS)]
Text = Annotated[str, Field(strict=True)]


@dataclass(frozen=True)
class SavedSlot:
    """A message's position in the conversation, with its unit, size and state."""

    unit: Whole  # the first slot of those that leave together
    tokens: Whole  # of the message as it came
    turn: Whole
    is_result: StrictBool
    importance: Whole
    size: Whole  # what the history holds of it now, in tokens
    state: Whole  # see budgetkit.pruning.history
    role: Text


@dataclass(frozen=True)
class SavedLine:
    """A message to send, and the sections that count it."""

    slot: Whole
    message: Data
    tokens: Whole
    past: Text  # its section once its turn has passed
    present: Text  # its section while its turn lasts
    stamp: Whole  # a number that changes with its text
    sent: StrictBool


@dataclass(frozen=True)
class SavedPassage:
    """A passage retrieved for this turn."""

    section: Text
    tokens: Whole
    score: float
    passage: Data


@dataclass(frozen=True)
class SavedState:
    """The state of a conversation between two requests."""

    slots: list[SavedSlot]
    gone: list[Whole]
    closed: list[Whole]
    results: list[Whole]  # the tool results that are still whole
    summaries: list[tuple[Whole, Whole]]  # the slot of each, and the last turn that it covers
    lines: list[SavedLine]
    standing: list[SavedLine]  # the summaries, as they are sent
    this_turn: list[tuple[Whole, Text, Whole]]  # slots, later sections and tokens
    waiting: list[Whole]
    callers: dict[str, Whole]
    unanswered: list[tuple[Whole, list[Text]]]  # slots, and the ids of their calls
    answers: list[tuple[Whole, list[Whole]]]  # results that wait for others of a slot's calls
    passages: list[SavedPassage]
    system: list[Data]
    past: dict[str, Whole]
    present: dict[str, Whole]
    start: Whole
    turn: Whole
    entered: Whole
    stamps: Whole
    surplus: Whole
    is_text: StrictBool
    priming_section: Text


_OF_SLOTS = ("tokens", "turn", "is_result", "importance", "role")
_PLAIN = ("turn", "entered", "stamps", "surplus", "is_text", "priming_section")


@dataclass(frozen=True)
class SavedFile:
    """The whole file except its budget, which :mod:`budgetkit.state` reads."""

    settings: SavedSettings
    section: Text
    tools: list[Data]
    conversation: SavedState
    inbox: list[Data]
    sent: list[Whole]
    requests: Whole

    def fill(self, tally: RunningTally, budget: Budget) -> list[Message]:
        """Restore the messages of a tally; return those that it has not taken yet."""
        if tally.rules.section != self.section:
            raise ValueError(
                f"The saved conversation prunes {brief(self.section)}, not {brief(tally.rules.section)}. "
                "Pass the roles and section that it was saved with."
            )
        with refusing():
            tally.tools = self.tools
            unpack(tally, self.conversation)
            _refuse_strangers(tally, self.conversation)
            with_undeclared(replace(budget, deficit="signed"), _sections(tally))
            tally.count_schemas()
            tally.last_stamps = self.sent
            tally.requests = self.requests
            return [Message(raw) for raw in self.inbox]


adapter = cache(TypeAdapter)  # what reads and writes a class; made once


def saved(
    budget: Budget,
    settings: SavedSettings,
    tally: RunningTally,
    inbox: Sequence[Message],
) -> Data:
    """Return a conversation as plain data."""
    return {
        "budgetkit": VERSION,
        "budget": state.to_dict(budget)["budget"],
        "settings": vars(settings),
        "section": tally.rules.section,
        "tools": list(tally.tools),
        "conversation": adapter(SavedState).dump_python(packed(tally)),
        "inbox": [message.raw for message in inbox],
        "sent": tally.last_stamps,
        "requests": tally.requests,
    }


def restored(text: str) -> tuple[Budget, SavedFile]:
    """Read a saved conversation: its budget, and all else."""
    with refusing():
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError(wrong_kind("saved text", data, "an object"))
        version = data.pop("budgetkit")
    check_version(version, "saved conversation")
    with refusing():
        budget = state.from_dict({"budgetkit": version, "budget": data.pop("budget")})
        if not isinstance(budget, Budget):
            raise ValueError("it contains a plan instead of a budget")
        return budget, plain_data.validate_data(adapter(SavedFile), data)


def _refuse_strangers(tally: RunningTally, state: SavedState) -> None:
    """Reject parts that refer to unknown messages.

    A request with them would fail or hang.
    """
    history = tally.history
    entries = tally.entries
    slots = range(len(history.slots))
    inside = [slot for slot in slots if history.state[slot] in (WHOLE, SHRUNK)]
    waits = [slot for slot in slots if history.state[slot] == WAITING]
    left = [slot for slot in slots if history.state[slot] > SHRUNK]
    answers = [slot for results in tally.early_results.values() for slot in results]
    numbers = [
        *entries,
        *tally.summaries,
        *tally.this_turn,
        *tally.calling_slots.values(),
        *tally.open_calls,
        *tally.early_results,
    ]
    parts: list[tuple[str, Collection[int], Container[int]]] = [
        (
            "its parts refer to",
            {*numbers, *history.slots.unit, *history.closed, *history.whole_results},
            slots,
        ),
        (
            "its summaries stand for",
            [slot for slot, _ in state.summaries],
            tally.summaries.keys() - {*inside},
        ),
        ("its history holds", inside, entries),
        ("its history waits for", tally.not_entered, entries.keys() & {*waits}),
        ("its calls wait for", answers, tally.unsent),
        ("its history dropped", state.gone, left),
    ]
    for what, named, places in parts:
        strange = [
            slot for slot, times in Counter(named).items() if times > 1 or slot not in places
        ]
        if strange:
            raise ValueError(
                f"{what} message {strange[0]}, which is missing elsewhere in the file or contradicted there"
            )
    if not 0 <= tally.start <= len(slots):
        raise ValueError(
            f"its current turn starts at message {tally.start}, but it has only {len(slots)}"
        )


def _sections(tally: RunningTally) -> list[str]:
    """List the sections that the next requests may use."""
    entries = [*tally.entries.values(), *tally.summaries.values()]
    of_entries = [section for entry in entries for section in (entry.past, entry.present)]
    turn = (past for past, _ in tally.this_turn.values())
    return [*dict.fromkeys([*tally.demand(), *tally.past, *tally.present, *of_entries, *turn])]


def packed(tally: RunningTally) -> SavedState:
    """Return the remaining state as rows, counting its messages from 0."""
    history = tally.history
    slots = tally.history.slots

    # what is still there: what is sent, and what that goes with
    slots_there = {*tally.entries, *tally.summaries, *tally.this_turn}
    if tally.start < len(slots):
        slots_there.add(tally.start)
    slots_there |= {slots.unit[slot] for slot in slots_there}
    order = sorted(slots_there)
    new = {slot: number for number, slot in enumerate(order)}

    rows = [
        SavedSlot(
            unit=new[slots.unit[slot]],
            size=history.size[slot],
            state=history.state[slot],
            **{name: getattr(slots, name)[slot] for name in _OF_SLOTS},
        )
        for slot in order
    ]
    passages = [
        SavedPassage(
            section=item.section,
            tokens=item.tokens,
            score=item.score,
            passage=dict(item.payload.raw),
        )
        for item in tally.passages
    ]
    return SavedState(
        slots=rows,
        gone=[new[slot] for slot in order if history.gone[slot] != NEVER],
        closed=[new[slot] for slot in order if slot in history.closed],
        results=[new[slot] for slot in order if slot in history.whole_results],
        summaries=[(new[place], turn) for place, turn in history.summaries.items()],
        lines=[_saved_line(new[slot], line) for slot, line in tally.entries.items()],
        standing=[_saved_line(new[slot], line) for slot, line in tally.summaries.items()],
        this_turn=[
            (new[slot], section, tokens) for slot, (section, tokens) in tally.this_turn.items()
        ],
        waiting=[new[slot] for slot in tally.not_entered],
        callers={id: new[slot] for id, slot in tally.calling_slots.items() if slot in new},
        unanswered=[
            (new[slot], sorted(ids)) for slot, ids in tally.open_calls.items() if slot in new
        ],
        answers=[
            (new[slot], [new[result] for result in results])
            for slot, results in tally.early_results.items()
        ],
        passages=passages,
        system=[dict(message.raw) for message in tally.system],
        past=dict(tally.past),
        present=dict(tally.present),
        start=bisect_left(order, tally.start),
        **{name: getattr(tally, name) for name in _PLAIN},
    )


def unpack(tally: RunningTally, state: SavedState) -> None:
    """Fill a tally from a state returned by `packed`."""
    rows = state.slots
    names = ("unit", *_OF_SLOTS)
    slots = Slots(**{name: [getattr(row, name) for row in rows] for name in names})
    history = tally.history = History(slots)
    history.take_up(
        size=[row.size for row in rows],
        state=[row.state for row in rows],
        gone=state.gone,
        summaries=dict(state.summaries),
        closed=state.closed,
        whole_results=state.results,
    )
    tally.entries = {line.slot: _line(line) for line in state.lines}
    for line in tally.entries.values():
        tally.note_form(line.message)
    tally.unsent = {slot for slot, line in tally.entries.items() if not line.sent}
    tally.this_turn = {slot: (section, tokens) for slot, section, tokens in state.this_turn}
    tally.not_entered = list(state.waiting)
    tally.calling_slots = dict(state.callers)
    tally.open_calls = {slot: set(ids) for slot, ids in state.unanswered}
    tally.early_results = {slot: list(results) for slot, results in state.answers}
    tally.passages = [
        Item(row.section, row.tokens, score=row.score, payload=Message(row.passage))
        for row in state.passages
    ]
    tally.past = Counter(state.past)
    tally.present = Counter(state.present)
    tally.start = state.start
    tally.system = tuple(map(Message, state.system))
    for name in _PLAIN:
        setattr(tally, name, getattr(state, name))
    tally.summaries = {line.slot: _line(line) for line in state.standing}


def _saved_line(slot: int, line: TallyEntry) -> SavedLine:
    fields = {name: getattr(line, name) for name in TallyEntry.__slots__}
    return SavedLine(slot=slot, **fields | {"message": dict(line.message.raw)})


def _line(row: SavedLine) -> TallyEntry:
    fields = {name: getattr(row, name) for name in TallyEntry.__slots__}
    return TallyEntry(**fields | {"message": Message(row.message)})
