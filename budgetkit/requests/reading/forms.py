"""Providers' message formats ("forms"), and their conversion to the chat format.

    form         a message                                               unique features
    responses    {"type": "function_call", ...}                          items with a type and no role; input_text
    anthropic    {"role": "user", "content": [{"type": "tool_result"}]}  blocks of these types
    converse     {"role": "user", "content": [{"toolResult": {}}]}       blocks without a type
    gemini       {"role": "model", "parts": [{"functionCall": {}}]}      parts

Any other message is in OpenAI's chat format, or can be sent in it. A message read from another format keeps its origin,
so that it can be sent unchanged (:mod:`budgetkit.requests.reading.writing`):

    {"role": "tool", "tool_call_id": "1", "content": "Lisbon",
     "origin": {"form": "anthropic", "records": [{"role": "user", "content": [{"type": "tool_result", ...}]}],
                "places": [0], "part": 0, "parts": 2}}

A record with several tool results is split into one record per result; `places` are the positions of the message's
blocks in the original record, `part` is the number of the message, and `parts` is the number of messages from the
record. Some records become several messages but cannot be split, such as an answer with results of the provider's own
tools, or an answer of OpenAI Responses with reasoning. In that case, the first message has all records of the answer,
and the other messages are only marked as parts. A shortened message is marked as rewritten, and a result that must not
be shortened is marked as whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, cast, get_args

from budgetkit.message import ORIGIN, RESULT_ROLES, ROLES, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.requests.reading.formats import format_named
from budgetkit.requests.reading.pairing import Pairing, pair_results
from budgetkit.requests.reading.parts import as_list, objects_in, sorted_part
from budgetkit.requests.reading.records import Records, is_generic, is_record, read_records

Form = Literal["chat", "responses", "anthropic", "converse", "gemini"]
_SPEAKERS = ("user", "assistant", *SYSTEM_ROLES)

#: Key for bytes stored as text in a saved message: {"type": "file", "base64": "QUJD"}.
BYTES = "base64"

#: Name of each form's row in the table of formats.
ROWS: Mapping[str, str] = {
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "converse": "bedrock",
}
#: Fields of a message in OpenAI's chat format, or in a similar one, that Anthropic's messages do not have.
_CHAT_FIELDS = ("tool_calls", "tool_plan", "tool_call_id")
#: Anthropic's block types, with the field that tells them from other formats' blocks of the same type.
_ANTHROPIC: Mapping[str, str] = {
    "tool_use": "input",
    "tool_result": "tool_use_id",
    "server_tool_use": "input",
    "mcp_tool_use": "input",
    "thinking": "signature",  # Mistral's and Cohere's thinking has none
    "redacted_thinking": "data",
    "image": "source",
    "document": "source",
    "search_result": "source",
    "compaction": "content",
    "container_upload": "file_id",
}
#: Types of calls that the provider runs itself.
_PROVIDER_CALLS = ("server_tool_use", "mcp_tool_use", "mcp_call")
#: Types of items other than messages in a request to OpenAI Responses.
_ITEMS = (
    "reasoning",
    "item_reference",
    "mcp_list_tools",
    "mcp_approval_request",
    "additional_tools",
)
#: Endings of the types of items that are not part of the model's answer.
_OUTSIDE_ANSWERS = ("_output", "_approval_response", "compaction", "compaction_summary")
_ITEM_ENDINGS = ("_call", *_OUTSIDE_ANSWERS)
_CHAT_PARTS = ("text", "image_url", "file", "input_audio")
_ITEM_PARTS = ("input_text", "output_text", "input_image", "input_file")
#: Fields of a message in a request to OpenAI Responses.
_ITEM_FIELDS = {"type", "id", "role", "content", "status", "phase"}


def form_of(record: Any) -> Form | None:
    """Return a message's provider format, or None for an unknown format.

    >>> form_of({"role": "model", "parts": [{"text": "Hello."}]}), form_of({"role": "user", "content": "Hello"})
    ('gemini', 'chat')
    """
    if not isinstance(record, Mapping):
        return None
    parts = record.get("parts")
    if isinstance(parts, list | tuple) and "content" not in record:
        return None if any("type" in part for part in objects_in(parts)) else "gemini"

    kind = str(record.get("type"))
    if kind in _ITEMS or ("role" not in record and kind.endswith(_ITEM_ENDINGS)):
        return "responses"
    blocks = objects_in(record.get("content"))
    is_chat = _is_chat(record, blocks)
    if record.get("role") in _SPEAKERS:
        if kind == "message":  # an unmodified answer of Anthropic has a reason
            return "anthropic" if "stop_reason" in record else "responses"
        if any(block.get("type") in _ITEM_PARTS for block in blocks):
            return "responses"
        if blocks and all("type" not in block for block in blocks):
            return "converse"
        if any(map(_is_anthropic, blocks)) and not (is_chat and any(map(record.get, _CHAT_FIELDS))):
            return "anthropic"
    return "chat" if is_chat else None


def is_item_among(record: Any) -> bool:
    """Return True if a record can be an item of OpenAI Responses.

    The records around it are such items. Items of unknown types are accepted, and so are messages that could also be in
    another format.

    >>> is_item_among({"type": "new_item", "id": "1"}), is_item_among({"role": "tool", "content": "Hello"})
    (True, False)
    """
    if not isinstance(record, Mapping):
        return False
    kind = record.get("type")
    if record.get("role") in _SPEAKERS:
        # Items have no blocks of these types, but messages in OpenAI's chat format do.
        blocks = objects_in(record.get("content"))
        is_chat = any(block.get("type") in _CHAT_PARTS for block in blocks)
        return kind not in (None, "message") or (record.keys() <= _ITEM_FIELDS and not is_chat)
    return isinstance(kind, str) and not is_record(record)


def _is_chat(record: Raw, blocks: Sequence[Raw]) -> bool:
    """Return True for a message in OpenAI's chat format.

    The message may have blocks of unknown types. A message that another program writes in its own format is converted
    instead.
    """
    return (
        record.get("role") in ROLES
        and is_generic(record)
        and all("function" in c or "custom" in c for c in objects_in(record.get("tool_calls")))
        and all(map(_is_chat_block, blocks))
    )


def _is_chat_block(block: Raw) -> bool:
    """Return True for a content block that needs no conversion."""
    kind = block.get("type")
    if kind in ("thinking", "text"):  # Mistral's and Cohere's thinking
        return kind == "thinking" or isinstance(block.get("text"), str)
    return isinstance(kind, str) and all(
        sort == "text" and (value["type"] != "image_url" or kind == "image_url")
        for sort, value in sorted_part(block)
    )


def _is_anthropic(block: Raw) -> bool:
    kind = str(block.get("type"))
    own_field = "tool_use_id" if kind.endswith("_tool_result") else _ANTHROPIC.get(kind, "")
    return own_field in block


def pieces(record: Raw, form: str) -> list[tuple[Data, tuple[int, ...]]]:
    """Split a record into its tool results and all other blocks.

    Each piece comes with the positions of its blocks. A record is split if it has at least two blocks, one or more tool
    results and no calls. Any other record, and any record in OpenAI's chat or Responses format, is returned whole,
    without positions.

    >>> blocks = [{"functionResponse": {"name": "a", "response": {}}}, {"text": "And now?"}]
    >>> [places for _, places in pieces({"role": "user", "parts": blocks}, "gemini")]
    [(0,), (1,)]
    """
    field = blocks_field(form)
    blocks = as_list(record.get(field))
    whole: list[tuple[Data, tuple[int, ...]]] = [(dict(record), ())]
    if form in ("chat", "responses") or len(blocks) < 2:
        return whole
    kinds = [{kind for kind, _ in sorted_part(block)} for block in blocks]
    results = [place for place, kind in enumerate(kinds) if "result" in kind]
    if not results or any("call" in kind for kind in kinds):
        return whole
    others = [place for place in range(len(blocks)) if place not in results]
    cuts = [(place,) for place in results] + ([tuple(others)] if others else [])
    return [({**record, field: [blocks[place] for place in cut]}, cut) for cut in cuts]


def blocks_field(form: str) -> str:
    """Return the name of the field with a message's blocks."""
    return "parts" if form == "gemini" else "content"


