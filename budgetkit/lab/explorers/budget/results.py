"""Results: the budget, the chosen turn's plan, and all turns.

The library counts each text once. Everything else here is arithmetic that runs at every move of a slider.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar

import pandas as pd

from budgetkit.budget import Allocation, Budget, brief, quoted
from budgetkit.counters import Counter
from budgetkit.counters.exact import ExactCounter
from budgetkit.counters.memory import Memo
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library, kept
from budgetkit.lab.figures.turns import first_cut_row
from budgetkit.message import Data, Message
from budgetkit.models import Model, resolve, similar_models
from budgetkit.plan import Item, Plan, allocate, fit
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.fitting import Cut
from budgetkit.plan.items import Items
from budgetkit.presets import PRESETS
from budgetkit.requests import Framing, framing_for
from budgetkit.trace import DEFAULT_ROLES, Trace
from budgetkit.truncation import cutter

#: Maximum number of turns, and of items in all turns, to plan item by item on every move. If there are more, sections
#: are cut at any point. A turn contains the whole conversation so far, and an item takes about 150 bytes.
MOST_TURNS = 5_000
MOST_ITEMS = 1_000_000
_MOST_CUTS = 20_000
_COUNTED = 1_000  # conversations whose texts are counted together


@dataclass(frozen=True, kw_only=True)
class FileRequests:
    """The requests in a file, for one counter and one role table.

    A conversation is identified by its position in the file, and a turn is identified by its number.
    """

    library: Library
    name: str  # of the file, as the library lists it
    roles: Mapping[str, str]
    counter: Counter
    framing: Framing

    @property
    def traces(self) -> Sequence[Trace]:
        """The conversations in the file."""
        return self.library.conversations(self.name)

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """The key of the counts."""
        return self.name, self.counter.name, tuple(self.roles.items()), self.framing

    @kept
    def turns(self, conversation: int) -> RequestBatch:
        """Return the turns of one conversation."""
        trace = self.traces[conversation]
        return self._batch(self.demand(conversation), [trace], lambda row: (trace, row + 1))

    @kept
    def items(self, conversation: int, turn: int) -> Items:
        """Return the items to keep or cut in one turn."""
        return self._items(self.traces[conversation], turn)

    @kept
    def all_turns(self) -> RequestBatch:
        """Return the turns of all conversations."""
        traces = self.traces
        demand = self.demands()
        rows = demand.index
        return self._batch(demand, traces, lambda row: (traces[rows[row][0]], rows[row][1]))

    @kept
    def demand(self, conversation: int) -> pd.DataFrame:
        """Return one conversation's demand for each turn and section, in tokens."""
        trace = self.traces[conversation]
        if len(self.traces) == 1:  # for several, `demands` reports the progress
            self.library.announce(trace, self.counter)
        return trace.demand(self.counter, self.roles or None, self.framing)

    @kept
    def demands(self) -> pd.DataFrame:
        """Return all conversations' demand for each turn and section, in tokens."""
        many = len(self.traces)
        roles = self.roles or DEFAULT_ROLES
        rows = {}
        for conversation, trace in enumerate(self.traces):
            self.library.report(
                f"Counting {self.name}: conversation {conversation + 1:,} of {many:,}",
                conversation / many,
            )
            # Many short texts are counted faster together; this counter remembers them.
            if conversation % _COUNTED == 0 and isinstance(self.counter, ExactCounter):
                block = self.traces[conversation : conversation + _COUNTED]
                self.counter.many(
                    [text for chat in block for message in chat.messages for text in message.texts]
                )
            # The items of so many conversations would fill the memory; a copy keeps them only here.
            copied = trace if many <= MOST_TURNS else replace(trace)
            tally = copied.tally(self.counter, roles, self.framing)
            columns = tally.columns(trace.turns, [*roles.values()])
            for turn, tokens in enumerate(zip(*columns.values(), strict=True), start=1):
                rows[conversation, turn] = dict(zip(columns, tokens, strict=True))
        frame = pd.DataFrame(rows.values(), pd.MultiIndex.from_tuples(rows))
        frame = frame.rename_axis(["conversation", "turn"]).fillna(0).astype("int64")
        frame.attrs["roles"] = dict(roles)
        return frame

    @kept
    def cut(self) -> Cut:
        """Return a function that cuts an item, computing each cut once."""
        return remembered(cutter(self.counter, self.framing))

    def _batch(
        self, demand: pd.DataFrame, traces: Sequence[Trace], at: Callable[[int], tuple[Trace, int]]
    ) -> RequestBatch:
        if (
            len(demand) > MOST_TURNS
            or sum(turn.sent for trace in traces for turn in trace.turns) > MOST_ITEMS
        ):
            return RequestBatch(demand)

        # The batch keeps the items; in the library they would displace other entries.
        def items(row: int) -> Items:
            trace, turn = at(row)
            return self._items(trace, turn)

        return RequestBatch(demand, items, self.cut())

    def _items(self, trace: Trace, turn: int) -> Items:
        return Items(trace.items(turn, self.counter, self.roles or None, self.framing))


