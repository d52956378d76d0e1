"""Models: how large the window of each is, what the window means, and which encoding counts its tokens.

What a window means is its *kind*::

    shared   prompt + answer <= window                        most models
    input    prompt <= window, answer <= max_output on top    a separate limit: GPT-5, Gemini, Qwen

so GPT-5, advertised with 400,000, is a window of 272,000 for the prompt and 128,000 for the answer. Facts
only, from ``data/models.csv``, where every row names its source and date. A name that is not in the table is
never answered silently: :attr:`Model.provenance` says by which route an answer was found, and the last resort
warns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date as Day
from functools import cache
from typing import Any, Final, Literal

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.html import block
from budgetkit.budget.quoting import brief, one_line, warn_caller
from budgetkit.files import missing, read_table
from budgetkit.models.names import (
    LONGEST_NAME,
    bare,
    family_encoding,
    host_of,
    listed_name,
    nearest_names,
    neighbour,
    plain,
    shortened,
    usual_window,
)

__all__ = [
    "DEFAULT_ENCODING",
    "DEFAULT_WINDOW",
    "Model",
    "RetiredModelWarning",
    "UnknownModelWarning",
    "model",
]
__all__ += ["models"]

#: What the memory engine takes for a model that it does not know (its document 001).
DEFAULT_WINDOW: Final = 8_192
DEFAULT_ENCODING: Final = "cl100k_base"


class UnknownModelWarning(UserWarning):
    """A model is not known, and a default stands in for it."""


class RetiredModelWarning(UserWarning):
    """The provider has retired a model, or announced that it would by now."""


def today() -> Day:
    """Return the day by which a model has ended or not: today, or that of the variable BUDGETKIT_TODAY.

    Pages and tests that set it give the same output on any day.
    """
    return Day.fromisoformat(os.environ.get("BUDGETKIT_TODAY") or Day.today().isoformat())


@dataclass(frozen=True, slots=True)
class Model:
    """Describe one model's context window.

    Parameters
    ----------
    name : str
        As its provider writes it.
    window : int
        Context window, in tokens; prompt and answer together, or the prompt alone, as ``kind`` says.
    kind : {"shared", "input"}
        What the window holds.
    max_output : int, optional
        Longest answer, in tokens: inside a shared window, on top of an input window.
    encoding : str
        Encoding that its tokens are counted with.
    encoding_is_own : bool
        Whether that is the model's own; otherwise it stands in, and counts made with it are estimates.
    provider : str
        Who made it.
    framing : str, optional
        Name in :data:`budgetkit.FRAMINGS` of what a message costs beyond its text, where it is known.
    source : str
        Where the numbers come from.
    date : str
        When they were read there, as ISO date.
    provenance : str
        How this answer to a name was found.
    ends : str
        Day on which its provider ends it, as ISO date, by the same source; empty where none is announced.

    Raises
    ------
    ValueError
        If the kind is none of these, the window is not above 0, or a shared window is smaller than the
        answer.
    TypeError
        If window or answer is not a whole number.

    Examples
    --------
    >>> Model("mine", 32_768, max_output=4_096).total
    32768
    """

    name: str
    window: int
    kind: Literal["shared", "input"] = "shared"
    max_output: int | None = None
    encoding: str = DEFAULT_ENCODING
    encoding_is_own: bool = False
    provider: str = ""
    framing: str | None = None
    source: str = ""
    date: str = ""
    provenance: str = "given"
    ends: str = ""

    def __post_init__(self) -> None:
        name = one_line(self.name)
        if self.kind not in ("shared", "input"):
            raise ValueError(
                f"{name}: window kind {brief(self.kind)}; known are shared, input; use one of them"
            )
        if check_tokens(f"{name}: window", self.window) == 0:
            raise ValueError(
                f"{name}: a window of 0 tokens; a window holds at least 1; give its size in tokens"
            )
        if self.max_output is None:
            longest = 0
        else:
            longest = check_tokens(f"{name}: max_output", self.max_output)
        if longest > self.window and self.kind == "shared":
            raise ValueError(
                f"{name}: answers of up to {longest:,} tokens in a window of {self.window:,} "
                "that they share with the prompt; lower max_output or say kind='input'"
            )

    @property
    def total(self) -> int:
        """Most tokens of prompt and answer together."""
        if self.kind == "input":
            return self.window + (self.max_output or 0)
        return self.window

    @property
    def ended(self) -> bool:
        """Whether its provider has ended it by today."""
        return bool(self.ends) and self.ends <= today().isoformat()

    def _repr_html_(self) -> str:
        longest = self.max_output or 0
        if self.kind == "input":
            prompt = self.window
        else:
            prompt = self.window - longest
        rows = [
            (name, getattr(self, name))
            for name in self.__slots__
            if getattr(self, name) not in (None, "")
        ]
        return block(
            f"Model {self.name}",
            [("window", prompt), ("output", longest)],
            [("", "known"), *rows],
            [],
        )


@cache
def models() -> tuple[Model, ...]:
    """List the models of ``data/models.csv``, those past their end last.

    Examples
    --------
    >>> len(models()) >= 60, models()[0].name
    (True, 'gpt-4o')
    """
    return tuple(sorted(map(_from_row, read_table("models.csv")), key=lambda row: row.ended))


def model(
    name: str | Model, unknown: Literal["default", "raise"] = "default", **overrides: Any
) -> Model:
    """Look a model up: by its name in any spelling, in genai-prices, or by default.

    A date, a cloud's prefix or a router's suffix names the same model. Any other longer name may be another model.

    Parameters
    ----------
    name : str or Model
        ``"gpt-4o"``, or with a date, ``"gpt-4o-2024-08-06"``, or with a provider, ``"openai/gpt-4o"``. Upper
        and lower case are the same, and blanks around it do not count. A model stays what it is.
    unknown : {"default", "raise"}
        What to do with a name that nothing knows: take the numbers of the listed model whose name it goes on from,
        else a window of 8,192 tokens and cl100k_base, with a warning, or raise.
    **overrides
        Fields of :class:`Model` that are known better, such as ``window=32_768``.

    Returns
    -------
    Model
        Its ``provenance`` says which of these routes it came by.

    Raises
    ------
    ValueError
        If the name is empty, nothing knows it and ``unknown`` is ``"raise"``, or an override is out of its range.
    TypeError
        If an override is no field of a model.

    Warns
    -----
    UnknownModelWarning
        If nothing knows the name, saying what stands in.
    RetiredModelWarning
        If its provider has ended it.

    Examples
    --------
    >>> model("gpt-4o").window, model("gpt-5").window, model("gpt-5").total
    (128000, 272000, 400000)
    >>> model("openai/gpt-4o-2024-08-06").provenance
    'prefix gpt-4o of gpt-4o-2024-08-06'
    """
    if unknown not in ("default", "raise"):
        raise ValueError(f"unknown={brief(unknown)}; known are default, raise; use one of them")
    if isinstance(name, Model):
        return _overridden(name, overrides)
    if not isinstance(name, str) or not name.strip():
        problem = f"a model named {brief(name)} was asked for; names are texts such as 'gpt-4o'"
        raise ValueError(f"{problem}; give one, or a window in tokens")
    name = name.strip()
    facts = found_by(name)

    # what nothing knows is refused, or a default stands in for it
    if facts is None and unknown == "raise":
        refusal = f"no model {brief(name)}; {len(models())} are in {_lists()}; use one of budgetkit.models.models()"
        raise ValueError(f"{refusal}, or describe it: Model({brief(name)}, window=...)")
    if facts is None:
        warn_caller(unknown_notice(name, overrides.get("window")), UnknownModelWarning)
        return _overridden(stand_in(name), overrides)

    if facts.ended and "ends" not in overrides:
        warn_caller(ended_notice(facts, name), RetiredModelWarning)
    return _overridden(facts, overrides)


def found_by(name: str) -> Model | None:
    """Look a name up wherever names are listed; None, without a warning, for a model that nothing knows.

    Examples
    --------
    >>> found_by("gpt-4o").window, found_by("gtp-4o")
    (128000, None)
    """
    if len(bare(name)) > LONGEST_NAME:
        return None
    facts = _by_name(name)
    if facts is not None:
        return facts
    unlisted = _by_price_list(name) or _by_usual_window(name)
    if unlisted is None:
        return None
    return _of_family(unlisted)


def _by_name(name: str) -> Model | None:
    """Find a listed model; a name that says more than the listed one is kept, for it decides what is billed.

    A fine-tuned model has prices of its own, a path names who passes requests on, and a suffix which copy runs.
    """
    facts = _table().get(listed_name(name))
    if facts is None:
        return None
    if facts.name.casefold() != bare(name):
        spelling = f"prefix {facts.name} of {bare(name)}"
        return replace(facts, name=name, provenance=spelling)
    if "/" in name or "ft:" in name.casefold() or host_of(name):
        return replace(facts, name=name)
    if name.casefold() != facts.name.casefold():
        return replace(facts, provenance=f"{facts.provenance}, of which {name} is a spelling")
    return facts


def _of_family(facts: Model) -> Model:
    """Give a model that is not listed by itself the encoding of its family of OpenAI's, where it is of one."""
    encoding, is_own = family_encoding(facts.name)
    if not encoding:
        return facts
    return replace(facts, encoding=encoding, encoding_is_own=is_own)


