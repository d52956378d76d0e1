"""findings(): what is wrong with a budget before any request is planned, each with a code, a sentence and the mend.

    trigger reached   <=>  mark(trigger) <= most that the base can hold
    target holds      <=>  mark(target) > what stands there whatever is cut

What one plan loses is said by its warnings; what is found here is wrong with the numbers themselves, or with a whole
conversation. The shares below are choices of this module, not measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

import numpy as np
import pandas as pd

from budgetkit.budget import Budget
from budgetkit.budget.amounts import Share, tokens_of
from budgetkit.budget.quoting import one_line
from budgetkit.budget.validation import OUTPUT
from budgetkit.plan.advice import missing_answer, overcommitted, unused_answers
from budgetkit.plan.allocating import allocate_frame

LEAST_USABLE: Final = Share("0.01")
MOST_TOOLS: Final = Share("0.25")
LONGEST_RUN: Final = 5  # requests one after the other that each lose something
MOST_DAYS: Final = 365
#: What mends an estimate without a buffer.
ADD_BUFFER: Final = 'add one, such as Reserve("safety", Share(0.1))'


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a budget.

    Parameters
    ----------
    code : str
        Its name, one of `CODES`.
    sentence : str
        What is wrong, with its numbers.
    mend : str
        What to do.
    """

    code: str
    sentence: str
    mend: str

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}; {self.mend}."


@dataclass(frozen=True)
class _Case:
    """What is looked at; a check that lacks what it needs finds nothing."""

    budget: Budget
    model: Any = None
    policy: Any = None
    demand: pd.DataFrame = field(default_factory=pd.DataFrame)
    lost: Sequence[int] = ()
    tools: int = 0
    thinking: int = 0
    cache_minimum: int = 0
    price_step: int = 0
    estimated_by: str | None = None
    today: date | None = None

    @property
    def answer(self) -> int:
        """Tokens that the budget reserves for the answer."""
        return sum(self.budget.sizes[r.name] for r in self.budget.reserves if r.serves == OUTPUT)

    @property
    def longest(self) -> int | None:
        """Most tokens of an answer: the model's, else what the budget knows of it."""
        tokens: int | None = self.budget.max_output if self.model is None else self.model.max_output
        return tokens

    def mark(self, amount: Any, of: str) -> tuple[int, int]:
        """Return an amount of a base, and the most that the base can hold."""
        cap = self.budget.caps.get(self.budget.remainder or "")
        usable = max(0, self.budget.usable)
        if of == "limit" and cap is not None:
            most = min(usable, cap)
        else:
            most = usable
        base = self.budget.window if of == "window" else most
        return tokens_of(amount, base), most


def findings(
    budget: Budget,
    *,
    model: Any = None,
    policy: Any = None,
    demand: pd.DataFrame | None = None,
    lost: Sequence[int] = (),
    tools: int = 0,
    thinking: int = 0,
    cache_minimum: int = 0,
    price_step: int = 0,
    estimated_by: str | None = None,
    today: date | None = None,
) -> tuple[Finding, ...]:
    """Look a budget over.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    model : budgetkit.models.Model, optional
        The model that answers.
    policy : budgetkit.pruning.policies.Policy, optional
        What prunes the history.
    demand : DataFrame, optional
        What a conversation asks for: one row a request, one column a section, in tokens.
    lost : sequence of int
        How many messages leave before each request, as a replay says.
    tools, thinking : int
        Tokens of the tool schemas, and the most that the model may think.
    cache_minimum : int
        Shortest prompt that the provider's cache keeps, in tokens.
    price_step : int
        Prompt above which the provider's price rises, in tokens; 0 where none is known.
    estimated_by : str, optional
        The counter that estimates the model's tokens; empty where they are not estimated. When left out, a model
        whose own encoding is not shipped is taken for one whose tokens are.
    today : date, optional
        The day on which the facts about the model are used; their age is not looked at when left out.

    Returns
    -------
    tuple of Finding
        In the order of `CODES`; empty where nothing is wrong.

    Examples
    --------
    >>> from budgetkit.budget import Allocation, Reserve
    >>> budget = Budget(8_192, [Reserve("output", 8_191, serves="output")], [Allocation("history")])
    >>> print(findings(budget)[0])
    nothing-usable: the reserves (8,191) leave 1 of 8,192 tokens; lower a reserve, or choose a larger window.
    """
    shown = pd.DataFrame() if demand is None else demand
    case = _Case(
        budget=budget,
        model=model,
        policy=policy,
        demand=shown,
        lost=lost,
        tools=tools,
        thinking=thinking,
        cache_minimum=cache_minimum,
        price_step=price_step,
        estimated_by=estimated_by,
        today=today,
    )
    return tuple(
        Finding(code, *notice) for code, check in _CHECKS.items() for notice in check(case)
    )


def _above_output(case: _Case) -> Iterator[tuple[str, str]]:
    yield from unused_answers(case.budget, case.longest)


