"""The seed systems and the usual applications, each a function that writes one `budgetkit.Budget`.

No preset has an algorithm of its own: what makes them differ are the fields of the budget they return.
`PRESETS` names them all for the explorer and for saved states.
"""

import json
from typing import Any

from budgetkit.budget.errors import unknown_name
from budgetkit.files import read_bytes
from budgetkit.presets.application import agent, chat, memory_engine, rag, working_memory
from budgetkit.presets.registry import PRESETS, Preset, preset
from budgetkit.presets.token_budget import agent_prompt, token_budget
from budgetkit.presets.translation import Translation, translate

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

#: JSON Schema of what `agent_prompt` reads, as it stands in a file under ``context_budget``.
CONTEXT_BUDGET_SCHEMA: dict[str, Any]


def __getattr__(name: str) -> Any:
    """Read the schema when it is first asked for."""
    if name != "CONTEXT_BUDGET_SCHEMA":
        functions = [each for each in sorted(__all__) if each.islower()]
        raise AttributeError(unknown_name("preset", name, functions))
    return globals().setdefault(name, json.loads(read_bytes("context_budget.schema.json")))


def __dir__() -> list[str]:
    return __all__
