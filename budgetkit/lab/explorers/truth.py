"""Truth: the best count that is known for a model, what it rests on, and what counters are called on a page."""

from __future__ import annotations

from budgetkit.counters import CalibratedCounter, Counter, basis_of, spread_of
from budgetkit.models import Model


def short_name(counter: Counter) -> str:
    """Return a counter's name without what it rests on.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> short_name(counter("chars/4")), short_name(counter("calibrated:claude-opus-4-7"))
    ('chars/4', 'the estimate for claude-opus-4-7')
    """
    return f"the estimate for {counter.model}" if isinstance(counter, CalibratedCounter) else counter.name


def basis(best: Counter, model: Model) -> str:
    """Say what a cheap count is held against, and how sure that is.

    Examples
    --------
    >>> import budgetkit as bk
    >>> model = bk.model("gpt-4o")
    >>> basis(bk.counter(model), model)
    'o200k_base, the tokenizer of gpt-4o'
    """
    vocabulary = getattr(best, "encoding", getattr(best, "vocabulary", best.name))
    if basis_of(best) == "exact":
        return f"{vocabulary}, the tokenizer of {model.name}"
    if basis_of(best) == "reconstructed":
        return f"the best count known for {model.name}, its tokenizer as it was rebuilt from outside"
    if isinstance(best, CalibratedCounter):
        return f"the best count known for {model.name}, an estimate ({best.slope:.4g} × {best.counter.name})"
    interval = "" if spread_of(best) else ", nobody knows how closely"
    return f"{vocabulary}, which stands in for the tokenizer of {model.name}{interval}"
