"""Advice: every sentence about a budget and its plan, each with a fix.

- `warnings_of`: the losses of one plan, and reserves and caps that do not fit together.
- `explain`: why one item or section was not kept, and the smallest single change that would keep it. Each change is
  found by planning again with other values, until two neighbours are found of which the first keeps the item and the
  second does not. No formula could give it, because the tokens that one section leaves go to the next.
- `findings`: problems of the numbers themselves, before any request is planned.

      trigger reached   <=>  mark(trigger) <= most that the base can hold
      target holds      <=>  mark(target) > tokens that are never cut

The arithmetic gives records (`Grant`, `Loss`, `Budget`); this module puts them into words. The shares below are choices
of this module, not measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from math import ceil
from typing import Any, Final

import numpy as np
import pandas as pd

from budgetkit.budget import Allocation, Budget
from budgetkit.budget.amounts import MOST_TOKENS, Amount, Share, exact_number, tokens_of
from budgetkit.budget.budget import Deficit
from budgetkit.budget.quoting import brief, many, nearest_name, one_line
from budgetkit.budget.validation import OUTPUT, other_roles, unknown_section
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
from budgetkit.plan.items import Item

Plan = Any  # of plan.py, which imports this module


def warnings_of(plan: Plan) -> Iterator[str]:
    """Yield warnings about losses and conflicts, each with a fix.

    Losses are sorted by tokens, the largest first.
    """
    budget = plan.budget
    lost: list[Loss] = plan.losses
    if plan.free < 0:
        needs = ", ".join(f"{one_line(g.section)} {g.granted:,}" for g in plan.grants if g.granted)
        yield (
            f"The window ({budget.window:,}) is overrun by {-plan.free:,} tokens: {needs}, "
            f"reserves {plan.reserved:,}. Lower a reserve or a floor, or choose a larger window."
        )
    if budget.unclaimed < 0 and any(loss.reason in (WINDOW_FULL, POOL_FULL) for loss in lost):
        yield overcommitted(budget)
    for loss in lost:
        yield loss_sentence(loss, budget, plan.grants)

    for grant in plan.grants:
        cap = budget.caps[grant.section]
        if cap is not None and grant.granted > cap:
            yield (
                f"{one_line(grant.section)} is required and needs {grant.granted:,} tokens, "
                f"{grant.granted - cap:,} above its cap ({cap:,}). Raise the cap, shorten the text, "
                'or in code allow cuts inside it: granularity="line", and a cut for fit.'
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


def loss_sentence(loss: Loss, budget: Budget, grants: Iterable[Grant]) -> str:
    """Describe a loss: its size, its reason and a fix."""
    allocation = loss.allocation
    cap = budget.caps[loss.allocation.section]
    rules = {
        OVER_CAP: allocation.overflow,
        WINDOW_FULL: allocation.when_full,
        POOL_FULL: allocation.when_full,
    }
    if loss.reason == OVER_CAP and cap == 0:
        why = "it is switched off by its cap of 0"
        mend = f"give it a cap of {loss.demand:,}"
    elif loss.reason == OVER_CAP:
        # What others took of the pool is theirs.
        taken = sum(max(0, g.granted - (budget.caps[g.section] or 0)) for g in grants)
        pool = max(0, budget.shared_pool - taken)
        why = f"it is over its cap ({cap:,})"
        mend = _cap_advice(loss.demand, cap or 0, pool)
    elif loss.reason == WINDOW_FULL:
        why = f"the window ({budget.window:,}) has no room for it"
        larger = f"choose a window larger by {loss.tokens:,}"
        mend = f"lower a reserve, shorten another section, or {larger}"
    elif loss.reason == POOL_FULL:
        why = f"the shared pool ({budget.shared_pool:,}) is full"
        mend = _idle_caps(budget, grants)
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
        why = "its group was dropped"
        mend = "fix the section that dropped it"
    whole = ", dropped whole," if rules.get(loss.reason) == "drop" else ""
    needed = " is required and" if allocation.required else ""
    name = one_line(allocation.section)
    return two_sentences(f"{name}{needed} loses {_amount(loss)}{whole} because {why}", mend)


def _cap_advice(demand: int, cap: int, pool: int) -> str:
    """Describe how far a cap can rise: to the demand, or by the pool."""
    if demand <= cap + pool:
        return f"raise the cap to {demand:,}, or shorten the text"
    room = f"the cap can rise to {cap + pool:,}" if pool else "no room is left to raise it"
    return f"{room}. Lower other caps or a reserve, choose a larger window, or shorten the text"


def _amount(loss: Loss) -> str:
    tokens = f"{loss.tokens:,} of {loss.demand:,} tokens"
    parts = [many(loss.items, "item")] if loss.items else []
    if loss.cut:
        parts.append(f"{many(loss.cut, 'item')} cut")
    return f"{tokens} ({', '.join(parts)})" if parts else tokens


def _idle_caps(budget: Budget, grants: Iterable[Grant]) -> str:
    """Name the caps whose room nobody uses, the largest first."""
    left = {g.section: (budget.caps[g.section] or 0) - g.granted for g in grants}
    idle = [
        f"{one_line(s)} ({tokens:,})"
        for s, tokens in sorted(left.items(), key=lambda entry: -entry[1])
        if tokens > 0
    ]
    if not idle:
        return "lower a cap or a reserve"
    unused = f"these caps have unused tokens: {', '.join(idle)}"
    return f"{unused}. Lower one of them, or give the section its own cap"


def unused_answers(budget: Budget, most: int | None) -> Iterator[tuple[str, str]]:
    """Yield each reserve longer than the model's longest answer, or the lack of one, with its fix."""
    answers = [reserve for reserve in budget.reserves if reserve.serves == OUTPUT]
    for reserve in answers:
        size = budget.sizes[reserve.name]
        if most is not None and size > most:
            problem = f"{one_line(reserve.name)} holds {size:,} tokens, but the model writes at most {most:,}"
            yield f"{problem}: {size - most:,} of them are never used", f"lower it to {most:,}"


