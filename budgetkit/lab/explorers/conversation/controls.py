"""Controls and commands of the conversation explorer."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Literal

from budgetkit.budget import brief, quoted
from budgetkit.budget.errors import out_of_range, unknown_name
from budgetkit.lab.explorers.budget.controls import (
    RATIOS,
    add_conversations,
    add_lines,
    add_model,
    add_place,
    add_trace,
    check_place,
)
from budgetkit.lab.explorers.conversation.charts import lanes
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import (
    CHOICES,
    LIFETIMES,
    LONGEST,
    OWN,
    ConversationSettings,
    label_of,
)
from budgetkit.lab.explorers.panel import Input, Number, Panel
from budgetkit.lab.replay.cost import PRICED
from budgetkit.lab.replay.prefix import By, requests_of
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache
from budgetkit.message import Data
from budgetkit.pruning.policies import SYSTEMS


def choose_policies(stage: ConversationStage, names: Sequence[str]) -> ConversationSettings:
    """Choose the policies to compare."""
    chosen = tuple(dict.fromkeys(names))
    if not chosen:
        raise ValueError("No policy is chosen. Choose at least one.")
    main = stage.settings.main
    return replace(stage.settings, chosen=chosen, main=main if main in chosen else chosen[0])


def choose_main(stage: ConversationStage, name: str) -> ConversationSettings:
    """Show a policy in detail, and add it to the compared policies."""
    settings = stage.settings
    return replace(settings, main=name, chosen=tuple(dict.fromkeys([*settings.chosen, name])))


def set_number(
    stage: ConversationStage,
    policy: str,
    number: str,
    value: float,
) -> ConversationSettings:
    """Set a parameter of a policy."""
    known = CHOICES[policy].parameters if policy in CHOICES else {}
    if number not in known:
        fix = f"Choose one of: {quoted(known)}." if known else "Choose another policy."
        raise LookupError(f"Policy {brief(policy)} has no parameter {brief(number)}. {fix}")
    bounds = known[number]
    if not (value == value // 1 and bounds.low <= value <= bounds.high):
        limits = f"a whole number of {bounds.unit} from {bounds.low:,} to {bounds.high:,}"
        raise ValueError(out_of_range(f"{bounds.label} of {brief(policy)}", value, limits))
    parameters = stage.settings.parameters
    numbers = {**parameters.get(policy, {}), number: int(value)}
    return replace(stage.settings, parameters={**parameters, policy: numbers})


def set_floor(
    stage: ConversationStage, part: Literal["least", "unit", "conflict"], value: int | str
) -> ConversationSettings:
    """Set the floor of the history, its unit or its conflict rule."""
    change: Data = {part: value}
    return replace(stage.settings, floor=replace(stage.settings.floor, **change))


def choose_by(stage: ConversationStage, by: By) -> ConversationSettings:
    """Choose one request per turn or answer, staying in the shown turn."""
    request = stage.settings.request
    if request is not None:
        turns = [turn.number for turn in requests_of(stage.trace, by)]
        # The last request of that turn.
        request = bisect_right(turns, stage.turn_of(stage.request))
    return replace(stage.settings, by=by, request=request)


def prune_within(stage: ConversationStage, on: bool) -> ConversationSettings:
    """Choose whether the current turn's calls and results can be pruned."""
    return replace(stage.settings, within=on)


def choose_rules(stage: ConversationStage, name: str) -> ConversationSettings:
    """Choose a prompt cache, or the provider's cache if `name` is empty."""
    rules = stage.settings.own_cache if name == OWN else name or None
    return replace(stage.settings, rules=rules)


def choose_lifetime(stage: ConversationStage, name: str) -> ConversationSettings:
    """Set the prompt cache's lifetime, or its default if `name` is empty."""
    return replace(stage.settings, lifetime=name or None)


def set_day(stage: ConversationStage, text: str) -> ConversationSettings:
    """Use the prices of another day, or today's if `text` is empty."""
    try:
        day = date.fromisoformat(text.strip()) if text.strip() else None
    except ValueError:
        raise ValueError(
            f"Invalid date {brief(text.strip())}. Write it as YYYY-MM-DD, such as 2026-01-31."
        ) from None
    return replace(stage.settings, on=day, given_prices=None)


def type_price(
    stage: ConversationStage,
    of: str,
    price: float | None,
) -> ConversationSettings:
    """Set a price in US dollars per million tokens.

    If `price` is None, the listed price is used.
    """
    if of not in PRICED:
        raise LookupError(unknown_name("price", of, PRICED))
    prices = {**stage.settings.prices}
    prices.pop(of, None)
    if price is None:
        return replace(stage.settings, prices=prices)
    if not 0 <= price < math.inf:
        limits = "dollars per million tokens, 0 or more, or nothing for the listed price"
        raise ValueError(out_of_range(f"price for {of.replace('_', ' ')}", price, limits))
    return replace(stage.settings, prices={**prices, of: price})


