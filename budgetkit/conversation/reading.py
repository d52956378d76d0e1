"""Messages in any format, the tokens left for memory, and joined passages.

A provider's message keeps its original record (:mod:`budgetkit.requests.reading.forms`), so that it is sent unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from budgetkit.budget import brief, one_line, unknown_section
from budgetkit.budget.errors import wrong_type
from budgetkit.counters import Count, counter
from budgetkit.inputs.budgets import AnyModel
from budgetkit.message import CHAT_ROLES, ROLES, Data, Message, Raw
from budgetkit.models import DEFAULT_ENCODING
from budgetkit.models import model as look_up
from budgetkit.plan import Item, Plan, allocate
from budgetkit.presets import memory_engine
from budgetkit.requests import FRAMINGS
from budgetkit.requests.reading.formats import value_at
from budgetkit.requests.reading.forms import (
    ROWS,
    Form,
    form_of,
    is_item_among,
    join_answers,
    read_form,
)
from budgetkit.requests.reading.pairing import Pairing, pair_results
from budgetkit.requests.reading.parts import as_list
from budgetkit.trace import json_value, messages_in, messages_of
from budgetkit.trace.importers.documents import as_plain

_OWN = {"role", "content", "name", "tool_call_id", "tool_calls", "contexts"}
#: Fields that are strings in most messages and then need no further checks.
_TEXTS = {"role", "content", "name", "tool_call_id"}
#: A message, or an answer with a message, has at least one of these fields.
_OF_A_MESSAGE = ("role", "type", "content", "parts", "output", "candidates")


def read_values(
    values: Iterable[Any], pairing: Pairing | None = None, form: Form | None = None
) -> list[Message]:
    """Read messages and lists of messages in any known format.

    An ambiguous message is read in the format of the other messages, or in the given format.

    Examples
    --------
    >>> read_values([{"role": "user", "content": "Hello world"}, [{"type": "ai", "content": "Hello."}]])[1].role
    'assistant'
    """
    pairing = Pairing() if pairing is None else pairing
    entries = [entry for value in values for entry in _entries(value)]
    pairing.forms |= ROWS.keys() & {form, *(entry_form for entry_form, _ in entries)}
    if pairing.forms == {"responses"}:
        # Between items of OpenAI Responses, a plain message is an item, and a call belongs to the answer before it.
        entries = [
            ("responses" if is_item_among(value) else entry_form, value)
            for entry_form, value in entries
        ]

    messages: list[Message] = []
    for group_form, group in groupby(entries, key=lambda entry: entry[0]):
        records = [value for _, value in group]
        if group_form == "plain":
            plain = [
                value if isinstance(value, Message) else Message(dict(value)) for value in records
            ]
            pair_results([dict(message.raw) for message in plain], strict=True, pairing=pairing)
            messages += plain
        elif group_form == "other":
            for value in filter(is_item_among, records):
                if "role" not in value:
                    raise ValueError(
                        f"Unknown item {brief(value['type'])} without a role. If it is an item of OpenAI Responses, "
                        'pass form="responses".'
                    )
            # Requests do not accept the extra fields of other formats.
            messages += [
                Message({name: field for name, field in message.raw.items() if name != "native"})
                for message in messages_of(records, pairing)
            ]
        else:
            messages += read_form([_record(value) for value in records], group_form, pairing)
    pairing.forget_answered()
    return [
        message if (raw := json_value(message.raw)) is message.raw else Message(raw)
        for message in join_answers(messages)
    ]


def check_sendable(messages: Iterable[Message]) -> None:
    """Check that messages can be sent and saved as JSON.

    NaN is rejected, too.
    """
    for message in messages:
        raw = message.raw
        if raw.keys() <= _TEXTS and all(type(field) is str for field in raw.values()):
            continue
        try:
            _ = message.contexts, message.tool_calls, message.images
            json.dumps(raw, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            reason = one_line(str(error)).removesuffix(".")
            raise ValueError(
                f"Cannot save a message of role {brief(message.role)}: {reason}. Use only JSON values."
            ) from None


def is_plain(value: Any) -> bool:
    """Return True if a message is in OpenAI's own format, with ids.

    A `Message` counts as being in that format.
    """
    if not isinstance(value, Mapping) or not value.keys() <= _OWN or value.get("role") not in ROLES:
        return isinstance(value, Message)
    content = value.get("content")
    calls = as_list(value.get("tool_calls"))
    has_id = value["role"] != "tool" or value.get("tool_call_id")
    return bool(has_id and (content is None or isinstance(content, str))) and all(
        isinstance(call, Mapping) and "function" in call and call.get("id") for call in calls
    )


def provider_form(value: Any) -> Form | None:
    """Return the provider's format of a message, or None."""
    return next((form for form, _ in _entries(value) if form not in ("plain", "other")), None)


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield messages with their formats: "plain", a provider's, or "other"."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _entries(entry)
        return
    loaded = messages_in(value)
    if loaded is not None:
        yield from _entries(loaded)
        return
    if is_plain(value):
        yield "plain", value
        return
    records = _provider_records(value)
    forms = [form_of(record) for record in records]
    if records and all(forms):
        yield from zip(forms, records, strict=True)
    else:
        yield "other", value


