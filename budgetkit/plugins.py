"""Plug-ins: counters, file formats and presets from other packages.

A package declares its plug-ins as entry points in its ``pyproject.toml``, in one of three groups: counters, formats or
presets of ``budgetkit``::

    [project.entry-points."budgetkit.counters"]
    my-tokenizer = "my_package:count"

A plug-in's module is imported on first use; until then only its name is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from budgetkit.budget.quoting import brief, one_line

Group = Literal["counters", "formats", "presets"]


@cache
def plugin_entries(group: Group) -> dict[str, EntryPoint]:
    """Map the name of each plug-in to its entry point."""
    return {entry.name: entry for entry in entry_points(group=f"budgetkit.{group}")}


def plugin_names(group: Group) -> tuple[str, ...]:
    """List a group's plug-ins without importing them.

    Examples
    --------
    >>> isinstance(plugin_names("counters"), tuple)
    True
    """
    return tuple(sorted(plugin_entries(group)))


def load_plugin(group: Group, name: str) -> Callable[..., Any]:
    """Import a plug-in by name.

    Raises
    ------
    ValueError
        If the plug-in cannot be imported or is not callable.
    """
    entry = plugin_entries(group)[name]
    try:
        plugin = entry.load()
    except Exception as error:  # any error of the other package is reported with the plug-in's name
        reason = f"{type(error).__name__}: {one_line(str(error))}"
        raise ValueError(
            f"Cannot import plug-in {brief(name)} of budgetkit.{group}, {one_line(entry.value)} ({reason}). "
            "Update or uninstall its package."
        ) from error
    if not callable(plugin):
        raise ValueError(
            f"Plug-in {brief(name)} of budgetkit.{group}, {one_line(entry.value)}, is a {type(plugin).__name__}, "
            "not a function. Update or uninstall its package."
        )
    return plugin  # type: ignore[no-any-return]
