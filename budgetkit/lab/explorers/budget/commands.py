"""Commands of the budget explorer: model, lines, counter, set-up and pins.

One function each, from settings to settings. The changes of a budget serve every explorer (``commands.py`` above).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from budgetkit.budget import Amount, Budget, Share, brief, check_tokens, one_line, quoted
from budgetkit.inputs import AnyBudget, AnyCounter, AnyModel, budget_of, filled_in, read_budget
from budgetkit.inputs.conversations import own_model
from budgetkit.lab.explorers.budget.results import BudgetStage, known_model, typed_model
from budgetkit.lab.explorers.budget.settings import (
    OWN,
    ROUGH,
    BudgetSettings,
    amounts_of,
    shortest_ratio,
)
from budgetkit.lab.explorers.reach import CounterName
from budgetkit.lab.explorers.shelves import Library
from budgetkit.models import DEFAULT_MODEL, listed_name
from budgetkit.presets import PRESETS, preset
from budgetkit.state import from_json, from_yaml


def choose_model(stage: BudgetStage, name: str) -> BudgetSettings:
    """Choose another model; keep the lines, and the window if possible.

    A model that lacks the window gets its own longest one.
    """
    model = typed_model(name)
    return stage.settings.with_model(name.strip(), model)


def choose_preset(stage: BudgetStage, name: str) -> BudgetSettings:
    """Start from a preset; the window and locked lines stay."""
    if name == OWN and stage.settings.own is not None:
        return stage.settings
    preset(name)
    return replace(stage.settings, preset=name, own=None, lines={}, demand={})


def move_line(stage: BudgetStage, line: str, tokens: int) -> BudgetSettings:
    """Give the window or a line another size in tokens."""
    return stage.settings.next_line(
        stage.results.plan.budget, stage.settings.base(stage.results.model), line, int(tokens)
    )


def set_amount(
    stage: BudgetStage,
    line: str,
    amount: Amount | None,
) -> BudgetSettings:
    """Give a line another amount, such as a share; a section with a share of 100 % has no cap."""
    budget = stage.results.plan.budget
    is_whole = (
        isinstance(amount, Share)
        and line in budget.caps
        and amount.of(budget.window) >= budget.window
    )
    return stage.settings.next_amount(line, None if is_whole else amount)


def set_size(stage: BudgetStage, line: str, size: int | Share | None) -> BudgetSettings:
    """Give a line another size; None is no cap."""
    if isinstance(size, int):
        return move_line(stage, line, size)
    budget = stage.results.plan.budget
    present = amounts_of(budget, stage.settings.base(stage.results.model)).get(line)
    if isinstance(size, Share) and isinstance(present, Share):
        # A limit gives way to the hand, as it does to a handle of the bar: no press is without an effect.
        tokens = size.of(budget.window)
        high = None if present.at_most is None else max(present.at_most, tokens)
        size = Share(size.ratio, min(present.at_least, tokens), high)
    return set_amount(stage, line, size)


def set_limits(
    stage: BudgetStage,
    line: str,
    at_least: int,
    at_most: int,
) -> BudgetSettings:
    """Keep a line between two sizes; an upper one as large as the window is no limit."""
    budget = stage.results.plan.budget
    amount = amounts_of(budget, stage.settings.base(stage.results.model)).get(line)
    if isinstance(amount, Share):
        ratio = amount.ratio
    else:
        ratio = shortest_ratio(min(amount or 0, budget.window), budget.window)
    return stage.settings.next_amount(
        line, Share(ratio, at_least, None if at_most >= budget.window else at_most)
    )


def lock(stage: BudgetStage, line: str, on: bool) -> BudgetSettings:
    """Hold a line at its present size in tokens, or let it go and keep that size."""
    settings = stage.settings
    budget = stage.results.plan.budget
    sizes: dict[str, int | None] = {**budget.sizes, **budget.caps}
    if not on:
        others = {name: size for name, size in settings.locks.items() if name != line}
        if line in settings.locks:
            locked = {line: settings.locks[line]}
        else:
            locked = {}
        return replace(settings, locks=others, lines={**settings.lines, **locked})
    if line not in sizes:
        raise LookupError(
            f"line {brief(line)} was to be locked; the lines are {quoted(sizes)}; name one of them"
        )
    return replace(settings, locks={**settings.locks, line: sizes[line]})


def choose_counter(stage: BudgetStage, name: CounterName) -> BudgetSettings:
    """Plan with another counter; an empty name is the model's own."""
    return replace(stage.settings, counter=name.strip() or None)