def _provider_records(value: Any) -> list[Any]:
    """Return the messages in a provider's answer, as plain data."""
    is_message = isinstance(value, Mapping) or any(hasattr(value, name) for name in _OF_A_MESSAGE)
    if not is_message:
        return []
    try:
        record = as_plain(_dumped(value))
    except (TypeError, ValueError):
        return []
    if not isinstance(record, dict):
        return []
    if "role" in record or "parts" in record:
        return [record]
    output = record.get("output")
    if isinstance(output, list) and "call_id" not in record:
        return output
    return [value_at(record, "output.message|candidates.0.content") or record]


def _dumped(value: Any) -> Any:
    """Convert an SDK's object to JSON data, with bytes as text.

    Any other value is returned unchanged.
    """
    write = getattr(value, "model_dump", None)
    if isinstance(value, Mapping | type) or not callable(write):
        return value
    try:
        return write(mode="json", exclude_none=True)
    except TypeError:
        return value


def _record(value: Any) -> Data:
    """Return a record without the fields that requests do not accept."""
    raw = dict(value.raw if isinstance(value, Message) else value)
    if raw.get("type") == "message" and "stop_reason" in raw:
        return {"role": raw["role"], "content": raw["content"]}
    return raw


@dataclass(frozen=True)
class MemoryTokens:
    """The memory engine's result for one request, in tokens.

    Parameters
    ----------
    model : str
        The model's name.
    context_window : int
        Context window of the model.
    messages_tokens, directive_tokens : int
        Tokens of the conversation and the directive.
    response_reserve, safety_buffer : int
        Tokens reserved for the answer, and for counting errors.
    memory_tokens : int
        Tokens left for memory, at least 0.
    is_constrained : bool
        True if `memory_tokens` is below 1,000.

    Examples
    --------
    >>> memory_tokens("gpt-4o").memory_tokens
    117501
    """

    model: str
    context_window: int
    messages_tokens: int
    directive_tokens: int
    response_reserve: int
    safety_buffer: int
    memory_tokens: int
    is_constrained: bool


def memory_tokens(
    model: AnyModel, messages: Sequence[Any] = (), directive: str = ""
) -> MemoryTokens:
    """Return the tokens left for memory in a model's window.

    Parameters
    ----------
    model : str or Model
        The model or its name. An unknown name gets a window of 8,192 tokens and cl100k_base, with a warning.
    messages : sequence
        The conversation, in any format that :func:`budgetkit.load_trace` reads.
    directive : str
        Text that is always sent in full.

    Returns
    -------
    MemoryTokens
        The window, the tokens of messages and directive, both reserves, and the tokens left for memory.

    Notes
    -----
    Formula, framing and fields are those of the memory engine's milestone 3.5.2 (document 001).

    Examples
    --------
    >>> result = memory_tokens("gpt-4o", [{"role": "user", "content": "Hello world"}], "Be brief.")
    >>> result.messages_tokens, result.directive_tokens, result.memory_tokens, result.is_constrained
    (10, 3, 117491, False)
    """
    facts = look_up(model)
    count = counter(facts, unknown=DEFAULT_ENCODING)
    budget = memory_engine(facts)
    messages_tokens = FRAMINGS["memory-engine"].request(read_values([messages]), count)
    directive_tokens = count(directive)
    plan = allocate(budget, {"messages": messages_tokens, "directive": directive_tokens})
    return MemoryTokens(
        model=facts.name,
        context_window=facts.window,
        messages_tokens=messages_tokens,
        directive_tokens=directive_tokens,
        response_reserve=budget.sizes["output"],
        safety_buffer=budget.sizes["safety"],
        memory_tokens=plan["memory"].limit,
        is_constrained=plan.is_constrained,
    )