def remembered(cut: Cut) -> Cut:
    """Return a cut function that caches its results."""
    memo = Memo(_MOST_CUTS)

    def once(item: Item, limit: int, allocation: Allocation) -> Item | None:
        key = (id(item.payload), item.tokens, limit, allocation.keep, allocation.granularity)
        # the entry holds the item, so that no other item gets its id
        return memo.once(key, lambda: (item, cut(item, limit, allocation)))[1]

    return once


@dataclass(frozen=True)
class BudgetStage:
    """The settings of a budget, and everything that follows from them.

    Each result is computed when it is first used.
    """

    settings: BudgetSettings
    library: Library

    #: What is billed.
    subject: ClassVar[str] = "everything that this turn asks for, before any cuts"
    #: Whether the turns of the open conversation are planned, instead of typical sizes.
    plans_turns: ClassVar[bool] = True

    @cached_property
    def model(self) -> Model:
        """The model."""
        return resolve(self.settings.model)

    @cached_property
    def counter(self) -> Counter:
        """The counter of the plan."""
        return self.library.counter(self.settings.counter or self.model)

    @cached_property
    def best(self) -> Counter:
        """The best counter known for the model."""
        return self.library.counter(self.model)

    @cached_property
    def cheap(self) -> Counter:
        """The cheap counter whose error is shown."""
        return self.library.counter(self.settings.cheap)

    @cached_property
    def is_one_count(self) -> bool:
        """True if the cheap counter always gives the best count."""
        return same_count(self.cheap, self.best)

    @cached_property
    def framing(self) -> Framing:
        """The tokens that the model adds to each message."""
        return framing_for(self.model)

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """The section of each role."""
        return self.settings.planned_budget.roles

    @cached_property
    def file(self) -> FileRequests:
        """The requests in the chosen file."""
        return FileRequests(
            library=self.library,
            name=str(self.settings.trace),
            roles=self.roles,
            counter=self.counter,
            framing=self.framing,
        )

    @cached_property
    def requests(self) -> FileRequests | None:
        """The requests to plan, or None if sizes are planned."""
        return None if self.settings.trace is None or not self.plans_turns else self.file

    @cached_property
    def trace(self) -> Trace | None:
        """The conversation that is planned, or None if sizes are planned."""
        if self.requests is None:
            return None
        return self.library.conversations.one(self.requests.name, self.settings.conversation)

    @cached_property
    def turns(self) -> RequestBatch | None:
        """All turns of the conversation, or None if sizes are planned."""
        if self.trace is None or self.requests is None:
            return None
        return self.requests.turns(self.settings.conversation)

    @cached_property
    def demand(self) -> pd.DataFrame | None:
        """The demand of each turn and section; None if sizes are planned."""
        return None if self.turns is None else self.turns.demand

    @cached_property
    def turn(self) -> int:
        """The chosen turn, counting from 1; 0 if sizes are planned."""
        if self.turns is None:
            return 0
        last = len(self.turns.demand)
        return min(self.settings.turn or last, last)

    @cached_property
    def sent(self) -> tuple[Sequence[Message], list[str]]:
        """The messages of the shown request, and names of its other parts."""
        if self.trace is None:
            return [], []
        return self.trace.request(self.turn), ["the passages"] * bool(self.trace.contexts)

    @cached_property
    def facts(self) -> Data:
        """Further facts for the checks of the budget."""
        return {}

    @cached_property
    def signed_budget(self) -> Budget:
        """The budget to plan with, which has a signed deficit."""
        return self.settings.budget if self.requests is None else self.settings.planned_budget

    @cached_property
    def typed_demand(self) -> dict[str, int]:
        """The entered or typical demands, used if no conversation is open."""
        settings = self.settings
        budget = self.signed_budget
        preset = PRESETS.get(settings.preset) or PRESETS.get(budget.name)
        typical = preset.demand if preset else {}
        return {s: settings.demand.get(s, typical.get(s, 0)) for s in budget.sections}

    @cached_property
    def plan(self) -> Plan:
        """The plan of the chosen turn or of the entered sizes.

        The budget of the plan has a signed deficit.
        """
        return self._plan(self.signed_budget, self.requests)

    @cached_property
    def budget(self) -> Budget:
        """The budget to copy or save."""
        return kept_deficit(self.signed_budget, self.settings.base.deficit)

    @cached_property
    def first_cut(self) -> tuple[int, str] | None:
        """The first turn with a cut, and the section cut most there.

        The result is None if nothing is cut, or if no turns are planned.
        """
        if self.turns is None:
            return None
        first = first_cut_row(self.turns.columns(self.signed_budget))
        return first and (int(self.turns.demand.index[first[0]]), first[1])

    @cached_property
    def pinned(self) -> Plan | None:
        """The plan with the pinned budget, or None if none is pinned."""
        if self.settings.pinned is None:
            return None
        pinned = shown(self.settings.pinned, self.signed_budget)
        return self._plan(pinned, self._pinned_requests)

    @cached_property
    def pinned_turns(self) -> RequestBatch | None:
        """All turns of the conversation, in the sections of the pinned budget."""
        requests = self._pinned_requests
        return None if requests is None else requests.turns(self.settings.conversation)

    @cached_property
    def _pinned_requests(self) -> FileRequests | None:
        """The requests to plan with the pinned budget, or None.

        They use the roles of the pinned budget, if it has any. The result is None if no budget is pinned, or sizes are
        planned.
        """
        pinned = self.settings.pinned
        if pinned is None or self.requests is None:
            return None
        return replace(self.requests, roles=pinned.roles or self.signed_budget.roles)

    def _plan(self, budget: Budget, requests: FileRequests | None) -> Plan:
        """Plan the chosen turn, or the entered sizes, with a budget."""
        if requests is None:
            return allocate(budget, self.typed_demand)
        return fit(budget, requests.items(self.settings.conversation, self.turn), requests.cut())


