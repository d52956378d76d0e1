"""Boxes: what the controls of every explorer are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets as widgets
import traitlets as t

from budgetkit.budget.html import Markup, element
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.lab.explorers.numbers import WAYS, decimal, whole_number

Data = dict[str, Any]
Do = Callable[..., None]


class _Shared(Mapping[str, Any]):
    """The option `layout`, one for all widgets: each layout more is one more message to the page."""

    _layout: Any = None

    def __getitem__(self, name: str) -> Any:
        if name != "layout":
            raise KeyError(name)
        if self._layout is None or self._layout.comm is None:  # none yet, or closed
            self._layout = widgets.Layout(width="auto", min_width="0")
        return self._layout

    def __iter__(self) -> Iterator[str]:
        return iter(("layout",))

    def __len__(self) -> int:
        return 1


AUTO = _Shared()


class NumberBox(widgets.Text):  # type: ignore[misc]
    """A box for numbers as people type them; anything else is refused in words, and the old number stays.

    Its value is a number here and its text in the page. An empty box is None where one may be empty.
    """

    value = t.Union([t.Int(), t.Float()], allow_none=True, default_value=0).tag(
        sync=True,
        to_json=lambda value, box: box.written(value),
        from_json=lambda text, box: box.read(text),
    )
    min = t.Any(0)
    max = t.Any(100_000_000)
    #: What 100 % is, in tokens; None where percent means nothing.
    whole: Any = t.Int(None, allow_none=True)
    is_whole = t.Bool(True)
    may_be_empty = t.Bool(False)

    def __init__(self, do: Do, **options: Any) -> None:
        self._do = do
        super().__init__(**{"continuous_update": False, **options})

    def written(self, value: Any) -> str:
        """Write a number as the page shows it."""
        if value is None:
            return ""
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:,.10g}"

    def read(self, text: Any) -> Any:
        """Read what was typed; the value stays if that is no number that is allowed."""
        if not isinstance(text, str):
            return text
        if not text.strip() and self.may_be_empty:
            return None
        try:
            return self._reached(self._number(text))
        except ValueError as problem:
            self._do("refused", text=f"{problem}.", beside=self.tooltip)
            return self.value

    def _number(self, text: str) -> Any:
        try:
            if not text.strip():
                raise ValueError("Nothing was typed")
            if self.is_whole:
                return whole_number(text, self.whole)
            return float(decimal(text.strip().removeprefix("$"))[0])  # a sum of money
        except ValueError as problem:
            raise ValueError(f"{problem}; {self._stays()}; {WAYS}") from None

    def _reached(self, number: Any) -> Any:
        """Return a number that can be here; one that is too small or too large is refused, never another taken."""
        if self.min <= number <= self.max:
            return number
        limit, end = (self.max, "most") if number > self.max else (self.min, "least")
        if self.may_be_empty and number > self.max:
            empty = ", and an empty box is no cap"
        else:
            empty = ""
        reach = f"{self.written(limit)} is the {end} that can be here{empty}"
        raise ValueError(f"{self.written(number)} was typed; {reach}; {self._stays()}")

    def _stays(self) -> str:
        if self.value is None:
            return "it stays empty"
        return f"{self.written(self.value)} stays"

    def set_state(self, sync_data: Any) -> None:
        """Take what the page sends, and send back how it is written here."""
        super().set_state(sync_data)
        if "value" in sync_data and sync_data["value"] != self.written(self.value):
            self.send_state("value")


def sends(do: Do, widget: Any, kind: str, name: str, merge: str = "", **more: Any) -> None:
    """Send a command whenever a widget has a new value."""
    widget.observe(lambda change: do(kind, merge=merge, **{name: change["new"]}, **more), "value")


def options(widget: Any, choices: tuple[Any, ...], value: object) -> None:
    """Set a list's choices, and the one that is chosen."""
    shown = tuple(
        (replace_surrogates(choice[0]), choice[1]) if isinstance(choice, tuple) else choice
        for choice in choices
    )
    if tuple(widget.options) != shown:
        widget.options = shown
    widget.value = value


def bound(widget: Any, low: int, high: int, value: int | None) -> None:
    """Set a bounded widget's limits and value in an order that no check refuses."""
    if isinstance(widget, NumberBox):
        widget.min = low
        widget.max = high
        widget.value = value
        return
    assert value is not None, "only a box can be empty"
    low = min(low, value)
    high = max(high, value)
    widget.min, widget.max = min(widget.min, low), max(widget.max, high)
    widget.value = value
    widget.min = low
    widget.max = high


def breakable(name: str) -> str:
    """Return a name that a narrow label can break after an underscore.

    Examples
    --------
    >>> len(breakable("working_memory")) - len("working_memory")
    1
    """
    return name.replace("_", "_\u200b")


def row(slider: Any, box: Any) -> Any:
    """Return a slider with its number box."""
    return widgets.Box([slider, box.add_class("bk-number")]).add_class("bk-row")


def group(heading: str, *children: Any, folded: bool | None = None) -> Any:
    """Return widgets under a heading; one that can be folded has a button in it."""
    inside: str | Markup = heading
    if folded is not None:
        inside = element("button", heading, type="button", aria_expanded=str(not folded).lower())
    title = widgets.HTML(element("h3", inside)).add_class("bk-heading")
    box = widgets.VBox([title, *children]).add_class("bk-group")
    if not folded:
        return box
    return box.add_class("bk-folded")


def fill(box: Any, *children: Any) -> None:
    """Replace the widgets that stand under a group's heading."""
    box.children = (box.children[0], *children)


def show(widget: Any, visible: bool) -> None:
    """Show a widget or hide it."""
    if visible:
        widget.remove_class("bk-hidden")
    else:
        widget.add_class("bk-hidden")
