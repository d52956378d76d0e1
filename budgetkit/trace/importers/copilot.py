"""GitHub Copilot: chats that VS Code saved or exported, and sessions of the Copilot CLI.

VS Code writes a chat as one document of ``requests``, or as a journal whose lines set, extend and delete parts of that
document. A request holds what the user typed, what the window showed and, under ``result.metadata``, what went to the
model and came back: rounds of calls, with their results. The rounds are read where there are any.

The CLI writes an event a line; an event has a type, and what it says under ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import PurePosixPath
from typing import Any

from budgetkit.requests.reading.formats import filled, found
from budgetkit.requests.reading.parts import as_text, objects_in

Raw = Mapping[str, Any]
_DEEPEST = 40

_SHOWN_ARGUMENTS = (
    "toolSpecificData.rawInput|resultDetails.input|toolSpecificData.commandLine.original"
)

# The operations of VS Code's journal.
_WHOLE, _SET, _EXTEND, _DELETE = range(4)


def chats(document: Raw) -> list[dict[str, Any]]:
    """Return a chat of VS Code as messages in OpenAI's form.

    Examples
    --------
    >>> request = {"message": {"text": "Hello"}, "response": [{"value": "Hello world"}]}
    >>> [message["content"] for message in chats({"requests": [request]})[0]["messages"]]
    ['Hello', 'Hello world']
    """
    lines = document.get("lines")
    if isinstance(lines, list):
        document = _replayed(lines)
    messages: list[dict[str, Any]] = []
    model: str | None = None
    unknown_calls = 0
    for request in objects_in(document.get("requests")):
        messages.append(_question(request))
        rounds = objects_in(found(request, "result.metadata.toolCallRounds"))
        if rounds:
            answer = list(_rounds(request, rounds))
        else:
            answer = list(_shown(request))
        if not rounds:
            unknown_calls += sum(len(message.get("tool_calls", ())) for message in answer)
        model = _model(request) or model
        messages += _with_usage(answer, request)

    notes = []
    if unknown_calls:
        notes.append(
            f"calls of tools of which the file holds only what the window showed: {unknown_calls:,}"
        )
    about = {name: value for name, value in document.items() if name != "requests"}
    id = document.get("sessionId")
    title = document.get("customTitle")
    return [
        {**about, "messages": messages, **filled(id=id, title=title, model=model, warnings=notes)}
    ]


def _replayed(lines: Iterable[Any]) -> dict[str, Any]:
    """Carry out a journal, line by line, and return the document that it leads to."""
    document: Any = {}
    for line in objects_in(list(lines)):
        kind = line.get("kind")
        path = line.get("k")
        value = line.get("v")
        if kind == _WHOLE:
            document = deepcopy(value)
            continue
        steps = path if isinstance(path, list) and path else None
        parent: Any = _reached(document, steps[:-1]) if steps else None
        if steps is None or not _has_place(parent, steps[-1]):
            continue
        if kind == _SET:
            parent[steps[-1]] = value
        elif kind == _EXTEND:
            if isinstance(parent, dict):
                before = parent.get(steps[-1])
            else:
                before = parent[steps[-1]]
            entries = before if isinstance(before, list) else []
            length = line.get("i")
            if isinstance(length, int):
                entries = entries[:length]
            parent[steps[-1]] = [*entries, *(value if isinstance(value, list) else [])]
        elif kind == _DELETE and isinstance(parent, dict):
            parent.pop(steps[-1], None)
    if isinstance(document, dict):
        return document
    return {}


def _reached(document: Any, steps: list[Any]) -> Any:
    """Go down a path of names and places; None where it leads nowhere."""
    for step in steps:
        if isinstance(document, dict) and isinstance(step, str):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and -1 < step < len(document):
            document = document[step]
        else:
            return None
    return document


def _has_place(parent: Any, step: Any) -> bool:
    """Say whether a parent value can hold a child under this key."""
    if isinstance(parent, list):
        return isinstance(step, int) and not isinstance(step, bool) and -1 < step < len(parent)
    return isinstance(parent, dict) and isinstance(step, str)


def _question(request: Raw) -> dict[str, Any]:
    """Return what the user asked, with what Copilot put around it where the file holds that."""
    message = request.get("message")
    rendered = objects_in(found(request, "result.metadata.renderedUserMessage"))
    texts = [part["text"] for part in rendered if isinstance(part.get("text"), str)]
    if isinstance(message, str):
        typed = message
    else:
        typed = found(message, "text")
    text = "\n".join(texts) or (typed if isinstance(typed, str) else "")
    return {
        "role": "user",
        "content": text,
        **filled(timestamp=request.get("timestamp")),
        "native": message,
    }


def _rounds(request: Raw, rounds: list[Raw]) -> Iterator[dict[str, Any]]:
    """Give the rounds that went to the model: an answer, its calls, and their results."""
    results = found(request, "result.metadata.toolCallResults")
    for each_round in rounds:
        calls: list[dict[str, Any]] = [
            {
                "id": str(call.get("id") or ""),
                "type": "function",
                "function": {
                    "name": str(call.get("name") or ""),
                    "arguments": as_text(call.get("arguments")),
                },
            }
            for call in objects_in(each_round.get("toolCalls"))
        ]
        content = each_round.get("response")
        thought = as_text(found(each_round, "thinking.text"))
        answer = {"role": "assistant", "content": content if isinstance(content, str) else None}
        yield {
            **answer,
            **filled(tool_calls=calls, reasoning_content=thought),
            "native": each_round,
        }
        for call in calls:
            result = found(results, call["id"])
            if result is not None:
                text = "\n".join(_leaves(found(result, "content") or result))
                yield {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": text,
                    "native": result,
                }


def _shown(request: Raw) -> Iterator[dict[str, Any]]:
    """Give what the window showed of an answer, where the file holds no more."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: dict[str, str] = {}
    for part in objects_in(request.get("response")):
        kind = part.get("kind")
        if kind in (None, "markdownContent"):
            texts.append(as_text(found(part, "value.value|value|content.value")))
        elif kind == "inlineReference":
            texts.append(_reference(part))
        elif kind == "thinking":
            thoughts.append(as_text(part.get("value")))
        elif kind == "toolInvocationSerialized":
            id = str(part.get("toolCallId") or f"call-{len(calls) + 1}")
            arguments = found(part, _SHOWN_ARGUMENTS)
            function = {"name": str(part.get("toolId") or ""), "arguments": as_text(arguments)}
            calls = [call for call in calls if call["id"] != id]  # written again as it goes on
            calls.append({"id": id, "type": "function", "function": function})
            output = found(part, "resultDetails.output|toolSpecificData.terminalCommandOutput.text")
            results[id] = "\n".join(_leaves(output))
    content = "".join(texts)
    if content or calls or thoughts:
        answer = {
            "role": "assistant",
            "content": content or None,
            "native": request.get("response"),
        }
        yield {
            **answer,
            **filled(tool_calls=calls, reasoning_content="\n".join(filter(None, thoughts))),
        }
    for call in calls:
        yield {"role": "tool", "tool_call_id": call["id"], "content": results.get(call["id"], "")}


