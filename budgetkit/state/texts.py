"""What the items of a plan stand for, as plain data: messages, and whatever plain data can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.message import Message
from budgetkit.plan.decisions import Decisions
from budgetkit.state.plain import keys, made, plain, rows

Payloads = tuple[list[object], dict[int, object]]


def texts_to(decisions: Decisions) -> dict[str, Any]:
    """Return the payloads of a plan's items as plain data.

    Examples
    --------
    >>> from budgetkit import Allocation, Budget, Item, fit
    >>> plan = fit(Budget(9, (), [Allocation("system")]), [Item("system", 3, payload="Be brief.")])
    >>> texts_to(plan.decisions)
    {'items': [{'value': 'Be brief.'}], 'cuts': []}
    """
    cut = [decisions.cuts[i] for i in sorted(decisions.cuts)]
    every = {"items": decisions.columns.items, "cuts": cut}
    return {name: [_to(item.payload, item.section) for item in items] for name, items in every.items()}


def texts_from(data: object, items: int, cuts: list[int]) -> Payloads:
    """Return the payloads that plain data holds.

    Examples
    --------
    >>> texts_from({"items": [{"value": "Be brief."}], "cuts": []}, 1, [])
    (['Be brief.'], {})
    """
    if data is None:
        return [None] * items, dict.fromkeys(cuts)
    found = keys("texts", data, {"items", "cuts"})
    whole, shorter = (rows(f"texts of {name}", found.get(name, [])) for name in ("items", "cuts"))
    if (len(whole), len(shorter)) != (items, len(cuts)):
        raise ValueError(
            f"plan has texts for {len(whole)} items and {len(shorter)} cuts; it has {items} items and {len(cuts)} "
            "cuts; there is one for each; save it again"
        )
    return [_from(each) for each in whole], {i: _from(each) for i, each in zip(sorted(cuts), shorter, strict=True)}


def _to(payload: object, section: str) -> dict[str, Any]:
    if isinstance(payload, Message):
        return {"message": plain(payload.raw, f"a message of section {brief(section)}")}
    return {"value": plain(payload, f"the payload of an item of section {brief(section)}")}


def _from(data: object) -> object:
    found = keys("text", data, {"message", "value"})
    if len(found) != 1:
        raise ValueError("text of an item holds both or none of 'message' and 'value'; one is known; keep one of them")
    if "value" in found:
        return found["value"]
    if not isinstance(found["message"], Mapping):
        raise ValueError(
            f"message of an item is {brief(found['message'])}; it has a role and a content; write a mapping"
        )
    return made("message", Message, {"raw": found["message"]})
