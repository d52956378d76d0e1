"""Advice: warnings and findings about a budget and its plan, with fixes.

- `warnings_of`: losses of one plan, and conflicts of reserves and caps.
- `findings`: problems of the budget itself, before any request is planned.

      a trigger can be reached  <=>  tokens(trigger) <= most tokens that its base can hold
      a target can be kept      <=>  tokens(target) > tokens that are never cut

This module describes the results of the arithmetic (`Grant`, `Loss`, `Budget`) in words. The thresholds below are
choices, not measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from typing import Any, Final

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Allocation, Budget
from budgetkit.budget.amounts import Share, tokens_of
from budgetkit.budget.quoting import many, nearest_name, one_line
from budgetkit.budget.validation import OUTPUT, other_roles
from budgetkit.plan.allocating import allocate_frame
from budgetkit.plan.decisions import (
    BEYOND_BEST,
    OVER_CAP,
    POOL_FULL,
    UNCUT,
    WINDOW_FULL,
    Grant,
    Loss,
)

Plan = Any  # of plan.py, which imports this module
Notices = Iterator[tuple[str, str]]  # problems, each with its fix


def warnings_of(plan: Plan) -> Iterator[str]:
    """Yield warnings about losses and conflicts, each with a fix.

    Losses are sorted by tokens, largest first.
    """
    budget = plan.budget
    lost: list[Loss] = plan.losses
    if plan.free < 0:
        needs = ", ".join(f"{one_line(g.section)} {g.granted:,}" for g in plan.grants if g.granted)
        yield (
            f"The request exceeds the window ({budget.window:,}) by {many(-plan.free, 'token')}: {needs}, "
            f"reserves {plan.reserved:,}. Lower a reserve or a floor, or choose a larger window."
        )
    if budget.unclaimed < 0 and any(loss.reason in (WINDOW_FULL, POOL_FULL) for loss in lost):
        yield overcommitted(budget)
    for loss in lost:
        yield loss_sentence(loss, plan)

    for grant in plan.grants:
        cap = budget.caps[grant.section]
        if cap is not None and grant.granted > cap:
            yield (
                f"{one_line(grant.section)} is required and needs {grant.granted:,} tokens, "
                f"{grant.granted - cap:,} above its cap ({cap:,}). Raise the cap, shorten the text, "
                'or in code let fit cut it: granularity="line", with a cut function.'
            )
    yield from missing_answer_notices(budget)
    for problem, mend in unused_answers(budget, budget.max_output):
        yield two_sentences(problem, mend)
    yield from misspelt(budget, plan.grants)
    if moved := other_roles(plan.decisions.columns.roles, budget.roles, budget.sections):
        yield moved


def two_sentences(problem: str, mend: str) -> str:
    """Write a problem and its fix as two sentences."""
    return f"{problem}. {mend[0].upper()}{mend[1:]}."


def loss_sentence(loss: Loss, plan: Plan) -> str:
    """Describe a loss: its size, its reason and a fix."""
    budget: Budget = plan.budget
    grants: Sequence[Grant] = plan.grants
    allocation = loss.allocation
    cap = budget.caps[allocation.section] or 0
    rule = None
    if loss.reason == OVER_CAP:
        rule = allocation.overflow
    elif loss.reason in (WINDOW_FULL, POOL_FULL):
        rule = allocation.when_full

    if loss.reason == OVER_CAP and cap == 0:
        why = "it is switched off by its cap of 0"
        mend = f"give it a cap of {loss.demand:,}"
    elif loss.reason == OVER_CAP:
        # Tokens that other sections took from the pool are not available.
        taken = sum(max(0, g.granted - (budget.caps[g.section] or 0)) for g in grants)
        highest = cap + max(0, budget.shared_pool - taken)
        why = f"it is over its cap ({cap:,})"
        rise = "the cap cannot rise"
        if highest > cap:
            rise = f"the cap can rise to {highest:,}"
        others = "a reserve, choose a larger window, or shorten the text"
        mend = f"{rise}. Lower other caps or {others}"
        unused = unused_caps(plan, allocation.section)
        if loss.demand <= highest:
            mend = f"raise the cap to {loss.demand:,}, or shorten the text"
        elif unused:
            mend = f"{rise}, or further if unused caps are lowered: {_listed(unused)}"
            if highest == cap:
                mend = f"lower unused caps to raise it: {_listed(unused)}"
            if loss.demand > highest + sum(unused.values()):
                mend += f". To keep all of it, lower {others}"
    elif loss.reason == WINDOW_FULL:
        why = f"the window ({budget.window:,}) is full"
        mend = f"lower a reserve, shorten another section, or choose {_larger_window(loss, plan)}"
    elif loss.reason == POOL_FULL:
        why = f"the shared pool ({budget.shared_pool:,}) is full"
        mend = "lower a cap or a reserve"
        if unused := unused_caps(plan, allocation.section):
            mend = (
                f"these caps have unused tokens: {_listed(unused)}. Lower one of them, or give the "
                "section its own cap"
            )
    elif loss.reason == BEYOND_BEST:
        best = f"{allocation.limit_items} items"
        if allocation.limit_items == 1:
            best = "item"
        why = f"it keeps only its best {best}"
        mend = "raise limit_items in code, or send fewer items"
    elif loss.reason == UNCUT:
        why = "fit got no cut function"
        mend = "pass one, as in fit(budget, items, bk.truncation.cutter(count))"
    else:
        why = "a message that must stay with it was dropped"
        mend = "give that message's section more tokens"
    whole = ", dropped whole," if rule == "drop" else ""
    needed = " is required and" if allocation.required else ""
    name = one_line(allocation.section)
    amount = f"{loss.tokens:,} of {loss.demand:,} tokens"
    parts = [many(loss.items, "item")] if loss.items else []
    if loss.cut:
        parts.append(f"{many(loss.cut, 'item')} cut")
    if parts:
        amount += f" ({', '.join(parts)})"
    return two_sentences(f"{name}{needed} loses {amount}{whole} because {why}", mend)


def _larger_window(loss: Loss, plan: Plan) -> str:
    """Suggest a larger window, with its size if that prevents the loss."""
    section = loss.allocation.section
    more = loss.tokens + max(0, -plan.free)
    if plan.replan is not None:
        # The window may be too large, or a floor that grows with it may exceed its cap.
        with suppress(ValueError):
            budget = replace(plan.budget, deficit="signed").assign(window=plan.budget.window + more)
            granted = plan.replan(budget, plan.contents)[section].granted
            if granted >= plan[section].granted + loss.tokens:
                return f"a window larger by {more:,}"
    return "a larger window"


def unused_caps(plan: Plan, section: str) -> dict[str, int]:
    """Return the tokens that other sections leave unused below their caps.

    The sections with the most unused tokens come first.
    """
    budget = plan.budget
    left = {
        g.section: (budget.caps[g.section] or 0) - max(g.granted, budget.floors[g.section])
        for g in plan.grants
        if g.section != section
    }
    return {s: left[s] for s in sorted(left, key=lambda s: -left[s]) if left[s] > 0}


def _listed(caps: dict[str, int]) -> str:
    return ", ".join(f"{one_line(section)} ({tokens:,})" for section, tokens in caps.items())


def answer_sizes(budget: Budget) -> dict[str, int]:
    """Return the sizes of the reserves for the answer, by name."""
    return {r.name: budget.sizes[r.name] for r in budget.reserves if r.serves == OUTPUT}


def unused_answers(budget: Budget, most: int | None) -> Notices:
    """Yield a notice for each answer reserve above the longest answer."""
    for name, size in answer_sizes(budget).items():
        if most is not None and size > most:
            problem = (
                f"{one_line(name)} holds {size:,} tokens, but the model writes at most {most:,}"
            )
            yield f"{problem}, leaving {size - most:,} of them unused", f"lower it to {most:,}"


def missing_answer(budget: Budget, most: int | None) -> Notices:
    """Yield a notice if a shared window has no answer reserve.

    There is no notice if the longest answer is unknown.
    """
    if most and not any(answer_sizes(budget).values()) and budget.kind == "shared":
        yield (
            "No tokens are reserved for the answer, but the window holds both prompt and answer",
            f"add an output reserve of up to {most:,} tokens",
        )


def missing_answer_notices(budget: Budget) -> list[str]:
    """Return a list with a warning if an answer reserve is missing."""
    return [two_sentences(*lack) for lack in missing_answer(budget, budget.max_output)]


def overcommitted(budget: Budget) -> str:
    """Describe the excess of reserves and caps over the window."""
    return (
        f"Reserves ({budget.reserved:,}) and caps ({budget.capped:,}) exceed the window "
        f"({budget.window:,}) by {many(-budget.unclaimed, 'token')}. Lower a cap or a reserve."
    )


def misspelt(budget: Budget, grants: Iterable[Grant]) -> Iterator[str]:
    """Warn about undeclared sections whose names resemble those of declared sections."""
    if budget.undeclared != "pool":
        return
    plain = {a.section for a in budget.allocations if a == Allocation(a.section)}
    declared = [section for section in budget.sections if section not in plain]
    for grant in grants:
        is_undeclared = grant.section in plain and grant.demand
        if is_undeclared and (near := nearest_name(grant.section, declared)):
            yield (
                f"{one_line(grant.section)} is not declared and takes {grant.demand:,} tokens from the shared pool. "
                f"Did you mean {one_line(near)}?"
            )


LEAST_USABLE: Final = Share("0.01")
MOST_TOOLS: Final = Share("0.25")
LONGEST_RUN: Final = 5  # consecutive requests that each lose messages
MOST_DAYS: Final = 365
#: Fixes for an estimate without a buffer.
ADD_BUFFER: Final = 'add one, such as Reserve("safety", Share(0.1))'


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a budget, with its fix.

    Parameters
    ----------
    code : str
        Code of the finding, one of `CODES`.
    sentence : str
        The problem, with its numbers.
    mend : str
        The fix.
    """

    code: str
    sentence: str
    mend: str

    def __str__(self) -> str:
        return f"{self.code}: {two_sentences(self.sentence, self.mend)}"


