"""Rules: which prompt cache a model's provider keeps, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from budgetkit.budget.quoting import brief, quoted
from budgetkit.models import Model
from budgetkit.replay.explorer.settings import LIFETIMES, Settings
from budgetkit.replay.prompt_cache import CACHES, PromptCache

#: The prompt cache of a provider, as models.csv names it.
PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {"OpenAI": "openai", "Anthropic": "anthropic", "Google": "gemini"}
)
_LONGER_MINIMUM = ("opus-4-5", "opus-4-6", "haiku-4-5")  # as the source of CACHES["anthropic-4096"] says
IDEAL = "longest prefix"
OWN = "given in code"


def provider_rules(model: Model) -> str:
    """Return the name of a provider's prompt cache.

    Examples
    --------
    >>> from budgetkit.models import model
    >>> [provider_rules(model(name)) for name in ("gpt-4o", "claude-haiku-4-5", "mistral-large-latest")]
    ['openai', 'anthropic-4096', 'longest prefix']
    """
    if any(mark in model.name for mark in _LONGER_MINIMUM):
        return "anthropic-4096"
    name = PROVIDERS.get(model.provider, IDEAL)
    return name if name in CACHES else IDEAL


def prompt_cache(settings: Settings, model: Model) -> tuple[str, PromptCache, str]:
    """Return the prompt cache that holds."""
    rules = provider_rules(model) if settings.rules is None else settings.rules
    note = ""
    if settings.rules is None and rules == IDEAL:
        whose = model.provider or model.name
        note = f"No prompt cache is known for {whose}: an ideal one that finds any prefix stands in."
    if isinstance(rules, str) and rules not in CACHES:
        raise LookupError(f"no prompt cache {brief(rules)}; known are {quoted(CACHES)}; choose one of them")
    cache = CACHES[rules] if isinstance(rules, str) else rules
    if settings.lifetime is not None:
        if settings.lifetime not in LIFETIMES:
            raise LookupError(
                f"no lifetime {brief(settings.lifetime)}; known are {quoted(LIFETIMES)}; choose one of them"
            )
        cache = replace(cache, lifetime=LIFETIMES[settings.lifetime])
    return rules if isinstance(rules, str) else OWN, cache, note
