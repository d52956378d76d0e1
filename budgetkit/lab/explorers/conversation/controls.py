"""Controls of the conversation explorer: the request, rules and their numbers, the budget, cache and prices."""

from __future__ import annotations

from budgetkit.lab.explorers.budget.controls import (
    RATIOS,
    add_conversations,
    add_lines,
    add_model,
    add_place,
    add_trace,
)
from budgetkit.lab.explorers.conversation.charts import lanes
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import (
    CHOICES,
    LIFETIMES,
    LONGEST,
    OWN,
    SAYS,
    label_of,
)
from budgetkit.lab.explorers.panel import Number, Panel, command
from budgetkit.lab.replay.cost import PRICED
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache
from budgetkit.pruning.policies import SYSTEMS

MOST_TURNS = 10_000  # that a forecast looks ahead


def controls(stage: ConversationStage) -> Panel:
    """Return the controls of the conversation explorer."""
    settings = stage.settings
    results = stage.results
    names = (*CHOICES, *settings.given)
    own = ((OWN, OWN),) if settings.own_cache else ()
    panel = Panel(
        counters=[results.budget_results.model.encoding, *RATIOS],
        traces=[(name, name) for name in stage.library.conversations.names],
        policies=[(name, label_of(name), SAYS.get(name, ""), name in SYSTEMS) for name in names],
        by=[("turn", "a turn"), ("request", "an answer")],
        within=[(True, "earlier turns and this one"), (False, "earlier turns only")],
        units=[(unit, unit) for unit in ("messages", "turns", "tokens")],
        conflicts=[
            ("exceed", "exceed the limit"),
            ("shrink", "shrink the others"),
            ("raise", "refuse"),
        ],
        rules=[("", "as the model's provider"), *((name, name) for name in CACHES), *own],
        lifetimes=[("", "as the rules say"), *((name, name) for name in LIFETIMES)],
    )
    panel.group("")
    add_conversations(panel, stage)
    panel.group("", under=True)
    place = "Turn" if results.run.by == "turn" else "Request"
    add_place(panel, "request", place, results.request, results.requests)
    panel.group("", under=True)
    rules = {"value": settings.chosen, "among": "policies", "lanes": lanes(results)}
    panel.add("policies", "rules", "Rules compared", command("policies", "names"), rules)
    panel.inputs["main"] = command("main", "name")
    panel.group(label_of(settings.main))
    add_numbers(panel, stage)
    panel.group("Budget")
    add_model(panel, stage.budget)
    lines = ("output", results.section)
    # There is nothing here that moves another line.
    add_lines(panel, stage.budget, lines, can_lock=False)
    panel.group("Conversation", folds=True)
    add_trace(panel, stage)
    panel.choice("by", "A request for", results.run.by, command("by", "by"), "by")
    panel.choice("within", "Prunes", settings.within, command("within", "on"), "within")
    panel.group("What always stays", folds=True)
    least = Number(settings.floor.least, 1)
    tip = "What stays whatever happens"
    panel.number("least", "Keep at least", least, command("floor", "least", least.read), tip=tip)
    panel.choice("unit", "of", settings.floor.unit, command("floor", "unit"), "units", half=True)
    conflict = command("floor", "conflict")
    panel.choice("conflict", "If it won't fit", settings.floor.conflict, conflict, "conflicts")
    add_cache(panel, stage)
    panel.group("Forecast", folds=True)
    turns = Number(results.horizon, 1, MOST_TURNS)
    slide = {"min": 10, "max": LONGEST, "step": 10, "value": round(results.horizon, -1)}
    ahead = command("horizon", "turns", turns.read)
    panel.line("horizon", "Turns ahead", slide, turns, ahead, box_tip="Turns to look ahead")
    money = Number(settings.money, most=1e9, is_whole=False)
    tip = "What may be spent, in dollars"
    panel.number(
        "money", "May cost, $", money, command("money", "money", money.read), tip=tip, half=False
    )
    return panel


def add_numbers(panel: Panel, stage: ConversationStage) -> None:
    """Add a slider for each number of the policy that is shown in detail."""
    policy = stage.settings.main
    parameters = CHOICES[policy].parameters if policy in CHOICES else {}
    values = stage.settings.parameters.get(policy, {})
    for name, parameter in parameters.items():
        value = values.get(name, parameter.default)
        number = Number(value, parameter.low, parameter.high)
        unit = "%" if parameter.unit == "percent" else parameter.unit
        label = parameter.label if parameter.label == unit else f"{parameter.label}, {unit}"
        slide = {
            "min": parameter.low,
            "max": parameter.high,
            "step": parameter.step,
            "value": value,
        }
        typed = command("number", "value", number.read, policy=policy, number=name)
        tip = f"{policy}: {parameter.label}, in {parameter.unit}"
        panel.line(name, label, slide, number, typed, tip=tip, box_tip=tip)


def add_cache(panel: Panel, stage: ConversationStage) -> None:
    """Add the controls of the prompt cache and of the prices."""
    settings = stage.settings
    panel.group("Prompt cache and prices", folds=True)
    rules = OWN if isinstance(settings.rules, PromptCache) else settings.rules or ""
    panel.choice("rules", "Rules", rules, command("rules", "name"), "rules")
    lifetime = command("lifetime", "name")
    panel.choice("lifetime", "Lifetime", settings.lifetime or "", lifetime, "lifetimes")
    day = settings.on.isoformat() if settings.on else ""
    panel.text("day", "Prices of", day, command("day", "text"), hint="today")
    for name in PRICED:
        price = getattr(stage.results.run.prices, name)
        number = Number(price and price.base, most=1e9, is_whole=False, may_be_empty=True)
        label = name.replace("_", " ")
        tip = f"Price for {label}, in dollars for a million tokens"
        priced = command("price", "price", number.read, of=name)
        panel.number(f"price_{name}", label, number, priced, tip=tip, hint="not known")