@dataclass(frozen=True)
class Case:
    """A budget with the facts that its checks need.

    A check whose facts are missing finds no problem.

    Parameters
    ----------
    budget : Budget
        The window, its reserves and its sections.
    model : budgetkit.models.Model, optional
        The model that answers.
    policy : budgetkit.pruning.policies.Policy, optional
        The pruning policy.
    demand : DataFrame, optional
        The demand of a conversation: one row per request, one column per section, in tokens.
    lost : sequence of int
        Number of messages dropped before each request, from a replay.
    tools, thinking : int
        Tokens of the tool schemas, and the most tokens that the model may use for thinking.
    cache_minimum : int
        Minimum size of a cached prompt at the provider, in tokens.
    price_step : int
        Prompt size above which the price rises, in tokens, or 0 if unknown.
    estimated_by : str, optional
        The counter that estimates the model's tokens, or "" if they are counted exactly. Default: the tokens are
        assumed to be estimated unless the model's own encoding is shipped.
    today : date, optional
        Today's date, to check the age of the facts about the model; default: no check.
    """

    budget: Budget
    model: Any = None
    policy: Any = None
    demand: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    lost: Sequence[int] = ()
    tools: int = 0
    thinking: int = 0
    cache_minimum: int = 0
    price_step: int = 0
    estimated_by: str | None = None
    today: date | None = None

    @property
    def longest(self) -> int | None:
        """Maximum tokens of an answer, from the model or the budget."""
        tokens: int | None = (self.model or self.budget).max_output
        return tokens

    def mark(self, amount: Any, of: str) -> tuple[int, int]:
        """Return an amount in tokens, and the most tokens available.

        `of` names the base of a share: "window", "usable", or "limit" (the cap of the remainder).
        """
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
        """Tokens that the sections other than the remainder always take.

        If the demand is known, the result is the sum of the smallest demands of the required sections; otherwise, it is
        the sum of the floors.
        """
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
    """The checks of a budget, one method for each code."""

    def find_reserve_above_output(self) -> Notices:
        yield from unused_answers(self.budget, self.longest)

    def find_no_answer_reserve(self) -> Notices:
        yield from missing_answer(self.budget, self.longest)

    def find_nothing_usable(self) -> Notices:
        budget = self.budget
        if budget.usable < max(1, LEAST_USABLE.of(budget.window)):
            notice = f"The reserves ({budget.reserved:,}) leave {budget.usable:,} of {budget.window:,} tokens"
            yield notice, "lower a reserve, or choose a larger window"

    def find_trigger_never_reached(self) -> Notices:
        for stage in getattr(self.policy, "stages", ()):
            if hasattr(stage, "trigger"):
                mark, most = self.mark(stage.trigger, stage.of)
                if mark > most:
                    notice = f"{type(stage).__name__} starts at {mark:,} tokens, but there are never more than {most:,}"
                    yield notice, f"lower its trigger below {most:,}, or a reserve"

    def find_target_below_fixed(self) -> Notices:
        fixed = self.fixed
        for stage in getattr(self.policy, "stages", ()):
            # A target of 0, which clears all results except the intact results, is intended.
            if target := getattr(stage, "target", None):
                mark, _ = self.mark(target, stage.of)
                stays = 1 if stage.of == "limit" else fixed
                if mark <= stays:
                    notice = f"{type(stage).__name__} cuts down to {mark:,} tokens, and {stays:,} are never cut"
                    yield (
                        f"{notice}, so every cut empties the history",
                        "raise its target, or shorten the sections that are never cut",
                    )

    def find_cut_at_every_request(self) -> Notices:
        runs = (sum(1 for _ in group) for loses, group in groupby(self.lost, bool) if loses)
        longest = max(runs, default=0)
        if longest >= LONGEST_RUN:
            notice = (
                f"{longest:,} requests in a row lose messages, so the prompt cache is never used"
            )
            yield notice, "prune more at once and less often, as TriggerTarget and Step do"

    def find_order_breaks_cache(self) -> Notices:
        sections = list(self.budget.sections)
        remainder = self.budget.remainder
        if remainder is None or len(self.demand) < 3:
            return
        for section in sections[: sections.index(remainder)]:
            if section not in self.demand:
                continue
            changes = int((np.diff(self.demand[section]) != 0).sum())
            if changes * 2 > len(self.demand):
                where = f"{one_line(section)} comes before {one_line(remainder)}"
                notice = (
                    f"{where} and changes in {changes:,} of {len(self.demand):,} requests, so nothing "
                    f"after it is read from the cache"
                )
                yield notice, f"move it after {one_line(remainder)}"

    def find_cap_never_filled(self) -> Notices:
        budget = self.budget
        for section, cap in budget.caps.items():
            most = max(0, budget.usable) + budget.held.get(section, 0)
            if cap is not None and cap > most:
                notice = f"The cap of {one_line(section)} ({cap:,}) is never filled: the reserves leave {most:,} tokens"
                yield notice, f"lower it to {most:,}, or lower a reserve"

    def find_caps_overcommitted(self) -> Notices:
        # A single cap that is too large has a finding of its own.
        if self.budget.unclaimed < 0 and not any(self.find_cap_never_filled()):
            sentence = overcommitted(self.budget).partition(". ")[0]
            mend = "lower a cap or a reserve, or choose a larger window"
            yield sentence, mend

    def find_floor_above_usable(self) -> Notices:
        budget = self.budget
        promised = sum(
            max(0, floor - budget.held.get(section, 0)) for section, floor in budget.floors.items()
        )
        if promised > (most := max(0, budget.usable)):
            problem = f"The floors guarantee {promised:,} tokens, but the reserves leave {most:,} of {budget.window:,}"
            yield problem, "lower a floor or a reserve, or choose a larger window"

    def find_pool_not_enforced(self) -> Notices:
        """Report uncapped sections that exceed the shared pool, or may do so."""
        budget = self.budget
        sharing = [a.section for a in budget.allocations if a.cap is None and not a.required]
        mend = "give each a cap, or let them share the pool with order='pool together'"
        if budget.pool == "each" and len(sharing) > 1 and budget.capped:
            names = " and ".join(map(one_line, sharing))
            yield (
                f"{names} may each take the shared pool ({budget.shared_pool:,}), but nothing limits their sum",
                mend,
            )
        if budget.pool != "open" or not len(self.demand):
            return

        # Caps are limits, not guarantees: earlier sections may take the tokens that they claim.
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
                    f"Without a cap, {names} exceed the shared pool ({pool:,}) at {requests:,} of {len(taken):,} "
                    f"requests, so {one_line(section)} gets less than its cap ({cap:,})",
                    mend,
                )

    def find_heavy_tools(self) -> Notices:
        if self.tools > (most := MOST_TOOLS.of(self.budget.window)):
            notice = f"The tool schemas have {self.tools:,} tokens, more than a quarter of the window ({most:,})"
            yield (
                notice,
                "send fewer tools, shorten their descriptions, or load them on demand",
            )

    def find_thinking_fills_answer(self) -> Notices:
        answer = sum(answer_sizes(self.budget).values())
        most = min(filter(None, (answer, self.longest)), default=0)
        if self.thinking and most and self.thinking >= most:
            notice = f"Thinking may take {self.thinking:,} tokens, but thinking and answer together have only {most:,}"
            yield notice, f"lower thinking well below {most:,}, or raise the reserve for the answer"

    def find_prompt_below_cache(self) -> Notices:
        most = max(0, self.budget.usable)
        if len(self.demand):
            most = min(most, int(self.demand.sum(axis=1).max()))
        if most < self.cache_minimum:
            notice = f"The longest prompt has {most:,} tokens, but no cache keeps one below {self.cache_minimum:,}"
            yield (
                notice,
                "expect no cached price, or move text that every request needs into the prompt",
            )

    def find_price_step(self) -> Notices:
        most = max(0, self.budget.usable)
        if self.price_step and most > self.price_step:
            yield (
                f"A prompt above {self.price_step:,} tokens costs more per token, and a prompt may have "
                f"{most:,}",
                f"choose a window that leaves {self.price_step:,} for the prompt, or plan with the higher price",
            )

    def find_old_facts(self) -> Notices:
        read = getattr(self.model, "date", "")
        if not read or not self.today:
            return
        days = (self.today - date.fromisoformat(read)).days
        if days > MOST_DAYS:
            notice = f"The facts about {one_line(self.model.name)} were read on {read}, {days:,} days ago"
            yield notice, "check its window with the provider, or upgrade budgetkit"

    def find_stand_in_without_buffer(self) -> Notices:
        if self.model is None or has_buffer(self.budget):
            return
        substitute = self.estimated_by
        if substitute is None:
            substitute = "" if self.model.encoding_is_own else self.model.encoding
        if substitute:
            name = one_line(self.model.name)
            yield (
                f"The tokens of {name} are estimated ({one_line(substitute)}), but no reserve covers the error",
                ADD_BUFFER,
            )


