"""Rules: which prompt cache a model's provider keeps, and for how long."""

from __future__ import annotations

import re
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
#: Caches of single models, by a part of their name, as the sources in CACHES say; all else is its provider's.
_OF_MODELS: Final = {
    "anthropic-512": r"claude-(opus|fable|mythos)-5(?!\d)",
    "anthropic-2048": r"claude-opus-4-7(?!\d)",
    "anthropic-4096": r"claude-(opus-4-[56]|haiku-4-5)(?!\d)",
    "openai-5.6": r"gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)(?!\d)",
    "gemini-2048": r"gemini-2\.5",
}
IDEAL = "longest prefix"
OWN = "given in code"


def provider_rules(model: Model) -> str:
    """Return the name of a provider's prompt cache.

    Examples
    --------
    >>> from budgetkit.models import model
    >>> [provider_rules(model(name)) for name in ("gpt-4o", "claude-haiku-4-5", "mistral-large-latest")]
    ['openai', 'anthropic-4096', 'longest prefix']
    >>> provider_rules(Model("gpt-5.6-sol", 400_000)), provider_rules(Model("claude-opus-5", 200_000))
    ('openai-5.6', 'anthropic-512')
    """
    for rules, names in _OF_MODELS.items():
        if re.search(names, model.name.casefold()):
            return rules
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
