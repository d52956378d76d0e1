"""Writing chat messages in a provider's format.

A message that was read from that format (:mod:`budgetkit.requests.reading.forms`) is written exactly as read, including
thinking, signatures, cache breakpoints and bytes. In any other format, its thinking is left out. A shortened message is
written as its original record with the shortened text. Empty messages are skipped if the provider rejects them.
Messages from elsewhere, such as a summary, a retrieved passage or a question, are converted to the format.

    form         system text                   adjacent messages of one role
    chat         among the messages            allowed, except after calls; merged here
    responses    among the items               allowed
    anthropic    outside the messages          allowed; the provider merges them
    gemini       outside the contents          the model's messages and tool results are merged here
    converse     outside the messages          not allowed; merged here
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mimetypes import guess_type
from typing import Any, get_args

from budgetkit.budget import check_choice
from budgetkit.message import (
    ORIGIN,
    RESULT_ROLES,
    SYSTEM_ROLES,
    TEXTS_BESIDE,
    Data,
    Message,
    Raw,
    ToolCall,
)
from budgetkit.requests.reading.formats import fill_template, format_table, value_at
from budgetkit.requests.reading.forms import (
    BYTES,
    Form,
    blocks_field,
    forms_of,
    is_bytes,
    origin_of,
)
from budgetkit.requests.reading.parts import as_list, objects_in, sorted_part
from budgetkit.requests.reading.request import parsed

#: The text sent in place of a file, recording or encrypted text that a format cannot hold.
OMISSION = "[a part is left out, because this format cannot hold it]"
# Fields that differ between formats.
_FORM_FIELDS = {"reasoning_content", "tool_calls"}
# Fields of messages read from other formats that OpenAI's chat format does not have.
_FOREIGN = {"reasoning_content", "is_error"}
# Forms with the system text outside the messages.
_BESIDE = ("anthropic", "gemini", "converse")


@dataclass(frozen=True)
class ProviderMessages:
    """The messages of a conversation, written in a provider's format.

    Attributes
    ----------
    form : str
        The format: "chat", "responses", "anthropic", "converse" or "gemini".
    messages : list of dict
        The messages in that format.
    ends : list of int
        For each message, the number of chat messages written up to and including it.
    head : int
        Number of opening system messages that `messages` leaves out, because the provider takes them separately.
    """

    form: str
    messages: list[Data]
    ends: list[int]
    head: int = 0

    def unchanged(self, stable: int) -> int:
        """Count the messages that depend only on the first `stable` chat messages."""
        return sum(end <= stable for end in self.ends)


def write_messages(
    raws: Sequence[Raw], form: str, most_head: int | None = None
) -> ProviderMessages:
    """Write chat messages in a provider's format.

    If the format passes system text separately, up to `most_head` system messages at the start are left out of the
    messages. Default: all of them.

    >>> said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    >>> write_messages(said, "gemini").messages
    [{'role': 'user', 'parts': [{'text': 'Hello'}]}]
    """
    check_choice("form", form, get_args(Form))
    head = 0
    most_head = len(raws) if most_head is None else most_head
    while form in _BESIDE and head < most_head and raws[head]["role"] in SYSTEM_ROLES:
        head += 1
    names = {
        call.id: call.name
        for raw in raws
        if raw.get("tool_calls")
        for call in Message(raw).tool_calls
    }
    messages: list[Data] = []
    ends: list[int] = []
    place = head
    # Each step writes one message, or the parts of one record: [tool 1, tool 2] become a single record.
    while place < len(raws):
        group = [raws[place]] if form == "chat" else _group(raws, place)
        records = _records(group, form, names)
        for record in records:
            if messages and _must_merge(messages[-1], record, form):
                messages[-1] = _merged(messages[-1], record, form)
            else:
                messages.append(record)
                ends.append(place)
        place += len(group)
        if ends:
            ends[-1] = place
    return ProviderMessages(form, messages, ends, head)


def system_text(raws: Sequence[Raw], form: str) -> Any:
    """Return the separate system text in a provider's format.

    Return None if there are no system messages.

    >>> system_text([{"role": "system", "content": "Be brief."}], "gemini")
    {'parts': [{'text': 'Be brief.'}]}
    """
    if not raws:
        return None
    if form == "anthropic":
        if len(raws) == 1 and isinstance(raws[0].get("content"), str):
            return raws[0]["content"]
        return [dict(part) for raw in raws for part in Message(raw).parts]
    texts = [{"text": text} for raw in raws for text in Message(raw).texts]
    return {"parts": texts} if form == "gemini" else texts


def as_it_came(raw: Raw) -> Data:
    """Return the record that a message was read from.

    If the record was split, this is the message's part of the record. A message that was shortened, or was not read
    from a single record, is returned as a chat message.
    """
    origin = origin_of(raw)
    if origin is None or "rewritten" in origin or len(origin["records"]) != 1:
        return as_chat(raw)
    record = dict(origin["records"][0])
    return _with_bytes(record) if origin.get("bytes") else record


def as_they_came(raw: Raw) -> list[Data]:
    """Return all records that a message was read from.

    An answer of OpenAI Responses that leaves whole has several. Those of a later part are listed with the first.
    """
    origin = origin_of(raw)
    if origin is None or "rewritten" in origin or origin["form"] != "responses":
        return [as_it_came(raw)]
    return [dict(record) for record in origin["records"]]


def as_chat(raw: Raw) -> Data:
    """Return a chat message without its origin and native record.

    A field ``origin`` that is not a valid origin is kept.

    >>> origin = {"form": "gemini", "records": [{"role": "user", "parts": [{"text": "Hello"}]}]}
    >>> as_chat({"role": "user", "content": "Hello", "origin": origin})
    {'role': 'user', 'content': 'Hello'}
    """
    sources = {"native"} if origin_of(raw) is None else {"native", ORIGIN}
    if not raw.keys() & sources:
        return raw  # type: ignore[return-value]  # read as a dict
    return {name: value for name, value in raw.items() if name not in sources}


def _group(raws: Sequence[Raw], start: int) -> Sequence[Raw]:
    """List the messages of one record, starting at a position.

    For example, an Anthropic record with two results and a text became three messages. If the second message was
    dropped, the first and third are still written as one record; the next record starts with its own first part:

    >>> def part_of(record, part):
    ...     records = [{"role": "user", "content": [record]}]
    ...     return {"role": "user", "origin": {"form": "anthropic", "records": records, "part": part, "parts": 3}}
    >>> raws = [part_of("one", 0), part_of("one", 2), part_of("another", 0)]
    >>> [len(_group(raws, start)) for start in (0, 2)]
    [2, 1]
    """
    end = start + 1
    origin = origin_of(raws[start])
    while origin is not None and "parts" in origin and end < len(raws):
        following = origin_of(raws[end])
        if (
            following is None
            or following.get("parts") != origin["parts"]
            or ("places" in following) != ("places" in origin)
            or following["part"] <= origin["part"]
        ):
            break
        origin = following
        end += 1
    return raws[start:end]


def _records(group: Sequence[Raw], form: str, names: Mapping[str, str]) -> list[Data]:
    """Write one message, or one record's messages, in a provider's format."""
    origins = [origin for raw in group if (origin := origin_of(raw)) is not None]
    records = []
    if origins and (origins[0]["form"] == form or _is_shared(group[0], form)):
        records = origins[0]["records"]
    has_bytes = bool(records) and any(origin.get("bytes") for origin in origins)
    is_cut = any("rewritten" in origin for origin in origins)
    if records and "places" in origins[0]:
        records = [_join_pieces(group, form)]
    elif records and is_cut and len(group) == 1:
        records = [_with_text(record, group[0], form) for record in records]
    elif not records or is_cut:
        records = [record for raw in group for record in _from_chat(raw, form, names)]
    if has_bytes:
        return [_with_bytes(record) for record in records]
    return list(records)


def _is_shared(raw: Raw, form: str) -> bool:
    """Return True if a chat message is also valid in another format.

    Such a message has blocks of unknown types, which can be written only as they came.
    """
    origin = raw[ORIGIN]
    is_typed = origin["form"] == "chat" and form in ("anthropic", "responses")
    is_spoken = raw["role"] not in RESULT_ROLES and not raw.keys() & _FORM_FIELDS
    return is_typed and is_spoken and origin["records"][0].keys() == {"role", "content"}


def _with_bytes(value: Any) -> Any:
    """Restore bytes in a value that was converted for saving."""
    if isinstance(value, list | tuple):
        return [_with_bytes(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    if is_bytes(value):
        try:
            return b64decode(value[BYTES], validate=True)
        except (Error, ValueError):  # the text was changed, for example redacted
            return dict(value)
    return {name: _with_bytes(part) for name, part in value.items()}


def _join_pieces(group: Sequence[Raw], form: str) -> Data:
    """Join the remaining pieces of a split record, in order."""
    field = blocks_field(form)
    placed: list[tuple[int, Any]] = []
    for raw in group:
        origin = raw[ORIGIN]
        record = origin["records"][0]
        if "rewritten" in origin:
            record = _with_text(record, raw, form)
        # A text that replaces several blocks takes the position of the first.
        placed += zip(origin["places"], record.get(field) or (), strict=False)
    blocks = [block for _, block in sorted(placed, key=lambda pair: pair[0])]
    return {**group[0][ORIGIN]["records"][0], field: blocks}


def _with_text(record: Raw, raw: Raw, form: str) -> Data:
    """Replace the text in a record with a message's text.

    If the record has a tool result, the result's text is replaced. Parts without text, such as images, are kept. A tool
    result that must not be shortened, and an item of OpenAI Responses without content or output, are returned
    unchanged. Texts outside the content, such as Cohere's tool plan, are part of the new text.
    """
    text = Message(raw).text
    if Message(raw).is_whole:
        return dict(record)
    record = {name: value for name, value in record.items() if name not in TEXTS_BESIDE}
    if form == "responses":
        if "output" in record:
            part = {"type": "input_text", "text": text}
            return {**record, "output": _with_others(part, _others(record["output"]))}
        if "content" not in record:
            return dict(record)
    field = blocks_field(form)
    blocks = record.get(field)
    if not isinstance(blocks, list | tuple):
        return {**record, field: text}

    done = False
    changed: list[Any] = []
    for block in blocks:
        kinds = {kind for kind, _ in sorted_part(block)}
        if "result" in kinds:
            changed.append(_result_with(block, text))
        elif kinds == {"text"} and not _others([block]):
            if not done:
                has_text = isinstance(block, Mapping) and isinstance(block.get("text"), str)
                part = {"type": "text", "text": text}
                changed.append({**block, "text": text} if has_text else _block(part, form))
            done = True
        else:
            changed.append(block)
    return {**record, field: changed}


def _result_with(block: Raw, text: str) -> Data:
    """Return a tool result's block with its text replaced."""
    for name in ("toolResult", "functionResponse", "function_response"):
        inner = block.get(name)
        if isinstance(inner, Mapping):
            if name != "toolResult":  # Gemini's images are outside the response
                return {**block, name: {**inner, "response": {"result": text}}}
            contents = [{"text": text}, *_others(inner.get("content"))]
            return {**block, name: {**inner, "content": contents}}
    part = {"type": "text", "text": text}
    return {**block, "content": _with_others(part, _others(block.get("content")))}


