"""The AccuracyExplorer class, its controls and its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pandas as pd

from budgetkit.budget import brief, many
from budgetkit.budget.errors import unknown_name
from budgetkit.counters import RULES, Count, encoding_names
from budgetkit.counters.calibrated import calibrated_models
from budgetkit.inputs.budgets import AnyBudget, AnyModel, read_budget
from budgetkit.lab.accuracy import Buffer
from budgetkit.lab.accuracy.buffers import MIXED
from budgetkit.lab.accuracy.corpora import corpus_of
from budgetkit.lab.accuracy.corpora.opening import OWN_TEXTS, SHIPPED, AnyTexts
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.explorers.accuracy.charts import FIGURES, charts, scene
from budgetkit.lab.explorers.accuracy.notices import status, texts, texts_entry
from budgetkit.lab.explorers.accuracy.results import (
    AccuracySettings,
    AccuracyStage,
    kind_name,
    kinds_in,
    named_kind,
)
from budgetkit.lab.explorers.accuracy.tokens import reading
from budgetkit.lab.explorers.base import Explorer, Kind
from budgetkit.lab.explorers.budget.controls import RATIOS, add_model, initial_settings
from budgetkit.lab.explorers.budget.results import is_own
from budgetkit.lab.explorers.commands import SHARED, Command, choose
from budgetkit.lab.explorers.panel import Number, Panel
from budgetkit.lab.explorers.reach import CounterName
from budgetkit.lab.explorers.shelves import Library, short_name
from budgetkit.lab.explorers.view import view_of
from budgetkit.message import Data, replace_surrogates
from budgetkit.state import to_dict

CHEAP = (*RATIOS, "words/0.75", *RULES, "estimate:o200k_base", "estimate:cl100k_base")
RISKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
MIXES = (
    (None, "texts of one kind"),
    (MIXED, "texts of all kinds"),
    ("class", "one class"),
    ("language", "one language"),
    ("source", "one source"),
)
LISTED = 200  # documents that can be chosen from the list
_LONGEST = 40  # characters of a document's name in the list


def controls(stage: AccuracyStage) -> Panel:
    """Return the controls of the accuracy explorer."""
    settings = stage.settings
    errors = stage.all_errors
    by_kind = errors.groupby(["class", "language"], sort=False).size()
    kinds = zip(kinds_in(errors), by_kind, strict=True)
    by_class = errors["class"].value_counts(sort=False)
    panel = Panel(
        "accuracy",
        counters=[*CHEAP, *(f"calibrated:{name}" for name in calibrated_models())],
        encodings=encoding_names(),
        texts=[(name, name) for name in stage.library.texts.names],
        kinds=[
            ((), "all chosen classes"),
            *((kind, f"{kind_name(kind)} ({many:,})") for kind, many in kinds),
        ],
        classes=[
            (name, f"{replace_surrogates(str(name))} ({many:,})") for name, many in by_class.items()
        ],
        risks=[(risk, f"{100 * risk:g} %") for risk in sorted({*RISKS, settings.risk})],
        mixes=MIXES,
        documents=documents(stage),
    )
    own = stage.model.encoding if is_own(stage.exact, stage.model) else ""
    panel.group("Counters", counter=settings.estimate, exact=settings.exact or own)
    chosen = by_class.index if settings.classes is None else settings.classes
    panel.group(
        "Texts",
        corpus=settings.corpus,
        kind=stage.kind,
        classes=stage.kind[:1] or tuple(chosen),
    )
    panel.group("Accepted risk")
    risk = Number(round(100 * settings.risk, 4), 0.01, 99, is_whole=False, per=100)
    panel.add("risk", risk, slide={"among": "risks", "value": settings.risk})
    panel.add("window_mix", settings.window_mix)
    panel.group("Document, worst first", document=stage.document)
    panel.group("Other texts", folds=True, path="")
    panel.group("Budget", folds=True)
    add_model(panel, stage)
    return panel


def documents(stage: AccuracyStage) -> list[tuple[int, str]]:
    """Return the selectable documents with their labels, worst first.

    These are the 200 documents with the largest errors, and the chosen document.
    """
    worst = stage.errors["error"].abs().nlargest(LISTED).index
    numbers = [*worst, *([] if stage.document in worst else [stage.document])]
    rows = stage.errors.loc[numbers, ["error", "language", "document", "source"]]
    return [
        (int(number), f"{signed_percent(error)} · {language} · {_shortened(name or source)}")
        for number, error, language, name, source in rows.itertuples()
    ]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[-_LONGEST + 1 :]}"


def choose_cheap_counter(stage: AccuracyStage, name: CounterName) -> AccuracySettings:
    """Choose the cheap counter whose error is measured."""
    return replace(stage.settings, estimate=name.strip())


def choose_exact(stage: AccuracyStage, name: CounterName) -> AccuracySettings:
    """Choose the reference counter, or the model's counter if `name` is empty."""
    return replace(stage.settings, exact=name.strip() or None)


