"""build(): make all messages of a request in one call.

`build` counts each section, prunes the history to the tokens that the other sections leave, keeps the best passages,
cuts texts where allowed, and orders the messages. Octopus' manager does the same for every turn, and anchor's pipeline
for every query.
"""

from __future__ import annotations

import inspect
from asyncio import gather
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Real
from typing import Any

from budgetkit.budget import Allocation, Budget, brief, many, unknown_section
from budgetkit.budget.errors import wrong_type
from budgetkit.conversation.assembly import describe, messages, tools
from budgetkit.conversation.engine import first_request
from budgetkit.conversation.reading import (
    AnyListings,
    ListedSection,
    check_listings,
    check_sendable,
    listings_of,
    plan_with_listings,
    provider_form,
    read_values,
)
from budgetkit.conversation.rules import RequestRules
from budgetkit.conversation.sent import SentRequest
from budgetkit.counters import Count
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, setup_of
from budgetkit.inputs.conversations import Piece, piece_of
from budgetkit.message import CHAT_ROLES, SYSTEM_ROLES, Message
from budgetkit.plan import Item, Plan, fit
from budgetkit.pruning import Policy, StartOn
from budgetkit.requests import Framing, read_tools
from budgetkit.requests.reading.forms import Form, form_of_all, forms_of, place_in_record
from budgetkit.requests.reading.writing import system_text
from budgetkit.trace import DEFAULT_ROLES, json_value, messages_in
from budgetkit.truncation.cutting import SECTION_MARKERS, cutter

#: Names for the question in `build`, whatever the budget calls its section.
QUESTION_NAMES = ("question", "query", "user", "current")
#: Roles whose texts instruct the model and are sent as system messages.
_INSTRUCT = ("system", "procedure")


@dataclass(frozen=True)
class Built:
    """A request, ready to send.

    Parameters
    ----------
    messages : list of dict
        Messages in the order of the sections, in their original format or OpenAI's chat format.
    plan : Plan
        Grants, cuts and drops of each section, with reasons.
    system : str, list, dict or None
        The system text, if the provider takes it separately; see :class:`budgetkit.conversation.Request`.
    warnings : tuple of str
        Warnings about a request that exceeds the window, omitted messages, and content that cannot be counted.
    """

    messages: list[dict[str, Any]]
    plan: Plan
    system: Any = None
    warnings: tuple[str, ...] = ()