def missing_answer(budget: Budget, most: int | None) -> Iterator[tuple[str, str]]:
    """Yield the lack of a reserve for the answer of a model whose window holds it, with its fix."""
    reserved = sum(budget.sizes[r.name] for r in budget.reserves if r.serves == OUTPUT)
    if most and not reserved and budget.kind == "shared":
        yield (
            "No tokens are reserved for the answer, but the window holds both prompt and answer",
            f"add an output reserve of up to {most:,} tokens",
        )


def missing_answer_notices(budget: Budget) -> list[str]:
    """Return the sentence about a missing answer reserve, if the budget's own model needs one."""
    return [two_sentences(*lack) for lack in missing_answer(budget, budget.max_output)]


def overcommitted(budget: Budget) -> str:
    """Say by how much reserves and caps exceed the window."""
    return (
        f"Reserves ({budget.reserved:,}) and caps ({budget.capped:,}) exceed the window "
        f"({budget.window:,}) by {-budget.unclaimed:,} tokens. Lower a cap or a reserve."
    )


def misspelt(budget: Budget, grants: Iterable[Grant]) -> Iterator[str]:
    """Warn of undeclared sections whose names resemble a declared one."""
    plain = {
        a.section
        for a in budget.allocations
        if budget.undeclared == "pool" and a == Allocation(a.section)
    }
    declared = [section for section in budget.sections if section not in plain]
    for grant in grants:
        if grant.section in plain and grant.demand:
            near = nearest_name(grant.section, declared)
        else:
            near = ""
        if near:
            yield (
                f"{one_line(grant.section)} is not declared and takes {grant.demand:,} tokens from the shared pool. "
                f"Did you mean {one_line(near)}?"
            )


Replan = Callable[[Budget, Any], Plan]
Contents = Any  # what is planned again: the plan's Items, or the tokens that each section asks for
_MOST_IMPORTANT = 10


@dataclass(frozen=True)
class Mend:
    """One change that keeps a lost item or section.

    Parameters
    ----------
    line : str
        What changes: "window", a reserve, a section, "importance" of a section or an item, "limit_items" of a section,
        or "tokens" of the item.
    before : int
        Its value now, in tokens or importance.
    after : int
        The nearest value that keeps it; the value beside, nearer to the present one, does not.
    sentence : str
        The change in words.
    budget : Budget, optional
        The changed budget; None where the item itself changes.
    """

    line: str
    before: int
    after: int
    sentence: str
    budget: Budget | None = None


