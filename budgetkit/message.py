"""Messages in OpenAI's chat format, and their contents.

A message keeps the dictionary that it was made from, so unknown fields are preserved. All other attributes are read
from that dictionary: the text, the tool calls, the images, the retrieved passages, and the parts whose tokens cannot be
counted.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_
from typing import Any

from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.errors import wrong_kind, wrong_type
from budgetkit.budget.quoting import brief, nearest_name, quoted

#: A JSON object as read, and a JSON object under construction.
Raw = Mapping[str, Any]
Data = dict[str, Any]

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
#: Roles of a conversation's messages, excluding the roles for instructions.
CHAT_ROLES = frozenset({"user", "assistant", *RESULT_ROLES})
ROLES = (*SYSTEM_ROLES, "user", "assistant", *RESULT_ROLES)
#: The field that keeps the provider's record of a message; see :mod:`budgetkit.requests.reading.forms`.
ORIGIN = "origin"
_IMAGE_PARTS = ("image_url", "input_image", "image")
_TEXT_FIELDS = ("text", "refusal")
#: Fields beside the content with further text: a refusal, and Cohere's plan before a tool call.
TEXTS_BESIDE = ("tool_plan", "refusal")
#: Fields other than the content that a provider reads as content.
_OTHER_CONTENT = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "images",
    "audio",
    "contexts",
)

# Audio and images that some providers store outside the content.
_SHOWN_BESIDE = ("audio", "images")

# Keys of a message whose values are counted, and similar keys that are correct as well.
_COUNTED_KEYS = ("content", "tool_calls", "function_call", "reasoning_content", "refusal", "parts")
_MESSAGE_KEYS = {
    *_COUNTED_KEYS,
    *("context", "contexts", "contents", "tool_call", "tool_call_id", "part", "party"),
}
_SURROGATES = re.compile("[\ud800-\udfff]+")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Keys of the function, or the custom tool, that a message calls.
_CALLED_KEYS = {"name", "arguments", "input", "parsed_arguments"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call made by the assistant."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """The properties of an image that determine its tokens."""

    width: int | None = None
    height: int | None = None
    detail: str = "auto"
    url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was retrieved for a message."""

    raw: Mapping[str, Any]

    @classmethod
    def of(cls, value: object) -> Passage:
        r"""Create a passage from a text or a dictionary.

        A dictionary holds the text under "text", "content" or "page_content".

        Examples
        --------
        >>> Passage.of({"title": "Refunds", "text": "Paid back in five days."}).text
        'Refunds\nPaid back in five days.'
        """
        fields = value if isinstance(value, Mapping) else {"text": value}
        for name in ("text", "content", "page_content"):
            if isinstance(fields.get(name), str):
                return cls({**fields, "text": fields[name]})
        raise ValueError(
            f"Context passage without text: it has {_field_names(fields)}. Put its text under 'text'."
        )

    @property
    def text(self) -> str:
        """The passage as sent: its title, if any, above its text.

        A title that already begins the text is not repeated.
        """
        title = self.raw.get("title")
        text = str(self.raw["text"])
        if isinstance(title, str) and not text.startswith(title):
            return f"{title}\n{text}"
        return text

    @property
    def score(self) -> float | None:
        """The retriever's relevance score, or None if not a finite number."""
        score: Any = self.raw.get("score")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        return float(score) if is_number and abs(score) <= sys.float_info.max else None

    @property
    def message(self) -> Message:
        """The passage as a message with the role "context"."""
        return Message({**self.raw, "role": "context", "content": self.text})


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Parameters
    ----------
    raw : Mapping
        The message in OpenAI's chat format. Unknown fields are kept but not used.

    Raises
    ------
    ValueError
        If the role is not a non-empty string, if the content is anything but a string, null, or a list of strings and
        objects, or if `tool_calls` is neither null nor a list of objects.

    Examples
    --------
    >>> Message({"role": "user", "content": [{"type": "text", "text": "Hello world"}]}).text
    'Hello world'
    """

    raw: Mapping[str, Any]

    def __post_init__(self) -> None:
        role = self.raw.get("role") if isinstance(self.raw, Mapping) else None
        if role is None:
            raise ValueError(
                f"Message without a role: {_fields_without_role(self.raw)}. Choose one of: {', '.join(ROLES)}."
            )
        if not isinstance(role, str) or not role:
            refusal = wrong_kind if role else wrong_type
            raise ValueError(refusal("role of a message", role, f"one of {', '.join(ROLES)}"))
        what = f"{'an' if role[0] in 'aeio' else 'a'} {role} message"
        content = self.raw.get("content")
        calls = self.raw.get("tool_calls")
        if content is not None and not isinstance(content, str | list | tuple):
            raise ValueError(
                wrong_kind(f"content of {what}", content, "a string, a list of parts or null")
            )
        for part in content if isinstance(content, list | tuple) else ():
            kind = part.get("type") if isinstance(part, Mapping) else part
            if part is None or not isinstance(kind, str | None):
                raise ValueError(
                    wrong_kind(f"part of {what}", part, "a string, or an object with a type")
                )
        is_list = isinstance(calls, list | tuple)
        if calls is not None and not (is_list and all(isinstance(call, Mapping) for call in calls)):
            raise ValueError(
                wrong_kind(
                    f"tool_calls of {what}", calls, "a list of objects with an id and a function"
                )
            )

    @property
    def role(self) -> str:
        """The role of the speaker."""
        return str(self.raw["role"])

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """The parts of the content; a string becomes a single text part."""
        content = self.raw.get("content")
        return tuple(
            part if isinstance(part, Mapping) else {"type": "text", "text": part}
            for part in ([content] if isinstance(content, str) else content or ())
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the parts, any refusal and Cohere's tool plan."""
        content = self.raw.get("content")
        fields = [content]
        if isinstance(content, str):
            if self.raw.keys().isdisjoint(TEXTS_BESIDE):  # the usual case
                return (content,)
        else:
            fields = [part.get(field) for part in self.parts for field in _TEXT_FIELDS]
        fields += map(self.raw.get, TEXTS_BESIDE)
        return tuple(text for text in fields if isinstance(text, str))

    @property
    def text(self) -> str:
        """The whole text of the message, with a line break between parts."""
        return "\n".join(self.texts)

    @property
    def name(self) -> str | None:
        """The speaker's name, or None."""
        name = self.raw.get("name")
        return name if isinstance(name, str) and name else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, including the older ``function_call`` format."""
        if not self.raw.get("tool_calls") and not self.raw.get("function_call"):
            return ()
        calls = [
            (call.get("id"), call.get("function", call.get("custom", call)))
            for call in self.raw.get("tool_calls") or ()
        ]
        calls.append(("", self.raw.get("function_call")))
        return tuple(
            ToolCall(
                str(id or ""),
                str(called.get("name") or ""),
                as_text(called.get("arguments", called.get("input"))),
            )
            for id, called in calls
            if isinstance(called, Mapping)
        )

    @property
    def tool_call_id(self) -> str | None:
        """The ID of the tool call that the message answers, or None."""
        id = self.raw.get("tool_call_id")
        return id if isinstance(id, str) else None

    @property
    def contexts(self) -> tuple[Passage, ...]:
        """The passages retrieved for this message."""
        passages = self.raw.get("contexts") or ()
        if not isinstance(passages, list | tuple):
            raise ValueError(
                wrong_kind(
                    "contexts",
                    passages,
                    "a list of passages, each a string or an object with 'text'",
                )
            )
        return tuple(Passage.of(passage) for passage in passages)

    @property
    def images(self) -> tuple[Image, ...]:
        """The images in the message."""
        return tuple(_image(part) for part in self.parts if part.get("type") in _IMAGE_PARTS)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The kinds of uncountable parts, such as audio and files."""
        parts = (
            str(part.get("type"))
            for part in self.parts
            if part.get("type") not in _IMAGE_PARTS
            and not any(isinstance(part.get(field), str) for field in _TEXT_FIELDS)
        )
        return (*parts, *(field for field in _SHOWN_BESIDE if self.raw.get(field)))

    @property
    def is_silent(self) -> bool:
        """True if the message has no visible text, tool call or image."""
        return not (self.text.strip() or self.tool_calls or self.images)

    @property
    def is_empty(self) -> bool:
        """True for a message without any content, except a tool result."""
        return (
            self.is_silent
            and self.role not in RESULT_ROLES
            and not (self.uncounted or any(map(self.raw.get, _OTHER_CONTENT)))
        )

    @property
    def is_cuttable(self) -> bool:
        """True if the message is a tool result of text that can be shortened."""
        return self.role in RESULT_ROLES and not (self.images or self.uncounted or self.is_whole)

    @property
    def is_whole(self) -> bool:
        """True if the provider's record of the message cannot be shortened."""
        origin = self.raw.get(ORIGIN)
        return isinstance(origin, Mapping) and bool(origin.get("whole"))

    def with_text(self, text: str) -> Message:
        """Return the message with its text replaced.

        Parameters
        ----------
        text : str
            The new text. It replaces all text, including a refusal or a tool plan, and precedes the parts without text.
            If the message keeps the provider's record of itself, the record is marked as rewritten.

        Returns
        -------
        Message
            A new message with all other fields unchanged.

        Examples
        --------
        >>> Message({"role": "user", "content": "Hello world", "name": "bob"}).with_text("Hello").raw
        {'role': 'user', 'content': 'Hello', 'name': 'bob'}
        """
        raw: Data = {key: self.raw[key] for key in self.raw if key not in TEXTS_BESIDE}
        raw["content"] = text
        if isinstance(raw.get(ORIGIN), Mapping):
            raw[ORIGIN] = {**raw[ORIGIN], "rewritten": True}
        if isinstance(self.raw.get("content"), list | tuple):
            others = [part for part in self.parts if not part.keys() & {*_TEXT_FIELDS}]
            raw["content"] = [{"type": "text", "text": text}, *others]
        return Message(raw)


