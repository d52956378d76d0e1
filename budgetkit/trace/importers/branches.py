"""Branches: a session whose records name the record before them is a tree, and one of its branches counts.

Whoever goes back to an earlier message and says something else starts a new branch; the old one stays in the file. What
the next request holds is the branch that ends in the last message of the file. Calls made at once are no branches: all
blocks of one answer, and the results of all its calls, belong together wherever they hang.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def counting(
    records: Sequence[Record], answer_of: Callable[[Record], Hashable | None]
) -> list[bool]:
    """Say of each record whether it is on the branch that counts.

    A record without an id, or whose parent is not in the file, follows the record before it.

    >>> def said(id, parent):
    ...     return {"uuid": id, "parentUuid": parent, "message": {"role": "user", "content": id}}
    >>> counting([said("a", None), said("b", "a"), said("c", "a")], lambda record: None)
    [True, False, True]
    """
    parents = _parents(records)
    ends = [
        place for place, record in enumerate(records) if isinstance(record.get("message"), Mapping)
    ]
    on_branch = [False] * len(records)

    # Walk from the last message back to the first.
    place = ends[-1] if ends else -1
    while place >= 0 and not on_branch[place]:
        on_branch[place] = True
        place = parents[place]

    # An answer written over several records counts as a whole, and so do the results of its calls.
    answers = {
        answer_of(record) for record, counts in zip(records, on_branch, strict=True) if counts
    } - {None}
    calls: set[Any] = set()
    for place, record in enumerate(records):
        on_branch[place] = on_branch[place] or answer_of(record) in answers
        if on_branch[place]:
            calls.update(_ids(record, "tool_use", "id"))
    for place, record in enumerate(records):
        if not on_branch[place] and calls.intersection(_ids(record, "tool_result", "tool_use_id")):
            on_branch[place] = True
    return on_branch


def _parents(records: Sequence[Record]) -> list[int]:
    """Return for each record the place of the one before it on its branch; -1 for the first."""
    places: dict[Any, int] = {}
    for place, record in enumerate(records):
        places.setdefault(_name(record.get("uuid", record.get("id"))), place)
    places.pop(None, None)
    parents: list[int] = []
    for place, record in enumerate(records):
        named = (
            _name(record.get(field)) for field in ("parentUuid", "parentId", "logicalParentUuid")
        )
        candidates = (places[name] for name in named if name in places)
        parents.append(next(candidates, place - 1))
    return parents


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _ids(record: Record, kind: str, field: str) -> list[str]:
    """List the ids that the blocks of one kind in a message carry."""
    message = record.get("message")
    if isinstance(message, Mapping):
        content = message.get("content")
    else:
        content = None
    blocks = content if isinstance(content, list) else []
    return [
        block[field]
        for block in blocks
        if isinstance(block, Mapping)
        and block.get("type") == kind
        and isinstance(block.get(field), str)
    ]
