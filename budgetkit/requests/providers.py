"""Which rules bill a model's requests, and which counter counts their texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from budgetkit.counters import CalibratedCounter, Counter, ExactCounter, counter
from budgetkit.counters.vocabularies import best
from budgetkit.files import read_toml
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.models.names import bare
from budgetkit.models.resolved import ResolvedModel, resolve
from budgetkit.requests.charges import Charge
from budgetkit.requests.estimates import EstimatedRules, estimate_for
from budgetkit.requests.frames import FrameRules, frame_for
from budgetkit.requests.openai_chat import answer_charges, chat_charges
from budgetkit.requests.openai_families import FAMILIES, OpenAIFamily, family_of
from budgetkit.requests.openai_responses import responses_charges
from budgetkit.requests.request import Request


@dataclass(frozen=True, slots=True)
class OpenAIRules:
    """Charge a request as one of OpenAI's families bills it; the model's name decides what images cost."""

    family: OpenAIFamily
    model: str = ""

    def charges(self, request: Request) -> list[Charge]:
        """List what a request bills on the interface it was written for."""
        asked = replace(request, model=self.model or request.model)
        bill = responses_charges if self._is_responses(request) else chat_charges
        return bill(asked, self.family)

    def _is_responses(self, request: Request) -> bool:
        """Whether a request is billed as on the Responses interface; a router's goes by the model alone."""
        if self.is_routed(request):
            pattern = read_toml("framings.toml")["models"]["routed_to_responses"]
            return re.search(pattern, bare(request.model)) is not None
        return request.shape == "responses"

    def is_routed(self, request: Request) -> bool:
        """Whether a request goes to a router, which writes the maker before the model's name."""
        routers = read_toml("framings.toml")["models"]["routers"]
        return request.model.casefold().startswith(tuple(routers))

    def answer(self, message: Message) -> list[Charge]:
        """List what an answer bills."""
        return answer_charges(message)


def rules_for(model: str | Model | ResolvedModel) -> OpenAIRules | FrameRules | EstimatedRules:
    """Return the rules of a model: OpenAI's, those of a maker whose vocabulary is here, or those of an estimate.

    >>> rules_for("gpt-4o-mini").family.name, rules_for("claude-sonnet-4-5").estimate.family
    ('gpt-4o', 'claude-4.5')
    """
    known = resolve(model)
    if known.openai_family:
        return OpenAIRules(FAMILIES[known.openai_family], known.name)
    frame = frame_for(known.name)
    if frame is not None and best(known.name) is not None:
        return FrameRules(frame, known.name)
    return EstimatedRules(estimate_for(known.name), known.name)


def counter_for(model: str) -> Counter:
    """Return the counter that the rules of a model are made for.

    >>> counter_for("gpt-5").name, counter_for("nobody-knows").exact
    ('gpt-5', False)
    """
    if family := family_of(model):
        return ExactCounter(family.encoding, model=model)
    nearest = best(model)
    if nearest is not None:
        return nearest
    row = estimate_for(model)
    own = counter(f"calibrated:{model}") if row.pattern else None
    return own or CalibratedCounter(model, counter(row.counter), row.slope, f"{row.source}, read {row.date}")