def misspelt_keys(raw: Raw) -> Iterator[tuple[str, str]]:
    """Find misspelled keys in a message and its tool calls.

    Values under such keys would not be counted. A tool call without a function is reported as well.

    Yields
    ------
    tuple of str
        The problem and the fix.

    Examples
    --------
    >>> list(misspelt_keys({"role": "user", "contnet": "Hello world"}))
    [("Unknown key 'contnet'", "Write 'content'")]
    """
    for key in raw.keys() - _MESSAGE_KEYS:
        if meant := nearest_name(str(key), _COUNTED_KEYS):
            yield f"Unknown key {brief(key)}", f"Write {brief(meant)}"
    results = raw.get("misspelt")  # a converted tool result
    for key in results if isinstance(results, list) else ():
        yield f"Unknown key {brief(key)} of a tool result", "Correct it"
    calls = raw.get("tool_calls")
    calls = [*calls] if isinstance(calls, list | tuple) else []
    if isinstance(raw.get("function_call"), Mapping):
        calls.append({"function": raw["function_call"]})
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        function = call.get("function", call.get("custom"))
        is_wrapped = isinstance(function, Mapping)
        for key in (function if is_wrapped else call).keys() - _CALLED_KEYS:
            if is_wrapped or nearest_name(str(key), _CALLED_KEYS):
                yield f"Unknown key {brief(key)} of a tool call", "Correct it"
        if not is_wrapped and _CALLED_KEYS.isdisjoint(call):
            yield "A tool call without a function", "Add it"


