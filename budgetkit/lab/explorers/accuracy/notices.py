"""Sentences about the error, the buffer and the texts.

The module also writes the set-up as text to copy.
"""

from __future__ import annotations

from collections import Counter as Tally
from pathlib import Path

from budgetkit.budget import Share, many, one_line, printable
from budgetkit.counters import CalibratedCounter, Counter, basis_of, spread_of
from budgetkit.lab.accuracy import Buffer
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.accuracy.corpora.opening import KNOWN
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.explorers.accuracy.results import AccuracyStage, kind_name
from budgetkit.lab.explorers.budget.notices import (
    beyond_output,
    beyond_window,
    budget_program,
    sentence,
)
from budgetkit.lab.explorers.budget.results import same_count
from budgetkit.lab.explorers.shelves import advice, basis, short_name
from budgetkit.message import Data
from budgetkit.state import to_json, to_yaml


def counter_label(count: Counter, short: str = "") -> str:
    """Return a counter's name, marked if the counter is an estimate.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> [counter_label(counter(name)) for name in ("chars/4", "o200k_base", "estimate:o200k_base")]
    ['chars/4 (estimate)', 'o200k_base', 'estimate:o200k_base']
    """
    name = short or count.name
    if basis_of(count) != "estimate" or "estimate" in name:
        return name
    return f"{name} (estimate)"


def as_percent(share: float) -> str:
    """Format a share as a percentage with one decimal.

    Examples
    --------
    >>> as_percent(0.3141), as_percent(0)
    ('31.4 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def interval_text(buffer: Buffer) -> str:
    """Return the confidence interval of a buffer, in words."""
    if buffer.documents < 2:
        return "from one document, so without an interval"
    return f"95 % interval: {100 * buffer.low:.1f} to {100 * buffer.high:.1f} %"


def status(stage: AccuracyStage) -> Data:
    """Return the status: the count's error and the buffer to reserve."""
    overflow = float(stage.costs["overflow"])
    beyond = beyond_window(stage)
    more = [*beyond, *beyond_output(stage)]
    missing = -stage.buffered.budget.shared_pool
    pool = ""
    if missing > 0 and stage.signed_budget.shared_pool >= 0:
        pool = (
            f"With that buffer, reserves and caps exceed the window by {missing:,} tokens. Lower caps, or choose a "
            "larger window."
        )
    notes = [
        *stage.buffer.warning.split("; "),
        pool,
        _other(stage),
        stage.model.notice,
    ]
    more += [sentence(note) for note in notes if note]
    level = "cut" if stage.buffer.warning else "fits"
    if beyond or overflow > stage.settings.risk:
        level = "over"
    text = f"{_error(stage)} {_held_back(stage, overflow)}"
    return {"level": level, "text": text, "more": more}


def _error(stage: AccuracyStage) -> str:
    error = stage.errors["error"]
    if not error.any():
        return f"{counter_label(stage.estimate)} counts every document as {short_name(stage.exact)} does."
    documents = many(len(error), "document")
    if stage.kind:
        documents += f" of {kind_name(stage.kind)}"
    side = f"mostly too {'low' if error.mean() < 0 else 'high'}"
    if abs(error.mean()) < 0.2 * error.abs().mean():
        side = "in both directions"
    mean = as_percent(error.abs().mean())
    off = f"{counter_label(stage.estimate)} is {mean} off on average over {documents}, {side}"
    by_class = error.abs().groupby(stage.errors["class"]).mean().sort_values(ascending=False)
    if len(by_class) < 2:
        return f"{off}."
    errors = ", ".join(
        f"{one_line(str(name))} {as_percent(size)}" for name, size in by_class.items()
    )
    return f"{off} ({errors})."


def _held_back(stage: AccuracyStage, overflow: float) -> str:
    buffer = stage.buffer
    budget = stage.signed_budget
    name = budget.name or "this budget"
    now = stage.costs["safety"]
    keeps = f"{now:,} tokens" if now else "nothing"
    count = many(buffer.documents, "document")
    expected = f"With {keeps} reserved, expect {name} to overflow in {_often(overflow)} (forecast from {count})"
    risk = stage.settings.risk
    if overflow <= risk:
        return f"{expected}; that is within the risk of {100 * risk:g} %."
    sentence = (
        f"{expected}. Reserve {as_percent(buffer.share)} of the window "
        f"({stage.buffered.budget.sizes['safety']:,} tokens) to expect overflows in at most {_often(risk)}."
    )
    if not (stage.errors["error"] < 0).any():
        sentence += " None of these texts is undercounted; the forecast is for unseen texts."
    return sentence


def _often(chance: float) -> str:
    if chance in (0, 1):
        return "every window" if chance else "no window"
    for windows in (100, 1_000, 10_000):
        number = round(chance * windows, 1)
        if 1 <= number < windows:
            return f"{number:g} of {windows:,} windows"
    if chance < 0.5:
        return "less than 1 of 10,000 windows"
    return "nearly every window"


