"""Reader: the messages of one request, and those that have left before it, as far as a page can hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from budgetkit.budget.quoting import brief, many
from budgetkit.lab.explorers.conversation.results import ConversationResults
from budgetkit.lab.explorers.reading import speaker, whole, words
from budgetkit.pruning.history import NEVER

Data = dict[str, Any]
# messages that are there, that have gone, and of the opening
NEWEST = 40
GONE = 15
FIRST = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """Say how messages stand at one request."""

    there: list[int]
    absent: list[int]
    shrunk: list[int]
    summaries: dict[int, tuple[int, int, int]]


def reading(results: ConversationResults) -> Data:
    """Return the reader: what the chosen request sends, and what is missing from it."""
    standing = standing_at(results)
    shown = _chosen(standing)
    called = results.named(results.request)
    return {
        "title": f"What does {called} send, and what is missing?",
        "note": _note(results, standing, shown),
        "blocks": list(_blocks(results, standing, shown)),
    }


def standing_at(results: ConversationResults) -> Standing:
    """Return how messages stand at the chosen request."""
    outcome = results.shown.outcome
    request = results.request
    summaries: dict[int, tuple[int, int, int]] = {}
    for at, slot, tokens, slots in outcome.kept.written:
        if at >= request:
            break
        replaced = sum(summaries.pop(each, (0, 1, 0))[1] for each in slots)
        summaries[slot] = (at + 1, replaced, tokens)
    for at, slot in outcome.kept.dropped_summaries:
        if at < request and slot in summaries and summaries[slot][0] <= at + 1:
            del summaries[slot]
    there = outcome.present(request)
    shrunk = [slot for slot in there if NEVER < outcome.kept.shrunk[slot] < request]
    return Standing(there, outcome.absent(request), shrunk, summaries)


def _chosen(standing: Standing) -> set[int]:
    """Choose what is shown: the opening, what left or shrank last, and the newest."""
    gone = {*standing.absent[-GONE:], *standing.shrunk[-GONE:], *standing.summaries}
    return {*standing.there[:FIRST], *standing.there[-NEWEST:], *gone}


def _note(results: ConversationResults, standing: Standing, shown: set[int]) -> str:
    row = results.shown.frame.iloc[results.request - 1]
    there = f"{many(len(standing.there), 'message')}, {int(row['sent']):,} tokens"
    if standing.absent:
        gone = f"{len(standing.absent):,} have left before"
    else:
        gone = "nothing has left before"
    left = len(standing.there) + len(standing.absent) - len(shown)
    cut = f" {left:,} of them are not shown." if left > 0 else ""
    return f"{there}; {gone}, under {brief(results.main)}.{cut}"


def _blocks(results: ConversationResults, standing: Standing, shown: set[int]) -> Iterator[Data]:
    """Give blocks in the order of the conversation; a run of messages that are not shown is one block."""
    absent = set(standing.absent)
    for is_shown, slots in groupby(sorted({*standing.there, *absent}), lambda slot: slot in shown):
        if not is_shown:
            yield _gap(results, [*slots], absent)
            continue
        for slot in slots:
            if slot in standing.summaries:
                yield _summary(results, *standing.summaries[slot])
            yield _block(results, slot, slot in absent)


def _gap(results: ConversationResults, hidden: list[int], absent: set[int]) -> Data:
    tokens = sum(int(results.shown.outcome.placed.tally.past[slot].tokens) for slot in hidden)
    gone = sum(slot in absent for slot in hidden)
    which = f"#{hidden[0]:,}" if len(hidden) == 1 else f"#{hidden[0]:,} to #{hidden[-1]:,}"
    if len(hidden) > 1:
        label = f"{which}: {len(hidden):,} messages not shown here"
    else:
        label = f"{which} not shown here"
    if not gone:
        state = "all still sent"
    elif gone == len(hidden):
        state = "all gone"
    else:
        state = f"{gone:,} gone"
    return {"label": label, "mark": f"{tokens:,} tokens, {state}", "level": "gap", "pieces": []}


def _summary(results: ConversationResults, request: int, replaced: int, tokens: int) -> Data:
    words = f"A summary of {replaced:,} messages, written at {results.named(request)}."
    return {
        "label": "summary",
        "mark": f"{tokens:,} tokens",
        "level": "note",
        "pieces": [{"text": words}],
    }


def _block(results: ConversationResults, slot: int, is_absent: bool) -> Data:
    message = results.trace.messages[slot]
    tokens = int(results.shown.outcome.placed.tally.past[slot].tokens)
    fate, level, why = _fate(results, slot, is_absent)
    pieces = whole(words(message))
    return {
        "key": str(slot),
        "label": f"#{slot:,} {speaker(message)}",
        "mark": f"{tokens:,} tokens, {fate}" if fate else f"{tokens:,} tokens",
        "level": level,
        "why": why,
        "pieces": [{**piece, "struck": True} for piece in pieces] if level == "cut" else pieces,
    }


def _fate(results: ConversationResults, slot: int, is_absent: bool) -> tuple[str, str, str]:
    """Say what became of a message, when, and why; the reason is read off the history's size at that request."""
    retention = results.shown.outcome.kept
    if is_absent:
        if results.shown.fates[slot] == "summarised":
            word = "summarised"
        else:
            word = "dropped"
        return (
            f"{word} at {results.named(retention.gone[slot] + 1)}",
            "gone",
            _why(results, retention.gone[slot]),
        )
    if NEVER < retention.shrunk[slot] < results.request:
        at = retention.shrunk[slot]
        return f"cut to a placeholder at {results.named(at + 1)}", "cut", _why(results, at)
    return "", "", f"It is sent with {results.named(results.request)}, whole."


def _why(results: ConversationResults, at: int) -> str:
    row = results.shown.frame.iloc[at]
    size = int(row["history"] + row["dropped"] + row["summary_input"] - row["summary_output"])
    limit = int(row["limit"])
    if size > limit:
        return f"The {results.section} had {size:,} tokens for {limit:,}."
    return f"The policy cuts before the {results.section} is full ({size:,} of {limit:,} tokens)."
