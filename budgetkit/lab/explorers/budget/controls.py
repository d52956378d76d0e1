"""Controls of a budget: model and window, a line for each share of the window, the conversation and its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from budgetkit.budget import Amount, Share, brief
from budgetkit.budget.html import colour
from budgetkit.counters import encoding_names
from budgetkit.lab.explorers.budget.charts import BESIDE_SHORT
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import (
    OWN,
    amounts_of,
    known_presets,
    longest_window,
    window_stops,
)
from budgetkit.lab.explorers.panel import Number, Panel, command
from budgetkit.lab.explorers.stage import AnyStage
from budgetkit.models import models

FEW = 5  # conversations that are found at a glance
LIMITED = "output"
RATIOS = ("chars/4", "chars/3.5", "bytes/4", "utf16/4")
STEP = 0.5  # percent of the window
TYPED_IN = "typed in below"


def controls(stage: BudgetStage) -> Panel:
    """Return the controls of the budget explorer."""
    settings = stage.settings
    results = stage.results
    budget = results.plan.budget
    panel = Panel(
        counters=[*encoding_names(), *RATIOS],
        traces=[(None, TYPED_IN), *((name, name) for name in stage.library.conversations.names)],
    )
    demand = results.demand
    has_trace = demand is not None and settings.trace is not None
    panel.group("")
    if has_trace:
        add_conversations(panel, stage)
    panel.group("Model and window")
    add_model(panel, stage)
    panel.group("Reserves")
    add_lines(panel, stage, [name for name in amounts(stage) if name not in budget.sections])
    panel.group("Sections")
    add_lines(panel, stage, budget.sections)
    panel.group("")
    if has_trace and demand is not None:
        add_place(panel, "turn", "Turn", results.turn or 1, len(demand))
    panel.group("Sizes asked for")
    for grant in () if has_trace else results.plan.grants:
        number = Number(grant.demand, whole=budget.window)
        typed = command("demand", "tokens", number.read, section=grant.section)
        tip = f"Size that {grant.section} asks for, in tokens"
        panel.number(f"demand_{grant.section}", grant.section, number, typed, half=False, tip=tip)
    panel.group("Conversation and counter", folds=True)
    add_trace(panel, stage)
    panel.text(
        "compare", "Compare with", settings.cheap, command("compare", "name"), among="counters"
    )
    return panel


def add_model(panel: Panel, stage: BudgetStage) -> None:
    """Add the controls of model, preset and window."""
    settings = stage.settings
    model = stage.results.model
    budget = stage.results.plan.budget
    own = [(OWN, budget.name or "my own budget")] if settings.own is not None else []
    # A window that was typed has a stop of its own, beyond the model's too.
    stops = sorted({*window_stops(longest_window(model, budget.kind)), budget.window})
    panel.choices |= {
        "models": [listed.name for listed in models()],
        "presets": [*((name, title) for title, name in known_presets()), *own],
        "windows": [(stop, f"{stop:,}") for stop in stops],
    }
    hint = "type to search"
    named = command("model", "name")
    panel.text("model", "Model", settings.model, named, among="models", hint=hint)
    panel.choice("preset", "Preset", settings.preset, command("preset", "name"), "presets")
    number = Number(budget.window, 1)
    slide = {"among": "windows", "value": budget.window}
    sized = command("line", "tokens", number.read, line="window")
    panel.line("window", "Window", slide, number, sized)


def amounts(stage: BudgetStage) -> dict[str, Amount | None]:
    """Return the amount of each line that has a slider."""
    return amounts_of(stage.results.plan.budget, stage.settings.base(stage.results.model))


def add_lines(
    panel: Panel, stage: BudgetStage, names: Sequence[str], can_lock: bool = True
) -> None:
    """Add a slider and a box for each of these lines."""
    settings = stage.settings
    budget = stage.results.plan.budget
    window = budget.window
    for name, amount in amounts(stage).items():
        if name not in names:
            continue
        is_section = name in budget.caps
        tokens = {**budget.sizes, **budget.caps}.get(name, 0)
        size = window if tokens is None else tokens
        # A share stands at its own ratio, or at the size that a limit holds it to.
        ratio = size / max(1, window)
        if isinstance(amount, Share) and Share(amount.ratio).of(window) == size:
            ratio = float(amount.ratio)
        percent = min(100.0, round(100 * ratio / STEP) * STEP)
        # A cap of the whole window is none, and the box is empty then.
        number = Number(
            tokens,
            budget.floors.get(name, 0),
            max(window - 1 if is_section else window, tokens or 0),
            whole=window,
            may_be_empty=is_section,
            keeps_share=isinstance(amount, Share) or name == LIMITED,
        )
        is_beside = name == LIMITED and budget.kind != "shared"
        locked = name in settings.locks
        empty = "; empty: it draws on the shared pool" if is_section else ""
        panel.line(
            f"line_{name}",
            f"{name}, {BESIDE_SHORT[budget.kind]}" if is_beside else name,
            {"max": 100, "step": STEP, "value": percent, "of": window, "line": name},
            number,
            command("size", "size", number.read, line=name),
            tip=f"{name}, in percent of the window",
            box_tip=f"{name}, in tokens{empty}",
            share="pool" if tokens is None else f"{100 * size / max(1, window):.3g} %",
            color=colour(name),
            hint="no cap" if is_section else "",
            locked=locked,
            **({"lock": f"lock_{name}"} if can_lock else {}),
        )
        if not can_lock:
            continue
        panel.inputs[f"lock_{name}"] = command("lock", "on", line=name)
        if name == LIMITED:
            share = amount if isinstance(amount, Share) else Share(0)
            most = window if share.at_most is None else share.at_most
            limits = {"at_least": share.at_least, "at_most": most}
            for limit, tip in (
                ("at_least", f"Smallest {name} reserve"),
                ("at_most", f"Largest {name} reserve"),
            ):
                number = Number(limits[limit], 0, window, whole=window)
                others = {other: value for other, value in limits.items() if other != limit}
                limited = command("limits", limit, number.read, line=name, **others)
                label = limit.replace("_", " ")
                panel.number(limit, label, number, limited, tip=f"{tip}, in tokens", locked=locked)


def add_place(panel: Panel, key: str, label: str, now: int, last: int) -> None:
    """Add the slider that goes through a conversation."""
    number = Number(now, 1, last)
    slide = {"min": 1, "max": last, "step": 1, "value": now}
    panel.line(
        key, label, slide, number, command(key, key, number.read), box_tip=f"{label}, by its number"
    )


def add_trace(panel: Panel, stage: AnyStage) -> None:
    """Add the controls of the file and of the plan's counter."""
    settings = stage.settings.budget_settings
    model = stage.budget.results.model
    best = model.encoding if model.encoding_is_own else ""
    panel.choice("trace", "From", settings.trace, command("trace", "name"), "traces")
    path = command("path", "path")
    panel.text("path", "File", settings.path, path, hint="path of a session")
    counted = command("counter", "name")
    hint = "the best known"
    panel.text(
        "counter", "Plan with", settings.counter or best, counted, among="counters", hint=hint
    )


def add_conversations(panel: Panel, stage: AnyStage) -> None:
    """Add a list of few conversations, or a search among many."""
    settings = stage.settings.budget_settings
    now = settings.conversation
    name = str(settings.trace)
    traces = stage.library.conversations(name)
    if len(traces) < 2:
        return
    # Every move of a slider comes here, and an export may have thousands of titles.
    titles = stage.library.once(
        ("titles", name), lambda: [f"{i + 1}: {trace.title}" for i, trace in enumerate(traces)]
    )
    chosen = command("conversation", "number", finder(titles, now))
    if len(titles) <= FEW:
        panel.choices["titles"] = [*enumerate(titles)]
        panel.choice("conversation", "Which", now, chosen, "titles")
    else:
        panel.choices["titles"] = titles
        hint = "a part of its title"
        panel.text("conversation", "Which", titles[now], chosen, among="titles", hint=hint)


def finder(titles: Sequence[str], now: int) -> Callable[[Any], Any]:
    """Return a function that finds a conversation by number or title.

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
                f"No title of the {len(titles):,} has {brief(value)}. Type another part of it."
            )
        return now if now in places else places[0]

    return find
