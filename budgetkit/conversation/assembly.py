"""Convert a plan to messages, and to a description for the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from budgetkit.budget import brief
from budgetkit.budget.errors import wrong_kind
from budgetkit.conversation.reading import AnyListings, check_listings, listings_of, written_as_one
from budgetkit.conversation.reading import Listing as Listing
from budgetkit.counters import Count, count_of
from budgetkit.message import CHAT_ROLES, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.plan import Item, Plan
from budgetkit.requests import Framing, framing_of

__all__ = ["BUDGETKIT", "PLAN_195", "Listing", "Wording", "describe", "messages", "tools"]

NEAR_LIMIT = 0.9


@dataclass(frozen=True)
class Wording:
    """Wording for the description of a plan.

    Parameters
    ----------
    title : str
        The heading of the description.
    near : str
        The note on a section near its limit.
    thousands : str
        The thousands separator, such as ",", or "" for none.

    Examples
    --------
    >>> PLAN_195.near
    'near limit!'
    """

    title: str = "Context budget"
    near: str = "near its limit"
    thousands: str = ","


BUDGETKIT = Wording()
#: The wording of Plan #195 (document 003).
PLAN_195 = Wording("Context Budget", "near limit!", "")


def messages(
    plan: Plan,
    context_role: str = "system",
    question_last: bool = False,
    as_one: AnyListings = None,
) -> list[Data]:
    """Return the messages of a plan, in the order of the sections.

    Messages keep the order of the conversation: all user, assistant and tool messages are together at the position of
    the first of their sections, so that a tool result stays with its call. The last user message, with the messages
    that follow it, is at the position of its own section. Tool schemas are not messages; see `tools`.

    Parameters
    ----------
    plan : Plan
        A plan from `budgetkit.fit`, of items whose payload is a Message, a mapping with a role, or a string.
    context_role : str, default "system"
        Role under which texts and retrieved passages are sent, since chat formats have no role for them.
    question_last : bool, default False
        If true, the last user message, with the messages that follow it, is at the end regardless of its section.
    as_one : mapping or iterable of str, optional
        Sections whose passages are joined in one message: names, or a mapping from names to a `Listing` or a title. A
        plan from `budgetkit.build` with the same `as_one` counts the joined passages as one message. Any other plan
        counts one message per passage.

    Returns
    -------
    list of dict
        Messages in OpenAI's chat format, with all fields of their source except the retrieved passages, which are
        separate items.

    Raises
    ------
    LookupError
        If the plan lacks a section of `as_one`.
    ValueError
        If an item has no payload, as in a plan saved without texts; if the plan has no items; or if a section of
        `as_one` has items other than texts without a role.

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
            "This plan contains only numbers, no texts. Make it with budgetkit.fit(budget, items)."
        )
    raws = [(item.section, _raw(item)) for item in items]
    listings = listings_of(as_one)
    check_listings(listings, raws, plan.budget.sections)
    written = [(section, _sent_form(raw, context_role)) for section, raw in raws]
    place = {section: i for i, section in enumerate(plan.budget.sections)}
    chat_places = [i for i, (_, message) in enumerate(written) if message["role"] in CHAT_ROLES]
    first = min((place[written[i][0]] for i in chat_places), default=0)
    question_place = max(
        (i for i in chat_places if written[i][1]["role"] == "user"), default=len(written)
    )
    places = [place[section] for section, _ in written]
    for i in chat_places:
        if i < question_place:
            places[i] = first
        elif question_last:
            places[i] = len(place)
        else:
            places[i] = max(first, places[question_place])
    ordered = sorted(range(len(written)), key=places.__getitem__)
    sent = (written[i] for i in ordered if written[i][1]["role"] != "tools")
    return written_as_one([*sent], listings)


def tools(plan: Plan) -> list[Data]:
    """Return the tool schemas kept in a plan.

    Parameters
    ----------
    plan : Plan
        A plan from `budgetkit.fit` of a trace's items.

    Returns
    -------
    list of dict
        The schemas, to pass as ``tools`` of a request.

    Examples
    --------
    >>> import budgetkit as bk
    >>> tools(bk.allocate(bk.Budget(100), {}))
    []
    """
    raws = [item.payload.raw for item in plan.decisions.items if isinstance(item.payload, Message)]
    return [dict(schema) for raw in raws if raw.get("role") == "tools" for schema in raw["tools"]]


def _raw(item: Item) -> Raw:
    """Convert an item's payload to a message; a text becomes a passage."""
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
        raise ValueError(
            wrong_kind(where, payload, "a Message, a mapping with a role, or a string")
        )
    return payload


def _sent_form(raw: Raw, context_role: str) -> Data:
    """Return a message in the form sent to the provider."""
    if raw["role"] in CHAT_ROLES or raw["role"] in (*SYSTEM_ROLES, "tools"):
        # Passages are separate items; sent with their message as well, they would be sent twice, or unplanned.
        return {name: field for name, field in raw.items() if name != "contexts"}
    return {"role": context_role, "content": raw.get("content", "")}


def describe(
    plan: Plan,
    counter: Count | str,
    framing: Framing | None = None,
    wording: Wording = BUDGETKIT,
) -> str:
    """Write a description of a plan for the model.

    The line below the title compares the tokens in use with the whole window. A section above 90 % of its cap, or of
    its limit if it has no cap, is marked. The tokens in use include the description itself, counted as a separate
    system message, and are never understated.

    Parameters
    ----------
    plan : Plan
        The plan to describe.
    counter : callable or str
        Function that counts the tokens in a text, or the name of a counter.
    framing : Framing, optional
        Framing of the message. Default: OpenAI's framing. Use ``FRAMINGS["text"]`` for a text appended to another
        message.
    wording : Wording
        Wording of the text: `BUDGETKIT`, or `PLAN_195` for prompts that refer to the wording of that document.

    Returns
    -------
    str
        The text, or "" if its message does not fit in the plan's free tokens.

    Notes
    -----
    The description follows "Budget Visibility" in Plan #195 (document 003), where 3,200 of 4,000 tokens are shown as 80
    %.

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
    for _ in range(len(str(plan.budget.window)) + 8):  # until the width of the number is stable
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
