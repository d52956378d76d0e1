"""Controls: the widgets beside the view. They show the settings and turn a hand's change into a command."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import ipywidgets as widgets

from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.html import colour
from budgetkit.counters import encoding_names
from budgetkit.lab.explorers.boxes import (
    AUTO,
    RATIOS,
    Do,
    NumberBox,
    TraceControls,
    bound,
    breakable,
    fill,
    group,
    labelled,
    options,
    planning_counter,
    show,
)
from budgetkit.lab.explorers.budget.charts import BESIDE_SHORT, lines_of
from budgetkit.lab.explorers.budget.results import BudgetResults
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.shelves import Library

STEP = 0.5  # percent of the window


class Row:
    """One line of the budget.

    The slider is in percent of the window, the box in tokens. At its end a section has no cap of its own.
    """

    def __init__(self, line: str, is_share: bool, do: Do) -> None:
        self.line = line
        self.is_share = is_share
        self._do = do
        self._limits: tuple[int, int | None] = (0, None)
        self._window = 1
        tip = f"{line}, in percent of the window"
        self.slider = widgets.FloatSlider(
            description=breakable(line),
            min=0,
            max=100,
            step=STEP,
            readout=False,
            tooltip=tip,
            **AUTO,
        )
        self.slider.style.handle_color = colour(line)
        self.box = NumberBox(do, tooltip=f"{line}, in tokens", **AUTO).add_class("bk-number")
        self.lock = widgets.ToggleButton(description="", tooltip=f"Lock {line}", **AUTO).add_class(
            "bk-lock"
        )
        self.share = widgets.Label().add_class("bk-share")
        self.widget = (
            widgets.Box([self.slider, self.share, self.box, self.lock])
            .add_class("bk-row")
            .add_class("bk-line")
        )
        self.slider.observe(self._slid, "value")
        self.box.observe(self._typed, "value")
        self.lock.observe(lambda change: do("lock", line=line, on=change["new"]), "value")

    def _slid(self, change: dict[str, Any]) -> None:
        ratio = Decimal(str(round(change["new"], 4))) / 100
        tokens = Share(ratio).of(self._window)
        if not self.is_share:
            self._do("line", merge=f"slider {self.line}", line=self.line, tokens=tokens)
            return
        # A limit gives way to the hand, as it does to a handle of the bar: no press is without an effect.
        low, high = self._limits
        share = Share(ratio, min(low, tokens), None if high is None else max(high, tokens))
        self._do("amount", merge=f"slider {self.line}", line=self.line, amount=share)

    def _typed(self, change: dict[str, Any]) -> None:
        if change["new"] is None:
            self._do("amount", line=self.line, amount=None)
        else:
            self._do("line", line=self.line, tokens=change["new"])

    def project(
        self,
        amount: Amount | None,
        tokens: int | None,
        window: int,
        floor: int,
        locked: bool,
        is_section: bool = False,
    ) -> None:
        """Set the slider, its box and its lock to the line's amount."""
        size = window if tokens is None else tokens
        if isinstance(amount, Share):
            self._limits = (amount.at_least, amount.at_most)
        else:
            self._limits = (0, None)
        self._window = window
        # A share stands at its own ratio, or at the size that a limit holds it to.
        is_free = isinstance(amount, Share) and Share(amount.ratio).of(window) == size
        if isinstance(amount, Share) and is_free:
            ratio = float(amount.ratio)
        else:
            ratio = size / max(1, window)
        # A value between two steps would come back from the page as a move to one of them.
        self.slider.value = min(100.0, round(100 * ratio / STEP) * STEP)
        if tokens is None:
            self.share.value = "pool"
        else:
            self.share.value = f"{100 * size / max(1, window):.3g} %"
        self.box.whole = window
        self.box.may_be_empty = is_section
        if is_section:
            self.box.placeholder = "no cap"
            self.box.tooltip = f"{self.line}, in tokens; empty: it draws on the shared pool"
        # A cap of the whole window is none, and the box is empty then.
        most = window - 1 if is_section else window
        bound(self.box, floor, max(most, tokens or 0), tokens)
        self.slider.disabled = self.box.disabled = locked
        self.lock.value = locked
        if tokens is None:
            self.widget.add_class("bk-uncapped")
        else:
            self.widget.remove_class("bk-uncapped")

    def say(self, label: str) -> None:
        """Write another name beside the slider."""
        self.slider.description = breakable(label)

    def close(self) -> None:
        """Close the row's widgets, which then cannot be shown again."""
        for widget in (self.slider, self.share, self.box, self.lock, self.widget):
            widget.close()


class Limits:
    """The smallest and the largest size of a share, such as the output reserve's."""

    def __init__(self, line: str, do: Do) -> None:
        self.line = line
        self._do = do
        text = {
            "at_least": f"Smallest {line} reserve, in tokens",
            "at_most": f"Largest {line} reserve, in tokens",
        }
        self.at_least, self.at_most = (
            NumberBox(do, description=name.replace("_", " "), tooltip=text[name], **AUTO)
            for name in ("at_least", "at_most")
        )
        self.widget = widgets.Box([self.at_least, self.at_most]).add_class("bk-limits")
        for box in (self.at_least, self.at_most):
            box.add_class("bk-number").observe(self._typed, "value")

    def _typed(self, change: dict[str, Any]) -> None:
        self._do("limits", line=self.line, at_least=self.at_least.value, at_most=self.at_most.value)

    def project(self, amount: Amount | None, window: int, locked: bool) -> None:
        """Set both boxes to the limits of the line's share."""
        share = amount if isinstance(amount, Share) else Share(0)
        self.at_least.whole = self.at_most.whole = window
        bound(self.at_least, 0, window, share.at_least)
        bound(self.at_most, 0, window, window if share.at_most is None else share.at_most)
        self.at_least.disabled = self.at_most.disabled = locked


TYPED_IN = "typed in below"
LIMITED = "output"


class BudgetControls(TraceControls):
    """The widgets beside the view.

    Attributes
    ----------
    model, preset, window, window_box, counter, compare, trace, path, conversation, turn
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
        self.compare = labelled(widgets.Combobox, "Compare with", options=self.counter.options)
        self._on(self.compare, "compare", "name")
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
        more = group(
            "Conversation and counter",
            self.trace,
            self.path,
            self.counter,
            self.compare,
            folded=True,
        )
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
        self.counter.value = planning_counter(settings, results.model)
        self.compare.value = settings.cheap
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
