"""Models: context windows, encodings, limits and end dates.

The *kind* of a window says whether it includes the answer::

    shared   prompt + answer <= window                        most models
    input    prompt <= window, answer <= max_output           separate limits: GPT-5, Gemini, Qwen

For example, GPT-5 is advertised with 400,000 tokens: a window of 272,000 for the prompt and 128,000 for the answer. The
properties come from ``data/models.csv``, where every row has a source and a date. :attr:`Model.provenance` says how a
name was looked up, and an unknown name causes a warning. Public functions look up a name once, with :func:`resolve`,
and pass the :class:`Model` to other functions.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date as Day  # noqa: N812
from functools import cache, lru_cache
from typing import Any, Final, Literal

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.errors import unknown_name, wrong_type
from budgetkit.budget.html import block
from budgetkit.budget.quoting import brief, one_line, warn_caller
from budgetkit.files import missing_extra, read_rows, read_table, read_toml
from budgetkit.models.names import (
    LONGEST_NAME,
    as_listed,
    bare,
    calibration_row,
    core_name,
    family_encoding,
    host_of,
    is_spelling,
    nearest_names,
    neighbour,
    openai_family,
    spelled_model,
)

__all__ = [
    "DEFAULT_ENCODING",
    "DEFAULT_MODEL",
    "DEFAULT_WINDOW",
    "Model",
    "RetiredModelWarning",
    "UnknownModelWarning",
    "model",
    "models",
    "resolve",
]

#: The default model, which is current and has a published tokenizer.
DEFAULT_MODEL: Final = "gpt-5.4"
#: Window assumed for an unknown model, in tokens: the memory engine's default (document 001).
DEFAULT_WINDOW: Final = 8_192
DEFAULT_ENCODING: Final = "cl100k_base"
#: The prompt cache used if the provider's cache is unknown.
IDEAL_CACHE: Final = "longest prefix"


class UnknownModelWarning(UserWarning):
    """Warning that a model is unknown and a default is used."""


class RetiredModelWarning(UserWarning):
    """Warning that the provider has retired a model."""


def today() -> Day:
    """Return today's date, which the environment variable BUDGETKIT_TODAY overrides.

    Models that ended by this date are retired. The documentation and tests set the variable to get the same output on
    any day.
    """
    return Day.fromisoformat(os.environ.get("BUDGETKIT_TODAY") or Day.today().isoformat())


@dataclass(frozen=True, slots=True)
class Model:
    """A model's context window, with the properties needed to count its tokens.

    Parameters
    ----------
    name : str
        The provider's name for the model.
    window : int
        Context window, in tokens: for prompt and answer, or for the prompt alone, depending on ``kind``.
    kind : {"shared", "input"}
        ``"shared"`` if the window includes the answer, ``"input"`` if the window is for the prompt alone.
    max_output : int, optional
        Maximum length of the answer, in tokens. It is part of a shared window, and comes on top of an input window.
    encoding : str
        Encoding used to count the model's tokens.
    encoding_is_own : bool
        If true, the encoding is the model's own; otherwise counts with it are estimates.
    provider : str
        Provider of the model.
    framing : str, optional
        Name of the model's framing in :data:`budgetkit.requests.FRAMINGS`, if known.
    source : str
        Source of the numbers.
    date : str
        Date on which the numbers were read, in ISO format.
    provenance : str
        How the name was looked up, and which fields were overridden.
    ends : str
        Date on which the provider retires the model, in ISO format; empty if none is announced.

    Raises
    ------
    ValueError
        If the kind is unknown, the window is not above 0, or `max_output` exceeds a shared window.
    TypeError
        If `window` or `max_output` is not a whole number.

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
        check_choice(f"kind of {name}", self.kind, ("shared", "input"))
        check_tokens(f"window of {name}", self.window, 1)
        if self.max_output is None:
            longest = 0
        else:
            longest = check_tokens(f"max_output of {name}", self.max_output)
        if longest > self.window and self.kind == "shared":
            raise ValueError(
                f"max_output of {name} ({longest:,}) exceeds its window ({self.window:,}). Lower max_output, "
                "or set kind='input' "
                "if the window does not include the answer."
            )

    @property
    def total(self) -> int:
        """Maximum tokens of prompt and answer together."""
        if self.kind == "input":
            return self.window + (self.max_output or 0)
        return self.window

    @property
    def ended(self) -> bool:
        """True if the provider has retired the model."""
        return bool(self.ends) and self.ends <= today().isoformat()

    @property
    def is_known(self) -> bool:
        """True if the window is known and not a default."""
        note = self.provenance.rpartition("; ")[2]
        is_given = note.endswith("overridden") and "window" in note
        return is_given or not self.provenance.startswith("default: ")

    @property
    def notice(self) -> str:
        """A warning if the model is unknown or retired, otherwise ""."""
        if self.ended:
            retired = f"Model {brief(self.name)} was retired on {self.ends} ({self.source})"
            return f"{retired}. Its last known window is used; choose a current model."
        return "" if self.is_known else unknown_notice(self.name)

    @property
    def tokenizer(self) -> Literal["exact", "calibrated", "stand-in"]:
        """The kind of tokenizer: the model's own, calibrated, or a substitute."""
        if self.encoding_is_own:
            return "exact"
        # an encoding chosen by the user takes precedence over the table
        chosen_by_hand = self.provenance == "given" or "encoding" in self.provenance
        is_calibrated = bool(calibration_row(self.name)["pattern"]) and not chosen_by_hand
        return "calibrated" if is_calibrated else "stand-in"

    @property
    def openai_family(self) -> str:
        """The model's OpenAI family, or "" for another maker's model."""
        return openai_family(self.name)

    @property
    def host(self) -> str:
        """The host in the model's name, such as "bedrock", or ""."""
        return host_of(self.name)

    @property
    def is_routed(self) -> bool:
        """True for an OpenAI model whose name states a router.

        A router forwards requests and bills them by its own rules.

        >>> resolve("openai/gpt-5.2").is_routed, resolve("azure/gpt-5.2").is_routed
        (True, False)
        """
        routers: list[str] = read_toml("framings.toml")["models"]["routers"]
        return bool(self.openai_family) and self.name.casefold().startswith(tuple(routers))

    @property
    def cache(self) -> str:
        """The name of the model's prompt cache in :data:`budgetkit.cost.CACHES`.

        >>> [resolve(name).cache for name in ("gpt-5.4", "claude-haiku-4-5", "Llama-3.3-70B-Instruct")]
        ['openai', 'anthropic-4096', 'longest prefix']
        """
        for name, row in read_rows("prompt_caches.toml", "cache").items():
            if "models" in row and re.search(row["models"], as_listed(self.name)):
                return name
        of_provider: str = read_toml("prompt_caches.toml")["providers"].get(
            self.provider, IDEAL_CACHE
        )
        return of_provider

    def _repr_html_(self) -> str:
        longest = self.max_output or 0
        prompt = self.window if self.kind == "input" else self.window - longest
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
    """List the models of ``data/models.csv``, retired models last.

    Examples
    --------
    >>> len(models()) >= 60, models()[0].name
    (True, 'gpt-4o')
    """
    return tuple(sorted(map(_from_row, read_table("models.csv")), key=lambda row: row.ended))


