"""findings(): problems of a budget before any request is planned.

Each has a code, a sentence and a fix.

    trigger reached   <=>  mark(trigger) <= most that the base can hold
    target holds      <=>  mark(target) > what stands there whatever is cut

What one plan loses is said by its warnings; what is found here is wrong with the numbers themselves, or with a whole
conversation. The shares below are choices of this module, not measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
Notices = Iterator[tuple[str, str]]
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
class Case:
    """A budget, and what else is known; a check that lacks what it needs finds nothing.

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
    """

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
        """Tokens of the longest answer: the model's limit, else the budget's."""
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

    @property
    def fixed(self) -> int:
        """Tokens that the sections nobody prunes hold at least: their demand, else their floors."""
        budget = self.budget
        rest = [s for s in self.budget.sections if s != self.budget.remainder]
        if not len(self.demand):
            return sum(budget.floors[s] for s in rest)
        required = {a.section for a in budget.allocations if a.required}
        return sum(
            int(self.demand[section].min())
            for section in rest
            if section in required and section in self.demand
        )


class _Checks(Case):
    """The checks, each named by its code: it yields a sentence and a mend for each problem."""

    def find_reserve_above_output(self) -> Notices:
        yield from unused_answers(self.budget, self.longest)

    def find_no_answer_reserve(self) -> Notices:
        yield from missing_answer(self.budget, self.longest)

    def find_nothing_usable(self) -> Notices:
        budget = self.budget
        if budget.usable < max(1, LEAST_USABLE.of(budget.window)):
            notice = f"the reserves ({budget.reserved:,}) leave {budget.usable:,} of {budget.window:,} tokens"
            yield notice, "lower a reserve, or choose a larger window"

    def find_trigger_never_reached(self) -> Notices:
        for stage in getattr(self.policy, "stages", ()):
            if hasattr(stage, "trigger"):
                mark, most = self.mark(stage.trigger, stage.of)
                if mark > most:
                    notice = f"{type(stage).__name__} waits for {mark:,} tokens, and there are never more than {most:,}"
                    yield notice, f"lower its trigger below {most:,}, or a reserve"

    def find_target_below_fixed(self) -> Notices:
        fixed = self.fixed
        for stage in getattr(self.policy, "stages", ()):
            # 0 clears all results but those left alone: it is meant.
            if target := getattr(stage, "target", None):
                mark, _ = self.mark(target, stage.of)
                stays = 1 if stage.of == "limit" else fixed
                if mark <= stays:
                    notice = f"{type(stage).__name__} cuts down to {mark:,} tokens, of which {stays:,} are never cut"
                    yield (
                        f"{notice}: every cut empties the history",
                        "raise its target, or shorten what is fixed",
                    )

    def find_cut_at_every_request(self) -> Notices:
        run = longest = 0
        for lost in self.lost:
            run += 1
            if not lost:
                run = 0
            longest = max(longest, run)
        if longest >= LONGEST_RUN:
            notice = f"{longest:,} requests one after the other each lose messages, so no prompt cache holds"
            yield notice, "prune to a lower mark at once, as TriggerTarget or Step do"

    def find_order_breaks_cache(self) -> Notices:
        sections = list(self.budget.sections)
        remainder = self.budget.remainder
        if remainder is None or len(self.demand) < 3:
            return
        for section in sections[: sections.index(remainder)]:
            if section in self.demand:
                column = self.demand[section].to_numpy()
            else:
                column = np.zeros(1)
            if (changes := int((np.diff(column) != 0).sum())) * 2 > len(self.demand):
                where = f"{one_line(section)} stands before {one_line(remainder)}"
                notice = (
                    f"{where} and changes at {changes:,} of {len(self.demand):,} requests, so no "
                    f"cache holds what follows"
                )
                yield notice, f"let it stand after {one_line(remainder)}"

    def find_cap_never_filled(self) -> Notices:
        budget = self.budget
        for section, cap in budget.caps.items():
            most = max(0, budget.usable) + budget.held.get(section, 0)
            if cap is not None and cap > most:
                notice = f"the cap of {one_line(section)} ({cap:,}) is above all that the window has for it ({most:,})"
                yield notice, f"lower it to {most:,}, or lower a reserve"

    def find_caps_overcommitted(self) -> Notices:
        # A cap that is too large all alone has a finding of its own.
        if self.budget.unclaimed < 0 and not any(self.find_cap_never_filled()):
            sentence, _, mend = overcommitted(self.budget).removesuffix(".").partition("; ")
            yield f"{sentence[0].lower()}{sentence[1:]}", f"{mend}, or choose a larger window"

    def find_floor_above_usable(self) -> Notices:
        budget = self.budget
        promised = sum(
            max(0, floor - budget.held.get(section, 0)) for section, floor in budget.floors.items()
        )
        if promised > (most := max(0, budget.usable)):
            problem = f"the floors promise {promised:,} tokens, and the reserves leave {most:,} of {budget.window:,}"
            yield problem, "lower a floor or a reserve, or choose a larger window"

    def find_pool_not_enforced(self) -> Notices:
        """Say where sections without a cap take more than the shared pool, from what caps claim."""
        budget = self.budget
        sharing = [a.section for a in budget.allocations if a.cap is None and not a.required]
        mend = "give them caps, or let them share it with order='pool together'"
        if budget.pool == "each" and len(sharing) > 1 and budget.capped:
            names = " and ".join(map(one_line, sharing))
            yield (
                f"{names} may each take the shared pool ({budget.shared_pool:,}), and nothing limits their sum",
                mend,
            )
        if budget.pool != "open" or not len(self.demand):
            return

        # Caps limit, they promise nothing: whoever is asked before them may take what they claim.
        columns = allocate_frame(replace(budget, deficit="signed", undeclared="pool"), self.demand)
        taken = sum(
            (columns[section]["granted"] for section in sharing),
            np.zeros(len(self.demand), np.int64),
        )
        pool = max(0, budget.shared_pool)
        for section, cap in budget.caps.items():
            if cap is None:
                continue
            lacks = columns[section]["granted"] < np.minimum(columns[section]["demand"], cap)
            if (requests := int((lacks & (taken > pool)).sum())) > 0:
                names = " and ".join(map(one_line, sharing))
                yield (
                    f"{names} take more than the shared pool ({pool:,}) at {requests:,} of {len(taken):,} requests, "
                    f"from what the cap of {one_line(section)} ({cap:,}) claims",
                    mend,
                )

    def find_heavy_tools(self) -> Notices:
        if self.tools > (most := MOST_TOOLS.of(self.budget.window)):
            notice = f"the tool schemas have {self.tools:,} tokens, above a quarter of the window ({most:,})"
            yield (
                notice,
                "send fewer tools, shorten their descriptions, or load them when they are needed",
            )

    def find_thinking_fills_answer(self) -> Notices:
        most = min(filter(None, (self.answer, self.longest)), default=0)
        if self.thinking and most and self.thinking >= most:
            notice = f"thinking may take {self.thinking:,} tokens, and thinking and answer together have {most:,}"
            yield notice, f"lower thinking well below {most:,}, or raise the answer's reserve"

    def find_prompt_below_cache(self) -> Notices:
        if len(self.demand):
            largest_demand = int(self.demand.sum(axis=1).max())
        else:
            largest_demand = self.budget.usable
        if (most := max(0, min(largest_demand, self.budget.usable))) < self.cache_minimum:
            notice = f"the longest prompt has {most:,} tokens, and the cache keeps none below {self.cache_minimum:,}"
            yield (
                notice,
                "count on no cached price, or put what every request needs into the prompt",
            )

    def find_price_step(self) -> Notices:
        most = max(0, self.budget.usable)
        if self.price_step and most > self.price_step:
            yield (
                f"a prompt above {self.price_step:,} tokens is billed at a higher price, and one may have "
                f"{most:,}",
                f"choose a window that leaves {self.price_step:,} for the prompt, or count on the higher price",
            )

    def find_old_facts(self) -> Notices:
        read = getattr(self.model, "date", "")
        if (
            read
            and self.today
            and (days := (self.today - date.fromisoformat(read)).days) > MOST_DAYS
        ):
            notice = f"what is known of {one_line(self.model.name)} was read on {read}, {days:,} days ago"
            yield notice, "look its window up again, and bring budgetkit up to date"

    def find_stand_in_without_buffer(self) -> Notices:
        if self.model is None or has_buffer(self.budget):
            return
        substitute = self.estimated_by
        if substitute is None:
            if self.model.encoding_is_own:
                substitute = ""
            else:
                substitute = self.model.encoding
        if substitute:
            name = one_line(self.model.name)
            yield (
                f"the tokens of {name} are estimated ({one_line(substitute)}), and no reserve is a buffer",
                ADD_BUFFER,
            )


CODES: Final = tuple(
    name.removeprefix("find_").replace("_", "-") for name in vars(_Checks) if name[0] != "_"
)


def findings(budget: Budget, **facts: Any) -> tuple[Finding, ...]:
    """Look a budget over.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    **facts
        What else is known, as fields of `Case`; None says nothing.

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
    case = _Checks(budget, **{name: fact for name, fact in facts.items() if fact is not None})
    return tuple(
        Finding(code, *notice)
        for code in CODES
        for notice in getattr(case, f"find_{code}".replace("-", "_"))()
    )


def has_buffer(budget: Budget) -> bool:
    """Say whether a reserve is a buffer: one that serves neither the answer nor a section.

    >>> from budgetkit.budget import Reserve
    >>> has_buffer(Budget(100, [Reserve("output", 9, "output")])), has_buffer(Budget(100, [Reserve("safety", 9)]))
    (False, True)
    """
    return any(reserve.serves is None and budget.sizes[reserve.name] for reserve in budget.reserves)
