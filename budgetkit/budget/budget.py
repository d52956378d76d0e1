"""A context window, its reserves, and the allocation of the remaining tokens.

    usable      = window - reserves
    shared_pool = usable - caps

Different systems do the same subtraction for different purposes: the remaining tokens are for the history, for memory,
or for all sections without a cap. A `Budget` holds numbers and no text. It is immutable: `Budget.assign`, which the
sliders call, returns a changed copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

from budgetkit.budget import validation
from budgetkit.budget.allocation import (
    ORDERS,
    Allocation,
    Line,
    Order,
    Pool,
    Reserve,
    check_all,
    check_choice,
    line_with,
)
from budgetkit.budget.amounts import ROUNDINGS, Amount, Rounding, check_tokens, sizes
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.html import POOL, block
from budgetkit.budget.quoting import printable

T = TypeVar("T")


class once(cached_property[T]):  # noqa: N801  # lower case, as cached_property is
    """A `functools.cached_property` without the lock of Python 3.11.

    The lock takes most of the time of a call. Without the lock, two threads may compute a value at the same time, so
    use this class only for deterministic values.

    Examples
    --------
    >>> class Window:
    ...     @once
    ...     def tokens(self): return 8_192
    >>> Window().tokens
    8192
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> T:  # type: ignore[override]
        if instance is None:
            return self  # type: ignore[return-value]  # read from the class, as documentation tools do
        value: T = self.func(instance)
        instance.__dict__[self.attrname] = value
        return value


WindowKind = Literal["shared", "input", "usable"]
Deficit = Literal["raise", "clamp", "signed"]
_CHOICES: dict[str, tuple[str, ...]] = {"kind": get_args(WindowKind), "order": tuple(ORDERS)}
_CHOICES |= {"deficit": get_args(Deficit), "undeclared": ("error", "pool"), "rounding": ROUNDINGS}


