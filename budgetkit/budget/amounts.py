"""Amounts: whole numbers of tokens, or clamped shares of the window.

A ratio becomes tokens only through a share, and only this module rounds::

    Share(r, low, high).of(W) = max(low, min(high, floor(r * W)))

Ratios are exact decimals: ``Share(.29).of(100)`` is 29, although ``int(.29 * 100)`` is 28. With "largest_remainder",
the shares that `sizes` converts add up to their exact sum, rounded down, unless `at_least` or `at_most` clamps one of
the shares: limits take precedence over the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil
from operator import index
from typing import Final, Literal, get_args

from budgetkit.budget.errors import out_of_range, wrong_choice, wrong_type

#: Largest number of tokens allowed, over a trillion; the sum of millions of such numbers fits in 64 bits.
MOST_TOKENS: Final = 2**40
Rounding = Literal["floor", "nearest", "largest_remainder"]
ROUNDINGS: tuple[str, ...] = get_args(Rounding)
# Every float has fewer digits; "1e-99999999" is a short text, but as a fraction it takes 33 million bytes.
_DIGITS = 400
_EXPONENT = 400


def whole_number(value: object) -> int | None:
    """Convert a Python or numpy integer to int.

    The result is None for anything else, including booleans.

    >>> whole_number(3), whole_number(True), whole_number("3")
    (3, None, None)
    """
    try:
        # numpy 1 accepts its booleans as an index.
        is_truth = isinstance(value, bool) or type(value).__name__ == "bool_"
        return None if is_truth else index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def check_tokens(what: str, value: object, least: int = 0) -> int:
    """Return a number of tokens as int, rejecting invalid numbers.

    Examples
    --------
    >>> check_tokens("window", 8192)
    8192
    """
    number = whole_number(value)
    if number is None:
        raise TypeError(wrong_type(what, value, "a whole number of tokens, or a Share for a ratio"))
    if number < least:
        raise ValueError(out_of_range(what, number, f"{least} or more"))
    if number > MOST_TOKENS:
        raise ValueError(out_of_range(what, number, f"at most {MOST_TOKENS:,} tokens"))
    return number


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the window, clamped between two numbers of tokens.

    Parameters
    ----------
    ratio : float, str or Decimal
        Part of the window, from 0 to 1; a float means exactly the decimal number that Python prints for it.
    at_least : int, default 0
        Smallest result, in tokens. It may exceed the window.
    at_most : int, optional
        Largest result, in tokens.

    Raises
    ------
    ValueError
        If the ratio is not from 0 to 1, or `at_least` exceeds `at_most`.

    Examples
    --------
    The memory engine reserves 15 % of the window for the answer, but at least 500 and at most 4,096 tokens.

    >>> Share(.15, 500, 4096).of(128_000), Share(.15, 500, 4096).of(2_000)
    (4096, 500)
    """

    ratio: float | str | Decimal = field(compare=False)
    at_least: int = 0
    at_most: int | None = None
    _exact: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exact = exact_number(self.ratio)
        if exact is None or not 0 <= exact <= 1:
            expected = "a number from 0 to 1, such as 0.15 for 15 %"
            raise ValueError(out_of_range("ratio", self.ratio, expected))
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "at_least", check_tokens("at_least", self.at_least))
        if self.at_most is None:
            return
        object.__setattr__(self, "at_most", check_tokens("at_most", self.at_most))
        if self.at_most < self.at_least:
            raise ValueError(
                f"at_least ({self.at_least:,}) is above at_most ({self.at_most:,}). Lower at_least or raise at_most."
            )

    @property
    def smallest_window(self) -> int:
        """Smallest window in which the share is at least one token.

        The result is 0 if the share has tokens in every window, or in none.
        """
        if self.at_least > 0 or self.at_most == 0 or not self._exact:
            return 0
        return ceil(1 / self._exact)

    def of(self, window: int, rounding: Rounding = "floor") -> int:
        """Return the share of a window, in tokens.

        Parameters
        ----------
        window : int
            Size of the context window, in tokens.
        rounding : {"floor", "nearest", "largest_remainder"}
            Rounding of the exact product. A single share has no remainder to distribute, so "largest_remainder" means
            "floor" here.

        Returns
        -------
        int
            The clamped share, in tokens.

        Examples
        --------
        >>> Share(.10).of(8192), Share(.25).of(8190, "nearest")
        (819, 2048)
        """
        if type(window) is not int:
            window = check_tokens("window", window)
        # Policies call this at every request, and integers are faster than fractions.
        if isinstance(rounding, str) and rounding == "floor" and window >= 0:
            return self.clamp(window * self._exact.numerator // self._exact.denominator)
        return self.clamp(_rounded(self._exact * window, rounding))

    def clamp(self, tokens: int) -> int:
        """Clamp a number of tokens to the limits of the share.

        Parameters
        ----------
        tokens : int
            The number to clamp, in tokens.

        Returns
        -------
        int
            The number, at least ``at_least`` and at most ``at_most``.

        Examples
        --------
        >>> Share(.15, 500, 4096).clamp(19_200)
        4096
        """
        return max(self.at_least, tokens if self.at_most is None else min(self.at_most, tokens))

    def __repr__(self) -> str:
        return f"Share({self.ratio}{self.written_bounds})"

    @property
    def written_bounds(self) -> str:
        """The limits as Python arguments after the ratio, or "" if unlimited."""
        if self.at_most is not None:
            return f", {self.at_least}, {self.at_most}"
        if self.at_least:
            return f", {self.at_least}"
        return ""


Amount = int | Share


def amount_of(what: str, value: Amount | float) -> Amount:
    """Convert a value to an amount; a float becomes a share.

    Examples
    --------
    >>> amount_of("output", 0.15), amount_of("output", 500)
    (Share(0.15), 500)
    """
    if isinstance(value, float) and 0 <= value <= 1:
        return Share(value)
    if isinstance(value, Share):
        return value
    return check_tokens(what, value)


def tokens_of(amount: Amount, base: int) -> int:
    """Convert an amount to tokens, taking a share of the base.

    Examples
    --------
    >>> tokens_of(Share(0.1), 8_192), tokens_of(500, 8_192)
    (819, 500)
    """
    if isinstance(amount, Share):
        return amount.of(base)
    return int(amount)


def sizes(amounts: Sequence[Amount], window: int, rounding: Rounding = "floor") -> tuple[int, ...]:
    """Convert several amounts to tokens.

    With "largest_remainder", the shares are rounded together, so that they add up.

    Examples
    --------
    >>> sizes([Share(.333), Share(.333), Share(.334), 7], 100)
    (33, 33, 33, 7)
    >>> sizes([Share(.333), Share(.333), Share(.334), 7], 100, "largest_remainder")
    (33, 33, 34, 7)
    """
    if rounding != "largest_remainder":
        return tuple(a.of(window, rounding) if isinstance(a, Share) else a for a in amounts)
    shares = [a for a in amounts if isinstance(a, Share)]
    exact = [share._exact * window for share in shares]
    parts = [int(quota) for quota in exact]
    # The sort is stable, so of equal remainders the first comes first.
    by_remainder = sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])
    for i in by_remainder[: int(sum(exact, Fraction(0))) - sum(parts)]:
        parts[i] += 1
    tokens = iter(parts)
    return tuple(a.clamp(next(tokens)) if isinstance(a, Share) else a for a in amounts)


def _rounded(exact: Fraction, rounding: str) -> int:
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise ValueError(wrong_choice("rounding", rounding, ROUNDINGS))
    if rounding == "nearest":
        return int(exact + Fraction(1, 2))
    return int(exact)


def exact_number(value: object) -> Fraction | None:
    """Convert a number, as Python prints it, to an exact fraction.

    The result is None for anything but a finite number of at most 400 digits.

    >>> exact_number(0.29), exact_number("1e-99999999"), exact_number("many")
    (Fraction(29, 100), None, None)
    """
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() > 4 * _DIGITS):
        return None
    text = str(value)
    try:
        decimal = Decimal(text if len(text) <= 2 * _DIGITS else "none")
    except InvalidOperation:
        return None
    if (
        not decimal.is_finite()
        or len(decimal.as_tuple().digits) > _DIGITS
        or abs(decimal.adjusted()) > _EXPONENT
    ):
        return None
    return Fraction(decimal)