def build(
    budget: AnyBudget,
    counter: AnyCounter | None = None,
    *,
    policy: Policy | str | None = None,
    context_role: str = "system",
    framing: Framing | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    form: Form | None = None,
    start_on: StartOn = "user",
    as_one: AnyListings = None,
    markers: Mapping[str, str] = SECTION_MARKERS,
    tell: bool = False,
    **sections: Any,
) -> Built:
    """Build a request from the contents of its sections.

    Parameters
    ----------
    budget : Budget, str, Path or callable
        The budget, or a preset or its name.
    counter : str, Model or callable, optional
        Function that counts the tokens in a text, or the name of a counter or model; default: the counter of `model`,
        or o200k_base.
    policy : Policy or str, optional
        The pruning policy of the history. Default: none, so the `keep` of the history's section decides.
    context_role : str, default "system"
        Role under which retrieved texts are sent, since chat formats have no role for them.
    framing : Framing, optional
        Tokens that a message costs beyond its text; default: the framing of `model`, or of the counter's model.
    model : str or Model, optional
        The model that answers; it determines the window of a preset, the counter and the framing.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.
    form : {"chat", "responses", "anthropic", "converse", "gemini"}, optional
        The provider's format of the sent messages. Default: the format of the input.
    start_on : {"user", "any"}, default "user"
        Role of the first conversation message in the request. With "user", messages before the first user message that
        fits are omitted from the request and the plan, with a warning.
    as_one : mapping or iterable of str, optional
        Sections whose passages are joined in one message, as in Octopus: names, or a mapping from names to a title or a
        :class:`budgetkit.conversation.reading.Listing`. The plan counts the joint message.
    markers : Mapping
        The marker for cut texts, for each `keep` of a section: "newest", "best" and "first".
    tell : bool, default False
        If true, the last message tells the model how its window is used; see
        :func:`budgetkit.conversation.assembly.describe`.
    **sections
        Content by section: a text, a message, a passage (an object with text, content or page_content, a LangChain
        Document, an Item), a pair of any of these and a score, or a list of such values. None stands for an empty
        section. Texts for the roles system and procedure become system messages. Pass the question by the name of its
        section, or as ``question=``, ``query=``, ``user=`` or ``current=``. The question becomes the last user message.

    Returns
    -------
    Built
        The messages and the plan. An item that is too large is cut if the section allows cutting.

    Raises
    ------
    LookupError
        If the budget has no section of a given name.
    ValueError
        If a section is not text, messages or passages, or the question is given twice or with a role other than "user".

    Examples
    --------
    >>> import budgetkit as bk
    >>> built = build(
    ...     bk.presets.working_memory(2_000, output=200, history_floor=0),
    ...     "gpt-5.4",
    ...     policy=bk.policies.SlidingWindow(1),
    ...     system="Be brief.",
    ...     procedure="Ask for the order's number.",
    ...     knowledge=[("Refunds take five days.", 0.9)],
    ...     history=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}],
    ...     current="Where is my refund?",
    ... )
    >>> [message["role"] for message in built.messages], built.messages[-1]["content"]
    (['system', 'system', 'system', 'user', 'assistant', 'user'], 'Where is my refund?')
    >>> built.plan.used
    52
    """
    setup = setup_of(budget, counter, framing, model, window)
    rules = RequestRules.of(setup, policy, overrun="tell", start_on=start_on, form=form)
    is_pruned = policy is not None or setup.policy is not None
    budget = rules.budget
    count = rules.count
    framing = rules.framing
    roles = dict(budget.roles or DEFAULT_ROLES)
    # The section of the question, by role table or by name.
    question_section = roles.get("current", "current")
    if question_section not in budget.sections:
        usual = (name for name in QUESTION_NAMES if name in budget.sections)
        question_section = next(usual, question_section)
    history = roles.get("user")
    cut = cutter(count, markers=markers)

    # Each section is counted by itself; the question may be in the section of the history.
    parts = {}
    question: list[Item] = []
    for keyword, value in sections.items():
        section, is_question = _section_of(keyword, budget, roles, question_section)
        default_role = "context"
        if not is_question and section in map(roles.get, _INSTRUCT):
            default_role = "system"
        elif is_question or section == question_section:
            default_role = "user"
        section_items = _items(section, _as_list(value), default_role, count, framing)
        if is_question and question:
            raise ValueError(
                f"The question was given twice, once as {brief(keyword)}. Pass it once."
            )
        if is_question:
            # The model's calls, and their results, may follow the question.
            if section_items and section_items[0].payload.role != "user":
                role = section_items[0].payload.role
                raise ValueError(
                    wrong_type("role of the question", role, "'user', or the text alone")
                )
            question = section_items
        else:
            parts[section] = section_items

    # The tokens that a request costs beyond its messages are added to its last message.
    place = {section: number for number, section in enumerate(budget.sections)}
    order = sorted(parts, key=lambda section: place.get(section, len(place)))
    filled = [section for section in order if parts[section]]
    last = None
    has_system = any(
        item.payload.role in SYSTEM_ROLES for section in filled for item in parts[section]
    )
    priming = framing.primed(has_system)
    listings = listings_of(as_one)
    written_parts = [(section, item.payload.raw) for section in parts for item in parts[section]]
    check_listings(listings, written_parts, {**parts, **place})
    if question:
        question = _primed(question, priming)
    elif filled:
        last = question_section if question_section in filled else filled[-1]
        if last not in listings:
            parts[last] = _primed(parts[last], priming)

    # A section that becomes one message is counted as one.
    one_message = {
        section: ListedSection(listing, count, framing, priming if section == last else 0)
        for section, listing in listings.items()
    }

    def planned(items: Sequence[Item]) -> Plan:
        return plan_with_listings(
            items, one_message, cut, lambda priced, cut_priced: fit(budget, priced, cut_priced)
        )

    # A policy prunes the history to the tokens that the other sections and the question leave.
    if is_pruned and history in parts:
        others = [
            item for section in order if section != history for item in parts[section]
        ] + question
        plan = planned(others)
        remaining = plan[history].limit if history in place else plan.free
        remaining -= sum(item.tokens for item in question if item.section == history)
        if last == history:
            parts[history] = _primed(_pruned(parts[history], remaining - priming, rules), priming)
        else:
            parts[history] = _pruned(parts[history], remaining, rules)

    items = [item for section in order for item in parts[section]] + question
    plan = planned(items)
    not_sent: list[Item] = []
    while rules.first_speaker(form) == "user" and (early := _before_user(plan)):
        not_sent += [
            items[place] for place in sorted(early) if plan.decisions[place].outcome != "dropped"
        ]
        items = [item for place, item in enumerate(items) if place not in early]
        plan = planned(items)
    raws = json_value(messages(plan, context_role, question_last=bool(question), as_one=listings))
    if tell and (text := describe(plan, count, framing=framing)):
        raws.append({"role": "system", "content": text})
    check_sendable(map(Message, raws))
    sent = SentRequest.of(
        raws, form or form_of_all(forms_of(raws)), framing, read_tools(tools(plan))
    )
    request = sent.written
    notices = []
    if not_sent:
        size = sum(item.tokens for item in not_sent)
        notices.append(
            f"Omitted {many(len(not_sent), 'message')} ({size:,} tokens) before the first user message, because a "
            'request must start with one. Set start_on="any" to keep all messages.'
        )
    return Built(
        messages=request.messages,
        plan=plan,
        system=system_text(raws[: request.head], request.form),
        warnings=(*plan.warnings[: plan.free < 0], *notices, *sent.warnings),
    )


