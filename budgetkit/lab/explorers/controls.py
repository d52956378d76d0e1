"""Controls that explorers share: which model and window, and which conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import is_
from typing import Any

import ipywidgets as widgets

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief
from budgetkit.lab.explorers.boxes import AUTO, Do, NumberBox, bound, options, row, sends, show
from budgetkit.lab.explorers.budget.settings import (
    OWN,
    BudgetSettings,
    known_presets,
    longest_window,
    window_stops,
)
from budgetkit.lab.explorers.tips import TIPS
from budgetkit.models import Model, models
from budgetkit.trace import Trace

FEW = 5  # conversations that are found at a glance
RATIOS = ("chars/4", "chars/3.5", "bytes/4", "utf16/4")


def labelled(kind: Any, label: str, **options: Any) -> Any:
    """Return a widget with its label and tip; a text that is typed is taken when the box is left."""
    if issubclass(kind, widgets.Text | widgets.Combobox):
        typed = {"continuous_update": False}
    else:
        typed = {}
    if issubclass(kind, widgets.IntSlider | widgets.SelectionSlider):
        slid = {"readout": False}
    else:
        slid = {}
    control = kind(
        **{"description": label, "tooltip": TIPS[label], **typed, **slid, **options, **AUTO}
    )
    return control if slid else control.add_class("bk-wide")  # a slider shares its row with a box


class ModelControls:
    """The controls of model, preset and window."""

    def __init__(self, do: Do) -> None:
        self._do, self._on = do, partial(sends, do)
        self.model = labelled(widgets.Combobox, "Model", placeholder="type to search")
        self.model.options = tuple(each_model.name for each_model in models())
        self.preset = labelled(widgets.Dropdown, "Preset", options=known_presets())
        # It is heard when it is let go: while its stops change, the page moves it, and would say so as if a hand had.
        stops = [(f"{stop:,}", stop) for stop in window_stops(None)]
        self.window = labelled(
            widgets.SelectionSlider, "Window", options=stops, continuous_update=False
        )
        self.window_box = NumberBox(do, min=1, tooltip="Window, in tokens", **AUTO)
        self._window_row = row(self.window, self.window_box)
        self._on(self.model, "model", "name")
        self._on(self.preset, "preset", "name")
        self._on(self.window, "line", "tokens", "slider window", line="window")
        self._on(self.window_box, "line", "tokens", line="window")

    def _project_model(self, settings: BudgetSettings, model: Model, budget: Budget) -> None:
        self.model.value = settings.model
        own_option = ((budget.name or "my own budget", OWN),) if settings.own is not None else ()
        options(self.preset, (*known_presets(), *own_option), settings.preset)
        # A window that was typed has a stop of its own, beyond the model's too.
        stops = sorted({*window_stops(longest_window(model, budget.kind)), budget.window})
        options(self.window, tuple((f"{stop:,}", stop) for stop in stops), budget.window)
        self.window_box.value = budget.window

    def _listen_to_path(self, path: Any) -> None:
        path.observe(
            lambda change: change["new"].strip() and self._do("path", path=change["new"]), "value"
        )


class TraceControls(ModelControls):
    """The file, the conversation in it, the counter, and a slider that goes through it."""

    def __init__(self, do: Do, place: str) -> None:
        super().__init__(do)
        self.trace = labelled(widgets.Dropdown, "From", options=[])
        self.path = labelled(widgets.Text, "File", placeholder="path of a session")
        self.conversation = labelled(widgets.Dropdown, "Which", options=[("1", 0)])
        self.find = labelled(widgets.Text, "Find", placeholder="a part of its title")
        self.which = widgets.VBox([self.find, self.conversation])
        self._traces: tuple[Trace, ...] = ()
        self._titles: tuple[str, ...] = ()
        self._listed: tuple[int, str] | None = None
        self.find.observe(self._sought, "value")
        self.counter = labelled(widgets.Combobox, "Counter")
        self._place = labelled(widgets.IntSlider, "Turn", min=1, max=1)
        self._place_box = NumberBox(do, min=1, max=1, tooltip="Turn, by its number", **AUTO)
        self._place_row = row(self._place, self._place_box)
        self._on(self.trace, "trace", "name")
        self._on(self.conversation, "conversation", "number")
        self._on(self.counter, "counter", "name")
        self._on(self._place, place, place, f"slider {place}")
        self._on(self._place_box, place, place)
        self._listen_to_path(self.path)

    def _project_place(
        self, traces: Sequence[Trace], conversation: int, last: int, now: int
    ) -> None:
        show(self.which, len(traces) > 1)
        show(self.find, len(traces) > FEW)
        # Every move of a slider comes here, and an export may have thousands of titles.
        if len(traces) != len(self._traces) or not all(map(is_, traces, self._traces)):
            self._traces = (*traces,)
            self._listed = None
            titles = tuple(trace.title for trace in traces)
            if titles != self._titles:
                self._titles = titles
                self.find.value = ""
        if self._listed != (conversation, self.find.value):
            self._listed = conversation, self.find.value
            shown = sorted({conversation, *self._having(self.find.value)})
            options(
                self.conversation,
                tuple((f"{i + 1}: {self._titles[i]}", i) for i in shown),
                conversation,
            )
        self.conversation.value = conversation
        bound(self._place, 1, last, now)
        bound(self._place_box, 1, last, now)

    def _having(self, part: str) -> list[int]:
        """Return the conversations whose title holds a text, in whatever case."""
        return [
            i for i, title in enumerate(self._titles) if part.strip().casefold() in title.casefold()
        ]

    def _sought(self, change: dict[str, Any]) -> None:
        """Leave the conversations of such titles in the list, and show the first of them unless one is shown."""
        results = self._having(change["new"])
        shown = self.conversation.value
        if results:
            self._do("conversation", number=shown if shown in results else results[0])
            return
        none = f"no title of the {len(self._titles):,} holds {brief(change['new'])}; type another part of it"
        self._do("refused", text=f"{none}, or empty the box for all.", beside=self.find.tooltip)