def _others(content: Any) -> list[Raw]:
    """List the parts without text, such as images and files."""
    return [
        part
        for part in objects_in(content)
        if not any("text" in value for kind, value in sorted_part(part) if kind == "text")
    ]


def _with_others(text: Data, others: Sequence[Raw]) -> Any:
    """Combine a text part with other parts in a list.

    An empty text is left out, because providers reject it. If there are no other parts, return the text itself.
    """
    if text["text"].strip():
        return [text, *others] if others else text["text"]
    return others or text["text"]


def _from_chat(raw: Raw, form: str, names: Mapping[str, str]) -> list[Data]:
    """Convert a message to the provider's format, or skip an empty one."""
    message = Message(raw)
    if form == "chat":
        chat = {**as_chat(raw)}
        if forms_of([raw]) - {form}:
            for field in _FOREIGN & chat.keys():
                del chat[field]
            if Message(chat).is_empty:
                return []
        if message.uncounted and isinstance(raw["content"], list):
            chat["content"] = [_media(part, form) for part in message.parts]
        return [chat]
    if form == "responses":
        return _items(message)
    speaker = "user"
    if message.role == "assistant":
        speaker = "model" if form == "gemini" else "assistant"
    if message.role == "tool" and message.tool_call_id:
        blocks = [_result_block(message, form, names)]
    else:
        blocks = [_block(part, form) for part in _parts_to_send(message)]
        blocks += [_call_block(call, form) for call in message.tool_calls]
        texts = [block.get("text") for block in blocks]
        if form == "anthropic" and texts == [raw.get("content") or ""]:
            blocks = raw["content"]  # a single text, sent as a string
    if not blocks:
        return []
    return [{"role": speaker, blocks_field(form): blocks}]


