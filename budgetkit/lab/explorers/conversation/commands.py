"""Commands that the conversation explorer alone knows: policies, prompt cache, prices, and how far it looks ahead."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from budgetkit.budget import brief
from budgetkit.budget.errors import unknown_name
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import OWN, ConversationSettings, number_of
from budgetkit.lab.replay.cost import PRICED
from budgetkit.lab.replay.prefix import By, requests_of


def choose_policies(stage: ConversationStage, names: Sequence[str]) -> ConversationSettings:
    """Put these policies side by side."""
    return stage.settings.choose(names)


def choose_main(stage: ConversationStage, name: str) -> ConversationSettings:
    """Show a policy in detail; it is chosen with it."""
    settings = stage.settings
    if name in settings.chosen:
        chosen = settings.chosen
    else:
        chosen = (*settings.chosen, name)
    return replace(settings, main=name, chosen=chosen)


def set_number(
    stage: ConversationStage,
    policy: str,
    number: str,
    value: float,
) -> ConversationSettings:
    """Give a policy another number."""
    return stage.settings.with_number(policy, number, number_of(policy, number, value))


def set_floor(
    stage: ConversationStage,
    least: int | None = None,
    unit: str | None = None,
    conflict: str | None = None,
) -> ConversationSettings:
    """Set the floor of the history, its unit and its conflict rule."""
    given: Mapping[str, Any] = {"least": least, "unit": unit, "conflict": conflict}
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(stage.settings, floor=replace(stage.settings.floor, **changes))


def choose_by(stage: ConversationStage, by: By) -> ConversationSettings:
    """Make one request a turn, or one an answer; the request on show stays in its turn."""
    request = stage.settings.request
    if request is not None:
        turns = [turn.number for turn in requests_of(stage.results.trace, by)]
        # The last request of that turn.
        request = bisect_right(turns, stage.results.turn_of(stage.results.request))
    return replace(stage.settings, by=by, request=request)


def prune_within(stage: ConversationStage, on: bool) -> ConversationSettings:
    """Let the running turn's own calls and results be pruned, or not before the turn has passed."""
    return replace(stage.settings, within=bool(on))


def choose_rules(stage: ConversationStage, name: str) -> ConversationSettings:
    """Take the prompt cache of another name; an empty one for that of the model's provider."""
    if name == OWN:
        return replace(stage.settings, rules=stage.settings.own_cache)
    return replace(stage.settings, rules=name or None)


def choose_lifetime(stage: ConversationStage, name: str) -> ConversationSettings:
    """Set the lifetime of the prompt cache; empty for its default."""
    return replace(stage.settings, lifetime=name or None)


def set_day(stage: ConversationStage, text: str) -> ConversationSettings:
    """Take the listed prices of another day; an empty text is today."""
    try:
        if text.strip():
            day = date.fromisoformat(text.strip())
        else:
            day = None
    except ValueError:
        raise ValueError(
            f"prices of {brief(text.strip())} were asked for; a day is YYYY-MM-DD; write it so"
        ) from None
    return replace(stage.settings, on=day, given_prices=None)


def type_price(
    stage: ConversationStage,
    of: str,
    price: float | None,
) -> ConversationSettings:
    """Type in a price in dollars for a million tokens; None is the listed one."""
    if of not in PRICED:
        raise LookupError(unknown_name("price", of, PRICED))
    others = {name: other for name, other in stage.settings.prices.items() if name != of}
    if price is None:
        return replace(stage.settings, prices=others)
    if not (isinstance(price, int | float) and 0 <= price <= sys.float_info.max):
        raise ValueError(
            f"a price of {brief(price)} for {of.replace('_', ' ')}; prices are dollars for a million tokens, from 0; "
            "type a number, or nothing for the listed price"
        )
    return replace(stage.settings, prices={**others, of: float(price)})


def choose_request(stage: ConversationStage, request: int) -> ConversationSettings:
    """Read another request, from 1."""
    number = int(request)
    if not 1 <= number <= stage.results.requests:
        raise ValueError(
            f"request {brief(number)} was asked for; the conversation makes 1 to {stage.results.requests:,}; "
            "choose one of them"
        )
    return replace(stage.settings, request=number)


def set_horizon(stage: ConversationStage, turns: int) -> ConversationSettings:
    """Look another number of turns ahead."""
    return replace(stage.settings, horizon=max(1, int(turns)))


def set_money(stage: ConversationStage, money: float) -> ConversationSettings:
    """Set the spending limit in US dollars; 0 for no limit."""
    if not (isinstance(money, int | float) and 0 <= money <= sys.float_info.max):
        raise ValueError(
            f"{brief(money)} was to be spent at most; that is US dollars, from 0; give such a number"
        )
    return replace(stage.settings, money=float(money))


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
