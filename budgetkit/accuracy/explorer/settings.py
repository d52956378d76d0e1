"""Settings: all that a hand can change in the accuracy explorer, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from budgetkit.explorer.budget.settings import Settings as BudgetSettings

SHIPPED, ODD, BOTH, LIBRARY = "mini-corpus", "odd text", "mini-corpus and odd text", "Python's standard library"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set in the explorer.

    Parameters
    ----------
    counter : str
        Name of the cheap counter.
    exact : str, optional
        Name of the counter that is right; without it the model's own encoding.
    corpus : str
        Which texts.
    pieces : int, optional
        Length in characters that documents are cut to; without it they are whole.
    classes : tuple of str, optional
        The classes that are looked at; without it all.
    shortest, longest : int, optional
        Limits of a document's length, in characters, both included.
    risk : float
        Accepted chance that a window overflows, between 0 and 1.
    together : str, optional
        "class", "language" or "source": what all texts of one window have in common.
    document : int, optional
        Which document is read, by its place in the corpus; without it the one that is counted worst.
    budget : budget settings
        The preset, the model and the window that feel the error.
    """

    counter: str = "chars/4"
    exact: str | None = None
    corpus: str = SHIPPED
    pieces: int | None = None
    classes: tuple[str, ...] | None = None
    shortest: int | None = None
    longest: int | None = None
    risk: float = 0.05
    together: str | None = None
    document: int | None = None
    budget: BudgetSettings = field(default_factory=BudgetSettings)
