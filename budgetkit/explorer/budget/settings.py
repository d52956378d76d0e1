"""Settings: all that a hand can change in the budget explorer, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from budgetkit.budget import Budget
from budgetkit.budget.allocation import quoted
from budgetkit.budget.amounts import Amount, check_tokens
from budgetkit.explorer.budget.amount_edits import amounts_of, moved, names, with_reserves
from budgetkit.models import Model
from budgetkit.presets import PRESETS, preset

OWN = "own"


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
    path : str
        The path that was typed in for it, if it was.
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
    path: str = ""
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


def known_presets() -> tuple[tuple[str, str], ...]:
    """Return the titles and names of the presets.

    Returns
    -------
    tuple of (str, str)
        In the registry's order.
    """
    return tuple((found.title, name) for name, found in PRESETS.items())
