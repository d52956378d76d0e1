"""Orders: which section is asked first after the required ones, and what sections without a cap may take.

- "importance": by importance; a section without a cap takes what is left.
- "caps first": those with a cap before those without, which take what is left.
- "pool together", "pool each": by importance; those without a cap take up to the shared pool, together or each.
- "pool by item": those with a cap first; then items of all others compete for the shared pool, by importance and score.
- "open by item": so too, but for all that is left.
"""

from __future__ import annotations

from typing import Literal

Order = Literal[
    "importance", "caps first", "pool together", "pool each", "pool by item", "open by item"
]
Pool = Literal["open", "together", "each"]

#: Whether sections with a cap are asked first, what those without may take, and whether their items compete for it.
ORDERS: dict[str, tuple[bool, Pool, bool]] = {
    "importance": (False, "open", False),
    "caps first": (True, "open", False),
    "pool together": (False, "together", False),
    "pool each": (False, "each", False),
    "pool by item": (True, "together", True),
    "open by item": (True, "open", True),
}
