"""Controls of a budget, and the commands that they send.

A command takes a stage and values, and returns the next settings.

Every explorer uses the commands that change a budget (`explorers/commands.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from budgetkit.budget import Amount, Budget, Share, brief, check_tokens, one_line
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.html import colour
from budgetkit.counters import encoding_names
from budgetkit.inputs.budgets import (
    AnyBudget,
    AnyCounter,
    AnyModel,
    budget_of,
    filled_in,
    read_budget,
)
from budgetkit.inputs.conversations import own_model
from budgetkit.lab.explorers.budget.charts import BESIDE_SHORT
from budgetkit.lab.explorers.budget.results import BudgetStage, UnknownModelError
from budgetkit.lab.explorers.budget.settings import (
    OWN,
    ROUGH,
    BudgetSettings,
    longest_window,
    shortest_ratio,
    window_stops,
)
from budgetkit.lab.explorers.panel import Input, Number, Panel
from budgetkit.lab.explorers.reach import CounterName
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.figures.window import left_of_pool
from budgetkit.models import DEFAULT_MODEL, found_by, listed_name, models, resolve
from budgetkit.plan.advice import unused_caps
from budgetkit.presets import PRESETS, preset
from budgetkit.state import from_json, from_yaml

B = TypeVar("B", bound=BudgetSettings)


def choose_model(stage: BudgetStage, name: str, whole: bool = False) -> BudgetSettings:
    """Choose another model, keeping the window and all entered sizes.

    If the model's longest window is shorter than this window, or if `whole` is True, the longest window is used.
    """
    name = name.strip()
    model = found_by(name)  # a retired model, too
    if model is None:
        raise UnknownModelError(name)
    settings = stage.settings.with_model(name, model)
    if not whole:
        return settings
    return replace(settings, window=longest_window(model), missing_window=None)


def choose_preset(stage: BudgetStage, name: str) -> BudgetSettings:
    """Choose a preset, keeping the window and the locked sizes."""
    if name == OWN and stage.settings.own is not None:
        return stage.settings
    preset(name)
    return replace(stage.settings, preset=name, own=None, lines={}, demand={})


def resize(stage: BudgetStage, line: str, size: int | Share | None) -> BudgetSettings:
    """Resize the window, a reserve or a section.

    A size of None removes the cap of a section.
    """
    return stage.settings.resize(line, size)


def use_unused_caps(stage: BudgetStage, section: str) -> BudgetSettings:
    """Raise a section's limit to its demand by lowering unused caps."""
    settings = stage.settings
    plan = stage.plan
    budget = plan.budget
    grant = plan[section]
    cap = budget.caps[section]
    if cap is not None:
        settings = settings.resize(section, grant.demand)

    # The largest unused caps are lowered first, by no more than is missing.
    missing = grant.demand - (cap or grant.granted) - left_of_pool(plan)
    for other, unused in unused_caps(plan, section).items():
        taken = min(unused, missing)
        if taken > 0 and other not in (*settings.locks, budget.remainder):
            tokens = (budget.caps[other] or 0) - taken
            settings = settings.resize(other, tokens)
            missing -= taken
    return settings


def set_limits(
    stage: BudgetStage,
    line: str,
    at_least: int,
    at_most: int,
) -> BudgetSettings:
    """Set the lower and the upper limit of a reserve or section.

    An upper limit of the whole window means no upper limit.
    """
    window = stage.plan.budget.window
    amount = stage.settings.amounts.get(line)
    if isinstance(amount, Share):
        ratio = amount.ratio
    else:
        ratio = shortest_ratio(min(amount or 0, window), window)
    share = Share(ratio, at_least, None if at_most >= window else at_most)
    return stage.settings.with_amount(line, share)


def lock(stage: BudgetStage, line: str, on: bool) -> BudgetSettings:
    """Lock a reserve or section at its current size, or unlock it."""
    settings = stage.settings
    budget = stage.plan.budget
    sizes: dict[str, int | None] = {**budget.sizes, **budget.caps}
    if not on:
        locks = {**settings.locks}
        lines = {**settings.lines}
        if line in locks:
            lines[line] = locks.pop(line)
        return replace(settings, locks=locks, lines=lines)
    if line not in sizes:
        raise LookupError(unknown_name("reserve or section", line, sizes))
    return replace(settings, locks={**settings.locks, line: sizes[line]})


