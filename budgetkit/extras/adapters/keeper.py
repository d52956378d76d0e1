"""Keeper: the base of all adapters, which trims messages to a budget.

The messages to send keep the framework's own objects. Everything in a framework's message is counted
(:func:`parts_of`); a Python warning names content that only the provider can count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from itertools import count as counting
from typing import Any
from warnings import warn

from pydantic_core import to_jsonable_python

from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.sent import Request, uncounted_notices
from budgetkit.conversation.trimming import trim, trim_budget
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.inputs.budgets import AnyBudget, AnyCounter
from budgetkit.message import Data, Message, Raw, as_json
from budgetkit.pruning import Policy
from budgetkit.pruning.policies.systems import general_policy_of
from budgetkit.requests.reading.parts import sorted_part

#: The field of a message for the framework's own object.
NATIVE = "framework_object"
Numbers = list[int | None]
#: Types of parts with a file, and of items that only the provider has.
_FILES = r"(input_)?(file|audio)|video|media|document|container_upload|item_reference"
#: Base64 data and encrypted text in JSON.
_BINARY = re.compile(
    r'"(?:data|base64|bytes|file_data|result|blob|signature|encrypted_content)": "[\w+/=\\-]{64,}"'
    r'|"data:[^",]*;base64,[^"]*"',
    re.ASCII,
)


class Keeper:
    """The base of adapters: it trims a framework's conversations to a budget.

    Parameters
    ----------
    budget : int or Budget
        Maximum tokens of a request, or a budget.
    policy : Policy, optional
        The pruning policy. Without a policy, each request is trimmed by itself, as by :func:`budgetkit.trim`. With a
        policy, a conversation, recognised by its messages, continues from its last request. Messages that the framework
        no longer passes are never sent.
    counter : str, Model or callable, optional
        Function that counts the tokens in a text, or the name of a counter or model; default: o200k_base.
    tools : sequence of Mapping
        Tool schemas that the framework sends but does not report; they are counted.
    conversations : int, default 256
        Number of conversations to remember. Any other conversation is pruned again from all its messages.
    **more
        Arguments of :class:`budgetkit.Conversation` if a policy is given, otherwise of :func:`budgetkit.trim`.

    Examples
    --------
    >>> said = [Message({"role": role, "content": "four"}) for role in ("user", "assistant", "user")]
    >>> [message["role"] for message in Keeper(16).fit(said)], len(Keeper(30).fit(said))
    (['user'], 3)
    """

    def __init__(
        self,
        budget: int | AnyBudget,
        policy: Policy | str | None = None,
        counter: AnyCounter | None = None,
        *,
        tools: Sequence[Raw] = (),
        conversations: int = 256,
        **more: Any,
    ) -> None:
        self.budget = budget
        self.policy = None if policy is None else general_policy_of(policy)
        self.counter = counter
        self.tools = tuple(tools)
        self.conversations = conversations
        self.more = more
        self._talks: dict[int | None, tuple[Conversation, set[int], Numbers]] = {}
        self._numbers = counting()
        self._lock = ForkSafeLock()

    def fit(self, messages: Sequence[Message], tools: Sequence[Raw] = ()) -> list[Data]:
        """Return the messages that fit into the next request."""
        _warn_of_uncounted(messages)
        if self.policy is None:
            return self._trimmed(messages, tools)
        talk, numbers = self._talk(messages, tools)
        return self._remembered(talk, messages, numbers, talk.request())

    async def afit(self, messages: Sequence[Message], tools: Sequence[Raw] = ()) -> list[Data]:
        """Return the messages that fit into the next request.

        Summaries that the policy asks for are awaited.
        """
        _warn_of_uncounted(messages)
        if self.policy is None:
            return self._trimmed(messages, tools)
        talk, numbers = self._talk(messages, tools)
        return self._remembered(talk, messages, numbers, await talk.arequest())

    def _trimmed(self, messages: Sequence[Message], tools: Sequence[Raw]) -> list[Data]:
        """Trim messages without a policy, and return the framework's own objects.

        Messages are identified by their position.
        """
        numbered = [
            Message({**message.raw, NATIVE: place}) if NATIVE in message.raw else message
            for place, message in enumerate(messages)
        ]
        sent = trim(numbered, self.budget, self.counter, tools=tools or self.tools, **self.more)
        return [
            {**raw, NATIVE: messages[raw[NATIVE]].raw[NATIVE]} if NATIVE in raw else raw
            for raw in sent
        ]

    def _talk(
        self, messages: Sequence[Message], tools: Sequence[Raw]
    ) -> tuple[Conversation, Numbers]:
        """Continue the matching conversation, or start a new conversation."""
        keys = _keys(messages)
        with self._lock:
            begun = next((n for n in range(len(messages), 0, -1) if keys[n] in self._talks), 0)
            talk, others, numbers = self._talks.get(keys[begun] if begun else None, (None, (), ()))
            for key in others:  # if the same messages come again, a new conversation begins
                self._talks.pop(key, None)
        if talk is None:
            talk = Conversation(trim_budget(self.budget), self.policy, self.counter, **self.more)
        tally = talk._engine.tally
        tally.tools = [dict(tool) for tool in tools or self.tools]
        tally.count_schemas()
        new = [Message({**m.raw, NATIVE: next(self._numbers)}) for m in messages[begun:]]
        talk.add(new)
        return talk, [*numbers, *(m.raw[NATIVE] for m in new)]

    def _remembered(
        self,
        talk: Conversation,
        messages: Sequence[Message],
        numbers: Numbers,
        to: Request,
    ) -> list[Data]:
        """Remember a conversation, and return the messages to send.

        The conversation is recognised later by its original or its trimmed messages, because some frameworks continue
        with the trimmed messages.
        """
        natives = [{NATIVE: m.raw[NATIVE]} if NATIVE in m.raw else {} for m in messages]
        # Summaries have no number.
        now: dict[int | None, Data] = dict(zip(numbers, natives, strict=True)) | {None: {}}
        sent: list[Data] = []
        sent_numbers: Numbers = []
        for raw in to.messages:
            number = raw.get(NATIVE)
            if number in now:
                sent.append({key: raw[key] for key in raw if key != NATIVE} | now[number])
                sent_numbers.append(number)

        # The framework continues with its own messages or with the trimmed messages.
        numbers_by_key = {
            _keys(messages)[-1]: numbers,
            _keys([*map(Message, sent)])[-1]: sent_numbers,
        }
        with self._lock:
            self._talks |= {
                key: (talk, {*numbers_by_key}, key_numbers)
                for key, key_numbers in numbers_by_key.items()
            }
            while len(self._talks) > 2 * self.conversations:
                del self._talks[next(iter(self._talks))]
        return sent


def parts_of(content: Any) -> Any:
    """Convert a framework's content to parts that are counted.

    Texts and images are counted as such, and so are the texts and images of a document or a search result. Any other
    part is counted as its JSON text without Base64 data and encrypted text. A part with such data, or a file that is
    only named, gets a second part with the same type, which is listed in `Message.uncounted`. Encrypted reasoning does
    not.

    >>> parts_of(["Look:", {"type": "shell_call", "action": {"commands": ["ls"]}}])
    ['Look:', {'type': 'text', 'text': '{"type": "shell_call", "action": {"commands": ["ls"]}}'}]
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, Mapping):
        return [
            part
            for entry in content or ()
            for part in ([entry] if isinstance(entry, str) else parts_of(entry))
        ]
    kind = str(content.get("type", ""))
    if re.fullmatch(
        "(input_|output_|summary_|reasoning_)?text|refusal|image_url|input_image", kind
    ):
        return [content]
    pieces = [piece for sort, piece in sorted_part(content) if sort == "text"]
    kinds = {piece["type"] for piece in pieces}
    if kinds == {"image_url"} or (
        kind in ("document", "search_result") and kinds <= {"image_url", "text"}
    ):
        return pieces
    written = as_json(to_jsonable_python(content, fallback=str, bytes_mode="base64"))
    text, found = _BINARY.subn('""', written)
    parts: list[Data] = [{"type": "text", "text": text}]
    is_file = found or {"url", "file_id"} & content.keys() or re.fullmatch(_FILES, kind)
    if is_file and not re.search("reasoning|thinking", kind):
        parts.append({"type": kind or "file", "hash": hash(written)})
    return parts


def _warn_of_uncounted(messages: Sequence[Message]) -> None:
    for notice in uncounted_notices(kind for message in messages for kind in message.uncounted):
        warn(notice, stacklevel=3)


def _keys(messages: Sequence[Message]) -> list[int]:
    """Return a key for each prefix of a conversation."""
    written = (
        repr(sorted((name, value) for name, value in m.raw.items() if name != NATIVE))
        for m in messages
    )
    return [*accumulate(written, lambda before, this: hash((before, this)), initial=0)]
