"""The picture for those who have no kernel: the explorer's last state as plain HTML, without a script.

It is published beside the living explorer, which hides it, and published anew when something has changed. A notebook
that was saved, and a page that only shows what is stored, have it to show.
"""

from __future__ import annotations

import threading
from html import escape
from typing import Any, Final
from uuid import uuid4

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

        self._name, self._last = f"budgetkit-{uuid4().hex}", drawn
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
    parts = [
        f"<p><b>{escape(title)}</b></p>",
        _kpis(state.get("kpis", [])),
        f"<p>{escape(str(state.get('headline', {}).get('text', '')))} {escape(str(state['status']['text']))}</p>",
        _bar(state.get("bar")),
        _strip(state.get("strip")),
        f'<p style="{_SMALL}">{escape(str(state.get("source") or ""))}</p>',
        f'<p style="{_SMALL}">This is how it stood; run the cell to move it.</p>',
    ]
    return f'<div class="bk-still">{"".join(parts)}</div>'


def _kpis(kpis: list[Data]) -> str:
    cells = "".join(
        f'<td style="text-align:left"><b>{escape(str(kpi["value"]))}</b><br>{escape(str(kpi["label"]))}</td>'
        for kpi in kpis
    )
    return f"<table><tr>{cells}</tr></table>" if cells else ""


def _bar(bar: Data | None) -> str:
    """Return the window as a row of coloured cells, each as wide as its share."""
    shown = [] if bar is None else [segment for segment in bar["segments"] if segment["tokens"] > 0]
    whole = sum(segment["tokens"] for segment in shown)
    cells = "".join(
        f'<td width="{max(1, round(100 * segment["tokens"] / whole))}%" bgcolor="{escape(segment["color"])}" '
        f'style="background-color:{escape(segment["color"])};color:{_ink(segment)};text-align:left">'
        f"{_named(segment, whole)}</td>"
        for segment in shown
    )
    return f'<table width="100%" style="width:100%"><tr>{cells}</tr></table>' if cells else ""


def _strip(strip: Data | None) -> str:
    """Return the design card's table of errors."""
    if strip is None:
        return ""
    names = ("kind", "where", "error", "really", "verdict")
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(str(row[name]))}</td>' for name in names)}</tr>" for row in strip["rows"]
    )
    return f"<p><b>{escape(str(strip['title']))}</b> {escape(str(strip['note']))}</p><table>{rows}</table>"


def _named(segment: Data, whole: int) -> str:
    """Return what stands in a segment, where that has room for it."""
    if segment["tokens"] < _NAMED * whole:
        return ""
    return f"{escape(str(segment['name']))}<br>{escape(str(segment['text']))}"


def _ink(segment: Data) -> str:
    """Return the colour of its letters; a theme's own is not known here."""
    return "#111111" if str(segment["ink"]).startswith("var") else escape(str(segment["ink"]))