@dataclass(frozen=True)
class Budget:
    """A window, its reserves and its allocations.

    Parameters
    ----------
    window : int
        Size of the context window, in tokens.
    reserves : sequence of Reserve
        The reserves.
    allocations : sequence of Allocation
        The sections in the order of the prompt.
    kind : {"shared", "input", "usable"}
        Content of the window: prompt and answer ("shared"), the prompt alone ("input"), or the prompt in a window that
        already excludes the answer ("usable"). The output reserve is subtracted only from a shared window.
    order : {"importance", "caps first", "pool together", "pool each", "pool by item", "open by item"}
        Order in which sections are allocated after the required sections, and the rule that limits sections without a
        cap; see `ORDERS` in `budgetkit.budget.allocation`.
    deficit : {"raise", "clamp", "signed"}
        Remaining tokens if reserves and caps exceed the window: an error, 0, or a negative number.
    undeclared : {"error", "pool"}
        Treatment of a section without an allocation: an error, or a draw on the shared pool.
    rounding : {"floor", "nearest", "largest_remainder"}
        Rounding of shares to tokens.
    remainder : str, optional
        The section for which the remaining tokens are computed, such as history, memory or conversation.
    constrained_below : int, optional
        Size below which the remainder counts as constrained, in tokens.
    roles : mapping of str to str
        The section that each message role belongs to.
    name : str
        Name of the budget's preset.
    max_output : int, optional
        Longest answer of the model, in tokens. A larger reserve for the answer than that causes a warning. This field
        is ignored when budgets are compared.

    Raises
    ------
    ValueError
        If a choice or a named section is unknown, if two lines share a name, or if a floor exceeds its cap. With
        ``deficit="raise"``, the error is also raised if the reserves fill the window, if the caps do not fit next to
        the reserves, or if a section's share is 0 tokens.

    Examples
    --------
    >>> caps = [Allocation("system", 800), Allocation("retrieval", 3200)]
    >>> budget = Budget(8192, [Reserve("output", 1200)], caps)
    >>> budget.usable, budget.shared_pool
    (6992, 2992)
    """

    window: int
    reserves: Sequence[Reserve] = ()
    allocations: Sequence[Allocation] = ()
    kind: WindowKind = "shared"
    order: Order = "importance"
    deficit: Deficit = "raise"
    undeclared: Literal["error", "pool"] = "error"
    rounding: Rounding = "floor"
    remainder: str | None = None
    constrained_below: int | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    max_output: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", check_tokens("window", self.window))
        for name in ("constrained_below", "max_output"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_tokens(name, getattr(self, name)))
        for name, kind in (("reserves", Reserve), ("allocations", Allocation)):
            object.__setattr__(self, name, check_all(name, getattr(self, name), kind))
        validation.check_budget_names(self.name, self.remainder, self.roles)
        object.__setattr__(self, "roles", dict(self.roles))
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        validation.check_lines(self)

    @once
    def sections(self) -> tuple[str, ...]:
        """Names of the sections, in the order of the prompt."""
        return tuple(a.section for a in self.allocations)

    @once
    def sizes(self) -> dict[str, int]:
        """Size of each reserve in tokens, by name.

        Reserves that are not subtracted from the window are included.
        """
        return {r.name: tokens for r, tokens in zip(self.reserves, self._tokens, strict=False)}

    @once
    def _tokens(self) -> tuple[int, ...]:
        """The reserves in tokens, followed by the caps, rounded together."""
        caps = [a.cap for a in self.allocations if a.cap is not None]
        return sizes([*(r.size for r in self.reserves), *caps], self.window, self.rounding)

    @once
    def caps(self) -> dict[str, int | None]:
        """Cap of each section in tokens, or None for an uncapped section."""
        tokens = iter(self._tokens[len(self.reserves) :])
        return {a.section: None if a.cap is None else next(tokens) for a in self.allocations}

    @once
    def floors(self) -> dict[str, int]:
        """Floor of each section in tokens, by name."""
        return {
            a.section: sizes([a.floor], self.window, self.rounding)[0] for a in self.allocations
        }

    @once
    def held(self) -> dict[str, int]:
        """Tokens that reserves set aside for each section."""
        held = Counter[str]()
        for reserve in self.reserves:
            if reserve.serves not in (None, validation.OUTPUT):
                held[str(reserve.serves)] += self.sizes[reserve.name]
        return dict(held)

    @once
    def reserved(self) -> int:
        """Tokens that the reserves subtract from the window."""
        silent = validation.OUTPUT if self.kind != "shared" else object()
        return sum(self.sizes[r.name] for r in self.reserves if r.serves != silent)

    @once
    def capped(self) -> int:
        """Sum of all caps, in tokens, without the sections' own reserves."""
        return sum(
            max(0, cap - self.held.get(s, 0)) for s, cap in self.caps.items() if cap is not None
        )

    @property
    def unclaimed(self) -> int:
        """Window minus reserves and caps, in tokens; it may be negative."""
        return self.window - self.reserved - self.capped

    @property
    def usable(self) -> int:
        """Window minus reserves, in tokens.

        If the reserves exceed the window, the result is negative, or 0 with ``deficit="clamp"``.
        """
        return self._shown(self.window - self.reserved)

    @property
    def shared_pool(self) -> int:
        """Usable window minus caps, in tokens.

        If reserves and caps exceed the window, the result is negative, or 0 with ``deficit="clamp"``.
        """
        return self._shown(self.unclaimed)

    def _shown(self, tokens: int) -> int:
        if self.deficit == "clamp":
            return max(0, tokens)
        return tokens

    @property
    def pool(self) -> Pool:
        """Rule by which sections without a cap draw on the shared pool.

        "open": each section may take all remaining tokens. "together": the sections share the pool. "each": each
        section may take as much as the whole pool.
        """
        return ORDERS[self.order][1]

    @property
    def competes(self) -> bool:
        """True if items, not sections, compete for the pool."""
        return ORDERS[self.order][2]

    @once
    def asked(self) -> tuple[Allocation, ...]:
        """Allocations in allocation order, required allocations first."""
        by_pool = ORDERS[self.order][0]
        return tuple(
            sorted(
                self.allocations,
                key=lambda a: (not a.required, by_pool and a.cap is None, -a.importance),
            )
        )

    @once
    def allocation_order(self) -> tuple[tuple[Allocation, int | None, int, int], ...]:
        """Allocations in allocation order, with their caps, floors and reserved tokens."""
        caps = self.caps
        floors = self.floors
        held_tokens = self.held
        return tuple(
            (a, caps[a.section], floors[a.section], held_tokens.get(a.section, 0))
            for a in self.asked
        )

    def cap(self, section: str) -> int:
        """Return the limit of a section, in tokens.

        Parameters
        ----------
        section : str
            Name of a section. With ``undeclared="pool"``, the section needs no allocation.

        Returns
        -------
        int
            Cap of the section or, if it has none, the shared pool, in tokens.

        Raises
        ------
        LookupError
            If the section is unknown and ``undeclared="error"``.

        Examples
        --------
        >>> budget = Budget(8192, [Reserve("output", 1200)], [Allocation("system", 800)], undeclared="pool")
        >>> budget.cap("memory")
        6192
        """
        if not isinstance(section, str) or (
            section not in self.caps and self.undeclared == "error"
        ):
            raise validation.unknown_section([section], self.sections)
        cap = self.caps.get(section)
        return self.shared_pool if cap is None else cap

    def __iter__(self) -> Iterator[Line]:
        for reserve in self.reserves:
            yield Line(reserve.name, "reserve", reserve.size, self.sizes[reserve.name])
        for allocation in self.allocations:
            yield Line(
                allocation.section, "allocation", allocation.cap, self.caps[allocation.section]
            )

    def assign(
        self, **lines: Amount | float | Reserve | Allocation | Mapping[str, object] | None
    ) -> Budget:
        """Return a copy of the budget with some lines changed.

        Parameters
        ----------
        **lines
            New values by name. ``window`` sets the window, the name of a reserve its size, and the name of a section
            its cap. A value is an amount (a float from 0.0 to 1.0 is a share of the window), a `Reserve` or
            `Allocation`, or a mapping of fields to change.

        Returns
        -------
        Budget
            A new budget.

        Raises
        ------
        LookupError
            If a reserve, a section or a field is unknown.
        ValueError
            If the changed lines contradict each other or the window.

        Examples
        --------
        >>> from budgetkit import Share
        >>> budget = Budget(8192, [Reserve("output", 1200)], [Allocation("history", 3000)])
        >>> budget.assign(output=Share(.25), history={"floor": 500}).shared_pool
        3144
        """
        names = [*self.sizes, *self.sections]
        unknown = [name for name in lines if name not in names and name != "window"]
        if unknown:
            raise LookupError(
                f"{unknown_name('reserve or section', unknown[0], ['window', *sorted(names)])} "
                f"{validation.NEW_SECTION}."
            )
        # Unchanged fields were checked when this budget was made.
        changed = object.__new__(type(self))
        sections = self.allocations
        attributes = self.__dict__
        changed.__dict__.update(
            {name: attributes[name] for name in _FIELDS},
            window=check_tokens("window", lines.get("window", self.window)),
            reserves=tuple(
                [
                    line_with(r, "size", lines[r.name]) if r.name in lines else r
                    for r in self.reserves
                ]
            ),
            allocations=tuple(
                [
                    line_with(a, "cap", lines[a.section]) if a.section in lines else a
                    for a in sections
                ]
            ),
        )
        validation.check_lines(changed)
        return changed

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        lines = "".join(
            f", {line.name}={'pool' if line.tokens is None else line.tokens}" for line in self
        )
        return printable(
            f"Budget({label}window={self.window}{lines}, shared_pool={self.shared_pool})"
        )

    def _repr_html_(self) -> str:
        title = (
            f"Budget {self.name}".rstrip() + f": a window of {self.window:,} tokens ({self.kind})"
        )
        rows = [
            (x.name, x.kind, "shared pool" if x.amount is None else x.amount, x.tokens or "")
            for x in self
        ]
        table = [
            ("line", "kind", "amount", "tokens"),
            *rows,
            (POOL, "", "remaining tokens", self.shared_pool),
        ]
        if self.unclaimed < 0:
            short = [f"Claims exceed the window by {-self.unclaimed:,} tokens."]
        else:
            short = []
        return block(
            title, [*((x.name, x.tokens or 0) for x in self), (POOL, self.unclaimed)], table, short
        )


_FIELDS = tuple(each.name for each in fields(Budget))
