"""DesignCard: a budget in one view, with the error of a cheap count."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from budgetkit.budget.errors import check_html
from budgetkit.files import write_whole
from budgetkit.lab.app.headline import headline, key_figures, misjudgements
from budgetkit.lab.app.receipt import receipt, receipt_svg
from budgetkit.lab.app.sides import pin_column, unpinned
from budgetkit.lab.app.strip import CounterPair, counters_of, room_of, strip
from budgetkit.lab.explorers.budget.charts import scene
from budgetkit.lab.explorers.budget.explorer import OPENS, BudgetExplorer
from budgetkit.lab.explorers.budget.notices import status
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.why import remedies
from budgetkit.lab.explorers.folds import Fold
from budgetkit.lab.explorers.report import receipt_page
from budgetkit.lab.explorers.shelves import advice
from budgetkit.lab.explorers.stage import Kind, nothing
from budgetkit.lab.explorers.view import View, sendable, view_of

Data = dict[str, Any]
RECEIPT = "budget"  # what the files of a receipt are called
SIDES = "sides"  # the fold that several models or budgets stand in


CardView = view_of("CardView", (), OPENS)  # no charts, so that nothing large is loaded


def card_scene(stage: BudgetStage) -> Data:
    """Return the state of the card: headline, bar and table of errors."""
    settings = stage.settings
    results = stage.results
    counters = counters_of(stage)
    shown = scene(stage)
    return {
        **shown,
        # how a count would come nearer is said once, above the table
        "source": shown["source"].removesuffix(advice(counters.best)),
        "headline": headline(settings, results),
        "strip": strip(
            room_of(results.plan),
            misjudgements(settings, results.model, stage.library),
            counters,
            has_trace=settings.trace is not None,
        ),
        "kpis": key_figures(results),
        "figures": [],
        "actions": {"pinned": unpinned(settings) in settings.pins, "share": True},
    }


class DesignCard(BudgetExplorer):
    """A card to design a budget, with its settings, remainder and count error.

    Its parameters, sliders, handles, values and `load` are those of :class:`budgetkit.BudgetExplorer`. The table shows
    the error of a cheap counter, "chars/4" unless "Compare with" is set; it does not depend on the model or the counter
    of the plan.

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or the initial budget.
    trace : str, path, Trace or sequence of Trace, optional
        The conversations to plan.
    model : str, default `DEFAULT_MODEL`
        The model; its window is used for a preset, and its encoding as the reference.
    counter : str, optional
        Counter of the plan; default: the model's own.
    window : int, optional
        A window in tokens that replaces the model's.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> card = DesignCard("chat", "mixed-language", window=8_192)
    >>> card
    DesignCard(chat, gpt-5.4, window=8,192)
    >>> card.errors.set_index(["kind", "where"])[["error", "really"]].round(2).loc[("CJK", "conversation")].tolist()
    [-0.61, 4190.0]
    >>> card.move("conversation", 1_000)
    >>> card.errors["really"].tolist()
    [1169, 1421, 2499, 2558, 1329, 1146]
    """

    kind: ClassVar[Kind] = replace(
        BudgetExplorer.kind,
        commands={**BudgetExplorer.kind.commands, "pin": pin_column},
        folds={
            SIDES: Fold(
                "Several models or budgets side by side", "budgetkit.lab.app.sides:SidesFold"
            )
        },
        view=CardView,
        scene=card_scene,
        status=lambda stage: {**status(stage), "remedies": remedies(stage)},
        charts=lambda stage, opened: {},
        reader=nothing,
    )

    @property
    def errors(self) -> pd.DataFrame:
        """Error of the cheap count, one row per kind of text and source.

        Columns exact and estimate are the tokens of all texts by the best known count of the model and by the cheap
        one; is_exact is True if the best count is exact. error is a share of exact; 9 of 10 texts are between low and
        high. budget is the current history budget, really its actual tokens if the cheap count fills it, with
        really_low and really_high for 9 of 10 texts. pool is the rest of the shared pool.
        """
        room = room_of(self.stage.results.plan)
        best = self.counters.best
        rows = []
        for row in misjudgements(self.settings, self.stage.results.model, self.library):
            really = row.really(room.budget)
            verdict = room.verdict(really)
            rows.append(
                {
                    "kind": row.kind,
                    "where": row.where,
                    "texts": row.texts,
                    "exact": row.best,
                    "estimate": row.cheap,
                    "is_exact": best.exact,
                    "error": row.error,
                    "low": row.low,
                    "high": row.high,
                    "budget": room.budget,
                    "really": really,
                    "really_low": row.least(room.budget),
                    "really_high": row.most(room.budget),
                    "pool": room.pool_left(really),
                    "verdict": verdict.level,
                }
            )
        return pd.DataFrame(rows)

    @property
    def counters(self) -> CounterPair:
        """The cheap counter, and the best known counter of the model."""
        return counters_of(self.stage)

    def share(self, path: str | PathLike[str], *, texts: bool = False) -> None:
        """Save a receipt as an HTML file and a picture.

        In the file, model, window and reserve can be changed without a kernel, since it contains the results.

        Parameters
        ----------
        path : str or path
            Path that ends in .html; the picture has the same name with .svg.
        texts : bool, default False
            If true, include the conversation's messages; otherwise only numbers.

        Raises
        ------
        ValueError
            If the path has another ending.
        """
        check_html(path)
        page, drawn = self._receipt(texts=texts)
        write_whole(path, page.encode())
        write_whole(Path(path).with_suffix(".svg"), drawn.encode())

    def _receipt(self, *, texts: bool) -> tuple[str, str]:
        """Return the receipt's page and its picture."""
        with self._lock:
            answers = sendable(receipt(self.settings, self.library))
            requests = self.kind.requests(self.stage) if texts else {}
            budget = self.stage.results.plan.budget
            title = f"{budget.name or 'A budget of your own'}: a window of {budget.window:,} tokens"
            setup = self.texts.get("yaml", "")
            page = receipt_page(title, answers, requests, setup)
            present = "|".join(map(str, answers["now"]))
            return page, receipt_svg(answers["points"][present])

    def _receive(self, view: View, content: Data, buffers: list[Any]) -> None:
        """Handle a message of the page; answer a share request with two files.

        The files are a receipt's page and picture.
        """
        if content.get("kind") != "share":
            super()._receive(view, content, buffers)
            return
        with self._reporting_problems():
            page, drawn = self._receipt(texts=False)
            names = [f"{RECEIPT}.html", f"{RECEIPT}.svg"]
            self.view.send(
                {"kind": "shared", "names": names}, buffers=[page.encode(), drawn.encode()]
            )
            self._send_state(self._page_state())

    def _run_command(self, kind: str, *args: Any, **values: Any) -> None:
        """Run a command; a second pin opens the panel that compares both."""
        super()._run_command(kind, *args, **values)
        if kind == "pin" and len(self.settings.pins) > 1 and SIDES not in self.view.opened:
            self.view.opened = [*self.view.opened, SIDES]
