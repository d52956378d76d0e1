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

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

from budgetkit.budget.quoting import brief
from budgetkit.lab.explorers.budget.commands import BUDGET_CHANGES
from budgetkit.lab.explorers.library import Library
from budgetkit.lab.explorers.reach import FilePath
from budgetkit.lab.explorers.shelves import Shelf
from budgetkit.trace import Trace
from budgetkit.trace.tables import UnknownColumns

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


def take_grown(settings: Any, results: Any, library: Library, trace: Trace) -> Any:
    """Show a conversation that has grown since it was shown last."""
    return choose(settings, results, library, library.conversations.follow(trace))


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
    "grown": take_grown,
    "conversation": choose_conversation,
}
