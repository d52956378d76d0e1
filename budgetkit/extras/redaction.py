"""redact(): shareable copies of conversations, with filler of equal size.

Names of tools, parameters and JSON fields are replaced consistently. Data that no figure uses (metadata, ids, thoughts,
image bytes, unknown fields) is omitted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any

from budgetkit.counters import CalibratedCounter, count_of
from budgetkit.counters.estimate import EstimateCounter
from budgetkit.files import read_toml
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.message import ROLES, TEXTS_BESIDE, Data, Message, Passage, Raw
from budgetkit.models import Model, models
from budgetkit.requests.billing.images import sized
from budgetkit.requests.reading.formats import format_names, format_table
from budgetkit.requests.reading.parts import objects_in
from budgetkit.trace.conversation import Trace
from budgetkit.trace.filler import Filler, alike
from budgetkit.trace.provider_usage import usage_frame

Count = Callable[[str], int]
_NAMED = ("properties", "patternProperties", "dependentRequired", "$defs", "definitions")
_DETAILS = ("auto", "low", "high", "original")  # any other word may be private
_VALUES = ("default", "const", "enum", "example", "examples")
_WORDS = {"type", "format", "$schema"}
_NAMES = {"name", "required", "$ref"}


def redact(trace: AnyTrace, counter: str | Model | Count) -> Trace:
    """Replace a conversation's text with filler of the same size, for sharing.

    Every text, and each part of it between punctuation marks, keeps its number of tokens under the given counter, so
    that demand, plans and replays with that counter stay the same. Anything that reads words gives different results,
    such as the search for needed messages by repeated rare words, a policy that weighs words, or another counter.
    Messages that are marked as needed by others, in the field ``evidence``, are named by their indices.

    Parameters
    ----------
    trace : Trace, str, Path, frame or messages
        The conversation to redact.
    counter : str, Model or callable
        The counter whose counts stay the same: a function that counts the tokens in a text, or the name of a counter or
        model.

    Returns
    -------
    Trace
        A trace named "redacted". The same trace and counter always give the same filler.

    Raises
    ------
    ValueError
        If the counter estimates an encoding, as "estimate:o200k_base" does, or if no filler has as many tokens as one
        of the texts.

    Examples
    --------
    >>> said = {"role": "user", "content": "Dear Ms. Okafor, your order is A-1734.", "name": "ada"}
    >>> trace = Trace("mine", [said])
    >>> shown = redact(trace, "gpt-5.4")
    >>> shown.messages[0].text
    'Q X. Xxxxxx a, xxxx x xx X-1111.'
    >>> shown.counts("gpt-5.4") == trace.counts("gpt-5.4")
    array([ True])
    """
    trace = trace_of(trace)
    count = count_of(counter)
    counted = count.counter if isinstance(count, CalibratedCounter) else count
    if isinstance(counted, EstimateCounter):
        raise ValueError(
            f"Filler cannot preserve the counts of '{counted.name}', which is an estimate. Redact and count with an "
            "exact counter, such as 'o200k_base'."
        )
    redaction = _Redaction(Filler(counted))
    passages_of = {
        index: tuple(map(redaction.passage, passages)) for index, passages in trace.contexts.items()
    }
    places: dict[object, int] = {}
    for index, message in enumerate(trace.messages):
        places[index] = index
        for id in (message.raw.get("id"), message.raw.get("dia_id")):
            if isinstance(id, str):
                places[id] = index
    messages = [Message(redaction.message(message, places)) for message in trace.messages]
    tools = tuple(redaction.schema(tool) for tool in trace.tools)
    return Trace("redacted", tuple(messages), tools, passages_of, fields=_figures(trace))


@dataclass(slots=True)
class _Redaction:
    """A redactor for messages, passages and schemas."""

    filler: Filler
    ids: dict[str, str] = field(default_factory=dict)

    def value(self, value: Any) -> Any:
        """Replace the keys, texts and numbers in plain data."""
        if isinstance(value, Mapping):
            return {self.filler.name(str(key)): self.value(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(entry) for entry in value]
        if isinstance(value, str):
            return self.filler.text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value if isinstance(value, bool) else None
        digits = json.dumps(value)
        try:
            return json.loads(alike(digits))
        except ValueError:  # some numbers, such as 1e+308, look like words
            return json.loads(re.sub("[2-9]", "1", digits))

    def message(self, message: Message, places: Mapping[object, int]) -> Data:
        """Replace the texts and names in a message, and omit unknown fields."""
        raw: Data = {"role": self.word(message.role)}
        if "content" in message.raw:
            content = message.raw["content"]
            is_list = isinstance(content, list | tuple)
            raw["content"] = self._parts(content) if is_list else self.value(content)
        others = ("name", "tool_call_id", "tool_calls", "function_call", "contexts")
        for key in (*TEXTS_BESIDE, *others):
            if (value := message.raw.get(key)) is not None:
                raw[key] = self._field(key, value, message)
        if _is_time(message.raw.get("timestamp")):
            raw["timestamp"] = message.raw["timestamp"]
        if isinstance(marks := message.raw.get("evidence"), list | tuple):
            raw["evidence"] = [places[m] for m in marks if type(m) in (int, str) and m in places]
        return raw

    def word(self, word: Any) -> Any:
        """Replace a word such as a role, unless budgetkit defines it."""
        if not isinstance(word, str):
            return self.value(word)
        return word if word in _public_words() else self.filler.name(word)

    def passage(self, passage: Passage) -> Passage:
        """Replace a passage's text, and keep its score."""
        score = {} if passage.score is None else {"score": passage.score}
        return Passage({"text": self.filler.text(passage.text), **score})

    def schema(self, value: Any, named: bool = False) -> Any:
        """Replace the names and texts of a tool schema, keeping its keywords."""
        if isinstance(value, list | tuple):
            return [self.schema(entry) for entry in value]
        if not isinstance(value, Mapping):
            return self.value(value)
        if named:
            return {self.filler.name(key): self._keyword(entry, "") for key, entry in value.items()}
        return {self.word(key): self._keyword(entry, key) for key, entry in value.items()}

    def _keyword(self, value: Any, key: str) -> Any:
        if isinstance(value, list | tuple) and key in _WORDS | _NAMES:
            return [
                self._keyword(entry, key) if isinstance(entry, str) else self.value(entry)
                for entry in value
            ]
        if key in _WORDS and not isinstance(value, Mapping):
            return self.word(value)
        if key in _NAMES and isinstance(value, str):
            *start, last = value.split("/") if key == "$ref" else [value]
            return "/".join([*map(self.word, start), self.filler.name(last)])
        if key in _VALUES:
            return self.value(value)
        return self.schema(value, key in _NAMED)

    def _field(self, key: str, value: Any, message: Message) -> Any:
        if key == "tool_call_id":
            return self._id(value)
        if key == "contexts":
            return [dict(self.passage(passage).raw) for passage in message.contexts]
        if key == "tool_calls":
            return [self._call(call) for call in value]
        if key == "function_call":
            return self._called(value)
        if key == "name":
            return self.word(value) if value == message.role else self._name(value)
        return self.value(value)

    def _name(self, name: Any) -> Any:
        return self.filler.name(name) if isinstance(name, str) else self.value(name)

    def _parts(self, content: Sequence[Any]) -> list[Any]:
        parts = [self._part(part) for part in content]
        texts = [
            (part["text"], redacted)
            for part, redacted in zip(content, parts, strict=True)
            if isinstance(redacted, dict) and "text" in redacted
        ]
        # Join from the end, because a text of one word is joined to both its neighbours.
        for (text, part), (next_text, next_part) in reversed([*pairwise(texts)]):
            part["text"] = self.filler.joined(part["text"], next_part["text"], text + next_text)
        return parts

    def _part(self, part: Any) -> Any:
        if not isinstance(part, Mapping):
            return self.value(part)
        redacted = {"type": self.word(part.get("type"))}
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                redacted[key] = self.filler.text(part[key])
        for image in Message({"role": "user", "content": [part]}).images:
            redacted["detail"] = image.detail if image.detail in _DETAILS else "auto"
            if size := sized(image):
                redacted["width"], redacted["height"] = size
        return redacted

    def _call(self, call: Raw) -> Data:
        redacted: Data = {}
        if "id" in call:
            redacted["id"] = self._id(call["id"])
        if "type" in call:
            redacted["type"] = self.word(call["type"])
        for key in ("function", "custom"):
            if call.get(key) is not None:
                return redacted | {key: self._called(call[key])}
        return {**redacted, **self._called(call)}

    def _called(self, call: Any) -> Any:
        if not isinstance(call, Mapping):
            return None
        writers = {"name": self._name, "arguments": self.value, "input": self.value}
        return {
            key: write(call[key]) for key, write in writers.items() if call.get(key) is not None
        }

    def _id(self, id: Any) -> Any:
        kind = "fc" if str(id).startswith("fc_") else "call"
        if isinstance(id, str) and id:
            return self.ids.setdefault(id, f"{kind}_{len(self.ids) + 1}")
        return self.value(id)


