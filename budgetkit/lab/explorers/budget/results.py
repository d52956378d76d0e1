"""Results: the budget, the chosen turn's plan, and all turns.

The library counts each text once. Everything else here is arithmetic that runs at every move of a slider.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeVar

import pandas as pd

from budgetkit.budget import Allocation, Budget, brief, quoted
from budgetkit.counters import Counter
from budgetkit.counters.memory import Memo
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.stage import Stage
from budgetkit.lab.figures.turns import first_cut_row
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
T = TypeVar("T")


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

    @classmethod
    def of(
        cls, settings: BudgetSettings, library: Library, counter: Counter
    ) -> FileRequests | None:
        """Return the requests in the chosen file, or None without a file."""
        if settings.trace is None:
            return None
        framing = framing_for(resolve(settings.model))
        return cls(
            library=library,
            name=settings.trace,
            roles=settings.planned_budget.roles,
            counter=counter,
            framing=framing,
        )

    @property
    def traces(self) -> Sequence[Trace]:
        """The conversations in the file."""
        return self.library.conversations(self.name)

    def turns(self, conversation: int) -> RequestBatch:
        """Return the turns of one conversation."""
        trace = self.traces[conversation]

        def count() -> RequestBatch:
            return self._batch(self.demand(conversation), [trace], lambda row: (trace, row + 1))

        return self._once(("turns", conversation), count)

    def items(self, conversation: int, turn: int) -> Items:
        """Return the items to keep or cut in one turn."""
        trace = self.traces[conversation]
        return self._once(("items", conversation, turn), lambda: self._items(trace, turn))

    def all_turns(self) -> RequestBatch:
        """Return the turns of all conversations."""
        traces = self.traces

        def count() -> RequestBatch:
            rows = (demand := self.demands()).index
            return self._batch(demand, traces, lambda row: (traces[rows[row][0]], rows[row][1]))

        return self._once(("every",), count)

    def demand(self, conversation: int) -> pd.DataFrame:
        """Return one conversation's demand by turn and section, in tokens."""

        def count() -> pd.DataFrame:
            trace = self.traces[conversation]
            if len(self.traces) == 1:  # for several, `demands` reports the progress
                self.library.announce(trace, self.counter)
            return trace.demand(self.counter, self.roles or None, self.framing)

        return self._once(("demand", conversation), count)

    def demands(self) -> pd.DataFrame:
        """Return the demand of all conversations by turn and section, in tokens."""

        def count() -> pd.DataFrame:
            many = len(self.traces)
            roles = self.roles or DEFAULT_ROLES
            rows = {}
            for conversation, trace in enumerate(self.traces):
                self.library.report(
                    f"Counting {self.name}: conversation {conversation + 1:,} of {many:,}",
                    conversation / many,
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

        return self._once(("demands",), count)

    @property
    def cut(self) -> Cut:
        """A function that cuts an item, computing each cut once."""
        return self._once(("cut",), lambda: remembered(cutter(self.counter, self.framing)))

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

        return RequestBatch(demand, items, self.cut)

    def _items(self, trace: Trace, turn: int) -> Items:
        return Items(trace.items(turn, self.counter, self.roles or None, self.framing))

    def _once(self, what: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        counted = (self.name, self.counter.name, tuple(self.roles.items()), self.framing)
        return self.library.once((*counted, "requests", *what), make)


def remembered(cut: Cut) -> Cut:
    """Return a cut function with a cache by item and limit."""
    memo = Memo(_MOST_CUTS)

    def once(item: Item, limit: int, allocation: Allocation) -> Item | None:
        key = (id(item.payload), item.tokens, limit, allocation.keep, allocation.granularity)
        # the entry holds the item, so that no other item gets its id
        return memo.once(key, lambda: (item, cut(item, limit, allocation)))[1]

    return once


@dataclass(frozen=True)
class TwoCounts:
    """A conversation's turns, counted by the best and by a cheap counter."""

    best: RequestBatch
    cheap: RequestBatch
    best_name: str
    cheap_name: str


@dataclass(frozen=True)
class BudgetResults:
    """Results of the budget settings."""

    model: Model
    budget: Budget  # to copy or save
    plan: Plan  # of the chosen turn, by the same budget with a signed deficit
    counter: Counter
    turn: int = 0  # the chosen turn, counting from 1
    turns: RequestBatch | None = None  # all turns of the conversation
    first_cut: tuple[int, str] | None = None  # the first turn with a cut, and the section cut most
    pinned: Plan | None = None  # the chosen turn, planned with the pinned budget
    pinned_turns: RequestBatch | None = None
    compared: TwoCounts | None = None
    conversations: RequestBatch | None = None  # all turns of all conversations in the file
    trace: Trace | None = None
    note: str = ""  # on an unknown or retired model
    missing_window: int | None = None  # the chosen window, if the model lacks it

    @property
    def budget_results(self) -> BudgetResults:
        """The results for the budget, which are these results."""
        return self

    @property
    def demand(self) -> pd.DataFrame | None:
        """The demand by turn and section, or None without a conversation."""
        if self.turns is None:
            return None
        return self.turns.demand


BudgetStage = Stage[BudgetSettings, BudgetResults]


def results(settings: BudgetSettings, library: Library) -> BudgetResults:
    """Compute the results of the settings."""
    model = resolve(settings.model)
    counter = library.counter(settings.counter or model)
    budget = settings.planned_budget
    requests = FileRequests.of(settings, library, counter)
    conversation = settings.conversation
    turn = 0
    if requests is not None:
        trace = library.conversations.one(requests.name, conversation)
        turns = requests.turns(conversation)
        turn = min(settings.turn or len(turns.demand), len(turns.demand))
    bare = BudgetResults(
        model=model,
        budget=kept_deficit(budget, settings.base.deficit),
        plan=plan_turn(budget, settings, requests, turn),
        counter=counter,
        turn=turn,
        note=model.notice,
        missing_window=settings.missing_window,
    )
    pinned = None
    if settings.pinned is not None:
        pinned = shown(settings.pinned, budget)
    if requests is None:
        if pinned is None:
            return bare
        return replace(bare, pinned=allocate(pinned, typed_demand(settings, budget)))

    # Both counts of every turn, and the first cut; the index of the demand is the turn.
    best = library.counter(model)
    cheap = library.counter(settings.cheap)
    planned = replace(
        bare,
        turns=turns,
        compared=TwoCounts(
            best=replace(requests, counter=best).turns(conversation),
            cheap=replace(requests, counter=cheap).turns(conversation),
            best_name=best.name,
            cheap_name=cheap.name,
        ),
        conversations=requests.all_turns() if len(requests.traces) > 1 else None,
        trace=trace,
    )
    if first := first_cut_row(turns.columns(budget)):
        row, section = first
        planned = replace(planned, first_cut=(int(turns.demand.index[row]), section))
    if pinned is None:
        return planned

    # A pinned budget with roles of its own puts the messages into its own sections.
    requests = replace(requests, roles=pinned.roles or budget.roles)
    return replace(
        planned,
        pinned=plan_turn(pinned, settings, requests, turn),
        pinned_turns=requests.turns(conversation),
    )


def plan_turn(
    budget: Budget, settings: BudgetSettings, requests: FileRequests | None, turn: int
) -> Plan:
    """Plan one turn of the chosen conversation, or the entered sizes."""
    if requests is None:
        return allocate(budget, typed_demand(settings, budget))
    return fit(budget, requests.items(settings.conversation, turn), requests.cut)


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


def typed_demand(settings: BudgetSettings, budget: Budget) -> dict[str, int]:
    """Return the entered or typical sizes, for use without a conversation."""
    preset = PRESETS.get(settings.preset) or PRESETS.get(budget.name)
    typical = preset.demand if preset else {}
    return {s: settings.demand.get(s, typical.get(s, 0)) for s in budget.sections}


def kept_deficit(signed: Budget, deficit: str) -> Budget:
    """Apply a deficit rule to a budget, if the result is valid."""
    try:
        return replace(signed, deficit=deficit)  # type: ignore[arg-type]
    except ValueError:
        return signed
