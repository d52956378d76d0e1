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
from budgetkit.framing.tools import ToolConstants
from budgetkit.models import Model
from budgetkit.models import model as look_up

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
_OPENAI = replace(
    _COOKBOOK,
    tool_calls="twice",
    per_tool_call=5,
    per_result=-1,
    tools="declaration",
    source="the cookbook's, exact on 7 of 7 recorded text-only calls of gpt-4o and gpt-4.1; tools as a declaration; "
    "tool calls from one recorded call of gpt-3.5-turbo-0125; recordings of OpenTelemetry's tests 0.62.4, read "
    "2026-11-21",
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
        "openai": _OPENAI,
        "openai-reasoning": replace(
            _OPENAI,
            priming=2,
            source="one token less than gpt-4o on 3 of 3 recorded calls of gpt-5; read 2026-11-21",
        ),
        "openai-0301": replace(
            _OPENAI,
            per_message=4,
            per_name=-1,
            counter="gpt-4",
            source="OpenAI cookbook on gpt-3.5-turbo-0301",
        ),
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
        The one that the model table names; OpenAI's where it names none, since no other provider publishes its
        own.

    Examples
    --------
    >>> framing_for("gpt-4o").priming, framing_for("gpt-5-mini").priming
    (3, 2)
    """
    name = _named(model) if isinstance(model, str) else model.framing
    return FRAMINGS[name] if name else DEFAULT_FRAMING


@cache
def _named(model: str) -> str | None:
    try:
        return look_up(model, unknown="raise").framing
    except ValueError:
        return None