def _parts_to_send(message: Message) -> list[Raw]:
    """List the parts of a message without empty texts, which providers reject.

    Refusals become texts, and so does Cohere's tool plan in place of a missing content.
    """
    parts = [
        {"type": "text", "text": part["refusal"]} if "refusal" in part else part
        for part in message.parts or [{"type": "text", "text": message.text}]
    ]
    for image in as_list(message.raw.get("images")):  # Ollama's
        kind = format_table("media")["images"].get(str(image)[:4])
        url = f"data:image/{kind};base64,{image}" if kind else image
        parts.append({"type": "image_url", "image_url": {"url": url}})
    if message.raw.get("audio"):  # of an answer of OpenAI
        text = value_at(message.raw, "audio.transcript") or OMISSION
        parts.append({"type": "text", "text": text})
    # A part without the key "text" is sent, such as an image.
    return [part for part in parts if "text" not in part or str(part["text"] or "").strip()]


def _items(message: Message) -> list[Data]:
    """Convert a message to items of OpenAI Responses.

    Each call becomes a separate item, and a tool result becomes a single item.

    >>> call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    >>> for item in _items(Message({"role": "assistant", "content": "I look.", "tool_calls": [call]})):
    ...     print(item)
    {'role': 'assistant', 'content': 'I look.'}
    {'type': 'function_call', 'call_id': '1', 'name': 'look', 'arguments': '{}'}
    """
    if message.role in RESULT_ROLES and message.tool_call_id:
        return [_result_block(message, "responses", {})]
    items: list[Data] = []
    parts = _parts_to_send(message)
    if parts or not message.tool_calls:
        content = message.raw.get("content")
        kind = "output_text" if message.role == "assistant" else "input_text"
        if not isinstance(content, str) or len(parts) > 1:
            content = [_block(part, "responses", kind) for part in parts]
        role = "user" if message.role in RESULT_ROLES else message.role
        items.append({"role": role, "content": content or ""})
    return items + [_call_block(call, "responses") for call in message.tool_calls]


