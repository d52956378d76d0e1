"""GitHub Copilot: saved or exported VS Code chats, and Copilot CLI sessions.

VS Code writes a chat as one document of ``requests``, or as a journal whose lines set, extend and delete parts of that
document. A request contains the user's question, the displayed answer and, under ``result.metadata``, the rounds of
calls and results exchanged with the model. If there are rounds, they are read in place of the displayed answer.

The CLI writes one event per line, with a type and its content under ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from pathlib import PurePosixPath
from typing import Any

from budgetkit.message import Data, Raw, as_text
from budgetkit.requests.reading.formats import value_at, without_empty
from budgetkit.requests.reading.parts import as_list, content_of, objects_in
from budgetkit.requests.reading.request import as_object
from budgetkit.trace.importers import (
    UNREADABLE,
    count_damaged,
    notes_of,
    text_or_none,
    without_fields,
)

_DEEPEST = 40

_SHOWN_ARGUMENTS = (
    "toolSpecificData.rawInput|resultDetails.input|toolSpecificData.commandLine.original"
)

# The operations of VS Code's journal.
_WHOLE, _SET, _EXTEND, _DELETE = range(4)


def copilot_chats(document: Raw) -> list[Data]:
    """Convert a VS Code chat to messages in OpenAI's format.

    Examples
    --------
    >>> request = {"message": {"text": "Hello"}, "response": [{"value": "Hello world"}]}
    >>> [message["content"] for message in copilot_chats({"requests": [request]})[0]["messages"]]
    ['Hello', 'Hello world']
    """
    unreadable = 0
    if isinstance(document.get("lines"), list):
        document, unreadable = _replayed(document["lines"])
    unreadable += count_damaged(as_list(document.get("requests")), "copilot-chat")
    messages: list[Data] = []
    model: str | None = None
    unknown_calls = unbilled = 0
    for request in objects_in(document.get("requests")):
        messages.append(_question(request))
        answers = [*_rounds(request)]
        if not answers:
            answers = [*_shown(request)]
            unknown_calls += sum(message["role"] == "tool" for message in answers)
        model = _model(request) or model

        # The file has the usage of the last round only.
        counted = value_at(request, "result.metadata.promptTokens")
        last = next((m for m in reversed(answers) if m["role"] == "assistant"), None)
        if isinstance(counted, int) and last is not None:
            output = value_at(request, "result.metadata.outputTokens")
            unbilled += sum(message["role"] == "assistant" for message in answers) - 1
            last["usage"] = {"prompt_tokens": counted, "completion_tokens": output}
            last |= without_empty(model=_model(request))
        messages += answers

    about = without_fields(document, "requests")
    read = without_empty(
        id=document.get("sessionId"),
        title=document.get("customTitle"),
        model=model,
        warnings=notes_of(
            {
                "Read as displayed: {} tool call{} whose full text is not in the file.": unknown_calls,
                "Without usage in the file: {} answer{}. The token sums may be incomplete.": unbilled,
                UNREADABLE: unreadable,
            }
        ),
    )
    return [{**about, "messages": messages, **read}]


def _replayed(lines: Iterable[Any]) -> tuple[Data, int]:
    """Rebuild a document from its journal.

    Return the document and the number of lines that cannot be applied.
    """
    document: Any = {}
    unreadable = 0
    for line in lines:
        kind, path, value = (value_at(line, name) for name in ("kind", "k", "v"))
        if kind == _WHOLE:
            document = deepcopy(value)
            continue
        *steps, last = as_list(path) or [None]
        parent = reduce(_child, steps, document)
        if not _has_place(parent, last):
            unreadable += 1
            continue
        if kind == _SET:
            parent[last] = value
        elif kind == _EXTEND:
            before = as_list(_child(parent, last))
            length = line.get("i")
            if isinstance(length, int):
                before = before[:length]
            parent[last] = [*before, *as_list(value)]
        elif kind == _DELETE and isinstance(parent, dict):
            parent.pop(last, None)
    return document if isinstance(document, dict) else {}, unreadable


def _child(parent: Any, step: Any) -> Any:
    """Return the value at a key or index, or None."""
    if not _has_place(parent, step):
        return None
    return parent.get(step) if isinstance(parent, dict) else parent[step]


def _has_place(parent: Any, step: Any) -> bool:
    """Return True if a value can be stored under a key.

    The parent must be an object, or a list with an element at the index `step`.
    """
    if isinstance(parent, list):
        return type(step) is int and -1 < step < len(parent)
    return isinstance(parent, dict) and isinstance(step, str)


def _question(request: Raw) -> Data:
    """Return the user's question, with any recorded additions by Copilot."""
    message = request.get("message")
    rendered = objects_in(value_at(request, "result.metadata.renderedUserMessage"))
    texts = [part["text"] for part in rendered if isinstance(part.get("text"), str)]
    typed = message if isinstance(message, str) else value_at(message, "text")
    text = "\n".join(texts) or text_or_none(typed) or ""
    return {
        "role": "user",
        "content": text,
        **without_empty(timestamp=request.get("timestamp")),
        "native": message,
    }


def _answer(text: Any, thought: Any, calls: Sequence[Raw], native: Any) -> Data:
    """Return an answer as a record of parts."""
    texts = {"thinking": as_text(thought), "text": as_text(text)}
    parts = [{"type": kind, kind: content} for kind, content in texts.items() if content]
    return {
        "role": "assistant",
        "content": content_of([*parts, *map(dict, calls)]),
        "native": native,
    }


def _result(id: Any, text: str, native: Any = None) -> Data:
    """Return a tool result as a record."""
    about = without_empty(native=native)
    return {"role": "tool", "tool_call_id": str(id or ""), "content": text, **about}


