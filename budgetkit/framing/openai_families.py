"""OpenAI's families of models: in which form each is shown a request, and what the form costs.

Constants in tokens, derived from recorded calls of public projects (requests with the provider's usage; read
2026-11-21). The form that gpt-5 is shown is the harmony format that OpenAI published with gpt-oss.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

__all__ = ["FAMILIES", "OpenAIFamily", "bare", "family_of"]


@dataclass(frozen=True, slots=True)
class OpenAIFamily:
    """Hold what a family's form costs, in tokens.

    Parameters
    ----------
    name : str
        What the family is called here.
    encoding : str
        That its texts are counted with.
    request, per_message, per_name : int
        Once a request, for a message, and for a speaker's name.
    tools : int
        Once a request with tools, beside their block.
    heading : str
        Stands before the system text where tools follow it.
    per_answer : int
        For an earlier answer in text.
    per_calling : int
        For an earlier answer that calls tools.
    schema_answer, forced_tool : bool
        Whether the name of an answer schema, or of the tool that must be called, begins the answer.
    older_tools : bool
        Whether tools and calls keep the form of before 2024.
    plain_unions : bool
        Whether a union of types stands on one line.
    responses_call, responses_parallel, responses_tools : int
        On the Responses interface: for a call with its result, more for each of several calls at once, once
        for tools.
    """

    name: str
    encoding: str = "o200k_base"
    request: int = 3
    per_message: int = 4
    per_name: int = 1
    tools: int = -1
    heading: str = ""
    per_answer: int = 0
    per_calling: int = 0
    schema_answer: bool = True
    forced_tool: bool = True
    older_tools: bool = False
    plain_unions: bool = False
    responses_call: int = 10
    responses_parallel: int = 0
    responses_tools: int = 0


_FIVE: Final = OpenAIFamily(
    "gpt-5",
    request=2,
    tools=81,
    heading="# Instructions\n\n",
    per_answer=2,
    per_calling=6,
    schema_answer=False,
    forced_tool=False,
    plain_unions=True,
    responses_call=15,
    responses_parallel=5,
    responses_tools=6,
)

FAMILIES: Final[Mapping[str, OpenAIFamily]] = MappingProxyType(
    {
        family.name: family
        for family in (
            OpenAIFamily("gpt-4-0613", "cl100k_base", older_tools=True),
            OpenAIFamily("gpt-3.5-turbo-0301", "cl100k_base", per_message=5, per_name=-1, older_tools=True),
            OpenAIFamily("gpt-4", "cl100k_base"),
            OpenAIFamily("gpt-4o"),
            OpenAIFamily("o1-mini", tools=0),
            OpenAIFamily("o", request=2, tools=0),
            _FIVE,
            replace(_FIVE, name="gpt-5.4", responses_call=18),
        )
    }
)

# The first pattern that a model's name begins with decides.
_PATTERNS: Final = (
    (r"gpt-3\.?5-turbo-0301", "gpt-3.5-turbo-0301"),
    (r"gpt-4(-32k)?(-0314|-0613)?$|gpt-3\.?5-turbo(-16k)?-0613", "gpt-4-0613"),
    (r"gpt-4o|gpt-4\.|chatgpt-4o|gpt-audio|gpt-realtime|computer-use", "gpt-4o"),
    (r"gpt-4|gpt-3\.?5", "gpt-4"),
    (r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]", "gpt-5.4"),
    (r"gpt-5|codex", "gpt-5"),
    (r"o1-(mini|preview)", "o1-mini"),
    (r"o[134](-|$)", "o"),
)


def bare(model: str) -> str:
    """Leave out of a model's name the provider's path and the case.

    >>> bare("openai/GPT-4o")
    'gpt-4o'
    """
    return model.strip().rpartition("/")[2].casefold()


def family_of(model: str) -> OpenAIFamily | None:
    """Return the family that a model of OpenAI's belongs to, or None for everybody else's.

    >>> [family.name if (family := family_of(name)) else None for name in ("gpt-4", "gpt-4o-mini", "o3", "claude-2")]
    ['gpt-4-0613', 'gpt-4o', 'o', None]
    """
    return next((FAMILIES[name] for pattern, name in _PATTERNS if re.match(pattern, bare(model))), None)
