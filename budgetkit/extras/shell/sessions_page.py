"""The page of ``budgetkit sessions NUMBER --report``: the three answers and their figures, before the replays."""

from __future__ import annotations

import os
from pathlib import Path

from budgetkit.budget.quoting import one_line
from budgetkit.counters import counter
from budgetkit.extras.redaction import redact
from budgetkit.extras.shell.printed import show_lines
from budgetkit.extras.shell.sessions_command import KINDS, dollars
from budgetkit.lab import figures
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.drawing import listed
from budgetkit.lab.explorers.report import Lead
from budgetkit.lab.explorers.view import sendable
from budgetkit.lab.sessions import Session
from budgetkit.lab.sessions.comparing import USUAL, comparison
from budgetkit.lab.sessions.sentences import finding, in_short, notices


def _lead(session: Session, window: int | None) -> Lead:
    """Return the three answers and their figures, in numbers only."""
    compared = comparison(session, USUAL, window=window, prices=session.prices)
    filled = session.filled_by()
    largest = [
        f"{row['what']} {row['share']:.0%}" for row in filled.iloc[:KINDS].to_dict("records")
    ]
    prompt = int(filled["tokens"].sum())
    sentences = [
        *in_short(session, compared.table),
        f"What filled the largest prompt, of {prompt:,} tokens? {', '.join(largest)}.",
        session.gap_sentence,
        *notices(compared.table),
    ]
    rules = {
        "title": figures.rules_compared.title,
        "note": finding(compared.table, float(session.totals()["cost"])),
        "spec": figures.rules_compared.spec(compared),
        "table": listed(compared.table.drop(columns=["system", "relative"])),
        "click": None,
    }
    reads = {
        "title": figures.cache_reads.title,
        "note": session.sentence,
        "spec": figures.cache_reads.spec(session),
        "table": listed(session.misses()),
        "click": None,
    }
    cost = dollars(session.totals()["cost"])
    requests = f"{len(session.usage):,} requests to {session.model or 'a model that is not named'}"
    return Lead(
        title=f"A recorded session: {requests}{', ' if cost else ''}{cost}",
        sentences=[sentence for sentence in sentences if sentence],
        charts=sendable({"rules": rules, "reads": reads}),
        then="The same messages under plain policies: what is shown below was never billed",
    )


def save(session: Session, window: int | None, output: str, with_text: bool) -> None:
    """Write the page of a session, which nobody but its owner can read; without texts unless they are wanted."""
    if with_text:
        trace = session.trace
    else:
        trace = redact(session.trace, counter("chars/4"))
    before = os.umask(0o077)
    try:
        ConversationExplorer(trace, model=session.model).save(output, lead=_lead(session, window))
    finally:
        os.umask(before)
    path = Path(output).expanduser()
    path.chmod(0o600)
    if with_text:
        texts = "with its texts"
    else:
        texts = "with filler for its words; --text keeps them"
    show_lines([f"{one_line(output)}: {path.stat().st_size / 1_000:,.0f} kB, {texts}"])
