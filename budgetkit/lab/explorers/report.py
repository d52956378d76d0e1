"""Reports: an explorer as one self-contained HTML file.

Variable content is inserted as text, or as JSON that a script sets as text. The page's content security policy forbids
all requests and all scripts but its own. Saving an unchanged explorer twice gives identical files.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any
from uuid import uuid4

from budgetkit.budget.html import DOCTYPE, NOTHING, Markup, element, joined, notebook_div, safe
from budgetkit.lab.explorers.reading import words
from budgetkit.lab.explorers.view import page_code
from budgetkit.lab.figures.drawing import svg
from budgetkit.lab.replay.outcome import Replay
from budgetkit.message import Data, Message

SETTLED = 0.7  # seconds without a change until the picture is published again
_NAMED = 0.08  # smallest share of the bar that shows a name
_LEFT = "text-align:left"
#: The end of a strip's note, about lines that only a page with scripts draws.
THIN_LINES = " Each thin line spans 9 of 10 texts."
_SMALL = "font-size:12px;color:#767676"
#: Nothing but the explorer is shown under the picture; without a kernel, JupyterLab would show "model not found" there.
_ALONE = (
    ".jp-OutputArea-child:has(.bk-still)+.jp-OutputArea-child:not(:has(.bk-explorer)){display:none}"
)
_SHOWN: set[str] = set()  # cells that have shown an explorer in this kernel


class Still:
    """The static picture of a shown explorer."""

    def __init__(self) -> None:
        self._name = ""
        self._last = ""
        self._timer: threading.Timer | None = None

    def show(self, drawn: str) -> None:
        """Publish the picture in the current cell."""
        from IPython.display import display

        self._name = f"budgetkit-{uuid4().hex}"
        self._last = drawn
        display({"text/html": drawn}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]

    def change(self, *drawn: Any) -> None:
        """Publish the picture again after a pause in the changes."""
        if not self._name:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(SETTLED, self._publish, drawn)
        self._timer.daemon = True
        self._timer.start()

    def _publish(self, state: Data, title: str, kept: str) -> None:
        from IPython.display import update_display

        drawn = report_html(state, title, kept)
        if drawn != self._last:
            self._last = drawn
            update_display({"text/html": drawn}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]


def saved_settings() -> str:
    """Return the running cell's settings from the saved notebook.

    The result is "" if no settings are saved, or if the cell has already shown an explorer.
    """
    from IPython import get_ipython

    parent: Data = getattr(get_ipython(), "get_parent", dict)()
    running = parent.get("metadata", {}).get("cellId")
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    if running is None or running in _SHOWN or not path.is_file():
        return ""
    _SHOWN.add(running)
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell.get("id") == running:
            texts = [output.get("data", {}).get("text/html", "") for output in cell["outputs"]]
            kept = re.search(r'data-kept="([^"]*)"', "".join("".join(text) for text in texts))
            return unescape(kept[1]) if kept else ""
    return ""


def report_html(state: Data, title: str, kept: str | None = None) -> str:
    """Return a view as static HTML.

    `kept` holds the settings to resume.

    Examples
    --------
    >>> state = {"status": {"text": "It < fits."}, "kpis": [{"label": "usable", "value": "6,554"}], "source": ""}
    >>> drawn = report_html(state, "chat")
    >>> "It &lt; fits." in drawn, "6,554" in drawn, "<script" in drawn
    (True, True, False)
    """
    headline = state.get("headline", {"title": "", "text": ""})
    kpis = NOTHING
    if state.get("kpis"):
        cells = [
            element("td", element("b", kpi["value"]), element("br"), str(kpi["label"]), style=_LEFT)
            for kpi in state["kpis"]
        ]
        kpis = element("table", element("tr", *cells))
    return notebook_div(
        element("p", element("b", title)),
        kpis,
        element(
            "p", element("b", headline["title"]), f" {headline['text']} {state['status']['text']}"
        ),
        _bar(state.get("bar")),
        strip_table(state.get("strip")),
        element("p", state.get("source") or "", style=_SMALL),
        element("p", "This is the last saved state; run the cell to continue.", style=_SMALL),
        element("style", Markup(_ALONE)),
        class_="bk-still",
        data_kept=kept,
    )


def _bar(bar: Data | None) -> Markup:
    """Return the window as a row of coloured table cells."""
    segments = [segment for segment in bar["segments"] if segment["tokens"] > 0] if bar else []
    whole = sum(segment["tokens"] for segment in segments)
    cells = []
    for segment in segments:
        color = segment["color"]
        share = segment["tokens"] / whole
        # The theme's text colour is unknown here, and a narrow segment shows no name.
        ink = "#111111" if str(segment["ink"]).startswith("var") else segment["ink"]
        name = NOTHING
        if share >= _NAMED:
            name = joined([str(segment["name"]), element("br"), str(segment["text"])])
        style = f"background-color:{color};color:{ink};text-align:left"
        width = f"{max(1, round(100 * share))}%"
        cells.append(element("td", name, width=width, bgcolor=color, style=style))
    if not cells:
        return NOTHING
    return element("table", element("tr", *cells), width="100%", style="width:100%")


def strip_table(strip: Data | None) -> Markup:
    """Return the design card's table of errors for a page without scripts."""
    if strip is None:
        return NOTHING
    heads = {
        "kind": "Kind",
        "where": "Texts",
        "error": "Error",
        "actual": "Actual tokens",
        "verdict": "Result",
    }
    rows = [
        element("tr", *(element("td", row[name], style=_LEFT) for name in heads))
        for row in (heads, *strip["rows"])
    ]
    note = strip["note"].removesuffix(THIN_LINES)
    heading = element("p", element("b", strip["title"]), " ", note)
    return joined([heading, element("table", *rows)])