def _missing_answer(case: _Case) -> Iterator[tuple[str, str]]:
    yield from missing_answer(case.budget, case.longest)


def _nothing_usable(case: _Case) -> Iterator[tuple[str, str]]:
    budget = case.budget
    if budget.usable < max(1, LEAST_USABLE.of(budget.window)):
        notice = f"the reserves ({budget.reserved:,}) leave {budget.usable:,} of {budget.window:,} tokens"
        yield notice, "lower a reserve, or choose a larger window"


def _unreachable(case: _Case) -> Iterator[tuple[str, str]]:
    for stage in getattr(case.policy, "stages", ()):
        if hasattr(stage, "trigger"):
            mark, most = case.mark(stage.trigger, stage.of)
            if mark > most:
                notice = f"{type(stage).__name__} waits for {mark:,} tokens, and there are never more than {most:,}"
                yield notice, f"lower its trigger below {most:,}, or a reserve"


def _low_target(case: _Case) -> Iterator[tuple[str, str]]:
    fixed = _fixed(case)
    for stage in getattr(case.policy, "stages", ()):
        # 0 clears all results but those left alone: it is meant.
        if target := getattr(stage, "target", None):
            mark, _ = case.mark(target, stage.of)
            stays = 1 if stage.of == "limit" else fixed
            if mark <= stays:
                notice = f"{type(stage).__name__} cuts down to {mark:,} tokens, of which {stays:,} are never cut"
                yield (
                    f"{notice}: every cut empties the history",
                    "raise its target, or shorten what is fixed",
                )


def _fixed(case: _Case) -> int:
    """Return what the sections that nobody prunes hold at least: what they ask for, else their floors."""
    budget = case.budget
    rest = [s for s in case.budget.sections if s != case.budget.remainder]
    if not len(case.demand):
        return sum(budget.floors[s] for s in rest)
    required = {a.section for a in budget.allocations if a.required}
    return sum(
        int(case.demand[section].min())
        for section in rest
        if section in required and section in case.demand
    )


def _cuts_every_request(case: _Case) -> Iterator[tuple[str, str]]:
    run = longest = 0
    for lost in case.lost:
        run += 1
        if not lost:
            run = 0
        longest = max(longest, run)
    if longest >= LONGEST_RUN:
        notice = (
            f"{longest:,} requests one after the other each lose messages, so no prompt cache holds"
        )
        yield notice, "prune to a lower mark at once, as TriggerTarget or Step do"


def _cache_breaking_order(case: _Case) -> Iterator[tuple[str, str]]:
    sections = list(case.budget.sections)
    remainder = case.budget.remainder
    if remainder is None or len(case.demand) < 3:
        return
    for section in sections[: sections.index(remainder)]:
        if section in case.demand:
            column = case.demand[section].to_numpy()
        else:
            column = np.zeros(1)
        if (changes := int((np.diff(column) != 0).sum())) * 2 > len(case.demand):
            where = f"{one_line(section)} stands before {one_line(remainder)}"
            notice = (
                f"{where} and changes at {changes:,} of {len(case.demand):,} requests, so no "
                f"cache holds what follows"
            )
            yield notice, f"let it stand after {one_line(remainder)}"


def _wide_caps(case: _Case) -> Iterator[tuple[str, str]]:
    budget = case.budget
    for section, cap in budget.caps.items():
        most = max(0, budget.usable) + budget.held.get(section, 0)
        if cap is not None and cap > most:
            notice = f"the cap of {one_line(section)} ({cap:,}) is above all that the window has for it ({most:,})"
            yield notice, f"lower it to {most:,}, or lower a reserve"


def _overcommitted(case: _Case) -> Iterator[tuple[str, str]]:
    # A cap that is too large all alone has a finding of its own.
    if case.budget.unclaimed < 0 and not any(_wide_caps(case)):
        sentence, _, mend = overcommitted(case.budget).removesuffix(".").partition("; ")
        yield f"{sentence[0].lower()}{sentence[1:]}", f"{mend}, or choose a larger window"


def _high_floors(case: _Case) -> Iterator[tuple[str, str]]:
    budget = case.budget
    promised = sum(
        max(0, floor - budget.held.get(section, 0)) for section, floor in budget.floors.items()
    )
    if promised > (most := max(0, budget.usable)):
        problem = f"the floors promise {promised:,} tokens, and the reserves leave {most:,} of {budget.window:,}"
        yield problem, "lower a floor or a reserve, or choose a larger window"


