"""From text to tokens: what one text counts, exactly or by a convention.

A counter is anything that is called with a text and returns a whole number; `counter` makes one from a name.
What a message, a tool schema or a request costs beyond its text is framing, not counting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from budgetkit.budget.quoting import brief, one_line
from budgetkit.counters.calibrated import CalibratedCounter, calibrate, family_row, published
from budgetkit.counters.characters import CharacterCounter, Unit
from budgetkit.counters.encodings import encoding_names
from budgetkit.counters.exact import ExactCounter
from budgetkit.counters.foreign import ForeignCounter
from budgetkit.counters.given import FunctionCounter
from budgetkit.counters.protocol import Counter
from budgetkit.counters.rules import RULES
from budgetkit.models import DEFAULT_ENCODING, Model, model

if TYPE_CHECKING:
    from budgetkit.counters.estimate import EstimateCounter

__all__ = [
    "RULES",
    "CalibratedCounter",
    "CharacterCounter",
    "Counter",
    "EstimateCounter",
    "ExactCounter",
    "ForeignCounter",
    "FunctionCounter",
    "calibrate",
    "count_of",
    "counter",
    "encoding_names",
]


Count = Callable[[str], int]
_UNITS: dict[str, Unit] = {"chars": "codepoint", "utf16": "utf16", "bytes": "byte", "words": "word"}
_RATIO = re.compile(r"(?P<unit>chars|utf16|bytes|words)/(?P<ratio>[^ ]+)(?: \((?P<conventions>.*)\))?")
_MINIMUM = re.compile(r"minimum (\d{1,20})")
_CALIBRATED = re.compile(r"(?P<model>.+) \(calibrated estimate: .*\)")
_STAND_IN = re.compile(r"(?P<model>.+) \((?P<encoding>\w+) stands in\)")


def counter(name: str | Model | Count, *, unknown: str = "raise", **conventions: Any) -> Counter:
    """Make the counter of that name.

    Parameters
    ----------
    name : str, Model or callable
        A counter, which is returned, or a function from text to tokens; else by name a model (``"gpt-4o"``), an
        encoding (``"o200k_base"``), an estimate of one (``"estimate:o200k_base"``), a ratio (``"chars/4"``,
        ``"bytes/4"``, ``"utf16/3.5"``, ``"words/0.75"``), another system's rule (:data:`RULES`), a family's published
        slope (``"calibrated:claude-4.5"``), a tokenizer that is an extra (:class:`ForeignCounter`), or the name of any
        counter made here. A model whose own encoding is not public is counted with another, times a published slope
        where there is one, which the counter's name says.
    unknown : str
        What to do with a name that is none of these: ``"raise"`` an error, or count it with the counter named
        here, such as ``"cl100k_base"`` or ``"chars/4"``; ``"default"`` is ``"cl100k_base"``.
    **conventions
        For a ratio: ``rounding`` ("floor", "ceil", "nearest"), ``minimum`` (in tokens), ``unit``
        ("codepoint", "utf16", "byte", "word"), as in :class:`CharacterCounter`.

    Returns
    -------
    Counter
        ``counter(c.name) == c`` for every counter ``c`` that this function makes of a name.

    Raises
    ------
    ValueError
        If nothing goes by that name, or a convention is out of its range.
    TypeError
        If the name is neither text nor a model, and cannot be called.

    Examples
    --------
    >>> exact, rough = counter("gpt-4o"), counter("chars/4")
    >>> exact("Hello world"), rough("Hello world"), rough("")
    (2, 2, 1)
    >>> counter("bytes/4", rounding="ceil", minimum=0)("🎉" * 17)
    17
    """
    if callable(name):
        return name if isinstance(name, Counter) else FunctionCounter(name)
    if not isinstance(name, str | Model):
        raise TypeError(f"a counter of {brief(name)}; counters go by name or model; give 'gpt-4o' or 'chars/4', say")
    if isinstance(name, str) and (ratio := _RATIO.fullmatch(RULES.get(name, name))):
        return _by_ratio(ratio, conventions)
    if conventions:
        raise ValueError(
            f"{', '.join(conventions)} given for counter {brief(name)}; conventions belong to ratios "
            "such as 'chars/4'; leave them out"
        )
    if isinstance(name, Model):
        return _of_model(name)
    if name in encoding_names():
        return ExactCounter(name)
    if found := _by_prefix(name):
        return found
    if (noted := _STAND_IN.fullmatch(name)) and noted["encoding"] in encoding_names():
        return ExactCounter(noted["encoding"], model=noted["model"], stand_in=True)
    try:
        return _of_model(model(name, unknown="raise"))
    except ValueError as no_model:
        if family_row(name)["pattern"]:
            return published(name)
        if unknown == "raise":
            raise ValueError(
                f"no counter {brief(name)}; there are ratios ('chars/4', 'bytes/4', 'words/0.75'), encodings "
                f"({', '.join(encoding_names())}), estimates ('estimate:o200k_base') and "
                "the models of budgetkit.models.models(); "
                "use one, or say how to count an unknown model: unknown='cl100k_base' or unknown='chars/4'"
            ) from no_model
    return _stand_in(name, DEFAULT_ENCODING if unknown == "default" else unknown)


def count_of(given: str | Model | Count) -> Count:
    """Return what counts: a counter by its name, or any function as it is.

    Examples
    --------
    >>> count_of("chars/4")("Hello world"), count_of(len)("Hello world")
    (2, 11)
    """
    return given if callable(given) else counter(given)


def _by_ratio(written: re.Match[str], conventions: dict[str, Any]) -> CharacterCounter:
    """Read a ratio's name, conventions in its parentheses included; those given as arguments win."""
    read: dict[str, Any] = {"unit": _UNITS[written["unit"]]}
    for convention in (written["conventions"] or "").split(", "):
        if minimum := _MINIMUM.fullmatch(convention):
            read["minimum"] = int(minimum[1])
        elif convention:
            read["rounding"] = convention
    known = ("rounding", "minimum", "unit")
    if strange := [name for name in conventions if name not in known]:
        raise ValueError(f"no convention {brief(strange[0])}; known are {', '.join(known)}; use one of them")
    return CharacterCounter(written["ratio"], **(read | conventions))


