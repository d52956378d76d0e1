"""Build traces from checked values, and describe their files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from budgetkit.budget import brief, many, one_line, warn_caller
from budgetkit.budget.allocation import check_whole
from budgetkit.message import Data, Message, Passage, Raw, json_value
from budgetkit.requests.reading.formats import format_table, unpacked
from budgetkit.requests.reading.pairing import placed
from budgetkit.requests.reading.parts import as_list, objects_in
from budgetkit.requests.reading.tools import read_tools
from budgetkit.trace.conversation import Trace
from budgetkit.trace.importers import in_call_order, with_warnings
from budgetkit.trace.tally import last_user


@dataclass(frozen=True)
class Intake:
    """Facts about a loaded file.

    Attributes
    ----------
    traces : sequence of Trace
        All conversations in the file; there is at least one.
    chosen : int
        Index of the conversation to describe, counting from 0.
    """

    traces: Sequence[Trace]
    chosen: int = 0

    @cached_property
    def messages(self) -> str:
        """The number of messages, in total and by role.

        Examples
        --------
        >>> trace = Trace("toy", [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
        >>> Intake([trace]).messages
        '2 messages: 1 user, 1 assistant'
        """
        roles = Counter(message.role for message in self.traces[self.chosen].messages)
        parts = ", ".join(f"{number:,} {role}" for role, number in roles.items())
        return f"{many(roles.total(), 'message')}: {parts}"

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The format and size of the conversation, its warnings and its model."""
        trace = self.traces[self.chosen]
        which = trace.format
        if len(self.traces) > 1:
            which += f", conversation {self.chosen + 1:,} of {len(self.traces):,}"
        named = [f"the file names the model {trace.model}"] if trace.model else []
        return f"{which}, {self.messages}", *trace.warnings, *named


_BESIDE = {"id", "messages", "tools", "functions", "contexts", "meta"}


def made_trace(value: Raw, default_id: str, where: str) -> Trace:
    """Build a trace from the fields of one conversation.

    Errors begin with `where`, the conversation's file and line.
    """
    messages = value["messages"]
    if not isinstance(messages, list | tuple) or not messages:
        expected = "a list of one or more messages, each with a role"
        kind = "an empty list" if messages == [] else f"a value of type {type(messages).__name__}"
        raise ValueError(f"{where}: Invalid messages: {kind}. Expected {expected}.")
    file = where.rpartition(", line ")[0]
    value = in_call_order(value)
    lines, values = zip(*map(placed, value["messages"]), strict=True)
    places = [
        f"{where}, message {n}" if at is None else f"{file}, line {at}"
        for n, at in enumerate(lines, start=1)
    ]
    read_messages = [_message(raw, at) for raw, at in zip(values, places, strict=True)]
    fields = {key: field for key, field in value.items() if key not in _BESIDE}
    meta: Any = value.get("meta", {})
    if not isinstance(meta, Mapping):
        fields["meta"] = meta
        meta = {}
    if "usage" in fields:
        fields["usage"] = json_value(fields["usage"])  # text columns of a frame must be valid UTF-8
    orphan = _orphan(read_messages)
    if orphan is not None:  # providers reject it
        id = read_messages[orphan].tool_call_id
        call = "without a call id"
        if id:
            call = f"for call {brief(id)}, which no earlier message makes"
        raise ValueError(
            f"{places[orphan]}: tool result {call}. "
            "Put the assistant message with its call before it, or leave out the result."
        )
    messages = tuple(read_messages)
    # Passages by message; `contexts` of the whole conversation belong to a single message.
    contexts = {index: message.contexts for index, message in enumerate(messages)}
    if passages := value.get("contexts"):
        if not isinstance(passages, list | tuple):
            expected = "a list of passages, texts or objects"
            kind = type(passages).__name__
            raise ValueError(f"{where}: Invalid contexts of type {kind}. Expected {expected}.")
        index = meta.get("contexts_apply_to_message", last_user(messages))
        if not isinstance(index, int) or index not in contexts:
            raise ValueError(
                f"{where}: Invalid meta.contexts_apply_to_message. Use the index of a message, from 0 to "
                f"{len(messages) - 1}."
            )
        with place_name(where):
            contexts[index] += tuple(map(Passage.of, passages))
    notes = []
    unknown = (as_list(row.get("unknown")) for row in objects_in(value.get("usage")))
    if names := [*dict.fromkeys(map(str, chain.from_iterable(unknown)))]:
        listed = ", ".join(one_line(name)[:60] for name in names[:5])
        notes.append(f"Not read: usage fields {listed}. The token sums may be incomplete.")
    if media := [name for name in format_table("marks")["media"] if value.get(name)]:
        notes.append(f"Not counted: media outside the messages ({', '.join(media)}).")
    if notes:
        fields = with_warnings(fields, *notes)
    tools: list[Raw] = []
    # A request body may have both the newer and the older field.
    with place_name(where):
        for name in ("tools", "functions"):
            tools += read_tools(unpacked(value.get(name)) or None).listed
    trace = Trace(
        str(value["id"]) if value.get("id") is not None else default_id,
        messages,
        tuple(tools),
        {index: inside for index, inside in contexts.items() if inside},
        meta,
        where,
        fields,
    )
    if trace.is_silent:
        warn_caller(f"{where}: {trace.warnings[0]}")
    return trace


def _message(value: Any, where: str) -> Message:
    with place_name(where):
        message = Message(value)
        # A role may become the name of a section, and so of a column.
        check_whole("role of a message", message.role)
        message.contexts  # noqa: B018 - read the passages here, so that an error names their place
        return message


@contextmanager
def place_name(where: str) -> Iterator[None]:
    """Begin errors about a value with the value's location."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def _orphan(messages: Sequence[Message]) -> int | None:
    """Return the index of the first result without a call, or None.

    The call must come before the result.
    """
    called: set[str] = set()
    for place, message in enumerate(messages):
        called.update(call.id for call in message.tool_calls)
        if message.role == "tool" and (
            message.tool_call_id is None or message.tool_call_id not in called
        ):
            return place
    return None


def to_line(trace: Trace) -> str:
    """Write a conversation as one line of JSON in OpenAI's chat format.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    str
        One line of JSON; :func:`budgetkit.load_traces` reads files of such lines.

    Examples
    --------
    >>> import budgetkit as bk
    >>> to_line(bk.Trace("toy", (bk.Message({"role": "user", "content": "Hello world"}),)))
    '{"id": "toy", "messages": [{"role": "user", "content": "Hello world"}]}'
    """
    messages = [dict(message.raw) for message in trace.messages]
    record: Data = {"id": trace.id, "messages": messages}
    outside = {
        index: [dict(passage.raw) for passage in retrieved[len(trace.messages[index].contexts) :]]
        for index, retrieved in trace.contexts.items()
    }
    last = trace.meta.get("contexts_apply_to_message", last_user(trace.messages))
    places = [index for index, passages in outside.items() if passages]
    for index in places:
        if places == [last]:
            record["contexts"] = outside[index]
        else:
            messages[index]["contexts"] = [
                *(messages[index].get("contexts") or ()),
                *outside[index],
            ]
    if trace.tools:
        record["tools"] = list(trace.tools)
    if trace.meta:
        record["meta"] = dict(trace.meta)
    line = json.dumps({**record, **trace.fields}, ensure_ascii=False)
    # a file can store a lone surrogate only as an escape
    has_halves = re.search("[\ud800-\udfff]", line)
    return json.dumps({**record, **trace.fields}) if has_halves else line
