"""How OpenAI's models are shown the schema that their answer must keep to.

The rules were derived from recorded calls of public projects (requests with the provider's usage; read 2026-11-21);
OpenAI documents none of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["schema_block"]

# Keys that the model is not shown. Names of properties stay, whatever they are.
_UNSEEN = {"required", "additionalProperties", "default", "$schema", "multipleOf"}
_UNSEEN |= {f"{end}{of}" for end in ("min", "max") for of in ("Items", "Length", "imum", "Properties")}
_UNSEEN |= {"exclusiveMinimum", "exclusiveMaximum"}
_NAMES = ("properties", "$defs", "definitions")
_DEEPEST = 200


def schema_block(schema: Mapping[str, Any]) -> str:
    r"""Write the block: a heading, the name, the description as a comment, the schema as compact ASCII JSON.

    >>> shape = {"type": "object", "properties": {"default": {"type": "string", "default": ""}}, "required": []}
    >>> schema_block({"name": "Reply", "schema": shape})
    '# Response Formats\n\n## Reply\n\n{"type":"object","properties":{"default":{"type":"string"}}}'
    """
    described = f"// {schema['description']}\n" if schema.get("description") else ""
    shown = json.dumps(_shown(schema.get("schema") or {}), separators=(",", ":"), default=str)
    return f"# Response Formats\n\n## {schema.get('name') or ''}\n\n{described}{shown}"


def _shown(value: Any, names: bool = False, depth: int = 0) -> Any:
    """Leave out the keys that the model is not shown; names of properties always stay."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Mapping):
        kept = {key: inner for key, inner in value.items() if names or key not in _UNSEEN}
        return {key: _shown(inner, not names and key in _NAMES, depth + 1) for key, inner in kept.items()}
    return [_shown(inner, depth=depth + 1) for inner in value] if isinstance(value, list | tuple) else value
