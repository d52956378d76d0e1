"""What may reach a terminal or a report; it stands alone, so that help is quick."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text that cannot command a terminal: control characters are replaced, but for the ends of lines.

    Examples
    --------
    >>> print(printable("name\x1b[31m in red"))
    name�[31m in red
    """
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
