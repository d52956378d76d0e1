"""``budgetkit sessions``: the list of recorded sessions, and analyses of a session.

Listing imports neither pandas nor an explorer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

from budgetkit.budget import many
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.lab.sessions.listing import BILLED, bills_of, find, rows_of

Row = dict[str, Any]
#: The session suggested if there are none.
SHIPPED = "made-up-session"
_SUMS = ["requests", "cost", "from cache", "misses", "misses cost", "compactions"]


def sessions_command(
    which: str | None,
    folder: str | None,
    newest: int,
    price: str | None,
    window: int | None,
    with_tools: bool,
    with_text: bool,
    report: str | None,
    in_lab: bool,
    setting: str | None,
    by: str | None,
    as_json: bool,
) -> int | None:
    """List recorded sessions of coding agents, or analyse one of them.

    A session is given by its number in the list, its file or its name. Sessions of Claude Code, Codex, OpenCode, Cline,
    Copilot, Cursor and others are read from their usual places; no file is changed. The sessions' bills, which are
    numbers without texts, are cached in your cache folder; set BUDGETKIT_CACHE to an empty text to disable the cache.
    With --what-if and no session, the setting is chosen on the older half of the newest sessions and tested on the
    newer half; --folder selects the sessions of one project.
    """
    if which is None and setting is None:
        example = f"budgetkit sessions {list_sessions(folder, newest, as_json, by)}"
        if not as_json:
            show_lines(
                f"What filled a session, and what its misses cost: {example}",
                f"The best size for compaction: {example} --what-if threshold",
            )
        return None
    # Imported here, because the list needs neither pandas nor the explorers.
    answers = import_module("budgetkit.extras.shell.sessions_answers")
    if which is None:
        _, files = find(folder)
        sessions = answers.readable([file.path for file in files[:newest]])
        answers.settings(sessions, setting, window, as_json)
        return None
    path = _path(which, folder)
    if in_lab:
        return int(import_module("budgetkit.extras.shell.opening").explore(path))
    session = answers.Session(path, prices=price)
    if setting is not None:
        answers.settings(session, setting, window, as_json)
    elif with_tools:
        answers.show_holding(session, with_text, as_json)
    elif report is not None:
        page = import_module("budgetkit.extras.shell.sessions_page")
        page.save_page(session, window, report, with_text)
    else:
        answers.answer_questions(session, window, with_text, as_json)
    return None


def list_sessions(
    folder: str | None, newest: int, as_json: bool = False, by: str | None = None
) -> str:
    """Print the newest sessions with their bills, or print totals.

    `by` selects totals by day, project, model or agent. Return the number or name of a session to analyse next.
    """
    folders, files = find(folder)
    where = ", ".join(map(str, folders))
    if not files:
        if as_json:
            show_json([])
        else:
            looked = where or "the usual places of coding agents"
            show_lines(f"No sessions found in {looked}. Name another folder with --folder.")
        return SHIPPED
    progress = _show_unread if sys.stderr.isatty() else None
    rows = rows_of(files, bills_of(files, progress, in_processes=True))
    for row in rows:
        changed = str(row["changed"])
        row |= {"agent": row["program"], "day": changed[:10], "incomplete": bool(row["missing"])}
        # Only --json shows the seconds and the date of a model's snapshot.
        row["changed"] = changed if as_json else changed[:16]
        if not as_json:
            row["model"] = _without_date(row["model"])
    columns = ["number", "program", "changed", "project", "model"]
    shown = rows[:newest]
    if by is not None:
        # A session may have several days and models.
        rows = [row | part for row in rows for part in _parts(row)]
        rows.sort(key=lambda row: row["day"], reverse=True)
        shown = _sums(rows, by)
        columns = [by, "sessions"]
    if as_json:
        names = [*columns, *BILLED[:-1]] if by else [*columns[:-1], "megabytes", "path", *BILLED]
        show_json([{name: row[name] for name in names} for row in shown])
        return "1"
    title = f"Your sessions by {by}" if by else "The newest of your sessions"
    (total,) = _sums([row | {"all": "total"} for row in rows], "all")
    cells = [[*map(row.get, columns), *_sums_shown(row)] for row in shown]
    first = ["total", total["sessions"], *[""] * (len(columns) - 2)]
    show_table(f"{title}, in {where}", [*columns, *_SUMS], [*cells, [*first, *_sums_shown(total)]])
    if total["incomplete"]:
        show_lines(
            f"\u2265 marks sums that may be too low: {many(total['incomplete'], 'session')} could not be read or "
            "priced in full. Name a session to see the reason."
        )
    if total["copied"]:
        number = many(total["copied"], "request")
        show_lines(
            f"Counted once: {number} that a resumed or forked session repeats from an earlier one."
        )
    if by is None and len(rows) > newest:
        show_lines(
            f"Older sessions not listed: {len(rows) - newest:,}. Use -n {len(rows)} to list them."
        )
    return "1"


def _show_unread(number: int) -> None:
    """Show how many sessions are still to be read, on one line.

    The line disappears at the end.
    """
    words = f"Sessions to read: {number:,}" if number else ""
    click.echo(f"\r{words:<30}\r", nl=False, err=True)


def _parts(row: Row) -> Iterator[Row]:
    """Yield a session's sums by day and model.

    Models are named without the date of their snapshot.
    """
    for part in row["parts"]:
        model = _without_date(part.get("model") or row["model"])
        yield part | {"day": part.get("day") or row["day"], "model": model}


def _without_date(model: str | None) -> str:
    return re.sub(r"-\d{8}$", "", model or "")


def _sums(rows: list[Row], by: str) -> list[Row]:
    """Add up the sessions that share a value in a column.

    A sum is None if none of its values is known. "sessions" and "incomplete" are numbers of sessions.
    """
    groups: dict[str, Row] = {}
    for row in rows:
        name = row[by] or "unknown"
        empty = dict.fromkeys(BILLED) | {by: name, "sessions": set(), "incomplete": set()}
        sums = groups.setdefault(name, empty)
        sums["sessions"].add(row["number"])
        if row["cost"] is None or row["incomplete"]:
            sums["incomplete"].add(row["number"])
        for column in BILLED[:-1]:
            if row[column] is not None:
                sums[column] = (sums[column] or 0) + row[column]
    for sums in groups.values():
        sums |= {name: len(sums[name]) for name in ("sessions", "incomplete")}
    return [*groups.values()]


def _sums_shown(row: Row) -> list[Any]:
    share = f"{(row['read'] or 0) / row['prompt']:.0%}" if row["prompt"] else ""
    at_least = "\u2265 " if row["incomplete"] else ""
    cost, missed_cost = (dollars_text(row[name], at_least) for name in ("cost", "missed_cost"))
    return [row["requests"], cost, share, row["misses"], missed_cost, row["compactions"]]


def _path(which: str, folder: str | None) -> str:
    """Return the file of a session in the list, given its number.

    A name or path is returned unchanged.
    """
    if not which.isdecimal():
        return which
    _, files = find(folder)
    if 1 <= int(which) <= len(files):
        return str(files[int(which) - 1].path)
    advice = f"Choose a number from 1 to {len(files):,}. To see the list, run: budgetkit sessions"
    if not files:
        advice = f"No sessions were found. To see an example, run: budgetkit sessions {SHIPPED}"
    raise ValueError(f"Unknown session {which}. {advice}")


def dollars_text(cost: Any, at_least: str = "") -> str:
    """Format an amount in dollars after a sign, or return "" if it is unknown.

    >>> dollars_text(1234.5), dollars_text(0.5, "\u2265 "), dollars_text(None)
    ('$1,234.50', '≥ $0.50', '')
    """
    return "" if cost is None or cost != cost else f"{at_least}${cost:,.2f}"