def _before_user(plan: Plan) -> set[int]:
    """Return the positions of messages before the first kept user message.

    The result is empty if no kept message precedes that user message, or if no user message is kept. Otherwise, dropped
    messages before that user message are included, so that they are not planned again.
    """
    early: set[int] = set()
    begins_with_another = False
    for place, decision in enumerate(plan.decisions):
        role = decision.item.payload.role
        if role not in CHAT_ROLES:
            continue
        if role == "user" and decision.outcome != "dropped":
            return early if begins_with_another else set()
        begins_with_another = begins_with_another or decision.outcome != "dropped"
        early.add(place)
    return set()


def _section_of(
    keyword: str, budget: Budget, roles: Mapping[str, str], question: str
) -> tuple[str, bool]:
    """Return a keyword's section, and whether its value is the question."""
    is_question = keyword in QUESTION_NAMES or (
        keyword == question and keyword != roles.get("user")
    )
    if keyword in budget.sections:
        return keyword, is_question
    if is_question:
        return question, True
    if keyword in roles.values() and budget.undeclared == "pool":
        return keyword, False
    unknown = unknown_section([keyword], budget.sections)
    history = f" The history is {brief(roles['user'])}." if "user" in roles else ""
    raise LookupError(f"{unknown.args[0]}{history} Pass the question as question=.")


async def build_async(
    budget: AnyBudget, counter: AnyCounter | None = None, **options: Any
) -> Built:
    """Build a request, awaiting the contents of its sections concurrently.

    Parameters
    ----------
    budget, counter
        As in `build`.
    **options
        As in `build`; a section may be an awaitable of its content.

    Returns
    -------
    Built
        As in `build`.

    Examples
    --------
    >>> import asyncio
    >>> import budgetkit as bk
    >>> async def find(): return [("Refunds take five days.", 0.9)]
    >>> made = asyncio.run(build_async(bk.presets.rag(4_000), "gpt-5.4", retrieval=find(), user="My refund?"))
    >>> [message["content"] for message in made.messages]
    ['Refunds take five days.', 'My refund?']
    """
    waiting = {name: value for name, value in options.items() if inspect.isawaitable(value)}
    fetched = dict(zip(waiting, await gather(*waiting.values()), strict=True))
    return build(budget, counter, **{**options, **fetched})


def _as_list(value: Any) -> list[Any]:
    """Return a section's value as a list of texts, messages or passages."""
    if value is None or (isinstance(value, str) and not value):
        return []
    loaded = messages_in(value)
    if loaded is not None:
        return [*loaded]
    if hasattr(value, "columns"):  # a frame, which would be read as its column names
        return [value]
    is_pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Real)
    # A library's object, such as a passage, may iterate over its own fields.
    is_several = (
        isinstance(value, Iterable)
        and not hasattr(value, "model_dump")
        and not hasattr(value, "page_content")
    )
    if is_pair or isinstance(value, str | bytes | Mapping | Message | Item) or not is_several:
        return [value]
    return [*value]


def _items(
    section: str, values: list[Any], default_role: str, count: Count, framing: Framing
) -> list[Item]:
    """Convert the contents of one section to counted items."""
    where = f"section {brief(section)}"
    pieces: list[Piece] = []
    # Adjacent values in a provider's format are read together, since they may be parts of one record.
    for is_foreign, group in groupby(values, key=lambda value: provider_form(value) is not None):
        if is_foreign:
            pieces += map(Piece, read_values(group))
        else:
            pieces += [piece_of(value, default_role, where) for value in group if value is not None]
    messages = [piece.message for piece in pieces]
    sizes = framing.messages(messages, count)

    # A tool call is grouped with its results and all other messages of its record.
    owner = {
        call.id: (section, place)
        for place, message in enumerate(messages)
        for call in message.tool_calls
    }
    items: list[Item] = []
    for piece, size in zip(pieces, sizes, strict=True):
        message = piece.message
        call_id = message.tool_calls[0].id if message.tool_calls else message.tool_call_id
        group_id: Hashable = owner.get(call_id or "")
        if group_id is None and items and place_in_record(message.raw)[0]:
            group_id = items[-1].group
        items.append(Item(section, size, score=piece.score, payload=message, group=group_id))
    return items


def _primed(items: list[Item], priming: int) -> list[Item]:
    """Add the priming tokens of a request to its last item."""
    return [
        *items[:-1],
        *(replace(item, tokens=item.tokens + priming) for item in items[-1:]),
    ]


def _pruned(items: list[Item], remaining: int, rules: RequestRules) -> list[Item]:
    """Prune a history to the tokens that remain for it."""
    if not items:
        return []
    section = items[0].section
    framing = rules.framing
    turn = Message({"role": "user", "content": ""})
    has_system = any(item.payload.role in SYSTEM_ROLES for item in items)
    window = max(0, remaining) + framing.primed(has_system) + framing.message(turn, rules.count)
    alone = replace(
        rules,
        budget=Budget(window, (), [Allocation(section)], deficit="signed"),
        roles=dict.fromkeys((*DEFAULT_ROLES, "current", "step"), section),
        section=section,
        form=None,
        start_on="user",
    )
    request, _ = first_request(alone, [*(item.payload for item in items), turn])
    messages = [*map(Message, request.messages[:-1])]
    return _items(section, messages, "context", rules.count, framing)
