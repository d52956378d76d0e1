"""section_orders(): in which order the sections of a prompt keep its beginning stable, and what each order costs.

A cache reads what a request has in common with an earlier one from its first token on. So what never changes stands
first, then what only grows, such as the history; what is exchanged, such as passages, stands behind it, and what the
user has just said comes last::

    equal = whole sections that are as they were, and the common beginning of the first that is not
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile

import numpy as np
import pandas as pd

from budgetkit.budget.quoting import quoted
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.prefix import new_blocks, pauses
from budgetkit.plan.items import Ints
from budgetkit.pruning.history import NEVER
from budgetkit.trace.tally import past_section

Part = tuple[Hashable, int]
Contents = dict[str, list[Part]]


def section_orders(outcome: Replay, *orders: Sequence[str]) -> pd.DataFrame:
    """Price orders of a prompt's sections by the rules of the replay's cache.

    Parameters
    ----------
    outcome : Replay
        What became of a conversation: its requests, its cache and its prices.
    *orders : sequence of str
        Orders to price: every section of the budget, as it is to stand in the prompt.

    Returns
    -------
    DataFrame
        One row an order: "present" (the budget's own), "stable" (what stays first, what changes last), then those
        given as "1", "2", ... Columns name, order (the sections, joined by commas), sent, cached, written, fresh
        (int64, in tokens), relative_cost (input against the same input without a cache) and saved (the share of
        the present order's input cost; below 0 where it costs more).

    Raises
    ------
    ValueError
        If an order lacks a section, or has one that the budget does not.

    Examples
    --------
    >>> import budgetkit as bk
    >>> trace = bk.load_trace("support-chat")
    >>> budget = bk.presets.working_memory(16_000, output=1_000)
    >>> outcome = bk.replay(trace, budget, bk.policies.OldestFirst(), cache=bk.prompt_cache.CACHES["openai"])
    >>> orders = section_orders(outcome)
    >>> bool(orders["relative_cost"][1] < orders["relative_cost"][0])
    True
    """
    contents = [_contents(outcome, number) for number in range(1, len(outcome.over) + 1)]
    present = list(
        dict.fromkeys(
            [*outcome.budget.sections, *(section for content in contents for section in content)]
        )
    )
    orders_by_name: dict[str, Sequence[str]] = {
        "present": present,
        "stable": _stable(outcome, present, contents),
    }
    for number, order in enumerate(orders, 1):
        if sorted(order) != sorted(present):
            raise ValueError(
                f"an order of {quoted(order)}; the sections are {quoted(present)}; name each once"
            )
        orders_by_name[str(number)] = order
    table = pd.DataFrame(
        [_priced(outcome, name, order, contents) for name, order in orders_by_name.items()]
    )
    table["saved"] = 1 - table["relative_cost"] / table["relative_cost"][0]
    return table


def _contents(outcome: Replay, number: int) -> Contents:
    """List what stands in each section of a request, each part with its size; a section that is cut is one part."""
    request = outcome.placed.requests[number - 1]
    tally = outcome.placed.tally
    contents: Contents = {}
    for item in tally.schemas:
        contents.setdefault(item.section, []).append(("schemas", item.tokens))
    back = outcome.returned[number - 1] if outcome.returned else ()
    for slot in sorted({*outcome.present(number), *back}):
        item = (tally.past if slot < request.start else tally.present)[slot]
        if tally.gone is None or tally.gone[slot] >= request.sent:
            shrunk = outcome.kept.shrunk[slot]
            is_placeholder = NEVER < shrunk < number and slot not in back
            contents.setdefault(item.section, []).append(((slot, is_placeholder), item.tokens))
    for index in range(request.start, request.sent):
        for place, item in enumerate(tally.retrieved.get(index, ())):
            contents.setdefault(item.section, []).append(((index, "passage", place), item.tokens))
    return {
        section: _as_granted(outcome, section, number, parts) for section, parts in contents.items()
    }


def _as_granted(outcome: Replay, section: str, number: int, parts: list[Part]) -> list[Part]:
    """Make the sizes sum to what the section was granted: what is cut, or summarised, begins anew where it differs."""
    granted = int(outcome.granted.get(section, np.zeros(number, dtype=np.int64))[number - 1])
    size = sum(tokens for _, tokens in parts)
    if _carries(outcome, section, number):
        carried = outcome.placed.tally.priming
    else:
        carried = 0
    if size == granted - carried:
        return parts
    return [
        (("cut", granted - carried, tuple(name for name, _ in parts)), max(0, granted - carried))
    ]


def _carries(outcome: Replay, section: str, number: int) -> bool:
    """Say whether the message that opens the turn, and with it the priming, stands in a section."""
    request = outcome.placed.requests[number - 1]
    return (
        request.start < request.sent
        and outcome.placed.tally.present[request.start].section == section
    )


def _stable(outcome: Replay, present: Sequence[str], contents: Sequence[Contents]) -> list[str]:
    """Sort sections by how seldom they are exchanged, then by how seldom they change; what was just said is last."""
    pairs = list(zip(contents, contents[1:], strict=False))
    last = {
        outcome.placed.tally.present[r.start].section
        for r in outcome.placed.requests
        if r.start < r.sent
    }
    last -= {
        past_section(message, outcome.budget.roles or {}) for message in outcome.trace.messages[:1]
    }

    def moves(section: str) -> tuple[bool, int, int]:
        both = [(before.get(section, []), now.get(section, [])) for before, now in pairs]
        changed = sum(before != now for before, now in both)
        exchanged = sum(now[: len(before)] != before for before, now in both)
        return section in last, exchanged, changed

    return sorted(present, key=moves)


def _priced(
    outcome: Replay, name: str, order: Sequence[str], contents: Sequence[Contents]
) -> dict[str, object]:
    lines = [
        [part for section in order for part in content.get(section, ())] for content in contents
    ]
    sent = _array(sum(tokens for _, tokens in line) for line in lines)
    equal = _array(
        [0, *(_shared(before, now) for before, now in zip(lines, lines[1:], strict=False))]
    )
    head = np.minimum(outcome.placed.head(), sent)
    messages = outcome.trace.messages
    requests = outcome.placed.requests
    parts = outcome.cache.split(
        sent, head, equal, pauses(messages, requests), new_blocks(messages, requests)
    )
    cached, written = (int(part.sum()) for part in parts)
    whole = int(outcome.sent.sum())
    sums = {"sent": whole, "cached": cached, "written": written, "fresh": whole - cached - written}
    cost = outcome.cache.relative_cost(cached, written, sums["fresh"])
    return {"name": name, "order": ", ".join(order), **sums, "relative_cost": cost}


def _shared(before: Sequence[Part], now: Sequence[Part]) -> int:
    return sum(
        one[1]
        for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    )


def _array(sizes: Iterable[int]) -> Ints:
    return np.array([*sizes], dtype=np.int64)
