"""A plan as the messages to send, and as a text that a model may be shown about its own budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from budgetkit.budget import brief
from budgetkit.budget.errors import wrong_type
from budgetkit.conversation.reading import AnyListings, check_listings, listings_of, written_as_one
from budgetkit.conversation.reading import Listing as Listing
from budgetkit.counters import Count, count_of
from budgetkit.message import CHAT_ROLES, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.plan import Item, Plan
from budgetkit.requests import Framing, framing_of

__all__ = ["BUDGETKIT", "Listing", "PLAN_195", "Wording", "describe", "messages", "tools"]

NEAR_LIMIT = 0.9


@dataclass(frozen=True)
class Wording:
    """The wording that describes a plan to a model.

    Parameters
    ----------
    title : str
        The heading.
    near : str
        The mark beside a section near its limit.
    thousands : str
        The thousands separator: "," or nothing.

    Examples
    --------
    >>> PLAN_195.near
    'near limit!'
    """

    title: str = "Context budget"
    near: str = "near its limit"
    thousands: str = ","


BUDGETKIT = Wording()
#: As Plan #195 (document 003) writes it.
PLAN_195 = Wording("Context Budget", "near limit!", "")


def messages(
    plan: Plan,
    context_role: str = "system",
    question_last: bool = False,
    as_one: AnyListings = None,
) -> list[Data]:
    """Return the messages to send, in the order of the sections.

    Messages stay in the order of the conversation: all messages of users, assistants and tools stand
    together where the first of their sections stands, so that a tool's result never parts from its call; the last
    message of a user, with what follows it, stands where its own section does. Tool schemas are no messages; they go
    into the request beside them, see `tools`.

    Parameters
    ----------
    plan : Plan
        As `budgetkit.fit` made it, of items whose payload is a Message, a mapping with a role, or a text.
    context_role : str, default "system"
        Role of texts and retrieved passages when sent; chat formats have no role of their own for them.
    question_last : bool, default False
        Whether the last message of a user, with what follows it, stands at the end wherever its section does.
    as_one : mapping or iterable of str, optional
        Sections whose passages are written as one message, each with its `Listing` or a title, or their names alone.
        A plan of `budgetkit.build` with the same `as_one` has counted them so; any other counts a message each.

    Returns
    -------
    list of dict
        Messages in OpenAI's chat format; fields that the source had are kept, except the passages retrieved
        for a message, which are items of their own.

    Raises
    ------
    LookupError
        If `as_one` names a section that the plan does not have.
    ValueError
        If an item has no payload, as in a plan that was saved without its texts, if the plan has no items, or if
        `as_one` names a section that holds more than texts without a role.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(100, (), [bk.Allocation("system"), bk.Allocation("user")])
    >>> asked = bk.Item("user", 2, payload={"role": "user", "content": "Hello world"})
    >>> messages(bk.fit(budget, [asked, bk.Item("system", 3, payload="Be brief.")]))
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hello world'}]
    """
    items = plan.decisions.items
    if not items and plan.used:
        raise ValueError(
            "This plan has numbers, not texts. Make it with budgetkit.fit(budget, items)."
        )
    raws = [(item.section, _raw(item)) for item in items]
    listings = listings_of(as_one)
    check_listings(listings, raws, plan.budget.sections)
    written = [
        (item, _sent_form(raw, context_role)) for item, (_, raw) in zip(items, raws, strict=True)
    ]
    place = {section: i for i, section in enumerate(plan.budget.sections)}
    chat_places = [i for i, (_, message) in enumerate(written) if message["role"] in CHAT_ROLES]
    first = min((place[written[i][0].section] for i in chat_places), default=0)
    question_place = max(
        (i for i in chat_places if written[i][1]["role"] == "user"), default=len(written)
    )
    places = [place[item.section] for item, _ in written]
    for i in chat_places:
        if i < question_place:
            places[i] = first
        elif question_last:
            places[i] = len(place)
        else:
            places[i] = max(first, places[question_place])
    ordered = sorted(range(len(written)), key=places.__getitem__)
    sent = [
        (written[i][0].section, written[i][1]) for i in ordered if written[i][1]["role"] != "tools"
    ]
    return written_as_one(sent, listings)


def tools(plan: Plan) -> list[Data]:
    """Return the tool schemas that the plan kept.

    Parameters
    ----------
    plan : Plan
        As `budgetkit.fit` made it of a trace's items.

    Returns
    -------
    list of dict
        The schemas, for the request's ``tools``.

    Examples
    --------
    >>> import budgetkit as bk
    >>> tools(bk.allocate(bk.Budget(100), {}))
    []
    """
    raws = [item.payload.raw for item in plan.decisions.items if isinstance(item.payload, Message)]
    return [dict(schema) for raw in raws if raw.get("role") == "tools" for schema in raw["tools"]]


def _raw(item: Item) -> Raw:
    """Return an item's payload as a message; a text becomes a passage."""
    payload = item.payload.raw if isinstance(item.payload, Message) else item.payload
    if payload is None:
        raise ValueError(
            f"An item of section {brief(item.section)} has no text. Pass payload=... to Item, or save the plan with "
            "texts=True."
        )
    if isinstance(payload, str):
        return {"role": "context", "content": payload}
    if not isinstance(payload, Mapping) or "role" not in payload:
        where = f"payload in section {brief(item.section)}"
        raise ValueError(wrong_type(where, payload, "a Message, a mapping with a role, or a text"))
    return payload


