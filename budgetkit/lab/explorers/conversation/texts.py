"""Texts: the set-up as YAML, JSON and Python, to copy."""

from __future__ import annotations

import ast
import re
from datetime import date
from typing import Any

from budgetkit.lab.explorers.budget.notices import budget_program, counter_of
from budgetkit.lab.explorers.budget.notices import texts as budget_texts
from budgetkit.lab.explorers.conversation.results import ConversationResults, ConversationStage
from budgetkit.lab.explorers.conversation.settings import OWN, ConversationSettings
from budgetkit.lab.replay.cost import PRICED, Prices
from budgetkit.lab.replay.prompt_cache import CACHES
from budgetkit.pruning.policies import NAMED, Policy, System
from budgetkit.trace import DEFAULT_ROLES


def texts(stage: ConversationStage) -> dict[str, str]:
    """Return the set-up as text to copy, by format."""
    results = stage.results
    base = stage.settings.budget_settings
    budget = budget_program(base, results.budget_results.model, results.budget)
    return {**budget_texts(stage.budget), "python": replay_program(stage.settings, results, budget)}


def replay_program(
    settings: ConversationSettings, results: ConversationResults, budget: str
) -> str:
    """Return a program that replays the conversation under the policy shown."""
    policy = results.policies[results.main]
    lines = [
        _trace(settings, results),
        f"policy = {_policy(policy)}",
        "",
        *_replay(settings, results),
    ]
    program = "\n".join([budget, *lines])
    return program.replace(
        "import budgetkit as bk\n", "\n".join([*_imports(program, policy), ""]), 1
    )


def _imports(program: str, policy: Policy) -> list[str]:
    lines = ["import budgetkit as bk", "from budgetkit.requests import framing_for"]
    if re.search(r"\bdate\(", program):
        lines = ["from datetime import date", "", *lines]
    if _is_written(policy) and not isinstance(policy, System):
        names = sorted(set(re.findall(r"\b([A-Z]\w+)\(", repr(policy))) - {"Share"})
        if names:
            lines.append(f"from budgetkit.pruning.policies import {', '.join(names)}")
    if "DEFAULT_ROLES" in program:
        lines.append("from budgetkit.trace import DEFAULT_ROLES")
    return lines


def _is_written(policy: Policy) -> bool:
    """Return True if a policy can be rebuilt from its repr."""
    if not type(policy).__module__.startswith("budgetkit."):
        return False
    try:
        ast.parse(repr(policy), mode="eval")
    except SyntaxError:
        return False
    return True


def _policy(policy: Policy) -> str:
    if isinstance(policy, System) and policy == NAMED.get(policy.name, Policy)():
        return f"bk.policies.system({policy.name!r})"
    if not _is_written(policy):
        return f"...  # put your own here: {type(policy).__name__}"
    return re.sub(r"\bShare\(", "bk.Share(", repr(policy))


def _trace(settings: ConversationSettings, results: ConversationResults) -> str:
    name = str(results.trace.source).split(", line")[0] or str(settings.budget_settings.trace)
    number = ""
    if settings.budget_settings.conversation:
        number = f", conversation={settings.budget_settings.conversation}"
    return f"trace = bk.load_trace({_source(settings, name)!r}{number})"


def _source(settings: ConversationSettings, name: str) -> str:
    if not name or "/" not in name and "\\" not in name:
        return str(settings.budget_settings.trace)
    return name


def _replay(settings: ConversationSettings, results: ConversationResults) -> list[str]:
    run = results.run
    model = results.budget_results.model
    arguments = [
        f"counter={counter_of(settings.budget_settings)}",
        f"framing=framing_for({model.name!r})",
    ]
    if dict(run.roles) != dict(results.budget.roles or DEFAULT_ROLES):
        roles = "DEFAULT_ROLES"
        if results.budget.roles:
            roles = "budget.roles"
        arguments.append(
            f'roles={{role: section for role, section in {roles}.items() if role != "step"}}'
        )
    arguments += [
        f"by={run.by!r}",
        f"cache={_cache(results)}",
        f"prices={_prices(settings, run.prices)}",
    ]
    return [
        "outcome = bk.replay(",
        "    trace,",
        "    budget,",
        "    policy,",
        *(f"    {a}," for a in arguments),
        ")",
    ]


def _cache(results: ConversationResults) -> str:
    if results.rules != OWN and results.run.cache == CACHES[results.rules]:
        return f"bk.cost.CACHES[{results.rules!r}]"
    return _call("bk.cost.PromptCache", results.run.cache)


def _prices(settings: ConversationSettings, prices: Prices) -> str:
    if settings.given_prices is not None:
        results = {name: getattr(prices, name) for name in PRICED}
        rest = [f"{name}=bk.cost.{price!r}" for name, price in results.items() if price is not None]
        return f"bk.cost.Prices({', '.join([repr(prices.model), *rest])})"
    day = repr(date.fromisoformat(prices.date)).removeprefix("datetime.")
    typed = [f"{name}={price!r}" for name, price in settings.prices.items()]
    return f"bk.cost.prices({', '.join([repr(prices.model), day, *typed])})"


def _call(name: str, value: Any) -> str:
    fields = value.__dataclass_fields__
    changed = [f for f in fields if getattr(value, f) != fields[f].default and f != "source"]
    return f"{name}({', '.join(f'{f}={getattr(value, f)!r}' for f in changed)})"
