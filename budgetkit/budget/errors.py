"""Messages of common errors: the problem, then the fix.

The functions return a text, and the caller chooses the exception. Only `check_html` raises one itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from budgetkit.budget.quoting import brief, nearest_name, one_line, quoted

_BEGINNING = 6  # characters of a misspelt name that suffice to find a longer one


def unknown_name(kind: str, name: object, names: Iterable[str]) -> str:
    """Return the error message for an unknown name.

    Examples
    --------
    >>> print(unknown_name("preset", "wroking", ["chat", "working_memory"]))
    Unknown preset 'wroking'. Did you mean 'working_memory'? Choose one of: 'chat', 'working_memory'.
    """
    known = list(names)
    near = ""
    if isinstance(name, str):
        near = nearest_name(name, known)
    if not near and isinstance(name, str) and len(name) >= _BEGINNING:
        beginnings = {other[: len(name)]: other for other in known}
        near = beginnings.get(nearest_name(name, beginnings), "")
    meant = f" Did you mean {near!r}?" if near else ""
    choices = f" Choose one of: {quoted(known)}." if known else ""
    return f"Unknown {kind} {brief(name)}.{meant}{choices}"


def wrong_type(what: str, value: object, expected: str) -> str:
    """Return the error message for a value of the wrong type.

    Examples
    --------
    >>> print(wrong_type("cut", 3, "a function of an item, a limit and an allocation"))
    Invalid cut: 3. Expected a function of an item, a limit and an allocation.
    """
    return f"Invalid {what}: {brief(value)}. Expected {expected}."


def wrong_kind(what: str, value: object, expected: str) -> str:
    """Return the error message for a wrong type, without quoting the value.

    Examples
    --------
    >>> print(wrong_kind("content of a user message", 3, "a string, a list of parts or null"))
    Invalid content of a user message: a value of type int. Expected a string, a list of parts or null.
    """
    return f"Invalid {what}: a value of type {type(value).__name__}. Expected {expected}."


def wrong_choice(what: str, value: object, choices: Iterable[str]) -> str:
    """Return the error message for an invalid choice.

    Examples
    --------
    >>> print(wrong_choice("fill", "most", ("prefix", "skip", "knapsack")))
    Invalid fill: 'most'. Choose one of: 'prefix', 'skip', 'knapsack'.
    """
    return f"Invalid {what}: {brief(value)}. Choose one of: {quoted(choices)}."


def out_of_range(what: str, value: object, limits: str) -> str:
    """Return the error message for a number out of range.

    Examples
    --------
    >>> print(out_of_range("window", -5, "a whole number of tokens from 0 on"))
    Invalid window: -5. Use a whole number of tokens from 0 on.
    """
    number = f"{value:,}" if isinstance(value, int) and abs(value) < 10**30 else brief(value)
    return f"Invalid {what}: {number}. Use {limits}."


def missing_file(path: object) -> str:
    """Return the error message for a file that does not exist.

    Examples
    --------
    >>> print(missing_file("chat.jsonl"))
    File not found: chat.jsonl. Check the path.
    """
    return f"File not found: {one_line(str(path))}. Check the path."


def check_html(path: object) -> None:
    """Reject a path that does not end in .html or .htm."""
    name = str(path)
    if not name.lower().endswith((".html", ".htm")):
        raise ValueError(f"Cannot save a page as {brief(name)}. Use a name that ends in .html.")
