"""Growing conversations: calls, one after the other, put together to the conversations that they belong to.

A request begins with what was said before, or with as much of it as its program has kept; or it names the answer that
it goes on after. So a call goes on the conversation whose end it repeats, and otherwise begins a new one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from budgetkit.message import Message
from budgetkit.trace import Trace, load_trace

__all__ = ["Growing", "added"]

_TAIL = 2  # messages that a request repeats of the conversation that it goes on


@dataclass(slots=True)
class Growing:
    """One conversation, as far as it has come."""

    id: str
    messages: list[Message] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[Mapping[str, Any], ...] = ()
    answers: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    def goes_on(self, asked: Sequence[Message], after: object) -> int | None:
        """Return from which message on a request is new here; None where it belongs to another conversation."""
        if isinstance(after, str):
            openings = sum(message.role in ("system", "developer") for message in asked[:1])
            return openings if after in self.answers else None
        keys, tail = list(map(_key, asked)), list(map(_key, self.messages[-_TAIL:]))
        return next((at for at in range(len(keys), 0, -1) if keys[max(0, at - len(tail)) : at] == tail), None)

    def trace(self) -> Trace:
        """Return it as a trace."""
        fields = {"format": "recorded-call", "usage": [*self.usage], "warnings": [*dict.fromkeys(self.warnings)]}
        return Trace(self.id, tuple(self.messages), self.tools, fields=fields)


def added(known: list[Growing], request: Mapping[str, Any], answer: Any) -> Growing:
    """Add a call to the conversation that it goes on, or as a new one; return that.

    Examples
    --------
    >>> known, said = [], [{"role": "user", "content": "Hello"}]
    >>> answer = {"choices": [{"message": {"role": "assistant", "content": "Yes?"}}], "usage": {"prompt_tokens": 8}}
    >>> _ = added(known, {"messages": said}, answer)
    >>> again = [*said, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "How are you?"}]
    >>> growing = added(known, {"messages": again}, answer)
    >>> len(known), len(growing.messages), [row["message_index"] for row in growing.usage]
    (1, 4, [1, 3])
    """
    after = request.get("previous_response_id")
    call, asked = load_trace({"request": request, "response": answer}), load_trace({"request": request}).messages
    found = ((each, each.goes_on(asked, after)) for each in reversed(known))
    growing, new = next(((each, at) for each, at in found if at is not None), (None, 0))
    if growing is None:
        growing = Growing(f"watched-{len(known) + 1}")
        known.append(growing)
    shift = len(growing.messages) - new
    growing.messages += map(_paired, call.messages[new:])
    growing.usage += [{**row, "message_index": row["message_index"] + shift} for row in call.fields.get("usage") or ()]
    growing.tools = call.tools or growing.tools
    growing.warnings += [note for note in call.fields.get("warnings") or () if after is None]
    growing.answers.add(str(answer.get("id")) if isinstance(answer, Mapping) else "")
    return growing


def _paired(message: Message) -> Message:
    """Return a tool result whose call stands in an earlier request as one again."""
    native = message.raw.get("native")
    if message.role != "function" or not isinstance(native, Mapping) or not isinstance(native.get("call_id"), str):
        return message
    return Message({**message.raw, "role": "tool", "tool_call_id": native["call_id"]})


def _key(message: Message) -> Hashable:
    calls = tuple(call.id or call.name for call in message.tool_calls)
    return message.role, message.text.strip(), calls, message.tool_call_id
