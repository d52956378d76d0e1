"""Framing: the tokens of messages and requests beyond their text.

    message = per_message + role + text + name + tool calls + images
    request = priming + sum of its messages + tool schemas

Systems (providers, libraries and applications) agree on the formula but not on the numbers. Each number is a field of
`Framing`, and each system is an entry of ``FRAMINGS``: a row of ``data/framings.toml`` with its source.

For ``{"role": "user", "content": "Hello world"}``, the systems count this many tokens:

    2 text   6 octopus, llama-index, litellm-response, prompt-tsx   7 langchain
    9 cookbook, litellm, praisonai, plan-195   10 memory-engine
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from budgetkit.budget.errors import wrong_kind
from budgetkit.counters import (
    CalibratedCounter,
    ExactCounter,
    ReconstructedCounter,
    VocabularyCounter,
    count_of,
)
from budgetkit.counters.vocabularies import FOLDERS, best
from budgetkit.files import Table, read_rows
from budgetkit.message import RESULT_ROLES, Image, Message, Raw, as_json, is_system
from budgetkit.models import Model, resolve
from budgetkit.requests.billing.charges import Charge, Count, Rules, count_charges, thinking_charges
from budgetkit.requests.billing.declarations import ToolConstants, declaration_charge
from budgetkit.requests.billing.estimates import EstimatedRules, estimate_for
from budgetkit.requests.billing.frames import FrameRules, frame_for
from budgetkit.requests.billing.images import priced
from budgetkit.requests.billing.openai import FAMILIES, OpenAIFamily, OpenAIRules
from budgetkit.requests.reading.request import ProviderRequest
from budgetkit.requests.reading.tools import read_tools

AnyMessage = Message | Raw


@dataclass(frozen=True)
class Framing:
    """The tokens of a message and a request beyond their text.

    Parameters
    ----------
    per_message : int
        Tokens for each message.
    count_role : bool
        If true, the text of the role is counted.
    count_name : bool
        If true, a speaker's name is counted. The name of a tool result is never counted.
    per_name : int
        Additional tokens for each name.
    tool_calls : {"nothing", "arguments", "call", "twice"}
        The text counted for a tool call: none, its arguments, its name and arguments, or its arguments and twice its
        name (for the call and for the result).
    per_tool_call : int
        Tokens for each tool call.
    per_result : int
        Tokens for each tool result; usually negative, to offset part of ``per_message``.
    priming : int
        Tokens at the end of each request that start the answer.
    without_system : int
        Tokens for the template's default system message, if a request has none of its own.
    per_image : int or None
        Tokens for each image. If this is None, the rule of OpenAI's tiles applies. An image of unknown size is assumed
        to be 1024 pixels square.
    tools : {"declaration", "json"} or ToolConstants
        How tool schemas are counted; see :mod:`budgetkit.requests.billing.declarations`.
    scope : {"text", "message"}
        ``"text"`` counts each text of a message separately. ``"message"`` counts all texts and the role as one text.
    rules : Rules, optional
        A provider's billing rules, which override all of the above.
    counter : str
        Name of the counter that the system uses, for information only.
    source : str
        Source of the numbers.

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
        """Return the fixed tokens of a request, excluding messages and tools.

        Parameters
        ----------
        has_system : bool
            If true, the request has a system message.

        Returns
        -------
        int
            Number of tokens.

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
        """Count the tokens of one message.

        Parameters
        ----------
        message : Message or Mapping
            A message in OpenAI's chat format.
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.

        Returns
        -------
        int
            Number of tokens.
        """
        return self.messages([message], counter)[0]

    def messages(
        self, messages: Iterable[AnyMessage], counter: Count, form: str = "chat"
    ) -> list[int]:
        """Count the tokens of each message in a list.

        Counting all messages at once can be faster than counting them one by one.

        Parameters
        ----------
        messages : iterable of Message or Mapping
            Messages in OpenAI's chat format. Some providers merge parallel tool calls and their results into one text.
            Calls and results are merged in the count only if the list contains all calls of an answer and all their
            results.
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name. Its method ``many`` is used if it exists.
        form : {"chat", "responses", "anthropic", "converse", "gemini"}
            The format of the request, whose rules apply.

        Returns
        -------
        list of int
            Number of tokens of each message.
        """
        read = _as_messages(messages)
        charges = [
            charge
            for charge in self.charges(ProviderRequest(form, messages=read))
            if charge.message is not None
        ]
        tokens = [0] * len(read)
        for charge, size in zip(charges, count_charges(charges, counter), strict=True):
            tokens[charge.message or 0] += size
        return tokens

    def answers(self, messages: Iterable[AnyMessage], counter: Count) -> list[int]:
        """Count the output tokens of the model's answers.

        If the framing has no billing rules of a provider, answers are counted as messages.

        Parameters
        ----------
        messages : iterable of Message or Mapping
            Messages in OpenAI's chat format.
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.

        Returns
        -------
        list of int
            Number of tokens of each message, without reasoning; 0 for messages that are not answers.
        """
        read = _as_messages(messages)
        if self.rules is None:
            sized = zip(read, self.messages(read, counter), strict=True)
            return [size if message.role == "assistant" else 0 for message, size in sized]
        bills = [
            self.rules.answer(message) if message.role == "assistant" else [] for message in read
        ]
        counted = iter(count_charges([charge for charges in bills for charge in charges], counter))
        return [sum(next(counted) for _ in charges) for charges in bills]

    def request(self, messages: Sequence[AnyMessage], counter: Count, tools: Any = None) -> int:
        """Count the tokens of a whole request: messages, tool schemas and priming.

        Parameters
        ----------
        messages : sequence of Message or Mapping
            Messages in OpenAI's chat format.
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.
        tools : optional
            Tool schemas in any format; see :mod:`budgetkit.requests.reading.tools`.

        Returns
        -------
        int
            Number of tokens.
        """
        request = ProviderRequest(
            "chat", messages=_as_messages(messages), tools=read_tools(tools).functions
        )
        return sum(count_charges(self.charges(request), counter))

    def schemas(
        self, tools: Any, counter: Count, messages: Sequence[AnyMessage] | None = None
    ) -> int:
        """Count the tokens that tool schemas add to a request.

        The tokens are those of the request with tools minus those of the request without tools.

        Parameters
        ----------
        tools : any form
            Tools in the format of OpenAI, Anthropic, Gemini, Converse or MCP; see
            :mod:`budgetkit.requests.reading.tools`.
        counter : callable or str
            Function that counts the tokens in a text, or a counter's name.
        messages : sequence of Message or Mapping, optional
            The request's messages, which matter because some providers append the tools to the first system text.
            Default: a system message that ends with a full stop.

        Returns
        -------
        int
            Number of tokens; 0 if there are no tools.
        """
        if not read_tools(tools).functions:
            return 0
        if messages is None:
            messages = [{"role": "system", "content": "."}]
        return self.request(messages, counter, tools) - self.request(messages, counter)

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges for a request before their texts are counted."""
        if self.rules is not None:
            charges = self.rules.charges(request)
        else:
            has_system = any(map(is_system, request.messages))
            charges = [Charge("framing", "request", fixed=self.primed(has_system))]
            for index, message in enumerate(request.messages):
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
                charges.append(Charge("message", message.role, tuple(texts), fixed, message=index))
                charges += [
                    Charge("image", "", fixed=self.image(image), message=index)
                    for image in message.images
                ]
            tools = request.tools
            if tools and isinstance(self.tools, ToolConstants):
                charges.append(self.tools.charge(tools))
            elif tools and self.tools == "declaration":
                charges.append(declaration_charge(tools, has_system))
            elif tools:
                written = as_json(list(tools))
                charges.append(Charge("tools", "JSON", (written,)))
        return [*charges, *thinking_charges(request, charges)]

    def image(self, image: Image) -> int:
        """Return the tokens of one image.

        Parameters
        ----------
        image : Image
            The image, with its size and detail if these are known.

        Returns
        -------
        int
            Number of tokens.

        Examples
        --------
        >>> Framing().image(Image()), Framing().image(Image(detail="low")), Framing(per_image=250).image(Image())
        (765, 85, 250)
        """
        if self.rules is None and self.per_image is not None:
            return self.per_image
        return priced(image, self.rules.model if self.rules else "")


