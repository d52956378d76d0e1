"""Commands: every change that the accuracy explorer knows, by name. One function each, from settings to settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from budgetkit.accuracy.explorer.library import Texts
from budgetkit.accuracy.explorer.results import Results
from budgetkit.accuracy.explorer.settings import Settings
from budgetkit.accuracy.simulation import MIXED
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.explorer.budget.results import typed_model
from budgetkit.explorer.budget.settings import OWN
from budgetkit.presets import preset

WINDOW_MIXES = (MIXED, "class", "language", "source")


def choose_counter(settings: Settings, found: Results, library: Texts, name: str) -> Settings:
    """Look at another cheap counter."""
    return replace(settings, counter=name.strip())


def choose_exact(settings: Settings, found: Results, library: Texts, name: str) -> Settings:
    """Take another counter as the one that is right; an empty name is the model's own."""
    return replace(settings, exact=name.strip() or None)


def choose_corpus(settings: Settings, found: Results, library: Texts, name: str) -> Settings:
    """Look at other texts, all of them."""
    return replace(settings, corpus=name, classes=None, shortest=None, longest=None, document=None)


def open_path(settings: Settings, found: Results, library: Texts, path: str) -> Settings:
    """Read a folder, a file or a glob and look at it."""
    return choose_corpus(settings, found, library, library.open(path.strip()))


def take_file(settings: Settings, found: Results, library: Texts, name: str, content: bytes) -> Settings:
    """Read a file that was sent, and look at it."""
    return choose_corpus(settings, found, library, library.take(name, content))


def cut_pieces(settings: Settings, found: Results, library: Texts, characters: int | None) -> Settings:
    """Cut the documents to pieces of about that length; None leaves them whole."""
    length = None if characters is None else check_tokens("pieces", int(characters))
    return replace(settings, pieces=length, shortest=None, longest=None, document=None)


def choose_classes(settings: Settings, found: Results, library: Texts, names: Sequence[str]) -> Settings:
    """Look at documents of these classes alone; all of them, or none, are every document."""
    known = list(dict.fromkeys(found.every["class"]))
    if strange := [name for name in names if name not in known]:
        raise LookupError(
            f"no class {brief(strange[0])} in these texts; they have {quoted(known)}; choose some of them"
        )
    every = not names or set(names) == set(known)
    return replace(settings, classes=None if every else tuple(name for name in known if name in names))


def choose_lengths(
    settings: Settings, found: Results, library: Texts, shortest: int | None, longest: int | None
) -> Settings:
    """Look at documents of these lengths alone, in characters; limits that leave nothing out are none."""
    lengths = found.every["characters"]
    low = None if shortest is None or shortest <= lengths.min() else int(shortest)
    high = None if longest is None or longest >= lengths.max() else int(longest)
    return replace(settings, shortest=low, longest=high)


def accept_risk(settings: Settings, found: Results, library: Texts, chance: float) -> Settings:
    """Accept another chance of an overflow."""
    return replace(settings, risk=round(float(chance), 6))


def fill_mix(settings: Settings, found: Results, library: Texts, column: str | None) -> Settings:
    """Say what a window is filled with; None is texts of one kind, "mixed" those of all."""
    if column is not None and column not in WINDOW_MIXES:
        raise LookupError(
            f"windows of one {brief(column)} were asked for; known are {quoted(WINDOW_MIXES)}; choose one of them"
        )
    return replace(settings, window_mix=column)


def read_document(settings: Settings, found: Results, library: Texts, document: int | None) -> Settings:
    """Read a document, by its place in the corpus; None is the one that is counted worst."""
    if document is not None and not 0 <= int(document) < len(found.every):
        last = len(found.every) - 1
        raise LookupError(f"document {brief(document)} was asked for; there are 0 to {last:,}; choose one of them")
    return replace(settings, document=None if document is None else int(document))


def choose_model(settings: Settings, found: Results, library: Texts, name: str) -> Settings:
    """Take another model, its window and its encoding."""
    budget = settings.budget
    model = typed_model(name)
    window = None if budget.own is None else model.window
    return replace(settings, exact=None, budget=replace(budget, model=name.strip(), window=window))


def choose_preset(settings: Settings, found: Results, library: Texts, name: str) -> Settings:
    """Feel the error in another preset; the window stays."""
    if name == OWN and settings.budget.own is not None:
        return settings
    preset(name)
    return replace(settings, budget=replace(settings.budget, preset=name, own=None, lines={}))


def size_window(settings: Settings, found: Results, library: Texts, tokens: int) -> Settings:
    """Take another window, in tokens."""
    return replace(settings, budget=replace(settings.budget, window=check_tokens("window", int(tokens))))


def reset(settings: Settings, found: Results, library: Texts) -> Settings:
    """Go back to the beginning, with the texts that are looked at now."""
    return replace(library.start, corpus=settings.corpus)


COMMANDS: dict[str, Callable[..., Settings]] = {
    "counter": choose_counter,
    "exact": choose_exact,
    "corpus": choose_corpus,
    "path": open_path,
    "file": take_file,
    "pieces": cut_pieces,
    "classes": choose_classes,
    "lengths": choose_lengths,
    "risk": accept_risk,
    "window_mix": fill_mix,
    "document": read_document,
    "model": choose_model,
    "preset": choose_preset,
    "window": size_window,
    "reset": reset,
}