def compare_with(stage: BudgetStage, name: CounterName) -> BudgetSettings:
    """Show the error of another quick count; an empty name is the first one."""
    cheap = name.strip() or ROUGH
    stage.library.counter(cheap)
    return replace(stage.settings, cheap=cheap)


def choose_turn(stage: BudgetStage, turn: int) -> BudgetSettings:
    """Show another turn, from 1."""
    if stage.results.demand is None:
        turns = 0
    else:
        turns = len(stage.results.demand)
    if not 1 <= int(turn) <= turns:
        raise ValueError(
            f"turn {brief(int(turn))} was asked for; the conversation has 1 to {turns:,}; choose one of them"
        )
    return replace(stage.settings, turn=int(turn))


def type_demand(stage: BudgetStage, section: str, tokens: int) -> BudgetSettings:
    """Return the settings in which a section asks for a typed number of tokens."""
    return replace(
        stage.settings,
        demand={
            **stage.settings.demand,
            section: check_tokens(f"demand of {brief(section)}", int(tokens)),
        },
    )


def pin(stage: BudgetStage) -> BudgetSettings:
    """Keep the budget to compare the next one with, or let it go."""
    return replace(
        stage.settings, pinned=None if stage.settings.pinned is not None else stage.results.budget
    )


def load(stage: BudgetStage, text: str) -> BudgetSettings:
    """Take the budget of a saved state, JSON or YAML."""
    if text.lstrip().startswith("{"):
        loaded = from_json(text)
    else:
        loaded = from_yaml(text)
    return taken(stage.settings, loaded if isinstance(loaded, Budget) else loaded.budget)


def take_setup(stage: BudgetStage, name: str, content: bytes) -> BudgetSettings:
    """Take the budget of a saved state that was sent as a file."""
    try:
        return load(stage, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{one_line(name)} is not UTF-8 at byte {error.start:,}; a saved state is text in UTF-8; save it "
            "in that encoding"
        ) from None


def begun(
    library: Library,
    trace: Any,
    budget: AnyBudget,
    model: AnyModel | None,
    counter: AnyCounter | None,
    window: int | None,
) -> BudgetSettings:
    """Return the initial settings of an explorer from its arguments."""
    budget = read_budget(budget)
    model, counter, _ = filled_in(budget, model, counter)
    model = None if model is None else listed_name(model)
    name = None if trace is None else library.conversations.take(trace)
    path = str(trace) if isinstance(trace, str | Path) else ""
    plain = BudgetSettings(model=model or DEFAULT_MODEL, trace=name, path=path)
    plain = plain if model else with_its_model(plain, library)
    plain = replace(plain, counter=library.add_counter(counter))
    if isinstance(budget, str) and budget in PRESETS:
        settings = replace(plain, preset=budget)
    else:
        settings = taken(plain, budget_of(budget, plain.model, window))
    if window is None:
        return settings
    return replace(settings, window=window)


def with_its_model(settings: BudgetSettings, library: Library) -> BudgetSettings:
    """Take a recorded session's model and window, if the model is known."""
    session_model = None
    if settings.trace is not None:
        session_model = own_model(library.conversations.one(settings.trace, settings.conversation))
    if session_model is None or session_model.name == settings.model:
        return settings
    return settings.with_model(session_model.name, session_model)


def taken(settings: BudgetSettings, budget: Budget) -> BudgetSettings:
    """Return the settings for a budget: its preset, or a custom one."""
    plain = replace(settings, lines={}, locks={}, demand={}, preset=OWN, own=budget, window=None)
    if budget.name not in PRESETS:
        return plain
    model, _ = known_model(settings.model)
    sized = model.window != budget.window
    named = replace(plain, preset=budget.name, own=None, window=budget.window if sized else None)
    try:
        if named.base(model) == budget:
            return named
        return plain
    except ValueError:
        return plain


#: Changes of a budget, which every explorer knows.
BUDGET_CHANGES: Mapping[str, Callable[..., BudgetSettings]] = {
    "model": choose_model,
    "preset": choose_preset,
    "line": move_line,
    "size": set_size,
    "limits": set_limits,
    "lock": lock,
    "counter": choose_counter,
    "setup": take_setup,
    "load": load,
}
#: What the budget explorer knows beside them: the turn it plans, sizes that are typed in, and a budget to compare.
COMMANDS: Mapping[str, Callable[..., BudgetSettings]] = {
    "turn": choose_turn,
    "demand": type_demand,
    "pin": pin,
    "compare": compare_with,
}
