"""pandas, imported when the first frame is built.

A list of sessions builds none, and pandas takes longer to import than most sessions take to read.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Import a name of pandas when it is first used."""
    import pandas as pd

    return getattr(pd, name)
