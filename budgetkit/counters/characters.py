"""Estimates from a text's length in characters, UTF-16 units, bytes or words.

    tokens = max(minimum, round(length / ratio))

Such an estimate takes almost no time, but it is inaccurate for texts unlike the English prose that the ratio was chosen
for. Most systems that count this way divide by 4; those systems differ in the details that are parameters here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import check_tokens, exact_number
from budgetkit.budget.errors import out_of_range
from budgetkit.counters.protocol import CounterBase, check_text

Unit = Literal["codepoint", "utf16", "byte", "word"]
Rounding = Literal["floor", "ceil", "nearest"]

_MOST_RATIO = 100  # units per token; no language needs more
#: Rules of other systems, as names of ratio counters. They differ in the unit, the rounding and the count of an empty
#: text. The tokens that a system adds for each message are framing.
RULES: Final = {
    "octopus": "utf16/4",  # document 000: text.Length / 4 in C#, at least 1
    "langchain": "chars/4 (ceil, minimum 0)",  # langchain-core 1.8.2, count_tokens_approximately
    "praisonai": "chars/4 (minimum 0)",  # PraisonAI, int(len(text) * 0.25); read 2026-11-21
    "ibex": "bytes/4 (ceil, minimum 0)",  # memory engine's estimate; its runes are (2 n + 6) // 7
    "ibex-runes": "chars/3.5 (ceil, minimum 0)",
}

_SIZES: Final[dict[Unit, Callable[[str], int]]] = {
    "codepoint": len,
    "utf16": lambda text: (
        len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    ),
    "byte": lambda text: (
        len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    ),
    "word": lambda text: len(text.split()),
}
_ROUNDINGS: Final[dict[Rounding, Callable[[int, int], int]]] = {
    "floor": lambda units, ratio: units // ratio,
    "ceil": lambda units, ratio: -(-units // ratio),
    "nearest": lambda units, ratio: (2 * units + ratio) // (2 * ratio),
}
#: The name of each unit in the names of counters.
PLURALS: Final[dict[Unit, str]] = {
    "codepoint": "chars",
    "utf16": "utf16",
    "byte": "bytes",
    "word": "words",
}


@dataclass(frozen=True, slots=True)
class CharacterCounter(CounterBase):
    """A counter that divides the length of a text by a ratio.

    The defaults follow Octopus (document 000): floor division by 4, and at least 1 token. Octopus measures UTF-16
    units, but the default unit is the code point.

    Parameters
    ----------
    ratio : Fraction, float or str
        Units per token, above 0; stored as the exact fraction of its printed form.
    rounding : {"floor", "ceil", "nearest"}
        Rounding of the quotient; ``"nearest"`` rounds halves up.
    minimum : int
        Minimum tokens of any text, even of the empty text.
    unit : {"codepoint", "utf16", "byte", "word"}
        The unit of length: Python characters, C# or JavaScript characters, UTF-8 bytes, or words between blanks.

    Raises
    ------
    ValueError
        If the ratio is not above 0, the minimum is negative, or the rounding or unit is unknown.
    TypeError
        If the minimum is not a whole number.

    Examples
    --------
    >>> CharacterCounter()("Hello world")
    2
    >>> CharacterCounter("3.5", rounding="ceil", minimum=0).name
    'chars/3.5 (ceil, minimum 0)'
    """

    ratio: Fraction | float | str = Fraction(4)
    rounding: Rounding = "floor"
    minimum: int = 1
    unit: Unit = "codepoint"

    def __post_init__(self) -> None:
        ratio: object = self.ratio
        above, slash, below = (
            str(ratio).partition("/") if isinstance(ratio, str | Fraction) else (ratio, "", "")
        )
        top = exact_number(above)
        bottom = exact_number(below if slash else 1)
        exact = Fraction(0 if top is None or not bottom else top / bottom)
        if not 0 < exact <= _MOST_RATIO:
            expected = f"a number of units per token above 0 and at most {_MOST_RATIO}, such as 4 characters"
            raise ValueError(out_of_range("ratio", ratio, expected))
        object.__setattr__(self, "ratio", exact)
        check_choice("rounding", self.rounding, get_args(Rounding))
        check_choice("unit", self.unit, get_args(Unit))
        check_tokens("minimum", self.minimum)

    @property
    def name(self) -> str:
        """The counter's name for :func:`budgetkit.counter`, with rounding and minimum."""
        # the shortest exact form: 4, 3.5, 7/3
        decimal = f"{float(self.ratio):g}"
        ratio = decimal if Fraction(decimal) == self.ratio else self.ratio
        base = f"{PLURALS[self.unit]}/{ratio}"
        minimum = "" if self.minimum == 1 else f"minimum {self.minimum}"
        conventions = ", ".join(
            filter(None, ["" if self.rounding == "floor" else self.rounding, minimum])
        )
        if not conventions:
            return base
        return f"{base} ({conventions})"

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return self.of(self.size(text))

    def size(self, text: str) -> int:
        """Measure a text in this counter's unit.

        Parameters
        ----------
        text : str
            Any string.

        Returns
        -------
        int
            Number of code points, UTF-16 units, bytes or words.

        Examples
        --------
        >>> [CharacterCounter(unit=unit).size("🎉") for unit in ("codepoint", "utf16", "byte")]
        [1, 2, 4]
        """
        check_text(text, self)
        return _SIZES[self.unit](text)

    def of(self, units: int) -> int:
        """Convert a length to tokens, for callers that add up lengths.

        Parameters
        ----------
        units : int
            Length in the unit of this counter.

        Returns
        -------
        int
            Number of tokens.

        Examples
        --------
        >>> CharacterCounter(rounding="ceil").of(11 + 4)
        4
        """
        ratio: Any = self.ratio  # a fraction
        tokens = _ROUNDINGS[self.rounding](units * ratio.denominator, ratio.numerator)
        return max(self.minimum, tokens)