def model(
    name: str | Model, unknown: Literal["default", "raise"] = "default", **overrides: Any
) -> Model:
    """Look up a model by name.

    A name finds the same model with and without a date, a cloud's prefix or a router's suffix. Any other addition may
    name a different model. A name that is not listed is looked up in genai-prices.

    Parameters
    ----------
    name : str or Model
        A name such as ``"gpt-5.4"``, with or without a date (``"gpt-5.4-2026-03-05"``) and a provider
        (``"openai/gpt-5.4"``). Case and surrounding blanks are ignored. A Model is returned with the overrides applied.
    unknown : {"default", "raise"}
        ``"default"`` warns about an unknown name and assumes the properties of the listed model whose name it extends,
        or else a window of 8,192 tokens and the encoding cl100k_base. ``"raise"`` raises an error.
    **overrides
        Fields of :class:`Model` to override, such as ``window=32_768``.

    Returns
    -------
    Model
        The model; ``provenance`` says how it was found.

    Raises
    ------
    ValueError
        If the name is empty, if it is unknown and ``unknown="raise"``, or if an override is out of range.
    TypeError
        If an override is not a field of a model.

    Warns
    -----
    UnknownModelWarning
        If the name is unknown; the warning names the default used.
    RetiredModelWarning
        If the provider has retired the model.

    Examples
    --------
    >>> model("gpt-5.4").window, model("gpt-5.4-mini").window, model("gpt-5.4-mini").total
    (1050000, 272000, 400000)
    >>> model("openai/gpt-5.4-2026-03-05").provenance
    'prefix gpt-5.4 of gpt-5.4-2026-03-05'
    """
    check_choice("unknown", unknown, ("default", "raise"))
    facts = resolve(name)
    if isinstance(name, str) and not facts.is_known:
        if unknown == "raise":
            raise ValueError(
                f"Unknown model {brief(facts.name)}.{_did_you_mean(facts.name)} Choose one of the models in "
                "budgetkit.models.models(), "
                f"or describe yours: Model({brief(facts.name)}, window=...)."
            )
        warn_caller(unknown_notice(facts.name, overrides.get("window")), UnknownModelWarning)
    elif isinstance(name, str) and facts.ended and "ends" not in overrides:
        warn_caller(facts.notice, RetiredModelWarning)
    if not overrides:
        return facts
    if strange := [field for field in overrides if field not in Model.__slots__]:
        raise TypeError(unknown_name("model field", strange[0], Model.__slots__))
    note = f"{facts.provenance}; {', '.join(sorted(overrides))} overridden"
    return replace(facts, **{"provenance": note, **overrides})


