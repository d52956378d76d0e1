"""The JSON Schema of saved states, made from the same choices that the dataclasses check."""

from __future__ import annotations

from typing import Any, get_args

from budgetkit.budget.allocation import Fill, Granularity, Keep, Overflow
from budgetkit.budget.amounts import ROUNDINGS
from budgetkit.budget.budget import Deficit, Order, Pool, WindowKind
from budgetkit.plan.decisions import REASONS

TOKENS = {"type": "integer", "minimum": 0}
TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean"}


def schema() -> dict[str, Any]:
    """Return the schema that every saved state satisfies.

    Examples
    --------
    >>> sorted(schema()["properties"])
    ['budget', 'budgetkit', 'plan']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "budgetkit saved state",
        "type": "object",
        "properties": {"budgetkit": {"const": 1}, "budget": _ref("budget"), "plan": _ref("plan")},
        "required": ["budgetkit"],
        "oneOf": [{"required": ["budget"]}, {"required": ["plan"]}],
        "additionalProperties": False,
        "$defs": {
            "share": _object(["ratio"], ratio={"type": "string"}, at_least=TOKENS, at_most=TOKENS),
            "amount": {"oneOf": [TOKENS, _ref("share")]},
            "reserve": _object(["name", "size"], name=TEXT, size=_ref("amount"), serves=TEXT),
            "allocation": _allocation(),
            "budget": _budget(),
            "group": {"type": ["string", "number", "boolean", "null", "array"], "items": _ref("group")},
            "text": {
                "type": "object",
                "properties": {"message": {"type": "object", "required": ["role"]}, "value": True},
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
            },
            "plan": _plan(),
        },
    }


def _allocation() -> dict[str, Any]:
    return _object(
        ["section"],
        section=TEXT,
        cap=_ref("amount"),
        floor=_ref("amount"),
        weight=TOKENS,
        importance={"type": "integer"},
        required=FLAG,
        overflow=_one_of(Overflow),
        when_full=_one_of(Overflow),
        keep=_one_of(Keep),
        fill=_one_of(Fill),
        granularity=_one_of(Granularity),
        limit_items=TOKENS,
    )


def _budget() -> dict[str, Any]:
    return _object(
        ["window"],
        window=TOKENS,
        reserves=_list(_ref("reserve")),
        allocations=_list(_ref("allocation")),
        kind=_one_of(WindowKind),
        order=_one_of(Order),
        deficit=_one_of(Deficit),
        undeclared={"enum": ["error", "pool"]},
        pool=_one_of(Pool),
        compete={"enum": ["section", "item"]},
        rounding={"enum": list(ROUNDINGS)},
        remainder=TEXT,
        constrained_below=TOKENS,
        roles={"type": "object", "additionalProperties": TEXT},
        name={"type": "string"},
        max_output=TOKENS,
    )


def _plan() -> dict[str, Any]:
    grant = _object(
        ["section", "demand", "limit", "granted"], section=TEXT, demand=TOKENS, limit=TOKENS, granted=TOKENS
    )
    item = _object(
        ["section", "tokens"],
        section=TEXT,
        tokens=TOKENS,
        score={"type": "number"},
        importance={"type": "integer"},
        group=_ref("group"),
    )
    return _object(
        ["budget", "grants", "items", "kept", "reasons", "cuts"],
        budget=_ref("budget"),
        grants=_list(grant),
        items=_list(item),
        kept=_list(TOKENS),
        reasons=_list({"enum": list(REASONS)}),
        cuts=_list(TOKENS),
        texts=_object(["items", "cuts"], items=_list(_ref("text")), cuts=_list(_ref("text"))),
    )


def _object(required: list[str], /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _list(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _one_of(choices: Any) -> dict[str, Any]:
    return {"enum": list(get_args(choices))}
