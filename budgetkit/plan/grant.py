"""Grant: what one section asked for and got."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """What one section asked for and got.

    Parameters
    ----------
    section : str
        Name of the section.
    demand : int
        What it asked for, in tokens.
    limit : int
        What it might have taken when it was asked, in tokens.
    granted : int
        What it took, in tokens.

    Examples
    --------
    >>> Grant("history", 5_000, 3_000, 3_000).cut
    2000
    """

    section: str
    demand: int
    limit: int
    granted: int

    @property
    def cut(self) -> int:
        """Demand less grant, in tokens."""
        return self.demand - self.granted
