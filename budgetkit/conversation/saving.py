"""Save and load running conversations as plain data.

Only the remaining messages are saved, renumbered, so that the file stays small.

    {"budgetkit": 1, "budget": {...}, "settings": {...}, "section": "history",
     "history": {"slots": [[9, 1, -1, 9, 0, 1, false, 0, "user"], ...], "summaries": {}, ...},
     "tally": {"tools": [...], "entries": {"0": {"message": {"role": "user", "content": "Hello world"}, ...}}, ...},
     "inbox": [...]}

A slot is a message's position in the conversation. The fields are those of
:class:`budgetkit.conversation.running_tally.TallyState` and of `SavedHistory`; for the settings see
:mod:`budgetkit.conversation.saved_settings`. pydantic writes, reads and checks all fields.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import TypeAdapter

from budgetkit import state
from budgetkit.budget import Budget, brief, many
from budgetkit.budget.errors import wrong_kind
from budgetkit.conversation.running_tally import (
    SORTED,
    AnyMessage,
    RunningTally,
    TallyState,
    Whole,
)
from budgetkit.conversation.saved_settings import SavedSettings, refusing
from budgetkit.message import Data, Message
from budgetkit.plan import with_undeclared
from budgetkit.pruning import NEVER, SHRUNK, WHOLE, History, Slots
from budgetkit.pruning.history import WAITING
from budgetkit.state import VERSION, check_version, plain_data


class SavedSlot(NamedTuple):
    """One slot of the history: its size, state and row of `Slots`."""

    size: Whole  # its tokens in the history now
    state: Whole  # see budgetkit.pruning.history
    gone: Whole  # the request in which it was dropped, or -1 if it was not dropped
    tokens: Whole  # of the original message
    unit: Whole  # the first slot of its unit
    turn: Whole
    is_result: bool
    importance: Whole
    role: str


@dataclass(frozen=True)
class SavedHistory:
    """The history of a conversation, with one row per slot."""

    slots: list[SavedSlot]
    summaries: dict[Whole, Whole]  # by slot: the last turn that its summary covers
    closed: Annotated[set[Whole], SORTED]
    whole_results: Annotated[set[Whole], SORTED]

    @classmethod
    def of(cls, history: History) -> SavedHistory:
        """Return the saved form of a history."""
        columns = history.size, history.state, history.gone, *vars(history.slots).values()
        return cls(
            slots=[*map(SavedSlot, *columns)],
            summaries=history.summaries,
            closed=history.closed,
            whole_results=history.whole_results,
        )

    def restored(self) -> History:
        """Return the history that was saved."""
        places = range(len(SavedSlot._fields))
        columns: list[Any] = [[row[place] for row in self.slots] for place in places]
        size, state, gone, *slots = columns
        return History.restored(
            slots=Slots(*slots),
            size=size,
            state=state,
            gone=gone,
            summaries=self.summaries,
            closed=self.closed,
            whole_results=self.whole_results,
        )


@dataclass(frozen=True)
class SavedConversation:
    """A saved conversation, without its version and budget.

    :mod:`budgetkit.state` reads the budget.
    """

    settings: SavedSettings
    section: str
    history: SavedHistory
    tally: TallyState
    inbox: list[AnyMessage]

    def fill(self, tally: RunningTally, budget: Budget) -> list[Message]:
        """Restore the messages of a tally, and return the uncounted messages."""
        if tally.rules.section != self.section:
            raise ValueError(
                f"The saved conversation prunes {brief(self.section)}, not {brief(tally.rules.section)}. "
                "Pass the roles and section that it was saved with."
            )
        with refusing():
            vars(tally).update(vars(self.tally))
            tally.history = self.history.restored()
            _refuse_strangers(tally, self.history.summaries)
            with_undeclared(replace(budget, deficit="signed"), _sections(tally))
            tally.count_schemas()
        return self.inbox


@cache
def _adapter() -> TypeAdapter[SavedConversation]:
    return TypeAdapter(SavedConversation)


def saved(
    budget: Budget, settings: SavedSettings, tally: RunningTally, inbox: Sequence[Message]
) -> Data:
    """Return a conversation as plain data."""
    tally.compact()
    conversation = SavedConversation(
        settings=settings,
        section=tally.rules.section,
        history=SavedHistory.of(tally.history),
        tally=tally,
        inbox=[*inbox],
    )
    return {**state.to_dict(budget), **_adapter().dump_python(conversation)}


def restored(text: str) -> tuple[Budget, SavedConversation]:
    """Read a saved conversation's budget and its other parts."""
    with refusing():
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError(wrong_kind("saved text", data, "an object"))
        version = data.pop("budgetkit")
    check_version(version, "saved conversation")
    with refusing():
        budget = state.from_dict({"budgetkit": VERSION, "budget": data.pop("budget")})
        if not isinstance(budget, Budget):
            raise ValueError("it contains a plan instead of a budget")
        return budget, plain_data.validate_data(_adapter(), data)


def _refuse_strangers(tally: RunningTally, summaries: Collection[int]) -> None:
    """Reject a saved conversation with unknown or contradictory message references.

    The next request of such a conversation would fail or hang.
    """
    history = tally.history
    entries = tally.entries
    slots = range(len(history.slots))
    state = history.state
    inside = [slot for slot in slots if state[slot] in (WHOLE, SHRUNK)]
    waiting = {slot for slot in slots if state[slot] == WAITING}
    answers = [slot for results in tally.early_results.values() for slot in results]
    named = {*entries, *tally.summaries, *tally.this_turn, *tally.calling_slots.values()}
    named |= {*tally.open_calls, *tally.early_results, *history.slots.unit}
    parts: list[tuple[str, Collection[int], Container[int]]] = [
        ("its parts refer to", named | history.closed | history.whole_results, slots),
        ("its summaries include", summaries, tally.summaries.keys() - {*inside}),
        ("its history holds", inside, entries),
        ("its history waits for", tally.not_entered, entries.keys() & waiting),
        ("its unanswered messages include", tally.unsent, entries),
        ("its calls wait for", answers, tally.unsent),
        (
            "its history dropped",
            [slot for slot in slots if history.gone[slot] != NEVER],
            {slot for slot in slots if state[slot] > SHRUNK},
        ),
    ]
    for what, places, known in parts:
        # Counter(mapping) would take the values as counts, so the places are listed.
        strange = [
            slot for slot, times in Counter([*places]).items() if times > 1 or slot not in known
        ]
        if strange:
            raise ValueError(
                f"{what} message {strange[0]}, which is missing elsewhere in the file or contradicted there"
            )
    if not 0 <= tally.start <= len(slots):
        raise ValueError(
            f"the current turn starts at message {tally.start}, but the conversation has only "
            f"{many(len(slots), 'message')}"
        )


def _sections(tally: RunningTally) -> list[str]:
    """List the sections that the next requests may use."""
    entries = [*tally.entries.values(), *tally.summaries.values()]
    of_entries = [section for entry in entries for section in (entry.past, entry.present)]
    turn = (past for past, _ in tally.this_turn.values())
    return [*dict.fromkeys([*tally.demand(), *tally.past, *tally.present, *of_entries, *turn])]