def _by_prefix(name: str) -> Counter | None:
    """Make the counters whose name says what they are before a colon, or by being a file's."""
    kind, _, rest = name.partition(":")
    if kind == "estimate":
        return _estimate(rest)
    if kind == "calibrated":
        return published(rest)
    if noted := _CALIBRATED.fullmatch(name):
        return published(noted["model"])
    return ForeignCounter(name) if kind in ("mistral", "litellm") or name.endswith(".json") else None


def _estimate(encoding: str) -> EstimateCounter:
    """Make an estimate; only now is numpy needed, which counting characters need not wait for."""
    estimate = import_module("budgetkit.counters.estimate")
    if encoding not in estimate.table_names():
        known = ", ".join(estimate.table_names())
        raise ValueError(f"no estimate of {brief(encoding)}; there are those of {known}; use one of them")
    made: EstimateCounter = estimate.EstimateCounter(encoding)
    return made


def __getattr__(name: str) -> Any:
    if name != "EstimateCounter":
        raise AttributeError(f"budgetkit.counters has no {brief(name)}; it has {', '.join(__all__)}; take one of these")
    return import_module("budgetkit.counters.estimate").EstimateCounter


def _of_model(model: Model) -> Counter:
    if model.encoding not in encoding_names():
        raise ValueError(
            f"{one_line(model.name)} has encoding {brief(model.encoding)}; shipped are {', '.join(encoding_names())}; "
            "give the model one of these and encoding_is_own=False"
        )
    chosen = model.provenance == "given" or "encoding" in model.provenance  # somebody knows better than the table
    if not (model.encoding_is_own or chosen) and family_row(model.name)["pattern"]:
        return published(model.name)
    return ExactCounter(model.encoding, model=model.name, stand_in=not model.encoding_is_own)


def _stand_in(name: str, instead: str) -> Counter:
    """Count an unknown model with another counter; an encoding then says that it stands in."""
    substitute = counter(instead)
    if isinstance(substitute, ExactCounter):
        return ExactCounter(substitute.encoding, model=name, stand_in=True)
    return substitute
