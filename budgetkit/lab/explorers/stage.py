"""Stage: an explorer's settings, results and library, and its table of functions.

Everything in an explorer is a function of its stage: commands return the next settings, and the entries of `Kind`
return the content of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from budgetkit.files import read_toml
from budgetkit.lab.explorers.folds import Fold
from budgetkit.lab.explorers.panel import Panel
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.view import View
from budgetkit.message import Data

Command = Callable[..., Any]


class ExplorerSettings(Protocol):
    """The settings of one kind of explorer."""

    #: The shelf of the library with the shown contents.
    shelf: ClassVar[str]

    @property
    def budget_settings(self) -> Any:
        """The settings of the budget."""

    def with_budget(self, budget_settings: Any) -> Any:
        """Return the settings with other budget settings."""

    def showing(self, name: str | None, path: str = "") -> Any:
        """Return the settings that show another entry from its start."""

    def as_at(self, start: Any) -> Any:
        """Return the settings after a reset."""


S = TypeVar("S", bound=ExplorerSettings)
F = TypeVar("F")


@dataclass(frozen=True)
class Stage(Generic[S, F]):
    """An explorer's settings, its results, and the library behind both."""

    settings: S
    results: F
    library: Library

    @property
    def budget(self) -> Stage[Any, Any]:
        """The stage of the budget alone."""
        results: Any = self.results
        return Stage(self.settings.budget_settings, results.budget_results, self.library)


AnyStage = Stage[Any, Any]


def nothing(_stage: AnyStage) -> Data:
    """Return empty data for a part that an explorer lacks."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of explorer: its commands, panels, results and page."""

    #: The name of its words in ``data/glossary.toml``.
    name: str
    #: Functions that take a stage and named values, and return the next settings.
    commands: Mapping[str, Command]
    #: Return the results of the settings, or raise an error if they contradict the library.
    results: Callable[[Any, Library], Any]
    view: type[View]
    #: Return key figures, bar, source, and the names of the figures.
    scene: Callable[[Any], Data]
    #: Return the controls.
    controls: Callable[[Any], Panel]
    #: Return the sentences under the key figures.
    status: Callable[[Any], Data]
    #: Return the title of a report.
    heading: Callable[[Any], str]
    #: Return the figures, with the tables of those that are open.
    charts: Callable[[Any, list[str]], dict[str, Data]] = lambda *_: {}
    #: Return the form for opening a file, and facts about the shown one.
    entry: Callable[[Any], Data] = nothing
    #: Return the set-up as text to copy, by format.
    texts: Callable[[Any], dict[str, str]] = nothing
    #: Return the text to read next to the figures, in blocks.
    reader: Callable[[Any], Data] = nothing
    #: Return the requests for a report's slider.
    requests: Callable[[Any], Data] = nothing

    @property
    def words(self) -> Data:
        """The words of this kind: its panels, files and tabs."""
        words: Data = read_toml("glossary.toml")[self.name]
        return words

    @property
    def folds(self) -> dict[str, Fold]:
        """The panels that can be opened beside the figures."""
        return {name: Fold(*row) for name, row in self.words["panels"].items()}
