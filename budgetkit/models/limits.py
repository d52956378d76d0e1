"""Limits that programs set on a model's window, and limits on thinking."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from budgetkit.budget.allocation import Reserve, check_choice
from budgetkit.budget.amounts import Share, check_tokens
from budgetkit.budget.errors import unknown_name
from budgetkit.budget.quoting import brief, one_line
from budgetkit.budget.validation import OUTPUT
from budgetkit.files import Table, read_rows, read_table
from budgetkit.models import Model, model_name
from budgetkit.models.names import bare


@dataclass(frozen=True, slots=True)
class ProductWindow:
    """The part of a model's window that a program uses.

    Parameters
    ----------
    label : str
        Common name of the program.
    window : int
        The model's window, in tokens.
    shown : int
        Tokens of the window that the program shows or accepts.
    acts_at : int
        Prompt size at which the program compacts or truncates the prompt, in tokens. It equals `shown` if the program
        does neither.
    source, date : str
        Source and date of the numbers.

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
    """Return the part of a model's window that a program uses.

    Parameters
    ----------
    name : str
        A name of :data:`PRODUCT_WINDOWS`.
    window : int, optional
        The model's window, in tokens. Default: the window in the program's own model list or, if there is no list, the
        tokens that the program shows.

    Returns
    -------
    ProductWindow
        The model's window, the tokens that the program shows, and the prompt size at which it acts.

    Raises
    ------
    LookupError
        If there is no such program.
    ValueError
        If no window is given and none is known for the program.

    Examples
    --------
    >>> product_window("claude-code", 1_000_000).acts_at, product_window("ollama", 131_072).shown
    (967000, 4096)
    """
    if name not in PRODUCT_WINDOWS:
        raise LookupError(unknown_name("product", name, PRODUCT_WINDOWS))
    row = PRODUCT_WINDOWS[name]
    if window is None:
        whole = row.get("catalogue", row.get("shown"))
    else:
        whole = check_tokens("window", window)
    if whole is None:
        raise ValueError(
            f"{row['label']} needs the model's window. Pass it in tokens, for example window=200_000."
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
    """Compute a model's full window from the part that a program shows.

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


#: Efforts that providers accept, in ascending order.
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Thinking:
    """The limit on a model's thinking at one effort, in tokens.

    Parameters
    ----------
    model, effort : str
        The requested model and effort.
    tokens : int or None
        Maximum number of thinking tokens, or None if it is unknown.
    source, date : str
        Source and date of the number, or of the finding that it is unknown.
    """

    model: str
    effort: str
    tokens: int | None
    source: str
    date: str

    def reserve(self, tokens: int | None = None) -> Reserve:
        """Return a reserve for thinking, to add to the answer's reserve.

        Parameters
        ----------
        tokens : int, optional
            Your own limit, such as a quantile of your measured usage. Default: the published limit.

        Returns
        -------
        Reserve
            A reserve named "thinking" that serves the output.

        Raises
        ------
        ValueError
            If no limit is given or published.
        """
        size = self.tokens if tokens is None else tokens
        if size is None:
            raise ValueError(
                f"No thinking limit is known for {one_line(self.model)} at effort {brief(self.effort)}: "
                f"{self.source} (read {self.date}). Pass the thinking tokens that your own answers used: "
                "reserve(tokens=...)."
            )
        return Reserve("thinking", size, serves=OUTPUT)


def thinking(model: str | Model, effort: str, through: str = "") -> Thinking:
    """Look up a model's thinking limit at a given effort.

    Parameters
    ----------
    model : str or Model
        The model or its name.
    effort : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
        Effort as written in the request.
    through : str
        Library that sends the request, such as "litellm", if it converts the effort to tokens.

    Returns
    -------
    Thinking
        The limit, with its source and date. Its `tokens` is None if no number is published.

    Raises
    ------
    ValueError
        If the effort is unknown.

    Examples
    --------
    >>> thinking("gemini-2.5-flash-lite", "medium").reserve()
    Reserve('thinking', 8192, serves='output')
    >>> thinking("gpt-5.1", "high").tokens is None, thinking("gpt-5.1", "none").tokens
    (True, 0)
    """
    check_choice("effort", effort, EFFORTS)
    name = model_name(model)
    for row in read_table("thinking.csv"):
        is_row = row["effort"] in ("", effort) and row["through"] in ("", through)
        if is_row and re.match(row["pattern"], bare(name)):
            return Thinking(
                name,
                effort,
                int(row["tokens"]) if row["tokens"] else None,
                row["source"],
                row["date"],
            )
    return Thinking(name, effort, None, "no published number was found", "2026-11-22")
