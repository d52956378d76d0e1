"""DesignCard: a budget in one view, with a cheap count's error.

A card's receipt is one file with the budget, in which the model, the window and the reserve can be changed without a
kernel. All results in a receipt are computed here, with the functions of the live card, for some models, windows and
reserves for the answer; the page only selects among these results. By default, a receipt contains numbers but no texts
of the conversation.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from decimal import Decimal
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import Any, ClassVar, Final

import pandas as pd

from budgetkit.budget.amounts import Share
from budgetkit.budget.errors import check_html
from budgetkit.files import write_whole
from budgetkit.lab.app.headline import headline, key_figures, misjudgements
from budgetkit.lab.app.sides import MAKERS, Side, pin_column
from budgetkit.lab.app.strip import room_of, strip
from budgetkit.lab.explorers.base import Kind, nothing
from budgetkit.lab.explorers.budget.charts import scene
from budgetkit.lab.explorers.budget.explorer import BudgetExplorer
from budgetkit.lab.explorers.budget.notices import status
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings, longest_window
from budgetkit.lab.explorers.budget.why import remedies
from budgetkit.lab.explorers.report import receipt_page
from budgetkit.lab.explorers.shelves import Library, advice
from budgetkit.lab.explorers.view import View, sendable, view_of
from budgetkit.lab.figures.scales import svg_label, svg_text, tag
from budgetkit.message import Data
from budgetkit.models import resolve

WINDOWS: Final = (8_192, 16_384, 32_768, 65_536, 128_000, 200_000, 400_000, 1_000_000)
RESERVES: Final = ("0.05", "0.1", "0.15", "0.2", "0.3")
RESERVE: Final = "output"  # the reserve that a receipt varies
PRESENT: Final = "as set"
WHOLE_WORDS: Data = {"break_long_words": False, "break_on_hyphens": False}


def receipt(settings: BudgetSettings, library: Library) -> Data:
    """Return the receipt's options, and the results of each combination.

    The options are models, windows and reserves. Windows longer than a model's longest window are left out, except
    the current window of the current model.
    """
    plain = settings.unpinned
    window = plain.budget.window
    names = [*dict.fromkeys([plain.model, *MAKERS])]
    windows = sorted({window, *WINDOWS})
    reserves: dict[str, Share | None] = {PRESENT: None}
    if RESERVE not in plain.locks:
        reserves |= {
            f"{(100 * Decimal(share)).normalize():f} %": Share(share) for share in RESERVES
        }
    points: Data = {}
    for place, name in enumerate(names):
        library.report(f"Working out the receipt: {name}", place / len(names))
        longest = longest_window(resolve(name))
        present = window if name == plain.model else 0
        for size in windows:
            if longest is not None and size > longest and size != present:
                continue
            for reserve, amount in reserves.items():
                changed = replace(plain, model=name, window=size, missing_window=None)
                if amount is not None:
                    changed = replace(changed, lines={**plain.lines, RESERVE: amount})
                points[f"{name}|{size}|{reserve}"] = point(changed, library)
    return {
        "models": names,
        "windows": windows,
        "reserves": [*reserves],
        "now": [plain.model, window, PRESENT],
        "points": points,
    }


def point(settings: BudgetSettings, library: Library) -> Data:
    """Return the results, or the error, for one model, window and reserve."""
    side = Side(settings, library)
    try:
        state = status(side)
    except (ValueError, LookupError) as problem:
        return {"refused": str(problem)}
    kpis = [
        {name: kpi[name] for name in ("key", "label", "value", "change", "level", "color")}
        for kpi in key_figures(side)
    ]
    cost = {"key": "cost", "label": "prompt cost, uncached", "value": side.cost}
    return {
        **headline(side),
        "level": state["level"],
        "status": [state["text"], *state["more"]],
        "kpis": [*kpis, {**cost, "change": "", "level": "", "color": None}],
        "bar": side.bar,
        "strip": strip(side),
    }


INK: Final = "#1b1f24"
FAINT: Final = "#57606a"


def receipt_svg(answer: Data) -> str:
    """Draw the window, the key figures and the errors as SVG."""
    width = 860
    left = 24
    bar_width = 812
    parts = [tag("rect", width=width, height="100%", fill="#ffffff")]

    def write(x: float, y: float, words: str, size: int, **look: Any) -> None:
        parts.append(svg_label(svg_text(words), x, y, font_size=size, **look))

    def block(x: float, y: float, width: float, height: float, fill: str, tip: str = "") -> None:
        inside = [tag("title", svg_text(tip))] if tip else []
        broad = max(0.0, width)
        parts.append(tag("rect", *inside, x=x, y=y, width=broad, height=height, fill=fill))

    write(left, 34, answer["title"], 21, font_weight=650)
    write(left, 54, answer["over"], 12, fill=FAINT)
    top = 80
    for line in wrap(answer["text"], 118, **WHOLE_WORDS) or [""]:
        write(left, top, line, 14)
        top += 19

    # The key figures in one row, the bar of the window below them.
    step = bar_width / len(answer["kpis"])
    for place, kpi in enumerate(answer["kpis"]):
        x = left + place * step
        write(x, top + 24, kpi["value"], 20, font_weight=600)
        write(x, top + 42, kpi["label"], 12, fill=FAINT)
    top += 58
    x = float(left)
    for segment in answer["bar"]:
        size = bar_width * segment["width"] / 100
        block(x, top, size - 1, 34, segment["color"], segment["tip"])
        if size > 7.5 * len(segment["name"]) + 8:
            halo = {"stroke": "#ffffff", "stroke_width": 3, "paint_order": "stroke"}
            write(x + 5, top + 21, segment["name"], 12, **halo)
        x += size
    top += 64

    # The errors by kind: the budget's actual tokens, with the range of 9 of 10 texts.
    strip_data = answer["strip"]
    write(left, top, strip_data["title"], 14, font_weight=600)
    for line in wrap(strip_data["note"], 130, **WHOLE_WORDS):
        top += 17
        write(left, top, line, 12, fill=FAINT)
    for row in strip_data["rows"]:
        top += 22
        write(left, top, f"{row['kind']}, {row['where']}", 12)
        if row["bar"]:
            # The bar, the mark of the budget, and the interval.
            bar, mark, low, high = (
                3 * float(share) for share in (row["bar"], strip_data["line"], *row["interval"])
            )
            beyond = "#d55e00" if row["level"] == "over" else "#e69f00"
            block(210, top - 9, min(bar, mark), 10, strip_data["color"])
            block(210 + mark, top - 9, bar - mark, 10, beyond)
            block(210 + mark, top - 12, 1.5, 16, INK)
            block(210 + low, top - 4.6, high - low, 1.2, INK)
        numbers = f"{row['error']}   {row['actual']}"
        if row["between"]:
            numbers += f" ({row['between']})"
        write(522, top, f"{numbers}   {row['verdict']}", 12)
    height = top + 24
    picture: Data = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}"}
    picture |= {"width": width, "height": height, "fill": INK}
    return f"{tag('svg', *parts, **picture, font_family='system-ui, sans-serif')}\n"


RECEIPT = "budget"  # the name of a receipt's files
SIDES = "sides"  # the panel that compares several models or budgets


CardView = view_of("CardView", ())  # no charts, so that nothing large is loaded


def card_scene(stage: BudgetStage) -> Data:
    """Return the state of the card: headline, bar and table of errors."""
    settings = stage.settings
    shown = scene(stage)
    return {
        **shown,
        # the advice on a better count is given once, above the table
        "source": shown["source"].removesuffix(advice(stage.best)),
        "headline": headline(stage),
        "strip": strip(stage),
        "kpis": key_figures(stage),
        "figures": [],
        "actions": {"pinned": settings.unpinned in settings.pins, "share": True},
    }


class DesignCard(BudgetExplorer):
    """A card for designing a budget, with a cheap count's error.

    A card has the parameters, sliders, handles, values and `load` of :class:`budgetkit.BudgetExplorer`. The table shows
    the error of the "Cheap counter", which is initially "chars/4". This error does not depend on the counter of the
    plan.

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or the initial budget.
    trace : str, path, Trace or sequence of Trace, optional
        The conversations to plan.
    model : str, default `DEFAULT_MODEL`
        The model. Its window is used for a preset, and its encoding is the reference.
    counter : str, optional
        Counter of the plan; default: the model's own counter.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> card = DesignCard("chat", "mixed-language", window=8_192)
    >>> card
    DesignCard(chat, gpt-5.4, window=8,192)
    >>> card.errors.set_index(["kind", "where"])[["error", "actual"]].round(2).loc[("CJK", "conversation")].tolist()
    [-0.61, 4190.0]
    >>> card.move("conversation", 1_000)
    >>> card.errors["actual"].tolist()
    [1169, 1421, 2499, 2558, 1329, 1146]
    """

    kind: ClassVar[Kind] = replace(
        BudgetExplorer.kind,
        name="card",
        commands={**BudgetExplorer.kind.commands, "pin": pin_column},
        view=CardView,
        scene=card_scene,
        status=lambda stage: {**status(stage), "remedies": remedies(stage)},
        charts=lambda *_: {},
        reader=nothing,
    )

    @property
    def errors(self) -> pd.DataFrame:
        """The cheap count's errors for each kind and source of text.

        The frame has these columns:

        - kind, where, texts: kind, source and number of the texts
        - exact, estimate: tokens of all texts by the model's best known counter, and by the cheap counter
        - is_exact: True if the best counter is exact
        - error: error of the cheap count, as a share of the best count
        - low, high: range of this error for 9 of 10 texts
        - budget: current limit of the section that takes the remaining tokens, or else of the shared pool, in tokens
        - actual: actual tokens in the budget when the cheap count says it is full
        - actual_low, actual_high: range of these actual tokens for 9 of 10 texts
        - pool: tokens left in the shared pool after the pool has covered any excess beyond the safety reserve
        - verdict: level of the verdict, such as "over"
        """
        room = room_of(self.stage.plan)
        rows = []
        for row in misjudgements(self.stage):
            actual = row.actual(room.budget)
            rows.append(
                {
                    **asdict(row),
                    "is_exact": self.stage.best.exact,
                    "error": row.error,
                    "budget": room.budget,
                    "actual": actual,
                    "actual_low": row.least(room.budget),
                    "actual_high": row.most(room.budget),
                    "pool": room.pool_left(actual),
                    "verdict": room.verdict(actual).level,
                }
            )
        return pd.DataFrame(rows)

    def share(self, path: str | PathLike[str], *, texts: bool = False) -> None:
        """Save a receipt as an HTML file and a picture.

        In the HTML file, the model, the window and the reserve can be changed without a kernel, since the file contains
        the results.

        Parameters
        ----------
        path : str or path
            Path that ends in .html; the picture has the same name with .svg.
        texts : bool, default False
            If True, include the conversation's messages. Otherwise, the file contains numbers but no texts.

        Raises
        ------
        ValueError
            If the path does not end in .html.
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
            budget = self.stage.plan.budget
            title = f"{budget.name or 'Custom budget'}: a window of {budget.window:,} tokens"
            setup = self.texts.get("yaml", "")
            page = receipt_page(title, answers, requests, setup)
            present = "|".join(map(str, answers["now"]))
            return page, receipt_svg(answers["points"][present])

    def _receive(self, view: View, content: Data, buffers: list[Any]) -> None:
        """Handle a message from the page.

        A request to share is answered with two files: the page and the picture of a receipt.
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
        """Run a command, and open the comparison after a second pin."""
        super()._run_command(kind, *args, **values)
        if kind == "pin" and len(self.settings.pins) > 1 and SIDES not in self.view.opened:
            self.view.opened = [*self.view.opened, SIDES]
