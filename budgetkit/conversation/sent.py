"""Finished requests in their provider's format, counted as billed.

A message may cost more or fewer tokens among other messages than alone, because of changes of speaker, parallel calls
or merged messages. A request is therefore counted as a whole, by the rules of :func:`budgetkit.count_request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from budgetkit.budget import brief
from budgetkit.counters import Count
from budgetkit.counters.protocol import as_counter
from budgetkit.message import RESULT_ROLES, Data, Message, Raw, empty_notices
from budgetkit.plan import Plan
from budgetkit.requests import Framing, ProviderRequest, Toolset, read_request
from budgetkit.requests.billing.charges import count_charges
from budgetkit.requests.billing.images import sized
from budgetkit.requests.billing.openai import OpenAIRules
from budgetkit.requests.billing.request_count import uncounted_parts
from budgetkit.requests.reading.forms import is_compaction
from budgetkit.requests.reading.writing import (
    OMISSION,
    ProviderMessages,
    system_text,
    write_messages,
)

#: Formats whose providers require that a user message comes first.
USER_FIRST = ("anthropic", "converse", "gemini")
#: The fields for messages and system text in each form; only Converse has the last field.
_BODIES = {
    "responses": ("input", "instructions", ()),
    "anthropic": ("messages", "system", ()),
    "gemini": ("contents", "systemInstruction", ()),
    "converse": ("messages", "system", ("inferenceConfig",)),
}


Why = Literal["dropped", "summarised", "shrunk", "shortened", "unanswered"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A dropped, shortened or unanswered message, with the reason.

    Parameters
    ----------
    message : Mapping
        The message before its removal or change.
    why : {"dropped", "summarised", "shrunk", "shortened", "unanswered"}
        The reason: the policy dropped the message, summarised it, or replaced a tool result with a placeholder; a text
        too large for the window was shortened; or a tool call waits for its result (or a result for its call) and is
        sent later.

    Examples
    --------
    >>> Removal({"role": "user", "content": "Hello world"}, "dropped").why
    'dropped'
    """

    message: Raw
    why: Why


@dataclass(frozen=True, slots=True)
class Request:
    """The next request of a conversation.

    Parameters
    ----------
    messages : list of dict
        Messages in order, in their original format or OpenAI's chat format. The messages belong to the conversation:
        copy a message before you change it.
    tools : list of dict
        Tool schemas in the format of the messages. The schemas of Gemini and Bedrock Converse have the objects that
        wrap them.
    plan : Plan
        The plan, with the tokens and limit of each section.
    tokens : int
        Size of the whole request as counted by :func:`budgetkit.count_request`: messages, schemas, priming and the text
        about the budget.
    over : int
        Tokens beyond the usable window, or 0 if the request fits.
    left : tuple of Removal
        Messages dropped or shortened for this request, and unanswered messages, with reasons.
    summaries : tuple of str
        Summaries written for this request. A summary that is not sent is also in `left`, with a warning.
    stable : int
        Number of leading messages unchanged from the last request, which a prompt cache may hold.
    warnings : tuple of str
        Warnings about content that does not fit, floors that are not met, lost summaries, and content that only the
        provider can count, such as a PDF or an image by URL.
    system : str, list, dict or None
        The system text, if the provider takes it separately: ``system`` of Anthropic and Converse,
        ``systemInstruction`` of Gemini. None if the text is among the messages, or if there is none.

    Examples
    --------
    >>> import budgetkit as bk
    >>> talk = bk.Conversation(bk.presets.working_memory(4_000, output=500))
    >>> talk.add({"role": "user", "content": "Hello world"})
    >>> request = talk.request()
    >>> request.messages, request.tokens
    ([{'role': 'user', 'content': 'Hello world'}], 9)
    """

    messages: list[Data]
    tools: list[Data]
    plan: Plan
    tokens: int
    over: int = 0
    left: tuple[Removal, ...] = ()
    summaries: tuple[str, ...] = ()
    stable: int = 0
    warnings: tuple[str, ...] = ()
    system: Any = None


