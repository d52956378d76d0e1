"""Rules: which prompt cache a model's provider keeps, and for how long."""

from __future__ import annotations

from dataclasses import replace

from budgetkit.budget.quoting import brief, quoted
from budgetkit.lab.explorers.conversation.settings import LIFETIMES, ConversationSettings
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.models import Model

OWN = "given in code"


def prompt_cache(settings: ConversationSettings, model: Model) -> tuple[str, PromptCache, str]:
    """Return the name of the cache rules in use, the cache, and a note where a provider's is not known."""
    rules = provider_rules(model) if settings.rules is None else settings.rules
    note = ""
    if settings.rules is None and rules == IDEAL:
        whose = model.provider or model.name
        note = (
            f"No prompt cache is known for {whose}: an ideal one that finds any prefix stands in."
        )
    if isinstance(rules, str) and rules not in CACHES:
        raise LookupError(
            f"no prompt cache {brief(rules)}; known are {quoted(CACHES)}; choose one of them"
        )
    cache = CACHES[rules] if isinstance(rules, str) else rules
    if settings.lifetime is not None:
        if settings.lifetime not in LIFETIMES:
            raise LookupError(
                f"no lifetime {brief(settings.lifetime)}; known are {quoted(LIFETIMES)}; choose one of them"
            )
        cache = replace(cache, lifetime=LIFETIMES[settings.lifetime])
    return rules if isinstance(rules, str) else OWN, cache, note