def _with_usage(answer: list[dict[str, Any]], request: Raw) -> list[dict[str, Any]]:
    """Put what was counted, which is that of the last round, beside the last answer."""
    counted = found(request, "result.metadata.promptTokens")
    places = [place for place, message in enumerate(answer) if message["role"] == "assistant"]
    if not isinstance(counted, int) or not places:
        return answer
    usage = {
        "prompt_tokens": counted,
        "completion_tokens": found(request, "result.metadata.outputTokens"),
    }
    answer[places[-1]] |= {"usage": usage, **filled(model=_model(request))}
    return answer


def _reference(part: Raw) -> str:
    """Return a reference to a file or a symbol as the window shows it."""
    name = part.get("name")
    path = found(part, "inlineReference.path|inlineReference.uri.path|inlineReference.name")
    if isinstance(path, str):
        text = PurePosixPath(path).name
    else:
        text = ""
    if isinstance(name, str):
        text = name
    return f"`{text}`" if text else ""


def _model(request: Raw) -> str | None:
    """Return the model that answered, without the name of the extension that asked it."""
    model = request.get("modelId")
    if isinstance(model, str) and model:
        return model.rpartition("/")[2]
    return None


def sessions(document: Raw) -> list[dict[str, Any]]:
    """Return a session of the Copilot CLI as messages in OpenAI's form.

    Examples
    --------
    >>> event = {"type": "user.message", "data": {"content": "Hello world"}}
    >>> sessions({"lines": [event]})[0]["messages"][0]["content"]
    'Hello world'
    """
    events = objects_in(document.get("lines") or document.get("events"))
    messages: list[dict[str, Any]] = []
    compactions: list[dict[str, int]] = []
    model: str | None = None
    id: str | None = None
    truncations = of_subagents = 0
    for event in events:
        kind = event.get("type")
        data = event.get("data")
        if not isinstance(data, Mapping):
            continue
        if data.get("parentToolCallId"):
            of_subagents += kind in ("user.message", "assistant.message")
            continue
        if kind == "session.start":
            id = _name(data.get("sessionId")) or id
        if kind in ("session.start", "session.model_change"):
            model = _name(data.get("newModel")) or _name(data.get("selectedModel")) or model
        truncations += kind == "session.truncation"
        if kind == "session.compaction_complete" and isinstance(data.get("summaryContent"), str):
            compactions.append({"at": len(messages), "first_kept": len(messages)})
        message = _said(kind, data)
        if message is not None:
            messages.append(message | filled(timestamp=event.get("timestamp")) | {"native": event})

    notes = []
    if of_subagents:
        notes.append(f"messages of sub-agents are left out: {of_subagents:,}")
    if truncations:
        notes.append(
            f"times that the CLI cut old messages, which are counted here: {truncations:,}"
        )
    extras = filled(id=id, model=model, compactions=compactions, warnings=notes)
    return [{"messages": messages, **extras}]


