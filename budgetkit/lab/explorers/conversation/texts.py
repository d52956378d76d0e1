"""The set-up of the conversation explorer as text to copy: Python, YAML and JSON."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import fields
from datetime import date

from budgetkit.lab.explorers.budget.notices import budget_program, counter_of
from budgetkit.lab.explorers.budget.notices import texts as budget_texts
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import OWN
from budgetkit.lab.replay.cost import PRICED
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache
from budgetkit.pruning.policies import NAMED, Policy, System
from budgetkit.trace import DEFAULT_ROLES


def texts(stage: ConversationStage) -> dict[str, str]:
    """Return the set-up to copy, in Python, YAML and JSON."""
    base = stage.settings
    budget = budget_program(base, stage.model, stage.budget)
    policy = stage.policies[stage.settings.main]
    # The file that the conversation is in, with its path if it is known.
    name = str(stage.trace.source).split(", line")[0]
    if "/" not in name and "\\" not in name:
        name = str(base.trace)
    number = f", conversation={base.conversation}" if base.conversation else ""
    program = "\n".join(
        [
            budget,
            f"trace = bk.load_trace({name!r}{number})",
            f"policy = {_policy(policy)}",
            "",
            *_replay(stage),
        ]
    )
    lines = ["import budgetkit as bk", "from budgetkit.requests import framing_for"]
    if re.search(r"\bdate\(", program):
        lines = ["from datetime import date", "", *lines]
    if _is_written(policy) and not isinstance(policy, System):
        names = sorted(set(re.findall(r"\b([A-Z]\w+)\(", repr(policy))) - {"Share"})
        if names:
            lines.append(f"from budgetkit.pruning.policies import {', '.join(names)}")
    if "DEFAULT_ROLES" in program:
        lines.append("from budgetkit.trace import DEFAULT_ROLES")
    program = program.replace("import budgetkit as bk\n", "\n".join([*lines, ""]), 1)
    return {**budget_texts(stage), "python": program}


def _is_written(policy: Policy) -> bool:
    """Return True if a policy can be rebuilt from its repr."""
    with suppress(SyntaxError):
        ast.parse(repr(policy), mode="eval")
        return type(policy).__module__.startswith("budgetkit.")
    return False


def _policy(policy: Policy) -> str:
    if isinstance(policy, System) and policy == NAMED.get(policy.name, Policy)():
        return f"bk.policies.system({policy.name!r})"
    if not _is_written(policy):
        return f"...  # put your own here: {type(policy).__name__}"
    return re.sub(r"\bShare\(", "bk.Share(", repr(policy))


def _replay(stage: ConversationStage) -> list[str]:
    settings = stage.settings
    model = stage.model
    cache = f"bk.cost.CACHES[{stage.rules!r}]"
    if stage.rules == OWN or stage.cache != CACHES[stage.rules]:
        # The fields that differ from their defaults, without the source.
        defaults = {f.name: f.default for f in fields(PromptCache) if f.name != "source"}
        values = {name: getattr(stage.cache, name) for name in defaults}
        changed = [f"{f}={value!r}" for f, value in values.items() if value != defaults[f]]
        cache = f"bk.cost.PromptCache({', '.join(changed)})"
    arguments = [
        f"counter={counter_of(settings)}",
        f"framing=framing_for({model.name!r})",
    ]
    if dict(stage.roles) != dict(stage.budget.roles or DEFAULT_ROLES):
        roles = "budget.roles" if stage.budget.roles else "DEFAULT_ROLES"
        arguments.append(
            f'roles={{role: section for role, section in {roles}.items() if role != "step"}}'
        )
    arguments += [
        f"by={stage.by!r}",
        f"cache={cache}",
        f"prices={_prices(stage)}",
    ]
    return [
        "outcome = bk.replay(",
        "    trace,",
        "    budget,",
        "    policy,",
        *(f"    {a}," for a in arguments),
        ")",
    ]


def _prices(stage: ConversationStage) -> str:
    settings = stage.settings
    prices = stage.prices
    if settings.given_prices is not None:
        call = "bk.cost.Prices"
        known = [(name, getattr(prices, name)) for name in PRICED]
        rest = [f"{name}=bk.cost.{price!r}" for name, price in known if price is not None]
    else:
        call = "bk.cost.prices"
        rest = [repr(date.fromisoformat(prices.date)).removeprefix("datetime.")]
        rest += ["hour=True"] * stage.cache.is_for_an_hour
        rest += [f"{name}={price!r}" for name, price in settings.prices.items()]
    return f"{call}({', '.join([repr(prices.model), *rest])})"
