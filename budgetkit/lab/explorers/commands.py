"""Commands: every change that all explorers know, by name. One function each, from settings to settings.

A slider, a handle in the page, a button and a line of code all end here. Settings say which part of them is a budget,
which shelf of the library they show something of, and how they show another thing of it. So one command serves all:

    command                   budget explorer          conversation, accuracy explorer
    preset, name="rag"        settings.preset          settings.budget_settings.preset
    path, path="talk.json"    settings.showing("talk.json"), the name that the shelf gave what it read

What one explorer alone can do stands in the commands of its own folder. The annotations of a command are all that it
is given (`reach.arguments`): declare a path as `FilePath` and a counter as `CounterName`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from budgetkit.budget.quoting import brief
from budgetkit.lab.explorers.budget.commands import BUDGET_CHANGES
from budgetkit.lab.explorers.budget.results import known_model
from budgetkit.lab.explorers.folds import Fold
from budgetkit.lab.explorers.reach import FilePath
from budgetkit.lab.explorers.shelves import Library, Shelf
from budgetkit.requests.reading.formats import table as format_table
from budgetkit.trace import shipped_traces
from budgetkit.trace.opening import intake
from budgetkit.trace.tables import UnknownColumns

Data = dict[str, Any]
MOST_LISTED = 200  # conversations that a list can hold; of more, the box Find finds them
WELCOME = {
    "text": "Your own conversation: drop a file here, paste its text, or",
    "short": "Drop a file, paste, or",
}
WANTED = {"role": "who speaks", "content": "what is said", "conversation": "which conversation"}
_HINTS = {"role": ("who", "by"), "content": ("words", "what"), "conversation": ("case", "chat")}


def door(library: Library, trace: str | None, conversation: int, model: str) -> Data:
    """Return what the page shows of the file: that there is none yet, what was read, or which columns to choose.

    Parameters
    ----------
    library : Library
        The conversations by name.
    trace : str or None
        The name of the file that is shown.
    conversation : int
        Which of its conversations, from 0.
    model : str
        The model that the budget is made for.
    """
    if library.conversations.undecided is not None:
        return {**WELCOME, "columns": _columns(library)}
    if trace is None or trace in shipped_traces():
        return {**WELCOME}
    traces = library.conversations(trace)
    facts = library.once(("intake", trace, conversation), lambda: intake(traces, conversation))
    listed = [
        {"value": place, "label": f"{place + 1:,}: {title}"}
        for place, title in enumerate(facts.titles[:MOST_LISTED])
    ]
    is_whole = 1 < len(facts.titles) <= MOST_LISTED
    return {
        "text": "",
        "short": "",
        "facts": {
            "file": trace,
            "sentences": [*facts.sentences],
            "format": facts.format,
            "messages": facts.messages,
            "many": ""
            if len(facts.titles) == 1
            else f"conversation {conversation + 1:,} of {len(facts.titles):,}",
            "conversations": listed if is_whole else [],
            "conversation": conversation,
            "notes": [_sentence(note) for note in facts.notes],
            "model": _model(facts.model, model),
        },
    }


def _model(named: str | None, model: str) -> Data | None:
    """Say which model the file names, and whether it is the one that the budget is made for."""
    if named is None:
        return None
    if named == model:
        return {"text": f"made for {named}, as the file says"}
    if known_model(named)[1]:
        return {"text": f"the file names the model {named}, of which nothing is known"}
    return {"text": f"the file names the model {named}", "button": "Use it", "name": named}


def _columns(library: Library) -> Data:
    """Ask which columns of a table say who speaks, what is said, and which conversation a row belongs to."""
    undecided = library.conversations.undecided
    assert undecided is not None, "asked for only where there is a table to be decided on"
    choices: list[Data] = []
    taken: set[str] = set()
    for name, label in WANTED.items():
        # a guess by the name; the rest is left to the hand
        usual = (*format_table("columns")[name], *_HINTS[name])
        free = [column for column in undecided.columns if column not in taken]
        guess = next(
            (column for column in free if any(word in column.lower() for word in usual)), ""
        )
        taken.add(guess)
        choices.append({"name": name, "label": label, "guess": guess})
    return {
        "text": f"{undecided.name} is a table. Which column says",
        "names": [*undecided.columns],
        "choices": choices,
        "none": "none: all rows are one",
    }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


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


Command = Callable[..., Any]


def of_budget(command: Command) -> Command:
    """Let a change of a budget's settings change the settings of any explorer."""

    @wraps(command)
    def changed(settings: Any, results: Any, library: Library, **values: Any) -> Any:
        budget_settings = command(
            settings.budget_settings, results.budget_results, library, **values
        )
        return settings.with_budget(budget_settings)

    return changed


def shelf_of(settings: Any, library: Library) -> Shelf[Any]:
    """Return the shelf on which stands what an explorer shows."""
    shelf: Shelf[Any] = getattr(library, settings.shelf)
    return shelf


def choose(settings: Any, results: Any, library: Library, name: str | None) -> Any:
    """Show what goes by another name, from its beginning; None for sizes that are typed in."""
    shelf_of(settings, library).undecided = None
    return settings.showing(name)


def open_path(settings: Any, results: Any, library: Library, path: FilePath) -> Any:
    """Read what lies at a path and show it."""
    try:
        name = shelf_of(settings, library).open(path.strip())
    except UnknownColumns:
        return settings  # the page asks for them
    return settings.showing(name, path.strip())


def take_file(settings: Any, results: Any, library: Library, name: str, content: bytes) -> Any:
    """Read a file that was dropped, pasted or chosen in the page, and show it."""
    try:
        shelf_name = shelf_of(settings, library).read(name, content)
    except UnknownColumns:
        return settings  # the page asks for them
    return settings.showing(shelf_name)


def choose_columns(
    settings: Any, results: Any, library: Library, role: str, content: str, conversation: str = ""
) -> Any:
    """Read the table that waits by its columns: who speaks, what is said and, if any says so, in which conversation."""
    if role == content:
        raise ValueError(
            f"column {brief(role)} was chosen twice; who speaks and what is said are two; choose another"
        )
    columns = {"role": role, "content": content}
    if conversation:
        columns["conversation"] = conversation
    return settings.showing(shelf_of(settings, library).decide(columns))


def choose_conversation(settings: Any, results: Any, library: Library, number: int) -> Any:
    """Show another conversation of the file, from 0, at its end."""
    if number == settings.budget_settings.conversation:
        return settings
    return settings.showing_conversation(int(number))


def refuse(settings: Any, results: Any, library: Library, text: str) -> Any:
    """Refuse what was typed into a box, in its words."""
    raise ValueError(text)


#: What every explorer knows; undo, redo and reset are the stage's own.
SHARED: Final[Mapping[str, Command]] = {
    **{name: of_budget(change) for name, change in BUDGET_CHANGES.items()},
    "path": open_path,
    "file": take_file,
    "columns": choose_columns,
    "refused": refuse,
}
#: What explorers of conversations know beside it.
OF_CONVERSATIONS: Final[Mapping[str, Command]] = {
    **SHARED,
    "trace": choose,
    "conversation": choose_conversation,
}