def _block(part: Raw, form: str, text_type: str = "input_text") -> Data:
    """Convert a text, an image or a file to a block, leaving other parts unchanged.

    Only OpenAI Responses has several types of texts.
    """
    part = _media(part, form)
    if form == "responses" and part.get("type") == "text":
        return {"type": text_type, "text": part.get("text")}
    if form in ("gemini", "converse") and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    return part


def _media(part: Raw, form: str) -> Data:
    """Convert an image, a file or a recording to the provider's format.

    A note replaces a file, recording or encrypted text that the format cannot hold. Any other part is unchanged.
    """
    if "encrypted_content" in part:
        return {"type": "text", "text": OMISSION}
    table = format_table("media")
    data, address, mime, name, short_type = (value_at(part, path) for path in table["paths"])
    if not isinstance(data or address, str) or part.get("type") in table["unchanged"].get(form, ()):
        return dict(part)
    header, has_header, encoded = str(data or "").rpartition(";base64,")
    is_image = part.get("type") == "image_url"
    if is_image and not has_header:
        address, encoded = data, ""
    if short_type:
        mime = f"audio/{short_type}" if "input_audio" in part else guess_type(f"a.{short_type}")[0]
    guess = header.removeprefix("data:") or guess_type(str(name))[0] or "application/pdf"
    mime = str(mime or guess)
    values = {
        "data": encoded,
        "address": address,
        "url": f"data:{mime};base64,{encoded}",
        "mime": mime,
        "name": name or "file.pdf",
        "title": re.sub(r"[^\w -]", "-", str(name or "file"), flags=re.ASCII),
        "subtype": re.sub("jpg$", "jpeg", mime.partition("/")[2]),
        "audio": "wav" if "wav" in mime else "mp3",
        "image": data,
        "detail": value_at(part, "image_url.detail"),
    }
    medium = "image" if is_image else mime.partition("/")[0 if mime.startswith("audio") else 2]
    if not encoded:
        medium = f"{medium} address" if is_image or str(address).startswith("http") else ""
    templates = table["templates"].get(medium, {})
    if encoded:
        templates = table["templates"]["any"] | templates
    fallback = dict(part) if is_image else {"type": "text", "text": OMISSION}
    return fill_template(templates[form], values) if form in templates else fallback