@cache
def _public_words() -> frozenset[str]:
    """Return the words to keep, such as names of formats and roles."""
    return format_names().union(
        format_table("shared")["words"].split(), ROLES, *read_toml("presets.toml")["roles"].values()
    )


def _figures(trace: Trace) -> Data:
    """Return a trace's format, model, usage and compactions, without any text."""
    usage = [
        {name: _number(value) for name, value in row.items()} | {"model": _model(row["model"])}
        for row in usage_frame(trace).to_dict("records")
    ]
    format = trace.fields.get("format")
    compactions = [
        {key: _places(row[key]) for key in ("at", "first_kept", "kept") if key in row}
        for row in objects_in(trace.compactions)
    ]
    facts: Data = {
        "format": format if isinstance(format, str) and format in _public_words() else None,
        "model": _model(trace.fields.get("model")),
        "usage": usage,
        "compactions": compactions,
    }
    return {key: value for key, value in facts.items() if value}


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) else None


def _places(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [place for place in value if type(place) is int]
    return _number(value)


def _model(name: Any) -> str | None:
    """Return the longest listed prefix of a model's name, or None.

    The path and the fine-tuning suffix are removed first. The result is None if no listed name is a prefix.
    """
    if not isinstance(name, str):
        return None
    base = re.sub(r"\A.*\bft:([^:]*).*|:ft-.*", r"\1", name, flags=re.S).rpartition("/")[2]
    listed = [facts.name for facts in models() if base.startswith(facts.name)]
    return max(listed, key=len, default=None)


def _is_time(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int | float)
    try:
        return bool(datetime.fromisoformat(value))
    except ValueError:
        return False
