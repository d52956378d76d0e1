"""Split a context window: budgets, counts and plans; each name is imported when it is first used (PEP 562)."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes longer to import than all of this file
if TYPE_CHECKING:
    from typing import Any

#: Each public subpackage by its short name.
_SUBPACKAGES = {
    "accuracy": "budgetkit.lab.accuracy",
    "assembly": "budgetkit.conversation.assembly",
    "corpora": "budgetkit.lab.accuracy.corpora",
    "cost": "budgetkit.lab.replay.cost",
    "deciding": "budgetkit.lab.deciding",
    "figures": "budgetkit.lab.figures",
    "policies": "budgetkit.pruning.policies",
    "presets": "budgetkit.presets",
    "prompt_cache": "budgetkit.lab.replay.prompt_cache",
    "state": "budgetkit.state",
    "streaming": "budgetkit.lab.accuracy.streaming",
}
#: Each module with public names, and these names. The stub beside this file says the same to a type checker.
_NAMES = {
    "budgetkit.budget": (
        "Allocation",
        "Budget",
        "Reserve",
        "Share",
    ),
    "budgetkit.conversation": (
        "Conversation",
        "MemoryTokens",
        "build",
        "build_async",
        "memory_tokens",
        "trim",
    ),
    "budgetkit.counters": (
        "calibrate",
        "counter",
    ),
    "budgetkit.extras.endpoints": ("provider_counter",),
    "budgetkit.extras.redaction": ("redact",),
    "budgetkit.lab.accuracy.document_claims": (
        "claims",
        "fit_bill",
    ),
    "budgetkit.lab.app.app": ("App",),
    "budgetkit.lab.app.card": ("DesignCard",),
    "budgetkit.lab.deciding": (
        "solve",
        "tune",
    ),
    "budgetkit.lab.explorers": ("BudgetExplorer",),
    "budgetkit.lab.explorers.accuracy": ("AccuracyExplorer",),
    "budgetkit.lab.explorers.conversation": ("ConversationExplorer",),
    "budgetkit.lab.replay": (
        "Replay",
        "losses",
        "outlook",
        "rank_policies",
        "replay",
    ),
    "budgetkit.lab.replay.losses": ("evidence",),
    "budgetkit.lab.sessions": (
        "Session",
        "compare",
        "sessions",
        "what_if",
    ),
    "budgetkit.models": ("model",),
    "budgetkit.models.limits": ("thinking",),
    "budgetkit.plan": (
        "Decision",
        "Grant",
        "Item",
        "Plan",
        "allocate",
        "allocate_many",
        "cut_share",
        "fit",
        "sweep",
    ),
    "budgetkit.requests": (
        "FRAMINGS",
        "Framing",
        "RequestCount",
        "count_answer",
        "count_request",
    ),
    "budgetkit.trace": (
        "Message",
        "Trace",
        "list_traces",
        "load_trace",
        "load_traces",
        "shipped_traces",
    ),
    "budgetkit.truncation": (
        "cutter",
        "truncate",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_SUBPACKAGES, *_MODULE_OF])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name in _SUBPACKAGES:
        value = import_module(_SUBPACKAGES[name])
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        message = f"{__name__} has no {name!r}; it has {', '.join(__all__)}; take one of these"
        raise AttributeError(message, name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names only, so that completion shows nothing else."""
    return [*__all__, "__version__"]