def _call_id(id: str) -> str:
    """Replace an id's invalid characters with underscores.

    Anthropic and Bedrock accept only letters, digits, "_" and "-".
    """
    return re.sub(r"[^\w-]", "_", id, flags=re.ASCII)


def _call_block(call: ToolCall, form: str) -> Data:
    """Convert a tool call to a block, or to an item of OpenAI Responses."""
    values = parsed(call.arguments or "{}")
    fields = {
        "id": call.id,
        "key": _call_id(call.id),
        "name": call.name,
        "arguments": call.arguments,
        "values": values if isinstance(values, Mapping) else {"value": values},
    }
    return fill_template(format_table("templates")["calls"][form], fields)


def _result_block(message: Message, form: str, names: Mapping[str, str]) -> Data:
    """Convert a tool result, with its images, to a block or an item."""
    id = message.tool_call_id or ""
    text = _block({"type": "text", "text": message.text}, form)
    others = [_block(part, form) for part in _others(message.raw.get("content"))]
    failed = message.raw.get("is_error") is True
    fields = {
        "id": id,
        "key": _call_id(id),
        "name": message.name or names.get(id, ""),
        "text": message.text,
        "others": others or None,
        "content": _with_others(text, others),
        "contents": _with_others(text, others) if others else [text],
        "failed": failed or None,
        "status": "error" if failed else None,
    }
    return fill_template(format_table("templates")["results"][form], fields)


def _must_merge(before: Raw, record: Raw, form: str) -> bool:
    """Return True if two adjacent messages must be merged.

    Gemini's and Converse's messages with equal roles are merged. Two user messages for Gemini are merged only if both
    contain tool results. In OpenAI's chat format, an assistant message is merged with calls before it, because only
    their results may follow.
    """
    if form == "chat":
        return bool(before.get("tool_calls")) and record["role"] == "assistant"
    if form not in ("gemini", "converse") or before.get("role") != record.get("role"):
        return False
    if form == "gemini" and before.get("role") != "model":
        results = "parts.*.functionResponse|parts.*.function_response"
        return all(value_at(message, results) for message in (before, record))
    field = blocks_field(form)
    return isinstance(before.get(field), list) and isinstance(record.get(field), list)


def _merged(before: Raw, record: Raw, form: str) -> Data:
    """Return one message with the content and calls of two."""
    merged = {**record, **before}
    for field in (blocks_field(form), "tool_calls"):
        values = [message[field] for message in (before, record) if message.get(field)]
        if len(values) > 1:
            values = [[{"type": "text", "text": v}] if isinstance(v, str) else v for v in values]
            merged[field] = [*values[0], *values[1]]
        elif values:
            merged[field] = values[0]
    return merged