def switch(stage: BudgetStage, line: str, on: bool) -> BudgetSettings:
    """Switch a section off with a cap of 0, or on again.

    A section that is switched on again has its initial cap.
    """
    sections = stage.plan.budget.sections
    if line not in sections:
        raise LookupError(unknown_name("section", line, sections))
    cap: Amount | None = 0
    if on:
        first = {a.section: a.cap for a in stage.settings.base.allocations}
        cap = first.get(line) or None
    return stage.settings.with_amount(line, cap)


def choose_counter(stage: BudgetStage, name: CounterName) -> BudgetSettings:
    """Choose the plan's counter, or the model's counter if `name` is empty."""
    counter = name.strip() or None
    stage.library.counter(counter or stage.model)
    return replace(stage.settings, counter=counter)


def compare_with(stage: BudgetStage, name: CounterName) -> BudgetSettings:
    """Choose the cheap counter, or the default counter if `name` is empty."""
    cheap = name.strip() or ROUGH
    stage.library.counter(cheap)
    return replace(stage.settings, cheap=cheap)


def choose_turn(stage: BudgetStage, turn: int) -> BudgetSettings:
    """Show another turn, counting from 1."""
    if stage.demand is None:
        raise ValueError("There is no turn to choose. Open a conversation.")
    turn = check_place("turn", turn, len(stage.demand))
    return replace(stage.settings, turn=turn)


def check_place(noun: str, number: int, last: int) -> int:
    """Check the number of a turn or a request, and return it."""
    if not 1 <= number <= last:
        raise ValueError(f"Unknown {noun} {brief(number)}. Choose a number from 1 to {last:,}.")
    return number


def type_demand(stage: BudgetStage, section: str, tokens: int) -> BudgetSettings:
    """Set the demand that the user entered for a section."""
    size = check_tokens(f"demand of {brief(section)}", tokens)
    return replace(stage.settings, demand={**stage.settings.demand, section: size})


def pin(stage: BudgetStage) -> BudgetSettings:
    """Pin the budget for comparison, or unpin it."""
    plain = stage.settings.unpinned
    return plain if stage.settings.pins else replace(plain, pins=(plain,))


def load(stage: BudgetStage, text: str) -> BudgetSettings:
    """Load the budget of a saved state, in JSON or YAML."""
    loaded = (from_json if text.lstrip().startswith("{") else from_yaml)(text)
    return settings_with(stage.settings, loaded if isinstance(loaded, Budget) else loaded.budget)


def take_setup(stage: BudgetStage, name: str, content: bytes) -> BudgetSettings:
    """Load the budget of a saved state, sent as a file."""
    try:
        return load(stage, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{one_line(name)} is not UTF-8 at byte {error.start:,}. Save it as UTF-8."
        ) from None


def initial_settings(
    settings: B,
    library: Library,
    trace: Any,
    budget: AnyBudget,
    model: AnyModel | None,
    counter: AnyCounter | None,
    window: int | None,
) -> B:
    """Return the initial settings of an explorer from its defaults and arguments."""
    budget = read_budget(budget)
    model, counter, _ = filled_in(budget, model, counter)
    model = None if model is None else listed_name(model)
    name = None if trace is None else library.conversations.take(trace)
    path = str(trace) if isinstance(trace, str | Path) else ""
    settings = replace(settings, model=model or DEFAULT_MODEL, trace=name, path=path)
    if model is None and name is not None:
        # A recorded session's model and window, if the model is known.
        session_model = own_model(library.conversations.one(name, 0))
        if session_model is not None and session_model.name != settings.model:
            settings = settings.with_model(session_model.name, session_model)
    settings = replace(settings, counter=library.add_counter(counter))
    if isinstance(budget, str) and budget in PRESETS:
        settings = replace(settings, preset=budget)
    else:
        settings = settings_with(settings, budget_of(budget, settings.model, window))
    return settings if window is None else replace(settings, window=window)