def replace_surrogates(text: str) -> str:
    r"""Join surrogate pairs and replace lone surrogates with U+FFFD, as tiktoken does.

    Examples
    --------
    >>> replace_surrogates("\ud83d\ude00 \ud83d") == "😀 \ufffd"
    True
    """
    if _SURROGATES.search(text) is None:
        return text
    # Short runs recur in one text, so their results are cached.
    return _SURROGATES.sub(
        lambda run: (_cached_join_pairs if len(run[0]) < 64 else _join_pairs)(run[0]), text
    )


def _join_pairs(run: str) -> str:
    """Join surrogate pairs in a run, and replace lone surrogates.

    Runs without a pair skip the decoder, which stops at each lone surrogate.
    """
    if _PAIR.search(run) is None:
        return "\ufffd" * len(run)
    return run.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_cached_join_pairs = lru_cache(maxsize=1_024)(_join_pairs)


def json_value(value: Any) -> Any:
    r"""Convert a value to plain JSON data in valid Unicode.

    Lone surrogates, which UTF-8 cannot encode, are replaced as for counting. Tuples become lists, and numeric keys
    become strings.

    >>> json_value({"role": "user", "content": "cut off \ud83d"})["content"] == "cut off \ufffd"
    True
    >>> json_value({"sizes": (1, 2), 3: None})
    {'sizes': [1, 2], '3': None}
    """
    if isinstance(value, str):
        return value if value.isascii() else replace_surrogates(value)
    if isinstance(value, Mapping):
        names = [
            json.dumps(name) if name is None or isinstance(name, int | float) else json_value(name)
            for name in value
        ]
        fields = [*map(json_value, value.values())]
        if all(map(is_, [*value, *value.values()], names + fields)):
            return value
        return dict(zip(names, fields, strict=True))
    if isinstance(value, list | tuple):
        members = [*map(json_value, value)]
        return value if isinstance(value, list) and all(map(is_, value, members)) else members
    return value