def _other(stage: AccuracyStage) -> str:
    if same_count(stage.estimate, stage.exact) and not stage.exact.exact:
        return f"It is {truth(stage)}; no better count is known to compare it with."
    if isinstance(stage.estimate, CalibratedCounter):
        return (
            f"{stage.estimate.model} and {short_name(stage.exact)} have different tokenizers: the difference is "
            "not an error of the estimate."
        )
    if stage.exact.exact:
        return ""
    if basis_of(stage.exact) == "reconstructed":
        return f"Compared with {truth(stage)}."
    between = ""
    if spread := spread_of(stage.exact):
        low, high = (signed_percent(end, 0) for end in spread)
        between = f", {low} to {high} off for 9 of 10 texts"
    return (
        f"Compared with {truth(stage)}, itself an estimate{between}; all errors are estimates, too."
    )


def truth(stage: AccuracyStage) -> str:
    """Return the name of the chosen or best reference counter."""
    if stage.settings.exact is not None:
        return counter_label(stage.exact)
    return basis(stage.exact, stage.model).replace(", an estimate", "")


def source(stage: AccuracyStage) -> str:
    """Describe the counted texts, the reference counter and the omitted documents."""
    corpus = stage.texts.corpus
    every = stage.all_errors
    errors = stage.errors
    size = f"{many(len(every), 'document')}, {corpus.characters:,} characters"
    part = "" if len(errors) == len(every) else f", {len(errors):,} of them selected"
    exactly = "counted exactly with" if stage.exact.exact else "compared with"
    left = f"; left out: {left_out(corpus)}" if corpus.problems else ""
    return f"{stage.settings.corpus}: {size}{part}; {exactly} {truth(stage)}{left}.{advice(stage.exact)}"


def left_out(corpus: Corpus) -> str:
    """Name the first files that were left out, with the reasons."""
    names = ", ".join(f"{Path(p.name).name} ({p.reason})" for p in corpus.problems[:MOST_NAMED])
    more = len(corpus.problems) - MOST_NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def texts(stage: AccuracyStage) -> dict[str, str]:
    """Return the budget with the measured buffer in Python, YAML and JSON."""
    heading = f"# {printable(provenance(stage))}\n"
    return {
        "python": heading + accuracy_program(stage),
        "yaml": heading + to_yaml(stage.budget),
        "json": to_json(stage.budget),
    }


def accuracy_program(stage: AccuracyStage) -> str:
    """Return Python code that makes the budget with the buffer."""
    settings = stage.settings
    size = stage.buffer.reserve.size
    base = settings.base
    if settings.own is not None or not isinstance(size, Share):
        return budget_program(stage.buffered, stage.model, stage.budget)
    budget_lines = budget_program(settings, stage.model, base)
    share = f'bk.Share("{size.ratio}")'
    changes = ""
    if "safety" in base.sizes:
        budget_lines += f".assign(safety={share})"
    else:
        changes = f', reserves=(*budget.reserves, bk.Reserve("safety", {share}))'
    if stage.budget.deficit != base.deficit:
        changes += f", deficit={stage.budget.deficit!r}"
    if not changes:
        return budget_lines
    line = "from dataclasses import replace\n\n"
    return f"{line}{budget_lines.removeprefix(line)}\nbudget = replace(budget{changes})"


def provenance(stage: AccuracyStage) -> str:
    """Describe the basis of the buffer in one line."""
    kind = f" sized for {kind_name(stage.kind)}," if stage.kind else ""
    warning = f"; {stage.buffer.warning}" if stage.buffer.warning else ""
    sentence = (
        f"safety {as_percent(stage.buffer.share)} ({interval_text(stage.buffer)}): "
        f"{stage.estimate.name} against {stage.exact.name}, "
        f"{stage.buffer.documents} documents of {stage.settings.corpus},{kind} "
        f"risk {100 * stage.settings.risk:g} %{warning}"
    )
    return " ".join(sentence.split())


WELCOME = {
    "text": "Your own texts: drop a file here, paste text, or",
    "short": "Drop a file, paste, or",
}
MOST_NAMED = 3  # files that are named among those left out


def texts_entry(stage: AccuracyStage) -> Data:
    """Return the form for opening texts, or facts about opened texts."""
    name = stage.settings.corpus
    if name in KNOWN:
        return {**WELCOME}
    corpus = stage.library.texts(name)
    classes = Tally(document.kind for document in corpus.documents)
    by_class = ", ".join(f"{number:,} {name}" for name, number in classes.most_common())
    documents = f"{many(len(corpus.documents), 'document')}: {by_class}"
    notes = [f"Left out: {left_out(corpus)}."] if corpus.problems else []
    return {
        "text": "",
        "short": "",
        "facts": {
            "file": name,
            "sentences": [f"{name}, {documents}", *notes],
            "format": name,
            "messages": documents,
            "many": "",
            "conversations": [],
            "conversation": 0,
            "notes": notes,
            "model": None,
        },
    }
