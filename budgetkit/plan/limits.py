"""What each section may take: they are asked once, in order, and here the caps of sections are applied.

    limit   = min(cap, room less the floors of the sections that are asked later, the pool)
    granted = what the section takes of its limit; the next section may use the rest

A limit is never below the section's own floor. Sections with a weight share the room: each takes its floor and, beyond
it, tokens in proportion to its weight, but no more than it wants (water-filling). The level is the number at which the
room is just used up:

    sum over the weighted sections not asked yet of min(what it wants, weight * level) = room

`allocate_in_order` is this walk. Three functions use it: `allocate` for sections that can be cut anywhere, `fit` for
whole items, and `allocate_many` for many demands at once. They differ only in how a section answers.

Property tests check that

- ``0 <= granted <= min(demand, limit)``;
- used + free + reserved is the window, to the token;
- only required sections and floors can take more than the window has, and then `Plan.free` is negative;
- every item has exactly one decision.

A larger window does not always grant every section more: shares grow with the window, what one section leaves
goes to the next, and ``drop`` and ``skip`` decide item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation
from budgetkit.budget.quoting import brief
from budgetkit.budget.validation import other_roles, unknown_section


def allocate_in_order(
    budget: Budget,
    demand: Mapping[str, Any],
    take: Callable[[Allocation, Any, Any, Any], Any],
    required_cap: Callable[[Allocation, Any], Any] = lambda allocation, cap: cap,
    floor_of: Callable[[Allocation, int], Any] = lambda allocation, floor: floor,
    least: Callable[[Any, Any], Any] = min,
    most: Callable[[Any, Any], Any] = max,
) -> Iterator[tuple[Allocation, Any, Any]]:
    """Ask every section once, and give each with its limit and what it was granted.

    Numbers may be int or arrays, with `least` and `most` to match. `required_cap` and `floor_of` say what a cap and a
    floor come to where a section is made of whole items.
    """
    left = _Left(budget, demand, floor_of, least, most)
    for allocation, own_cap, _, held_tokens in budget.walked:
        cap: Any = own_cap
        asks = demand[allocation.section]
        # 1. The section may take what is left: of the room, of the shared pool, and of what is divided by weight.
        limit = left.limit(allocation, cap, held_tokens)
        # 2. If it is required, it may take all that it asks for, whatever is left.
        if allocation.required:
            limit = most(limit, asks)
            # What is required must not vanish: where whole items cannot be cut to the cap, the cap is raised for them.
            if cap is not None and not allocation.is_off:
                if allocation.stands_whole:
                    cap = most(cap, asks)
                else:
                    cap = required_cap(allocation, cap)
        # 3. The cap is applied last, so that neither a requirement nor a floor can pass it.
        if cap is not None:
            limit = least(limit, cap)
        limit = most(limit, 0)
        # 4. The section answers. What was held for it is used first; only the rest is missing to those asked later.
        granted = take(allocation, limit, cap, asks)
        left.spend(most(granted - held_tokens, 0) if held_tokens else granted, own_cap)
        yield allocation, limit, granted


class _Left:
    """What the window has left while one section is asked after the other.

    Attributes
    ----------
    room : int or array
        The window less its reserves and what was taken; what a reserve holds for one section stands beside it.
    pool : int or array
        What no cap claims, less what sections without a cap took of it together.
    promised : dict
        The floor of each section, but never more than it asks for or its cap lets it take.
    waiting, waiting_uncapped : int or array
        What is promised to all sections that are still to be asked, and to those of them without a cap.
    """

    def __init__(
        self, budget: Budget, demand: Mapping[str, Any], floor_of: Any, least: Any, most: Any
    ) -> None:
        self.caps = budget.caps
        self.demand = demand
        self.least = least
        self.most = most
        pool = budget.pool
        lines = budget.walked
        self.shares_pool = pool != "open"
        self.together = pool == "together"
        self.room: Any = budget.window - budget.reserved
        self.pool: Any = max(0, budget.unclaimed)
        self.promised: dict[str, Any] = {
            a.section: least(floor_of(a, floor), self.wanted(a.section))
            for a, _, floor, _ in lines
            if floor
        }
        self.waiting: Any = sum(self.promised.values())
        self.waiting_uncapped: Any = sum(
            [promised_floor for s, promised_floor in self.promised.items() if self.caps[s] is None]
        )
        self.weighted = [a for a, *_ in lines if a.weight]

    def wanted(self, section: str) -> Any:
        """Return what a section asks for, as far as its cap lets it."""
        cap = self.caps[section]
        if cap is None:
            return self.demand[section]
        return self.least(self.demand[section], cap)

    def limit(self, allocation: Allocation, cap: int | None, held_tokens: int) -> Any:
        """Return what a section may take before its cap is applied; from now on it waits no longer."""
        floor = self.promised.get(allocation.section, 0)
        # All that is left, less what is promised to those asked later; and what is held for this section alone.
        self.waiting = self.waiting - floor
        limit = self.room - self.waiting + held_tokens
        # Without a cap it may take no more than the shared pool has. Where the sections without a cap share the pool
        # together, what is promised to the others of them stays in it.
        if cap is None and self.shares_pool:
            self.waiting_uncapped = self.waiting_uncapped - floor
            pool = self.pool
            if self.together:
                pool = pool - self.waiting_uncapped
            limit = self.least(limit, pool)
        # With a weight it may take what is its own and its part of the rest. What another weighted section does not
        # want is divided among those that want more.
        if allocation.weight:
            limit = floor + held_tokens + self._by_weight(allocation, limit - floor - held_tokens)
        # Whatever was said so far, it may take its floor.
        if allocation.section in self.promised:
            return self.most(limit, floor)
        return limit

    def _by_weight(self, allocation: Allocation, room: Any) -> Any:
        """Return a weighted section's part of the room; from now on it is no longer one of the others."""
        self.weighted.remove(allocation)
        others = [
            (a, self.wanted(a.section) - self.promised.get(a.section, 0)) for a in self.weighted
        ]
        part = by_weight(
            room, allocation.weight, [(a.weight, self.most(wanted, 0)) for a, wanted in others]
        )
        # What is lacking is not divided: nobody has less of it for being one of many.
        return self.least(room, part)

    def spend(self, taken: Any, cap: int | None) -> None:
        """Take what a section was granted off what is left."""
        self.room = self.room - taken
        if cap is None and self.together:
            self.pool = self.pool - taken