@dataclass(frozen=True)
class Why:
    """The reasons for the outcome of an item or a section.

    Parameters
    ----------
    section : str
        Its section.
    wanted : int
        What it asked for, in tokens.
    kept : int
        What it got, in tokens.
    reasons : tuple of str
        The reasons in order, from the section's limit down to the item.
    mends : tuple of Mend
        The smallest changes that would keep all of it, each verified by planning again: of one line; where no line
        alone would do, of a cap and the window together.
    unmended : str
        Where something was lost and no change keeps it: why; else empty.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("history", 500, keep="newest")])
    >>> plan = bk.fit(budget, [bk.Item("history", 300), bk.Item("history", 400)])
    >>> why = plan.why(0)
    >>> [(mend.line, mend.before, mend.after) for mend in why.mends]
    [('history', 500, 700), ('importance', 5, 6), ('tokens', 300, 100)]
    >>> print(why.mends[0].sentence)
    Raise the cap of history from 500 to 700 tokens.
    """

    section: str
    wanted: int
    kept: int
    reasons: tuple[str, ...]
    mends: tuple[Mend, ...]
    unmended: str = ""

    def __str__(self) -> str:
        lines = [*self.reasons]
        if self.mends:
            lines += [
                "To keep it, make one of these changes:",
                *(f"- {mend.sentence}" for mend in self.mends),
            ]
        if self.unmended:
            lines.append(self.unmended)
        return "\n".join(lines)


def explain(plan: Plan, of: int | Item | str, replan: Replan) -> Why:
    """Explain the outcome of an item or section, and how to keep it."""
    decisions = plan.decisions
    row = None
    if isinstance(of, str) or not len(decisions):
        section = str(of)
        if section not in plan.budget.caps:
            raise unknown_section([section], plan.budget.sections)
        wanted, kept = plan[section].demand, plan[section].granted
        reasons = [*_limits(plan, section)]
    else:
        row = _row(plan, of)
        decided = decisions[row]
        section, wanted, kept = decided.section, decided.tokens, decided.kept
        rows = decisions.columns.rows(section)
        staying = int((decisions.kept[rows] > 0).sum())
        reasons = [
            *_limits(plan, section),
            f"{staying:,} of its {len(rows):,} items stay. This one ({wanted:,} tokens) is {decided.outcome}: "
            f"{decided.reason}.",
        ]

    lost = _LossExplainer(plan, section, row, replan)
    mends = lost.mends() if kept < wanted else ()
    return Why(
        section=section,
        wanted=wanted,
        kept=kept,
        reasons=tuple(reasons),
        mends=mends,
        unmended=lost.unmended() if kept < wanted and not mends else "",
    )


def _row(plan: Plan, of: int | Item) -> int:
    items = plan.decisions.columns.items
    if isinstance(of, Item) and of in items:
        return int(items.index(of))
    if not isinstance(of, int | np.integer) or not -len(items) <= of < len(items):
        raise LookupError(
            f"Unknown item {brief(of)}. Pass the item, or its place from 0 to {len(items) - 1:,}."
        )
    return range(len(items))[of]


def _limits(plan: Plan, section: str) -> Iterator[str]:
    """Explain a section's limit: its demand, its cap, and the grants before it."""
    budget = plan.budget
    grant = plan[section]
    name = one_line(section)
    yield f"{name} asked for {grant.demand:,} tokens and got {grant.granted:,} of a limit of {grant.limit:,}."
    cap = budget.caps[section]
    if cap is not None and cap <= grant.limit:
        yield f"Its limit is its own cap, {cap:,} tokens."
        return
    order = [a.section for a in budget.asked]
    before = [plan[s] for s in order[: order.index(section)] if plan[s].granted]
    took = ", ".join(f"{one_line(g.section)} {g.granted:,}" for g in before)
    yield f"Its limit is the rest of the {budget.usable:,} usable tokens; earlier sections took {took or 'none'}."


