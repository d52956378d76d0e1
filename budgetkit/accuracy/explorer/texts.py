"""What to take away: Python that holds the measured buffer back, and the budget as YAML and JSON."""

from __future__ import annotations

from budgetkit.accuracy.explorer.notices import as_percent, sure
from budgetkit.accuracy.explorer.results import Results, with_buffer
from budgetkit.budget.amounts import Share
from budgetkit.explorer.budget.texts import python
from budgetkit.state import to_json, to_yaml


def texts(found: Results) -> dict[str, str]:
    """Return the budget with its measured buffer in every format."""
    said = f"# {provenance(found)}\n"
    return {"python": said + program(found), "yaml": said + to_yaml(found.result), "json": to_json(found.result)}


def program(found: Results) -> str:
    """Return a program that makes the budget."""
    settings, size = found.settings.budget, found.buffer.reserve.size
    base = settings.base(found.model)
    if settings.own is not None or not isinstance(size, Share):
        return python(with_buffer(settings, found.buffer), found.model, found.result)
    made = python(settings, found.model, base)
    share = f'bk.Share("{size.ratio}")'
    deficit = "" if found.result.deficit == base.deficit else f", deficit={found.result.deficit!r}"
    if "safety" in base.sizes:
        made += f".assign(safety={share})"
        return made if not deficit else f"{_opened(made)}\nbudget = replace(budget{deficit})"
    reserves = f'(*budget.reserves, bk.Reserve("safety", {share}))'
    return f"{_opened(made)}\nbudget = replace(budget, reserves={reserves}{deficit})"


def _opened(program: str) -> str:
    line = "from dataclasses import replace\n\n"
    return program if program.startswith(line) else line + program


def provenance(found: Results) -> str:
    """Return on what the buffer rests, in one line."""
    told = (
        f"safety {as_percent(found.buffer.share)} ({sure(found.buffer)}): "
        f"{found.counter.name} against {found.exact.name}, "
        f"{found.buffer.documents} documents of {found.settings.corpus}, risk {100 * found.settings.risk:g} %"
    )
    return " ".join((told + (f"; {found.buffer.warning}" if found.buffer.warning else "")).split())
