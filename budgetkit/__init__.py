"""Split a context window among the answer, instructions, history and sources.

Counting
    `counter`, `model`, `count_request`
Planning
    `Budget`, `Reserve`, `Allocation`, `Share`, `Item`, `Plan`, `allocate`, `fit`, `sweep`
Conversations
    `Message`, `Trace`, `load_trace`, `load_traces`, `Conversation`, `trim`, `build`
The laboratory
    `replay`, `sessions`, `Session`, `compare`, `what_if`, `BudgetExplorer`, `AccuracyExplorer`, `ConversationExplorer`,
    `DesignCard`, `App`
Modules
    `presets`, `policies`, `figures`, `state`, `accuracy`, `corpora`, `cost`, `deciding`

Import everything else from its module, for example `budgetkit.truncation.truncate`. Names are imported on first use
(PEP 562), from the modules listed in the stub next to this file.
"""

from __future__ import annotations

TYPE_CHECKING = False  # instead of typing's, which takes longer to import than this whole file
if TYPE_CHECKING:
    from typing import Any

# pathlib would take longer to import than this whole file
with open(f"{__file__}i", encoding="utf-8") as _stub:
    _LISTED, _, _UNLISTED = _stub.read().partition("# Modules that completion does not list\n")


def _modules(lines: str) -> dict[str, str]:
    """Map each name that the stub imports to its module."""
    words = [line.split() for line in lines.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in words}


_MODULE_OF = _modules(_LISTED) | _modules(_UNLISTED)
__all__ = sorted(_modules(_LISTED))


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in _MODULE_OF:
        message = f"{__name__!r} has no attribute {name!r}. Choose one of: {', '.join(__all__)}."
        raise AttributeError(message, name=name)
    home = import_module(_MODULE_OF[name])
    value = getattr(home, name, None) if home.__name__ != __name__ else None
    if value is None:
        value = import_module(f"{home.__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List only the public names, for tab completion."""
    return [*__all__, "__version__"]