LARGEST = 1_900_000  # bytes of a page
#: Maximum rows of a table and characters of a message; if a page is too large, the next pair is tried.
_LEVELS = ((1_000, 700), (300, 250), (100, 80), (20, 0))

_WITHOUT = "Without JavaScript, figures are static and tables stay closed."
_FOOT = "Made by budgetkit. This file is self-contained and makes no network requests."
_HERE = "<!-- data -->"  # placeholder for the data; all texts are escaped


@dataclass(frozen=True, kw_only=True)
class Lead:
    """The start of a report: its title, sentences and figures by name."""

    title: str
    sentences: Sequence[str]
    charts: Mapping[str, Data]


def page(
    title: str,
    state: Data,
    charts: Mapping[str, Data],
    requests: Data,
    text: str,
    lead: Lead | None = None,
) -> str:
    """Return an explorer's report as one HTML page."""
    begin: list[Markup] = []
    shown = charts
    if lead is not None:
        title = lead.title
        sentences = [element("p", sentence) for sentence in lead.sentences]
        begin = [element("div", *sentences, class_="bk-lead"), _figures(lead.charts)]
        shown = {**lead.charts, **charts}
    around = _around(title, state, charts, text, begin)

    def data(rows: int) -> Data:
        """Return the page's data, with the first rows of each table."""
        tables = {name: chart["table"] for name, chart in shown.items() if chart.get("table")}
        for name, table in tables.items():
            tables[name] = {**table, "rows": table["rows"][:rows], "all": len(table["rows"])}
        return {"tables": tables, "bar": state.get("bar"), "strip": state.get("strip")}

    return _fitted(around, data, requests)


def receipt_page(title: str, receipt: Data, requests: Data, text: str) -> str:
    """Return a receipt's HTML page, with stored answers to choose from.

    The page contains messages only if `requests` has any.
    """
    state: Data = {"status": {"text": "", "level": "none"}}
    around = _around(title, state, {}, text, [element("section", id="bk-receipt")])
    return _fitted(around, lambda _: {"tables": {}, "receipt": receipt}, requests)


def _fitted(around: tuple[str, str], data: Callable[[int], Data], requests: Data) -> str:
    """Return a page with as many rows and message characters as fit."""
    before, behind = around
    for rows, longest in (*_LEVELS, (0, -1)):
        shown: Data = {}
        if requests and longest >= 0:  # shortened messages; none in the last attempt
            messages = [_message(message, longest) for message in requests["messages"]]
            shown = {**requests, "messages": messages}
        page = f"{before}{_json({'requests': shown, **data(rows)})}{behind}"
        if len(page.encode()) <= LARGEST:
            break
    return page


