"""A fold: which rule is the cheapest by the price of a cached token and by window, and where the order turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from budgetkit.lab import figures
from budgetkit.lab.explorers.conversation.results import ConversationResults
from budgetkit.lab.explorers.conversation.settings import ConversationSettings
from budgetkit.lab.explorers.conversation.systems_fold import window_of_systems
from budgetkit.lab.explorers.drawing import listed
from budgetkit.lab.explorers.folds import button, text
from budgetkit.lab.explorers.library import Library
from budgetkit.lab.sessions.sentences import turning_points

Data = dict[str, Any]
#: Windows that are tried, as multiples of the one at hand.
_MULTIPLES: Final = (0.25, 0.5, 1.0, 2.0)
_MANY: Final = (
    2_000  # messages above which 32 replays take seconds, so that somebody has to ask for them
)


class TurningFold:
    """Rules by the price of a cached token and by window, as one picture."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._wanted = False

    def parts(self, settings: ConversationSettings, results: ConversationResults) -> list[Data]:
        """Say in each window which rule costs least, and at which price another does."""
        messages = len(results.run.trace.messages)
        if messages > _MANY and not self._wanted:
            words = f"32 replays of {messages:,} messages: this takes some seconds."
            return [text(words), button("Work it out", {"work": True})]
        compared = results.run.systems(window_of_systems(settings, results))
        size = compared.setup.budget.window
        windows = [int(size * multiple) for multiple in _MULTIPLES]
        table = results.run.turning(windows)
        here = f"Here the window is {size:,} tokens and a cached token costs {compared.setup.cache.read:g} of another."
        drawn = {
            "title": figures.order_turns.title,
            "note": f"{here} Under a square: the change against nothing leaving. A red line: the order turns.",
            "spec": figures.order_turns.spec(table),
            "table": listed(figures.order_turns.table(table)),
            "click": None,
        }
        return [
            *(text(sentence) for sentence in turning_points(table)),
            {"is": "figure", "name": "turning", "figure": drawn},
        ]

    def hear(
        self, settings: ConversationSettings, results: ConversationResults, event: Data
    ) -> None:
        """Let the turning points be worked out, which takes long, once the button was pressed."""
        self._wanted = self._wanted or "work" in event
