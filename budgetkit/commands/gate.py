"""check(): a budget against prompts, tool schemas and recorded conversations, for a test or a pipeline.

It fails where a section outgrows its cap, a request overruns the window, a floor is no longer there, or more
conversations are cut than were agreed to. Each failure brings the plan and what would mend it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.quoting import one_line
from budgetkit.budget.validation import unknown_section
from budgetkit.counters import counter
from budgetkit.framing import DEFAULT_FRAMING
from budgetkit.models import Model
from budgetkit.plan import Plan, allocate
from budgetkit.plan.batch import RequestBatch
from budgetkit.plan.findings import Finding, findings
from budgetkit.pruning.policies import Policy
from budgetkit.replay import replay
from budgetkit.replay.prompt_cache import CACHES, provider_rules
from budgetkit.trace.conversation import Trace
from budgetkit.trace.sections import DEFAULT_ROLES

Columns = dict[str, dict[str, Any]]
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason why a gate is closed.

    Parameters
    ----------
    code : str
        "cap", "overrun", "floor" or "cut".
    where : str
        The prompts, or the conversation and its turn.
    sentence : str
        What is wrong, with its numbers.
    detail : str
        The plan, and what would mend it.
    section : str
        The section that it is about, where it is about one.
    """

    code: str
    where: str
    sentence: str
    detail: str = ""
    section: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, [f"{self.code}: {self.where}: {self.sentence}", self.detail]))


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Parameters
    ----------
    failures : tuple of Failure
        Why the gate is closed; empty where it is open.
    findings : tuple of Finding
        What is wrong with the budget itself.
    sections : mapping
        The most that each section asks for, in tokens.
    conversations, cut : int
        How many were looked at, and how many of them lose something.
    """

    failures: tuple[Failure, ...]
    findings: tuple[Finding, ...]
    sections: Mapping[str, int]
    conversations: int = 0
    cut: int = 0

    @property
    def passed(self) -> bool:
        """Whether the gate is open."""
        return not self.failures

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.failures)) or "nothing outgrows the budget"


def check(
    budget: Budget,
    *,
    prompts: Mapping[str, str] | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    traces: Iterable[Trace] = (),
    count: Count | None = None,
    model: Model | None = None,
    policy: Policy | None = None,
    most_cut: float | None = None,
    floor: int | None = None,
    thinking: int = 0,
    today: date | None = None,
) -> Checked:
    """Check what is sent against a budget.

    Parameters
    ----------
    budget : Budget
        The budget that was agreed to.
    prompts : mapping of str to str
        The text that stands in a section of every request, by section; it takes the place of a conversation's own.
    tools : sequence of mapping
        Tool schemas of every request; they take the place of a conversation's own.
    traces : iterable of Trace
        Recorded conversations.
    count : callable, optional
        From text to tokens; o200k_base when left out.
    model, policy, thinking, today
        For the findings; see `budgetkit.plan.findings.findings`.
    most_cut : float, optional
        The greatest share of conversations that may lose something; not looked at when left out.
    floor : int, optional
        Least that is left for the budget's remainder, in tokens; its own floor when left out.

    Returns
    -------
    Checked
        The failures, the findings, and what each section asks for.

    Raises
    ------
    LookupError
        If a prompt's section, or one of a conversation, is not in the budget.
    ValueError
        If the share is none, or a floor is asked of a budget without a remainder.

    Examples
    --------
    >>> from budgetkit import Allocation
    >>> found = check(Budget(100, (), [Allocation("system", 5)]), prompts={"system": "Be brief. Be kind. Be right."})
    >>> print(found.failures[0].sentence)
    system asks for 13 tokens, 8 above its cap (5)
    """
    if most_cut is not None and not 0 <= most_cut <= 1:
        raise ValueError(f"most_cut is {most_cut}; a share lies between 0 and 1; write 10 % as 0.1")
    count = counter("o200k_base") if count is None else count
    lines = replace(budget, deficit="signed")
    floors = _floors(lines, floor)
    spoken, schemas = _fixed(lines, prompts or {}, tools, count)
    sent = {name: spoken.get(name, 0) + schemas.get(name, 0) for name in (*spoken, *schemas)}
    demands = [pd.DataFrame([sent])] if sent else []
    failures_in = partial(_failures, lines, floors)
    failures = [f for each in demands for f in failures_in("prompts and tools", each, _columns(lines, each), {*sent})]
    known = {*spoken, *(failure.section for failure in failures)}
    fixed = {*schemas, *(a.section for a in lines.allocations if a.required)} - known
    cut, lost = list[bool](), [0]
    for trace in traces:
        demands.append(asked := _asked(lines, trace, spoken, tools, count))
        columns = _columns(lines, asked)
        failures += failures_in(one_line(trace.id), asked, columns, fixed)
        cut.append(any(column["cut"].any() for column in columns.values()))
        if policy is not None:
            kept = replay(trace, replace(lines, undeclared="pool"), policy, count=count).kept
            lost += [*kept.dropped_messages, 0]
    if most_cut is not None and sum(cut) > most_cut * len(cut):
        told = f"{sum(cut):,} of {len(cut):,} are cut, above the share of {most_cut:.0%}"
        failures.append(Failure("cut", "conversations", told, "raise a cap or the window, or agree to a larger share"))
    least = 0 if model is None else CACHES[provider_rules(model)].minimum
    found_in = partial(
        findings, budget, model=model, policy=policy, thinking=thinking, today=today, cache_minimum=least
    )
    found = _found(found_in, demands, lost, sum(schemas.values()))
    return Checked(tuple(failures), found, _most(demands), len(cut), sum(cut))


def _columns(budget: Budget, demand: pd.DataFrame) -> Columns:
    return RequestBatch(demand).columns(budget)


def _found(
    found_in: Callable[..., Sequence[Finding]], demands: Sequence[pd.DataFrame], lost: list[int], tools: int
) -> tuple[Finding, ...]:
    """Find what is wrong with the budget itself, then what each demand adds to that: a code from one demand only."""
    found = list(found_in(lost=lost, tools=tools))
    for demand in demands:
        told = {each.code for each in found}
        found += [each for each in found_in(demand=demand) if each.code not in told]
    return tuple(found)


def _floors(budget: Budget, floor: int | None) -> dict[str, int]:
    if floor is None:
        return dict(budget.floors)
    if budget.remainder is None:
        raise ValueError(f"a floor of {floor:,} was asked for; this budget names no remainder; leave the floor out")
    return {**budget.floors, budget.remainder: floor}


def _fixed(
    budget: Budget, prompts: Mapping[str, str], tools: Sequence[Any], count: Count
) -> tuple[dict[str, int], dict[str, int]]:
    """Count by section the prompts, and the tool schemas, that are sent with every request."""
    if (unknown := [s for s in prompts if s not in budget.sections]) and budget.undeclared == "error":
        raise unknown_section(unknown, budget.sections)
    spoken = [{"role": "system", "content": text} for text in prompts.values()]
    sizes = dict(zip(prompts, DEFAULT_FRAMING.messages(spoken, count), strict=True))
    return sizes, _schemas(budget, tools, count)


def _schemas(budget: Budget, tools: Sequence[Any], count: Count) -> dict[str, int]:
    section = (budget.roles or DEFAULT_ROLES).get("tools", "tools")
    return {section: DEFAULT_FRAMING.schemas(list(tools), count)} if tools else {}


def _asked(budget: Budget, trace: Trace, spoken: Mapping[str, int], tools: Sequence[Any], count: Count) -> pd.DataFrame:
    """Say what a conversation asks for with the prompts and tools of today in place of its own."""
    trace = replace(trace, tools=tuple(tools)) if tools else trace
    asked = trace.demand(count, budget.roles or DEFAULT_ROLES)
    sent = _schemas(budget, trace.tools, count)
    for section, tokens in spoken.items():
        asked[section] = tokens + sent.get(section, 0)
    return asked.loc[:, [s for s in asked.columns if s in budget.sections or bool(asked[s].any())]]


def _failures(
    budget: Budget, floors: Mapping[str, int], where: str, demand: pd.DataFrame, columns: Columns, fixed: set[str]
) -> Iterator[Failure]:
    """Give each failure once, at the request where it is worst."""
    for section, column in columns.items():
        cap = budget.caps.get(section)
        over = column["demand"] - (column["limit"] if cap is None else cap)
        if section in fixed and (worst := int(over.argmax())) >= 0 and over[worst] > 0:
            limit = f"its cap ({cap:,})" if cap is not None else f"what is left for it ({column['limit'][worst]:,})"
            told = f"{one_line(section)} asks for {column['demand'][worst]:,} tokens, {over[worst]:,} above {limit}"
            yield _failure("cap", where, told, budget, demand, worst, section)
    free = _free(budget, columns)
    if (worst := int(free.argmin())) >= 0 and free[worst] < 0:
        told = f"a request overruns the window ({budget.window:,}) by {-free[worst]:,} tokens"
        yield _failure("overrun", where, told, budget, demand, worst)
    for section, floor in floors.items():
        limit = columns[section]["limit"]
        if (worst := int(limit.argmin())) >= 0 and limit[worst] < floor:
            told = f"{one_line(section)} has {max(0, limit[worst]):,} tokens left, below its floor ({floor:,})"
            failure = _failure("floor", where, told, budget, demand, worst, section)
            wide = (budget.caps[section] or floor) >= floor
            mend = "lower a reserve, or shorten what is asked before it" if wide else f"raise its cap to {floor:,}"
            yield replace(failure, detail=f"{failure.detail}\n- {mend[0].upper()}{mend[1:]}.")


def _free(budget: Budget, columns: Columns) -> Any:
    """Return the tokens that each request leaves free, below 0 where it overruns the window."""
    used = sum(column["granted"] for column in columns.values())
    held = sum(np.minimum(columns[section]["granted"], tokens) for section, tokens in budget.held.items())
    return budget.window - budget.reserved - used + held + np.zeros(1, dtype=np.int64)


def _failure(
    code: str, where: str, told: str, budget: Budget, demand: pd.DataFrame, row: int, section: str | None = None
) -> Failure:
    plan = allocate(budget, {str(name): int(demand[name].iloc[row]) for name in demand})
    turn = f", turn {demand.index[row]}" if demand.index.name == "turn" else ""
    return Failure(code, where + turn, told, explained(plan, section), section or "")


def explained(plan: Plan, section: str | None = None) -> str:
    """Write a plan as text, with its warnings and the single changes that would mend a section."""
    rows = [f"  {one_line(g.section)}: {g.granted:,} of {g.demand:,}, limit {g.limit:,}" for g in plan.grants]
    mends = [f"- {mend.sentence}" for mend in plan.why(section).mends] if section else []
    return "\n".join([f"Plan of {plan.budget.window:,} tokens, {plan.free:,} free:", *rows, *plan.warnings, *mends])


def _most(demands: Sequence[pd.DataFrame]) -> dict[str, int]:
    """Return the most that each section ever asks for."""
    most: dict[str, int] = {}
    for demand in demands:
        for section in demand:
            most[str(section)] = max(most.get(str(section), 0), int(demand[section].max()))
    return most
