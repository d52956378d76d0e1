"""The JSON Schema of Plan #195's own configuration."""

from __future__ import annotations

from typing import Any, Final

from budgetkit.presets.agent_prompt import POLICIES, PRIORITIES

_AMOUNT = {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$"}]}
_SWITCH = {"type": ["boolean", "null"]}
_SECTION = {
    "type": ["object", "null"],
    "properties": {
        "max_tokens": {"anyOf": [_AMOUNT, {"type": "null"}]},
        "priority": {"enum": [*PRIORITIES, None]},
        "enabled": _SWITCH,
    },
    "additionalProperties": False,
}
_SECTIONS = {"type": ["object", "null"], "additionalProperties": _SECTION}
#: JSON Schema of what `agent_prompt` reads, as it stands in a file under ``context_budget``.
CONTEXT_BUDGET_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Plan #195, context budget",
    "type": "object",
    "properties": {
        "context_budget": {
            "type": ["object", "null"],
            "properties": {
                "enabled": _SWITCH,
                "total_tokens": {"type": ["integer", "null"], "minimum": 0},
                "output_reserve": {"anyOf": [_AMOUNT, {"type": "null"}]},
                "overflow_policy": {"enum": [*POLICIES, None]},
                "allocations": _SECTIONS,
                "sections": _SECTIONS,
            },
            "additionalProperties": False,
        }
    },
    "required": ["context_budget"],
    "additionalProperties": False,
}