def read_form(records: Sequence[Raw], form: str, pairing: Pairing) -> list[Message]:
    """Convert records of one format to chat messages with their origins.

    A chat message that needs no conversion gets no origin.

    >>> (message,) = read_form([{"role": "model", "parts": [{"text": "Hello."}]}], "gemini", Pairing())
    >>> message.text, message.raw["origin"]["records"]
    ('Hello.', [{'role': 'model', 'parts': [{'text': 'Hello.'}]}])
    """
    row = format_named(ROWS[form]) if form in ROWS else None
    read = Records()
    origins: list[Data] = []
    for record in records:
        cut = pieces(record, form)
        for part, (piece, places) in enumerate(cut):
            before = len(read.messages)
            read_records([piece], row, read=read)
            new = len(read.messages) - before
            origin: Data = {"form": form, "records": [piece]}
            if not new and origins:  # the piece was added to the previous message
                origins[-1]["records"].append(piece)
            elif len(cut) > 1:
                origins.append({**origin, "places": list(places), "part": part, "parts": len(cut)})
            else:
                origins += _part_origins(origin, new)
    pair_results(read.messages, strict=True, pairing=pairing)
    messages = []
    for raw, origin in zip(read.messages, origins, strict=True):
        fields = {name: value for name, value in raw.items() if name != "native"}
        if any(map(_holds_bytes, origin["records"])):
            origin["bytes"] = True
        if raw["role"] in RESULT_ROLES and _is_whole(origin):
            origin["whole"] = True
        is_unchanged = form == "chat" and origin["records"] == [fields]
        messages.append(Message(fields if is_unchanged else {**fields, ORIGIN: origin}))
    return messages


