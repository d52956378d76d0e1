"""Split a context window: budgets, counts and plans; each name is imported when it is first used.

A name lives in the module that `_HOME` gives for it, so that `import budgetkit` loads nothing else
(PEP 562). The imports under `TYPE_CHECKING` say the same to a type checker.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budgetkit import accuracy, assembly, corpora, cost, figures, policies, presets, prompt_cache, state, streaming
    from budgetkit.amounts import Share
    from budgetkit.budget import Budget
    from budgetkit.claims import claims
    from budgetkit.counters import calibrate, counter
    from budgetkit.decisions import Decision
    from budgetkit.evidence import evidence
    from budgetkit.explorer import AccuracyExplorer, BudgetExplorer, ConversationExplorer
    from budgetkit.fitting import fit
    from budgetkit.framing import FRAMINGS, Framing
    from budgetkit.items import Item
    from budgetkit.lines import Allocation, Reserve
    from budgetkit.models import model
    from budgetkit.plan import Grant, Plan
    from budgetkit.replay import Replay, evidence_shares, losses, outlook, rank_policies, replay
    from budgetkit.sweep import cut_share, sweep
    from budgetkit.trace import Message, Trace, load_trace, load_traces, shipped_traces
    from budgetkit.truncation import cutter, truncate
    from budgetkit.walk import allocate, allocate_many

__all__ = [
    "FRAMINGS",
    "AccuracyExplorer",
    "Allocation",
    "Budget",
    "BudgetExplorer",
    "ConversationExplorer",
    "Decision",
    "Framing",
    "Grant",
    "Item",
    "Message",
    "Plan",
    "Replay",
    "Reserve",
    "Share",
    "Trace",
    "accuracy",
    "allocate",
    "allocate_many",
    "assembly",
    "calibrate",
    "claims",
    "corpora",
    "cost",
    "counter",
    "cut_share",
    "cutter",
    "evidence",
    "evidence_shares",
    "figures",
    "fit",
    "load_trace",
    "load_traces",
    "losses",
    "model",
    "outlook",
    "policies",
    "presets",
    "prompt_cache",
    "rank_policies",
    "replay",
    "shipped_traces",
    "state",
    "streaming",
    "sweep",
    "truncate",
]

_HOME = {
    "Share": "amounts",
    "Item": "items",
    "model": "models",
    "Allocation": "lines",
    "Budget": "budget",
    "Reserve": "lines",
    "Decision": "decisions",
    "Grant": "plan",
    "Plan": "plan",
    "allocate": "walk",
    "allocate_many": "walk",
    "fit": "fitting",
    "cut_share": "sweep",
    "sweep": "sweep",
    "Replay": "replay",
    "rank_policies": "replay",
    "replay": "replay",
    "evidence_shares": "replay",
    "losses": "replay",
    "outlook": "replay",
    "evidence": "evidence",
    "calibrate": "counters",
    "counter": "counters",
    "FRAMINGS": "framing",
    "Framing": "framing",
    "cutter": "truncation",
    "truncate": "truncation",
    "Message": "trace",
    "Trace": "trace",
    "load_trace": "trace",
    "load_traces": "trace",
    "shipped_traces": "trace",
    "claims": "claims",
    "AccuracyExplorer": "explorer",
    "BudgetExplorer": "explorer",
    "ConversationExplorer": "explorer",
}
_MODULES = {"accuracy", "assembly", "corpora", "cost", "figures", "policies", "presets", "prompt_cache", "state"}
_MODULES |= {"streaming"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"budgetkit has no {name!r}; it has {', '.join(__all__)}", name=name, obj=_this)
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    setattr(_this, name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A package whose function is not hidden by the module of the same name (sweep, in sweep.py).

    Importing a module binds its name in the package, which would make `budgetkit.sweep` a function or a
    module depending on who imported what first.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


_this = sys.modules[__name__]
_this.__class__ = _Package
