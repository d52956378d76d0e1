"""Which rules bill a model's requests, and which counter counts their texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from budgetkit.counters import CalibratedCounter, Counter, ExactCounter, counter
from budgetkit.framing.charges import Charge
from budgetkit.framing.estimates import EstimatedRules, estimate_for
from budgetkit.framing.openai_chat import answer_charges, chat_charges
from budgetkit.framing.openai_families import OpenAIFamily, family_of
from budgetkit.framing.openai_responses import responses_charges
from budgetkit.framing.request import Request
from budgetkit.message import Message


@dataclass(frozen=True, slots=True)
class OpenAIRules:
    """Charge a request as one of OpenAI's families bills it; the model's name decides what images cost."""

    family: OpenAIFamily
    model: str = ""

    def charges(self, request: Request) -> list[Charge]:
        """List what a request bills on the interface it was written for."""
        asked = replace(request, model=self.model or request.model)
        return (responses_charges if request.shape == "responses" else chat_charges)(asked, self.family)

    def answer(self, message: Message) -> list[Charge]:
        """List what an answer bills."""
        return answer_charges(message)


def rules_for(model: str) -> OpenAIRules | EstimatedRules:
    """Return the rules of a model: OpenAI's exact ones, or those of an estimate.

    >>> rules_for("gpt-4o-mini").family.name, rules_for("claude-sonnet-4-5").estimate.family
    ('gpt-4o', 'claude-4.5')
    """
    family = family_of(model)
    return OpenAIRules(family, model) if family else EstimatedRules(estimate_for(model), model)


def counter_for(model: str) -> Counter:
    """Return the counter that the rules of a model are made for.

    >>> counter_for("gpt-5").name, counter_for("nobody-knows").exact
    ('gpt-5', False)
    """
    if family := family_of(model):
        return ExactCounter(family.encoding, model=model)
    row = estimate_for(model)
    own = counter(f"calibrated:{model}") if row.pattern else None
    return own or CalibratedCounter(model, counter(row.counter), row.slope, f"{row.source}, read {row.date}")
