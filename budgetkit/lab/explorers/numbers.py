"""Numbers as people type them: 8192, 8_192, 12,000, 1e5, 100k, 1.05M and, where there is a whole, 50%.

k is a thousand and M a million. A comma stands before three digits, never before a fraction. Nothing is guessed: what
could mean two numbers, such as 12.000 or 1,5, is refused.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from budgetkit.budget.quoting import brief

_DIGITS: Final = r"(?:\d{1,3}(?:[, \u00a0\u202f]\d{3})+|\d+(?:_\d+)*)"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*(?P<digits>{_DIGITS})?(?P<fraction>\.\d+)?(?P<power>e[-+]?\d{{1,2}})?\s*(?P<unit>[km%]?)",
    re.IGNORECASE | re.ASCII,
)
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
WAYS: Final = "type digits, such as 12,000, 1e5, 100k or 1.05M"


def decimal(text: str) -> tuple[Decimal, bool]:
    """Return a typed number, and whether it is in percent.

    Examples
    --------
    >>> [float(decimal(text)[0]) for text in ("0.5", "12,000", "1.05M", "1e5", "1e-6")], decimal("50%")
    ([0.5, 12000.0, 1050000.0, 100000.0, 1e-06], (Decimal('50'), True))
    """
    results = _NUMBER.fullmatch(text.strip())
    if results is None or not (results["digits"] or results["fraction"]):
        raise ValueError(f"{brief(text.strip())} is no number")
    digits = re.sub(r"\D", "", results["digits"] or "0")
    number = Decimal(f"{digits}{results['fraction'] or ''}") * Decimal(10) ** int(
        (results["power"] or "e0")[1:]
    )
    is_percent = results["unit"] == "%"
    unit = results["unit"].lower().replace("%", "")
    size = number * _UNITS[unit]
    return (-size if results["sign"] in ("-", "\u2212") else size), is_percent


def whole_number(text: str, whole: int | None = None) -> int:
    """Return a typed number without a fraction; percent is of the whole, rounded down.

    Examples
    --------
    >>> [whole_number(text) for text in ("8_192", "12,000", "1e5", "100k", "1.05M")], whole_number("50%", 8_192)
    ([8192, 12000, 100000, 100000, 1050000], 4096)
    """
    number, is_percent = decimal(text)
    if is_percent:
        if whole is None:
            raise ValueError(
                f"{brief(text.strip())} is a share, and there is nothing here to take it of"
            )
        return int(number * whole // 100)
    if number != int(number) or (number == int(number) and _is_ambiguous(text)):
        raise ValueError(f"{brief(text.strip())} is not a whole number")
    return int(number)


def _is_ambiguous(text: str) -> bool:
    """Tell whether a point could stand for thousands, as in 12.000."""
    return "." in text and not re.search(r"[kme]", text, re.IGNORECASE)
