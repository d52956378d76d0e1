"""Commands: every change that the explorer knows, by name. One function each, from settings to settings.

A slider, a handle in the page, a button and a line of code all end here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.amounts import Amount, Share, check_tokens
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import Count
from budgetkit.explorer.budget.amount_edits import amounts_of, shortest_ratio
from budgetkit.explorer.budget.results import Results, known_model, typed_model
from budgetkit.explorer.budget.settings import DEFAULT_MODEL, OWN, Settings
from budgetkit.explorer.library import Library
from budgetkit.presets import PRESETS, preset
from budgetkit.state import from_json, from_yaml
from budgetkit.trace import Trace


def choose_model(settings: Settings, found: Results, library: Library, name: str) -> Settings:
    """Take another model and its window; the lines stay, shares follow the window."""
    model = typed_model(name)
    window = None if settings.own is None else model.window
    return replace(settings, model=name.strip(), window=window, counter=settings.counter)


def choose_preset(settings: Settings, found: Results, library: Library, name: str) -> Settings:
    """Start from a preset; the window and locked lines stay."""
    if name == OWN and settings.own is not None:
        return settings
    preset(name)
    return replace(settings, preset=name, own=None, lines={}, demand={})


def move_line(settings: Settings, found: Results, library: Library, line: str, tokens: int) -> Settings:
    """Give the window or a line another size in tokens."""
    return settings.next_line(found.plan.budget, settings.base(found.model), line, int(tokens))


def set_amount(settings: Settings, found: Results, library: Library, line: str, amount: Amount | None) -> Settings:
    """Give a line another amount, such as a share; a section with a share of 100 % has no cap."""
    budget = found.plan.budget
    is_whole = isinstance(amount, Share) and line in budget.caps and amount.of(budget.window) >= budget.window
    return settings.next_amount(line, None if is_whole else amount)


def set_limits(
    settings: Settings, found: Results, library: Library, line: str, at_least: int, at_most: int
) -> Settings:
    """Keep a line between two sizes; an upper one as large as the window is no limit."""
    budget = found.plan.budget
    amount = amounts_of(budget, settings.base(found.model)).get(line)
    ratio = (
        amount.ratio if isinstance(amount, Share) else shortest_ratio(min(amount or 0, budget.window), budget.window)
    )
    return settings.next_amount(line, Share(ratio, at_least, None if at_most >= budget.window else at_most))


def lock(settings: Settings, found: Results, library: Library, line: str, on: bool) -> Settings:
    """Hold a line at its present size in tokens, or let it go and keep that size."""
    budget = found.plan.budget
    sizes: dict[str, int | None] = {**budget.sizes, **budget.caps}
    if not on:
        kept = {name: size for name, size in settings.locks.items() if name != line}
        held = {line: settings.locks[line]} if line in settings.locks else {}
        return replace(settings, locks=kept, lines={**settings.lines, **held})
    if line not in sizes:
        raise LookupError(f"line {brief(line)} was to be locked; the lines are {quoted(sizes)}; name one of them")
    return replace(settings, locks={**settings.locks, line: sizes[line]})


def choose_counter(settings: Settings, found: Results, library: Library, name: str) -> Settings:
    """Count with another counter; an empty name is the model's own."""
    return replace(settings, counter=name.strip() or None)


def choose_trace(settings: Settings, found: Results, library: Library, name: str | None) -> Settings:
    """Show another file of conversations, from its first conversation and last turn; None for typed-in sizes."""
    shown = replace(settings, trace=name, path="", conversation=0, turn=None)
    return with_its_model(shown, library)


def take_grown(settings: Settings, found: Results, library: Library, trace: Trace) -> Settings:
    """Show a conversation that has grown since it was shown last."""
    return choose_trace(settings, found, library, library.follow(trace))


def open_path(settings: Settings, found: Results, library: Library, path: str) -> Settings:
    """Read a file by its path and show it."""
    opened = choose_trace(settings, found, library, library.open(path.strip()))
    return replace(opened, path=path.strip())


