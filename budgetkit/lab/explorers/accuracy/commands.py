"""Commands that the accuracy explorer alone knows: counters, which documents are looked at, and the accepted risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.lab.accuracy.buffers import MIXED
from budgetkit.lab.explorers.accuracy.results import AccuracyStage, named_kind
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.commands import choose
from budgetkit.lab.explorers.reach import CounterName

WINDOW_MIXES = (MIXED, "class", "language", "source")


def choose_counter(stage: AccuracyStage, name: CounterName) -> AccuracySettings:
    """Return the settings with another cheap counter."""
    return replace(stage.settings, counter=name.strip())


def choose_exact(stage: AccuracyStage, name: CounterName) -> AccuracySettings:
    """Take another counter as the one that is right; an empty name is the model's own."""
    return replace(stage.settings, exact=name.strip() or None)


def cut_pieces(stage: AccuracyStage, characters: int | None) -> AccuracySettings:
    """Cut the documents to pieces of about that length; None leaves them whole."""
    if characters is None:
        length = None
    else:
        length = check_tokens("pieces", int(characters))
    return replace(stage.settings, pieces=length, shortest=None, longest=None, document=None)


def choose_classes(stage: AccuracyStage, names: Sequence[str]) -> AccuracySettings:
    """Look at documents of these classes alone; all of them, or none, are every document."""
    class_names = list(dict.fromkeys(stage.results.all_errors["class"]))
    if strange := [name for name in names if name not in class_names]:
        raise LookupError(
            f"no class {brief(strange[0])} in these texts; they have {quoted(class_names)}; choose some of them"
        )
    every = not names or set(names) == set(class_names)
    if every:
        chosen = None
    else:
        chosen = tuple(name for name in class_names if name in names)
    return replace(stage.settings, kind=(), classes=chosen)


def choose_kind(stage: AccuracyStage, labels: Sequence[str]) -> AccuracySettings:
    """Look at documents of one class in one language alone; of no labels, at every kind."""
    return replace(stage.settings, kind=named_kind(labels, stage.results.all_errors), classes=None)


def choose_lengths(
    stage: AccuracyStage,
    shortest: int | None,
    longest: int | None,
) -> AccuracySettings:
    """Look at documents of these lengths alone, in characters; limits that leave nothing out are none."""
    lengths = stage.results.all_errors["characters"]
    if shortest is None or shortest <= lengths.min():
        low = None
    else:
        low = int(shortest)
    if longest is None or longest >= lengths.max():
        high = None
    else:
        high = int(longest)
    return replace(stage.settings, shortest=low, longest=high)


def accept_risk(stage: AccuracyStage, chance: float) -> AccuracySettings:
    """Return the settings with another accepted chance of an overflow."""
    return replace(stage.settings, risk=round(float(chance), 6))


def fill_mix(stage: AccuracyStage, column: str | None) -> AccuracySettings:
    """Say what a window is filled with; None is texts of one kind, "mixed" those of all."""
    if column is not None and column not in WINDOW_MIXES:
        raise LookupError(
            f"windows of one {brief(column)} were asked for; known are {quoted(WINDOW_MIXES)}; choose one of them"
        )
    return replace(stage.settings, window_mix=column)


def read_document(stage: AccuracyStage, document: int | None) -> AccuracySettings:
    """Read a document, by its place in the corpus; None is the one that is counted worst."""
    if document is not None and not 0 <= int(document) < len(stage.results.all_errors):
        last = len(stage.results.all_errors) - 1
        raise LookupError(
            f"document {brief(document)} was asked for; there are 0 to {last:,}; choose one of them"
        )
    return replace(stage.settings, document=None if document is None else int(document))


COMMANDS: Final[Mapping[str, Callable[..., AccuracySettings]]] = {
    "counter": choose_counter,
    "exact": choose_exact,
    "corpus": choose,
    "pieces": cut_pieces,
    "kind": choose_kind,
    "classes": choose_classes,
    "lengths": choose_lengths,
    "risk": accept_risk,
    "window_mix": fill_mix,
    "document": read_document,
}