class _LossExplainer:
    """A lost item or section, and the single changes that may keep it."""

    def __init__(self, plan: Plan, section: str, row: int | None, replan: Replan) -> None:
        budget = plan.budget
        self.plan = plan
        self.section = section
        self.row = row
        self.replan = replan
        self.needs = {grant.section: grant.demand for grant in plan.grants}
        self.contents: Contents = plan.decisions.columns if len(plan.decisions) else self.needs
        self.cap = budget.caps[section]
        self.most = max(self.cap or 0, self.needs[section])
        self.settled = max(settled_window(budget, self.needs), budget.window)
        own_line = (a for a in budget.allocations if a.section == section)
        self.allocation = next(own_line, Allocation(section))

    def mends(self) -> tuple[Mend, ...]:
        """Return the changes that keep it, of one line, of the item, or of two lines."""
        mends = [*self.by_budget()]
        if not any(mend.line == self.section for mend in mends):
            mends += self.by_cap_and_window()
        if self.row is not None:
            mends += self.by_item(self.row)
        return tuple(mends)

    def unmended(self) -> str:
        """Describe the outcome in a window so large that more changes nothing."""
        budget = self._changed({"window": self.settled})
        if budget is None:
            return f"No change keeps it: a window of {self.settled:,} tokens is still too small for reserves and caps."
        other = self.replan(budget, self.contents)
        grant = other[self.section]
        got = (
            f"No change was found that keeps it: in a window of {self.settled:,} tokens {one_line(self.section)} gets "
            f"{grant.granted:,} of {grant.demand:,} tokens"
        )
        if self.row is None:
            return f"{got}."
        decision = other.decisions[self.row]
        return f"{got}, and this item is {decision.outcome}: {decision.reason}."

    def by_cap_and_window(self) -> Iterator[Mend]:
        """Yield a raise of the section's own cap together with the window."""
        budget = self.plan.budget
        if self.cap is None:
            return
        roomy = self._changed({self.section: self.most}) or budget
        window = max(budget.window, settled_window(roomy, self.needs))
        needed = nearest_value(
            lambda n: self._keeps(self._changed({self.section: n, "window": window})),
            self.cap,
            self.most,
        )
        if needed is not None:
            beginning = (
                f"Raise the cap of {one_line(self.section)} from {self.cap:,} to {needed:,} tokens, and enlarge "
                "the window"
            )
            yield from self._mend(
                "window",
                budget.window,
                window,
                beginning,
                lambda n: {self.section: needed, "window": n},
            )

    def by_budget(self) -> Iterator[Mend]:
        """Change a line of the budget: the own cap, reserves, caps of others, the importance, the window."""
        budget = self.plan.budget
        name = one_line(self.section)
        if self.cap is not None:
            yield from self._mend(self.section, self.cap, self.most, f"Raise the cap of {name}")
        for line, size in budget.sizes.items():
            yield from self._mend(line, size, 0, f"Lower the reserve {one_line(line)}")
        for grant in self.plan.grants:
            other = budget.caps[grant.section]
            if other is not None and grant.section != self.section and 0 < grant.granted <= other:
                beginning = f"Lower the cap of {one_line(grant.section)}"
                yield from self._mend(grant.section, other, 1, beginning)
        now = self.allocation.limit_items
        if now is not None and len(self.plan.decisions):
            beginning, ending = f"Keep more items of {name}:", " {1} instead of {0}."
            most = max(now, len(self.contents.rows(self.section)))
            changes = self._own("limit_items")
            yield from self._mend("limit_items", now, most, beginning, changes, ending)
        if not self.allocation.required:
            beginning, ending = f"Raise the importance of {name}", " from {} to {}."
            now = self.allocation.importance
            most = max(now + 1, _MOST_IMPORTANT)
            changes = self._own("importance")
            yield from self._mend("importance", now, most, beginning, changes, ending)
        yield from self._mend("window", budget.window, self.settled, "Enlarge the window")

    def by_item(self, row: int) -> Iterator[Mend]:
        """Yield changes of the item itself: its importance and its length."""
        item = self.contents.items[row]

        def is_kept(**changes: int) -> bool:
            items = list(self.contents.items)
            items[row] = replace(item, **changes)
            return self._keeps(self._changed({}), items)

        importance = item.importance
        if importance is None:
            importance = self.allocation.importance
        most = max(importance + 1, _MOST_IMPORTANT)
        higher = nearest_value(lambda n: is_kept(importance=n), importance, most)
        if higher is not None:
            sentence = f"Give the item importance {higher} instead of {importance}."
            yield Mend(line="importance", before=importance, after=higher, sentence=sentence)

        tokens = nearest_value(lambda n: is_kept(tokens=n), item.tokens, 1)
        if tokens is not None:
            sentence = f"Make the item {item.tokens - tokens:,} tokens shorter, {tokens:,} in all."
            yield Mend(line="tokens", before=item.tokens, after=tokens, sentence=sentence)

    def _own(self, field: str) -> Callable[[int], dict[str, Any]]:
        return lambda n: {self.section: {field: n}}

    def _mend(
        self,
        line: str,
        now: int,
        far: int,
        beginning: str,
        changes: Callable[[int], dict[str, Any]] | None = None,
        ending: str = " from {:,} to {:,} tokens.",
    ) -> Iterator[Mend]:
        """Give the value of a line nearest to `now` that keeps it; the sentence begins and ends as is given."""
        if far == now:
            return
        changes = changes or (lambda n: {line: n})
        deficit = self.plan.budget.deficit
        size = nearest_value(lambda n: self._keeps(self._changed(changes(n))), now, far)
        if size is not None and self._changed(changes(size), deficit) is None:
            # It is kept there, but the claims exceed the window: farther on they may not.
            size = nearest_value(
                lambda n: self._keeps(self._changed(changes(n), deficit)), size, far
            )
        if size is not None:
            budget = self._changed(changes(size), deficit)
            yield Mend(line, now, size, beginning + ending.format(now, size), budget)

    def _changed(self, changes: dict[str, Any], deficit: Deficit = "signed") -> Budget | None:
        """Return the changed budget; None where the rules for its deficit refuse it."""
        try:
            signed: Budget = replace(self.plan.budget, deficit="signed")
            return replace(signed.assign(**changes), deficit=deficit)
        except ValueError:
            return None

    def _keeps(self, budget: Budget | None, contents: Contents = None) -> bool:
        if budget is None:
            return False
        other = self.replan(budget, contents or self.contents)
        if self.row is None:
            cut = other[self.section].cut
        else:
            decided = other.decisions[self.row]
            cut = decided.tokens - decided.kept
        return cut == 0 and bool(other.free >= min(self.plan.free, 0))


