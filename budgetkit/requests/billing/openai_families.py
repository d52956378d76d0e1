"""OpenAI's families of models: the form in which each is shown a request, and what the form costs.

Constants in tokens stand in ``data/framings.toml``, derived from recorded calls of public projects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from budgetkit.files import Table, read_rows
from budgetkit.models.names import FAMILY_ENCODING, openai_family


@dataclass(frozen=True, slots=True)
class OpenAIFamily:
    """Hold what a family's form costs, in tokens."""

    name: str
    encoding: str = FAMILY_ENCODING  # that its texts are counted with
    request: int = 3  # once a request
    per_message: int = 4
    per_name: int = 1  # for a speaker's name
    tools: int = -1  # once a request with tools, beside their block
    heading: str = ""  # stands before the system text where tools follow it
    per_answer: int = 0  # for an earlier answer in text
    per_calling: int = 0  # for an earlier answer that calls tools
    schema_answer: bool = True  # whether the name of an answer schema begins the answer
    forced_tool: bool = True  # whether the name of a tool that must be called begins the answer
    no_tool: int = 1  # where no tool may be called
    first_undescribed: int = 0  # more for tools whose first has no description
    older_tools: bool = False  # whether tools and calls keep the form of before 2024
    plain_unions: bool = False  # whether a union of types stands on one line
    responses_call: int = 10  # on the Responses interface: for a call with its result
    responses_parallel: int = 0  # there: more for each of several calls at once
    responses_tools: int = 0  # there: once for tools


FAMILIES: Final[Mapping[str, OpenAIFamily]] = Table(
    lambda: {
        name: OpenAIFamily(name, **row)
        for name, row in read_rows("framings.toml", "family").items()
    }
)


def family_of(model: str) -> OpenAIFamily | None:
    """Return the family that a model of OpenAI's belongs to, or None for everybody else's.

    >>> [family.name if (family := family_of(name)) else None for name in ("gpt-4", "gpt-4o-mini", "o3", "claude-2")]
    ['gpt-4-0613', 'gpt-4o', 'o', None]
    """
    name = openai_family(model)
    return FAMILIES[name] if name else None
