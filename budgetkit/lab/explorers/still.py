"""The picture for those who have no kernel: the explorer's last state as plain HTML, without a script.

It is published beside the living explorer, which hides it, and published anew when something has changed. A notebook
that was saved, and a page that only shows what is stored, have it to show.
"""

from __future__ import annotations

import threading
from typing import Any, Final
from uuid import uuid4

from budgetkit.budget.html import NOTHING, Markup, element, joined, shown

Data = dict[str, Any]
SETTLED: Final = 0.7  # seconds without a change until the picture is published anew
_NAMED: Final = 0.08  # of the bar
_SMALL: Final = "font-size:12px;color:#767676"


class Still:
    """The picture of one explorer, once that has been shown."""

    def __init__(self) -> None:
        self._name = ""
        self._last = ""
        self._timer: threading.Timer | None = None

    def show(self, drawn: str) -> None:
        """Publish the picture for the first time, or anew in another cell."""
        from IPython.display import display

        self._name = f"budgetkit-{uuid4().hex}"
        self._last = drawn
        display({"text/html": drawn}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]

    def change(self, state: Data, title: str) -> None:
        """Publish the picture anew once nothing has changed for a moment."""
        if not self._name:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(SETTLED, self._publish, [state, title])
        self._timer.daemon = True
        self._timer.start()

    def _publish(self, state: Data, title: str) -> None:
        from IPython.display import update_display

        drawn = picture(state, title)
        if drawn != self._last:
            self._last = drawn
            update_display({"text/html": drawn}, raw=True, display_id=self._name)  # type: ignore[no-untyped-call]


def picture(state: Data, title: str) -> str:
    """Return what a view shows at once as HTML: its key figures, its bar, its sentence, and where it comes from.

    Examples
    --------
    >>> state = {"status": {"text": "It < fits."}, "kpis": [{"label": "usable", "value": "6,554"}], "source": ""}
    >>> drawn = picture(state, "chat")
    >>> "It &lt; fits." in drawn, "6,554" in drawn, "<script" in drawn
    (True, True, False)
    """
    headline = state.get("headline", {}).get("text", "")
    return shown(
        element("p", element("b", title)),
        _kpis(state.get("kpis", [])),
        element("p", f"{headline} {state['status']['text']}"),
        _bar(state.get("bar")),
        strip_table(state.get("strip")),
        element("p", state.get("source") or "", style=_SMALL),
        element("p", "This is how it stood; run the cell to move it.", style=_SMALL),
        class_="bk-still",
    )


def _kpis(kpis: list[Data]) -> Markup:
    cells = [
        element(
            "td",
            element("b", kpi["value"]),
            element("br"),
            str(kpi["label"]),
            style="text-align:left",
        )
        for kpi in kpis
    ]
    if not cells:
        return NOTHING
    return element("table", element("tr", *cells))


def _bar(bar: Data | None) -> Markup:
    """Return the window as a row of coloured cells, each as wide as its share."""
    if bar is None:
        segments = []
    else:
        segments = [segment for segment in bar["segments"] if segment["tokens"] > 0]
    whole = sum(segment["tokens"] for segment in segments)
    cells = [
        element(
            "td",
            _named(segment, whole),
            width=f"{max(1, round(100 * segment['tokens'] / whole))}%",
            bgcolor=segment["color"],
            style=f"background-color:{segment['color']};color:{_ink(segment)};text-align:left",
        )
        for segment in segments
    ]
    if not cells:
        return NOTHING
    return element("table", element("tr", *cells), width="100%", style="width:100%")


def strip_table(strip: Data | None) -> Markup:
    """Return the design card's table of errors for a page without scripts."""
    if strip is None:
        return NOTHING
    names = ("kind", "where", "error", "really", "verdict")
    rows = [element("tr", *(element("td", row[name]) for name in names)) for row in strip["rows"]]
    heading = element("p", element("b", strip["title"]), f" {strip['note']}")
    return joined([heading, element("table", *rows)])


def _named(segment: Data, whole: int) -> Markup:
    """Return the name and size written in a segment of the bar; nothing where it is too narrow."""
    if segment["tokens"] < _NAMED * whole:
        return NOTHING
    return joined([str(segment["name"]), element("br"), str(segment["text"])])


def _ink(segment: Data) -> str:
    """Return the colour of its letters; a theme's own is not known here."""
    return "#111111" if str(segment["ink"]).startswith("var") else str(segment["ink"])