def nearest_value(keeps: Callable[[int], bool], near: int, far: int) -> int | None:
    """Return the value nearest to `near` at which something becomes true; None if it is false even at `far`.

    The value is tested, and so is its neighbour on the near side, which fails.

    Examples
    --------
    >>> nearest_value(lambda n: n >= 700, 500, 10_000), nearest_value(lambda n: n <= 100, 300, 1)
    (700, 100)
    >>> nearest_value(lambda n: False, 0, 9) is None
    True
    """
    if not keeps(far):
        return None
    while abs(far - near) > 1:
        middle = (near + far) // 2
        if keeps(middle):
            far = middle
        else:
            near = middle
    return far


def settled_window(budget: Budget, needs: Mapping[str, int]) -> int:
    """Return a window beyond which the sections are granted no more.

    In that window each share is as large as it is needed, or as its `at_most` lets it become, and what the reserves
    leave holds all that is asked for. Where reserves are shares of the whole, no window leaves anything; then it is
    the one in which all else is settled.

    Parameters
    ----------
    budget : Budget
        The lines; its own window does not count.
    needs : mapping of str to int
        The most that each section asks for, in tokens.

    Returns
    -------
    int
        In tokens, at most `MOST_TOKENS`.

    Examples
    --------
    A tenth of the window is 500 tokens in one of 5,000.

    >>> budget = Budget(1_000, [], [Allocation("a", cap=Share(0.1)), Allocation("b")])
    >>> settled_window(budget, {"a": 500, "b": 100})
    5010
    """
    reserves = [reserve.size for reserve in budget.reserves]
    caps = [allocation.cap for allocation in budget.allocations if allocation.cap is not None]
    floors = [allocation.floor for allocation in budget.allocations]
    lines = [*reserves, *caps, *floors]
    rounding = len(lines) + 1

    # What the lines that do not grow claim, and what those that do leave of each token more.
    fixed = sum(_fixed(size) for size in (*reserves, *caps)) + sum(needs.values()) + rounding
    by_reserves = sum((_growth(size) for size in reserves), Fraction(0))
    by_caps = sum((_growth(cap) for cap in caps), Fraction(0))
    windows = [Fraction(fixed)]
    windows += [fixed / left for left in (1 - by_reserves - by_caps, 1 - by_reserves) if left > 0][
        :1
    ]

    # Where each share is as large as it is needed, or can become.
    most = max([0, *needs.values()])
    for allocation in budget.allocations:
        need = needs.get(allocation.section, most)
        windows += [_window_of(size, need) for size in (allocation.cap, allocation.floor)]
    windows += [_window_of(size, 0) for size in reserves]
    return max(1, min(MOST_TOKENS, ceil(max(windows))))