def resolve(name: str | Model, window: int | None = None, *, must_know: bool = False) -> Model:
    """Look up a model without warnings.

    Parameters
    ----------
    name : str or Model
        A name as in :func:`model`, or a Model.
    window : int, optional
        A window, in tokens, that replaces the model's window. The result then has no `max_output`.
    must_know : bool, default False
        If true, raise an error if the window is neither known nor given. If false, assume a default, which
        :attr:`Model.notice` states.

    Returns
    -------
    Model
        The model. Without a window, the same name returns the same object.

    Raises
    ------
    ValueError
        If the window is unknown and ``must_know`` is true.

    Examples
    --------
    >>> claude = resolve("claude-sonnet-4-5")
    >>> claude.window, claude.tokenizer, claude.cache, resolve("gpt-5.4", window=8_192).window
    (200000, 'calibrated', 'anthropic', 8192)
    >>> resolve("no-such-model").notice.partition(".")[0]
    "Unknown model 'no-such-model': a window of 8,192 tokens and cl100k_base are assumed"
    """
    if isinstance(name, Model):
        facts = name
    elif isinstance(name, str) and name.strip():
        facts = _look_up(name.strip())
    else:
        raise ValueError(wrong_type("model", name, "a name, such as 'gpt-5.4', or a Model"))
    if must_know and window is None and not facts.is_known:
        raise ValueError(
            f"Unknown model {brief(facts.name)}.{_did_you_mean(facts.name)} Choose a listed model, or pass its "
            "window in tokens (window=...)."
        )
    if window is None:
        return facts
    return replace(facts, window=check_tokens("window", window), max_output=None)


@lru_cache(maxsize=256)
def _look_up(name: str) -> Model:
    return found_by(name) or stand_in(name)


def model_name(model: str | Model) -> str:
    """Return the name of a Model, or a name unchanged.

    Examples
    --------
    >>> model_name("gpt-5.4"), model_name(resolve("gpt-5.4"))
    ('gpt-5.4', 'gpt-5.4')
    """
    if isinstance(model, str):
        return model
    if not isinstance(model, Model):
        raise TypeError(wrong_type("model", model, "a name, such as 'gpt-5.4', or a Model"))
    return model.name


def models_of(models: str | Model | Iterable[str | Model]) -> list[str | Model]:
    """Return one or more models as a list, rejecting an empty list.

    Examples
    --------
    >>> models_of("gpt-5.4"), models_of(["gpt-5.4", "gpt-5.5"])
    (['gpt-5.4'], ['gpt-5.4', 'gpt-5.5'])
    """
    if isinstance(models, str | Model):
        return [models]
    several = list(models) if isinstance(models, Iterable) else []
    if not several:
        raise TypeError(wrong_type("models", models, "at least one name or Model"))
    return several


def listed_name(model: str | Model) -> str:
    """Return a listed model's name, rejecting any other Model.

    A name is returned unchanged.

    Examples
    --------
    >>> listed_name("gpt-5.4"), listed_name(resolve("gpt-5.4"))
    ('gpt-5.4', 'gpt-5.4')
    """
    if isinstance(model, str):
        return model
    facts = resolve(model)
    if resolve(facts.name) != facts:
        raise ValueError(
            f"Model {brief(facts.name)} differs from every listed model. Pass the name of a listed "
            "model, with window= to set another window."
        )
    return facts.name


