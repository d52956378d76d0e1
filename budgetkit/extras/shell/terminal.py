"""Terminal input, and output as tables, JSON and sentences.

This module imports no slow modules.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from budgetkit.budget import one_line, terminal_line

#: The file name of standard input.
PIPE = "-"
Names = tuple[str, ...]  # of an option or argument that is repeated


def read_text(source: str) -> str:
    """Read a text in UTF-8 from a file, a pipe or standard input."""
    path = Path(source).expanduser()
    if path.is_char_device():  # it may never end
        raise ValueError(f"Not a file: {one_line(source)}. Pass the path of a file.")
    raw = sys.stdin.buffer.read() if source == PIPE else path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start:,}"
        raise ValueError(f"{one_line(source)} is not UTF-8 ({where}). Save it as UTF-8.") from None


def show_json(value: object) -> None:
    """Print plain data and frames as JSON, in ASCII."""
    click.echo(json.dumps(_without_nan(value), indent=2, allow_nan=False))


def show_lines(*lines: str) -> None:
    """Print sentences, one per line."""
    for line in lines:
        click.echo(terminal_line(line))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with right-aligned numbers."""
    # rich takes a tenth of a second to import, which --help and --json need not pay
    console, tables, box, text = (
        import_module(f"rich.{name}") for name in ("console", "table", "box", "text")
    )
    cells = [[_cell(value) for value in row] for row in rows]
    table = tables.Table(box=box.SIMPLE_HEAD)
    for place, name in enumerate(columns):
        right = bool(cells) and all(row[place][1] for row in cells)
        table.add_column(
            text.Text(terminal_line(name)), justify="right" if right else "left", overflow="fold"
        )
    for row in cells:
        table.add_row(*(text.Text(shown) for shown, _ in row))
    width = None if sys.stdout.isatty() else 160
    printer = console.Console(width=width, highlight=False, markup=False)
    # A long path is not folded.
    printer.print(text.Text(terminal_line(title), style="italic"), soft_wrap=True)
    printer.print(table)


def _cell(value: object) -> tuple[str, bool]:
    """Return a value's text, and whether it is right-aligned."""
    value = _number(value)
    if value is None or value != value:
        return "", True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return terminal_line(str(value)), False
    return format(value, ",.3f" if isinstance(value, float) else ","), True


def _number(value: Any) -> Any:
    """Convert a number of numpy or pandas to a Python number.

    A missing value becomes None.
    """
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "item"):
        return value.item()
    return value


def _without_nan(value: Any) -> Any:
    """Replace NaN with None, since JSON has no NaN, and frames with their rows."""
    if hasattr(value, "to_dict"):
        value = value.to_dict("records")
    if isinstance(value, dict):
        return {str(name): _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    number = _number(value)
    return None if number != number else number
