"""Kind: what one kind of explorer says of itself, from its settings to its figures; commands that every kind has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from budgetkit.lab.explorers.folds import Fold

Data = dict[str, Any]


class ExplorerSettings(Protocol):
    """All that a hand can change in one kind of explorer."""

    #: The shelf of the library on which stands what is shown.
    shelf: ClassVar[str]

    @property
    def budget_settings(self) -> Any:
        """The part of the settings that is about a budget."""

    def with_budget(self, budget_settings: Any) -> Any:
        """Return the settings with another part about the budget."""

    def showing(self, name: str | None, path: str = "") -> Any:
        """Return the settings that show another thing of the shelf, from its beginning."""

    def as_at(self, start: Any) -> Any:
        """Return what a reset goes back to: the first settings, with what is to stay."""


S = TypeVar("S", bound=ExplorerSettings)
F = TypeVar("F")


class Kind(ABC, Generic[S, F]):
    """What follows from the settings of one kind of explorer, and how it looks; settings are any frozen value."""

    #: From a name to a function of settings, outcome, library and named values that returns the next settings.
    commands: ClassVar[Mapping[str, Callable[..., Any]]]
    #: What can be opened below the figures, by name.
    folds: ClassVar[Mapping[str, Fold]] = {}

    @abstractmethod
    def _follow(self, settings: S) -> F:
        """Work out what follows from the settings; raises where they cannot be."""

    @abstractmethod
    def _scene(self, settings: S, results: F) -> Data:
        """Return what the view shows at once: key figures, bar, source, and which figures there are."""

    def _door(self, settings: S) -> Data:
        """Return how a file is given, and what was read of the one that is shown; nothing by default."""
        return {}

    @abstractmethod
    def _status(self, results: F) -> Data:
        """Return the sentence under the key figures."""

    @abstractmethod
    def _charts(self, results: F, opened: list[str]) -> dict[str, Data]:
        """Return the figures, with the tables of those that are open."""

    def _texts(self, results: F) -> dict[str, str]:
        """Return the set-up as text to take away, by format."""
        return {}

    def _reader(self, results: F) -> Data:
        """Return a text to read beside the figures, in blocks."""
        return {}

    def _requests(self, results: F) -> Data:
        """Return the requests that a report's slider goes through; nothing by default."""
        return {}

    def _heading(self) -> str:
        """Return what a report is called."""
        return repr(self)