def _part_origins(origin: Data, number: int) -> list[Data]:
    """Return the origins of several messages from the same records.

    The first message has all records. The origin of a single message is not marked as a part.
    """
    if number == 1:
        return [origin]
    return [
        {**origin, "records": [] if part else origin["records"], "part": part, "parts": number}
        for part in range(number)
    ]


def _is_answer(message: Message) -> bool:
    """Return True for items that the model writes in OpenAI Responses."""
    origin = origin_of(message.raw) or {}
    return (
        origin.get("form") == "responses"
        and message.role in ("assistant", "tool")
        and not any(str(r.get("type")).endswith(_OUTSIDE_ANSWERS) for r in origin["records"])
    )


def join_answers(messages: Sequence[Message]) -> list[Message]:
    """Join the items of each answer, or mark them as parts of one record.

    OpenAI Responses rejects reasoning without the items that follow it in its answer, and these items without their
    reasoning.

    >>> items = [{"type": "reasoning", "id": "rs_1"}, {"role": "assistant", "content": "Hello."}]
    >>> read = [message for item in items for message in read_form([item], "responses", Pairing())]
    >>> [len(message.raw["origin"]["records"]) for message in join_answers(read)]
    [2]
    """
    joined: list[Message] = []
    for is_answer, group in groupby(messages, _is_answer):
        answer = [*group]
        records = [r for m in answer if is_answer for r in m.raw[ORIGIN]["records"]]
        if len(answer) > 1 and records:  # they may have been read one by one
            answer = read_form(records, "responses", Pairing())
        if len(answer) > 1 and any(record.get("type") == "reasoning" for record in records):
            origins = _part_origins(
                {"form": "responses", "records": records, "whole": True}, len(answer)
            )
            answer = [
                Message({**message.raw, ORIGIN: origin})
                for message, origin in zip(answer, origins, strict=True)
            ]
        joined += answer
    return joined


