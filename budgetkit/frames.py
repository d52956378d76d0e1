"""Import pandas lazily, when the first data frame is needed.

Listing sessions needs no data frame, and importing pandas takes longer than reading most sessions.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return an attribute of pandas, importing pandas on first use."""
    import pandas as pd

    return getattr(pd, name)
