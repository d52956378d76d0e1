"""Windows of products and servers: how much of a model's window a program shows, and where its rule acts.

A model's window is what its provider takes. A program in between may show less, act before that, or cut off in
silence; each is a window of its own, a row of data/windows.toml with its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from budgetkit.budget.amounts import Share, check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.files import Table, read_rows


@dataclass(frozen=True, slots=True)
class ProductWindow:
    """What a program makes of a model's window.

    Parameters
    ----------
    label : str
        What people call the program.
    window : int
        The model's window, in tokens.
    shown : int
        What the program shows or lets through of it, in tokens.
    acts_at : int
        The size of a prompt at which its rule acts, in tokens; what is shown where it has none.
    source, date : str
        Where that was read, and when.

    Examples
    --------
    >>> codex = product_window("codex")
    >>> codex.window, codex.shown, codex.acts_at
    (272000, 258400, 244800)
    """

    label: str
    window: int
    shown: int
    acts_at: int
    source: str
    date: str


def product_window(name: str, window: int | None = None) -> ProductWindow:
    """Return what a program makes of a model's window.

    Parameters
    ----------
    name : str
        A name of :data:`PRODUCT_WINDOWS`.
    window : int, optional
        The model's window, in tokens; what the program's own list says when left out.

    Returns
    -------
    ProductWindow
        In tokens.

    Raises
    ------
    LookupError
        If there is no such program.
    ValueError
        If no window is given and the program's list says none.

    Examples
    --------
    >>> product_window("claude-code", 1_000_000).acts_at, product_window("ollama", 131_072).shown
    (967000, 4096)
    """
    if name not in PRODUCT_WINDOWS:
        raise LookupError(
            f"no window of {brief(name)}; known are {quoted(PRODUCT_WINDOWS)}; choose from these"
        )
    row = PRODUCT_WINDOWS[name]
    if window is None:
        whole = row.get("catalogue", row.get("shown"))
    else:
        whole = check_tokens("window", window)
    if whole is None:
        raise ValueError(
            f"{row['label']} has the model's window, and none was given; give it, as in window=200_000"
        )
    if "shown" in row:
        shown = min(whole, row["shown"])
    else:
        shown = Share(row.get("shown_share", 1)).of(whole)
    acts_at = shown
    if "acts_less" in row:
        acts_at = max(0, whole - row["acts_less"])
    elif "acts_share" in row:
        acts_at = Share(row["acts_share"]).of(shown if "shown" in row else whole)
    return ProductWindow(
        label=row["label"],
        window=whole,
        shown=shown,
        acts_at=acts_at,
        source=row["source"],
        date=row["date"],
    )


def catalogue_of(name: str, shown: int) -> int:
    """Return the window that a program's rule goes by, of what it shows.

    Examples
    --------
    >>> catalogue_of("codex", 258_400)
    272000
    """
    share: float = PRODUCT_WINDOWS[name].get("shown_share", 1)
    return round(shown / share)


#: The rows of data/windows.toml by name.
PRODUCT_WINDOWS: Final[Mapping[str, dict[str, Any]]] = Table(
    lambda: read_rows("windows.toml", "window")
)
