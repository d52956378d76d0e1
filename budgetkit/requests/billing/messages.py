"""Framing: tokens of a message and a request beyond their text.

    message = per_message + role + text + name + tool calls + images
    request = priming + sum of its messages + tool schemas

Everybody agrees on the shape and nobody on the numbers: the same "Hello world" is 2, 6, 7, 9 or 10 tokens. So
each number is a field here, and each system's set of them an entry of ``FRAMINGS``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from budgetkit.budget.quoting import brief
from budgetkit.message import RESULT_ROLES, Image, Message
from budgetkit.requests.billing.declarations import (
    Charge,
    Count,
    Rules,
    ToolConstants,
    declaration_charge,
    sizes,
    thinking_charges,
)
from budgetkit.requests.billing.images import priced
from budgetkit.requests.reading.request import ProviderRequest
from budgetkit.requests.reading.tools import read_tools

AnyMessage = Message | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Framing:
    """Token costs of a message and a request beyond their text.

    Parameters
    ----------
    per_message : int
        For each message. All sizes are in tokens.
    count_role : bool
        Whether the role's own text counts.
    count_name : bool
        Whether a speaker's name counts. The name of a tool's result never does.
    per_name : int
        For each name, beyond its text.
    tool_calls : {"nothing", "arguments", "call", "twice"}
        What text of a tool call counts: none, its arguments, name and arguments, or those and the name again,
        because the result's message carries it too.
    per_tool_call : int
        For each tool call.
    per_result : int
        For each tool result; mostly negative, taking back a part of ``per_message``.
    priming : int
        Once a request, for the answer that the model is made to begin.
    without_system : int
        Once a request without a system message, for the one that a chat template then writes of its own.
    per_image : int or None
        For each image. ``None`` prices it by OpenAI's tiles; an image that does not say its size is taken
        as 1024 pixels square.
    tools : {"declaration", "json"} or ToolConstants
        How tool schemas are counted, see :mod:`budgetkit.requests.billing.declarations`.
    scope : {"text", "message"}
        Whether each text of a message is counted by itself, or all of them as one text, role included.
    rules : Rules, optional
        A provider's own rules, which then decide all of the above.
    counter : str
        Name of the counter that the framing's own system uses with it; a fact about that system, read by no rule.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> hello = {"role": "user", "content": "Hello world"}
    >>> words = lambda text: len(text.split())
    >>> Framing(per_message=3, count_role=True, priming=3).request([hello], words)
    9
    """

    per_message: int = 0
    count_role: bool = False
    count_name: bool = False
    per_name: int = 0
    tool_calls: Literal["nothing", "arguments", "call", "twice"] = "call"
    per_tool_call: int = 0
    per_result: int = 0
    priming: int = 0
    without_system: int = 0
    per_image: int | None = None
    tools: Literal["declaration", "json"] | ToolConstants = "json"
    scope: Literal["text", "message"] = "text"
    rules: Rules | None = None
    counter: str = "gpt-4o"
    source: str = ""

    def primed(self, has_system: bool) -> int:
        """Return a request's tokens apart from its messages and tools.

        Parameters
        ----------
        has_system : bool
            Whether there is a system message among them.

        Returns
        -------
        int
            In tokens.

        Examples
        --------
        >>> framing = Framing(priming=3, without_system=21)
        >>> framing.primed(has_system=True), framing.primed(has_system=False)
        (3, 24)
        """
        if has_system:
            return self.priming
        return self.priming + self.without_system

    def message(self, message: AnyMessage, counter: Count) -> int:
        """Count one message.

        Parameters
        ----------
        message : Message or Mapping
            In OpenAI's chat format.
        counter : callable or str
            From text to tokens, or the name of a counter.

        Returns
        -------
        int
            In tokens.
        """
        return self.messages([message], counter)[0]

    def messages(self, messages: Iterable[AnyMessage], counter: Count) -> list[int]:
        """Count several messages at once, which a counter can do faster than one by one.

        Parameters
        ----------
        messages : iterable of Message or Mapping
            In OpenAI's chat format. A provider that merges several tool calls and their results into one text
            counts them so where all of them are among these.
        counter : callable or str
            From text to tokens, or the name of a counter. Its method ``many`` is used where it has one.

        Returns
        -------
        list of int
            In tokens, one number a message.
        """
        read = _read(messages)
        charges = [
            charge
            for charge in self.charges(ProviderRequest("chat", messages=read))
            if charge.message is not None
        ]
        tokens = [0] * len(read)
        for charge, size in zip(charges, sizes(charges, counter), strict=True):
            tokens[charge.message or 0] += size
        return tokens

    def answers(self, messages: Iterable[AnyMessage], counter: Count) -> list[int]:
        """Count the output tokens of the model's answers.

        Without a provider's rules they are counted as messages.

        Parameters
        ----------
        messages : iterable of Message or Mapping
            In OpenAI's chat format.
        counter : callable or str
            From text to tokens, or the name of a counter.

        Returns
        -------
        list of int
            In tokens, one number a message; 0 for those that are no answers. Reasoning is not among it.
        """
        read = _read(messages)
        if self.rules is None:
            sized = zip(read, self.messages(read, counter), strict=True)
            return [size if message.role == "assistant" else 0 for message, size in sized]
        bills = [
            self.rules.answer(message) if message.role == "assistant" else [] for message in read
        ]
        counted = iter(sizes([charge for charges in bills for charge in charges], counter))
        return [sum(next(counted) for _ in charges) for charges in bills]

    def request(self, messages: Sequence[AnyMessage], counter: Count, tools: Any = None) -> int:
        """Count a whole request: its messages, its tool schemas and the priming.

        Parameters
        ----------
        messages : sequence of Message or Mapping
            In OpenAI's chat format.
        counter : callable or str
            From text to tokens, or the name of a counter.
        tools : optional
            Tool schemas in any form, see :mod:`budgetkit.requests.reading.tools`.

        Returns
        -------
        int
            In tokens.
        """
        request = ProviderRequest(
            "chat", messages=_read(messages), tools=read_tools(tools).functions
        )
        return sum(sizes(self.charges(request), counter))

    def schemas(
        self, tools: Any, counter: Count, messages: Sequence[AnyMessage] | None = None
    ) -> int:
        """Count the tokens that tool schemas add to a request.

        Every number of tool schemas in this package is this one: a bill's, a plan's, a gate's, a conversation's.

        Parameters
        ----------
        tools : any form
            OpenAI's, Anthropic's, Gemini's, Converse's or MCP's, see :mod:`budgetkit.requests.reading.tools`.
        counter : callable or str
            From text to tokens, or the name of a counter.
        messages : sequence of Message or Mapping, optional
            The request's messages: some providers let the tools follow the first system text. A system message
            that ends with a full stop when left out.

        Returns
        -------
        int
            In tokens; 0 without tools.
        """
        functions = read_tools(tools).functions
        if not functions:
            return 0
        before = _read([{"role": "system", "content": "."}] if messages is None else messages)
        without = self.charges(ProviderRequest("chat", messages=before))
        armed = self.charges(ProviderRequest("chat", messages=before, tools=functions))
        return sum(sizes(armed, counter)) - sum(sizes(without, counter))

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges of a request, its messages and its tools, not yet counted."""
        if self.rules is not None:
            charges = self.rules.charges(request)
        else:
            charges = [Charge("framing", "request", fixed=self.priming)]
            for index, message in enumerate(request.messages):
                charges += self._charged(message, index)
            tools = request.tools
            if tools and isinstance(self.tools, ToolConstants):
                charges.append(self.tools.charge(tools))
            elif tools and self.tools == "declaration":
                has_system = any(message.role == "system" for message in request.messages)
                charges.append(declaration_charge(tools, has_system))
            elif tools:
                written = json.dumps(list(tools), ensure_ascii=False, default=str)
                charges.append(Charge("tools", "JSON", (written,)))
        return [*charges, *thinking_charges(request, charges)]

    def image(self, image: Image) -> int:
        """Price one image.

        Parameters
        ----------
        image : Image
            Its size and detail, as far as the message tells them.

        Returns
        -------
        int
            In tokens.

        Examples
        --------
        >>> Framing().image(Image()), Framing().image(Image(detail="low")), Framing(per_image=250).image(Image())
        (765, 85, 250)
        """
        if self.rules is None and self.per_image is not None:
            return self.per_image
        return priced(image, self.rules.model if self.rules else "")

    def _charged(self, message: Message, index: int) -> list[Charge]:
        """Charge a message by the framing's own constants, and each of its images."""
        fixed = self.per_message + self.per_tool_call * len(message.tool_calls)
        texts = [*(message.texts or ("",))]
        if message.role in RESULT_ROLES:
            fixed += self.per_result
        if self.count_role:
            texts.append(message.role)
        if self.count_name and message.name is not None and message.role != "tool":
            fixed += self.per_name
            texts += filter(None, [message.name])
        if self.tool_calls != "nothing":
            names = {"arguments": 0, "call": 1, "twice": 2}[self.tool_calls]
            for call in message.tool_calls:
                texts += [*[call.name] * names, call.arguments]
        if self.scope == "message":
            texts = ["".join(texts)]
        images = [
            Charge("image", "", fixed=self.image(image), message=index) for image in message.images
        ]
        return [Charge("message", message.role, tuple(texts), fixed, message=index), *images]


def _read(messages: Iterable[AnyMessage]) -> tuple[Message, ...]:
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise TypeError(
            f"messages are {brief(messages)}; known is a list of them; put one message into a list"
        )
    return tuple(
        message if isinstance(message, Message) else Message(message) for message in messages
    )
