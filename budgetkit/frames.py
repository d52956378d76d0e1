"""Import pandas lazily, on the first data frame.

Listing sessions needs no data frame, and importing pandas takes longer than reading most sessions.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Import a name of pandas when it is first used."""
    import pandas as pd

    return getattr(pd, name)
