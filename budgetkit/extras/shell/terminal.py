"""What may reach a terminal or a report; it stands alone, so that help is quick."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text that cannot command a terminal: control characters are replaced, but for the ends of lines.

    Examples
    --------
    >>> print(printable("name\x1b[31m in red"))
    name�[31m in red
    """
    shown = [
        mark if mark.isprintable() or mark == "\n" else "\N{REPLACEMENT CHARACTER}" for mark in text
    ]
    return "".join(shown)
