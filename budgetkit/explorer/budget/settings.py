"""Settings: all that a hand can change in the budget explorer, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from budgetkit.budget import Budget
from budgetkit.budget.amounts import Amount, check_tokens
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.explorer.budget.amount_edits import amounts_of, moved, names, with_reserves
from budgetkit.models import Model
from budgetkit.presets import PRESETS, preset

OWN = "own"
WINDOWS = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 128_000, 200_000, 400_000, 1_000_000, 1_047_576, 2_000_000)
DEFAULT_MODEL = "gpt-4o"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set in the explorer."""

    preset: str = "chat"
    model: str = DEFAULT_MODEL
    window: int | None = None
    own: Budget | None = None
    lines: Mapping[str, Amount | None] = field(default_factory=dict)
    locks: Mapping[str, int | None] = field(default_factory=dict)
    counter: str | None = None
    trace: str | None = None
    path: str = ""
    conversation: int = 0
    turn: int | None = None
    demand: Mapping[str, int] = field(default_factory=dict)
    pinned: Budget | None = None

    def base(self, model: Model) -> Budget:
        """Return the budget before any line was moved."""
        if self.own is not None:
            return self.own if self.window is None else replace(self.own, window=self.window, deficit="signed")
        sized = model if self.window is None else replace(model, window=self.window, max_output=None)
        return _made(self.preset, sized)

    def budget(self, model: Model) -> Budget:
        """Return the budget with its moved and locked lines; too large claims show as a negative number."""
        base = replace(self.base(model), deficit="signed")
        moved = {**self.lines, **self.locks}
        return with_reserves(base, moved).assign(**{n: a for n, a in moved.items() if n in names(base, moved)})

    def as_at(self, start: Settings) -> Settings:
        """Return the first settings with the conversation, the locks and the pinned budget of now."""
        kept = {name: getattr(self, name) for name in ("trace", "path", "conversation", "turn", "locks", "pinned")}
        return replace(start, **kept)

    def next_line(self, budget: Budget, base: Budget, line: str, tokens: int) -> Settings:
        """Return the settings with one line moved; a share stays a share."""
        tokens = check_tokens(line, tokens)
        if line == "window":
            return replace(self, window=tokens)
        amounts = amounts_of(budget, base)
        if line not in amounts:
            raise LookupError(
                f"no line {brief(line)} in this budget; its lines are {quoted(amounts)}; name one of them"
            )
        return self.next_amount(line, moved(amounts[line], tokens, budget.window, line in budget.caps))

    def next_amount(self, line: str, amount: Amount | None) -> Settings:
        """Return the settings with one line of another amount."""
        if line in self.locks:
            held = self.locks[line]
            size = "without a cap" if held is None else f"at {held:,} tokens"
            raise ValueError(f"{one_line(line)} was to change; it is locked {size}; unlock it first")
        return replace(self, lines={**self.lines, line: amount})


@lru_cache(maxsize=32)
def _made(name: str, sized: Model) -> Budget:
    """Return a preset's budget, which every part of a move asks for."""
    return preset(name)(sized)


def known_presets() -> tuple[tuple[str, str], ...]:
    """Return the titles and names of the presets."""
    return tuple((found.title, name) for name, found in PRESETS.items())
