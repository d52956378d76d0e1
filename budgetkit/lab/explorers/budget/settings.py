"""Settings of the budget explorer, as one value."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Self

from budgetkit.budget import Amount, Budget, Reserve, Share, brief, check_tokens
from budgetkit.budget.errors import unknown_name
from budgetkit.message import Data, Raw
from budgetkit.models import DEFAULT_MODEL, Model, resolve
from budgetkit.presets import preset

#: Reserves with a slider even if the budget lacks them; they claim nothing until they are moved.
USUAL_RESERVES = (Reserve("output", 0, serves="output"), Reserve("safety", 0))


def with_reserves(budget: Budget, moved: Collection[str]) -> Budget:
    """Add the usual reserves that were moved but are missing."""
    names = {line.name for line in budget}
    new = [
        reserve for reserve in USUAL_RESERVES if reserve.name in moved and reserve.name not in names
    ]
    if not new:
        return budget
    return replace(budget, reserves=(*budget.reserves, *new))


def resized(
    amount: Amount | None, size: Amount | None, window: int, is_section: bool
) -> Amount | None:
    """Return an amount of the same kind with a different size.

    A cap of the whole window becomes None, which means no cap. The limits of a share are widened to the new size.

    Examples
    --------
    >>> resized(Share(.1), 2_048, 8_192, True), resized(800, 900, 8_192, True), resized(800, 8_192, 8_192, True)
    (Share(0.25), 900, None)
    """
    if size is None:
        return None
    tokens = size.of(window) if isinstance(size, Share) else size
    if is_section and tokens >= window:
        return None
    if not isinstance(amount, Share):
        return size
    ratio = size.ratio if isinstance(size, Share) else shortest_ratio(tokens, window)
    highest = None if amount.at_most is None else max(amount.at_most, tokens)
    return Share(ratio, min(amount.at_least, tokens), highest)


def shortest_ratio(tokens: int, window: int) -> Decimal:
    """Return the shortest decimal share of the window that gives these tokens.

    Examples
    --------
    >>> shortest_ratio(819, 8_192), shortest_ratio(1_000, 128_000)
    (Decimal('0.1'), Decimal('0.00782'))
    """
    if tokens >= window:
        return Decimal(1)
    exact = Fraction(tokens, window)
    for digits in range(40):
        scaled = -(-exact.numerator * 10**digits // exact.denominator)  # rounded up
        if scaled * window // 10**digits == tokens:
            return Decimal(scaled).scaleb(-digits)
    raise ArithmeticError(
        f"{tokens:,} of {window:,} tokens cannot be written with 40 decimal digits"
    )


OWN = "own"
SHORTEST_STOP = 1_024
WINDOWS = (
    2_048,
    4_096,
    8_192,
    16_384,
    32_768,
    65_536,
    128_000,
    200_000,
    400_000,
    1_000_000,
    1_047_576,
    2_000_000,
)
ROUGH = "chars/4"


@dataclass(frozen=True)
class BudgetSettings:
    """Settings of the budget explorer."""

    preset: str = "chat"
    model: str = DEFAULT_MODEL
    window: int | None = None
    #: The chosen window, if the model does not have it.
    missing_window: int | None = None
    own: Budget | None = None
    lines: Mapping[str, Amount | None] = field(default_factory=dict)
    locks: Mapping[str, int | None] = field(default_factory=dict)
    counter: str | None = None
    #: The cheap count whose error is shown; choosing a model never changes it.
    cheap: str = ROUGH
    trace: str | None = None
    path: str = ""
    conversation: int = 0
    turn: int | None = None
    demand: Mapping[str, int] = field(default_factory=dict)
    #: Settings to compare with the current settings; the bar shows the last of them.
    pins: tuple[BudgetSettings, ...] = ()

    @cached_property
    def base(self) -> Budget:
        """The budget before any reserve or section was moved."""
        if self.own is not None:
            if self.window is None:
                return self.own
            return replace(self.own, window=self.window, deficit="signed")
        model = resolve(self.model)
        if self.window is not None:
            model = replace(model, window=self.window, max_output=None)
        return _made(self.preset, model)

    @cached_property
    def budget(self) -> Budget:
        """The budget with moved and locked sizes, and a signed deficit."""
        moved = {**self.lines, **self.locks}
        whole = with_reserves(replace(self.base, deficit="signed"), moved)
        return whole.assign(**{line.name: moved[line.name] for line in whole if line.name in moved})

    @cached_property
    def planned_budget(self) -> Budget:
        """The budget to plan with.

        If the budget has no roles and a conversation is open, undeclared sections use the shared pool.
        """
        if self.budget.roles or self.trace is None:
            return self.budget
        return replace(self.budget, undeclared="pool")

    @cached_property
    def amounts(self) -> dict[str, Amount | None]:
        """The amount of each slider.

        A section whose cap was removed keeps its previous amount.
        """
        before = {line.name: line.amount for line in self.base}
        whole = with_reserves(self.budget, [reserve.name for reserve in USUAL_RESERVES])
        return {
            line.name: before.get(line.name) if line.amount is None else line.amount
            for line in whole
        }

    @property
    def pinned(self) -> Budget | None:
        """The budget that was pinned last, or None if none is pinned."""
        return self.pins[-1].budget if self.pins else None

    @property
    def unpinned(self) -> Self:
        """The settings without pinned budgets."""
        return replace(self, pins=())

    #: The shelf of the library with the shown contents.
    shelf: ClassVar[str] = "conversations"
    #: The fields that a reset keeps.
    kept: ClassVar[Sequence[str]] = ("trace", "path", "conversation", "turn", "locks", "pins")
    #: The values of other fields after the choice of another model.
    afresh: ClassVar[Raw] = {}

    def with_budget(self, budget: BudgetSettings) -> Self:
        """Return the settings with the budget of other settings."""
        values: Data = {f.name: getattr(budget, f.name) for f in fields(BudgetSettings)}
        return replace(self, **(values | self._afresh(budget.model)))

    def _afresh(self, model: str) -> Data:
        """Return the fields that another model resets, with their new values."""
        return {} if model == self.model else {**self.afresh}

    def showing(self, name: str | None, path: str = "", number: int = 0) -> Self:
        """Return the settings for a file's conversation or for entered sizes.

        `number` is the index of the conversation, counting from 0.
        """
        return replace(self, trace=name, path=path, conversation=number, turn=None)

    def as_at(self, start: Self) -> Self:
        """Return the settings after a reset, which keeps some fields.

        The class attribute `kept` lists these fields, such as the open conversation.
        """
        kept: Data = {name: getattr(self, name) for name in self.kept}
        return replace(start, **kept)

    def with_model(self, name: str, model: Model) -> Self:
        """Return the settings for another model, keeping the window if possible.

        If the longest window of the other model is shorter than the chosen window, the longest window is used, and
        `missing_window` keeps the chosen window.
        """
        chosen = self.missing_window or self.window
        if chosen is None and self.own is not None:
            chosen = self.own.window
        longest = longest_window(model)
        window = chosen
        missing = None
        if chosen is not None and longest is not None and chosen > longest:
            window = None if self.own is None else longest
            missing = chosen
        return replace(
            self, model=name, window=window, missing_window=missing, **self._afresh(name)
        )

    def resize(self, line: str, size: Amount | None) -> Self:
        """Return the settings with one size changed.

        The line is the window, a reserve or a section. A size of None means no cap.
        """
        if not isinstance(size, Share | None):
            size = check_tokens(line, size)
            if line == "window":
                return replace(self, window=size, missing_window=None)
        if line not in self.amounts:
            raise LookupError(unknown_name("reserve or section", line, self.amounts))
        budget = self.budget
        amount = resized(self.amounts[line], size, budget.window, line in budget.caps)
        return self.with_amount(line, amount)

    def with_amount(self, line: str, amount: Amount | None) -> Self:
        """Return the settings with another amount for a reserve or a section."""
        if line in self.locks:
            locked = self.locks[line]
            size = "without a cap" if locked is None else f"at {locked:,} tokens"
            raise ValueError(f"{brief(line)} is locked {size}. Unlock it first.")
        return replace(self, lines={**self.lines, line: amount})


def longest_window(model: Model, kind: str = "") -> int | None:
    """Return a model's longest window, or None for an unknown model.

    If `kind` is "shared", the window includes the answer.

    Examples
    --------
    >>> from budgetkit.models import model
    >>> longest_window(model("gpt-5.4")), longest_window(model("gpt-5.2")), longest_window(model("gpt-5.2"), "shared")
    (1050000, 272000, 400000)
    """
    if model.provenance.startswith("default"):
        return None
    if kind == "shared":
        return model.total
    return model.window


def enough_window(budget: Budget, model: Model, is_enough: Callable[[int], bool]) -> list[int]:
    """Return the next usual window that is large enough, in a list.

    The list is empty if the model has no such window.
    """
    longest = longest_window(model, budget.kind) or 0
    wider = [window for window in WINDOWS if budget.window < window <= longest]
    place = bisect_left(wider, True, key=is_enough)
    return wider[place : place + 1]


@lru_cache(maxsize=32)
def window_stops(longest: int | None) -> tuple[int, ...]:
    """Return the stops of a window slider.

    There are four stops for each doubling, and one for each usual window and the longest window.

    Examples
    --------
    >>> window_stops(4_096)
    (1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096)
    """
    end = longest or WINDOWS[-1]
    stops = {end, *WINDOWS}
    size = SHORTEST_STOP
    while size < end:
        stops |= {size * quarters // 4 for quarters in (4, 5, 6, 7)}
        size *= 2
    return tuple(sorted(stop for stop in stops if stop <= end))


@lru_cache(maxsize=32)
def _made(name: str, sized: Model) -> Budget:
    """Return a preset's budget, cached for the steps of a drag."""
    return preset(name)(sized)
