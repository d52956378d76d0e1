"""The page that ``budgetkit sessions NUMBER --report`` writes.

All figures of the session come from its record alone: prompts, cache reads, cost, and the tokens removed by its
compactions. The costs of other rules are in one figure and its table, whose label says that only the recorded rule was
billed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget import many, one_line
from budgetkit.budget.errors import check_html
from budgetkit.counters import counter
from budgetkit.extras.redaction import redact
from budgetkit.extras.shell.sessions import dollars_text
from budgetkit.extras.shell.sessions_answers import filled_by, largest_of
from budgetkit.extras.shell.terminal import show_lines
from budgetkit.files import write_whole
from budgetkit.lab import figures
from budgetkit.lab.explorers.folds import figure, table_text
from budgetkit.lab.explorers.report import Lead, page, replay_requests
from budgetkit.lab.explorers.view import sendable
from budgetkit.lab.sessions.comparing import Comparison, comparison
from budgetkit.lab.sessions.sentences import MARKS, in_short, notices, replay_check
from budgetkit.lab.sessions.session import Session
from budgetkit.lab.sessions.setup import replay_setup

Data = dict[str, Any]


def _lead(session: Session, compared: Comparison, title: str, filled: pd.DataFrame) -> Lead:
    """Return the answers at the top of the page, with their figures."""
    largest = [f"{row['what']} {row['share']:.0%}" for row in largest_of(filled).to_dict("records")]
    prompt = int(filled["tokens"].sum())
    sentences = [
        *in_short(session, compared.table),
        f"What filled the largest prompt, of {prompt:,} tokens? {', '.join(largest)}.",
        session.gap_sentence,
        *session.missing,
    ]
    what_if = "What if: the same messages under other rules; only the recorded rule was billed."
    rules = figure(
        figures.rules_compared.title,
        " ".join([what_if, *replay_check(compared.table), *notices(compared.table)]),
        figures.rules_compared.spec(compared),
        table_text(compared.table.drop(columns=["system", "relative"])),
    )
    reads = figure(
        figures.cache_reads.title,
        f"{session.sentence} {MARKS}",
        figures.cache_reads.spec(session),
        table_text(session.requests().drop(columns=["message_index", "time"])),
    )
    return Lead(
        title=title,
        sentences=[sentence for sentence in sentences if sentence],
        charts=sendable({"reads": reads, "rules": rules}),
    )


def save_page(session: Session, window: int | None, output: str, with_text: bool) -> None:
    """Write a session's page, which only the file's owner can read."""
    check_html(output)
    trace = session.trace if with_text else redact(session.trace, counter("chars/4"))
    compared = comparison(replay_setup(session, window))
    totals = session.totals()
    cost = dollars_text(totals["cost"], session.at_least)
    named = session.model or "an unnamed model"
    title = f"A recorded session: {many(len(session.cost), 'request')} to {named}"
    if with_text:
        title = f"{one_line(session.trace.title)}. {title}"
    if cost:
        title = f"{title}, {cost}"
    lead = _lead(session, compared, title, filled_by(session, with_text))
    # The bill as key figures.
    share = totals["read"] / max(1, totals["prompt"])
    misses, word = many(totals["misses"], "miss", "misses").split()
    numbers = [
        many(totals["requests"], "request").split(),
        (cost or "no price known", "billed"),
        (f"{share:.0%}", "of the input read from the cache"),
        (misses, f"{word} of the cache"),
        many(totals["compactions"], "compaction").split(),
    ]
    kpis = [{"value": value, "label": label} for value, label in numbers]
    state = {"kpis": kpis, "status": {"text": "", "level": ""}}
    record = compared.setup.record
    requests: Data = {}
    if record is not None:
        outcome = compared.setup.as_held()
        messages = (*record.trace.messages[:1], *trace.messages)
        requests = replay_requests(outcome, len(outcome.over)) | {"messages": messages}
    html = page(lead.title, state, {}, requests, "", lead)
    path = Path(output).expanduser()
    # Set before writing, so that nobody else can ever read the page.
    path.touch(mode=0o600)
    path.chmod(0o600)
    write_whole(output, html.encode())
    texts = (
        "with its texts" if with_text else "with filler in place of its words; --text keeps them"
    )
    show_lines(f"{one_line(output)}: {path.stat().st_size / 1_000:,.0f} kB, {texts}")
