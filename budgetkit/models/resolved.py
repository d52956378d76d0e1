"""ResolvedModel: everything that a model's name decides, looked up once at the boundary and passed on.

Which window there is, which tokenizer counts and how sure that is, which rules bill messages and tools, which
prompt cache the provider keeps, and where the model runs: each is a row of a table in ``data/`` that a pattern over the
name chooses. What asks for one of them again by the name alone may find another row; what is passed this value cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final, Literal

from budgetkit.budget.allocation import Reserve
from budgetkit.budget.amounts import Share, check_tokens
from budgetkit.budget.quoting import brief, one_line, quoted, warn_caller
from budgetkit.budget.validation import OUTPUT
from budgetkit.files import Table, read_rows, read_table, read_toml
from budgetkit.models import (
    Model,
    RetiredModelWarning,
    UnknownModelWarning,
    ended_notice,
    found_by,
    model,
    nearest,
    stand_in,
    unknown_notice,
)
from budgetkit.models.names import as_listed, bare, host_of, openai_family


@dataclass(frozen=True, slots=True)
class ProductWindow:
    """What a program makes of a model's window.

    Parameters
    ----------
    label : str
        What people call the program.
    window : int
        The model's window, in tokens.
    shown : int
        What the program shows or lets through of it, in tokens.
    acts_at : int
        The size of a prompt at which its rule acts, in tokens; what is shown where it has none.
    source, date : str
        Where that was read, and when.

    Examples
    --------
    >>> codex = product_window("codex")
    >>> codex.window, codex.shown, codex.acts_at
    (272000, 258400, 244800)
    """

    label: str
    window: int
    shown: int
    acts_at: int
    source: str
    date: str


def product_window(name: str, window: int | None = None) -> ProductWindow:
    """Return what a program makes of a model's window.

    Parameters
    ----------
    name : str
        A name of :data:`PRODUCT_WINDOWS`.
    window : int, optional
        The model's window, in tokens; what the program's own list says when left out.

    Returns
    -------
    ProductWindow
        In tokens.

    Raises
    ------
    LookupError
        If there is no such program.
    ValueError
        If no window is given and the program's list says none.

    Examples
    --------
    >>> product_window("claude-code", 1_000_000).acts_at, product_window("ollama", 131_072).shown
    (967000, 4096)
    """
    if name not in PRODUCT_WINDOWS:
        raise LookupError(
            f"no window of {brief(name)}; known are {quoted(PRODUCT_WINDOWS)}; choose from these"
        )
    row = PRODUCT_WINDOWS[name]
    if window is None:
        whole = row.get("catalogue", row.get("shown"))
    else:
        whole = check_tokens("window", window)
    if whole is None:
        raise ValueError(
            f"{row['label']} has the model's window, and none was given; give it, as in window=200_000"
        )
    if "shown" in row:
        shown = min(whole, row["shown"])
    else:
        shown = Share(row.get("shown_share", 1)).of(whole)
    acts_at = shown
    if "acts_less" in row:
        acts_at = max(0, whole - row["acts_less"])
    elif "acts_share" in row:
        acts_at = Share(row["acts_share"]).of(shown if "shown" in row else whole)
    return ProductWindow(
        label=row["label"],
        window=whole,
        shown=shown,
        acts_at=acts_at,
        source=row["source"],
        date=row["date"],
    )


def catalogue_of(name: str, shown: int) -> int:
    """Return the window that a program's rule goes by, of what it shows.

    Examples
    --------
    >>> catalogue_of("codex", 258_400)
    272000
    """
    share: float = PRODUCT_WINDOWS[name].get("shown_share", 1)
    return round(shown / share)


#: The rows of data/windows.toml by name.
PRODUCT_WINDOWS: Final[Mapping[str, dict[str, Any]]] = Table(
    lambda: read_rows("windows.toml", "window")
)


Certainty = Literal["exact", "calibrated", "stand-in"]
#: The prompt cache that stands in where a provider's is not known.
IDEAL_CACHE: Final = "longest prefix"


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """Hold what is known of one model.

    Parameters
    ----------
    facts : Model
        Its window and what that holds, its longest answer, its encoding, its provider and the day on which it ends.
    is_known : bool
        Whether anything knows it; otherwise its window is one that stands in.
    tokenizer : {"exact", "calibrated", "stand-in"}
        How sure a count is: its own vocabulary, a public one times a published slope, or a public one as it is.
    openai_family : str
        The family of OpenAI's whose rules bill it exactly; empty for everybody else's.
    calibration : str
        The family of ``data/calibrations.csv`` that estimates it.
    cache : str
        The name of its provider's prompt cache, in :data:`budgetkit.prompt_cache.CACHES`.
    host : str
        Where it runs or who passes it on, such as "bedrock"; empty for its maker.
    is_routed : bool
        Whether a router passes it on that writes the maker before a model of OpenAI's and bills it by rules of its own.
    notice : str
        What stands in, or that the model has ended; empty where nothing is to be said.

    Examples
    --------
    >>> claude = resolve("claude-sonnet-4-5")
    >>> claude.facts.window, claude.tokenizer, claude.calibration, claude.cache
    (200000, 'calibrated', 'claude-4.5', 'anthropic')
    """

    facts: Model
    is_known: bool
    tokenizer: Certainty
    openai_family: str
    calibration: str
    cache: str
    host: str
    is_routed: bool = False
    notice: str = ""

    @property
    def name(self) -> str:
        """As it is listed."""
        return self.facts.name

    @property
    def window(self) -> int:
        """Its window, in tokens."""
        return self.facts.window


def resolve(
    name: str | Model | ResolvedModel, window: int | None = None, *, must_know: bool = False
) -> ResolvedModel:
    """Look up everything that a model's name decides.

    Parameters
    ----------
    name : str, Model or ResolvedModel
        A name as :func:`budgetkit.model` takes it, or what was looked up already.
    window : int, optional
        Another window than the model's, in tokens.
    must_know : bool, default False
        Whether a model whose window nobody knows is refused unless ``window`` is given; otherwise a default stands
        in, and ``notice`` says so.

    Returns
    -------
    ResolvedModel
        The same for the same name.

    Raises
    ------
    ValueError
        If the window is not known and has to be.

    Examples
    --------
    >>> resolve("gpt-4o").openai_family, resolve("gpt-4o", window=8_192).window
    ('gpt-4o', 8192)
    >>> resolve("no-such-model").notice.partition(";")[0]
    "no model 'no-such-model' in data/models.csv or genai-prices"
    """
    if isinstance(name, ResolvedModel):
        resolved = name
    elif isinstance(name, Model):
        note = name.provenance.rpartition("; ")[2]
        is_given = note.endswith("overridden") and "window" in note  # by hand, over what stands in
        resolved = _resolved(
            name, name.name, is_known=is_given or not name.provenance.startswith("default: ")
        )
    elif isinstance(name, str) and name.strip():
        resolved = _by_name(name.strip())
    else:
        raise ValueError(
            f"a model named {brief(name)}; names are texts such as 'gpt-4o'; give one, or a Model"
        )
    if must_know and window is None and not resolved.is_known:
        near = nearest(resolved.name)
        alike = f"; nearest are {quoted(near)}" if near else ""
        raise ValueError(
            f"no model {brief(resolved.name)} is known, so its window is not{alike}; give a known one, or window= in "
            "tokens"
        )
    if window is None:
        return resolved
    sized = replace(resolved.facts, window=check_tokens("window", window), max_output=None)
    return replace(resolved, facts=sized)


def warn_of(model: str | Model | ResolvedModel, window: int | None = None) -> None:
    """Warn, as `budgetkit.model` does, of a name that nothing knows and of a model that has ended.

    Who passes what was looked up already was warned then.

    Examples
    --------
    >>> warn_of("gpt-4o"), warn_of(resolve("no-such-model"))
    (None, None)
    """
    if not isinstance(model, str):
        return
    resolved = resolve(model)
    if not resolved.is_known:
        warn_caller(unknown_notice(resolved.name, window), UnknownModelWarning)
    elif resolved.notice:
        warn_caller(resolved.notice, RetiredModelWarning)


def model_name(model: str | Model | ResolvedModel) -> str:
    """Return what a model is called, however it is given.

    Examples
    --------
    >>> model_name("gpt-4o"), model_name(resolve("gpt-4o").facts)
    ('gpt-4o', 'gpt-4o')
    """
    if isinstance(model, str):
        return model
    if not isinstance(model, Model | ResolvedModel):
        raise TypeError(
            f"a model {brief(model)}; known are its name and a Model; give one of these, such as 'gpt-4o'"
        )
    return model.name


def models_of(
    models: str | Model | ResolvedModel | Iterable[str | Model | ResolvedModel],
) -> list[str | Model | ResolvedModel]:
    """Return one model or several as a list; that there is none is refused.

    Examples
    --------
    >>> models_of("gpt-4o"), models_of(["gpt-4o", "gpt-5"])
    (['gpt-4o'], ['gpt-4o', 'gpt-5'])
    """
    if isinstance(models, str | Model | ResolvedModel):
        return [models]
    several = list(models) if isinstance(models, Iterable) else []
    if not several:
        raise TypeError(f"models {brief(models)}; known are names and Models; give at least one")
    return several


def facts_of(name: str | Model | ResolvedModel) -> Model:
    """Return a model, however it is given; as `budgetkit.model` does, it warns of a name that nothing knows.

    Examples
    --------
    >>> facts_of(resolve("gpt-4o")) == facts_of("gpt-4o")
    True
    """
    if isinstance(name, ResolvedModel):
        return name.facts
    return model(name)


def listed_name(model: str | Model | ResolvedModel) -> str:
    """Return the name by which a model can be looked up again; one that was described by hand is refused.

    Examples
    --------
    >>> listed_name("gpt-4o"), listed_name(resolve("gpt-4o").facts)
    ('gpt-4o', 'gpt-4o')
    """
    if isinstance(model, str):
        return model
    resolved = resolve(model)
    if resolve(resolved.name).facts != resolved.facts:
        raise ValueError(
            f"model {brief(resolved.name)} was described by hand, and here models are known by name; give a listed "
            "name, and window= where it is another"
        )
    return resolved.name


@lru_cache(maxsize=256)
def _by_name(name: str) -> ResolvedModel:
    """Look a name up; what `budgetkit.model` would warn of becomes the notice."""
    facts = found_by(name)
    if facts is None:
        return _resolved(stand_in(name), name, is_known=False, notice=unknown_notice(name))
    notice = ended_notice(facts, name) if facts.ended else ""
    return _resolved(facts, name, notice=notice)


@lru_cache(maxsize=256)
def _resolved(facts: Model, name: str, is_known: bool = True, notice: str = "") -> ResolvedModel:
    """Look up the rows of all tables that a name decides."""
    row = calibration_row(facts.name)
    family = openai_family(name)

    # how sure a count is: somebody's own encoding counts more than what the tables say
    chosen_by_hand = facts.provenance == "given" or "encoding" in facts.provenance
    tokenizer: Certainty = "stand-in"
    if facts.encoding_is_own:
        tokenizer = "exact"
    elif row["pattern"] and not chosen_by_hand:
        tokenizer = "calibrated"

    return ResolvedModel(
        facts=facts,
        is_known=is_known,
        tokenizer=tokenizer,
        openai_family=family,
        calibration=row["family"],
        cache=prompt_cache_name(facts),
        host=host_of(facts.name),
        is_routed=bool(family) and is_routed(facts.name),
        notice=notice,
    )


def is_routed(name: str) -> bool:
    """Say whether a name is one by which a router knows a model of OpenAI's.

    Examples
    --------
    >>> is_routed("openai/gpt-5.2"), is_routed("azure/gpt-5.2")
    (True, False)
    """
    routers: list[str] = read_toml("framings.toml")["models"]["routers"]
    return name.casefold().startswith(tuple(routers))


def calibration_row(name: str) -> dict[str, str]:
    """Return the row of ``data/calibrations.csv`` for a model: the first whose pattern its name holds.

    Examples
    --------
    >>> calibration_row("us.anthropic.claude-sonnet-4-5")["family"], calibration_row("x")["family"]
    ('claude-4.5', 'any other')
    """
    plain = re.sub(r"[.:_]", "-", as_listed(name))
    return next(row for row in calibration_rows() if re.search(row["pattern"], plain))


@cache
def calibration_rows() -> list[dict[str, str]]:
    """List the families of models with a published slope; the last row is for any other."""
    return read_table("calibrations.csv")


def prompt_cache_name(facts: Model) -> str:
    """Return the name of a provider's prompt cache; that of an ideal one where the provider's is not known.

    Examples
    --------
    >>> [resolve(name).cache for name in ("gpt-4o", "claude-haiku-4-5", "Llama-3.3-70B-Instruct")]
    ['openai', 'anthropic-4096', 'longest prefix']
    """
    for name, row in read_rows("prompt_caches.toml", "cache").items():
        if "models" in row and re.search(row["models"], as_listed(facts.name)):
            return name
    of_provider: str = read_toml("prompt_caches.toml")["providers"].get(facts.provider, IDEAL_CACHE)
    return of_provider


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