def by_weight(room: Any, weight: int, others: Sequence[tuple[int, Any]]) -> Any:
    """Return one section's part of a room by weight, where others, (weight, wanted), take no more than they want.

    Examples
    --------
    Of 100 tokens by 1 to 1, where the other wants 10, and where it wants all of it.

    >>> by_weight(100, 1, [(1, 10)]), by_weight(100, 1, [(1, 100)])
    (90, 50)
    """
    # Who wants less than its part takes that, which leaves more for the rest; after one round for each of them nothing
    # changes. Truth is 1 or 0 here, so that arrays of rooms can be divided at once.
    left = room
    weights_left = weight + sum(other_weight for other_weight, _ in others)
    for _ in others:
        is_content = [
            1 * (wanted * weights_left <= other_weight * left) for other_weight, wanted in others
        ]
        left = room
        weights_left = weight
        for (other_weight, wanted), content in zip(others, is_content, strict=True):
            left = left - wanted * content
            weights_left = weights_left + other_weight * (1 - content)

    # its part, rounded to the nearest token
    return (2 * left * weight + weights_left) // (2 * weights_left)


def granted_by(
    least: Callable[[Any, Any], Any] = min,
    choose: Callable[[Any, Any, Any], Any] = lambda condition, yes, no: yes if condition else no,
) -> Callable[[Allocation, Any, int | None, Any], Any]:
    """Return how a section that can be cut anywhere answers, for ints or, with numpy's `least` and `choose`, arrays."""

    def take(allocation: Allocation, limit: Any, cap: int | None, demand: Any) -> Any:
        if cap is not None and allocation.overflow == "drop":
            demand = choose(demand > cap, 0, demand)
        if allocation.when_full == "drop" and not allocation.required:
            wanted = demand if cap is None else least(demand, cap)
            return choose(wanted > limit, 0, wanted)
        return least(demand, limit)  # a limit is never above the cap

    return take


TAKE = granted_by()


def with_undeclared(
    budget: Budget, sections: Iterable[str], tables: Iterable[object] = ()
) -> Budget:
    """Return the budget with the sections it does not name as sections of the pool.

    Examples
    --------
    >>> with_undeclared(Budget(100, undeclared="pool"), ["memory"]).sections
    ('memory',)
    """
    if not isinstance(budget, Budget):
        raise TypeError(
            f"budget is {brief(budget)}; known is Budget; give one, such as budgetkit.presets.chat(8_192)"
        )
    caps = budget.caps
    new = [s for s in sections if s not in caps]
    if not new:
        return budget
    if moved := other_roles(tables, budget.roles, new):
        raise LookupError(moved)
    if budget.undeclared == "error":
        raise unknown_section(new, budget.sections)
    return replace(budget, allocations=(*budget.allocations, *(Allocation(s) for s in new)))
