"""From text to tokens: what one text counts, exactly or by a convention.

A counter is anything that is called with a text and returns a whole number; `counter` makes one from a name.
What a message, a tool schema or a request costs beyond its text is framing, not counting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from budgetkit.counters.characters import CharacterCounter, Unit
from budgetkit.counters.encodings import encoding_names
from budgetkit.counters.exact import ExactCounter
from budgetkit.models import DEFAULT_ENCODING, Model, model

__all__ = ["CharacterCounter", "Counter", "ExactCounter", "counter", "encoding_names"]


@runtime_checkable
class Counter(Protocol):
    """Anything that turns a text into a number of tokens."""

    @property
    def name(self) -> str:
        """What to call it wherever its number is shown; says when the number is a guess or a stand-in's."""
        ...

    @property
    def exact(self) -> bool:
        """Whether its number is the one that the model itself would count."""
        ...

    def __call__(self, text: str) -> int:
        """Count one text, in tokens."""
        ...

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each."""
        ...


_UNITS: dict[str, Unit] = {"chars": "codepoint", "utf16": "utf16", "bytes": "byte"}
_RATIO = re.compile(r"(?P<unit>chars|utf16|bytes)/(?P<ratio>[^ ]+)(?: \((?P<conventions>.*)\))?")
_MINIMUM = re.compile(r"minimum (\d+)")
_STAND_IN = re.compile(r"(?P<model>.+) \((?P<encoding>\w+) stands in\)")


def counter(name: str | Model, *, unknown: str = "raise", **conventions: Any) -> Counter:
    """Make the counter of that name.

    Parameters
    ----------
    name : str or Model
        A model (``"gpt-4o"``), an encoding (``"o200k_base"``), a ratio (``"chars/4"``, ``"bytes/4"``,
        ``"utf16/3.5"``), or the name of any counter made here. A model whose own encoding is not public is
        counted with another, which the counter's name says.
    unknown : str
        What to do with a name that is none of these: ``"raise"`` an error, or count it with the counter named
        here, such as ``"cl100k_base"`` or ``"chars/4"``; ``"default"`` is ``"cl100k_base"``.
    **conventions
        For a ratio: ``rounding`` ("floor", "ceil", "nearest"), ``minimum`` (in tokens), ``unit``
        ("codepoint", "utf16", "byte"), as in :class:`CharacterCounter`.

    Returns
    -------
    Counter
        ``counter(c.name) == c`` for every counter ``c`` that this function makes of a name.

    Raises
    ------
    ValueError
        If nothing goes by that name, or a convention is out of its range.
    TypeError
        If the name is neither text nor a model.

    Examples
    --------
    >>> exact, rough = counter("gpt-4o"), counter("chars/4")
    >>> exact("Hello world"), rough("Hello world"), rough("")
    (2, 2, 1)
    >>> counter("bytes/4", rounding="ceil", minimum=0)("🎉" * 17)
    17
    """
    if not isinstance(name, str | Model):
        raise TypeError(f"a counter of {name!r}; counters go by name or model; give 'gpt-4o' or 'chars/4', say")
    if isinstance(name, str) and (ratio := _RATIO.fullmatch(name)):
        return _by_ratio(ratio, conventions)
    if conventions:
        raise ValueError(
            f"{', '.join(conventions)} given for counter {name!r}; conventions belong to ratios "
            "such as 'chars/4'; leave them out"
        )
    if isinstance(name, Model):
        return _of_model(name)
    if name in encoding_names():
        return ExactCounter(name)
    if (noted := _STAND_IN.fullmatch(name)) and noted["encoding"] in encoding_names():
        return ExactCounter(noted["encoding"], model=noted["model"], stand_in=True)
    try:
        return _of_model(model(name, unknown="raise"))
    except ValueError as no_model:
        if unknown == "raise":
            raise ValueError(
                f"no counter {name!r}; there are ratios ('chars/4', 'bytes/4', 'utf16/4'), encodings "
                f"({', '.join(encoding_names())}) and the models of budgetkit.models.models(); "
                "use one, or say how to count an unknown model: unknown='cl100k_base' or unknown='chars/4'"
            ) from no_model
    return _stand_in(name, DEFAULT_ENCODING if unknown == "default" else unknown)


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
        raise ValueError(f"no convention {strange[0]!r}; known are {', '.join(known)}; use one of them")
    return CharacterCounter(written["ratio"], **(read | conventions))


def _of_model(model: Model) -> ExactCounter:
    if model.encoding not in encoding_names():
        raise ValueError(
            f"{model.name} has encoding {model.encoding!r}; shipped are {', '.join(encoding_names())}; "
            "give the model one of these and encoding_is_own=False"
        )
    return ExactCounter(model.encoding, model=model.name, stand_in=not model.encoding_is_own)


def _stand_in(name: str, instead: str) -> Counter:
    """Count an unknown model with another counter; an encoding then says that it stands in."""
    substitute = counter(instead)
    if isinstance(substitute, ExactCounter):
        return ExactCounter(substitute.encoding, model=name, stand_in=True)
    return substitute