def _as_messages(messages: Iterable[AnyMessage]) -> tuple[Message, ...]:
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise TypeError(wrong_kind("messages", messages, "a list of messages"))
    return tuple(
        message if isinstance(message, Message) else Message(message) for message in messages
    )


def rules_for(model: str | Model, host: str = "") -> OpenAIRules | FrameRules | EstimatedRules:
    """Return a model's billing rules: OpenAI's, a frame's or estimated ones.

    A frame's rules apply only if an exact or reconstructed vocabulary of the model is available.

    >>> rules_for("gpt-4o-mini").family.name, rules_for("claude-haiku-4-5").estimate.family
    ('gpt-4o', 'claude-4.5')
    """
    resolved = resolve(model)
    if resolved.openai_family:
        return OpenAIRules(
            FAMILIES[resolved.openai_family], model=resolved.name, is_routed=resolved.is_routed
        )
    frame = frame_for(resolved.name, host or resolved.host)
    if frame is not None and (resolved.tokenizer == "exact" or best(resolved.name) is not None):
        return FrameRules(frame, resolved.name)
    # A known chat template shows how thinking is treated, even if its vocabulary is not installed.
    has_template = frame is not None and frame.form == "template"
    estimate = estimate_for(resolved.name)
    if frame is not None and frame.form == "gemini" and frame.schema:
        # This host bills the answer schema.
        constants = {**estimate.constants, "schema": frame.schema}
        estimate = replace(estimate, schema_shown=True, constants=constants)
    return EstimatedRules(estimate, resolved.name, forgets_thinking=has_template)


