"""The terminal: input texts, and output as tables, JSON and sentences.

Nothing slow is imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from budgetkit.budget import one_line, printable

#: The name of a file that stands for standard input.
PIPE = "-"


def text_of(source: str) -> str:
    """Read a text in UTF-8 from a file or standard input."""
    raw = sys.stdin.buffer.read() if source == PIPE else Path(source).expanduser().read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start:,}"
        raise ValueError(
            f"{one_line(source)} is not UTF-8 text ({where}); save it as UTF-8"
        ) from None


def show_json(value: object) -> None:
    """Print plain data as JSON, in ASCII."""
    click.echo(json.dumps(_known(value), indent=2, default=_plain, allow_nan=False))


def show_lines(lines: Iterable[str]) -> None:
    """Print sentences, a line each."""
    for line in lines:
        click.echo(printable(line))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers stand to the right."""
    # rich takes a tenth of a second to import, which --help and --json need not pay
    console, tables, box, text = (
        import_module(f"rich.{name}") for name in ("console", "table", "box", "text")
    )
    cells = [[_cell(value) for value in row] for row in rows]
    table = tables.Table(box=box.SIMPLE_HEAD)
    for place, name in enumerate(columns):
        right = bool(cells) and all(row[place][1] for row in cells)
        table.add_column(
            text.Text(printable(name)), justify="right" if right else "left", overflow="fold"
        )
    for row in cells:
        table.add_row(*(text.Text(shown) for shown, _ in row))
    width = None if sys.stdout.isatty() else 160
    printer = console.Console(width=width, highlight=False, markup=False)
    # A long path is not folded.
    printer.print(text.Text(printable(title), style="italic"), soft_wrap=True)
    printer.print(table)


def _cell(value: object) -> tuple[str, bool]:
    """Write a value, and say whether it stands to the right."""
    plain = _plain(value)
    if plain is None or plain != plain:
        return "", True
    if isinstance(plain, int) and not isinstance(plain, bool):
        return f"{plain:,}", True
    if isinstance(plain, float):
        return (f"{plain:,.3f}", True)
    return (printable(str(plain)), False)


def _plain(value: Any) -> Any:
    """Return a numpy or pandas number as Python's; None if missing."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "item"):
        return value.item()
    return value


def _known(value: Any) -> Any:
    """Return plain data with null for unknown numbers.

    JSON has no NaN.
    """
    if isinstance(value, dict):
        return {str(name): _known(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    plain = _plain(value)
    return None if plain != plain else plain
