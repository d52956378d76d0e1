"""The seed systems and the usual applications, each a function that writes one `budgetkit.Budget`.

No preset has an algorithm of its own: what makes them differ are the fields of the budget they return.
`PRESETS` names them all for the explorer and for saved states.
"""

from budgetkit.presets.agent_prompt import agent_prompt
from budgetkit.presets.application import agent, chat, rag
from budgetkit.presets.memory import memory_engine, working_memory
from budgetkit.presets.registry import PRESETS, Preset, preset

__all__ = [
    "PRESETS",
    "Preset",
    "agent",
    "agent_prompt",
    "chat",
    "memory_engine",
    "preset",
    "rag",
    "working_memory",
]
