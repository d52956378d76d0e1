r"""What a value looks like in a notebook: a bar and a table, as HTML that any text in it can do nothing to.

Every text is escaped, and the whole is marked so that MathJax leaves it alone: a section named ``$x$`` stays that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from budgetkit.budget.colours import colour

_LONGEST = 600  # characters of one text
_STYLE = "padding:1px 12px 1px 0;white-space:pre-wrap;overflow-wrap:anywhere;text-align:"
_CELL = f'<{{0}} style="{_STYLE}{{1}}">{{2}}</{{0}}>'


def plain(text: object) -> str:
    r"""Return a text so that a page shows it as it is: no tag, no entity, no formula, no half character.

    Examples
    --------
    >>> plain("<b>$x$</b>")
    '&lt;b&gt;&#36;x&#36;&lt;/b&gt;'
    """
    whole = str(text).encode("utf-8", "backslashreplace").decode()
    return escape(whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}…").replace("$", "&#36;")


def block(title: str, parts: Iterable[tuple[str, int]], rows: Sequence[Sequence[object]], notes: Iterable[str]) -> str:
    """Return a title, a bar of its parts, a table whose first row is its heading, and sentences below.

    Examples
    --------
    >>> block("Plan", [("system", 3)], [("section", "tokens"), ("system", 3)], []).count("system")
    2
    """
    table = "".join(_row(row, "th" if i == 0 else "td") for i, row in enumerate(rows))
    said = "".join(f'<div style="margin-top:4px">{plain(note)}</div>' for note in notes)
    return (
        '<div class="tex2jax_ignore mathjax_ignore" style="max-width:46em">'
        f"<div><b>{plain(title)}</b></div>{_bar(parts)}"
        f'<table style="border-collapse:collapse">{table}</table>{said}</div>'
    )


def _bar(parts: Iterable[tuple[str, int]]) -> str:
    drawn = "".join(
        f'<div title="{plain(name)}: {tokens:,}" style="flex:{tokens} 0 0;background:{colour(name)}"></div>'
        for name, tokens in parts
        if tokens > 0
    )
    return f'<div style="display:flex;height:14px;margin:4px 0;border:1px solid #8b8b8b">{drawn}</div>' if drawn else ""


def _row(cells: Sequence[object], tag: str) -> str:
    written = [(f"{cell:,}", "right") if type(cell) is int else (plain(cell), "left") for cell in cells]
    return f"<tr>{''.join(_CELL.format(tag, side, text) for text, side in written)}</tr>"
