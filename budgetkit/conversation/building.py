"""build(): make all messages of a request in one call.

`build` counts each section, prunes the history to the tokens that the other sections leave, keeps the best passages,
cuts texts where allowed, and orders the messages. Octopus' manager does the same for every turn, and anchor's pipeline
for every query.
"""

from __future__ import annotations

import inspect
from asyncio import gather
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, groupby
from numbers import Real
from typing import Any

from budgetkit.budget import Allocation, Budget, brief, many, unknown_section
from budgetkit.budget.errors import wrong_type
from budgetkit.conversation.assembly import describe, messages, tools
from budgetkit.conversation.engine import first_request
from budgetkit.conversation.reading import (
    AnyListings,
    check_listings,
    check_sendable,
    is_plain,
    listings_of,
    plan_with_listings,
    provider_form,
    read_values,
)
from budgetkit.conversation.rules import RequestRules
from budgetkit.conversation.sent import SentRequest
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, setup_of
from budgetkit.inputs.conversations import Piece, piece_of
from budgetkit.message import CHAT_ROLES, SYSTEM_ROLES, Data, Message
from budgetkit.plan import Item, Plan, fit
from budgetkit.pruning import Policy, StartOn
from budgetkit.requests import FRAMINGS, Framing, read_tools
from budgetkit.requests.reading.forms import (
    Form,
    compacted_form,
    form_of_all,
    forms_of,
    place_in_record,
    provider_call_ids,
)
from budgetkit.requests.reading.writing import system_text
from budgetkit.trace import DEFAULT_ROLES, json_value, messages_in, unpaired
from budgetkit.truncation.cutting import SECTION_MARKERS, cutter

#: Names for the question in `build`, whatever the budget calls its section.
QUESTION_NAMES = ("question", "query", "user", "current")
#: Roles whose texts instruct the model and are sent as system messages.
_INSTRUCT = ("system", "procedure")
_MOST_ROUNDS = 8  # rounds of planning until the plan has the tokens of its request


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

    # The items of each section, and of the question, which may be in the section of the history.
    parts = {}
    question: list[Item] = []
    for keyword, value in sections.items():
        section, is_question = _section_of(keyword, budget, roles, question_section)
        default_role = "context"
        if not is_question and section in map(roles.get, _INSTRUCT):
            default_role = "system"
        elif is_question or section == question_section:
            default_role = "user"
        section_items = _items(section, _as_list(value), default_role)
        if not is_question:
            parts[section] = section_items
            continue
        if question:
            raise ValueError(
                f"The question was given twice, once as {brief(keyword)}. Pass it once."
            )
        # The model's calls, and their results, may follow the question.
        role = section_items[0].payload.role if section_items else "user"
        if role != "user":
            raise ValueError(wrong_type("role of the question", role, "'user', or the text alone"))
        question = section_items

    # The order of a request, in which each result follows its call.
    place = {section: number for number, section in enumerate(budget.sections)}
    order = sorted(parts, key=lambda section: place.get(section, len(place)))
    items = [item for section in order for item in parts[section]]
    listings = listings_of(as_one)
    raw_parts = ((item.section, item.payload.raw) for item in items)
    check_listings(listings, raw_parts, {**parts, **place})
    # The section that pays for the tokens beyond the messages: that of the question, or of the last message.
    candidates = [*question, *parts.get(question_section, ()), *items[-1:]]
    paying_section = candidates[0].section if candidates else ""
    priming = framing.primed(any(item.payload.role in SYSTEM_ROLES for item in items))
    all_items = items + question
    sent_form = form or form_of_all(forms_of(item.payload.raw for item in all_items))
    first_speaker = rules.first_speaker(sent_form)

    def cut_as_billed(item: Item, limit: int, allocation: Allocation) -> Item | None:
        # A listed passage pays only for its text. Tokens added for the whole request stay with the item.
        own_framing = FRAMINGS["text"] if item.section in listings else framing
        beyond = item.tokens - own_framing.message(item.payload, count)
        shorter = cutter(count, own_framing, markers)(item, limit - beyond, allocation)
        return shorter and replace(shorter, tokens=shorter.tokens + beyond)

    def planned(items: Sequence[Item], surplus: int = 0) -> Plan:
        def cost(section: str, joint: Data) -> int:
            """Count a section's passages, which are sent as one message."""
            return framing.message(joint, count) + (surplus if section == paying_section else 0)

        fitted = partial(fit, budget, cut=cut_as_billed)
        return plan_with_listings(items, listings, count, cost, fitted)

    items = _paired(all_items, rules, sent_form)
    omitted = len(all_items) - len(items)

    # A policy prunes the history to the tokens that the other sections and the question leave.
    question_ids = {id(item.payload) for item in question}
    is_past = [item.section == history and id(item.payload) not in question_ids for item in items]
    if (policy is not None or setup.policy is not None) and any(is_past):
        others = [item for item, past in zip(items, is_past, strict=True) if not past]
        plan = planned(others)
        remaining = (plan[history].limit if history in place else plan.free) - priming
        remaining -= sum(item.tokens for item in others if item.section == history)
        pruned = _pruned([*compress(items, is_past)], remaining, rules, sent_form)
        start = is_past.index(True)
        items = _paired([*others[:start], *pruned, *others[start:]], rules, sent_form)

    # The plan is made again until it has the tokens of its request. Tokens beyond the messages are added to the last
    # message that is kept, and saved tokens are subtracted from the largest.
    not_sent: list[Item] = []
    surplus = priming  # of the last round
    total_surplus = 0  # of all rounds
    kept_places = [*range(len(items))]
    for round_number in range(_MOST_ROUNDS):
        # 1. Add the surplus to a message; that of a listed section is added by `planned`.
        payers = [at for at in kept_places if items[at].section not in listings]
        if payers and paying_section not in listings:
            payer = max(payers, key=lambda at: (items[at].section == paying_section, at))
            if items[payer].tokens + surplus < 0:
                payer = max(payers, key=lambda at: items[at].tokens)
            tokens = max(0, items[payer].tokens + surplus)
            items[payer] = replace(items[payer], tokens=tokens)
        total_surplus += surplus

        # 2. Plan, without the messages before the first user message.
        plan = planned(items, total_surplus)
        while first_speaker == "user" and (early := _before_user(plan)):
            not_sent += [
                items[place] for place in early if plan.decisions[place].outcome != "dropped"
            ]
            items = [item for place, item in enumerate(items) if place not in early]
            plan = planned(items, total_surplus)

        # 3. Write the request, and count it.
        raws = json_value(
            messages(plan, context_role, question_last=bool(question), as_one=listings)
        )
        check_sendable(map(Message, raws))
        toolset = read_tools(tools(plan))
        sent = SentRequest.of(raws, sent_form, framing, toolset)
        surplus = sent.tokens(count) - plan.used
        # A plan that changes with each round has too many tokens rather than too few.
        if surplus == 0 or (surplus < 0 and round_number > _MOST_ROUNDS // 2):
            break
        kept_places = [
            at for at, decision in enumerate(plan.decisions) if decision.outcome != "dropped"
        ]

    if tell and (text := describe(plan, count, framing=framing)):
        raws.append({"role": "system", "content": text})
        sent = SentRequest.of(raws, sent_form, framing, toolset)
    request = sent.written
    notices = []
    if omitted:
        notices.append(
            f"Omitted {many(omitted, 'message')}, because a call has no result or a result has no call. Add the "
            "missing messages."
        )
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
    early: dict[int, bool] = {}
    for place, decision in enumerate(plan.decisions):
        is_kept = decision.outcome != "dropped"
        role = decision.item.payload.role
        if role == "user" and is_kept:
            return {*early} if any(early.values()) else set()
        if role in CHAT_ROLES and not compacted_form(decision.item.payload.raw):
            early[place] = is_kept
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
    is_pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Real)
    is_one = is_pair or isinstance(value, str | bytes | Mapping | Message | Item)
    # A frame may iterate over its column names, and a library's object, such as a passage, over its own fields.
    is_object = any(hasattr(value, name) for name in ("columns", "model_dump", "page_content"))
    if is_one or is_object or not isinstance(value, Iterable):
        return [value]
    return [*value]


