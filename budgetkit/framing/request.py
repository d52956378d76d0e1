"""Request: what is sent to a provider, in one form for all rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from budgetkit.files import read_toml
from budgetkit.framing.paths import found, holds
from budgetkit.message import Message

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """Hold a request as all rules read it."""

    shape: str  # "chat", "responses", "anthropic", "gemini" or "converse"
    model: str = ""  # as the request names it
    messages: tuple[Message, ...] = ()  # in OpenAI's chat format, the system text first
    tools: tuple[Raw, ...] = ()  # functions that the model may call, each with a name
    schema: Raw | None = None  # of the answer: name, description and schema
    forced: str = ""  # the tool that must be called
    required: bool = False  # whether some tool must be called
    sequential: bool = False  # whether calls at once are forbidden
    thinking: bool = False  # whether thinking is switched on
    uncounted: tuple[str, ...] = ()  # what it holds that cannot be counted


def asked(raw: Raw, shape: str) -> dict[str, Any]:
    """Return what a body asks for beside messages and tools, where the table of requests says it stands.

    >>> asked({"model": "gpt-4o", "tool_choice": "required"}, "chat")["required"]
    True
    """
    row = read_toml("framings.toml")["request"][shape]
    schema, forced = (
        next((found(raw, path, unpack=True) for needed, path in row.get(name, ()) if holds(raw, needed)), None)
        for name in ("schema", "forced")
    )
    said = {
        name: any(holds(raw, each) for each in row.get(name, ())) for name in ("required", "sequential", "thinking")
    }
    names = {"shape": shape, "model": as_text(found(raw, row["model"])), "forced": as_text(forced)}
    return {**names, **said, "schema": schema if isinstance(schema, Mapping) else None}


def own_functions(tools: Iterable[Raw]) -> tuple[tuple[Raw, ...], list[str]]:
    """Separate functions from the provider's built-in tools; return both."""
    listed = list(tools)
    own = [tool for tool in listed if tool.get("type", "function") == "function"]
    return tuple(own), [f"built-in tool {tool['type']}" for tool in listed if tool not in own]


def uncounted(messages: Iterable[Message], *kinds: str) -> tuple[str, ...]:
    """Name each kind of content that cannot be counted once: those given, then those of the messages' parts."""
    return tuple(dict.fromkeys([*kinds, *(kind for message in messages for kind in message.uncounted)]))


def kept_parts(content: Any) -> Any:
    """Return a text as it is, and of a list the elements that can be parts."""
    if isinstance(content, list | tuple):
        return [part for part in content if isinstance(part, str | Mapping)]
    return content if content is None or isinstance(content, str) else str(content)


def objects(value: object) -> list[Raw]:
    """Return the objects in a list; an empty list for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def as_object(value: object) -> Raw:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_text(value: object) -> str:
    """Return a text as it is, and an empty one for anything else."""
    return value if isinstance(value, str) else ""