def _rounds(request: Raw) -> Iterator[Data]:
    """Yield each round's answer, calls and results."""
    results = as_object(value_at(request, "result.metadata.toolCallResults"))
    for turn in objects_in(value_at(request, "result.metadata.toolCallRounds")):
        calls = objects_in(turn.get("toolCalls"))
        text = turn.get("response")
        thought = value_at(turn, "thinking.text")
        yield _answer(text_or_none(text), thought, calls, turn)
        for call in calls:
            result = results.get(str(call.get("id")))
            if result is not None:
                content = value_at(result, "content") or result
                yield _result(call.get("id"), "\n".join(_leaves(content)), result)


def _shown(request: Raw) -> Iterator[Data]:
    """Yield the displayed answer with its tool results.

    These messages are used if the file has no rounds of calls.
    """
    texts = []
    thoughts = []
    calls: dict[str, Data] = {}
    results = {}
    for part in objects_in(request.get("response")):
        kind = part.get("kind")
        if kind in (None, "markdownContent"):
            texts.append(as_text(value_at(part, "value.value|value|content.value")))
        elif kind == "inlineReference":
            # a displayed file or symbol
            where = "inlineReference.path|inlineReference.uri.path|inlineReference.name"
            path = text_or_none(value_at(part, where))
            name = text_or_none(part.get("name")) or PurePosixPath(path or "").name
            texts.append(f"`{name}`" if name else "")
        elif kind == "thinking":
            thoughts.append(as_text(part.get("value")))
        elif kind == "toolInvocationSerialized":
            id = str(part.get("toolCallId") or f"call-{len(calls) + 1}")
            calls.pop(id, None)  # a call is written again as it progresses
            arguments = as_text(value_at(part, _SHOWN_ARGUMENTS))
            calls[id] = {"id": id, "name": part.get("toolId"), "arguments": arguments}
            output = value_at(
                part, "resultDetails.output|toolSpecificData.terminalCommandOutput.text"
            )
            results[id] = "\n".join(_leaves(output))
    content = "".join(texts)
    if content or calls or thoughts:
        thought = "\n".join(filter(None, thoughts))
        yield _answer(content, thought, [*calls.values()], request.get("response"))
    for id in calls:
        yield _result(id, results[id])


def _model(request: Raw) -> str | None:
    """Return the answering model's name, or None if it is missing.

    The prefix before the last slash, such as "copilot/", is removed.
    """
    model = request.get("modelId")
    return model.rpartition("/")[2] or None if isinstance(model, str) else None


def copilot_sessions(document: Raw) -> list[Data]:
    """Convert a Copilot CLI session to messages in OpenAI's format.

    Examples
    --------
    >>> event = {"type": "user.message", "data": {"content": "Hello world"}}
    >>> copilot_sessions({"lines": [event]})[0]["messages"][0]["content"]
    'Hello world'
    """
    events = as_list(document.get("lines") or document.get("events"))
    messages: list[Data] = []
    compactions = []
    model: str | None = None
    id: str | None = None
    truncations = of_subagents = sums = 0
    for event in objects_in(events):
        kind = event.get("type")
        data = event.get("data")
        if not isinstance(data, Mapping):
            continue
        if data.get("parentToolCallId"):
            of_subagents += kind in ("user.message", "assistant.message")
            continue
        if kind == "session.start":
            id = text_or_none(data.get("sessionId")) or id
        if kind in ("session.start", "session.model_change"):
            model = (
                text_or_none(data.get("newModel"))
                or text_or_none(data.get("selectedModel"))
                or model
            )
        truncations += kind == "session.truncation"
        sums += kind == "session.shutdown" and bool(data.get("modelMetrics"))
        message = _message(kind, data)
        if message is not None:
            if kind == "session.compaction_complete":
                compactions.append({"at": len(messages), "first_kept": len(messages)})
            messages.append(
                message | without_empty(timestamp=event.get("timestamp")) | {"native": event}
            )

    notes = notes_of(
        {
            "Left out {} message{} of sub-agents.": of_subagents,
            "Still counted: {} message{} that the CLI truncated.": truncations,
            "Not read: {} token sum{} of a whole session.": sums,
            UNREADABLE: count_damaged(events, "copilot-cli"),
        }
    )
    extras = without_empty(id=id, model=model, compactions=compactions, warnings=notes)
    return [{"messages": messages, **extras}]


def _message(kind: Any, data: Raw) -> Data | None:
    """Return the message that an event adds, or None for other events."""
    content = as_text(data.get("content"))
    if kind == "system.message":
        return {"role": "system", "content": content}
    if kind == "user.message":
        return {"role": "user", "content": as_text(data.get("transformedContent")) or content}
    if kind == "session.compaction_complete" and isinstance(data.get("summaryContent"), str):
        return {"role": "user", "content": data["summaryContent"]}
    if kind == "assistant.message":
        calls = objects_in(data.get("toolRequests"))
        return _answer(content, data.get("reasoningText"), calls, None)
    if kind == "tool.execution_complete":
        output = value_at(data, "result.content|error.message|result")
        return _result(data.get("toolCallId"), as_text(output))
    return None


def _leaves(value: Any, depth: int = _DEEPEST) -> Iterator[str]:
    """Yield the texts of a tool result, which may be a tree."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth:
        for entry in value:
            yield from _leaves(entry, depth - 1)
    elif isinstance(value, Mapping) and depth:
        if isinstance(value.get("text"), str):
            yield value["text"]
        for name in ("value", "content", "node", "children"):
            if name in value:
                yield from _leaves(value[name], depth - 1)
