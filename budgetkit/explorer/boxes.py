"""Boxes: what the controls of every explorer are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from budgetkit.counters.encodings import mended

Do = Callable[..., None]
AUTO: dict[str, Any] = {"layout": {"width": "auto", "min_width": "0"}}


def sends(do: Do, widget: Any, kind: str, name: str, merge: str = "", **more: Any) -> None:
    """Let a widget's every new value be a command.

    Parameters
    ----------
    do : callable
        Takes the name of a command and its arguments.
    widget : widget
        With a ``value``.
    kind : str
        The command.
    name : str
        Under which name the value goes.
    merge : str
        Moves of one slider share a name and are one step back.
    **more : object
        What else goes with it.
    """
    widget.observe(lambda change: do(kind, merge=merge, **{name: change["new"]}, **more), "value")


def options(widget: Any, choices: tuple[Any, ...], value: object) -> None:
    """Set what can be chosen and what is.

    Parameters
    ----------
    widget : selection widget
        The widget.
    choices : tuple of (str, value)
        What can be chosen.
    value : object
        What is chosen.
    """
    shown = tuple((mended(choice[0]), choice[1]) if isinstance(choice, tuple) else choice for choice in choices)
    if tuple(widget.options) != shown:
        widget.options = shown
    widget.value = value


def bound(widget: Any, low: int, high: int, value: int) -> None:
    """Set a bounded widget's limits and value in an order that no check refuses.

    Parameters
    ----------
    widget : bounded int widget
        The widget.
    low, high, value : int
        The limits widen where the value stands beyond them.
    """
    low, high = min(low, value), max(high, value)
    widget.min, widget.max = min(widget.min, low), max(widget.max, high)
    widget.value = value
    widget.min, widget.max = low, high


def breakable(name: str) -> str:
    """Return a name that a narrow label can break after an underscore.

    Parameters
    ----------
    name : str
        Any.

    Returns
    -------
    str
        The same to the eye.

    Examples
    --------
    >>> len(breakable("working_memory")) - len("working_memory")
    1
    """
    return name.replace("_", "_\u200b")


def row(slider: Any, box: Any) -> Any:
    """Return a slider with its number box.

    Parameters
    ----------
    slider, box : widget
        Both.

    Returns
    -------
    Box
        Side by side.
    """
    return widgets.Box([slider, box.add_class("bk-number")]).add_class("bk-row")


def group(heading: str, *children: Any) -> Any:
    """Return widgets under a heading.

    Parameters
    ----------
    heading : str
        Plain words of this package's own.
    *children : widget
        What stands under it.

    Returns
    -------
    VBox
        The heading first.
    """
    title = widgets.HTML(f"<h4>{heading}</h4>").add_class("bk-heading")
    return widgets.VBox([title, *children]).add_class("bk-group")


def fill(box: Any, *children: Any) -> None:
    """Put other widgets under a group's heading.

    Parameters
    ----------
    box : VBox
        A group.
    *children : widget
        What stands under its heading.
    """
    box.children = (box.children[0], *children)


def show(widget: Any, visible: bool) -> None:
    """Show a widget or hide it.

    Parameters
    ----------
    widget : widget
        The widget.
    visible : bool
        Whether it is seen.
    """
    if visible:
        widget.remove_class("bk-hidden")
    else:
        widget.add_class("bk-hidden")
