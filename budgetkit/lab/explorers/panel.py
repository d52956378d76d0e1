"""The controls of an explorer as plain data, with their commands.

The page sends one message, ``set``, with the key and the value of a control; code calls `Explorer.set` with the same
keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import Any

from budgetkit.budget import Share, brief
from budgetkit.budget.errors import unknown_name
from budgetkit.files import read_toml
from budgetkit.message import Data


@cache
def word_meaning(word: str) -> str:
    """Return a label's definition from the glossary, or "" if undefined.

    Examples
    --------
    >>> word_meaning("usable"), word_meaning("kind")
    ('The window minus its reserves.', '')
    """
    words: dict[str, str] = read_toml("glossary.toml")["words"]
    return words.get(word, "")


def explained(tip: str, word: str) -> str:
    """Add a label's definition from the glossary to a tip.

    Examples
    --------
    >>> explained("usable: 6,964 tokens", "usable")
    'usable: 6,964 tokens. The window minus its reserves.'
    """
    if not word_meaning(word):
        return tip
    return f"{tip.rstrip('.')}. {word_meaning(word)}"


_DIGITS = r"(?:\d{1,3}(?:[, \u00a0\u202f]\d{3})+|\d+(?:_\d+)*)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*+(?P<digits>{_DIGITS})?(?P<fraction>\.\d+)?(?P<power>e[-+]?\d{{1,2}})?\s*(?P<unit>[km%]?)",
    re.IGNORECASE | re.ASCII,
)
_UNITS = {"k": 1_000, "m": 1_000_000}
_LONGEST = 100  # characters of an entered number
WAYS = "Type digits, such as 12,000, 1e5, 100k or 1.05M"


def decimal(text: str) -> tuple[Decimal, bool]:
    """Return an entered number, and whether the number is a percentage.

    Examples
    --------
    >>> [float(decimal(text)[0]) for text in ("0.5", "12,000", "1.05M", "1e5", "1e-6")], decimal("50%")
    ([0.5, 12000.0, 1050000.0, 100000.0, 1e-06], (Decimal('50'), True))
    """
    # Python's own time to read and write a number grows with the square of its digits.
    results = _NUMBER.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if results is None or not (results["digits"] or results["fraction"]):
        raise ValueError(f"{brief(text.strip())} is not a number")
    digits = re.sub(r"\D", "", results["digits"] or "0")
    power = int((results["power"] or "e0")[1:])
    number = Decimal(f"{digits}{results['fraction'] or ''}") * Decimal(10) ** power
    unit = results["unit"].lower()
    number *= _UNITS.get(unit, 1)
    return (-number if results["sign"] in ("-", "\u2212") else number), unit == "%"


def typed_number(text: str, whole: int | None = None) -> int:
    """Convert an entered number or percentage to a whole number.

    A percentage of `whole` is rounded down.

    Examples
    --------
    >>> [typed_number(text) for text in ("8_192", "12,000", "1e5", "100k", "1.05M")], typed_number("50%", 8_192)
    ([8192, 12000, 100000, 100000, 1050000], 4096)
    """
    number, is_percent = decimal(text)
    if is_percent:
        if whole is None:
            raise ValueError(
                f"{brief(text.strip())} is a percentage, and this field takes tokens only"
            )
        return int(number * whole // 100)
    # A point could stand for thousands, as in 12.000.
    is_ambiguous = "." in text and not re.search(r"[kme]", text, re.IGNORECASE)
    if number != int(number) or is_ambiguous:
        raise ValueError(f"{brief(text.strip())} is not a whole number")
    return int(number)


@dataclass(frozen=True)
class Number:
    """A box for a number, which checks the entered values.

    Examples
    --------
    >>> Number(800, whole=8_192).read("50%"), Number(800, may_be_empty=True).read("")
    (4096, None)
    >>> Number(800, whole=8_192, keeps_share=True).read("50%")
    Share(0.5)
    """

    present: float | None
    least: float = 0
    most: float = 100_000_000
    #: The tokens that 100 % stands for; None if percentages are not accepted.
    whole: int | None = None
    is_whole: bool = True
    may_be_empty: bool = False
    #: Whether a percentage is returned as a share instead of tokens.
    keeps_share: bool = False
    #: Divisor of an entered number, such as 100 for percentages.
    per: int = 1

    @property
    def text(self) -> str:
        """The current number as shown on the page."""
        return box_text(self.present)

    def read(self, value: Any) -> Any:
        """Check and return a value from the user or from code."""
        if self.may_be_empty and (value is None or str(value).replace(" ", "") in ("", "100%")):
            return None
        stays = "it stays empty" if self.present is None else f"{self.text} stays"
        try:
            amount = self._amount(value)
        except ValueError as problem:
            raise ValueError(f"{str(problem).removesuffix('.')}, so {stays}. {WAYS}.") from None
        size = amount.of(self.whole or 0) if isinstance(amount, Share) else amount
        if self.least <= size <= self.most:
            return amount if self.per == 1 else size / self.per
        way, mend = "small", f"at least {box_text(self.least)}"
        if size > self.most:
            empty = ", or nothing for no cap" if self.may_be_empty else ""
            way, mend = "large", f"at most {box_text(self.most)}{empty}"
        raise ValueError(f"{box_text(size)} is too {way}, so {stays}. Type {mend}.")

    def _amount(self, value: Any) -> Any:
        if isinstance(value, int | float):
            return value * self.per
        text = str("" if value is None else value).strip()
        if not text:
            raise ValueError("Nothing was typed")
        if not self.is_whole:
            return float(decimal(text.removeprefix("$"))[0])  # a sum of money
        number, is_percent = decimal(text)
        if is_percent and self.keeps_share and 0 <= number <= 100:
            return Share(number / 100)
        return typed_number(text, self.whole)


def box_text(number: float | None) -> str:
    """Format a number for a box.

    Examples
    --------
    >>> box_text(12_000), box_text(0.25), box_text(None)
    ('12,000', '0.25', '')
    """
    if number is None:
        return ""
    if isinstance(number, int) and abs(number) >= 10**30:
        return brief(number)
    return f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"


@dataclass(frozen=True)
class Input:
    """A control's command, with fixed arguments and a parser of values."""

    kind: str
    values: Data = field(default_factory=dict)
    read: Callable[[Any], Any] = lambda value: value


