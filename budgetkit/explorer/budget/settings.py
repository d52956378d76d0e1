"""Settings: all that a hand can change in the budget explorer, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from budgetkit.amounts import Amount, Share, check_tokens
from budgetkit.budget import Budget
from budgetkit.lines import Reserve, quoted
from budgetkit.models import Model
from budgetkit.presets import PRESETS, preset

OWN = "own"
#: Reserves that have a slider even where the budget holds none: they claim nothing until they are moved.
USUAL_RESERVES = (Reserve("output", 0, serves="output"), Reserve("safety", 0))


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set in the explorer.

    Parameters
    ----------
    preset : str
        Name of a preset, or "own" for a budget that was given or loaded.
    model : str
        Name of the model.
    window : int, optional
        Size of the window in tokens; without it the model's, or the own budget's.
    own : Budget, optional
        The budget that was given or loaded.
    lines : mapping of str to int, Share or None
        Lines that differ from the preset; None for a section without a cap.
    locks : mapping of str to int or None
        Lines that stay as they are, in tokens.
    counter : str, optional
        Name of the counter; without it the model's own.
    trace : str, optional
        Which file of conversations; without it demands are typed in.
    conversation : int
        Which conversation of it, from 0.
    turn : int, optional
        Which turn, from 1; without it the last.
    demand : mapping of str to int
        Typed-in demands that differ from the preset's, in tokens.
    pinned : Budget, optional
        The budget to compare with.
    """

    preset: str = "chat"
    model: str = "gpt-4o"
    window: int | None = None
    own: Budget | None = None
    lines: Mapping[str, Amount | None] = field(default_factory=dict)
    locks: Mapping[str, int | None] = field(default_factory=dict)
    counter: str | None = None
    trace: str | None = None
    conversation: int = 0
    turn: int | None = None
    demand: Mapping[str, int] = field(default_factory=dict)
    pinned: Budget | None = None

    def base(self, model: Model) -> Budget:
        """Return the budget before any line was moved.

        Parameters
        ----------
        model : Model
            The model that `model` names.

        Returns
        -------
        Budget
            The preset's at this window, or the own one.
        """
        if self.own is not None:
            return self.own if self.window is None else replace(self.own, window=self.window, deficit="signed")
        sized = model if self.window is None else replace(model, window=self.window, max_output=None)
        return preset(self.preset)(sized)

    def budget(self, model: Model) -> Budget:
        """Return the budget with its moved and locked lines; over-commitment is signed, never an error.

        Parameters
        ----------
        model : Model
            The model that `model` names.

        Returns
        -------
        Budget
            What is planned with.

        Raises
        ------
        ValueError
            If the preset cannot be made at this window, or a line cannot have that amount.
        """
        base = replace(self.base(model), deficit="signed")
        moved = {**self.lines, **self.locks}
        return with_reserves(base, moved).assign(**{n: a for n, a in moved.items() if n in names(base, moved)})

    def next_line(self, budget: Budget, base: Budget, line: str, tokens: int) -> Settings:
        """Return the settings with one line moved; a share stays a share.

        Parameters
        ----------
        budget : Budget
            The budget as it is now.
        base : Budget
            The budget before any line was moved; it says what a section without a cap was before.
        line : str
            "window", or the name of a reserve or section.
        tokens : int
            Its new size in tokens; a section as large as the window has no cap.

        Returns
        -------
        Settings
            The next value.

        Raises
        ------
        ValueError
            If the line is locked, or the number is none of tokens.
        LookupError
            If there is no such line.
        """
        tokens = check_tokens(line, tokens)
        if line == "window":
            return replace(self, window=tokens)
        amounts = amounts_of(budget, base)
        if line not in amounts:
            raise LookupError(f"no line {line!r} in this budget; its lines are {quoted(amounts)}; name one of them")
        return self.next_amount(line, moved(amounts[line], tokens, budget.window, line in budget.caps))

    def next_amount(self, line: str, amount: Amount | None) -> Settings:
        """Return the settings with one line of another amount.

        Parameters
        ----------
        line : str
            The name of a reserve or section.
        amount : int, Share or None
            Its new size, or None for a section without a cap.

        Returns
        -------
        Settings
            The next value.

        Raises
        ------
        ValueError
            If the line is locked.
        """
        if line in self.locks:
            held = self.locks[line]
            size = "without a cap" if held is None else f"at {held:,} tokens"
            raise ValueError(f"{line} was to change; it is locked {size}; unlock it first")
        return replace(self, lines={**self.lines, line: amount})