def _by_price_list(name: str) -> Model | None:
    """Ask genai-prices, which knows windows but no kinds and no encodings."""
    from importlib.metadata import version

    if (registry := price_list()) is None:
        return None
    try:
        provider, entry = registry.find_provider_model(bare(name), None, None, None)
    except LookupError:
        return None
    # A registry's entry may stand for a whole family, whose other members have other windows.
    cores = [{plain(text) for text in shortened(text)} for text in (bare(name), bare(entry.id))]
    if entry.context_window is None or cores[0].isdisjoint(cores[1]):
        return None
    source = f"genai-prices {version('genai-prices')}, {provider.id}/{entry.id}"
    return Model(
        name, entry.context_window, provider=provider.name, source=source, provenance=source
    )


def _by_usual_window(name: str) -> Model | None:
    """Take the window that most hosts give a model of this name."""
    usual = usual_window(plain(name), getattr(price_list(), "providers", ()))
    if usual is None:
        return None
    window, source, listed = usual
    says_where = "/" in name or host_of(name)
    return Model(
        name if says_where else listed,
        window,
        source=source,
        provenance=f"{source}, of which {name} is a spelling",
    )


def nearest(name: str) -> list[str]:
    """Return the listed models whose names are most like one that nothing knows.

    Examples
    --------
    >>> nearest("gpt-4oo")[0]
    'gpt-4o'
    """
    return nearest_names(name, (row.name for row in models()))


