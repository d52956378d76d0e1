"""What a preset may be given as its window: tokens, a model, or a model's name."""

from __future__ import annotations

from typing import Any

from budgetkit.budget.amounts import check_tokens
from budgetkit.models import Model, model

Window = int | Model | str


def window_of(window: Window) -> dict[str, Any]:
    """Return the fields of a budget that its window says: its size, what it holds, and the longest answer.

    Examples
    --------
    >>> window_of(8192)
    {'window': 8192}
    >>> window_of("gpt-4o")
    {'window': 128000, 'kind': 'shared', 'max_output': 16384}
    """
    resolved = model(window) if isinstance(window, str) else window
    if isinstance(resolved, Model):
        return {"window": resolved.window, "kind": resolved.kind, "max_output": resolved.max_output}
    return {"window": check_tokens("window", resolved)}
