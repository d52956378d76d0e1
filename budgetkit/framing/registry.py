"""FRAMINGS: how the systems that count messages frame them, each with its source.

The first eleven give the nine answers to how many tokens ``{"role": "user", "content": "Hello world"}`` has:

    2 text   6 octopus, llama-index, litellm-response, prompt-tsx   7 langchain
    9 cookbook, litellm, praisonai, plan-195   10 memory-engine
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Final

from budgetkit.framing.messages import Framing
from budgetkit.framing.openai_families import FAMILIES
from budgetkit.framing.providers import OpenAIRules, rules_for
from budgetkit.framing.tools import ToolConstants
from budgetkit.models import Model

__all__ = ["DEFAULT_FRAMING", "FRAMINGS", "framing_for"]

_COOKBOOK = Framing(
    per_message=3,
    count_role=True,
    count_name=True,
    per_name=1,
    tool_calls="call",
    priming=3,
    tools=ToolConstants(),
    source="OpenAI cookbook, How to count tokens with tiktoken; read 2026-11-21",
)
_RECORDED = (
    "recorded calls of public projects with the provider's usage, read 2026-11-21; see budgetkit.framing.openai_chat"
)


def _openai(family: str, counter: str = "gpt-4o") -> Framing:
    """Make the framing of one of OpenAI's families: its own rules decide everything."""
    return replace(_framed(OpenAIRules(FAMILIES[family])), counter=counter)


def _framed(rules: OpenAIRules) -> Framing:
    """Make the framing that a family's rules decide; its numbers are theirs for text."""
    own = rules.family
    return Framing(
        per_message=own.per_message - 1,
        count_role=True,
        count_name=True,
        per_name=own.per_name,
        priming=own.request,
        rules=rules,
        source=f"{own.name}: {_RECORDED}",
    )


_LITELLM = replace(
    _COOKBOOK,
    tool_calls="arguments",
    per_image=250,
    tools="declaration",
    source="litellm 1.106.2, token_counter",
)

FRAMINGS: Final[Mapping[str, Framing]] = MappingProxyType(
    {
        "text": Framing(source="nothing but the text, as document 004 (astro-anchor 0.2.0) counts"),
        "octopus": Framing(per_message=4, tool_calls="nothing", counter="utf16/4", source="document 000 (Octopus)"),
        "llama-index": Framing(
            per_message=3,
            count_role=True,
            per_tool_call=3,
            per_result=-2,
            per_image=256,
            source="LlamaIndex core 0.14.25, estimate_tokens_in_messages",
        ),
        "litellm-response": replace(_LITELLM, priming=0, source="litellm 1.106.2, count_response_tokens=True"),
        "prompt-tsx": replace(_COOKBOOK, priming=0, source="prompt-tsx: 3 a message, 1 a name; read 2026-11-21"),
        "langchain": Framing(
            per_message=3,
            count_role=True,
            count_name=True,
            per_image=85,
            scope="message",
            counter="chars/4 (ceil, minimum 0)",
            source="langchain-core 1.8.2, count_tokens_approximately",
        ),
        "cookbook": _COOKBOOK,
        "cookbook-cl100k": replace(_COOKBOOK, tools=ToolConstants(per_function=10), counter="gpt-4"),
        "litellm": _LITELLM,
        "praisonai": Framing(
            per_message=4,
            per_tool_call=10,
            priming=3,
            counter="chars/4 (minimum 0)",
            source="PraisonAI; read 2026-11-21",
        ),
        "plan-195": replace(
            _LITELLM,
            per_message=6,
            priming=0,
            source="document 003: each section is counted as a request of its own",
        ),
        "memory-engine": Framing(
            per_message=4,
            count_role=True,
            tool_calls="nothing",
            priming=3,
            source="document 001 (memory engine)",
        ),
        "openai": _openai("gpt-4o"),
        "openai-cl100k": _openai("gpt-4", "gpt-4"),
        "openai-0613": _openai("gpt-4-0613", "gpt-4"),
        "openai-0301": _openai("gpt-3.5-turbo-0301", "gpt-4"),
        "openai-o": _openai("o"),
        "openai-reasoning": _openai("gpt-5"),
    }
)

DEFAULT_FRAMING: Final = FRAMINGS["openai"]


def framing_for(model: Model | str) -> Framing:
    """Return the framing of a model.

    Parameters
    ----------
    model : Model or str
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
    if isinstance(model, Model) and model.framing and not model.framing.startswith("openai"):
        return FRAMINGS[model.framing]
    return _of(model if isinstance(model, str) else model.name)


@cache
def _of(name: str) -> Framing:
    rules = rules_for(name)
    if isinstance(rules, OpenAIRules):
        return _framed(rules)
    own = rules.estimate
    source = f"{own.family}: {own.source}, read {own.date}"
    return Framing(priming=own.constants["request"], rules=rules, counter=f"calibrated:{name}", source=source)
