"""The set-up of the conversation explorer as text to copy: Python, YAML and JSON."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from datetime import date

from budgetkit.lab.explorers.budget.notices import budget_program, counter_of, load_line
from budgetkit.lab.explorers.budget.notices import texts as budget_texts
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import OWN
from budgetkit.lab.replay.prompt_cache import CACHES
from budgetkit.pruning.policies import NAMED, Policy, System
from budgetkit.trace import DEFAULT_ROLES


def texts(stage: ConversationStage) -> dict[str, str]:
    """Return the set-up to copy, in Python, YAML and JSON."""
    base = stage.settings
    policy = stage.policies[base.main]
    program = "\n".join(
        [
            budget_program(base, stage.model, stage.budget),
            load_line(base),
            f"policy = {_policy(policy)}",
            "",
            *_replay(stage),
        ]
    )
    for module in ("datetime", "dataclasses"):
        if f"{module}." in program:
            program = f"import {module}\n{program}"
    return {**budget_texts(stage), "python": program}


def _policy(policy: Policy) -> str:
    if isinstance(policy, System) and policy == NAMED.get(policy.name, Policy)():
        return f"bk.policies.system({policy.name!r})"
    code = repr(policy)
    with suppress(SyntaxError):
        ast.parse(code, mode="eval")
        if type(policy).__module__.startswith("budgetkit."):
            code = re.sub(r"\b(?=[A-Z]\w*\()", "bk.policies.", code)
            return code.replace("policies.Share", "Share")
    return f"...  # put your own here: {type(policy).__name__}"


def _replay(stage: ConversationStage) -> list[str]:
    settings = stage.settings
    cache = f"bk.cost.CACHES[{stage.rules!r}]"
    if stage.rules == OWN or stage.cache != CACHES[stage.rules]:
        cache = f"bk.cost.{stage.cache!r}"
    prices = re.sub(r"\bPrices?\(", r"bk.cost.\g<0>", repr(stage.prices))
    if settings.given_prices is None:
        day = date.fromisoformat(stage.prices.date)
        options = {"hour": stage.cache.is_for_an_hour, **settings.prices}
        rest = "".join(f", {name}={value!r}" for name, value in options.items())
        prices = f"bk.cost.prices({stage.prices.model!r}, {day!r}{rest})"
    arguments = [
        f"counter={counter_of(settings)}",
        f"framing=bk.requests.framing_for({stage.model.name!r})",
        f"by={stage.by!r}",
        f"cache={cache}",
        f"prices={prices}",
    ]
    if dict(stage.roles) != dict(stage.budget.roles or DEFAULT_ROLES):
        roles = "budget.roles" if stage.budget.roles else "bk.trace.DEFAULT_ROLES"
        arguments.append(
            f'roles={{role: section for role, section in {roles}.items() if role != "step"}}'
        )
    budget = "budget"
    if not stage.budget.roles:
        budget = "dataclasses.replace(budget, undeclared='pool')"  # as on the page
    return [
        "outcome = bk.replay(",
        "    trace,",
        f"    {budget},",
        "    policy,",
        *(f"    {a}," for a in arguments),
        ")",
    ]