def price_list() -> Any:
    """Return what genai-prices knows, or None where it is not installed."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        return None
    return get_snapshot()


def _lists() -> str:
    """Say where a name was looked for, and which extra would have known more."""
    longer = "data/models.csv or genai-prices"
    if price_list():
        return longer
    return f"data/models.csv; {missing('genai-prices', 'lab', 'a longer list')}"


def stand_in(name: str) -> Model:
    """Return the model that stands in for one that nothing knows.

    Examples
    --------
    >>> stand_in("gtp-4o").window
    8192
    """
    near = _table().get(neighbour(name))
    if near is None:
        facts = _of_family(Model(name, DEFAULT_WINDOW))
        of_which = ""
    else:
        facts = _of_family(replace(near, name=name, encoding_is_own=False, ends="", framing=None))
        of_which = f", those of {near.name}, whose name it goes on from,"
    return replace(
        facts,
        provenance=f"default: a window of {facts.window:,} tokens and {facts.encoding}{of_which} stand in",
    )


def unknown_notice(name: str, window: int | None = None) -> str:
    """Say that nothing knows a model, and what stands in for it: for its window, where none is given, and encoding.

    Examples
    --------
    >>> unknown_notice("acme-9", 8_000).partition("; ")[2]
    'cl100k_base stands in; give encoding= if you know it'
    """
    facts = stand_in(name)
    unknown = f"no model {brief(name)} in {_lists()}"
    if window is not None:
        return f"{unknown}; {facts.encoding} stands in; give encoding= if you know it"
    fallback = facts.provenance.removeprefix("default: ")
    return f"{unknown}; {fallback}; give window= and encoding= if you know them"


def ended_notice(facts: Model, name: str) -> str:
    """Say when a provider retired a model."""
    retired = f"{brief(name)} was retired on {facts.ends} ({facts.source})"
    return f"{retired}. Its last known window is used; choose another model."


def _overridden(facts: Model, overrides: dict[str, Any]) -> Model:
    if not overrides:
        return facts
    if strange := [field for field in overrides if field not in Model.__slots__]:
        raise TypeError(
            f"no field {brief(strange[0])} in a model; there are {', '.join(Model.__slots__)}; use one"
        )
    note = f"{facts.provenance}; {', '.join(sorted(overrides))} overridden"
    return replace(facts, **{"provenance": note, **overrides})


@cache
def _table() -> dict[str, Model]:
    return {row.name.casefold(): row for row in models()}


def _from_row(row: dict[str, str]) -> Model:
    fields: dict[str, Any] = {
        **row,
        "window": int(row["window"]),
        "max_output": int(row["max_output"] or 0) or None,
    }
    fields |= {
        "encoding_is_own": row["encoding_is_own"] == "yes",
        "framing": row["framing"] or None,
    }
    return Model(**fields, provenance=f"exact name {row['name']}")
