"""FRAMINGS: how the systems that count messages frame them, each a row of ``data/framings.toml`` with its source.

The first eleven give the nine answers to how many tokens ``{"role": "user", "content": "Hello world"}`` has:

    2 text   6 octopus, llama-index, litellm-response, prompt-tsx   7 langchain
    9 cookbook, litellm, praisonai, plan-195   10 memory-engine
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from budgetkit.files import Table, read_rows
from budgetkit.framing.messages import Framing
from budgetkit.framing.openai_families import FAMILIES, OpenAIFamily
from budgetkit.framing.providers import OpenAIRules, rules_for
from budgetkit.framing.tools import ToolConstants
from budgetkit.models import Model

_RECORDED = (
    "recorded calls of public projects with the provider's usage, read 2026-11-21; see budgetkit.framing.openai_chat"
)


def _from_row(row: dict[str, Any]) -> Framing:
    tools = row.get("tools", "json")
    return Framing(**row | {"tools": tools if isinstance(tools, str) else ToolConstants(**tools)})


def _framed(rules: OpenAIRules, counter: str = "gpt-4o") -> Framing:
    """Make the framing of an OpenAI family, which its own rules decide."""
    own = rules.family
    return Framing(
        per_message=own.per_message - 1,
        count_role=True,
        count_name=True,
        per_name=own.per_name,
        priming=own.request,
        rules=rules,
        source=f"{own.name}: {_RECORDED}",
        counter=counter,
    )


FRAMINGS: Final[Mapping[str, Framing]] = Table(
    lambda: (
        {name: _from_row(row) for name, row in read_rows("framings.toml", "framing").items()}
        | {
            name: _framed(OpenAIRules(FAMILIES[row["family"]]), counter=row["counter"])
            for name, row in read_rows("framings.toml", "openai").items()
        }
    )
)

#: That of gpt-4o, whose constants are the defaults of a family; the same as ``FRAMINGS["openai"]``.
DEFAULT_FRAMING: Final = _framed(OpenAIRules(OpenAIFamily("gpt-4o")))


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
