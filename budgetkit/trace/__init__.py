"""Load conversations, divide them into turns, and count each section's demand.

- `loading.py` has `load_trace`. `containers.py`, `jsonl.py` and `tables.py` read files.
- A format is a row of ``data/formats.toml`` (`requests/reading/formats.py`) or a reader in `importers/`;
  CONTRIBUTING.md explains how to add a format.
- `opening.py` checks each conversation and builds a `Trace` (in `conversation.py`).
- `tally.py` computes the demand of each turn by section, in tokens; `provider_usage.py` reads the provider's counts.
"""

from budgetkit.message import Message, json_value
from budgetkit.trace.conversation import Trace
from budgetkit.trace.importers.documents import messages_in, messages_of
from budgetkit.trace.loading import (
    iter_traces,
    list_traces,
    load_trace,
    load_traces,
    shipped_traces,
)
from budgetkit.trace.opening import to_line
from budgetkit.trace.provider_usage import (
    Usage,
    counted_prompts,
    in_line,
    readings,
    unpaired,
    usage_columns,
    usage_frame,
)
from budgetkit.trace.tally import (
    DEFAULT_ROLES,
    UNSENT,
    Roles,
    Tally,
    Turn,
    enters_at_once,
    past_section,
    section_beside_call,
)

__all__ = [
    "DEFAULT_ROLES",
    "Message",
    "Tally",
    "Trace",
    "Turn",
    "iter_traces",
    "list_traces",
    "load_trace",
]
__all__ += ["load_traces", "messages_of", "readings", "shipped_traces"]
__all__ += ["to_line", "unpaired", "usage_frame"]
# Names for the packages above this one.
__all__ += [
    "UNSENT",
    "Roles",
    "Usage",
    "counted_prompts",
    "enters_at_once",
    "in_line",
    "json_value",
]
__all__ += ["messages_in", "past_section", "section_beside_call", "usage_columns"]
