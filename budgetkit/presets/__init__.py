"""Presets: functions that return a `budgetkit.Budget` for a system or an application.

Presets have no algorithms of their own; they differ only in the fields of the budget. `PRESETS` lists all presets for
the explorer and for saved states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.quoting import brief
from budgetkit.files import Table, read_bytes, read_toml
from budgetkit.plugins import load_plugin, plugin_names
from budgetkit.presets.application import agent, chat, memory_engine, rag, working_memory
from budgetkit.presets.token_budget import agent_prompt, token_budget
from budgetkit.presets.translation import Translation, translate

#: Typical sizes of the components of a working memory, in tokens.
TYPICAL = Table(lambda: read_toml("presets.toml")["typical"])
#: Usual ranges of these sizes, in tokens; the history takes the remaining tokens.
TYPICAL_RANGES = Table(lambda: read_toml("presets.toml")["typical_ranges"])


@dataclass(frozen=True, slots=True)
class Preset:
    """A named function that splits a window into a budget.

    Parameters
    ----------
    name : str
        Name of the preset and of its function.
    make : callable
        Function that returns a Budget for a window in tokens or for a Model.
    title : str
        Short title for a selection list.
    demand : mapping of str to int
        Demand of each section while no trace is loaded, in tokens.
    ranges : mapping of str to pair of int
        Usual range of each demand, in tokens, if the system's document states a range.

    Examples
    --------
    >>> PRESETS["rag"](8_192).cap("retrieval")
    3276
    """

    name: str
    make: Callable[..., Budget] = field(repr=False)
    title: str
    demand: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __call__(self, *arguments: object, **settings: object) -> Budget:
        """Call ``make`` and return its budget.

        Examples
        --------
        >>> PRESETS["agent"](8_192).name
        'agent'
        """
        return self.make(*arguments, **settings)


_LIKE = {"system": "system", "memory": "episodes", "retrieval": "knowledge", "user": "current"}
_LIKE_MEMORY = {"directive": "system", "messages": "current", "memory": "knowledge"}
_APPLICATION = Table(lambda: {name: TYPICAL[like] for name, like in _LIKE.items()})
_PROMPT = Table(lambda: read_toml("presets.toml")["agent_prompt"]["demand"])
_MEMORY = Table(lambda: {name: TYPICAL[like] for name, like in _LIKE_MEMORY.items()})

_SHIPPED = {
    preset.name: preset
    for preset in (
        Preset("chat", chat, "Chat with some retrieval", _APPLICATION),
        Preset("rag", rag, "Retrieval first", _APPLICATION),
        Preset("agent", agent, "Agent with tools", _APPLICATION),
        Preset(
            "working_memory",
            working_memory,
            "Working memory: history gets the rest",
            TYPICAL,
            TYPICAL_RANGES,
        ),
        Preset("memory_engine", memory_engine, "Memory engine: memory gets the rest", _MEMORY),
        Preset("agent_prompt", agent_prompt, "Agent prompt with priority classes", _PROMPT),
    )
}


def _with_plugins() -> dict[str, Preset]:
    """Return the presets of this package and of plug-ins, by name.

    A plug-in is imported when its preset is first called.
    """

    def added(name: str) -> Preset:
        def make(*arguments: object, **settings: object) -> Budget:
            budget = load_plugin("presets", name)(*arguments, **settings)
            if isinstance(budget, Budget):
                return budget
            raise TypeError(
                f"The preset {brief(name)} of a plug-in returned {brief(budget)}. It must return a Budget."
            )

        return Preset(name, make, f"{name} (of another package)")

    return {name: added(name) for name in plugin_names("presets")} | _SHIPPED


#: All presets by name, shipped or added by other packages through the entry point ``budgetkit.presets``.
PRESETS: Mapping[str, Preset] = Table(_with_plugins)


def preset(name: str) -> Preset:
    """Return a preset by its name.

    Parameters
    ----------
    name : str
        One of `PRESETS`.

    Returns
    -------
    Preset
        The preset.

    Raises
    ------
    LookupError
        If there is no such preset.

    Examples
    --------
    >>> preset("chat").title
    'Chat with some retrieval'
    """
    if name not in PRESETS:
        raise LookupError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]


__all__ = [
    "CONTEXT_BUDGET_SCHEMA",
    "PRESETS",
    "Preset",
    "Translation",
    "agent",
    "agent_prompt",
    "chat",
]
__all__ += ["memory_engine", "preset", "rag", "token_budget", "translate", "working_memory"]

#: JSON Schema of the configurations that `agent_prompt` reads under ``context_budget``.
CONTEXT_BUDGET_SCHEMA: dict[str, Any]


def __getattr__(name: str) -> Any:
    """Return the JSON schema, which is read on first use."""
    if name != "CONTEXT_BUDGET_SCHEMA":
        functions = [function for function in sorted(__all__) if function.islower()]
        raise AttributeError(unknown_name("preset", name, functions))
    return globals().setdefault(name, json.loads(read_bytes("context_budget.schema.json")))


__dir__ = __all__.copy  # completion shows no other names
