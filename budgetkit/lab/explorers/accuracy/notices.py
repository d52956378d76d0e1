"""Sentences about the error, the buffer and the texts.

The module also writes the set-up as text to copy.
"""

from __future__ import annotations

from collections import Counter as Tally
from pathlib import Path

from budgetkit.budget import Share, many, one_line, printable
from budgetkit.counters import CalibratedCounter, Counter, basis_of, spread_of
from budgetkit.lab.accuracy import Buffer
from budgetkit.lab.accuracy.corpora.opening import KNOWN
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.explorers.accuracy.results import (
    AccuracyResults,
    AccuracyStage,
    kind_name,
    with_buffer,
)
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
    """Return a share of the window as a percentage.

    Examples
    --------
    >>> as_percent(0.3141), as_percent(0)
    ('31.4 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def sure(buffer: Buffer) -> str:
    """Return the confidence interval of a buffer, in words."""
    if buffer.documents < 2:
        return "from one document, so without an interval"
    return f"95 % interval: {100 * buffer.low:.1f} to {100 * buffer.high:.1f} %"


def status(stage: AccuracyStage) -> Data:
    """Return the status: the count's error and the buffer to reserve."""
    results = stage.results
    overflow = float(results.costs["overflow"])
    beyond = beyond_window(results.budget, results.model)
    more = [*beyond, *beyond_output(results.budget, results.model)]
    missing = -results.buffered_budget.shared_pool
    pool = ""
    if missing > 0 and results.budget.shared_pool >= 0:
        pool = (
            f"With that buffer, reserves and caps exceed the window by {missing:,} tokens. Lower caps, or choose a "
            "larger window."
        )
    notes = [
        *results.buffer.warning.split("; "),
        pool,
        _other(results),
        results.budget_results.note,
    ]
    more += [sentence(note) for note in notes if note]
    level = "cut" if results.buffer.warning else "fits"
    if beyond or overflow > results.settings.risk:
        level = "over"
    text = f"{_error(results)} {_held_back(results, overflow)}"
    return {"level": level, "text": text, "more": more}


def _error(results: AccuracyResults) -> str:
    error = results.errors["error"]
    if not error.any():
        return f"{counter_label(results.counter)} counts every document as {short_name(results.exact)} does."
    documents = many(len(error), "document")
    if results.kind:
        documents += f" of {kind_name(results.kind)}"
    side = f"mostly too {'low' if error.mean() < 0 else 'high'}"
    if abs(error.mean()) < 0.2 * error.abs().mean():
        side = "in both directions"
    mean = as_percent(error.abs().mean())
    off = f"{counter_label(results.counter)} is {mean} off on average over {documents}, {side}"
    by_class = error.abs().groupby(results.errors["class"]).mean().sort_values(ascending=False)
    if len(by_class) < 2:
        return f"{off}."
    each = ", ".join(f"{one_line(str(name))} {as_percent(size)}" for name, size in by_class.items())
    return f"{off} ({each})."


def _held_back(results: AccuracyResults, overflow: float) -> str:
    buffer = results.buffer
    budget = results.budget
    name = budget.name or "this budget"
    now = results.costs["safety"]
    keeps = f"{now:,} tokens" if now else "nothing"
    count = many(buffer.documents, "document")
    expected = f"With {keeps} reserved, expect {name} to overflow in {_often(overflow)} (forecast from {count})"
    risk = results.settings.risk
    if overflow <= risk:
        return f"{expected}; that is within the risk of {100 * risk:g} %."
    sentence = (
        f"{expected}. Reserve {as_percent(buffer.share)} of the window "
        f"({results.buffered_budget.sizes['safety']:,} tokens) to expect overflows in at most {_often(risk)}."
    )
    if not (results.errors["error"] < 0).any():
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