def choose_request(stage: ConversationStage, request: int) -> ConversationSettings:
    """Choose a request, counting from 1."""
    return replace(stage.settings, request=check_place("request", request, stage.request_count))


def set_horizon(stage: ConversationStage, turns: int) -> ConversationSettings:
    """Set the number of turns to forecast."""
    return replace(stage.settings, horizon=max(1, turns))


def set_money(stage: ConversationStage, money: float) -> ConversationSettings:
    """Set the spending limit in US dollars; 0 means no limit."""
    if not 0 <= money < math.inf:
        raise ValueError(out_of_range("spending limit", money, "US dollars, 0 or more"))
    return replace(stage.settings, money=money)


COMMANDS: Mapping[str, Callable[..., ConversationSettings]] = {
    "policies": choose_policies,
    "main": choose_main,
    "number": set_number,
    "floor": set_floor,
    "by": choose_by,
    "within": prune_within,
    "rules": choose_rules,
    "lifetime": choose_lifetime,
    "day": set_day,
    "price": type_price,
    "request": choose_request,
    "horizon": set_horizon,
    "money": set_money,
}


MOST_TURNS = 10_000  # maximum number of turns to forecast


def controls(stage: ConversationStage) -> Panel:
    """Return the controls of the conversation explorer."""
    settings = stage.settings
    own = ((OWN, OWN),) if settings.own_cache else ()
    panel = Panel(
        "conversation",
        counters=[stage.model.encoding, *RATIOS],
        traces=[(name, name) for name in stage.library.conversations.names],
        policies=[
            *((name, c.label, c.says, name in SYSTEMS) for name, c in CHOICES.items()),
            *((name, name, "", False) for name in settings.given),
        ],
        rules=[("", "the model provider's rules"), *((name, name) for name in CACHES), *own],
        lifetimes=[("", "the default of the rules"), *((name, name) for name in LIFETIMES)],
    )
    panel.group()
    add_conversations(panel, stage)
    panel.group(under=True)
    words = {"label": "Turn", "box_tip": "Turn number"} if stage.by == "turn" else {}
    add_place(panel, "request", stage.request, stage.request_count, **words)
    panel.group(under=True)
    panel.add("policies", settings.chosen, lanes=lanes(stage))
    panel.inputs["main"] = Input("main")
    panel.group(label_of(settings.main))
    _add_numbers(panel, stage)
    panel.group("Budget")
    add_model(panel, stage)
    # No locks are needed, because no command here moves another line.
    add_lines(panel, stage, ("output", stage.section), can_lock=False)
    panel.group("Conversation", folds=True)
    add_trace(panel, stage)
    panel.add("by", stage.by)
    panel.add("within", settings.within)
    panel.group("Smallest history", folds=True)
    floor = settings.floor
    for part, value in (
        ("least", Number(floor.least, 1)),
        ("unit", floor.unit),
        ("conflict", floor.conflict),
    ):
        panel.add(part, value, Input("floor", {"part": part}))
    panel.group(
        "Prompt cache and prices",
        folds=True,
        rules=OWN if isinstance(settings.rules, PromptCache) else settings.rules or "",
        lifetime=settings.lifetime or "",
        day=settings.on.isoformat() if settings.on else "",
    )
    for name in PRICED:
        price = getattr(stage.prices, name)
        number = Number(price and price.base, most=1e9, is_whole=False, may_be_empty=True)
        panel.add(f"price_{name}", number, Input("price", {"of": name}))
    panel.group("Forecast", folds=True)
    slide = {"min": 10, "max": LONGEST, "step": 10, "value": round(stage.horizon, -1)}
    panel.add("horizon", Number(stage.horizon, 1, MOST_TURNS), slide=slide)
    panel.add("money", Number(settings.money, most=1e9, is_whole=False))
    return panel


def _add_numbers(panel: Panel, stage: ConversationStage) -> None:
    """Add a slider for each parameter of the policy shown in detail."""
    policy = stage.settings.main
    parameters = CHOICES[policy].parameters if policy in CHOICES else {}
    values = stage.settings.parameters.get(policy, {})
    for name, parameter in parameters.items():
        value = values.get(name, parameter.default)
        number = Number(value, parameter.low, parameter.high)
        unit = "%" if parameter.unit == "percent" else parameter.unit
        label = parameter.label if parameter.label == unit else f"{parameter.label}, {unit}"
        ends = {"min": parameter.low, "max": parameter.high}
        slide = {**ends, "step": parameter.step, "value": value}
        typed = Input("number", {"policy": policy, "number": name})
        tip = f"{policy}: {parameter.label}, in {parameter.unit}"
        panel.add(name, number, typed, slide, label=label, tip=tip, box_tip=tip)