CODES: Final = tuple(
    name.removeprefix("find_").replace("_", "-") for name in vars(_Checks) if name[0] != "_"
)


def findings(budget: Budget, **facts: Any) -> tuple[Finding, ...]:
    """Check a budget for problems.

    Parameters
    ----------
    budget : Budget
        The window, its reserves and its sections.
    **facts
        Further facts, as fields of `Case`; None means unknown.

    Returns
    -------
    tuple of Finding
        The problems in the order of `CODES`, or an empty tuple if there are none.

    Examples
    --------
    >>> from budgetkit.budget import Allocation, Reserve
    >>> budget = Budget(8_192, [Reserve("output", 8_191, serves="output")], [Allocation("history")])
    >>> print(findings(budget)[0])
    nothing-usable: The reserves (8,191) leave 1 of 8,192 tokens. Lower a reserve, or choose a larger window.
    """
    case = _Checks(budget, **{name: fact for name, fact in facts.items() if fact is not None})
    return tuple(
        Finding(code, *notice)
        for code in CODES
        for notice in getattr(case, f"find_{code}".replace("-", "_"))()
    )


def has_buffer(budget: Budget) -> bool:
    """Return True if a non-empty reserve serves neither answer nor section.

    >>> from budgetkit.budget import Reserve
    >>> has_buffer(Budget(100, [Reserve("output", 9, "output")])), has_buffer(Budget(100, [Reserve("safety", 9)]))
    (False, True)
    """
    return any(reserve.serves is None and budget.sizes[reserve.name] for reserve in budget.reserves)
