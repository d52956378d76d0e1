"""Controls of the accuracy explorer: two counters, the texts, the accepted risk, and the affected budget."""

from __future__ import annotations

import numpy as np

from budgetkit.counters import RULES, encoding_names
from budgetkit.counters.calibrated import calibrated_models
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.lab.accuracy.buffers import MIXED
from budgetkit.lab.accuracy.figures.documents import signed_percent
from budgetkit.lab.explorers.accuracy.results import AccuracyStage, kind_name, kinds_in
from budgetkit.lab.explorers.budget.controls import RATIOS, add_model
from budgetkit.lab.explorers.budget.results import is_own
from budgetkit.lab.explorers.panel import Number, Panel, command

CHEAP = (*RATIOS, "words/0.75", *RULES, "estimate:o200k_base", "estimate:cl100k_base")
RISKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
PIECES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
MIXES = (
    (None, "texts of one kind"),
    (MIXED, "texts of all kinds"),
    ("class", "one class"),
    ("language", "one language"),
    ("source", "one source"),
)
LISTED = 200  # documents that can be chosen from the list
_STEPS = 24  # of the sliders of lengths
_LONGEST = 40  # characters of a document's name in the list


def controls(stage: AccuracyStage) -> Panel:
    """Return the controls of the accuracy explorer."""
    settings = stage.settings
    results = stage.results
    errors = results.all_errors
    by_kind = errors.groupby(["class", "language"], sort=False).size()
    kinds = zip(kinds_in(errors), by_kind, strict=True)
    by_class = errors["class"].value_counts(sort=False)
    cuts = sorted({*PIECES, settings.pieces or PIECES[0]})
    panel = Panel(
        counters=[*CHEAP, *(f"calibrated:{name}" for name in calibrated_models())],
        encodings=encoding_names(),
        texts=[(name, name) for name in stage.library.texts.names],
        kinds=[
            ((), "all of the classes chosen"),
            *((kind, f"{kind_name(kind)} ({many:,})") for kind, many in kinds),
        ],
        classes=[
            (name, f"{replace_surrogates(str(name))} ({many:,})") for name, many in by_class.items()
        ],
        pieces=[(None, "whole documents"), *((cut, f"about {cut:,} characters") for cut in cuts)],
        risks=[(risk, f"{100 * risk:g} %") for risk in sorted({*RISKS, settings.risk})],
        mixes=MIXES,
        documents=documents(stage),
    )
    panel.group("Counting")
    cheap = command("counter", "name")
    panel.text(
        "counter", "Cheap counter", settings.counter, cheap, among="counters", hint="chars/4"
    )
    own = results.model.encoding if is_own(results.exact, results.model) else ""
    exact = command("exact", "name")
    best = "the best known"
    panel.text(
        "exact", "Exact encoding", settings.exact or own, exact, among="encodings", hint=best
    )
    panel.group("Texts")
    panel.choice("corpus", "Texts", settings.corpus, command("corpus", "name"), "texts")
    panel.choice("kind", "Kind of text", results.kind, command("kind", "labels"), "kinds")
    chosen = by_class.index if settings.classes is None else settings.classes
    chosen = results.kind[:1] or tuple(chosen)
    panel.choice("classes", "Classes", chosen, command("classes", "names"), "classes", rows=6)
    panel.group("Accepted overflows")
    risk = Number(round(100 * settings.risk, 4), 0.01, 99, is_whole=False, per=100)
    accepted = command("risk", "chance", risk.read)
    slide = {"among": "risks", "value": settings.risk}
    tip = "Windows of 100 that may overflow"
    panel.line("risk", "Risk, %", slide, risk, accepted, box_tip=tip)
    panel.choice(
        "window_mix", "A window has", settings.window_mix, command("window_mix", "column"), "mixes"
    )
    panel.group("Text to read, worst first")
    panel.choice(
        "document", "Document", results.document, command("document", "document"), "documents"
    )
    panel.group("Which texts", folds=True)
    panel.text("path", "Path", "", command("path", "path"), hint="folder, file or **/*.md")
    panel.choice("pieces", "Cut to", settings.pieces, command("pieces", "characters"), "pieces")
    add_lengths(panel, stage)
    panel.group("Affected budget", folds=True)
    add_model(panel, stage.budget)
    return panel


def add_lengths(panel: Panel, stage: AccuracyStage) -> None:
    """Add the sliders of the shortest and the longest document."""
    lengths = stage.results.all_errors["characters"]
    low = int(lengths.min())
    high = int(lengths.max())
    ends = {"shortest": stage.settings.shortest or low, "longest": stage.settings.longest or high}
    sizes = sorted({low, high, *round_sizes(low, high), *ends.values()})
    panel.choices["lengths"] = [(size, f"{size:,}") for size in sizes]
    for key, size in ends.items():
        number = Number(size)
        others = {other: end for other, end in ends.items() if other != key}
        slide = {"among": "lengths", "value": size}
        label = key.capitalize()
        limited = command("lengths", key, number.read, **others)
        panel.line(key, label, slide, number, limited, box_tip=f"{label}, in characters")


def documents(stage: AccuracyStage) -> list[tuple[int, str]]:
    """Return the selectable documents with their labels, worst first."""
    results = stage.results
    worst = results.errors["error"].abs().nlargest(LISTED).index
    numbers = [*worst, *([] if results.document in worst else [results.document])]
    rows = results.errors.loc[numbers, ["error", "language", "document", "source"]]
    return [
        (int(number), f"{signed_percent(error)} · {language} · {list_name(name or source)}")
        for number, error, language, name, source in rows.itertuples()
    ]


def round_sizes(low: int, high: int) -> list[int]:
    """Return round numbers of characters between two lengths.

    Examples
    --------
    >>> round_sizes(450, 2_000)[:4]
    [480, 510, 540, 580]
    """
    steps = np.geomspace(max(low, 1), max(high, low + 1, 2), _STEPS + 1)[1:-1]
    rounded = {int(float(f"{step:.2g}")) for step in steps}
    return sorted(size for size in rounded if low < size < high)


def list_name(name: str) -> str:
    """Return a name short enough for a list.

    Examples
    --------
    >>> list_name("a/" * 40 + "notes.md")[-11:]
    '/a/notes.md'
    """
    if len(name) <= _LONGEST:
        return name
    return f"…{name[-_LONGEST + 1 :]}"
