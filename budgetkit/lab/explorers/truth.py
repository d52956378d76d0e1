"""Truth: the best count that is known for a model, what it rests on, and what counters are called on a page."""

from __future__ import annotations

from budgetkit.counters import CalibratedCounter, Counter, basis_of, nearer_sentence, spread_of
from budgetkit.models import Model


def short_name(counter: Counter) -> str:
    """Return a counter's name without what it rests on.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> short_name(counter("chars/4")), short_name(counter("calibrated:claude-opus-4-7"))
    ('chars/4', 'the estimate for claude-opus-4-7')
    """
    if isinstance(counter, CalibratedCounter):
        return f"the estimate for {counter.model}"
    return counter.name


def vocabulary_name(counter: Counter) -> str:
    """Return what the vocabulary that counts is called; the counter's name where it says no more.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> vocabulary_name(counter("gpt-4o")), vocabulary_name(counter("chars/4"))
    ('o200k_base', 'chars/4')
    """
    return getattr(counter, "encoding", getattr(counter, "vocabulary", counter.name))


def advice(counter: Counter) -> str:
    """Return the sentence that says how to count nearer, with a blank before it; empty where nothing would help.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> advice(counter("gpt-4o"))
    ''
    """
    sentence = nearer_sentence(counter)
    return f" {sentence}" if sentence else ""


def basis(best: Counter, model: Model) -> str:
    """Say what a cheap count is held against, and how sure that is.

    Examples
    --------
    >>> import budgetkit as bk
    >>> model = bk.model("gpt-4o")
    >>> basis(bk.counter(model), model)
    'o200k_base, the tokenizer of gpt-4o'
    """
    if basis_of(best) == "exact":
        return f"{vocabulary_name(best)}, the tokenizer of {model.name}"
    if basis_of(best) == "reconstructed":
        return (
            f"the best count known for {model.name}, its tokenizer as it was rebuilt from outside"
        )
    if isinstance(best, CalibratedCounter):
        return f"the best count known for {model.name}, an estimate ({best.product})"
    if spread_of(best):
        interval = ""
    else:
        interval = ", nobody knows how closely"
    return f"{vocabulary_name(best)}, which stands in for the tokenizer of {model.name}{interval}"