@dataclass(frozen=True)
class Listing:
    r"""A format for joining a section's passages into one text.

    Parameters
    ----------
    title : str
        The first line; default: none.
    entry : str, default "{text}"
        Template for each passage; "{number}" is the passage's position, counting from 1.
    between : str, default "\n\n"
        The separator between two entries, and after the title.

    Raises
    ------
    ValueError
        If the template lacks "{text}".

    Examples
    --------
    >>> print(Listing("Known:", "{number}. {text}", "\n").text(["Refunds take five days.", "Returns are free."]))
    Known:
    1. Refunds take five days.
    2. Returns are free.
    """

    title: str = ""
    entry: str = "{text}"
    between: str = "\n\n"

    def __post_init__(self) -> None:
        try:
            holds_text = "\0" in self.entry.format(number=1, text="\0")
        except (LookupError, ValueError, AttributeError):
            holds_text = False
        if not holds_text:
            expected = 'a template with {text}, such as "{number}. {text}"'
            raise ValueError(wrong_type("entry of a listing", self.entry, expected))

    def text(self, passages: Iterable[str]) -> str:
        """Join the title and the texts of all passages."""
        entries = [
            self.entry.format(number=number, text=text) for number, text in enumerate(passages, 1)
        ]
        return self.between.join([self.title, *entries] if self.title else entries)


AnyListings = Mapping[str, Listing | str] | Iterable[str] | None


def listings_of(value: AnyListings) -> dict[str, Listing]:
    """Convert the argument `as_one` to a Listing for each section."""
    if value is None:
        return {}
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Mapping):
        value = dict.fromkeys(value)
    listings = {}
    for section, listing in value.items():
        if listing is None or isinstance(listing, str):
            listing = Listing(listing or "")
        if not isinstance(listing, Listing):
            raise ValueError(
                wrong_type(f"as_one of section {brief(section)}", listing, "a title or a Listing")
            )
        listings[section] = listing
    return listings


def check_listings(
    listings: Mapping[str, Listing],
    messages: Iterable[tuple[str, Raw]],
    sections: Collection[str],
) -> None:
    """Check that listed sections exist and hold only texts and passages."""
    if unknown := [section for section in listings if section not in sections]:
        raise unknown_section(unknown, sections)
    for section, message in messages:
        is_text = message["role"] not in CHAT_ROLES and isinstance(message.get("content"), str)
        if section in listings and not is_text:
            raise ValueError(
                f"as_one cannot list {brief(section)}: it contains a message of role {brief(message['role'])}. "
                "Leave the section out of as_one."
            )


def plan_with_listings(
    items: Sequence[Item],
    listings: Mapping[str, Listing],
    count: Count,
    cost: Callable[[str, Data], int],
    planned: Callable[[Sequence[Item]], Plan],
) -> Plan:
    """Plan items whose sections may be sent as one message each.

    `count` counts a text, `cost` a section's joint message, and `planned` plans items. The surplus of a section (the
    tokens of its joint message beyond the texts) is added to the section's best kept passage. The kept passages depend
    on the surplus, so planning is repeated until nothing changes. For example, the best passage (300 tokens) may no
    longer fit with a surplus of 12; then the surplus is also added to the second-best passage. Neither a surplus nor
    the number of passages with a surplus ever decreases, so the loop terminates and the plan never understates the
    request. A surplus is negative if the joint message has fewer tokens than the separate texts.
    """
    if not listings:
        return planned(items)
    bare = [
        replace(item, tokens=count(item.payload.text)) if item.section in listings else item
        for item in items
    ]
    surpluses: dict[str, int] = {}
    payers: dict[int, str] = {}
    while True:
        priced = [*bare]
        for place, section in payers.items():
            tokens = max(0, bare[place].tokens + surpluses[section])
            priced[place] = replace(bare[place], tokens=tokens)
        plan = planned(priced)

        has_changed = False
        for section in listings:
            passages = {
                place: decision.item.payload
                for place, decision in enumerate(plan.decisions)
                if decision.section == section and decision.outcome != "dropped"
            }
            raws = [(section, passage.raw) for passage in passages.values()]
            for joint in written_as_one(raws, listings):  # none without passages
                texts = sum(count(passage.text) for passage in passages.values())
                surplus = cost(section, joint) - texts
                if section not in surpluses or surplus > surpluses[section]:
                    surpluses[section] = surplus
                    has_changed = True
                if not payers.keys() & passages.keys():
                    payers[max(passages, key=lambda place: bare[place].score)] = section
                    has_changed = True
        if not has_changed:
            return plan


def written_as_one(
    messages: Sequence[tuple[str, Data]], listings: Mapping[str, Listing]
) -> list[Data]:
    """Join the messages of each listed section into one.

    The joined message takes the place of the section's first message.
    """
    texts: dict[str, list[str]] = {}
    for section, message in messages:
        if section in listings:
            texts.setdefault(section, []).append(message["content"])
    result = []
    for section, message in messages:
        if section not in listings:
            result.append(message)
        elif section in texts:
            result.append({**message, "content": listings[section].text(texts.pop(section))})
    return result