def empty_notices(messages: Iterable[Message]) -> list[str]:
    """Return a list with one warning if any message is empty.

    The list is empty if all messages have content.

    Examples
    --------
    >>> empty_notices([Message({"role": "user", "content": "Hello"}), Message({"role": "assistant", "content": None})])
    ['Messages with no content and no tool call: 1, first at position 2. Many providers reject them; leave them out.']
    """
    places = [place for place, message in enumerate(messages, 1) if message.is_empty]
    if not places:
        return []
    return [
        f"Messages with no content and no tool call: {len(places):,}, first at position {places[0]:,}. Many "
        "providers reject them; leave them out."
    ]


def _image(part: Mapping[str, Any]) -> Image:
    """Read an image's size, detail and address from a message part."""
    inner = part.get("image_url")
    fields = {**part, **inner} if isinstance(inner, Mapping) else part
    width, height = (
        value if isinstance(value, int) and 0 < value <= MOST_TOKENS else None
        for value in map(fields.get, ("width", "height"))
    )
    url = next((url for url in (fields.get("url"), inner) if isinstance(url, str)), "")
    return Image(width, height, str(fields.get("detail") or "auto"), url)


def as_json(value: Any) -> str:
    """Write a value as JSON without escaping non-ASCII letters."""
    return json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Any) -> str:
    """Write a value as text for a prompt.

    A string is unchanged, None is "", and other values are JSON.

    >>> as_text({"place": "Oslo"}), as_text(None)
    ('{"place": "Oslo"}', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    return as_json(value)


def _fields_without_role(raw: object) -> str:
    """Describe a value that lacks a role, for an error message."""
    if not isinstance(raw, Mapping):
        return f"it is of type {type(raw).__name__}"
    if "role" in raw:
        return "its role is null"
    return f"it has {_field_names(raw)}"


def _field_names(fields: Mapping[str, Any]) -> str:
    """List the fields that exist, for an error about a missing field."""
    return quoted(fields) or "nothing"


def is_system(message: Message) -> bool:
    """Return True for system and developer messages, which are billed alike."""
    return message.role in SYSTEM_ROLES
