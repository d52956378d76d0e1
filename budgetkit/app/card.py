"""DesignCard: one budget in one view, and how far off a cheap count of it would be."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from budgetkit.app.headline import headline, key_figures
from budgetkit.app.kinds import CLASSES
from budgetkit.app.misjudged import Misjudged, conversation_errors, shipped_errors
from budgetkit.app.strip import Room, room_of, strip
from budgetkit.counters import Counter
from budgetkit.explorer.budget.explorer import OPENS, BudgetExplorer
from budgetkit.explorer.budget.results import ROUGH, Results
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.folds import Fold
from budgetkit.explorer.view import View, view_of

Data = dict[str, Any]


CardView = view_of("CardView", (), OPENS)  # no charts, so that nothing large is loaded


class DesignCard(BudgetExplorer):
    """Design a budget in one view: what is set on the left, what it leaves and how wrong it is on the right.

    Parameters are those of :class:`budgetkit.BudgetExplorer`, and so are its sliders, handles, values and `load`. The
    cheap counter is the chosen one where that is not the model's own, else "chars/4".

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or a budget to start from.
    trace : str, path, Trace or sequence of Trace, optional
        The conversations to plan.
    model : str, default "gpt-4o"
        The model; its window holds for a preset, and its encoding for what is right.
    counter : str, optional
        What to count with; the model's own where it is left out.
    window : int, optional
        Another window than the model's, in tokens.

    Raises
    ------
    ValueError, LookupError, OSError
        If one of them is unknown or cannot be read.

    Examples
    --------
    >>> card = DesignCard("chat", "mixed-language", window=8_192)
    >>> card
    DesignCard(chat, gpt-4o, window=8,192)
    >>> card.errors.set_index(["kind", "where"])[["error", "really"]].round(2).loc[("CJK", "conversation")].tolist()
    [-0.61, 4190.0]
    >>> card.controls.lines["conversation"].box.value = 1_000
    >>> card.errors["really"].tolist()
    [1169, 1421, 2499, 2558, 1329, 1146]
    """

    view_class: ClassVar[type[View]] = CardView
    folds: ClassVar[Mapping[str, Fold]] = {}

    @property
    def errors(self) -> pd.DataFrame:
        """How far off the cheap count is, one row a kind of text and a place.

        exact and estimate are in tokens, error is a share of exact, low and high hold nine texts in ten. budget is
        what the history may take at this moment, really what it takes in truth when the cheap count fills it.
        """
        room = room_of(self._found.plan)
        columns = ("kind", "where", "texts", "exact", "estimate", "error", "low", "high")
        rows = [
            {name: getattr(row, name) for name in columns}
            | {"budget": room.budget, "really": (really := row.really(room.budget)), "verdict": room.verdict(really)[0]}
            for row in self._misjudged(self._history.now, self._found)
        ]
        return pd.DataFrame(rows)

    def _misjudged(self, settings: Settings, found: Results) -> tuple[Misjudged, ...]:
        """Return the errors on the shipped texts and on the conversation, each counted once."""
        library, (cheap, exact) = self._library, self._counters(found)
        names = (cheap.name, exact.name)
        shipped = library.once(("shipped errors", *names), lambda: shipped_errors(cheap, exact))
        if settings.trace is None:
            return shipped
        key = ("conversation errors", settings.trace, settings.conversation, *names)
        trace = library.conversations(settings.trace)[settings.conversation]
        rows = (*shipped, *library.once(key, lambda: conversation_errors(trace, cheap, exact)))
        return tuple(sorted(rows, key=lambda row: tuple(CLASSES).index(row.kind)))

    def _counters(self, found: Results) -> tuple[Counter, Counter]:
        exact = self._library.counter(None, found.model)
        is_own = found.counter.exact and getattr(found.counter, "encoding", None) == getattr(exact, "encoding", "")
        return self._library.counter(ROUGH, found.model) if is_own else found.counter, exact

    def _scene(self, settings: Settings, found: Results) -> Data:
        cheap, exact = self._counters(found)
        room: Room = room_of(found.plan)
        rows = self._misjudged(settings, found)
        right = getattr(exact, "encoding", exact.name)
        right += "" if found.model.encoding_is_own else f", which stands in for {found.model.name}"
        shown = strip(room, rows, cheap.name, right, settings.trace is not None)
        more = {"headline": headline(settings, found), "strip": shown, "kpis": key_figures(found), "figures": []}
        return {**super()._scene(settings, found), **more}

    def _charts(self, found: Results, opened: list[str]) -> dict[str, Data]:
        return {}

    def _reader(self, found: Results) -> Data:
        return {}
