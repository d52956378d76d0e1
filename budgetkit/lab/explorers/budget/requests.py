"""Requests: what the turns of a conversation, or of all conversations of a file, ask of a budget's sections.

They are counted once; planning them with another budget counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

from budgetkit.budget.allocation import Allocation
from budgetkit.counters import Counter
from budgetkit.counters.memory import Memo
from budgetkit.lab.explorers.library import Library
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.fitting import Cut
from budgetkit.plan.item import Item
from budgetkit.plan.items import Items
from budgetkit.requests import Framing
from budgetkit.trace import Trace
from budgetkit.truncation import cutter

#: Turns that are planned item by item on every move, and items of all of them together: each turn has all of its
#: conversation so far, and an item takes about 150 bytes. Of more the sections are cut anywhere.
MOST_TURNS = 5_000
MOST_ITEMS = 1_000_000
_MOST_CUTS = 20_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRequests:
    """The requests of a file under one counter, put into sections by a table of roles.

    A conversation is named by its place in the file, a turn by its number in the conversation.
    """

    library: Library
    name: str  # of the file, as the library lists it
    roles: Mapping[str, str]
    counter: Counter
    framing: Framing

    def turns(self, conversation: int) -> RequestBatch:
        """Return the turns of one conversation."""
        return self._once(("turns", conversation), lambda: self._count_turns(conversation))

    def items(self, conversation: int, turn: int) -> Items:
        """Return what stands to be kept or cut at one turn."""
        trace = self.library.conversations(self.name)[conversation]
        return self._once(("items", conversation, turn), lambda: self._items(trace, turn))

    def all_turns(self) -> RequestBatch:
        """Return the turns of all conversations."""
        return self._once(("every",), self._count_all_turns)

    def demand(self, conversation: int) -> pd.DataFrame:
        """Return what each turn of one conversation asks of each section, in tokens."""
        return self._once(("demand", conversation), lambda: self._count_demand(conversation))

    def demands(self) -> pd.DataFrame:
        """Return what each turn of each conversation asks of each section, in tokens."""
        return self._once(("demands",), self._count_all_demands)

    @property
    def cut(self) -> Cut:
        """How an item is cut inside; each cut is made once."""
        return self._once(("cut",), lambda: remembered(cutter(self.counter, self.framing)))

    def _count_turns(self, conversation: int) -> RequestBatch:
        trace = self.library.conversations(self.name)[conversation]
        return self._batch(self.demand(conversation), [trace], lambda row: (trace, row + 1))

    def _count_all_turns(self) -> RequestBatch:
        traces = self.library.conversations(self.name)
        demand = self.demands()
        return self._batch(
            demand, traces, lambda row: (traces[demand.index[row][0]], demand.index[row][1])
        )

    def _batch(
        self, demand: pd.DataFrame, traces: Sequence[Trace], at: Callable[[int], tuple[Trace, int]]
    ) -> RequestBatch:
        if (
            len(demand) > MOST_TURNS
            or sum(turn.sent for trace in traces for turn in trace.turns) > MOST_ITEMS
        ):
            return RequestBatch(demand)

        # The batch keeps the items: in the library they would drive out what stands there.
        def items(row: int) -> Items:
            trace, turn = at(row)
            return self._items(trace, turn)

        return RequestBatch(demand, items, self.cut)

    def _items(self, trace: Trace, turn: int) -> Items:
        return Items(trace.items(turn, self.counter, self.roles or None, self.framing))

    def _count_demand(self, conversation: int) -> pd.DataFrame:
        traces = self.library.conversations(self.name)
        if len(traces) == 1:  # of several it is said how many are counted
            self.library.announce(traces[conversation], self.counter)
        return traces[conversation].demand(self.counter, self.roles or None, self.framing)

    def _count_all_demands(self) -> pd.DataFrame:
        many = len(self.library.conversations(self.name))
        frames = {}
        for conversation in range(many):
            self.library.report(
                f"Counting {self.name}: conversation {conversation + 1:,} of {many:,}",
                conversation / many,
            )
            frames[conversation] = self.demand(conversation)
        return pd.concat(frames, names=["conversation"]).fillna(0).astype("int64")

    def _once(self, what: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        key = (
            self.name,
            self.counter.name,
            tuple(self.roles.items()),
            self.framing,
            "requests",
            *what,
        )
        return self.library.once(key, make)


def remembered(cut: Cut) -> Cut:
    """Return a cut that is made once for the same item and room."""
    memo = Memo(_MOST_CUTS)

    def once(item: Item, limit: int, allocation: Allocation) -> Item | None:
        key = (id(item.payload), item.tokens, limit, allocation.keep, allocation.granularity)
        # the item is kept beside it, so that its address stays its own
        return memo.once(key, lambda: (item, cut(item, limit, allocation)))[1]

    return once