def _sent_form(raw: Raw, context_role: str) -> Data:
    """Return a message as it is sent."""
    if raw["role"] in CHAT_ROLES or raw["role"] in (*SYSTEM_ROLES, "tools"):
        # Passages are items of their own: beside the message they came with they would be sent twice, or unplanned.
        return {name: field for name, field in raw.items() if name != "contexts"}
    return {"role": context_role, "content": raw.get("content", "")}


def describe(
    plan: Plan,
    counter: Count | str,
    framing: Framing | None = None,
    wording: Wording = BUDGETKIT,
) -> str:
    """Describe the plan of a context to the model.

    The first line sums up against the whole window; a section above 90 % of its cap, or of its limit where it
    has none, is marked. The number of used tokens contains this text as a system message of its own, and is never
    below the truth.

    Parameters
    ----------
    plan : Plan
        The granted tokens.
    counter : callable or str
        Text to tokens, or the name of a counter.
    framing : Framing, optional
        Framing of a message, OpenAI's unless given; ``FRAMINGS["text"]`` for a text that
        joins a message which is sent anyway.
    wording : Wording
        How it is said: `BUDGETKIT`, or `PLAN_195` as the document says it, which some prompts refer to.

    Returns
    -------
    str
        The text, or an empty one where the plan has no room left for the message.

    Notes
    -----
    After Plan #195, "Budget Visibility" (document 003), which shows 3,200 of 4,000 as 80 %.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(4_000, (), [bk.Allocation("system", 500), bk.Allocation("memory", 800)])
    >>> plan = bk.allocate(budget, {"system": 450, "memory": 780})
    >>> print(describe(plan, counter=lambda text: 0, framing=bk.requests.FRAMINGS["text"]))
    ## Context budget
    Using 1,230/4,000 tokens (31%)
    - system: 450/500
    - memory: 780/800 (near its limit)
    """
    count = count_of(counter)
    used = plan.used
    text = ""
    for _ in range(len(str(plan.budget.window)) + 8):  # it settles when the number's width does
        text = _text(plan, used, wording)
        needed = plan.used + _sent(text, count, framing)
        if needed <= used:
            break
        used = needed
    return text if _sent(text, count, framing) <= max(0, plan.free) else ""


def _sent(text: str, count: Count, framing: Framing | None) -> int:
    return framing_of(count, framing).message({"role": "system", "content": text}, count)


def _text(plan: Plan, used: int, wording: Wording) -> str:
    window = plan.budget.window
    number = f"{{:{wording.thousands}}}".format
    share = round(100 * used / max(1, window))
    lines = [f"## {wording.title}", f"Using {number(used)}/{number(window)} tokens ({share}%)"]
    for grant in plan.grants:
        cap = plan.budget.caps[grant.section]
        limit = grant.limit if cap is None else cap
        near = f" ({wording.near})" if grant.granted > NEAR_LIMIT * limit else ""
        lines.append(f"- {grant.section}: {number(grant.granted)}/{number(limit)}{near}")
    return "\n".join(lines)