def choose_classes(stage: AccuracyStage, names: Sequence[str]) -> AccuracySettings:
    """Show only the documents of these classes.

    If `names` is empty, all documents are shown.
    """
    class_names = list(dict.fromkeys(stage.all_errors["class"]))
    if strange := [name for name in names if name not in class_names]:
        raise LookupError(unknown_name("class", strange[0], class_names))
    every = not names or set(names) == set(class_names)
    chosen = None if every else tuple(name for name in class_names if name in names)
    return replace(stage.settings, kind=(), classes=chosen)


def choose_kind(stage: AccuracyStage, labels: Sequence[str]) -> AccuracySettings:
    """Show only the documents of one class and language.

    If `labels` is empty, all documents are shown.
    """
    return replace(stage.settings, kind=named_kind(labels, stage.all_errors), classes=None)


def accept_risk(stage: AccuracyStage, chance: float) -> AccuracySettings:
    """Set the accepted risk of an overflow, as a share of windows."""
    return replace(stage.settings, risk=round(chance, 6))


def fill_mix(stage: AccuracyStage, column: str | None) -> AccuracySettings:
    """Set the mix of texts that fill a window.

    If `column` is None, each window has texts of one kind. If `column` is "mixed", each window has texts of all kinds.
    Otherwise, the texts in a window have one value in that column.
    """
    mixes = [mix for mix, _ in MIXES if mix]
    if column is not None and column not in mixes:
        raise LookupError(unknown_name("mix of a window", column, mixes))
    return replace(stage.settings, window_mix=column)


def read_document(stage: AccuracyStage, document: int | None) -> AccuracySettings:
    """Choose a document by position.

    If `document` is None, the document with the largest error is chosen.
    """
    last = len(stage.all_errors) - 1
    if document is not None and not 0 <= document <= last:
        raise LookupError(
            f"Unknown document {brief(document)}. Choose a number from 0 to {last:,}."
        )
    return replace(stage.settings, document=document)


COMMANDS: Mapping[str, Command] = {
    "counter": choose_cheap_counter,
    "exact": choose_exact,
    "corpus": choose,
    "kind": choose_kind,
    "classes": choose_classes,
    "risk": accept_risk,
    "window_mix": fill_mix,
    "document": read_document,
}

AccuracyView = view_of("AccuracyView", FIGURES)


def reader(stage: AccuracyStage) -> Data:
    """Return the chosen document, token by token."""
    document = stage.texts.corpus.documents[stage.document]
    title = f"How {document.name or document.source} is cut into tokens"
    counters = stage.exact, stage.estimate
    names = tuple(count.name for count in counters)
    key = (stage.texts.name, stage.document, *names, "reading")
    return stage.library.once_large(key, lambda: reading(document.text, title, *counters))


def heading(stage: AccuracyStage) -> str:
    """Return the title of a report, with both counters and the texts."""
    return f"{stage.estimate.name} against {short_name(stage.exact)} on {stage.settings.corpus}"


