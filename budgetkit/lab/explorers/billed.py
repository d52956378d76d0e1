"""What a request is billed for: the ledger of the request that is shown, as a figure and as its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from budgetkit.lab import figures
from budgetkit.lab.explorers.drawing import listed
from budgetkit.lab.explorers.folds import text
from budgetkit.lab.explorers.library import Library
from budgetkit.message import Message
from budgetkit.requests import count_request

Data = dict[str, Any]
MOST_BARS = 14  # of messages; the table has them all


class BilledFold:
    """The ledger of the request that is shown."""

    stage = "all that this turn asks for, before the budget cuts"

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library = library

    def parts(self, settings: Any, results: Any) -> list[Data]:
        """Say what the request comes to, with a bar for each thing that is billed."""
        if results.trace is None:
            return [text("Open a conversation: sizes that are typed in are no request.")]
        model, messages, left = self.sent(results)
        body = {"model": model, "messages": [dict(message.raw) for message in messages]}
        counted = count_request(
            body | ({"tools": [*results.trace.tools]} if results.trace.tools else {})
        )
        table = figures.ledger.table(counted)
        low, high = counted.interval
        if counted.exact:
            between = "exact"
        else:
            between = f"between {low:,} and {'no known number' if high is None else f'{high:,}'}"
        missing = [*counted.uncounted, *left]
        if missing:
            more = f" Not in it: {', '.join(missing)}."
        else:
            more = ""
        drawn = {
            "title": figures.ledger.title,
            "note": f"{counted.tokens:,} tokens, {between}; {self.stage}. By the {counted.counted_by}.{more}",
            "spec": figures.ledger.draw(largest(table)),
            "table": listed(table),
            "click": None,
        }
        return [{"is": "figure", "name": "ledger", "figure": drawn}]

    def hear(self, settings: Any, results: Any, event: Data) -> None:
        """Ignore events: nothing in this fold can be pressed."""

    def sent(self, results: Any) -> tuple[str, Sequence[Message], list[str]]:
        """Return the model, the messages of the request, and what it holds that is not among them."""
        passages = ["the passages"] if results.trace.contexts else []
        return results.model.name, results.trace.request(results.turn), passages


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """Return a ledger of which the smaller messages are one row; it adds up to the same."""
    is_message = table["kind"] == "message"
    small = table[is_message].sort_values("tokens", kind="stable").index[:-MOST_BARS]
    if len(small) < 2:
        return table
    others = {"kind": "message", "part": f"{len(small):,} other messages", "place": ""}
    others |= {name: table.loc[small, name].sum() for name in ("tokens", "share")}
    return pd.concat([table.drop(small), pd.DataFrame([others])], ignore_index=True)
