"""The seed systems and the usual applications, each a function that writes one `budgetkit.Budget`.

No preset has an algorithm of its own: what makes them differ are the fields of the budget they return.
`PRESETS` names them all for the explorer and for saved states.
"""

from budgetkit.presets.agent_prompt import agent_prompt
from budgetkit.presets.application import agent, chat, rag
from budgetkit.presets.context_budget import CONTEXT_BUDGET_SCHEMA
from budgetkit.presets.memory import memory_engine, working_memory
from budgetkit.presets.registry import PRESETS, Preset, preset
from budgetkit.presets.token_budget import token_budget
from budgetkit.presets.translation import Translation, translate

__all__ = ["CONTEXT_BUDGET_SCHEMA", "PRESETS", "Preset", "Translation", "agent", "agent_prompt", "chat"]
__all__ += ["memory_engine"]
__all__ += ["preset", "rag", "token_budget", "translate", "working_memory"]
