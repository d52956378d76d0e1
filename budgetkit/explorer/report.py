"""Report: an explorer as one file of HTML, which needs no kernel and no network.

Everything that varies goes into the page as text, or as JSON that a script reads and sets as text. The page forbids
itself, by its policy, any script but its own and any request at all. The same explorer gives the same bytes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final

from budgetkit.figures.svg import svg
from budgetkit.figures.svg.pieces import safe
from budgetkit.message import Message

Data = dict[str, Any]
_FOLDER: Final = Path(__file__).parent / "view"
LARGEST: Final = 1_900_000  # bytes of a page
#: Rows of a table and characters of a message; where a page grows too large, the next pair is tried.
_LEVELS: Final = ((1_000, 700), (300, 250), (100, 80), (20, 0))

_WITHOUT: Final = "Without scripts the figures stand still and the tables stay closed."
_FOOT: Final = "Made by budgetkit. All of it is in this file; it asks the network for nothing."
_SETUP: Final = (
    '<details class="bk-card"><summary>The set-up, to load again</summary><pre tabindex="0">{}</pre></details>'
)


def page(
    title: str, state: Data, charts: Mapping[str, Data], film: Data, messages: Sequence[Message], text: str
) -> str:
    """Return a report: key figures, what is played turn by turn, figures with their tables, and the set-up as text."""
    before, behind = _around(title, state, charts, text)
    for rows, longest in _LEVELS:
        said = [_message(message, longest) for message in messages]
        data = _data(state, charts, rows, film and {**film, "messages": said})
        if len(before.encode()) + len(data.encode()) + len(behind) <= LARGEST:
            return f"{before}{data}{behind}"
    return f"{before}{_data(state, charts, 0, {})}{behind}"


def _data(state: Data, charts: Mapping[str, Data], rows: int, film: Data) -> str:
    """Return what the script reads, as JSON that no text can end."""
    tables = {name: _short(chart["table"], rows) for name, chart in charts.items() if chart.get("table")}
    if strip := state.get("strip"):
        tables["strip"] = _strip(strip)
    data = json.dumps({"film": film, "tables": tables}, ensure_ascii=False, separators=(",", ":"))
    return safe(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _around(title: str, state: Data, charts: Mapping[str, Data], setup: str) -> tuple[str, str]:
    """Return the page before its data and behind them."""
    cards = [_figure(name, chart) for name, chart in charts.items() if chart.get("spec")]
    if strip := state.get("strip"):
        cards.append(_card("strip", str(strip["title"]), str(strip["note"]), ""))
    script, style = parts()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    said = _text(state["status"]["text"])
    more = "".join(f"<p>{_text(each)}</p>" for each in state["status"].get("more", []))
    level = escape(str(state["status"].get("level", "")))
    head = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title>\n<style>\n{style}</style>\n</head>",
    ]
    body = [
        f'<body class="bk-report">\n<main class="bk-view">\n<h1>{_text(title)}</h1>',
        f'<p class="bk-source">{_text(state.get("source") or "")}</p>{_key_figures(state.get("kpis", []))}',
        f'<div class="bk-status bk-is-{level}"><div><p>{said}</p>{more}</div></div>',
        f'<noscript><p class="bk-note">{_WITHOUT}</p></noscript>',
        f'<div id="bk-film"></div>\n<div class="bk-figures">{"".join(cards)}</div>\n<div id="bk-messages"></div>',
        _SETUP.format(_text(setup)) if setup else "",
        f'<footer><p>{_FOOT}</p></footer>\n</main>\n<script type="application/json" id="bk-data">',
    ]
    return "\n".join([*head, *body]), f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


@cache
def parts() -> tuple[str, str]:
    """Return the script and the style sheet of every report."""
    script, style = (
        "\n".join((_FOLDER / f"{name}.{kind}").read_text("utf-8") for name in names)
        for kind, names in (("js", ("dom", "lane", "play", "report")), ("css", ("view", "play", "report")))
    )
    return f"(() => {{\n{script}\n}})();", style


def _text(words: object) -> str:
    return escape(safe(str(words)))


def _key_figures(kpis: Iterable[Data]) -> str:
    items = "".join(
        f'<li class="bk-kpi" title="{_text(kpi.get("tip") or "")}"><b>{_text(kpi["value"])}</b>'
        f"<span>{_text(kpi['label'])}</span><i>{_text(kpi.get('change') or '')}</i></li>"
        for kpi in kpis
    )
    return f'<ul class="bk-kpis" aria-label="Key figures">{items}</ul>'


def _figure(name: str, chart: Data) -> str:
    drawn = svg(chart["spec"], f"{chart['title']} {chart['note']}", heading=False)
    return _card(
        name, chart["title"], chart["note"], f'<div class="bk-figure" data-by="{chart["click"]}">{drawn}</div>'
    )


def _card(name: str, title: str, note: str, drawn: str) -> str:
    scroll = f'<div class="bk-scroll" tabindex="0" role="region" aria-label="Table: {_text(title)}">'
    inside = f'<summary>Table</summary>{scroll}<table class="bk-table"></table></div>'
    table = f'<details data-table="{escape(name)}">{inside}</details>'
    return (
        f'<section class="bk-card"><h2>{_text(title)}</h2><p class="bk-note">{_text(note)}</p>{drawn}{table}</section>'
    )


def _short(table: Data, rows: int) -> Data:
    """Return the first rows of a table, and how many there are."""
    return {**table, "rows": table["rows"][:rows], "all": len(table["rows"])}


def _strip(strip: Data) -> Data:
    names = ("kind", "where", "error", "really", "verdict")
    rows = [[str(row[name]) for name in names] for row in strip["rows"]]
    return {"columns": [{"name": name, "number": False} for name in names], "rows": rows, "all": len(rows)}


def _message(message: Message, longest: int) -> list[str]:
    """Return who speaks, and the beginning of what is said."""
    calls = [f"\u2192 {call.name}({call.arguments})" for call in message.tool_calls]
    said = "\n".join(filter(None, (message.text, *calls)))
    more = f" \u2026 {len(said) - longest:,} more characters" if len(said) > longest else ""
    name = message.raw.get("name")
    return [f"{message.role} ({name})" if isinstance(name, str) and name else message.role, said[:longest] + more]
