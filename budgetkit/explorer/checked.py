"""What the check finds in a budget: each with its code, the sentence, the mend, and its page of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from budgetkit.explorer.folds import text
from budgetkit.explorer.library import Library
from budgetkit.framing import framing_for
from budgetkit.plan.findings import CODES, findings

Data = dict[str, Any]
PAGE = "docs/findings.md"


class CheckFold:
    """What is wrong with the numbers themselves, before anything is planned."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library = library

    def parts(self, settings: Any, found: Any) -> list[Data]:
        """Say what is found, or that nothing is."""
        told = findings(found.budget, today=date.today(), **self.case(found))
        if not told:
            return [text(f"Nothing is wrong: {len(CODES):,} checks of {PAGE} find nothing.", "fits")]
        rows = [
            {"key": f"{place} {each.code}", "text": str(each), "note": f"{PAGE}#{each.code}", "level": "cut"}
            for place, each in enumerate(told)
        ]
        return [{"is": "rows", "rows": rows}]

    def hear(self, settings: Any, found: Any, told: Data) -> None:
        """Take nothing: there is nothing to press."""

    def case(self, found: Any) -> dict[str, Any]:
        """Return what the checks look at beside the budget."""
        sent = {"model": found.model, "demand": found.demand}
        return sent if found.trace is None else {**sent, "tools": schemas(found.trace, found.counter, found.model)}


def schemas(trace: Any, count: Any, model: Any) -> int:
    """Return the tokens of a conversation's tool schemas."""
    return framing_for(model.name).schemas(list(trace.tools), count) if trace.tools else 0