def _said(kind: Any, data: Raw) -> dict[str, Any] | None:
    """Return what an event adds to the conversation; None for all other events."""
    content = as_text(data.get("content"))
    if kind == "system.message":
        return {"role": "system", "content": content}
    if kind == "user.message":
        return {"role": "user", "content": as_text(data.get("transformedContent")) or content}
    if kind == "session.compaction_complete" and isinstance(data.get("summaryContent"), str):
        return {"role": "user", "content": data["summaryContent"]}
    if kind == "assistant.message":
        calls = [
            {
                "id": str(call.get("toolCallId") or ""),
                "type": "function",
                "function": {
                    "name": str(call.get("name") or ""),
                    "arguments": as_text(call.get("arguments")),
                },
            }
            for call in objects_in(data.get("toolRequests"))
        ]
        answer = {"role": "assistant", "content": content or None}
        return answer | filled(
            tool_calls=calls, reasoning_content=as_text(data.get("reasoningText"))
        )
    if kind == "tool.execution_complete":
        output = found(data, "result.content|error.message|result")
        return {
            "role": "tool",
            "tool_call_id": str(data.get("toolCallId") or ""),
            "content": as_text(output),
        }
    return None


def _name(value: Any) -> str | None:
    if isinstance(value, str) and value:
        return value
    return None


def _leaves(value: Any, room: int = _DEEPEST) -> Iterator[str]:
    """Give the texts of a tool's result, which may be a tree of the nodes of a prompt."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and room:
        for entry in value:
            yield from _leaves(entry, room - 1)
    elif isinstance(value, Mapping) and room:
        if isinstance(value.get("text"), str):
            yield value["text"]
        for name in ("value", "content", "node", "children"):
            if name in value:
                yield from _leaves(value[name], room - 1)
