"""Results: what follows from the settings: the budget, the plan of the chosen turn, and all turns at once.

Counting is in the library and happens once; everything here is arithmetic and happens on every move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import Counter
from budgetkit.lab.explorers.budget.requests import FileRequests
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.library import Library
from budgetkit.lab.figures.turns import first_cut
from budgetkit.models import Model, found_by, nearest
from budgetkit.models.resolved import resolve
from budgetkit.plan import Plan
from budgetkit.plan.allocating import allocate
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.fitting import fit
from budgetkit.presets import PRESETS
from budgetkit.requests import framing_for
from budgetkit.trace import Trace


@dataclass(frozen=True, slots=True)
class TwoCounts:
    """The turns of one conversation by the best counter of its model and by a cheap one, and the counters' names."""

    best: RequestBatch
    cheap: RequestBatch
    best_name: str
    cheap_name: str


@dataclass(frozen=True)
class BudgetResults:
    """What follows from the settings."""

    model: Model
    budget: Budget  # as the user takes it away
    plan: Plan  # of the chosen turn, by the same budget with a signed deficit
    counter: Counter
    turn: int = 0  # the chosen one, from 1
    turns: RequestBatch | None = None  # all turns of the conversation
    first_cut: tuple[int, str] | None = None  # the turn at which something is cut, and the section
    pinned: Plan | None = None  # the chosen turn by the budget that was pinned
    pinned_turns: RequestBatch | None = None
    compared: TwoCounts | None = None
    conversations: RequestBatch | None = None  # all turns of all conversations of the file
    trace: Trace | None = None
    note: str = ""  # on the model: that it is not known, or has ended
    missing_window: int | None = None  # the window that was chosen and the model does not have

    @property
    def budget_results(self) -> BudgetResults:
        """What follows from the part that is about the budget: here all of it."""
        return self

    @property
    def demand(self) -> pd.DataFrame | None:
        """What every turn asks of every section, in tokens; None without a trace."""
        if self.turns is None:
            return None
        return self.turns.demand


def results(settings: BudgetSettings, library: Library) -> BudgetResults:
    """Work out what follows from the settings."""
    model, note = known_model(settings.model)
    counter = library.counter(settings.counter or model)

    # The plan is made with a signed deficit, so that what is too much can be shown.
    signed = settings.budget(model)
    # Without a role table, sections that the budget does not name are seen in its pool.
    if not signed.roles and settings.trace is not None:
        signed = replace(signed, undeclared="pool")
    if settings.trace is None:
        demand = typed_demand(settings, signed)
    else:
        demand = {}
    bare = BudgetResults(
        model=model,
        budget=kept_deficit(signed, settings.base(model).deficit),
        plan=allocate(signed, demand),
        counter=counter,
        note=note,
        missing_window=settings.missing_window,
    )
    if settings.trace is not None:
        return _with_trace(settings, library, bare)
    if settings.pinned is None:
        return bare
    return replace(bare, pinned=allocate(shown(settings.pinned, signed), demand))


def _with_trace(settings: BudgetSettings, library: Library, bare: BudgetResults) -> BudgetResults:
    """Add what every turn of the conversation asks for, and the plan of the chosen one."""
    name = str(settings.trace)
    conversation = settings.conversation
    budget = bare.plan.budget
    trace = library.conversations.one(name, conversation)
    requests = FileRequests(
        library=library,
        name=name,
        roles=budget.roles,
        counter=bare.counter,
        framing=framing_for(bare.model),
    )
    turns = requests.turns(conversation)
    turn = min(settings.turn or len(turns.demand), len(turns.demand))
    planned = replace(
        bare,
        plan=fit(budget, requests.items(conversation, turn), requests.cut),
        turn=turn,
        turns=turns,
        compared=_compared(requests, conversation, bare.model, settings.cheap),
        conversations=requests.all_turns() if len(library.conversations(name)) > 1 else None,
        trace=trace,
    )

    # The first cut stands in the rows of the demand; its turn is the row's name.
    first = first_cut(turns.columns(budget))
    if first is not None:
        row, section = first
        planned = replace(planned, first_cut=(int(turns.demand.index[row]), section))
    if settings.pinned is None:
        return planned

    # A pinned budget with roles of its own puts the messages into its own sections.
    pinned = shown(settings.pinned, budget)
    if pinned.roles:
        requests = replace(requests, roles=pinned.roles)
    return replace(
        planned,
        pinned=fit(pinned, requests.items(conversation, turn), requests.cut),
        pinned_turns=requests.turns(conversation),
    )


def _compared(requests: FileRequests, conversation: int, model: Model, cheap: str) -> TwoCounts:
    """Count a conversation with the best counter of a model and with a cheap one."""
    best_counter = requests.library.counter(model)
    cheap_counter = requests.library.counter(cheap)
    return TwoCounts(
        best=replace(requests, counter=best_counter).turns(conversation),
        cheap=replace(requests, counter=cheap_counter).turns(conversation),
        best_name=best_counter.name,
        cheap_name=cheap_counter.name,
    )


def same_count(one: Counter, other: Counter) -> bool:
    """Tell whether two counters give the same numbers.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> same_count(counter("gpt-4o"), counter("o200k_base")), same_count(counter("gpt-4o"), counter("chars/4"))
    (True, False)
    """
    if one.name == other.name:
        return True
    encoding = getattr(one, "encoding", None)
    return (
        encoding is not None
        and type(one) is type(other)
        and encoding == getattr(other, "encoding", None)
    )


def is_own(count: Counter, model: Model) -> bool:
    """Tell whether a counter gives the number that the model itself would count."""
    return (
        count.exact and model.encoding_is_own and getattr(count, "encoding", "") == model.encoding
    )


def shown(pinned: Budget, budget: Budget) -> Budget:
    """Return a pinned budget as it can meet the demands of another one."""
    same = set(budget.sections) <= set(pinned.sections)
    return replace(pinned, deficit="signed", undeclared=pinned.undeclared if same else "pool")


def known_model(name: str) -> tuple[Model, str]:
    """Return a model and, where a default stands in for it or it has ended, the warning."""
    resolved = resolve(name)
    return resolved.facts, resolved.notice


def typed_model(name: str) -> Model:
    """Return the model of a typed name; an unknown name is refused, with the nearest known ones."""
    if model := found_by(name.strip()):
        return model  # one that has ended too
    near = nearest(name)
    if near:
        hint = f"; nearest are {quoted(near)}"
    else:
        hint = "; type a part of its name to search"
    raise ValueError(f"no model {brief(name.strip())} is known, so all stays as it was{hint}")


def typed_demand(settings: BudgetSettings, budget: Budget) -> dict[str, int]:
    """Return the demands without a trace: the preset's typical sizes, with those that were typed in."""
    preset = PRESETS.get(settings.preset) or PRESETS.get(budget.name)
    typical = preset.demand if preset else {}
    return {s: settings.demand.get(s, typical.get(s, 0)) for s in budget.sections}


def kept_deficit(signed: Budget, deficit: str) -> Budget:
    """Return a budget with what its preset does about a deficit, where that is no error."""
    try:
        return replace(signed, deficit=deficit)  # type: ignore[arg-type]
    except ValueError:
        return signed
