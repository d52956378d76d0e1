"""FRAMINGS: how the systems that count messages frame them, each a row of ``data/framings.toml`` with its source.

The first eleven give the nine answers to how many tokens ``{"role": "user", "content": "Hello world"}`` has:

    2 text   6 octopus, llama-index, litellm-response, prompt-tsx   7 langchain
    9 cookbook, litellm, praisonai, plan-195   10 memory-engine
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from budgetkit.counters import (
    CalibratedCounter,
    ExactCounter,
    ReconstructedCounter,
    VocabularyCounter,
    count_of,
)
from budgetkit.counters.vocabularies import FOLDERS, best
from budgetkit.files import Table, read_rows, read_toml
from budgetkit.message import Message
from budgetkit.models import Model, resolve
from budgetkit.models.names import bare
from budgetkit.requests.billing.declarations import Charge, ToolConstants
from budgetkit.requests.billing.estimates import EstimatedRules, estimate_for
from budgetkit.requests.billing.frames import FrameRules, frame_for
from budgetkit.requests.billing.messages import Framing
from budgetkit.requests.billing.openai_chat import (
    FAMILIES,
    OpenAIFamily,
    answer_charges,
    chat_charges,
    responses_charges,
)
from budgetkit.requests.reading.request import ProviderRequest


@dataclass(frozen=True, slots=True)
class OpenAIRules:
    """The billing rules of one OpenAI family.

    The model's name decides the cost of images.
    """

    family: OpenAIFamily
    model: str = ""
    is_routed: bool = False  # whether a router passes requests on, which bills by rules of its own

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List the charges of a request on its interface."""
        named = replace(request, model=self.model or request.model)
        is_responses = request.shape == "responses"
        if self.is_routed:  # a router chooses the interface by the model alone
            pattern = read_toml("framings.toml")["models"]["routed_to_responses"]
            is_responses = re.search(pattern, bare(named.model)) is not None
        if is_responses:
            return [*responses_charges(named, self.family)]
        return [*chat_charges(named, self.family)]

    def answer(self, message: Message) -> list[Charge]:
        """List the charges of an answer."""
        return answer_charges(message)

    def leaves_thinking(self, message: Message, shape: str) -> bool:
        """Tell whether thinking may be billed without a charge here.

        Before a call it may; before a text it costs nothing.

        Responses has a name of its own for it, which ends when the user speaks again.
        """
        return shape == "chat" and bool(message.tool_calls)


def rules_for(model: str | Model, host: str = "") -> OpenAIRules | FrameRules | EstimatedRules:
    """Return the rules of a model: OpenAI's, those of a maker whose vocabulary is here, or those of an estimate.

    >>> rules_for("gpt-4o-mini").family.name, rules_for("claude-sonnet-4-5").estimate.family
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
    # A chat template that is known, and lacks its vocabulary here, still says what becomes of thinking.
    has_template = frame is not None and frame.form == "template"
    return EstimatedRules(estimate_for(resolved.name), resolved.name, forgets_thinking=has_template)


# Counters that say which model they count for.
_OF_A_MODEL = (ExactCounter, CalibratedCounter, ReconstructedCounter, VocabularyCounter)
_RECORDED = (
    "recorded calls of public projects with the provider's usage, read 2026-11-21; "
    "see budgetkit.requests.billing.openai_chat"
)


def _from_row(row: dict[str, Any]) -> Framing:
    tools = row.get("tools", "json")
    return Framing(**row | {"tools": tools if isinstance(tools, str) else ToolConstants(**tools)})


def _framed(rules: OpenAIRules, counter: str = "gpt-4o") -> Framing:
    """Make the framing of an OpenAI family, which its own rules decide."""
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


FRAMINGS: Final[Mapping[str, Framing]] = Table(
    lambda: (
        {name: _from_row(row) for name, row in read_rows("framings.toml", "framing").items()}
        | {
            name: _framed(OpenAIRules(FAMILIES[row["family"]]), counter=row["counter"])
            for name, row in read_rows("framings.toml", "openai").items()
        }
    )
)

#: That of gpt-4o, whose constants are the defaults of a family; the same as ``FRAMINGS["openai"]``.
DEFAULT_FRAMING: Final = _framed(OpenAIRules(OpenAIFamily("gpt-4o")))


def framing_for(model: str | Model) -> Framing:
    """Return the framing of a model.

    Parameters
    ----------
    model : str or Model
        A model, or its name as :func:`budgetkit.model` takes it, e.g. ``"gpt-4o"``.

    Returns
    -------
    Framing
        What its provider bills, by the same rules as :func:`budgetkit.count_request`: OpenAI's own, or the estimate
        of the model's family; or, of a model that was given another framing, that one.

    Examples
    --------
    >>> framing_for("gpt-4o").priming, framing_for("gpt-5-mini").priming, framing_for("claude-sonnet-4-5").priming
    (3, 2, 6)
    """
    resolved = resolve(model)
    of_its_own = resolved.framing
    if of_its_own and not of_its_own.startswith("openai"):
        return FRAMINGS[of_its_own]
    return _by_rules(resolved, os.environ.get(FOLDERS, ""))


def framing_of(count: object, framing: Framing | None = None) -> Framing:
    """Return the framing of a counter's model, for messages and tools.

    Parameters
    ----------
    count : str, Model or callable
        A counter, or the name of one or of a model.
    framing : Framing, optional
        Taken as it is where it is given.

    Returns
    -------
    Framing
        That of the model whose counter it is; OpenAI's where the counter is of no known model.

    Examples
    --------
    >>> framing_of("claude-sonnet-4-5").priming, framing_of("chars/4") is DEFAULT_FRAMING
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
    has_rules = (
        model.is_known or bool(model.openai_family) or bool(estimate_for(model.name).pattern)
    )
    if has_rules:
        return framing_for(model)
    return DEFAULT_FRAMING


@lru_cache(maxsize=256)
def _by_rules(model: Model, folders: str) -> Framing:
    """Return the framing for a model's rules.

    They change with the vocabularies in the user's folders.
    """
    rules = rules_for(model)
    if isinstance(rules, OpenAIRules):
        return _framed(rules)
    if isinstance(rules, FrameRules):
        frame = rules.frame
        source = f"{frame.name}: {frame.rows}; see budgetkit.requests.billing.frames"
        # A request is sent to be answered, so its last message is not the assistant's.
        priming = frame.request + frame.user_last
        return Framing(
            priming=priming,
            without_system=frame.no_system,
            rules=rules,
            counter=model.name,
            source=source,
        )
    estimate = rules.estimate
    source = f"{estimate.family}: {estimate.source}, read {estimate.date}"
    return Framing(
        priming=estimate.constants["request"],
        rules=rules,
        counter=f"calibrated:{model.name}",
        source=source,
    )
