"""The page of ``budgetkit sessions NUMBER --report``: answers, bill and other rules' costs.

What stands for the session comes from its record alone: the prompts, the reads, the cost, and what its own compactions
took out. What another rule would have cost stands in one figure and its table, and says so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget import many, one_line
from budgetkit.counters import counter
from budgetkit.extras.redaction import redact
from budgetkit.extras.shell.sessions import dollars, filled_by, largest_of
from budgetkit.extras.shell.terminal import show_lines
from budgetkit.files import write_whole
from budgetkit.lab import figures
from budgetkit.lab.explorers.folds import listed
from budgetkit.lab.explorers.report import Lead, page, replay_requests
from budgetkit.lab.explorers.view import sendable
from budgetkit.lab.sessions import Session
from budgetkit.lab.sessions.comparing import USUAL, Comparison, as_held, comparison
from budgetkit.lab.sessions.sentences import (
    MARKS,
    finding,
    in_short,
    notices,
    replay_check,
    with_held,
)

Data = dict[str, Any]


def _lead(session: Session, compared: Comparison, title: str, filled: pd.DataFrame) -> Lead:
    """Return the three answers and their figures, in numbers only."""
    largest = [f"{row['what']} {row['share']:.0%}" for row in largest_of(filled).to_dict("records")]
    prompt = int(filled["tokens"].sum())
    recorded = float(session.totals()["cost"])
    sentences = [
        *in_short(session, compared.table),
        f"What filled the largest prompt, of {prompt:,} tokens? {', '.join(largest)}.",
        session.gap_sentence,
    ]
    check = replay_check(compared.table, recorded)
    what_if = "What if: the same messages under other rules; only the row as recorded was billed."
    rules = {
        "title": figures.rules_compared.title,
        "note": " ".join(
            [what_if, finding(compared.table, recorded), *check, *notices(compared.table)]
        ),
        "spec": figures.rules_compared.spec(compared),
        "table": listed(with_held(compared.table).drop(columns=["system", "relative"])),
        "click": None,
    }
    reads = {
        "title": figures.cache_reads.title,
        "note": f"{session.sentence} {MARKS}",
        "spec": figures.cache_reads.spec(session),
        "table": listed(session.requests().drop(columns=["message_index", "time"])),
        "click": None,
    }
    return Lead(
        title=title,
        sentences=[sentence for sentence in sentences if sentence],
        charts=sendable({"reads": reads, "rules": rules}),
    )


def _key_figures(session: Session) -> list[Data]:
    """Return the bill as key figures."""
    totals = session.totals()
    share = totals["read"] / max(1, totals["prompt"])
    plurals = {
        "request": totals["requests"],
        "miss": totals["misses"],
        "compaction": totals["compactions"],
    }
    words = {
        name: many(number, name, f"{name}es" if name == "miss" else "").partition(" ")
        for name, number in plurals.items()
    }
    numbers = [
        words["request"],
        (dollars(totals["cost"]) or "no price known", "", "billed"),
        (f"{share:.0%}", "", "of the input read from the cache"),
        (*words["miss"][:2], f"{words['miss'][2]} of the cache"),
        words["compaction"],
    ]
    return [{"value": value, "label": label} for value, _, label in numbers]


def save(session: Session, window: int | None, output: str, with_text: bool) -> None:
    """Write the page of a session, which nobody but its owner can read; without texts unless they are wanted."""
    if Path(output).suffix.lower() not in (".html", ".htm"):
        named = one_line(output)
        raise ValueError(
            f"a report was to be saved as {named}; it is HTML; end the name with .html"
        )
    trace = session.trace if with_text else redact(session.trace, counter("chars/4"))
    compared = comparison(session, USUAL, window=window, prices=session.prices)
    cost = dollars(session.totals()["cost"])
    named = session.model or "a model that is not named"
    title = f"A recorded session: {many(len(session.usage), 'request')} to {named}"
    if with_text:
        title = f"{one_line(session.trace.title)}. {title}"
    title = f"{title}{', ' if cost else ''}{cost}"
    lead = _lead(session, compared, title, filled_by(session, with_text))
    state = {"kpis": _key_figures(session), "status": {"text": "", "level": ""}}
    record = compared.setup.record
    if record is None:
        requests: Data = {}
    else:
        outcome = as_held(compared.setup)
        messages = (*record.trace.messages[:1], *trace.messages)
        requests = replay_requests(outcome, len(outcome.over)) | {"messages": messages}
    html = page(lead.title, state, {}, requests, "", lead)
    before = os.umask(0o077)
    try:
        write_whole(output, html.encode())
    finally:
        os.umask(before)
    path = Path(output).expanduser()
    path.chmod(0o600)
    texts = "with its texts" if with_text else "with filler for its words; --text keeps them"
    show_lines([f"{one_line(output)}: {path.stat().st_size / 1_000:,.0f} kB, {texts}"])
