"""Why: reasons for a loss, and the smallest changes that prevent it.

Each change is found by planning again with other values, until one value keeps the item and the adjacent value does
not. There is no closed formula, because the tokens that one section leaves go to the next section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from budgetkit.budget import Allocation, Budget
from budgetkit.budget.amounts import MOST_TOKENS, Amount, Share, exact_number
from budgetkit.budget.budget import Deficit
from budgetkit.budget.quoting import brief, one_line
from budgetkit.budget.validation import unknown_section
from budgetkit.plan.items import Item

Plan = Any  # of plan.py, which imports this module
Replan = Callable[[Budget, Any], Plan]
Contents = Any  # the contents to plan again: the plan's Items, or the demand of each section
_MOST_IMPORTANT = 10


@dataclass(frozen=True)
class Mend:
    """A change that would keep a lost item or section.

    Parameters
    ----------
    line : str
        Name of the changed value: "window", a reserve, a section (its cap), "importance" (of the section or the item),
        "limit_items" (of the section) or "tokens" (of the item).
    before : int
        The value in the current plan.
    after : int
        The value nearest to `before` that keeps the item or section.
    sentence : str
        The change in words.
    budget : Budget, optional
        The changed budget, or None if the item itself changes.
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
        Name of the section.
    wanted : int
        Demand of the section, or size of the item, in tokens.
    kept : int
        Tokens granted to the section, or tokens that are kept of the item.
    reasons : tuple of str
        The reasons, from the section's limit down to the item.
    mends : tuple of Mend
        The smallest changes that would keep the whole item or section, each verified by planning again. A change is one
        new value or, if the section's cap alone does not suffice, a new cap together with a new window.
    unmended : str
        The outcome in a very large window if no change prevents a loss, otherwise "".

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
    """Explain the outcome of an item or section, and suggest changes."""
    decisions = plan.decisions
    row: Any = None
    if isinstance(of, str) or not len(decisions):
        section = str(of)
        if section not in plan.budget.caps:
            raise unknown_section([section], plan.budget.sections)
        wanted, kept = plan[section].demand, plan[section].granted
        reasons = [*_limits(plan, section)]
    else:
        items = decisions.columns.items
        row = items.index(of) if isinstance(of, Item) and of in items else of
        if not isinstance(row, int | np.integer) or not -len(items) <= row < len(items):
            raise LookupError(
                f"Unknown item {brief(of)}. Pass the item, or its position from 0 to {len(items) - 1:,}."
            )
        row = range(len(items))[row]
        decided = decisions[row]
        section, wanted, kept = decided.section, decided.tokens, decided.kept
        rows = decisions.columns.rows(section)
        staying = int((decisions.kept[rows] > 0).sum())
        reasons = [
            *_limits(plan, section),
            f"It keeps {staying:,} of its {len(rows):,} items. This one ({wanted:,} tokens) is {decided.outcome}: "
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


def _limits(plan: Plan, section: str) -> Iterator[str]:
    """Explain a section's limit by its cap or by earlier grants."""
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
    """A lost item or section, with the changes that may keep it."""

    def __init__(self, plan: Plan, section: str, row: int | None, replan: Replan) -> None:
        budget = plan.budget
        self.plan = plan
        self.section = section
        self.row = row
        self.replan = replan
        self.needs = {grant.section: grant.demand for grant in plan.grants}
        self.contents: Contents = plan.contents
        self.cap = budget.caps[section]
        self.most = max(self.cap or 0, self.needs[section])
        self.settled = max(settled_window(budget, self.needs), budget.window)
        own_line = (a for a in budget.allocations if a.section == section)
        self.allocation = next(own_line, Allocation(section))

    def mends(self) -> tuple[Mend, ...]:
        """Return the smallest changes that would keep the item or section."""
        mends = [*self.by_budget()]
        if not any(mend.line == self.section for mend in mends):
            mends += self.by_cap_and_window()
        if self.row is not None:
            mends += self.by_item(self.row)
        return tuple(mends)

    def unmended(self) -> str:
        """Describe the outcome in a window where grants no longer grow."""
        budget = self._changed({"window": self.settled})
        if budget is None:
            return f"No change keeps it: a window of {self.settled:,} tokens is still too small for reserves and caps."
        try:
            other = self.replan(budget, self.contents)
        except ValueError:
            return "No change was found that keeps it."
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
        """Yield an increase of both the section's cap and the window."""
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
        """Yield changes to a cap, reserve, item limit, importance or the window."""
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
        """Yield changes to the item itself: its importance and its length."""
        item = self.contents.items[row]
        importance = item.importance
        if importance is None:
            importance = self.allocation.importance
        most = max(importance + 1, _MOST_IMPORTANT)
        for line, now, far in (("importance", importance, most), ("tokens", item.tokens, 1)):

            def is_kept(value: int, line: str = line) -> bool:
                items = [*self.contents.items]
                items[row] = replace(item, **{line: value})
                return self._keeps(self._changed({}), items)

            value = nearest_value(is_kept, now, far)
            if value is None:
                continue
            sentence = f"Give the item importance {value} instead of {now}."
            if line == "tokens":
                sentence = f"Make the item {now - value:,} tokens shorter, {value:,} in all."
            yield Mend(line, now, value, sentence)

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
        """Yield the smallest change of one value that prevents the loss."""
        if far == now:
            return
        changes = changes or (lambda n: {line: n})
        deficit = self.plan.budget.deficit
        size = nearest_value(lambda n: self._keeps(self._changed(changes(n))), now, far)
        if size is not None and self._changed(changes(size), deficit) is None:
            # At this value the item is kept, but the claims exceed the window; at values further away they may fit.
            size = nearest_value(
                lambda n: self._keeps(self._changed(changes(n), deficit)), size, far
            )
        if size is not None:
            budget = self._changed(changes(size), deficit)
            yield Mend(line, now, size, beginning + ending.format(now, size), budget)

    def _changed(self, changes: dict[str, Any], deficit: Deficit = "signed") -> Budget | None:
        """Return the changed budget, or None if the budget is invalid."""
        try:
            signed: Budget = replace(self.plan.budget, deficit="signed")
            return replace(signed.assign(**changes), deficit=deficit)
        except ValueError:
            return None

    def _keeps(self, budget: Budget | None, contents: Contents = None) -> bool:
        if budget is None:
            return False
        try:
            other = self.replan(budget, contents or self.contents)
        except ValueError:  # items of a required section would lose the rest of their group
            return False
        if self.row is None:
            cut = other[self.section].cut
        else:
            decided = other.decisions[self.row]
            cut = decided.tokens - decided.kept
        return cut == 0 and bool(other.free >= min(self.plan.free, 0))


def nearest_value(keeps: Callable[[int], bool], near: int, far: int) -> int | None:
    """Find the value nearest to `near` that meets a condition.

    The result is None if `far` does not meet the condition. The search halves the range between `near` and `far`, so it
    expects that the condition, once met on the way to `far`, stays met.

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
    """Return the window beyond which grants no longer grow.

    In that window each share is as large as needed or as its `at_most` allows, and the usable window holds the whole
    demand. If the reserves fill every window, the result is the window at which all other lines stop growing.

    Parameters
    ----------
    budget : Budget
        The budget, whose window is ignored.
    needs : mapping of str to int
        Maximum demand of each section, in tokens.

    Returns
    -------
    int
        The window in tokens, at most `MOST_TOKENS`.

    Examples
    --------
    A tenth of 5,010 tokens is 501, which is enough for a demand of 500 tokens.

    >>> budget = Budget(1_000, [], [Allocation("a", cap=Share(0.1)), Allocation("b")])
    >>> settled_window(budget, {"a": 500, "b": 100})
    5010
    """
    reserves = [reserve.size for reserve in budget.reserves]
    caps = [allocation.cap for allocation in budget.allocations if allocation.cap is not None]
    floors = [allocation.floor for allocation in budget.allocations]
    lines = [*reserves, *caps, *floors]
    rounding = len(lines) + 1

    # The claims of fixed lines, and the share of each further token that growing lines leave.
    fixed = sum(_fixed(size) for size in (*reserves, *caps)) + sum(needs.values()) + rounding
    by_reserves = sum((_growth(size) for size in reserves), Fraction(0))
    by_caps = sum((_growth(cap) for cap in caps), Fraction(0))
    windows = [Fraction(fixed)]
    windows += [fixed / left for left in (1 - by_reserves - by_caps, 1 - by_reserves) if left > 0][
        :1
    ]

    # The windows in which each share is as large as needed, or as large as allowed.
    most = max([0, *needs.values()])
    for allocation in budget.allocations:
        need = needs.get(allocation.section, most)
        windows += [_window_of(size, need) for size in (allocation.cap, allocation.floor)]
    windows += [_window_of(size, 0) for size in reserves]
    return max(1, min(MOST_TOKENS, ceil(max(windows))))


def _growth(amount: Amount) -> Fraction:
    """Return an amount's share of each further token in a large window.

    A fixed amount, or a share with an upper limit, takes none of these tokens.
    """
    if not isinstance(amount, Share) or amount.at_most is not None:
        return Fraction(0)
    return exact_number(amount.ratio) or Fraction(0)


def _fixed(amount: Amount) -> int:
    """Return the largest fixed part of an amount.

    The fixed part of a share is its upper limit or, without one, its lower limit.
    """
    if not isinstance(amount, Share):
        return amount
    if amount.at_most is None:
        return amount.at_least
    return amount.at_most


def _window_of(amount: Amount | None, tokens: int) -> Fraction:
    """Return the window in which a share is large enough.

    A share with an upper limit is large enough at that limit, and any other share if it exceeds `tokens`. The result is
    0 for any amount that is not a share.
    """
    if not isinstance(amount, Share):
        return Fraction(0)
    ratio = exact_number(amount.ratio) or Fraction(0)
    enough = tokens + 1 if amount.at_most is None else amount.at_most
    return enough / ratio if ratio else Fraction(0)
