"""Rules of the providers, one kind a class: from a request to all that it bills."""

from __future__ import annotations

from dataclasses import dataclass, replace

from budgetkit.framing.charges import Charge
from budgetkit.framing.image_prices import ASSUMED_SIDE, image_price, sized
from budgetkit.framing.openai_chat import chat_charges
from budgetkit.framing.openai_families import OpenAIFamily
from budgetkit.framing.openai_responses import responses_charges
from budgetkit.framing.requests import Request
from budgetkit.message import Image

__all__ = ["OpenAIRules"]


@dataclass(frozen=True, slots=True)
class OpenAIRules:
    """Charge a request as one of OpenAI's families bills it; the model decides what images cost."""

    family: OpenAIFamily
    model: str = ""

    def charges(self, request: Request) -> list[Charge]:
        """List what a request bills on the interface whose shape it has."""
        asked = replace(request, model=self.model or request.model)
        return (responses_charges if request.shape == "responses" else chat_charges)(asked, self.family)

    def image(self, image: Image) -> int:
        """Price one image, in tokens."""
        width, height = sized(image) or (ASSUMED_SIDE, ASSUMED_SIDE)
        return image_price(self.model, width, height, image.detail)
