"""Commands that all explorers share.

Sliders, handles, buttons and code use these commands. The settings of each explorer extend the settings of a budget,
name a shelf of the library (its conversations or its texts), and have a method that shows another entry of that
shelf, so one command serves all explorers:

    command                   settings
    preset, name="rag"        settings.preset
    path, path="talk.json"    settings.showing("talk.json"), with the file's name on the shelf

The commands of a single explorer are in the explorer's folder. A command gets only its annotated arguments
(`reach.arguments`): annotate a path as `FilePath` and a counter as `CounterName`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from budgetkit.budget import brief
from budgetkit.lab.explorers.budget.controls import BUDGET_CHANGES
from budgetkit.lab.explorers.budget.notices import sentence
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.reach import FilePath
from budgetkit.lab.explorers.shelves import PendingTable, Shelf
from budgetkit.message import Data
from budgetkit.models import resolve
from budgetkit.requests.reading.formats import format_table
from budgetkit.trace import Trace, shipped_traces
from budgetkit.trace.opening import Intake
from budgetkit.trace.tables import UnknownColumnsError

Command = Callable[..., BudgetSettings]
MOST_LISTED = 200  # conversations in a list; if there are more, a search box finds one
WELCOME = {
    "text": "Your own conversation: drop a file here, paste its text, or",
    "short": "Drop a file, paste, or",
}
WANTED = {"role": "Speaker", "content": "Message text", "conversation": "Conversation"}
_HINTS = {"role": ("who", "by"), "content": ("words", "what"), "conversation": ("case", "chat")}


def _entry(number: int, trace: Trace) -> Data:
    """Return the entry of a conversation in a list."""
    return {"value": number, "label": f"{number + 1:,}: {trace.title}"}


def file_entry(stage: BudgetStage) -> Data:
    """Return the state of the opened file for the page.

    The state is a form to open a file, a form to choose a table's columns, or facts about the file.
    """
    library = stage.library
    budget = stage.settings
    trace = budget.trace
    conversation = budget.conversation
    if undecided := library.conversations.undecided:
        return {**WELCOME, "columns": _columns(undecided)}
    if trace is None or trace in shipped_traces():
        return {**WELCOME}
    traces = library.conversations(trace)
    facts = library.once(("intake", trace, conversation), lambda: Intake(traces, conversation))
    chosen = traces[conversation]
    listed: list[Data] = []
    place = ""
    if len(traces) > 1:
        place = f"conversation {conversation + 1:,} of {len(traces):,}"
        if len(traces) <= MOST_LISTED:
            listed = library.once(("listed", trace), lambda: [*map(_entry, count(), traces)])

    # The model that the file names, beside the budget's.
    named = chosen.model
    model: Data | None = None
    if named is not None:
        model = {"text": f"the file names the model {named}"}
        known = resolve(named)
        if named == budget.model:
            model = {"text": f"made for {named}, according to the file"}
        elif known.notice:
            model = {"text": f"the file names an unknown model, {named}"}
        else:
            model |= {"button": f"Use it, with its window of {known.window:,}", "name": named}
    return {
        "text": "",
        "short": "",
        "facts": {
            "file": trace,
            "sentences": [*facts.sentences],
            "format": chosen.format,
            "messages": facts.messages,
            "many": place,
            "conversations": listed,
            "conversation": conversation,
            "notes": [sentence(note) for note in chosen.warnings],
            "model": model,
        },
    }


def _columns(undecided: PendingTable) -> Data:
    """Return a form for choosing a table's role, content and conversation columns."""
    choices: list[Data] = []
    taken: set[str] = set()
    for name, label in WANTED.items():
        # guessed by its name; the user can choose another column
        usual = (*format_table("columns")[name], *_HINTS[name])
        free = [column for column in undecided.columns if column not in taken]
        likely = [column for column in free if any(word in column.lower() for word in usual)]
        guess = next(iter(likely), "")
        taken.add(guess)
        choices.append({"name": name, "label": label, "guess": guess})
    return {
        "text": f"{undecided.name} is a table. Choose its columns",
        "names": [*undecided.columns],
        "choices": choices,
        "none": "none: all rows are one conversation",
    }


def shelf_of(stage: BudgetStage) -> Shelf[Any]:
    """Return the library's conversations or texts, whichever the explorer shows."""
    shelf: Shelf[Any] = getattr(stage.library, stage.settings.shelf)
    return shelf


def choose(stage: BudgetStage, name: str | None) -> BudgetSettings:
    """Show an entry of the library from its start.

    If `name` is None, entered sizes are shown.
    """
    shelf_of(stage).undecided = None
    return stage.settings.showing(name)


def open_path(stage: BudgetStage, path: FilePath) -> BudgetSettings:
    """Read a path and show its content, unless the path is empty.

    If the columns of a table are not recognised, the page asks the user to choose them.
    """
    if not path.strip():
        return stage.settings
    try:
        name = shelf_of(stage).open(path.strip())
    except UnknownColumnsError:
        return stage.settings  # the page asks for them
    return stage.settings.showing(name, path.strip())


def take_file(stage: BudgetStage, name: str, content: bytes) -> BudgetSettings:
    """Read an uploaded or pasted file, and show its content.

    If the columns of a table are not recognised, the page asks the user to choose them.
    """
    try:
        shelf_name = shelf_of(stage).read(name, content)
    except UnknownColumnsError:
        return stage.settings  # the page asks for them
    return stage.settings.showing(shelf_name)


def choose_columns(
    stage: BudgetStage, role: str, content: str, conversation: str = ""
) -> BudgetSettings:
    """Read the pending table by its role, content and conversation columns."""
    if role == content:
        raise ValueError(
            f"Column {brief(role)} is chosen twice. Choose one for the speaker and another for the text."
        )
    columns = {"role": role, "content": content}
    if conversation:
        columns["conversation"] = conversation
    return stage.settings.showing(shelf_of(stage).decide(columns))


def choose_conversation(stage: BudgetStage, number: int) -> BudgetSettings:
    """Show the end of another conversation in the file.

    `number` is its index, counting from 0.
    """
    if number == stage.settings.conversation:
        return stage.settings
    return stage.settings.showing(stage.settings.trace, stage.settings.path, number)


#: Commands of every explorer; undo, redo and reset belong to `Explorer`.
SHARED: Mapping[str, Command] = {
    **BUDGET_CHANGES,
    "path": open_path,
    "file": take_file,
    "columns": choose_columns,
}
#: Additional commands of explorers of conversations.
OF_CONVERSATIONS: Mapping[str, Command] = {
    **SHARED,
    "trace": choose,
    "conversation": choose_conversation,
}