def found_by(name: str) -> Model | None:
    """Look up a model without warnings, or return None if unknown.

    Examples
    --------
    >>> found_by("gpt-5.4").window, found_by("gtp-5.4")
    (1050000, None)
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
    """Find a listed model by any spelling, or return None if unlisted.

    If the given name is more specific than the listed name, the model keeps the given name, because prices may depend
    on it: the name may state a host or router, a variant or a fine-tuned model.
    """
    facts = _table().get(spelled_model(name))
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
    """Give an unlisted model the encoding of its OpenAI family.

    If the name extends a listed name, the encoding is not marked as the model's own. A model of another maker is
    returned unchanged.
    """
    encoding, is_own = family_encoding(facts.name)
    if not encoding:
        return facts
    near = neighbour(facts.name)
    return replace(
        facts,
        encoding=encoding,
        encoding_is_own=is_own and not near,
        provenance=f"{facts.provenance}; {encoding} as for {near or 'its family'}",
    )


def _by_price_list(name: str) -> Model | None:
    """Return a model from its own entry in genai-prices, or None."""
    from importlib.metadata import version

    if (registry := price_list()) is None:
        return None
    try:
        provider, entry = registry.find_provider_model(bare(name), None, None, None)
    except LookupError:
        return None
    # A registry's entry may stand for a whole family, whose other members have other windows.
    if entry.context_window is None or not is_spelling(name, entry.id):
        return None
    source = f"genai-prices {version('genai-prices')}, {provider.id}/{entry.id}"
    return Model(
        name, entry.context_window, provider=provider.name, source=source, provenance=source
    )


def _by_usual_window(name: str) -> Model | None:
    """Return a model with its most frequent window in genai-prices, or None."""
    core = core_name(name)
    entries = [
        (entry.context_window, f"genai-prices, {provider.id}/{entry.id}", str(entry.id))
        for provider in getattr(price_list(), "providers", ())
        for entry in provider.models
        if entry.context_window and core_name(entry.id) == core
    ]
    if not entries:
        return None
    often = Counter(window for window, *_ in entries)
    usual = min(often, key=lambda window: (-often[window], window))
    of_usual = [entry for entry in entries if entry[0] == usual]
    # A suffix after a colon names a way of serving, such as in a batch.
    window, source, listed_id = min(of_usual, key=lambda entry: ":" in entry[2])
    says_where = "/" in name or host_of(name)
    return Model(
        name if says_where or ":" in listed_id else listed_id,
        window,
        source=source,
        provenance=f"{source}, of which {name} is a spelling",
    )


def similar_models(name: str) -> list[str]:
    """Return the listed names that are most similar to a model's name.

    Examples
    --------
    >>> similar_models("gpt-5.44")[0]
    'gpt-5.4'
    """
    return nearest_names(name, (row.name for row in models()))


def price_list() -> Any:
    """Return the data of genai-prices, or None if it is not installed."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        return None
    return get_snapshot()


def _did_you_mean(name: str) -> str:
    """Suggest the most similar model, or return "" if none is similar."""
    near = similar_models(name)
    return f" Did you mean {near[0]!r}?" if near else ""


def stand_in(name: str) -> Model:
    """Return a stand-in for an unknown model, with assumed properties.

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
        of_which = f", as for {near.name},"
    return replace(
        facts,
        provenance=f"default: a window of {facts.window:,} tokens and {facts.encoding}{of_which} are assumed",
    )


def unknown_notice(name: str, window: int | None = None) -> str:
    """Return the warning about an unknown model, with the assumed properties.

    The assumed window is stated only if no window is given.

    Examples
    --------
    >>> unknown_notice("acme-9", 8_000)[:54]
    "Unknown model 'acme-9': cl100k_base is assumed. Pass e"
    """
    facts = stand_in(name)
    longer = "" if price_list() else f" {missing_extra('genai-prices', 'lab', 'a longer list')}"
    fallback = f"{facts.encoding} is assumed. Pass encoding= if you know it."
    if window is None:
        fallback = f"{facts.provenance.removeprefix('default: ')}. Pass window= and encoding= if you know them."
    return f"Unknown model {brief(name)}: {fallback}{_did_you_mean(name)}{longer}"


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