class TextSizes:
    """A counter that caches the tokens of texts in consecutive requests.

    Examples
    --------
    >>> TextSizes(len).many(["Hello", "world!"])
    [5, 6]
    """

    def __init__(self, count: Count) -> None:
        self._count = as_counter(count).many
        self._last: dict[str, int] = {}  # texts of the last request
        self._sizes: dict[str, int] = {}  # those used since

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts."""
        sizes = self._sizes
        for text in texts:
            if text in self._last:
                sizes[text] = self._last[text]
        new = [text for text in dict.fromkeys(texts) if text not in sizes]
        sizes.update(zip(new, self._count(new), strict=True))
        return [sizes[text] for text in texts]

    def end_request(self) -> None:
        """Discard the cached texts that this request did not use."""
        self._last = self._sizes
        self._sizes = {}


def uncounted_notices(names: Iterable[str]) -> list[str]:
    """Return warnings about content that only the provider can count."""
    return [
        f"Only the provider can count {name}. Leave tokens free for it."
        for name in dict.fromkeys(names)
    ]


def is_sum(framing: Framing) -> bool:
    """Return True if a text-only chat costs the sum of its messages."""
    return framing.rules is None or isinstance(framing.rules, OpenAIRules)


@dataclass(frozen=True)
class SentRequest:
    """A finished request, as the provider reads and bills it."""

    written: ProviderMessages
    billed: ProviderRequest
    framing: Framing

    @classmethod
    def of(
        cls,
        raws: Sequence[Mapping[str, Any]],
        form: str,
        framing: Framing,
        tools: Toolset,
        most_head: int | None = None,
    ) -> SentRequest:
        """Write chat messages in a format, and read them as providers do."""
        messages = write_messages(raws, form, most_head)
        if form == "chat":
            read = tuple(map(Message, messages.messages))
            kinds = (kind for message in read for kind in message.uncounted)
            billed = ProviderRequest(form, messages=read, uncounted=tuple(kinds))
        else:
            field, beside, marks = _BODIES[form]
            system = system_text(raws[: messages.head], form)
            body = {field: messages.messages, beside: system, **dict.fromkeys(marks)}
            billed = read_request(body)
        billed = replace(
            billed,
            model=framing.rules.model if framing.rules else "",
            tools=tools.functions,
            uncounted=(*tools.uncounted, *billed.uncounted),
        )
        return cls(written=messages, billed=billed, framing=framing)

    def tokens(self, count: Count) -> int:
        """Count the tokens of the whole request."""
        return sum(count_charges(self.framing.charges(self.billed), count))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about uncounted parts, and about messages that providers may reject."""
        messages = self.billed.messages
        form = self.written.form
        charges = partial(self.framing.charges, self.billed)
        names = uncounted_parts(self.billed, self.framing.rules, None, charges)
        if any(sized(image) is None for message in messages for image in message.images):
            names.append("the actual size of an image")
        warnings = empty_notices(messages)
        warnings += uncounted_notices(names)
        if form == "chat" and any(
            message.role in RESULT_ROLES and message.images for message in messages
        ):
            warnings.append(
                "OpenAI's chat format accepts images only from users, not in a tool result. Send the image in a user "
                'message, or choose another format, such as form="responses".'
            )
        if any(OMISSION in message.texts for message in messages):
            warnings.append(
                "A file, recording or encrypted text was left out, because this format cannot hold it. Send its "
                "text, or choose another format."
            )
        if form == "converse" and any(
            "image_url" in part for message in self.written.messages for part in message["content"]
        ):
            warnings.append("Converse accepts no image URL. Send the bytes of the image.")
        opening = self.written.messages[0] if self.written.messages else {"role": "user"}
        role = opening.get("role")
        if form in USER_FIRST and role != "user" and not is_compaction(opening):
            warnings.append(
                f"The request starts with a message of role {brief(role)}, which providers of this format "
                'may reject. Set start_on="user" to omit it.'
            )
        return tuple(warnings)