def _json(content: Data) -> str:
    """Return plain data as JSON that is safe inside a script element."""
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return (
        safe(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _around(
    title: str,
    state: Data,
    charts: Mapping[str, Data],
    setup: str,
    begin: Iterable[Markup],
) -> tuple[str, str]:
    """Return the parts of the page before and after its data."""
    # The sentences on the opened file; none for a shipped one.
    facts = state.get("entry", {}).get("facts")
    about = [f"{sentence}." for sentence in facts["sentences"]] if facts else []
    # The set-up as a collapsible text.
    folded = NOTHING
    if setup:
        summary = element("summary", "Settings to reload")
        pre = element("pre", setup, tabindex="0")
        folded = element("details", summary, pre, class_="bk-card")
    script, style = parts()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    # The sentences under the key figures.
    status = state["status"]
    told = NOTHING
    if status["text"]:
        sentences = [element("p", text) for text in (status["text"], *status.get("more", []))]
        level = f"bk-status bk-is-{status.get('level', '')}"
        told = element("div", element("div", *sentences), class_=level)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(f"\n{style}")),
    )
    main = element(
        "main",
        element("h1", title),
        element("p", state.get("source") or "", class_="bk-source"),
        *(element("p", sentence, class_="bk-note") for sentence in about),
        _key_figures(state.get("kpis", [])),
        *begin,
        told,
        element(
            "noscript",
            element("p", _WITHOUT, class_="bk-note"),
            strip_table(state.get("strip")),
        ),
        element("div", id="bk-window"),
        element("div", id="bk-requests"),
        _figures({name: chart for name, chart in charts.items() if chart.get("spec")}),
        element("div", id="bk-messages"),
        folded,
        element("footer", element("p", _FOOT)),
        class_="bk-view",
    )
    data = element("script", Markup(_HERE), type="application/json", id="bk-data")
    body = element("body", main, data, element("script", Markup(script)), class_="bk-report")
    page = f"{DOCTYPE}\n{element('html', head, body, lang='en')}\n"
    before, _, behind = page.partition(_HERE)
    return before, behind


@cache
def parts() -> tuple[str, str]:
    """Return the script and the style sheet of every report."""
    script = page_code("dom.js", "controls.js", "strip.js", "report.js")
    style = page_code("view.css", "controls.css", "report.css")
    return f"(() => {{\n{script}\n}})();", style


def _key_figures(kpis: Iterable[Data]) -> Markup:
    items = [
        element(
            "li",
            element("b", kpi["value"]),
            element("span", kpi["label"]),
            element("i", kpi.get("change") or ""),
            class_="bk-kpi",
            title=kpi.get("tip") or "",
        )
        for kpi in kpis
    ]
    return element("ul", *items, class_="bk-kpis", aria_label="Key figures")


def _figures(charts: Mapping[str, Data]) -> Markup:
    return element("div", *itertools.starmap(_figure, charts.items()), class_="bk-figures")


def _figure(name: str, chart: Data) -> Markup:
    drawn = Markup(svg(chart["spec"], f"{chart['title']} {chart['note']}", heading=False))
    figure = element("div", drawn, class_="bk-figure", data_by=chart["click"])
    scroll = element(
        "div",
        element("table", class_="bk-table"),
        class_="bk-scroll",
        tabindex="0",
        role="region",
        aria_label=f"Table: {chart['title']}",
    )
    table = element("details", element("summary", "Table"), scroll, data_table=name)
    heading = element("h2", chart["title"])
    note = element("p", chart["note"], class_="bk-note")
    return element("section", heading, note, figure, table, class_="bk-card")


def replay_requests(outcome: Replay, request: int) -> Data:
    """Return a replay's requests, and the messages that each contains."""
    placed = outcome.placed
    return {
        "by": "turn" if len(placed.requests) == len(outcome.trace.turns) else "request",
        "turns": [each.number for each in placed.requests],
        "request": request,
        "note": "",
        "messages": outcome.trace.messages,
        "first": (placed.entry + 1).tolist(),
        "gone": [at + 1 for at in outcome.kept.gone],  # 0 where it stays
        "tokens": placed.tokens.tolist(),
    }


def _message(message: Message, longest: int) -> list[str]:
    """Return a message's role and the start of its text."""
    text = words(message)
    if len(text) > longest:
        text = f"{text[:longest]} \u2026 {len(text) - longest:,} more characters"
    name = message.raw.get("name")
    return [f"{message.role} ({name})" if isinstance(name, str) and name else message.role, text]