class AccuracyExplorer(Explorer):
    """An explorer of a cheap counter's error and the buffer against it.

    Parameters
    ----------
    counter : str, Counter or callable, default "chars/4"
        The cheap counter: a name that `budgetkit.counter` takes, a counter such as `budgetkit.accuracy.calibrate`
        returns, or a function that counts the tokens in a text.
    corpus : str, Path, Corpus, DataFrame or iterable, default "mini-corpus"
        The texts: "mini-corpus", "odd text" or "mini-corpus and odd text"; the path of a folder, a file or a glob; a
        corpus; a frame with a column of texts; or a list of texts.
    exact : str, Counter or callable, optional
        The reference counter; default: the best known counter for the model.
    kind : sequence of str, optional
        Class and language of the texts to show and to compute the buffer for, such as ("prose", "German"). Default:
        the kind of more than half of the texts or, if there is none, all kinds. Pass () for all kinds, with the
        buffer of the worst kind.
    risk : float, default 0.05
        Accepted chance that a window overflows, between 0 and 1.
    budget : str, Budget, Path or Mapping, default "chat"
        The budget that the error affects: a preset's name, a budget or a configuration.
    model : str or Model, optional
        The model whose tokens are counted; default: the model of the configuration, or `DEFAULT_MODEL`.
    window : int, optional, default 8,192
        The preset's window, in tokens; None for the window of the model.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> from budgetkit.lab.accuracy.corpora import Corpus, Document
    >>> mine = Corpus(tuple(Document("Guten Tag, wie geht es Ihnen?" * n, "prose", "de", "me") for n in range(1, 41)))
    >>> explorer = AccuracyExplorer("words/0.75", mine, window=4_096)
    >>> explorer
    AccuracyExplorer(words/0.75 against o200k_base, my texts, 40 documents)
    >>> explorer.set(counter="chars/4")
    >>> explorer.errors["counter"].unique().tolist(), explorer.buffer.documents
    (['chars/4'], 40)
    """

    stage: AccuracyStage
    kind: ClassVar[Kind] = Kind(
        name="accuracy",
        commands={**SHARED, **COMMANDS},
        view=AccuracyView,
        stage=AccuracyStage,
        scene=scene,
        controls=controls,
        status=status,
        charts=charts,
        entry=texts_entry,
        texts=texts,
        reader=reader,
        heading=heading,
    )

    def __init__(
        self,
        counter: str | Count = "chars/4",
        corpus: AnyTexts = SHIPPED,
        *,
        exact: str | Count | None = None,
        kind: Sequence[str] | None = None,
        risk: float = 0.05,
        budget: AnyBudget = "chat",
        model: AnyModel | None = None,
        window: int | None = 8_192,
    ) -> None:
        view = self.kind.view()
        library = Library(view.report)
        budget = read_budget(budget)
        if not (isinstance(budget, str) or callable(budget)):
            window = None  # a budget has its own
        settings = initial_settings(AccuracySettings(), library, None, budget, model, None, window)
        if isinstance(corpus, str | Path):
            name = library.texts.open(str(corpus))
        else:
            name = library.texts.add(OWN_TEXTS, corpus_of(corpus))
        settings = replace(
            settings,
            estimate=str(library.add_counter(counter)),
            exact=library.add_counter(exact),
            corpus=name,
            kind=None if kind is None else tuple(kind),
            risk=risk,
        )
        super().__init__(settings, library, view)

    @property
    def errors(self) -> pd.DataFrame:
        """The errors of the shown documents, as in `budgetkit.lab.accuracy.compare`."""
        return self.stage.errors.reset_index(drop=True)

    @property
    def buffer(self) -> Buffer:
        """The result of `budgetkit.lab.accuracy.buffer_for` at the accepted risk."""
        return self.stage.buffer

    @property
    def config(self) -> Data:
        """All settings and the budget, as plain data."""
        stage = self.stage
        now = stage.settings
        every = dict.fromkeys(stage.all_errors["class"])
        return {
            "counter": stage.estimate.name,
            "exact": stage.exact.name,
            "corpus": now.corpus,
            "kind": list(stage.kind),
            "classes": [*(stage.kind[:1] or now.classes or every)],
            "risk": now.risk,
            "window_mix": now.window_mix,
            "document": stage.document,
            "preset": now.preset,
            "model": now.model,
            **to_dict(self.budget),
        }

    def __repr__(self) -> str:
        stage = self.stage
        corpus = stage.settings.corpus
        size = many(len(stage.errors), "document")
        return f"AccuracyExplorer({stage.estimate.name} against {short_name(stage.exact)}, {corpus}, {size})"
