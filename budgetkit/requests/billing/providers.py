"""Which rules bill a model's requests, and which counter counts their texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from budgetkit.counters import Counter, counter
from budgetkit.counters.vocabularies import best
from budgetkit.files import read_toml
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.models.names import bare
from budgetkit.models.resolved import ResolvedModel, resolve
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.billing.estimates import EstimatedRules, estimate_for
from budgetkit.requests.billing.frames import FrameRules, frame_for
from budgetkit.requests.billing.openai_chat import answer_charges, chat_charges
from budgetkit.requests.billing.openai_families import FAMILIES, OpenAIFamily
from budgetkit.requests.billing.openai_responses import responses_charges
from budgetkit.requests.reading.request import ProviderRequest


@dataclass(frozen=True, slots=True)
class OpenAIRules:
    """Charge a request as one of OpenAI's families bills it; the model's name decides what images cost."""

    family: OpenAIFamily
    model: str = ""
    is_routed: bool = False  # whether a router passes requests on, which bills by rules of its own

    def charges(self, request: ProviderRequest) -> list[Charge]:
        """List what a request bills on the interface it was written for."""
        named = replace(request, model=self.model or request.model)
        if self._is_responses(named):
            bill = responses_charges
        else:
            bill = chat_charges
        return bill(named, self.family)

    def _is_responses(self, request: ProviderRequest) -> bool:
        """Whether a request is billed as on the Responses interface; a router's goes by the model alone."""
        if self.is_routed:
            pattern = read_toml("framings.toml")["models"]["routed_to_responses"]
            return re.search(pattern, bare(request.model)) is not None
        return request.shape == "responses"

    def answer(self, message: Message) -> list[Charge]:
        """List what an answer bills."""
        return answer_charges(message)

    def leaves_thinking(self, message: Message, shape: str) -> bool:
        """Say whether thinking may be billed that is not charged: that before a call; before a text it costs nothing.

        Responses has a name of its own for it, which ends when the user speaks again.
        """
        return shape == "chat" and bool(message.tool_calls)


def rules_for(model: str | Model | ResolvedModel) -> OpenAIRules | FrameRules | EstimatedRules:
    """Return the rules of a model: OpenAI's, those of a maker whose vocabulary is here, or those of an estimate.

    >>> rules_for("gpt-4o-mini").family.name, rules_for("claude-sonnet-4-5").estimate.family
    ('gpt-4o', 'claude-4.5')
    """
    resolved = resolve(model)
    if resolved.openai_family:
        return OpenAIRules(
            FAMILIES[resolved.openai_family], model=resolved.name, is_routed=resolved.is_routed
        )
    frame = frame_for(resolved.name, resolved.host)
    if frame is not None and (resolved.tokenizer == "exact" or best(resolved.name) is not None):
        return FrameRules(frame, resolved.name)
    # A chat template that is known, and lacks its vocabulary here, still says what becomes of thinking.
    has_template = frame is not None and frame.form == "template"
    return EstimatedRules(estimate_for(resolved.name), resolved.name, forgets_thinking=has_template)


def counter_for(model: str | Model | ResolvedModel) -> Counter:
    """Return the counter that the rules of a model are made for: the one that everything else counts it with.

    >>> counter_for("gpt-5").name, counter_for("nobody-knows").exact
    ('gpt-5', False)
    """
    return counter(resolve(model))
