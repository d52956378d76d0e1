"""Conflicts between the registries of models: where data/models.csv and genai-prices give one model two windows.

    agree  <=>  the other's window is ours, or ours with the longest answer on top

A registry may mean the prompt alone or prompt and answer together; both are one fact. What differs beyond that is
reported with both sources, and data/models.csv is what budgetkit goes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from budgetkit.models import Model, models, price_list


@dataclass(frozen=True, slots=True)
class Conflict:
    """One model of which two registries say different things.

    Parameters
    ----------
    model : str
        Its name.
    window, other : int
        Its window by data/models.csv, which holds, and by genai-prices, in tokens.
    source, date : str
        Where ours comes from, and when it was read.
    other_source : str
        The entry of genai-prices.
    """

    model: str
    window: int
    other: int
    source: str
    date: str
    other_source: str

    def __str__(self) -> str:
        return (
            f"{self.model} has a window of {self.window:,} tokens ({self.source}, read {self.date}), and of "
            f"{self.other:,} by {self.other_source}; the first is taken; give window= where the other is right"
        )


def conflicts() -> tuple[Conflict, ...]:
    """List the models whose windows the two registries do not agree on.

    Returns
    -------
    tuple of Conflict
        In the order of data/models.csv; empty without genai-prices (extra ``lab``).

    Examples
    --------
    >>> all(conflict.window != conflict.other for conflict in conflicts())
    True
    """
    registry = price_list()
    if registry is None:
        return ()
    compared = (_conflict(row, registry) for row in models())
    return tuple(conflict for conflict in compared if conflict is not None)


def _conflict(row: Model, registry: Any) -> Conflict | None:
    """Compare one model with what the registry lists by exactly its name."""
    try:
        provider, entry = registry.find_provider_model(row.name, None, None, None)
    except LookupError:
        return None
    # A registry's entry may stand for a whole family, whose other members have other windows.
    if (
        entry.id != row.name
        or not entry.context_window
        or entry.context_window in (row.window, row.total)
    ):
        return None
    return Conflict(
        model=row.name,
        window=row.window,
        other=entry.context_window,
        source=row.source,
        date=row.date,
        other_source=f"genai-prices, {provider.id}/{entry.id}",
    )
