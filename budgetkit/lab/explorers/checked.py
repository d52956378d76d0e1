"""What the check finds in a budget: each with its code, the sentence, the mend, and its page of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from budgetkit.counters import estimated_by
from budgetkit.lab.explorers.folds import text
from budgetkit.lab.explorers.library import Library
from budgetkit.plan.findings import CODES, findings
from budgetkit.requests import framing_for

Data = dict[str, Any]
PAGE = "docs/findings.md"


class CheckFold:
    """What is wrong with the numbers themselves, before anything is planned."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library = library

    def parts(self, settings: Any, results: Any) -> list[Data]:
        """List the findings on the budget, or one sentence where there are none."""
        problems = findings(results.budget, today=date.today(), **self.case(results))
        if not problems:
            return [
                text(f"Nothing is wrong: {len(CODES):,} checks of {PAGE} find nothing.", "fits")
            ]
        rows = [
            {
                "key": f"{place} {problem.code}",
                "text": str(problem),
                "note": f"{PAGE}#{problem.code}",
                "level": "cut",
            }
            for place, problem in enumerate(problems)
        ]
        return [{"is": "rows", "rows": rows}]

    def hear(self, settings: Any, results: Any, event: Data) -> None:
        """Ignore events: nothing in this fold can be pressed."""

    def case(self, results: Any) -> dict[str, Any]:
        """Return what the checks look at beside the budget."""
        case: dict[str, Any] = {
            "model": results.model,
            "demand": results.demand,
            "estimated_by": estimated_by(results.counter, results.model),
        }
        if results.trace is not None:
            case["tools"] = schemas(results.trace, results.counter, results.model)
        return case


def schemas(trace: Any, count: Any, model: Any) -> int:
    """Return the tokens of a conversation's tool schemas, as its requests are billed for them."""
    counted = trace.tally(count, framing=framing_for(model))
    return sum(item.tokens for item in counted.schemas)
