"""Quote user values in error messages, on a single line.

A value may be a million characters long, or expand from a few hundred bytes to gigabytes (YAML aliases). A value is
therefore never written out in full and cut afterwards; only the visible part is written.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr

_LINE = 120  # characters of a value
_NAMES = 20  # names of a list
_WRITTEN_OUT = 200  # bits of a whole number, about 60 digits
_ALIKE = 0.8  # similarity at which one name counts as a misspelling of another


class _Short(Repr):
    """`reprlib.Repr`, extended to all mappings and to very large integers."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = 100
        self.maxother = 80

    def repr1(self, x: object, level: int) -> str:
        if isinstance(x, int) and x.bit_length() > _WRITTEN_OUT:
            return f"a whole number of about {x.bit_length() * 30_103 // 100_000:,} digits"
        for kind in (str, list, tuple, set, frozenset, dict):
            if isinstance(x, kind):
                return str(getattr(self, f"repr_{kind.__name__}")(x, level))
        if isinstance(x, Mapping):
            return self.repr_dict(dict(islice(x.items(), self.maxdict + 1)), level)
        return super().repr1(x, level)


def brief(value: object) -> str:
    """Return a value as one short line, with strings in quotes.

    Examples
    --------
    >>> brief("history"), brief([1.5, None])
    ("'history'", '[1.5, None]')
    >>> len(brief("a" * 1_000_000))
    100
    """
    return one_line(
        repr(value) if type(value) is str and len(value) < _LINE else _Short().repr(value)
    )


def one_line(text: str) -> str:
    r"""Convert a text to one short line, without quotes.

    Examples
    --------
    >>> one_line("while parsing\n  a mapping")
    'while parsing a mapping'
    """
    cut = shortened(text, _LINE)
    if cut.isprintable():
        return cut
    return printable(" ".join(cut.split()))


def shortened(text: str, longest: int) -> str:
    """Shorten a long text at its end, with an ellipsis.

    Examples
    --------
    >>> shortened("chars/4", 20), shortened("chars/4 (ceil, minimum 0)", 12)
    ('chars/4', 'chars/4 (ce…')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def printable(text: str) -> str:
    r"""Replace unprintable characters, such as terminal controls, except line feeds.

    Examples
    --------
    >>> print(printable("name\x1b[31m in red"))
    name�[31m in red
    """
    return "".join(
        mark if mark.isprintable() or mark == "\n" else "\N{REPLACEMENT CHARACTER}" for mark in text
    )


def terminal_line(text: str) -> str:
    r"""Convert a text to a single line without control characters.

    Examples
    --------
    >>> terminal_line("a name\nError: forged")
    'a name Error: forged'
    """
    return printable(text.replace("\n", " "))


def quoted(names: Iterable[object], most: int = _NAMES, form: Callable[..., str] = brief) -> str:
    """List quoted names, separated by commas, and count those left out.

    Examples
    --------
    >>> print(quoted(["system", "history", "user"], most=2))
    'system', 'history', and 1 more
    """
    every = list(names)
    more = [f"and {len(every) - most:,} more"] if len(every) > most else []
    return ", ".join([*map(form, every[:most]), *more])


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the closest known name, or "" if none is close.

    >>> nearest_name("retreival", ["system", "retrieval"]), nearest_name("notes", ["system", "retrieval"])
    ('retrieval', '')
    """
    alike = get_close_matches(name[:_LINE], [*names], 1, _ALIKE)
    return alike[0] if alike else ""


def many(number: int, what: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural if needed.

    >>> many(1, "turn"), many(1_200, "turn"), many(2, "miss", "misses")
    ('1 turn', '1,200 turns', '2 misses')
    """
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {plural or what + 's'}"


#: Packages to skip in the call stack: this one, and libraries that call it on the user's behalf.
_BETWEEN = {"budgetkit", "contextlib", "functools", "pydantic"}


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the user's own line of code.

    Python 3.12 offers ``skip_file_prefixes`` for this purpose, but budgetkit also supports 3.11.
    """
    level = 2
    frame = sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
