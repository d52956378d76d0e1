"""Controls: the widgets beside the view. They show the settings and turn a hand's change into a command."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from budgetkit.counters import encoding_names
from budgetkit.lab.explorers.boxes import AUTO, Do, NumberBox, breakable, fill, group, options, show
from budgetkit.lab.explorers.budget.bar import BESIDE_SHORT
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.rows import Limits, Row
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.budget.view_state import lines_of
from budgetkit.lab.explorers.controls import RATIOS, TraceControls
from budgetkit.lab.explorers.library import Library

TYPED_IN = "typed in below"
LIMITED = "output"


class BudgetControls(TraceControls):
    """The widgets beside the view.

    Attributes
    ----------
    model, preset, window, window_box, counter, trace, path, conversation, turn
        Widgets; setting the value of one from code is the same as doing it by hand.
    lines : dict of str to Row
        For each line of the budget its ``slider``, ``box`` and ``lock``.
    limits : Limits
        ``at_least`` and ``at_most`` of the output reserve.
    demand : dict of str to NumberBox
        What each section asks for, without a trace.
    """

    def __init__(self, do: Do, library: Library) -> None:
        super().__init__(do, "turn")
        self._library = library
        self.lines: dict[str, Row] = {}
        self.demand: dict[str, Any] = {}
        self._shape: object = None
        self._rows: dict[tuple[str, bool], Row] = {}
        self._boxes: dict[str, Any] = {}
        self.limits = Limits(LIMITED, do)
        self.counter.options = (*encoding_names(), *RATIOS)
        self.trace.options = [(TYPED_IN, None)]
        self.turn = self._place
        self.turn_box = self._place_box
        self._build()

    def _build(self) -> None:
        self._reserves, self._sections, self._asked = (
            group("Reserves"),
            group("Sections"),
            group("Sizes asked for"),
        )
        start = group("Model and window", self.model, self.preset, self._window_row)
        more = group("Conversation and counter", self.trace, self.path, self.counter, folded=True)
        groups = [
            self.which,
            start,
            self._reserves,
            self._sections,
            self._place_row,
            self._asked,
            more,
        ]
        self.widget = widgets.VBox(groups).add_class("bk-controls")

    def project(self, settings: BudgetSettings, results: BudgetResults) -> None:
        """Set every control to the explorer's settings."""
        self._project_model(settings, results.model, results.plan.budget)
        self.counter.value = settings.counter or results.model.encoding
        self._project_lines(settings, results)
        self._project_conversation(settings, results)

    def _project_lines(self, settings: BudgetSettings, results: BudgetResults) -> None:
        lines = lines_of(settings, results)
        budget = results.plan.budget
        shape = [(name, kind, name == LIMITED or is_share) for name, kind, _, is_share in lines]
        if shape != self._shape:
            self._rebuild(shape, budget.sections)
            self._shape = shape
        for name, _, amount, _ in lines:
            tokens = {**budget.sizes, **budget.caps}.get(name, 0)
            locked = name in settings.locks
            row = self.lines[name]
            row.project(
                amount,
                tokens,
                budget.window,
                budget.floors.get(name, 0),
                locked,
                name in budget.caps,
            )
            if name == LIMITED:
                self.limits.project(amount, budget.window, locked)
                self.lines[name].say(
                    LIMITED
                    if budget.kind == "shared"
                    else f"{LIMITED}, {BESIDE_SHORT[budget.kind]}"
                )

    def _rebuild(self, shape: list[tuple[str, str, bool]], sections: tuple[str, ...]) -> None:
        self.lines = {name: self._row(name, is_share) for name, _, is_share in shape}
        kinds = {name: kind for name, kind, _ in shape}
        reserves = [row.widget for name, row in self.lines.items() if kinds[name] == "reserve"]
        place = next(i for i, name in enumerate(kinds) if name == LIMITED) + 1
        fill(self._reserves, *reserves[:place], self.limits.widget, *reserves[place:])
        fill(self._sections, *(self.lines[name].widget for name in sections))
        self.demand = {section: self._asking(section) for section in sections}
        fill(self._asked, *self.demand.values())

    # Widgets of lines that go are kept: to close one under a hand, with the focus on it, is a race in the page.
    def _row(self, name: str, is_share: bool) -> Row:
        if (name, is_share) not in self._rows:
            self._rows[name, is_share] = Row(name, is_share, self._do)
        return self._rows[name, is_share]

    def _asking(self, section: str) -> Any:
        if section in self._boxes:
            return self._boxes[section]
        tip = f"Size that {section} asks for, in tokens"
        box = NumberBox(self._do, description=breakable(section), tooltip=tip, **AUTO)
        self._on(box, "demand", "tokens", section=section)
        self._boxes[section] = box.add_class("bk-wide")
        return box

    def _project_conversation(self, settings: BudgetSettings, results: BudgetResults) -> None:
        names = [(TYPED_IN, None), *((name, name) for name in self._library.conversations.names)]
        options(self.trace, tuple(names), settings.trace)
        if settings.trace is None:
            self.trace.index = (
                0  # ipywidgets takes the value None for nothing chosen, and shows nothing
            )
        # One that could not be read goes, and the status has said so.
        self.path.value = settings.path
        has_trace = results.demand is not None and settings.trace is not None
        show(self._asked, not has_trace)
        show(self._place_row, has_trace)
        show(self.which, False)
        if results.demand is not None and settings.trace is not None:
            traces = self._library.conversations(settings.trace)
            self._project_place(traces, settings.conversation, len(results.demand), results.turn)
        for section, box in self.demand.items():
            grant = next((g for g in results.plan.grants if g.section == section), None)
            box.whole = results.plan.budget.window
            if grant is not None and not has_trace:
                box.value = grant.demand