def _open_pool(case: _Case) -> Iterator[tuple[str, str]]:
    """Say where sections without a cap take more than the shared pool, from what caps claim."""
    budget = case.budget
    sharing = [a.section for a in budget.allocations if a.cap is None and not a.required]
    mend = "give them caps, or let them share it with order='pool together'"
    if budget.pool == "each" and len(sharing) > 1 and budget.capped:
        names = " and ".join(map(one_line, sharing))
        yield (
            f"{names} may each take the shared pool ({budget.shared_pool:,}), and nothing limits their sum",
            mend,
        )
    if budget.pool != "open" or not len(case.demand):
        return

    # Caps limit, they promise nothing: whoever is asked before them may take what they claim.
    columns = allocate_frame(replace(budget, deficit="signed", undeclared="pool"), case.demand)
    taken = sum(
        (columns[section]["granted"] for section in sharing), np.zeros(len(case.demand), np.int64)
    )
    pool = max(0, budget.shared_pool)
    for section, cap in budget.caps.items():
        if cap is None:
            continue
        lacks = columns[section]["granted"] < np.minimum(columns[section]["demand"], cap)
        if (requests := int((lacks & (taken > pool)).sum())) > 0:
            names = " and ".join(map(one_line, sharing))
            problem = f"{names} take more than the shared pool ({pool:,}) at {requests:,} of {len(taken):,} requests"
            yield f"{problem}, from what the cap of {one_line(section)} ({cap:,}) claims", mend


def _price_step(case: _Case) -> Iterator[tuple[str, str]]:
    most = max(0, case.budget.usable)
    if case.price_step and most > case.price_step:
        problem = f"a prompt above {case.price_step:,} tokens is billed at a higher price, and one may have {most:,}"
        yield (
            problem,
            f"choose a window that leaves {case.price_step:,} for the prompt, or count on the higher price",
        )


def _heavy_tools(case: _Case) -> Iterator[tuple[str, str]]:
    if case.tools > (most := MOST_TOOLS.of(case.budget.window)):
        notice = (
            f"the tool schemas have {case.tools:,} tokens, above a quarter of the window ({most:,})"
        )
        yield (
            notice,
            "send fewer tools, shorten their descriptions, or load them when they are needed",
        )


def _thinking(case: _Case) -> Iterator[tuple[str, str]]:
    most = min(filter(None, (case.answer, case.longest)), default=0)
    if case.thinking and most and case.thinking >= most:
        notice = f"thinking may take {case.thinking:,} tokens, and thinking and answer together have {most:,}"
        yield notice, f"lower thinking well below {most:,}, or raise the answer's reserve"


def _below_minimum(case: _Case) -> Iterator[tuple[str, str]]:
    if len(case.demand):
        largest_demand = int(case.demand.sum(axis=1).max())
    else:
        largest_demand = case.budget.usable
    if (most := max(0, min(largest_demand, case.budget.usable))) < case.cache_minimum:
        notice = f"the longest prompt has {most:,} tokens, and the cache keeps none below {case.cache_minimum:,}"
        yield notice, "count on no cached price, or put what every request needs into the prompt"


def _old_facts(case: _Case) -> Iterator[tuple[str, str]]:
    read = getattr(case.model, "date", "")
    if read and case.today and (days := (case.today - date.fromisoformat(read)).days) > MOST_DAYS:
        notice = (
            f"what is known of {one_line(case.model.name)} was read on {read}, {days:,} days ago"
        )
        yield notice, "look its window up again, and bring budgetkit up to date"


def _no_buffer(case: _Case) -> Iterator[tuple[str, str]]:
    if case.model is None or has_buffer(case.budget):
        return
    substitute = case.estimated_by
    if substitute is None:
        if case.model.encoding_is_own:
            substitute = ""
        else:
            substitute = case.model.encoding
    if substitute:
        name = one_line(case.model.name)
        yield (
            f"the tokens of {name} are estimated ({one_line(substitute)}), and no reserve is a buffer",
            ADD_BUFFER,
        )


def has_buffer(budget: Budget) -> bool:
    """Say whether a reserve is a buffer: one that serves neither the answer nor a section.

    >>> from budgetkit.budget import Reserve
    >>> has_buffer(Budget(100, [Reserve("output", 9, "output")])), has_buffer(Budget(100, [Reserve("safety", 9)]))
    (False, True)
    """
    return any(reserve.serves is None and budget.sizes[reserve.name] for reserve in budget.reserves)


_CHECKS: Final[Mapping[str, Callable[[_Case], Iterator[tuple[str, str]]]]] = {
    "reserve-above-output": _above_output,
    "no-answer-reserve": _missing_answer,
    "nothing-usable": _nothing_usable,
    "trigger-never-reached": _unreachable,
    "target-below-fixed": _low_target,
    "cut-at-every-request": _cuts_every_request,
    "order-breaks-cache": _cache_breaking_order,
    "cap-never-filled": _wide_caps,
    "caps-overcommitted": _overcommitted,
    "floor-above-usable": _high_floors,
    "pool-not-enforced": _open_pool,
    "heavy-tools": _heavy_tools,
    "thinking-fills-answer": _thinking,
    "prompt-below-cache": _below_minimum,
    "price-step": _price_step,
    "old-facts": _old_facts,
    "stand-in-without-buffer": _no_buffer,
}
#: The codes of all findings.
CODES: Final = tuple(_CHECKS)