def settings_with(settings: B, budget: Budget) -> B:
    """Return the settings for a preset's budget or a custom budget."""
    plain = replace(settings, lines={}, locks={}, demand={}, preset=OWN, own=budget, window=None)
    if budget.name not in PRESETS:
        return plain
    model = resolve(settings.model)
    sized = model.window != budget.window
    named = replace(plain, preset=budget.name, own=None, window=budget.window if sized else None)
    with suppress(ValueError):
        if named.base == budget:
            return named
    return plain


#: Changes to a budget, which every explorer accepts.
BUDGET_CHANGES: Mapping[str, Callable[..., BudgetSettings]] = {
    "model": choose_model,
    "preset": choose_preset,
    "size": resize,
    "limits": set_limits,
    "unused": use_unused_caps,
    "lock": lock,
    "switch": switch,
    "counter": choose_counter,
    "setup": take_setup,
    "load": load,
}
#: Additional commands of the budget explorer: the planned turn, entered sizes, and a budget to compare.
COMMANDS: Mapping[str, Callable[..., BudgetSettings]] = {
    "turn": choose_turn,
    "demand": type_demand,
    "pin": pin,
    "compare": compare_with,
}


FEW = 5  # conversations that are listed without a search
LIMITED = "output"
RATIOS = ("chars/4", "chars/3.5", "bytes/4", "utf16/4")
STEP = 0.5  # percent of the window
TYPED_IN = "typed in below"


def controls(stage: BudgetStage) -> Panel:
    """Return the controls of the budget explorer."""
    settings = stage.settings
    budget = stage.plan.budget
    panel = Panel(
        counters=[*encoding_names(), *RATIOS],
        traces=[(None, TYPED_IN), *((name, name) for name in stage.library.conversations.names)],
    )
    panel.group()
    if stage.demand is not None:
        add_conversations(panel, stage)
    panel.group("Model and window")
    add_model(panel, stage)
    panel.group("Reserves")
    add_lines(panel, stage, [name for name in settings.amounts if name not in budget.sections])
    panel.group("Sections")
    add_lines(panel, stage, budget.sections)
    panel.group()
    if stage.demand is not None:
        add_place(panel, "turn", stage.turn or 1, len(stage.demand))
    panel.group("Demand")
    for grant in stage.plan.grants if stage.demand is None else ():
        section = grant.section
        typed = Input("demand", {"section": section})
        words = {"label": section, "tip": f"The demand of {section}, in tokens"}
        number = Number(grant.demand, whole=budget.window)
        panel.add(f"demand_{section}", number, typed, half=False, **words)
    panel.group("Conversation and counter", folds=True)
    add_trace(panel, stage)
    panel.add("compare", settings.cheap)
    return panel


def add_model(panel: Panel, stage: BudgetStage) -> None:
    """Add the model, preset and window controls."""
    settings = stage.settings
    model = stage.model
    budget = stage.plan.budget
    own = [(OWN, budget.name or "my own budget")] if settings.own is not None else []
    # An entered window gets its own stop, even beyond the model's longest.
    stops = sorted({*window_stops(longest_window(model, budget.kind)), budget.window})
    panel.choices |= {
        "models": [listed.name for listed in models()],
        "presets": [*((name, shipped.title) for name, shipped in PRESETS.items()), *own],
        "windows": [(stop, f"{stop:,}") for stop in stops],
    }
    panel.add("model", settings.model)
    panel.add("preset", settings.preset)
    slide = {"among": "windows", "value": budget.window}
    panel.add("window", Number(budget.window, 1), Input("size", {"line": "window"}), slide)


