"""What to take away: Python that holds the measured buffer back, and the budget as YAML and JSON."""

from __future__ import annotations

from budgetkit.budget.amounts import Share
from budgetkit.lab.explorers.accuracy.kinds import kind_name
from budgetkit.lab.explorers.accuracy.notices import as_percent, sure
from budgetkit.lab.explorers.accuracy.results import AccuracyResults, with_buffer
from budgetkit.lab.explorers.budget.texts import python
from budgetkit.state import to_json, to_yaml


def texts(results: AccuracyResults) -> dict[str, str]:
    """Return the budget with its measured buffer in every format."""
    heading = f"# {provenance(results)}\n"
    return {
        "python": heading + program(results),
        "yaml": heading + to_yaml(results.exported_budget),
        "json": to_json(results.exported_budget),
    }


def program(results: AccuracyResults) -> str:
    """Return a program that makes the budget."""
    settings = results.settings.budget_settings
    size = results.buffer.reserve.size
    base = settings.base(results.model)
    if settings.own is not None or not isinstance(size, Share):
        return python(with_buffer(settings, results.buffer), results.model, results.exported_budget)
    budget_lines = python(settings, results.model, base)
    share = f'bk.Share("{size.ratio}")'
    if results.exported_budget.deficit == base.deficit:
        deficit = ""
    else:
        deficit = f", deficit={results.exported_budget.deficit!r}"
    if "safety" in base.sizes:
        budget_lines += f".assign(safety={share})"
        if not deficit:
            return budget_lines
        return f"{_opened(budget_lines)}\nbudget = replace(budget{deficit})"
    reserves = f'(*budget.reserves, bk.Reserve("safety", {share}))'
    return f"{_opened(budget_lines)}\nbudget = replace(budget, reserves={reserves}{deficit})"


def _opened(program: str) -> str:
    line = "from dataclasses import replace\n\n"
    if program.startswith(line):
        return program
    return line + program


def provenance(results: AccuracyResults) -> str:
    """Return on what the buffer rests, in one line."""
    if results.kind:
        kind = f" of which {kind_name(results.kind)} is at hand,"
    else:
        kind = ""
    sentence = (
        f"safety {as_percent(results.buffer.share)} ({sure(results.buffer)}): "
        f"{results.counter.name} against {results.exact.name}, "
        f"{results.buffer.documents} documents of {results.settings.corpus},{kind} "
        f"risk {100 * results.settings.risk:g} %"
    )
    return " ".join(
        (sentence + (f"; {results.buffer.warning}" if results.buffer.warning else "")).split()
    )