# Counters that know their model.
_OF_A_MODEL = (ExactCounter, CalibratedCounter, ReconstructedCounter, VocabularyCounter)
_RECORDED = (
    "recorded calls from public projects with the provider's usage, read 2026-11-21; "
    "see budgetkit.requests.billing.openai"
)


def _openai_framing(rules: OpenAIRules, counter: str = "gpt-4o") -> Framing:
    """Return the framing of an OpenAI family, with its billing rules."""
    family = rules.family
    return Framing(
        per_message=family.per_message - 1,
        count_role=True,
        count_name=True,
        per_name=family.per_name,
        priming=family.request,
        rules=rules,
        source=f"{family.name}: {_RECORDED}",
        counter=counter,
    )


def _framings() -> dict[str, Framing]:
    framings = {}
    for name, row in read_rows("framings.toml", "framing").items():
        if isinstance(row.get("tools"), dict):
            row["tools"] = ToolConstants(**row["tools"])
        framings[name] = Framing(**row)
    for name, row in read_rows("framings.toml", "openai").items():
        rules = OpenAIRules(FAMILIES[row["family"]])
        framings[name] = _openai_framing(rules, counter=row["counter"])
    return framings


FRAMINGS: Mapping[str, Framing] = Table(_framings)

#: OpenAI's published formula, for texts counted without a model; the same as ``FRAMINGS["openai"]``.
DEFAULT_FRAMING = _openai_framing(OpenAIRules(OpenAIFamily("gpt-4o")))


def framing_for(model: str | Model) -> Framing:
    """Return the framing of a model.

    Parameters
    ----------
    model : str or Model
        A model, or its name as in :func:`budgetkit.model`, such as ``"gpt-4o"``.

    Returns
    -------
    Framing
        The framing that the model's entry names, unless it is one of OpenAI's. Otherwise, a framing with the billing
        rules of :func:`budgetkit.count_request`: OpenAI's, a frame's or estimated ones.

    Examples
    --------
    >>> framing_for("gpt-4o").priming, framing_for("gpt-5-mini").priming, framing_for("claude-haiku-4-5").priming
    (3, 2, 6)
    """
    resolved = resolve(model)
    of_its_own = resolved.framing
    if of_its_own and not of_its_own.startswith("openai"):
        return FRAMINGS[of_its_own]
    return _by_rules(resolved, os.environ.get(FOLDERS, ""))


def framing_of(count: object, framing: Framing | None = None) -> Framing:
    """Return the framing for a counter's model.

    Parameters
    ----------
    count : str, Model or callable
        A counter, a model, or the name of either.
    framing : Framing, optional
        A framing to return in place of the one for the model.

    Returns
    -------
    Framing
        The framing of the counter's model, or OpenAI's if the counter has no known model.

    Examples
    --------
    >>> framing_of("claude-haiku-4-5").priming, framing_of("chars/4") is DEFAULT_FRAMING
    (6, True)
    """
    if framing is not None:
        return framing
    if isinstance(count, Model):
        return framing_for(count)
    counter = count_of(count) if isinstance(count, str) else count
    if not isinstance(counter, _OF_A_MODEL) or not counter.model:
        return DEFAULT_FRAMING
    model = resolve(counter.model)
    if model.is_known or model.openai_family or estimate_for(model.name).pattern:
        return framing_for(model)
    return DEFAULT_FRAMING


@lru_cache(maxsize=256)
def _by_rules(model: Model, _folders: str) -> Framing:
    """Return the framing that applies a model's billing rules.

    `_folders` is part of the cache key, because the rules depend on the vocabularies in the user's folders.
    """
    rules = rules_for(model)
    if isinstance(rules, OpenAIRules):
        return _openai_framing(rules)
    if isinstance(rules, FrameRules):
        frame = rules.frame
        return Framing(
            # The last message of a request is not the assistant's, because the request asks for an answer.
            priming=frame.request + frame.user_last,
            without_system=frame.no_system,
            rules=rules,
            counter=model.name,
            source=f"{frame.name}: {frame.rows}; see budgetkit.requests.billing.frames",
        )
    estimate = rules.estimate
    return Framing(
        priming=estimate.constants["request"],
        rules=rules,
        counter=f"calibrated:{model.name}",
        source=f"{estimate.family}: {estimate.source}, read {estimate.date}",
    )