def _growth(amount: Amount) -> Fraction:
    """Return an amount's lasting share of each further token of the window.

    An amount that is fixed or has an upper limit takes none.
    """
    if not isinstance(amount, Share) or amount.at_most is not None:
        return Fraction(0)
    return exact_number(amount.ratio) or Fraction(0)


def _fixed(amount: Amount) -> int:
    """Return the largest part of an amount that does not grow with the window."""
    if not isinstance(amount, Share):
        return amount
    if amount.at_most is None:
        return amount.at_least
    return amount.at_most


def _window_of(amount: Amount | None, tokens: int) -> Fraction:
    """Return the window in which a share reaches a size, or its maximum."""
    if not isinstance(amount, Share):
        return Fraction(0)
    ratio = exact_number(amount.ratio) or Fraction(0)
    enough = tokens + 1 if amount.at_most is None else amount.at_most
    return enough / ratio if ratio else Fraction(0)


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
        return f"{self.code}: {two_sentences(self.sentence, self.mend)}"


@dataclass(frozen=True)
class Case:
    """A budget and the facts known about it; a check without its facts finds nothing.

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
            # 0 clears all results but those left alone: it is meant.
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
        run = longest = 0
        for lost in self.lost:
            run += 1
            if not lost:
                run = 0
            longest = max(longest, run)
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
            if section in self.demand:
                column = self.demand[section].to_numpy()
            else:
                column = np.zeros(1)
            if (changes := int((np.diff(column) != 0).sum())) * 2 > len(self.demand):
                where = f"{one_line(section)} comes before {one_line(remainder)}"
                notice = (
                    f"{where} and changes at {changes:,} of {len(self.demand):,} requests, so nothing "
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
        # A cap that is too large all alone has a finding of its own.
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
        """Report sections without a cap that exceed the shared pool."""
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
                    f"so {one_line(section)} gets less than its cap ({cap:,})",
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
        most = min(filter(None, (self.answer, self.longest)), default=0)
        if self.thinking and most and self.thinking >= most:
            notice = f"Thinking may take {self.thinking:,} tokens, but thinking and answer together have only {most:,}"
            yield notice, f"lower thinking well below {most:,}, or raise the reserve for the answer"

    def find_prompt_below_cache(self) -> Notices:
        if len(self.demand):
            largest_demand = int(self.demand.sum(axis=1).max())
        else:
            largest_demand = self.budget.usable
        if (most := max(0, min(largest_demand, self.budget.usable))) < self.cache_minimum:
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
        if (
            read
            and self.today
            and (days := (self.today - date.fromisoformat(read)).days) > MOST_DAYS
        ):
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
                f"The tokens of {name} are estimated ({one_line(substitute)}), but no reserve is a buffer",
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
    nothing-usable: The reserves (8,191) leave 1 of 8,192 tokens. Lower a reserve, or choose a larger window.
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