def _other(results: AccuracyResults) -> str:
    if same_count(results.counter, results.exact) and not results.exact.exact:
        return f"It is {truth(results)}; no better count is known to compare it with."
    if isinstance(results.counter, CalibratedCounter):
        return (
            f"{results.counter.model} and {short_name(results.exact)} have different tokenizers: the difference is "
            "not an error of the estimate."
        )
    if results.exact.exact:
        return ""
    if basis_of(results.exact) == "reconstructed":
        return f"Compared with {truth(results)}."
    between = ""
    if spread := spread_of(results.exact):
        low, high = (signed_percent(end, 0) for end in spread)
        between = f", {low} to {high} off for 9 of 10 texts"
    return f"Compared with {truth(results)}, itself an estimate{between}; all errors are estimates, too."


def truth(results: AccuracyResults) -> str:
    """Return the name of the chosen or best reference counter."""
    if results.settings.exact is not None:
        return counter_label(results.exact)
    return basis(results.exact, results.model).replace(", an estimate", "")


def source(stage: AccuracyStage) -> str:
    """Describe the counted texts, the reference counter and the omitted documents."""
    results = stage.results
    corpus = results.texts.corpus
    every = results.all_errors
    errors = results.errors
    size = f"{many(len(every), 'document')}, {corpus.characters:,} characters"
    part = "" if len(errors) == len(every) else f", {len(errors):,} of them selected"
    exactly = "counted exactly with" if results.exact.exact else "compared with"
    left = ""
    if corpus.problems:
        names = [f"{Path(p.name).name} ({p.reason})" for p in corpus.problems[:MOST_NAMED]]
        left = f"; left out: {', '.join(names)}"
        if (more := len(corpus.problems) - MOST_NAMED) > 0:
            left += f" and {more:,} more"
    return f"{results.settings.corpus}: {size}{part}; {exactly} {truth(results)}{left}.{advice(results.exact)}"


def texts(stage: AccuracyStage) -> dict[str, str]:
    """Return the budget, with the measured buffer, as text by format."""
    results = stage.results
    heading = f"# {printable(provenance(results))}\n"
    return {
        "python": heading + accuracy_program(results),
        "yaml": heading + to_yaml(results.exported_budget),
        "json": to_json(results.exported_budget),
    }


def accuracy_program(results: AccuracyResults) -> str:
    """Return Python code that makes the budget with the buffer."""
    settings = results.settings.budget_settings
    size = results.buffer.reserve.size
    base = settings.base
    if settings.own is not None or not isinstance(size, Share):
        return budget_program(
            with_buffer(settings, results.buffer), results.model, results.exported_budget
        )
    budget_lines = budget_program(settings, results.model, base)
    share = f'bk.Share("{size.ratio}")'
    changes = ""
    if "safety" in base.sizes:
        budget_lines += f".assign(safety={share})"
    else:
        changes = f', reserves=(*budget.reserves, bk.Reserve("safety", {share}))'
    if results.exported_budget.deficit != base.deficit:
        changes += f", deficit={results.exported_budget.deficit!r}"
    if not changes:
        return budget_lines
    line = "from dataclasses import replace\n\n"
    return f"{line}{budget_lines.removeprefix(line)}\nbudget = replace(budget{changes})"


def provenance(results: AccuracyResults) -> str:
    """Describe the basis of the buffer in one line."""
    kind = f" sized for {kind_name(results.kind)}," if results.kind else ""
    warning = f"; {results.buffer.warning}" if results.buffer.warning else ""
    sentence = (
        f"safety {as_percent(results.buffer.share)} ({sure(results.buffer)}): "
        f"{results.counter.name} against {results.exact.name}, "
        f"{results.buffer.documents} documents of {results.settings.corpus},{kind} "
        f"risk {100 * results.settings.risk:g} %{warning}"
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
    notes = [
        f"Left out: {Path(problem.name).name}, {problem.reason}."
        for problem in corpus.problems[:MOST_NAMED]
    ]
    if len(corpus.problems) > MOST_NAMED:
        notes.append(f"{len(corpus.problems) - MOST_NAMED:,} more were left out.")
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
