"""Boxes: what the controls of every explorer are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets as widgets

from budgetkit.counters.encodings import replace_surrogates

Do = Callable[..., None]


class _Shared(Mapping[str, Any]):
    """Options of a widget whose layout is one for all: each layout of its own is one more message to the page."""

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


def sends(do: Do, widget: Any, kind: str, name: str, merge: str = "", **more: Any) -> None:
    """Let a widget's every new value be a command."""
    widget.observe(lambda change: do(kind, merge=merge, **{name: change["new"]}, **more), "value")


def options(widget: Any, choices: tuple[Any, ...], value: object) -> None:
    """Set what can be chosen and what is."""
    shown = tuple(
        (replace_surrogates(choice[0]), choice[1]) if isinstance(choice, tuple) else choice for choice in choices
    )
    if tuple(widget.options) != shown:
        widget.options = shown
    widget.value = value


def bound(widget: Any, low: int, high: int, value: int) -> None:
    """Set a bounded widget's limits and value in an order that no check refuses."""
    low, high = min(low, value), max(high, value)
    widget.min, widget.max = min(widget.min, low), max(widget.max, high)
    widget.value = value
    widget.min, widget.max = low, high


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


def group(heading: str, *children: Any) -> Any:
    """Return widgets under a heading."""
    title = widgets.HTML(f"<h4>{heading}</h4>").add_class("bk-heading")
    return widgets.VBox([title, *children]).add_class("bk-group")


def fill(box: Any, *children: Any) -> None:
    """Put other widgets under a group's heading."""
    box.children = (box.children[0], *children)


def show(widget: Any, visible: bool) -> None:
    """Show a widget or hide it."""
    if visible:
        widget.remove_class("bk-hidden")
    else:
        widget.add_class("bk-hidden")