def same_count(one: Counter, other: Counter) -> bool:
    """Return True if two counters always give the same counts.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> same_count(counter("gpt-5.4"), counter("o200k_base")), same_count(counter("gpt-5.4"), counter("chars/4"))
    (True, False)
    """
    encodings = {getattr(count, "encoding", None) for count in (one, other)}
    is_one = type(one) is type(other) and len(encodings) == 1 and None not in encodings
    return one.name == other.name or is_one


def is_own(count: Counter, model: Model) -> bool:
    """Return True if a counter's counts equal the model's own counts."""
    return (
        count.exact and model.encoding_is_own and getattr(count, "encoding", "") == model.encoding
    )


def shown(pinned: Budget, budget: Budget) -> Budget:
    """Make a pinned budget accept the demands of another budget."""
    same = set(budget.sections) <= set(pinned.sections)
    return replace(pinned, deficit="signed", undeclared=pinned.undeclared if same else "pool")


_LIKE = 0.6  # minimum similarity of an offered name, from 0 to 1


class UnknownModelError(ValueError):
    """The error for the name of a model that is not listed.

    Attributes
    ----------
    picks : list of str
        Listed models with similar names.

    Examples
    --------
    >>> UnknownModelError("gtp-4o").picks[0], UnknownModelError("zzz").picks
    ('gpt-4o', [])
    """

    def __init__(self, name: str) -> None:
        candidates = similar_models(name)
        wanted = name.lower()
        alike = get_close_matches(wanted, candidates, len(candidates) or 1, _LIKE)
        self.picks = [near for near in candidates if near in alike or wanted in near.lower()]
        choose = f" Choose one of: {quoted(self.picks)}." if self.picks else ""
        super().__init__(
            f"No model {brief(name)} is listed.{choose} To use an unlisted model, keep the current model, set "
            "its window and choose a counter."
        )


def kept_deficit(signed: Budget, deficit: str) -> Budget:
    """Apply a deficit rule to a budget, if the result is valid."""
    try:
        return replace(signed, deficit=deficit)  # type: ignore[arg-type]
    except ValueError:
        return signed
