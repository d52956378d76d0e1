"""The presets by name: what they are for, what remains, and demands to start from without a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, quoted
from budgetkit.presets.agent_prompt import agent_prompt
from budgetkit.presets.application import agent, chat, rag
from budgetkit.presets.memory import memory_engine, working_memory

#: Typical sizes of the components of a working memory, in tokens: Octopus, guide "Working Memory" (document
#: 002), the example beside its table. Each lies within the range that the table gives.
TYPICAL = {"system": 1_200, "procedure": 300, "knowledge": 1_500, "episodes": 400, "current": 100}
#: The typical sizes of that table, as from and to, in tokens; the history takes what is left.
TYPICAL_RANGES = {
    "system": (500, 3_000),
    "procedure": (100, 500),
    "knowledge": (500, 2_000),
    "episodes": (100, 500),
    "current": (20, 500),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A way to split a window.

    Parameters
    ----------
    name : str
        Its name, and that of the function.
    make : callable
        Takes a window in tokens or a Model and returns a Budget.
    title : str
        A few words for a list to choose from.
    demand : mapping of str to int
        Demands to start from without a trace, in tokens.
    ranges : mapping of str to (int, int)
        Between which sizes they usually lie, in tokens, where the system's document says it.

    Examples
    --------
    >>> PRESETS["rag"](8_192).cap("retrieval")
    3276
    """

    name: str
    make: Callable[..., Budget]
    title: str
    demand: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __call__(self, *arguments: object, **settings: object) -> Budget:
        """Return ``make(...)``.

        Examples
        --------
        >>> PRESETS["agent"](8_192).name
        'agent'
        """
        return self.make(*arguments, **settings)


_APPLICATION = {
    "system": TYPICAL["system"],
    "memory": TYPICAL["episodes"],
    "retrieval": TYPICAL["knowledge"],
    "user": TYPICAL["current"],
}
_AGENT_PROMPT = {"system_prompt": 450, "working_memory": 780, "rag_memories": 400}  # document 003's example

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("chat", chat, "Chat with some retrieval", _APPLICATION),
        Preset("rag", rag, "Retrieval first", _APPLICATION),
        Preset("agent", agent, "Agent with tools", _APPLICATION),
        Preset("working_memory", working_memory, "Working memory: history has the rest", TYPICAL, TYPICAL_RANGES),
        Preset(
            "memory_engine",
            memory_engine,
            "Memory engine: memory has the rest",
            {"directive": TYPICAL["system"], "messages": TYPICAL["current"], "memory": TYPICAL["knowledge"]},
        ),
        Preset("agent_prompt", agent_prompt, "Agent prompt with priority classes", _AGENT_PROMPT),
    )
}


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
        If there is none of that name.

    Examples
    --------
    >>> preset("chat").title
    'Chat with some retrieval'
    """
    if name not in PRESETS:
        raise LookupError(f"no preset {brief(name)}; known are {quoted(PRESETS)}; choose one of them")
    return PRESETS[name]