def amounts_of(budget: Budget, base: Budget) -> dict[str, Amount | None]:
    """Return the amount of each line, of a section that lost its cap the one it had.

    Parameters
    ----------
    budget : Budget
        The budget as it is now.
    base : Budget
        The budget before any line was moved.

    Returns
    -------
    dict of str to int, Share or None
        By line, the usual reserves among them.
    """
    before = {line.name: line.amount for line in base}
    now = {line.name: line.amount for line in with_reserves(budget, dict.fromkeys(usual()))}
    return {name: before.get(name) if amount is None else amount for name, amount in now.items()}


def usual() -> tuple[str, ...]:
    """Return the names of the reserves that always have a slider.

    Returns
    -------
    tuple of str
        Names.
    """
    return tuple(reserve.name for reserve in USUAL_RESERVES)


def names(budget: Budget, moved: Mapping[str, Any]) -> set[str]:
    """Return the lines of a budget once the usual reserves that were moved are in it.

    Parameters
    ----------
    budget : Budget
        The budget.
    moved : mapping
        Moved lines by name.

    Returns
    -------
    set of str
        Names.
    """
    return {line.name for line in with_reserves(budget, moved)}


def with_reserves(budget: Budget, moved: Mapping[str, Any]) -> Budget:
    """Return the budget with those of the usual reserves that were moved and that it lacks.

    Parameters
    ----------
    budget : Budget
        The budget.
    moved : mapping
        Moved lines by name.

    Returns
    -------
    Budget
        The same one where none is missing.
    """
    known = {line.name for line in budget}
    new = [reserve for reserve in USUAL_RESERVES if reserve.name in moved and reserve.name not in known]
    return replace(budget, reserves=(*budget.reserves, *new)) if new else budget


def moved(amount: Amount | None, tokens: int, window: int, is_section: bool) -> Amount | None:
    """Return an amount of another size and the same kind.

    Parameters
    ----------
    amount : int, Share or None
        What it was.
    tokens : int
        The size it gets, in tokens.
    window : int
        Size of the context window, in tokens.
    is_section : bool
        Whether it is a section's cap, which is none once it is as large as the window.

    Returns
    -------
    int, Share or None
        A share of so many tokens; its limits give way where they stand against that.

    Examples
    --------
    >>> moved(Share(.1), 2_048, 8_192, True), moved(800, 900, 8_192, True), moved(800, 8_192, 8_192, True)
    (Share(0.25), 900, None)
    """
    if is_section and tokens >= window:
        return None
    if isinstance(amount, Share):
        highest = None if amount.at_most is None else max(amount.at_most, tokens)
        return Share(shortest_ratio(tokens, window), min(amount.at_least, tokens), highest)
    return tokens


def shortest_ratio(tokens: int, window: int) -> Decimal:
    """Return the shortest decimal whose share of the window, rounded down, is so many tokens.

    Parameters
    ----------
    tokens : int
        In tokens, at most the window.
    window : int
        In tokens.

    Returns
    -------
    Decimal
        From 0 to 1.

    Examples
    --------
    >>> shortest_ratio(819, 8_192), shortest_ratio(1_000, 128_000)
    (Decimal('0.1'), Decimal('0.00782'))
    """
    if tokens >= window:
        return Decimal(1)
    exact = Fraction(tokens, window)
    for digits in range(0, 40):
        scaled = -(-exact.numerator * 10**digits // exact.denominator)  # rounded up
        if scaled * window // 10**digits == tokens:
            return Decimal(scaled).scaleb(-digits)
    raise ArithmeticError(f"{tokens:,} of {window:,} tokens has no decimal of 40 digits")  # pragma: no cover


def known_presets() -> tuple[tuple[str, str], ...]:
    """Return the titles and names of the presets.

    Returns
    -------
    tuple of (str, str)
        In the registry's order.
    """
    return tuple((found.title, name) for name, found in PRESETS.items())
