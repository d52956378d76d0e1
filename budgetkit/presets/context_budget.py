"""The JSON Schema of Plan #195's own configuration."""

from __future__ import annotations

import json
from typing import Any, Final

from budgetkit.files import read_bytes

#: JSON Schema of what `agent_prompt` reads, as it stands in a file under ``context_budget``.
CONTEXT_BUDGET_SCHEMA: Final[dict[str, Any]] = json.loads(read_bytes("context_budget.schema.json"))
