"""Growing conversations: calls, one after the other, put together to the conversations that they belong to.

A request begins with what was said before, or with as much of it as its program has kept; or it names the answer that
it goes on after. So a call goes on the conversation whose end it repeats, and otherwise begins a new one; of several,
the one of which it repeats the most from the beginning.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from typing import Any

from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.trace import Trace, load_trace

_TAIL = 2  # messages that a request repeats of the conversation that it goes on


@dataclass(slots=True)
class Growing:
    """One conversation, as far as it has come."""

    id: str
    messages: list[Message] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[Mapping[str, Any], ...] = ()
    warnings: list[str] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)

    def repeated(self, keys: Sequence[Hashable]) -> int:
        """Count the messages of its beginning that a request begins with."""
        return sum(1 for _ in takewhile(bool, map(eq, self.keys, keys)))

    def trace(self) -> Trace:
        """Return it as a trace."""
        fields = {
            "format": "recorded-call",
            "usage": [*self.usage],
            "warnings": [*dict.fromkeys(self.warnings)],
        }
        return Trace(self.id, tuple(self.messages), self.tools, fields=fields)


class Grown(list[Growing]):
    """All conversations, found by how they end and by the answers that they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[Hashable, set[int]] = {}
        self.answers: dict[str, int] = {}

    def found(self, messages: Sequence[Message], after: object) -> tuple[int, int]:
        """Return which conversation a request goes on, a new one where none, and from which message on it is new."""
        if isinstance(after, str):
            openings = sum(message.role in SYSTEM_ROLES for message in messages[:1])
            if after in self.answers:
                return (self.answers[after], openings)
            return (len(self), 0)
        keys = list(map(_key, messages))
        tails = {
            tuple(keys[at - size : at]): at
            for size in range(1, _TAIL + 1)
            for at in range(size, len(keys) + 1)
        }
        candidates = (
            (self[which].repeated(keys), which, tails[end])
            for end in tails
            for which in self.ends.get(end, ())
        )
        run, which, at = max(candidates, default=(0, len(self), 0))
        return which, run if which < len(self) and run == len(self[which].keys) else at

    def grow(self, which: int, messages: Sequence[Message], answer: object) -> None:
        """Add messages to a conversation, and know it by its new end and its answer."""
        keys = list(map(_key, messages))
        growing = self[which]
        self.ends.get(tuple(growing.keys[-_TAIL:]), set()).discard(which)
        growing.messages = [*growing.messages, *messages]
        growing.keys = [*growing.keys, *keys]
        self.ends.setdefault(tuple(growing.keys[-_TAIL:]), set()).add(which)
        self.answers[str(answer.get("id")) if isinstance(answer, Mapping) else ""] = which


def added(conversations: Grown, request: Mapping[str, Any], answer: Any) -> Growing:
    """Add a call to the conversation that it goes on, or as a new one; return that.

    Examples
    --------
    >>> known, said = Grown(), [{"role": "user", "content": "Hello"}]
    >>> answer = {"choices": [{"message": {"role": "assistant", "content": "Yes?"}}], "usage": {"prompt_tokens": 8}}
    >>> _ = added(known, {"messages": said}, answer)
    >>> again = [*said, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "How are you?"}]
    >>> growing = added(known, {"messages": again}, answer)
    >>> len(known), len(growing.messages), [row["message_index"] for row in growing.usage]
    (1, 4, [1, 3])
    """
    after = request.get("previous_response_id")
    call = load_trace({"request": request, "response": answer})
    request_messages = load_trace({"request": request}).messages
    which, new = conversations.found(request_messages, after)
    if which == len(conversations):
        conversations.append(Growing(f"watched-{len(conversations) + 1}"))
    growing = conversations[which]
    shift = len(growing.messages) - new
    conversations.grow(which, [*map(_paired, call.messages[new:])], answer)
    growing.usage += [
        {**row, "message_index": row["message_index"] + shift}
        for row in call.fields.get("usage") or ()
    ]
    growing.tools = call.tools or growing.tools
    growing.warnings += [note for note in call.fields.get("warnings") or () if after is None]
    return growing


def _paired(message: Message) -> Message:
    """Return a tool result whose call stands in an earlier request as one again."""
    native = message.raw.get("native")
    if (
        message.role != "function"
        or not isinstance(native, Mapping)
        or not isinstance(native.get("call_id"), str)
    ):
        return message
    return Message({**message.raw, "role": "tool", "tool_call_id": native["call_id"]})


def _key(message: Message) -> Hashable:
    calls = tuple(call.id or call.name for call in message.tool_calls)
    return message.role, message.text.strip(), calls, message.tool_call_id
