"""How many tokens a model may think, by its effort: the few facts that are published, and where none is.

Thinking is billed as output and counts against the longest answer, so its reserve serves the output. Most providers
turn an effort into tokens by rules of their own, and say no number: then measure your own answers' usage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from budgetkit.budget.allocation import Reserve
from budgetkit.budget.quoting import brief, one_line
from budgetkit.budget.validation import OUTPUT
from budgetkit.files import read_table
from budgetkit.models import Model
from budgetkit.models.names import bare
from budgetkit.models.resolved import ResolvedModel, model_name

#: Efforts that providers know, from least to most.
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Thinking:
    """Say how many tokens a model may think.

    Parameters
    ----------
    model, effort : str
        What was asked for.
    tokens : int or None
        The most, in tokens; None where nobody says.
    source, date : str
        Where it was read, or who says that it is unknown, and when.
    """

    model: str
    effort: str
    tokens: int | None
    source: str
    date: str

    def reserve(self, tokens: int | None = None) -> Reserve:
        """Reserve what may be thought, beside the answer's own reserve.

        Parameters
        ----------
        tokens : int, optional
            Your own number, such as a quantile of your answers' usage; the published one when left out.

        Returns
        -------
        Reserve
            Named "thinking"; it serves the output.

        Raises
        ------
        ValueError
            If neither is known.
        """
        size = self.tokens if tokens is None else tokens
        if size is None:
            raise ValueError(
                f"a reserve for {one_line(self.model)} at effort {brief(self.effort)}; {self.source} (read "
                f"{self.date}); give the tokens that your own answers' usage shows: reserve(tokens=...)"
            )
        return Reserve("thinking", size, serves=OUTPUT)


def thinking(model: str | Model | ResolvedModel, effort: str, through: str = "") -> Thinking:
    """Look up how many tokens a model may think at an effort.

    Parameters
    ----------
    model : str or Model
        Its name, or itself.
    effort : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
        As the request says it.
    through : str
        The library that sends the request, where it turns an effort into tokens, such as "litellm".

    Returns
    -------
    Thinking
        Its `tokens` are None where nobody says; `source` and `date` say where that was read.

    Raises
    ------
    ValueError
        If there is no such effort.

    Examples
    --------
    >>> thinking("gemini-2.5-flash", "medium").reserve()
    Reserve('thinking', 8192, serves='output')
    >>> thinking("gpt-5.1", "high").tokens is None, thinking("gpt-5.1", "none").tokens
    (True, 0)
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort {brief(effort)}; known are {', '.join(EFFORTS)}; use one of them")
    name = model_name(model)
    for row in read_table("thinking.csv"):
        is_row = row["effort"] in ("", effort) and row["through"] in ("", through)
        if is_row and re.match(row["pattern"], bare(name)):
            return Thinking(
                name,
                effort,
                int(row["tokens"]) if row["tokens"] else None,
                row["source"],
                row["date"],
            )
    return Thinking(
        name, effort, None, "nothing is known here of how much this model thinks", "2026-11-22"
    )
