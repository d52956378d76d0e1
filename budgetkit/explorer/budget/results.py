"""Results: what follows from the settings: the budget, the plan of the chosen turn, and all turns at once.

Counting is in the library and happens once; everything here is arithmetic and happens on every move.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import Counter
from budgetkit.explorer.budget.requests import Requests
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.library import Library
from budgetkit.figures.turns import first_cut
from budgetkit.framing import framing_for
from budgetkit.models import Model, found_by, model, nearest
from budgetkit.plan import Plan
from budgetkit.plan.allocating import allocate
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.fitting import fit
from budgetkit.presets import PRESETS
from budgetkit.trace import Trace

ROUGH = "chars/4"


@dataclass(frozen=True)
class Results:
    """What follows from the settings."""

    model: Model
    budget: Budget
    plan: Plan
    counter: Counter
    turn: int = 0
    turns: RequestBatch | None = None
    first_cut: tuple[int, str] | None = None
    pinned: Plan | None = None
    pinned_turns: RequestBatch | None = None
    compared: tuple[RequestBatch, RequestBatch, str, str] | None = None
    conversations: RequestBatch | None = None
    trace: Trace | None = None
    note: str = ""

    @property
    def demand(self) -> pd.DataFrame | None:
        """What every turn asks of every section, in tokens; None without a trace."""
        return None if self.turns is None else self.turns.demand


def results(settings: Settings, library: Library) -> Results:
    """Work out what follows from the settings."""
    found, note = known_model(settings.model)
    signed = settings.budget(found)
    count = library.counter(settings.counter, found)
    if not signed.roles and settings.trace is not None:
        signed = replace(signed, undeclared="pool")  # no role table: what the budget does not name is seen in its pool
    budget = kept_deficit(signed, settings.base(found).deficit)
    if settings.trace is None:
        demand = typed_demand(settings, signed)
        pinned = None if settings.pinned is None else allocate(shown(settings.pinned, signed), demand)
        return Results(found, budget, allocate(signed, demand), count, pinned=pinned, note=note)
    return _with_trace(settings, library, Results(found, budget, allocate(signed, {}), count, note=note))


def _with_trace(settings: Settings, library: Library, bare: Results) -> Results:
    name, which, budget = str(settings.trace), settings.conversation, bare.plan.budget
    trace = library.conversation(name, which)
    requests = Requests(library, name, budget, bare.counter, framing_for(bare.model.name))
    turns = requests.turns(which)
    turn = min(settings.turn or len(turns.demand), len(turns.demand))
    items = requests.items(which, turn)
    first = first_cut(turns.columns(budget))
    held = None if settings.pinned is None else shown(settings.pinned, budget)
    own = requests if held is None or not held.roles else replace(requests, budget=held)
    return replace(
        bare,
        plan=fit(budget, items, requests.cut),
        turn=turn,
        turns=turns,
        first_cut=None if first is None else (int(turns.demand.index[first[0]]), first[1]),
        pinned=None if held is None else fit(held, own.items(which, turn), own.cut),
        pinned_turns=None if held is None else own.turns(which),
        compared=_compared(requests, which, bare.model),
        conversations=requests.every() if len(library.conversations(name)) > 1 else None,
        trace=trace,
    )


def _compared(requests: Requests, which: int, model: Model) -> tuple[RequestBatch, RequestBatch, str, str]:
    """Return a conversation by the model's counter and by a rough one, and what the counters are called."""
    library, chosen = requests.library, requests.counter
    own = library.counter(None, model)
    if chosen.exact and getattr(chosen, "encoding", None) == getattr(own, "encoding", ""):
        rough = library.counter(ROUGH, model)
        return requests.turns(which), replace(requests, counter=rough).turns(which), chosen.name, rough.name
    return replace(requests, counter=own).turns(which), requests.turns(which), own.name, chosen.name


def is_own(count: Counter, model: Model) -> bool:
    """Tell whether a counter gives the number that the model itself would count."""
    return count.exact and model.encoding_is_own and getattr(count, "encoding", "") == model.encoding


def shown(pinned: Budget, budget: Budget) -> Budget:
    """Return a pinned budget as it can meet the demands of another one."""
    same = set(budget.sections) <= set(pinned.sections)
    return replace(pinned, deficit="signed", undeclared=pinned.undeclared if same else "pool")


def known_model(name: str) -> tuple[Model, str]:
    """Return a model and, where a default stands in for it or it has ended, the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model(name)
    return found, str(caught[0].message) if caught else ""


def typed_model(name: str) -> Model:
    """Return the model of a typed name; an unknown name is refused, with the nearest known ones."""
    if found := found_by(name.strip()):
        return found  # one that has ended too
    near = nearest(name)
    hint = f"; nearest are {quoted(near)}" if near else "; type a part of its name to search"
    raise ValueError(f"no model {brief(name.strip())} is known, so all stays as it was{hint}")


def typed_demand(settings: Settings, budget: Budget) -> dict[str, int]:
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
