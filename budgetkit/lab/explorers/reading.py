"""Messages in pieces for the reading panel; panels for bill and checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from budgetkit.counters import estimated_by
from budgetkit.lab import figures
from budgetkit.lab.explorers.folds import Content, figure_part, table_text, text_part
from budgetkit.message import RESULT_ROLES, Data, Message, replace_surrogates
from budgetkit.models import today
from budgetkit.plan.advice import CODES, findings
from budgetkit.requests import count_request, framing_for

MOST_BARS = 14  # of messages; the table has them all


class BilledFold(Content):
    """Panel with the billed items of the shown request."""

    def parts(self, stage: Any) -> list[Data]:
        """Return the panel's parts: the tokens of each billed item."""
        if stage.trace is None:
            return [
                text_part("Typed sizes are not a request. Open a conversation to see its bill.")
            ]
        messages, left = stage.sent
        body: Data = {
            "model": stage.model.name,
            "messages": [dict(message.raw) for message in messages],
        }
        if stage.trace.tools:
            body["tools"] = [*stage.trace.tools]
        counted = count_request(body)
        table = figures.ledger.table(counted)
        low, high = counted.interval
        between = f"at least {low:,}" if high is None else f"between {low:,} and {high:,}"
        if counted.exact:
            between = "exact"
        missing = [*counted.uncounted, *left]
        more = f" Not counted: {', '.join(missing)}." if missing else ""
        note = f"{counted.tokens:,} tokens ({between}) for {stage.subject}. Counted by the {counted.counted_by}.{more}"
        spec = figures.ledger.draw(largest(table))
        return [figure_part("ledger", figures.ledger.title, note, spec, table_text(table))]


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """Join the smaller messages of a billed request in one row.

    The 14 largest messages keep their own rows.
    """
    is_message = table["kind"] == "message"
    small = table[is_message].sort_values("tokens", kind="stable").index[:-MOST_BARS]
    if len(small) < 2:
        return table
    others = {"kind": "message", "part": f"{len(small):,} other messages", "place": ""}
    others |= {name: table.loc[small, name].sum() for name in ("tokens", "share")}
    return pd.concat([table.drop(small), pd.DataFrame([others])], ignore_index=True)


PAGE = "docs/findings.md"


class CheckFold(Content):
    """Panel of findings about the budget itself, before anything is planned."""

    def parts(self, stage: Any) -> list[Data]:
        """List the findings about the budget, or say that there are none."""
        case: Data = {
            "model": stage.model,
            "demand": stage.demand,
            "estimated_by": estimated_by(stage.counter, stage.model),
            **stage.facts,
        }
        if stage.trace is not None:
            case["tools"] = schemas(stage.trace, stage.counter, stage.model)
        problems = findings(stage.budget, today=today(), **case)
        if not problems:
            return [text_part(f"The {len(CODES):,} checks of {PAGE} find no problem.", "fits")]
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


def schemas(trace: Any, count: Any, model: Any) -> int:
    """Return the billed tokens of a conversation's tool schemas."""
    counted = trace.tally(count, framing=framing_for(model))
    return sum(item.tokens for item in counted.schemas)


LONGEST = 700  # characters of one message
BESIDE_CUT = 300  # characters on each side of a cut


def speaker(message: Message) -> str:
    """Return a message's role, with the speaker's name if there is one."""
    called = message.raw.get("name")
    role = "tool result" if message.role in RESULT_ROLES else message.role
    return replace_surrogates(f"{role} ({called})" if isinstance(called, str) and called else role)


def words(message: Message) -> str:
    """Return a message's text and tool calls."""
    calls = [f"\u2192 {call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(filter(None, (message.text, *calls)))


def whole(text: str) -> list[Data]:
    """Return a text as pieces for the reading panel.

    A text of more than 700 characters is shortened.
    """
    pieces = [{"text": replace_surrogates(text[:LONGEST])}]
    if len(text) > LONGEST:
        pieces.append({"text": f" \u2026 {len(text) - LONGEST:,} more characters"})
    return pieces


def seam(before: str, after: str, markers: Iterable[str]) -> tuple[str, str, str]:
    """Split a cut text into head, removed part and tail.

    Examples
    --------
    >>> seam("one two three", "one[...]", ["[...]"]), seam("one two three", "[...]three", ["[...]"])
    (('one', ' two three', ''), ('', 'one two ', 'three'))
    """
    for marker in (*markers, ""):
        if marker not in after:
            continue
        head, _, tail = after.partition(marker) if marker else (after, "", "")
        ends = before.startswith(head) and before.endswith(tail)
        if ends and len(head) + len(tail) <= len(before):
            return head, before[len(head) : len(before) - len(tail)], tail
    return after, "", ""


def parted(before: str, after: str, markers: Iterable[str]) -> list[Data]:
    """Return a cut text in pieces, with the removed part struck out."""
    head, gone, tail = seam(before, after, markers)
    return [
        *_part(head, False, True),
        *_part(gone, bool(head), bool(tail), struck=True),
        *_part(tail, True, False),
    ]


def _part(text: str, from_start: bool, from_end: bool, struck: bool = False) -> Iterator[Data]:
    """Yield the text next to a cut, and the omitted length."""
    if not text:
        return
    more = {"struck": True} if struck else {}
    left = len(text) - BESIDE_CUT * (from_start + from_end)
    if left <= 0:
        yield {"text": replace_surrogates(text), **more}
        return
    if from_start:
        yield {"text": replace_surrogates(text[:BESIDE_CUT]), **more}
    yield {"text": f" \u2026 {left:,} more characters \u2026 "}
    if from_end:
        yield {"text": replace_surrogates(text[-BESIDE_CUT:]), **more}
