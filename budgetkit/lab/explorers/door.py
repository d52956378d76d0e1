"""The door: on top of an explorer, how to give it a file, and what was read of the file that it shows."""

from __future__ import annotations

from typing import Any

from budgetkit.lab.explorers.budget.results import known_model
from budgetkit.lab.explorers.library import Library
from budgetkit.requests.reading.formats import table as format_table
from budgetkit.trace import shipped_traces
from budgetkit.trace.intake import intake

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
