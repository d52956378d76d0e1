"""What a request is billed for: the ledger of the request that is shown, as a figure and as its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from budgetkit import figures
from budgetkit.explorer.drawing import listed
from budgetkit.explorer.folds import text
from budgetkit.explorer.library import Library
from budgetkit.framing import count_request
from budgetkit.message import Message

Data = dict[str, Any]
MOST_BARS = 14  # of messages; the table has them all


class BilledFold:
    """The ledger of the request that is shown."""

    stage = "all that this turn asks for, before the budget cuts"

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library = library

    def parts(self, settings: Any, found: Any) -> list[Data]:
        """Say what the request comes to, with a bar for each thing that is billed."""
        if found.trace is None:
            return [text("Open a conversation: sizes that are typed in are no request.")]
        model, messages, left = self.sent(found)
        body = {"model": model, "messages": [dict(message.raw) for message in messages]}
        counted = count_request(body | ({"tools": [*found.trace.tools]} if found.trace.tools else {}))
        table = figures.ledger.table(counted)
        low, high = counted.interval
        between = (
            "exact" if counted.exact else f"between {low:,} and {'no known number' if high is None else f'{high:,}'}"
        )
        missing = [*counted.uncounted, *left]
        more = f" Not in it: {', '.join(missing)}." if missing else ""
        drawn = {
            "title": figures.ledger.title,
            "note": f"{counted.tokens:,} tokens, {between}; {self.stage}. By the {counted.counted_by}.{more}",
            "spec": figures.ledger.draw(largest(table)),
            "table": listed(table),
            "click": None,
        }
        return [{"is": "figure", "name": "ledger", "figure": drawn}]

    def hear(self, settings: Any, found: Any, told: Data) -> None:
        """Take nothing: there is nothing to press."""

    def sent(self, found: Any) -> tuple[str, Sequence[Message], list[str]]:
        """Return the model, the messages of the request, and what it holds that is not among them."""
        passages = ["the passages"] if found.trace.contexts else []
        return found.model.name, found.trace.request(found.turn), passages


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """Return a ledger of which the smaller messages are one row; it adds up to the same."""
    spoken = table["kind"] == "message"
    small = table[spoken].sort_values("tokens", kind="stable").index[:-MOST_BARS]
    if len(small) < 2:
        return table
    others = {"kind": "message", "part": f"{len(small):,} other messages", "place": ""}
    others |= {name: table.loc[small, name].sum() for name in ("tokens", "share")}
    return pd.concat([table.drop(small), pd.DataFrame([others])], ignore_index=True)