class Panel:
    """All controls in their groups.

    Attributes
    ----------
    choices : dict of str to sequence
        The choices that controls offer: values with labels for a list, and texts for a text field.
    inputs : dict of str to Input
        The input of each control, under the control's key.

    Notes
    -----
    A control sends the command with its own key, unless another input is passed. The kind, label, tip, list and hint of
    a control are in ``data/glossary.toml`` under its key, unless its words depend on the settings.

    Examples
    --------
    >>> panel = Panel(models=["gpt-5.4", "gpt-5"])
    >>> panel.group("Model and window", model="gpt-5.4")
    >>> panel["model"].kind, panel.controls["model"]["label"]
    ('model', 'Model')
    """

    def __init__(self, explorer: str = "", **choices: Sequence[Any]) -> None:
        glossary = read_toml("glossary.toml")
        own = glossary.get(explorer, {})
        self._words: dict[str, Data] = glossary["controls"] | own.get("controls", {})
        self.choices: Data = own.get("lists", {}) | choices
        self.inputs: dict[str, Input] = {}
        self._groups: list[Data] = []

    def __getitem__(self, key: str) -> Input:
        if key not in self.inputs:
            raise LookupError(unknown_name("control", key, self.inputs))
        return self.inputs[key]

    @property
    def groups(self) -> list[Data]:
        """The groups that have controls, as the page draws them."""
        return [group for group in self._groups if group["controls"]]

    @property
    def controls(self) -> dict[str, Data]:
        """The controls as the page draws them, under their keys."""
        return {drawn["key"]: drawn for group in self._groups for drawn in group["controls"]}

    @property
    def values(self) -> Data:
        """Values of the controls by key, as `Explorer.set` takes them."""
        return {
            key: drawn["value"] or None if drawn["is"] == "line" else drawn["value"]
            for key, drawn in self.controls.items()
        }

    def group(
        self, heading: str = "", folds: bool = False, under: bool = False, **values: Any
    ) -> None:
        """Start a group of controls, with values by key.

        If `folds` is True, the group is collapsible. If `under` is True, the group is below the first figure.
        """
        key = f"group {len(self._groups)}"
        group = {"key": key, "heading": heading, "folds": folds, "under": under, "controls": []}
        self._groups.append(group)
        for name, value in values.items():
            self.add(name, value)

    def add(
        self,
        key: str,
        value: Any,
        sends: Input | None = None,
        slide: Any = None,
        **drawn: Any,
    ) -> None:
        """Add a control with its value.

        A `Number` is drawn as a box. If `slide` is given, the control is a slider with a box.
        """
        control = {"key": key, "value": value, **self._words.get(key, {}), **drawn}
        self.inputs[key] = sends or Input(key)
        if isinstance(value, Number):
            self.inputs[key] = replace(self.inputs[key], read=value.read)
            control = {"is": "text", "digits": True, "half": True, **control, "value": value.text}
        if slide is not None:
            control |= {"is": "line", "slide": slide}
        self._groups[-1]["controls"].append(control)

    def drop(self, key: str) -> None:
        """Remove a control."""
        self.inputs.pop(key, None)
        for group in self._groups:
            group["controls"] = [drawn for drawn in group["controls"] if drawn["key"] != key]
