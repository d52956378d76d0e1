"""Rows: one line of the budget as a slider, a number box and a lock."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import ipywidgets as widgets

from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.colours import colour
from budgetkit.lab.explorers.boxes import AUTO, Do, NumberBox, bound, breakable

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