def add_lines(
    panel: Panel, stage: BudgetStage, names: Sequence[str], can_lock: bool = True
) -> None:
    """Add a slider and a box for each named reserve or section."""
    settings = stage.settings
    budget = stage.plan.budget
    window = budget.window
    needed = {a.section for a in budget.allocations if a.required or budget.floors[a.section]}
    for name, amount in settings.amounts.items():
        if name not in names:
            continue
        is_section = name in budget.caps
        tokens = {**budget.sizes, **budget.caps}.get(name, 0)
        size = window if tokens is None else tokens
        # The slider shows a share's own ratio, or its size after a limit.
        ratio = size / max(1, window)
        of_window = "pool" if tokens is None else f"{100 * ratio:.3g} %"
        if is_section and tokens == 0:
            of_window = "off"
        if isinstance(amount, Share) and Share(amount.ratio).of(window) == size:
            ratio = float(amount.ratio)
        percent = min(100.0, round(100 * ratio / STEP) * STEP)
        # A cap of the whole window means no cap, which is an empty box.
        number = Number(
            tokens,
            budget.floors.get(name, 0),
            max(window - 1 if is_section else window, tokens or 0),
            whole=window,
            may_be_empty=is_section,
            keeps_share=isinstance(amount, Share) or name == LIMITED,
        )
        label = name
        if name == LIMITED and budget.kind != "shared":
            label = f"{name}, {BESIDE_SHORT[budget.kind]}"
        locked = name in settings.locks
        empty = "; leave empty to draw on the shared pool" if is_section else ""
        keys = {"lock": f"lock_{name}"} if can_lock else {}
        if can_lock and is_section and name not in needed:
            keys["switch"] = f"on_{name}"
        panel.add(
            f"line_{name}",
            number,
            Input("size", {"line": name}),
            {"max": 100, "step": STEP, "value": percent, "of": window, "line": name},
            label=label,
            tip=f"{name}, as a percentage of the window",
            box_tip=f"{name}, in tokens{empty}",
            share=of_window,
            color=colour(name),
            hint="no cap" if is_section else "",
            locked=locked,
            off=of_window == "off",
            **keys,
        )
        if not can_lock:
            continue
        panel.inputs[f"lock_{name}"] = Input("lock", {"line": name})
        panel.inputs[f"on_{name}"] = Input("switch", {"line": name})
        if name == LIMITED:
            share = amount if isinstance(amount, Share) else Share(0)
            most = window if share.at_most is None else share.at_most
            limits = {"at_least": share.at_least, "at_most": most}
            for limit, other in (("at_least", "at_most"), ("at_most", "at_least")):
                number = Number(limits[limit], 0, window, whole=window)
                limited = Input("limits", {"line": name, other: limits[other]})
                panel.add(limit, number, limited, locked=locked)


def add_place(panel: Panel, key: str, now: int, last: int, **drawn: Any) -> None:
    """Add the slider for stepping through a conversation."""
    slide = {"min": 1, "max": last, "step": 1, "value": now}
    panel.add(key, Number(now, 1, last), slide=slide, **drawn)


def add_trace(panel: Panel, stage: BudgetStage) -> None:
    """Add the controls of the file and of the plan's counter."""
    settings = stage.settings
    model = stage.model
    best = model.encoding if model.encoding_is_own else ""
    panel.add("trace", settings.trace)
    panel.add("path", settings.path)
    panel.add("counter", settings.counter or best)


def add_conversations(panel: Panel, stage: BudgetStage) -> None:
    """Add a list of conversations, or a search if there are many.

    Nothing is added for a single conversation.
    """
    settings = stage.settings
    now = settings.conversation
    name = str(settings.trace)
    traces = stage.library.conversations(name)
    if len(traces) < 2:
        return
    # This runs at every move of a slider, and an export may have thousands of titles.
    titles = stage.library.once(
        ("titles", name), lambda: [f"{i + 1}: {trace.title}" for i, trace in enumerate(traces)]
    )
    chosen = Input("conversation", read=finder(titles, now))
    if len(titles) <= FEW:
        panel.choices["titles"] = [*enumerate(titles)]
        panel.add("conversation", now, chosen, **{"is": "choice"})
    else:
        panel.choices["titles"] = titles
        panel.add("conversation", titles[now], chosen)


def finder(titles: Sequence[str], now: int) -> Callable[[Any], Any]:
    """Return a function that finds a conversation by number or title.

    If several titles contain the entered text, the current conversation is chosen if its title matches, otherwise the
    first match.

    Examples
    --------
    >>> find = finder(["1: Trip to Porto", "2: Bread", "3: Porto again"], 2)
    >>> find("porto"), find("BREAD"), find("1: Trip to Porto"), find(1)
    (2, 1, 0, 1)
    """

    def find(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value in titles:
            return titles.index(value)
        part = value.strip().casefold()
        places = [place for place, title in enumerate(titles) if part in title.casefold()]
        if not places:
            raise LookupError(
                f"None of the {len(titles):,} titles contains {brief(value)}. Type part of another title."
            )
        return now if now in places else places[0]

    return find
