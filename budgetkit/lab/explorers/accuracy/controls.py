"""Controls: the widgets beside the view. They show the settings and turn a hand's change into a command."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import numpy as np

from budgetkit.counters import RULES, encoding_names
from budgetkit.counters.calibrated import calibrated_models
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.lab.accuracy.buffers import MIXED
from budgetkit.lab.accuracy.figures.documents import signed_percent
from budgetkit.lab.explorers.accuracy.results import AccuracyResults, kind_name, kinds_in
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.boxes import (
    AUTO,
    Do,
    ModelControls,
    NumberBox,
    group,
    labelled,
    options,
    row,
)
from budgetkit.lab.explorers.budget.results import is_own
from budgetkit.lab.explorers.shelves import Library

CHEAP = ("chars/4", "chars/3.5", "bytes/4", "utf16/4", "words/0.75", *RULES)
ESTIMATES = ("estimate:o200k_base", "estimate:cl100k_base")
RISKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
PIECES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
# ipywidgets takes None for nothing chosen
WHOLE = 0
ALL_KINDS = "all of the classes chosen"
ONE_KIND = ""
MIX_OPTIONS = (
    ("texts of one kind", ONE_KIND),
    ("texts of all kinds", MIXED),
    ("one class", "class"),
    ("one language", "language"),
    ("one source", "source"),
)
LISTED = 200  # documents that can be chosen from the list
_STEPS = 24  # of the slider of lengths
_LONGEST = 40  # characters of a document's name in the list


class AccuracyControls(ModelControls):
    """The widgets beside the view.

    Attributes
    ----------
    counter, exact, corpus, path, kind, classes, pieces, length, risk, risk_box, window_mix, model, preset, window,
    window_box, document
        Widgets; setting the value of one from code is the same as doing it by hand.
    """

    def __init__(self, do: Do, library: Library) -> None:
        super().__init__(do)
        self._library = library
        self.counter = labelled(widgets.Combobox, "Cheap counter", placeholder="chars/4")
        self.counter.options = (
            *CHEAP,
            *ESTIMATES,
            *(f"calibrated:{name}" for name in calibrated_models()),
        )
        self.exact = labelled(widgets.Combobox, "Exact encoding", placeholder="the best known")
        self.exact.options = encoding_names()
        self.corpus = labelled(widgets.Dropdown, "Texts")
        self.path = labelled(widgets.Text, "Path", placeholder="folder, file or **/*.md")
        self.kind = labelled(widgets.Dropdown, "Kind of text", options=[(ALL_KINDS, ())])
        self.classes = labelled(widgets.SelectMultiple, "Classes", rows=6)
        self.pieces = labelled(widgets.Dropdown, "Cut to")
        # It is heard when it is let go: while its stops change, the page would send the old ones as a move.
        self.length = labelled(
            widgets.SelectionRangeSlider,
            "Length",
            options=[("1", 1), ("2", 2)],
            continuous_update=False,
        )
        self.risk = labelled(widgets.SelectionSlider, "Risk, %", options=[("5 %", 0.05)])
        tip = "Windows of 100 that may overflow"
        self.risk_box = NumberBox(do, min=0.01, max=99, is_whole=False, tooltip=tip, **AUTO)
        self.window_mix = labelled(widgets.Dropdown, "A window has", options=MIX_OPTIONS)
        self.document = labelled(widgets.Dropdown, "Document")
        self._build()
        self._listen()

    def _build(self) -> None:
        groups = [
            group("Counting", self.counter, self.exact),
            group("Texts", self.corpus, self.kind, self.classes),
            group("Accepted overflows", row(self.risk, self.risk_box), self.window_mix),
            group("Text to read, worst first", self.document),
            group("Which texts", self.path, self.pieces, self.length, folded=True),
            group("Budget that feels it", self.model, self.preset, self._window_row, folded=True),
        ]
        self.widget = widgets.VBox(groups).add_class("bk-controls")

    def _listen(self) -> None:
        do = self._do
        on = self._on
        on(self.counter, "counter", "name")
        on(self.exact, "exact", "name")
        on(self.corpus, "corpus", "name")
        on(self.kind, "kind", "labels")
        on(self.classes, "classes", "names")
        self.pieces.observe(lambda change: do("pieces", characters=change["new"] or None), "value")
        on(self.risk, "risk", "chance", "slider risk")
        self.window_mix.observe(
            lambda change: do("window_mix", column=change["new"] or None), "value"
        )
        on(self.document, "document", "document")
        self._listen_to_path(self.path)
        self.risk_box.observe(self._risked, "value")
        self.length.observe(self._slid, "value")

    def _risked(self, change: dict[str, Any]) -> None:
        self._do("risk", chance=change["new"] / 100)

    def _slid(self, change: dict[str, Any]) -> None:
        shortest, longest = change["new"]
        self._do("lengths", merge="slider length", shortest=shortest, longest=longest)

    def project(self, settings: AccuracySettings, results: AccuracyResults) -> None:
        """Set every control to the explorer's settings."""
        self.counter.value = settings.counter
        self.exact.value = settings.exact or (
            results.model.encoding if is_own(results.exact, results.model) else ""
        )
        options(
            self.corpus, tuple((name, name) for name in self._library.texts.names), settings.corpus
        )
        cut = sorted({*PIECES, settings.pieces} - {None}, key=lambda size: size or 0)
        whole = (("whole documents", WHOLE), *((f"about {n:,} characters", n) for n in cut))
        options(self.pieces, whole, settings.pieces or WHOLE)
        self._project_kinds(results)
        self._project_classes(settings, results)
        self._project_lengths(settings, results)
        chances = sorted({*RISKS, settings.risk})
        options(
            self.risk, tuple((f"{100 * chance:g} %", chance) for chance in chances), settings.risk
        )
        self.risk_box.value = round(100 * settings.risk, 4)
        self.window_mix.value = settings.window_mix or ONE_KIND
        self._project_model(settings.budget_settings, results.model, results.budget)
        self._project_documents(results)

    def _project_kinds(self, results: AccuracyResults) -> None:
        many = results.all_errors.groupby(["class", "language"], sort=False).size()
        choices: list[tuple[str, tuple[str, ...]]] = [(ALL_KINDS, ())]
        choices += [
            (f"{kind_name(kind)} ({n:,})", kind)
            for kind, n in zip(kinds_in(results.all_errors), many, strict=True)
        ]
        options(self.kind, tuple(choices), results.kind)

    def _project_classes(self, settings: AccuracySettings, results: AccuracyResults) -> None:
        many = results.all_errors["class"].value_counts(sort=False)
        choices = tuple(
            (f"{replace_surrogates(str(name))} ({n:,})", name) for name, n in many.items()
        )
        if settings.classes is None:
            chosen = tuple(many.index)
        else:
            chosen = settings.classes
        if results.kind:
            chosen = results.kind[:1]
        if tuple(self.classes.options) != choices:
            self.classes.value = ()  # or ipywidgets' script looks for those that were chosen among the new ones
            self.classes.options = choices
        self.classes.value = chosen

    def _project_lengths(self, settings: AccuracySettings, results: AccuracyResults) -> None:
        lengths = results.all_errors["characters"]
        low = int(lengths.min())
        high = int(lengths.max())
        ends = {settings.shortest or low, settings.longest or high}
        sizes = sorted({low, high, max(high, low + 1), *round_sizes(low, high), *ends})
        options(
            self.length,
            tuple((f"{n:,}", n) for n in sizes),
            (settings.shortest or low, settings.longest or high),
        )

    def _project_documents(self, results: AccuracyResults) -> None:
        worst = results.errors["error"].abs().nlargest(LISTED).index
        documents = [*worst, *([] if results.document in worst else [results.document])]
        rows = results.errors.loc[documents, ["error", "language", "document", "source"]]
        choices = tuple(
            (f"{signed_percent(error)} · {language} · {shortened(name or source)}", int(number))
            for number, error, language, name, source in rows.itertuples()
        )
        options(self.document, choices, results.document)


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


def shortened(name: str) -> str:
    """Return a name that a list has room for.

    Examples
    --------
    >>> shortened("a/" * 40 + "notes.md")[-11:]
    '/a/notes.md'
    """
    if len(name) <= _LONGEST:
        return name
    return f"…{name[-_LONGEST + 1 :]}"
