"""OpenAI's families of models: in which form each is shown a request, and what the form costs.

Constants in tokens stand in ``data/framings.toml``, derived from recorded calls of public projects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from budgetkit.files import read_rows, read_toml

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


FAMILIES: Final[Mapping[str, OpenAIFamily]] = MappingProxyType(
    {name: OpenAIFamily(name, **row) for name, row in read_rows("framings.toml", "family").items()}
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
    named = (
        name for pattern, name in read_toml("framings.toml")["models"]["families"] if re.match(pattern, bare(model))
    )
    return next((FAMILIES[name] for name in named), None)