def take_file(settings: Settings, found: Results, library: Library, name: str, content: bytes) -> Settings:
    """Read a file that was sent, and show it."""
    return choose_trace(settings, found, library, library.read(name, content))


def choose_conversation(settings: Settings, found: Results, library: Library, number: int) -> Settings:
    """Show another conversation of the file, from 0, at its last turn."""
    if number == settings.conversation:
        return settings
    return with_its_model(replace(settings, conversation=int(number), turn=None), library)


def choose_turn(settings: Settings, found: Results, library: Library, turn: int) -> Settings:
    """Show another turn, from 1."""
    turns = 0 if found.demand is None else len(found.demand)
    if not 1 <= int(turn) <= turns:
        raise ValueError(
            f"turn {brief(int(turn))} was asked for; the conversation has 1 to {turns:,}; choose one of them"
        )
    return replace(settings, turn=int(turn))


def type_demand(settings: Settings, found: Results, library: Library, section: str, tokens: int) -> Settings:
    """Let a section ask for a size that is typed in."""
    return replace(
        settings, demand={**settings.demand, section: check_tokens(f"demand of {brief(section)}", int(tokens))}
    )


def pin(settings: Settings, found: Results, library: Library) -> Settings:
    """Keep the budget to compare the next one with, or let it go."""
    return replace(settings, pinned=None if settings.pinned is not None else found.budget)


def load(settings: Settings, found: Results, library: Library, text: str) -> Settings:
    """Take the budget of a saved state, JSON or YAML."""
    loaded = from_json(text) if text.lstrip().startswith("{") else from_yaml(text)
    return taken(settings, loaded if isinstance(loaded, Budget) else loaded.budget)


def take_setup(settings: Settings, found: Results, library: Library, name: str, content: bytes) -> Settings:
    """Take the budget of a saved state that was sent as a file."""
    try:
        return load(settings, found, library, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{one_line(name)} is not UTF-8 at byte {error.start:,}; a saved state is text in UTF-8; save it "
            "in that encoding"
        ) from None


def begun(
    library: Library,
    trace: Any,
    budget: str | Budget,
    model: str | None,
    counter: str | Count | None,
    window: int | None,
) -> Settings:
    """Return the settings that an explorer begins with, from what it was called with."""
    name = None if trace is None else library.take(trace)
    path = str(trace) if isinstance(trace, str | Path) else ""
    plain = Settings(model=model or DEFAULT_MODEL, counter=library.given(counter), trace=name, path=path)
    plain = plain if model else with_its_model(plain, library)
    settings = taken(plain, budget) if isinstance(budget, Budget) else replace(plain, preset=budget)
    return settings if window is None else replace(settings, window=window)


def with_its_model(settings: Settings, library: Library) -> Settings:
    """Take the model that a session says it was held with, where that is one that is known, and that model's window."""
    name = None if settings.trace is None else library.model_of(settings.trace, settings.conversation)
    if name is None or name == settings.model or known_model(name)[1]:
        return settings
    return replace(settings, model=name, window=None)


def taken(settings: Settings, budget: Budget) -> Settings:
    """Return the settings that show a budget: as its preset where it is one, else as the user's own."""
    plain = replace(settings, lines={}, locks={}, demand={}, preset=OWN, own=budget, window=None)
    if budget.name not in PRESETS:
        return plain
    model, _ = known_model(settings.model)
    sized = model.window != budget.window
    named = replace(plain, preset=budget.name, own=None, window=budget.window if sized else None)
    try:
        return named if named.base(model) == budget else plain
    except ValueError:
        return plain


COMMANDS: dict[str, Callable[..., Settings]] = {
    "model": choose_model,
    "preset": choose_preset,
    "line": move_line,
    "amount": set_amount,
    "limits": set_limits,
    "lock": lock,
    "counter": choose_counter,
    "trace": choose_trace,
    "path": open_path,
    "grown": take_grown,
    "file": take_file,
    "setup": take_setup,
    "conversation": choose_conversation,
    "turn": choose_turn,
    "demand": type_demand,
    "pin": pin,
    "load": load,
}
