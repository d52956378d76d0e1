"""Counters: functions that count or estimate the tokens in a text.

A counter is a callable that takes a text and returns a whole number; `counter` makes one from a name. The costs of a
message, a tool schema or a request beyond its text are framing, not counting.

- `exact.py` counts exactly with tiktoken's encodings (`encodings.py`); `memory.py` and `speed.py` make exact counting
  fast, and `stretches.py` bounds the memory that it uses for long texts.
- `reconstructed.py` counts Claude's tokens; `vocabularies.py` and `foreign.py` count other models' tokens.
- `characters.py`, `estimate.py` and `calibrated.py` estimate counts. `protocol.py` has `Counter` and the basis of
  a count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from budgetkit.budget.errors import unknown_name, wrong_type
from budgetkit.budget.quoting import brief, nearest_name, one_line
from budgetkit.counters.calibrated import CalibratedCounter, fitted, published
from budgetkit.counters.characters import PLURALS, RULES, CharacterCounter
from budgetkit.counters.encodings import encoding_names
from budgetkit.counters.exact import ExactCounter
from budgetkit.counters.foreign import ForeignCounter
from budgetkit.counters.protocol import (
    Basis,
    Counter,
    FunctionCounter,
    as_counter,
    basis_of,
    nearer_of,
    nearer_sentence,
    spread_of,
)
from budgetkit.counters.reconstructed import ReconstructedCounter
from budgetkit.counters.vocabularies import (
    VocabularyCounter,
    basis_for,
    best,
    estimated_by,
    from_file,
    vocabulary_of,
)
from budgetkit.models import DEFAULT_ENCODING, Model, model, model_name, similar_models
from budgetkit.models.names import calibration_row
from budgetkit.plugins import load_plugin, plugin_names

__all__ = [
    "RULES",
    "Basis",
    "CalibratedCounter",
    "CharacterCounter",
    "Counter",
    "ExactCounter",
    "ForeignCounter",
    "FunctionCounter",
    "ReconstructedCounter",
    "VocabularyCounter",
    "basis_for",
    "basis_of",
    "calibrate",
    "count_of",
    "counter",
    "encoding_names",
    "estimated_by",
    "nearer_of",
    "nearer_sentence",
    "spread_of",
]


Count = Callable[[str], int]
_UNITS = {name: unit for unit, name in PLURALS.items()}
_RATIO = re.compile(
    r"(?P<unit>chars|utf16|bytes|words)/(?P<ratio>[^ ]+)(?: \((?P<conventions>.*)\))?"
)
_MINIMUM = re.compile(r"minimum (\d{1,20})")
_CALIBRATED = re.compile(r"(?s)(?=.*\)\Z)(?P<model>.+) \(calibrated estimate: .*")
_STAND_IN = re.compile(r"(?P<model>.+) \((?P<encoding>\w+) stands in\)")
_REBUILT = re.compile(r"(?s)(?=.*\)\Z)(?P<model>.+) \(reconstructed by .*")
_VOCABULARY = re.compile(r"(?P<model>.+) \((?P<vocabulary>[^()]+?)(?:, an estimate)?\)")


def counter(
    name: str | Model | Count,
    *,
    unknown: str = "raise",
    tokenizer: str | os.PathLike[str] | None = None,
    **conventions: Any,
) -> Counter:
    """Return the counter for a name, a model or a function.

    Parameters
    ----------
    name : str, Model or callable
        A counter, a function that counts the tokens in a text, a model, or a name. The name may be that of a model
        (``"gpt-5.4"``), an encoding (``"o200k_base"``), a fast estimate of an encoding's count
        (``"estimate:o200k_base"``), a ratio (``"chars/4"``, ``"bytes/4"``, ``"utf16/3.5"``, ``"words/0.75"``), another
        system's rule (:data:`RULES`), a model family's published slope (``"calibrated:claude-4.5"``), a tokenizer from
        an extra (:class:`ForeignCounter`), a plug-in of the entry point ``budgetkit.counters``, or any counter that
        this function returned. A model whose own encoding is not shipped is counted with the best installed vocabulary.
        If no vocabulary is installed, another encoding is used, and its count is multiplied by the published slope of
        the model's family, if there is one. The counter's `basis` is ``"exact"``, ``"reconstructed"`` or
        ``"estimate"``.
    unknown : str
        ``"raise"`` raises an error for an unknown name. Any other value names the counter to use instead, such as
        ``"cl100k_base"`` or ``"chars/4"``; ``"default"`` means ``"cl100k_base"``.
    tokenizer : str or path, optional
        A tokenizer file of the model: a tokenizer.json, a SentencePiece model or a tiktoken file. The count is exact if
        the file's SHA-256 is known to match the maker's vocabulary; otherwise the count is an estimate.
    **conventions
        For a ratio: ``rounding`` ("floor", "ceil", "nearest"), ``minimum`` (in tokens), ``unit`` ("codepoint", "utf16",
        "byte", "word"), as in :class:`CharacterCounter`.

    Returns
    -------
    Counter
        The counter. ``counter(c.name) == c`` for every counter ``c`` made from a name.

    Raises
    ------
    ValueError
        If the name is unknown, the tokenizer file cannot be found, or a convention is unknown, out of range or given
        for a counter that is not a ratio.
    TypeError
        If `name` is not a string, a model or a callable.

    Examples
    --------
    >>> exact, rough = counter("gpt-5.4"), counter("chars/4")
    >>> exact("Hello world"), rough("Hello world"), rough("")
    (2, 2, 1)
    >>> counter("bytes/4", rounding="ceil", minimum=0)("🎉" * 17)
    17
    """
    if callable(name):
        if isinstance(name, Counter):
            return name
        return FunctionCounter(name)
    if not isinstance(name, Model | str):
        raise TypeError(
            wrong_type(
                "counter", name, "a model, a function or a name such as 'gpt-5.4' or 'chars/4'"
            )
        )
    label = model_name(name)
    ratio = _RATIO.fullmatch(RULES.get(label, label))
    if ratio and name is label and tokenizer is None:
        return _by_ratio(ratio, conventions)
    if conventions:
        raise ValueError(
            f"Unexpected settings for counter {brief(label)}: {', '.join(conventions)}. Leave them out; only "
            "ratios such as 'chars/4' accept them."
        )
    if tokenizer is not None:
        return from_file(label, tokenizer)
    if isinstance(name, Model):
        return _of_model(name)
    if name in encoding_names():
        return ExactCounter(name)
    if name in plugin_names("counters"):
        return FunctionCounter(load_plugin("counters", name), name=name)
    # Names that begin with the kind of counter, or that a counter states itself.
    kind, _, rest = name.partition(":")
    if kind == "estimate":
        estimate: Counter = import_module("budgetkit.counters.estimate").EstimateCounter(rest)
        return estimate
    if kind == "calibrated":
        return published(rest)
    if noted := _CALIBRATED.fullmatch(name):
        return published(noted["model"])
    if kind in ("mistral", "litellm") or name.endswith(".json"):
        return ForeignCounter(name)
    if (noted := _STAND_IN.fullmatch(name)) and noted["encoding"] in encoding_names():
        return ExactCounter(noted["encoding"], model=noted["model"], stand_in=True)
    if (by_vocabulary := _by_vocabulary(name)) is not None:
        return by_vocabulary
    try:
        return _of_model(model(name, unknown="raise"))
    except ValueError as no_model:
        by_family = best(name)
        if by_family is not None:
            return by_family
        if calibration_row(name)["pattern"]:
            return published(name)
        if unknown == "raise":
            near = nearest_name(
                name, ("chars/4", "bytes/4", *encoding_names(), *similar_models(name))
            )
            meant = f" Did you mean {near!r}?" if near else ""
            raise ValueError(
                f"Unknown counter {brief(name)}.{meant} Choose a ratio ('chars/4', 'bytes/4', 'words/0.75'), "
                "an encoding "
                f"({', '.join(encoding_names())}), an estimate ('estimate:o200k_base') or a model from "
                "budgetkit.models.models(). To count for an unknown model, pass unknown='cl100k_base' or "
                "unknown='chars/4'."
            ) from no_model
    # An encoding that replaces an unknown model's own is marked as a substitute in the counter's name.
    substitute = counter(DEFAULT_ENCODING if unknown == "default" else unknown)
    if isinstance(substitute, ExactCounter):
        return ExactCounter(substitute.encoding, model=name, stand_in=True)
    return substitute


def count_of(way: str | Model | Count) -> Count:
    """Return the counter for a name or model, or a function unchanged.

    Examples
    --------
    >>> count_of("chars/4")("Hello world"), count_of(len)("Hello world")
    (2, 11)
    """
    return way if callable(way) else counter(way)


def calibrate(
    counter: str | Model | Count,
    texts: Sequence[str],
    counts: Sequence[int],
    model: str | Model = "calibrated",
    projects: Sequence[Hashable] | None = None,
) -> CalibratedCounter:
    """Fit a counter's slope to counts from a provider.

    The slope is the median of the texts' slopes, weighted by length, so that neither one wrong count nor many short
    texts distort it.

    Parameters
    ----------
    counter : str, Model or callable
        The counter to multiply by the slope, as in :func:`counter`, such as a public encoding or a function.
    texts : sequence of str
        The texts sent, one per request.
    counts : sequence of int
        The provider's count of each text, in tokens, without the request's framing.
    model : str or Model
        The model that the provider counted for.
    projects : sequence, optional
        The project of each text. The error interval is measured on projects that are left out of the fit or, if no
        projects are given, on texts that are left out. With at least 19 projects or texts, the interval covers 9 of 10
        new texts; with fewer, the interval is the observed range.

    Returns
    -------
    CalibratedCounter
        The counter. `source` states the number of texts. `low` and `high` are the errors on texts left out of the fit,
        or None if there is only one text or project, or if too few texts have a count above 0.

    Raises
    ------
    TypeError
        If a count is not a whole number.
    ValueError
        If there are no texts, if the numbers of texts and of counts differ, if a count is negative, or if all counts
        are 0.

    Examples
    --------
    >>> mine = calibrate("cl100k_base", ["Hello world", "Hello"], [3, 2])
    >>> round(mine.slope, 2), mine.source
    (1.5, 'fitted to 2 texts')
    """
    return fitted(as_counter(count_of(counter)), texts, counts, model_name(model), projects)


def _by_ratio(written: re.Match[str], conventions: dict[str, Any]) -> CharacterCounter:
    """Return the counter that a ratio's name describes; arguments override the name."""
    read: dict[str, Any] = {"unit": _UNITS[written["unit"]]}
    for convention in (written["conventions"] or "").split(", "):
        if minimum := _MINIMUM.fullmatch(convention):
            read["minimum"] = int(minimum[1])
        elif convention:
            read["rounding"] = convention
    allowed = ("rounding", "minimum", "unit")
    if strange := [name for name in conventions if name not in allowed]:
        raise ValueError(unknown_name("setting", strange[0], allowed))
    return CharacterCounter(written["ratio"], **(read | conventions))


def _by_vocabulary(name: str) -> Counter | None:
    """Return the counter whose name states a vocabulary, or None.

    If that vocabulary is not available, the model's best counter is used.
    """
    rebuilt = _REBUILT.fullmatch(name)
    if rebuilt is not None:
        return counter(rebuilt["model"])
    noted = _VOCABULARY.fullmatch(name)
    if noted is None:
        return None
    path = noted["vocabulary"].removeprefix("tokenizer ")
    if path != noted["vocabulary"]:
        if Path(path).is_file():
            return from_file(noted["model"], path)
        return counter(noted["model"])
    row = vocabulary_of(noted["model"])
    if row is not None and row["name"] == noted["vocabulary"]:
        return counter(noted["model"])
    return None


def _of_model(model: Model) -> Counter:
    encoding = model.encoding
    if encoding not in encoding_names():
        raise ValueError(
            f"{unknown_name('encoding', encoding, encoding_names())} Model {one_line(model.name)} was given this "
            "encoding; use another one with encoding_is_own=False."
        )
    if model.tokenizer == "calibrated":
        return best(model.name) or published(model.name)
    return ExactCounter(encoding, model=model.name, stand_in=model.tokenizer == "stand-in")