def provider_call_ids(raw: Raw) -> set[str]:
    """Return the ids of a record's calls that the provider runs itself.

    An answer that paused at such a call is sent back without the result.
    """
    records = (origin_of(raw) or {}).get("records", ())
    return {
        str(b.get("id")) for r in records for b in _blocks(r) if b.get("type") in _PROVIDER_CALLS
    }


def compacted_form(raw: Raw) -> str | None:
    """Return the format of a message with its provider's summary of earlier messages.

    Return None for any other message.
    """
    origin = origin_of(raw) or {"records": ()}
    return origin["form"] if any(map(is_compaction, origin["records"])) else None


def is_compaction(record: Raw) -> bool:
    """Return True if a record has its provider's summary of earlier messages.

    A summary without content failed, and the provider ignores it.

    >>> is_compaction({"role": "assistant", "content": [{"type": "compaction", "content": "The user asked."}]})
    True
    """
    return any(
        str(block.get("type")).startswith("compaction") and block.get("content", block)
        for block in _blocks(record)
    )


def _blocks(record: Raw) -> list[Raw]:
    """List a record and its content blocks."""
    return [record, *objects_in(record.get("content"))]


def _holds_bytes(value: Any) -> bool:
    """Return True if a record contains saved bytes.

    Requests sent with boto3 may contain bytes.
    """
    if isinstance(value, Mapping):
        return is_bytes(value) or any(map(_holds_bytes, value.values()))
    return isinstance(value, list) and any(map(_holds_bytes, value))


def is_bytes(value: Raw) -> bool:
    """Return True if a saved object represents bytes.

    >>> is_bytes({"type": "file", "base64": "QUJD"})
    True
    """
    return value.get("type") == "file" and isinstance(value.get(BYTES), str) and len(value) == 2


def form_of_all(forms: Collection[str]) -> Form:
    """Return the format in which to send messages of the given formats.

    If ``forms`` has exactly one format other than chat, return that format; otherwise, return "chat".

    >>> form_of_all({"gemini"}), form_of_all({"gemini", "anthropic"})
    ('gemini', 'chat')
    """
    others = {*forms} - {"chat"}
    return cast(Form, others.pop()) if len(others) == 1 else "chat"


def origin_of(raw: Raw) -> Raw | None:
    """Return a message's origin, or None if it is missing or invalid.

    >>> origin_of({"role": "user", "content": "Hello", "origin": "a form"}) is None
    True
    """
    origin = raw.get(ORIGIN)
    if not isinstance(origin, Mapping) or origin.get("form") not in get_args(Form):
        return None
    records = origin.get("records")
    if records != objects_in(records):
        return None
    if "parts" not in origin:
        return origin if records else None
    numbers = [origin.get("part"), origin["parts"], *(origin.get("places") or ())]
    return origin if all(type(number) is int for number in numbers) else None


def forms_of(raws: Iterable[Raw]) -> set[str]:
    """Return the provider formats that messages were read from.

    >>> forms_of([{"role": "user", "content": "Hello"}])
    set()
    """
    return {origin["form"] for raw in raws if (origin := origin_of(raw)) is not None}


def place_in_record(raw: Raw) -> tuple[int, int]:
    """Count a record's messages before and after a given message.

    Both numbers are 0 if the record has no other message, or can be split.
    """
    origin = origin_of(raw)
    if origin is None or "parts" not in origin or "places" in origin:
        return 0, 0
    return origin["part"], origin["parts"] - origin["part"] - 1


def _is_whole(origin: Raw) -> bool:
    """Return True if a tool result must not be shortened.

    The text of a result is never shortened if its record would become invalid.
    """
    if "parts" in origin and "places" not in origin:
        return True
    record = origin["records"][-1]
    if origin["form"] == "responses":
        output = record.get("output")
        parts = objects_in(output) or [{}]
        return not isinstance(output, str) and any("type" not in part for part in parts)
    blocks = objects_in(record.get("content"))
    return origin["form"] == "anthropic" and any(block["type"] != "tool_result" for block in blocks)
