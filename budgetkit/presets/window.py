"""What a preset may be given as its window: tokens, a model, or a model's name."""

from __future__ import annotations

import re
from typing import Any, Final

from budgetkit.budget.amounts import check_tokens
from budgetkit.models import Model, model
from budgetkit.models.resolved import ResolvedModel, resolve

Window = int | Model | ResolvedModel | str
#: A number written as a text, such as "8k": somebody means tokens, and no model is called so.
_NUMBER: Final = re.compile(r"\s*[-+]?\d[\d.,_ ]*[kKmM]?\s*")


def window_of(window: Window) -> dict[str, Any]:
    """Return the fields of a budget that its window says: its size, what it holds, and the longest answer.

    Examples
    --------
    >>> window_of(8192)
    {'window': 8192}
    >>> window_of("gpt-4o")
    {'window': 128000, 'kind': 'shared', 'max_output': 16384}
    >>> window_of("8k")
    Traceback (most recent call last):
    ...
    TypeError: window is '8k'; tokens are whole numbers of 0 or more; give an int, or a Share for a ratio
    """
    if isinstance(window, str) and not _NUMBER.fullmatch(window):
        resolve(window, must_know=True)
        window = model(window)  # warns of one that has ended
    if isinstance(window, ResolvedModel):
        window = window.facts
    if isinstance(window, Model):
        return {"window": window.window, "kind": window.kind, "max_output": window.max_output}
    return {"window": check_tokens("window", window)}