def _items(section: str, values: list[Any], default_role: str) -> list[Item]:
    """Convert the contents of one section to items, not yet counted."""
    where = f"section {brief(section)}"
    pieces: list[Piece] = []
    # Adjacent values in a provider's format, and messages between them, are read together, since they may be parts of
    # one record.
    is_foreign = any(map(provider_form, values))
    for is_read, group in groupby(
        values,
        key=lambda value: is_foreign and (is_plain(value) or provider_form(value) is not None),
    ):
        if is_read:
            pieces += map(Piece, read_values(group))
        else:
            pieces += [piece_of(value, default_role, where) for value in group if value is not None]
    return [Item(section, 0, score=piece.score, payload=piece.message) for piece in pieces]


def _paired(items: list[Item], rules: RequestRules, form: Form) -> list[Item]:
    """Count items, and group each call with its results and its record.

    Calls without results, and results without calls, are left out, with the rest of their group. A result that came
    after another message is moved to its call.
    """
    messages = [item.payload for item in items]
    sizes = rules.framing.messages(messages, rules.count, form)
    owners: dict[str, int] = {}
    groups: list[int] = []  # for each item, the place of the first message of its group
    order: list[int] = []  # for each item, the place after which it is sent
    plain = -1  # the last place of a message that is neither a call nor a result
    for place, message in enumerate(messages):
        first = place - place_in_record(message.raw)[0]
        owners.update({call.id: first for call in message.tool_calls})
        groups.append(owners.get(message.tool_call_id or "", first))
        order.append(groups[-1] if groups[-1] < plain else place)
        if not (message.tool_calls or message.tool_call_id):
            plain = place
    # Calls that the provider runs need no result.
    ids = {id for message in messages for id in provider_call_ids(message.raw)}
    results = [Message({"role": "tool", "tool_call_id": id}) for id in ids]
    broken = {groups[place] for place in unpaired([*messages, *results]) if place < len(items)}
    members = Counter(groups)
    paired = []
    for place in sorted(range(len(items)), key=order.__getitem__):
        group = groups[place]
        if group not in broken:
            shared = group if members[group] > 1 else None
            paired.append(replace(items[place], tokens=sizes[place], group=shared))
    return paired


def _pruned(items: list[Item], remaining: int, rules: RequestRules, form: Form) -> list[Item]:
    """Prune a history to the tokens that remain for it."""
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
        form=form,
        start_on="user",
    )
    request, _ = first_request(alone, [*(item.payload for item in items), turn])
    return _items(section, [*map(Message, request.messages[:-1])], "context")
