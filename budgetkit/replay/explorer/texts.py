"""The set-up as text to take away: Python that replays the conversation, YAML and JSON of the budget."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from budgetkit.explorer.budget.texts import counter_of
from budgetkit.explorer.budget.texts import texts as budget_texts
from budgetkit.pruning.policies import Policy
from budgetkit.replay.cost import PRICED, Prices
from budgetkit.replay.explorer.results import Results
from budgetkit.replay.explorer.rules import OWN
from budgetkit.replay.explorer.settings import Settings
from budgetkit.replay.prompt_cache import CACHES
from budgetkit.trace import DEFAULT_ROLES


def texts(settings: Settings, found: Results) -> dict[str, str]:
    """Return the set-up in every format."""
    made = settings.base, found.bare.model, found.budget
    program = python(settings, found, budget_texts(*made)["python"])
    return {**budget_texts(*made, found.run.count.name), "python": program}


def python(settings: Settings, found: Results, budget: str) -> str:
    """Return a program that replays the conversation under the policy shown."""
    policy = found.policies[found.main]
    lines = [_trace(settings, found), f"policy = {_policy(policy)}", "", *_replay(settings, found)]
    program = "\n".join([budget, *lines])
    return program.replace("import budgetkit as bk\n", "\n".join([*_imports(program, policy), ""]), 1)


def _imports(program: str, policy: Policy) -> list[str]:
    names = sorted(set(re.findall(r"\b([A-Z]\w+)\(", repr(policy))) - {"Share"}) if _is_written(policy) else []
    day = ["from datetime import date", ""] if re.search(r"\bdate\(", program) else []
    roles = ["from budgetkit.trace import DEFAULT_ROLES"] if "DEFAULT_ROLES" in program else []
    policies = [f"from budgetkit.pruning.policies import {', '.join(names)}"] if names else []
    return [*day, "import budgetkit as bk", "from budgetkit.framing import framing_for", *policies, *roles]


def _is_written(policy: Policy) -> bool:
    """Tell whether a policy's repr makes it again: a callable, or a class from elsewhere, cannot be written down."""
    return type(policy).__module__.startswith("budgetkit.") and " at 0x" not in repr(policy)


def _policy(policy: Policy) -> str:
    if not _is_written(policy):
        return f"...  # put your own here: {type(policy).__name__}"
    return re.sub(r"\bShare\(", "bk.Share(", repr(policy))


def _trace(settings: Settings, found: Results) -> str:
    name = str(found.trace.source).split(", line")[0] or str(settings.base.trace)
    number = f", conversation={settings.base.conversation}" if settings.base.conversation else ""
    return f"trace = bk.load_trace({_source(settings, name)!r}{number})"


def _source(settings: Settings, name: str) -> str:
    return str(settings.base.trace) if not name or "/" not in name and "\\" not in name else name


def _replay(settings: Settings, found: Results) -> list[str]:
    run, model = found.run, found.bare.model
    arguments = [f"count={counter_of(settings.base)}", f"framing=framing_for({model.name!r})"]
    if dict(run.roles) != dict(found.budget.roles or DEFAULT_ROLES):
        kept = "budget.roles" if found.budget.roles else "DEFAULT_ROLES"
        arguments.append(f'roles={{role: section for role, section in {kept}.items() if role != "step"}}')
    arguments += [f"by={run.by!r}", f"cache={_cache(found)}", f"prices={_prices(settings, run.prices)}"]
    return ["outcome = bk.replay(", "    trace,", "    budget,", "    policy,", *(f"    {a}," for a in arguments), ")"]


def _cache(found: Results) -> str:
    if found.rules != OWN and found.run.cache == CACHES[found.rules]:
        return f"bk.prompt_cache.CACHES[{found.rules!r}]"
    return _call("bk.prompt_cache.PromptCache", found.run.cache)


def _prices(settings: Settings, prices: Prices) -> str:
    if settings.given_prices is not None:
        found = {name: getattr(prices, name) for name in PRICED}
        rest = [f"{name}=bk.cost.{price!r}" for name, price in found.items() if price is not None]
        return f"bk.cost.Prices({', '.join([repr(prices.model), *rest])})"
    day = repr(date.fromisoformat(prices.date)).removeprefix("datetime.")
    typed = [f"{name}={price!r}" for name, price in settings.prices.items()]
    return f"bk.cost.prices({', '.join([repr(prices.model), day, *typed])})"


def _call(name: str, value: Any) -> str:
    fields = value.__dataclass_fields__
    changed = [f for f in fields if getattr(value, f) != fields[f].default and f != "source"]
    return f"{name}({', '.join(f'{f}={getattr(value, f)!r}' for f in changed)})"
