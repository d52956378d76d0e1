"""Request: what is sent to a provider, whichever shape it had, as all rules read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from budgetkit.message import Message

__all__ = ["Raw", "Request", "as_object", "as_text", "kept_parts", "objects", "own_functions", "uncounted"]

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """Hold a request as all rules read it.

    Parameters
    ----------
    shape : str
        ``"chat"``, ``"responses"``, ``"anthropic"``, ``"gemini"`` or ``"converse"``.
    model : str
        As the request names it; empty where it does not.
    messages : tuple of Message
        In OpenAI's chat format, the system text first.
    tools : tuple of Mapping
        Functions that the model may call, each with a name.
    schema : Mapping or None
        Of the answer: ``name``, ``description`` and ``schema``.
    forced : str
        Name of the tool that must be called.
    required : bool
        Whether some tool must be called.
    sequential, thinking : bool
        Whether calls at once are forbidden, and whether thinking is switched on.
    uncounted : tuple of str
        What it holds that cannot be counted.
    """

    shape: str
    model: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Raw, ...] = ()
    schema: Raw | None = None
    forced: str = ""
    required: bool = False
    sequential: bool = False
    thinking: bool = False
    uncounted: tuple[str, ...] = ()


def own_functions(tools: Iterable[Raw]) -> tuple[tuple[Raw, ...], list[str]]:
    """Part functions from tools that run at the provider."""
    listed = list(tools)
    own = [tool for tool in listed if tool.get("type", "function") == "function"]
    return tuple(own), [f"built-in tool {tool['type']}" for tool in listed if tool not in own]


def uncounted(messages: Iterable[Message], *kinds: str) -> tuple[str, ...]:
    """Name once each kind of content that cannot be counted: those given, then those of the messages' parts."""
    return tuple(dict.fromkeys([*kinds, *(kind for message in messages for kind in message.uncounted)]))


def kept_parts(content: Any) -> Any:
    """Keep a text, and of a list what is a part."""
    if isinstance(content, list | tuple):
        return [part for part in content if isinstance(part, str | Mapping)]
    return content if content is None or isinstance(content, str) else str(content)


def objects(value: object) -> list[Raw]:
    """Return the objects of a list; of anything else none."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def as_object(value: object) -> Raw:
    """Return what should be an object as one."""
    return value if isinstance(value, Mapping) else {}


def as_text(value: object) -> str:
    """Return what should be a text as one."""
    return value if isinstance(value, str) else ""
