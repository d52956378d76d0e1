"""What a preset may be given as its window: tokens, or a model."""

from __future__ import annotations

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.budget import WindowKind
from budgetkit.models import Model

Window = int | Model


def window_of(window: Window) -> tuple[int, WindowKind]:
    """Return a window's size and what it holds.

    Examples
    --------
    >>> window_of(8192)
    (8192, 'shared')
    """
    if isinstance(window, Model):
        return window.window, window.kind
    return check_tokens("window", window), "shared"
