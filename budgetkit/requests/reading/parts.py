"""Parts of messages in any format: text, thoughts, calls, results and images.

A part is identified by its type or, if it has none, by a characteristic field. The paths in the table of formats locate
the fields of tool calls and results. Any other part keeps its type, so that `Message.uncounted` can list it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from budgetkit.budget.quoting import nearest_name
from budgetkit.message import Data, Raw, as_text
from budgetkit.requests.reading.formats import (
    format_table,
    holds,
    unpacked,
    value_at,
    without_empty,
)

Kind = Literal["call", "result", "thought", "text", "nothing"]
Sorted = tuple[Kind, Any]
# Fields of a call or a result that are counted elsewhere or cost nothing.
_NO_CONTENT = {"parts", "status", "type"}


def sorted_part(part: Any) -> list[Sorted]:
    """Convert a content part to pairs of a kind and a value.

    The kind is "call", "result", "thought", "text" or "nothing". An image, a file or any other content has the kind
    "text", too.

    >>> sorted_part({"toolUse": {"toolUseId": "1", "name": "weather", "input": {}}})[0][1]["function"]
    {'name': 'weather', 'arguments': '{}'}
    """
    if not isinstance(part, Mapping):
        return [("text", {"type": "text", "text": as_text(part)})]
    mark = _mark(part)
    thoughts, calls, results = map(format_table, ("thoughts", "calls", "results"))
    if mark in thoughts or part.get("thought") is True or part.get("isThought") is True:
        return [("thought", joined_text(value_at(part, thoughts.get(mark, "text"))))]
    sorts: list[Sorted] = []
    if mark in calls:
        sorts.append(("call", _call(part, mark)))
    if mark in results and (mark not in calls or value_at(part, results[mark][2]) is not None):
        sorts.append(("result", _result(part, mark)))
    if not sorts and mark in format_table("marks")["nothing"]:
        return [("nothing", None)]
    return sorts or [("text", piece) for piece in _inner_parts(part) or [_content_part(part)]]


def is_item(value: Raw) -> bool:
    """Return True for a call, result or thought without a role.

    OpenAI Responses has such records, which it calls items.
    """
    return "role" not in value and any(
        _mark(value) in format_table(name) for name in ("calls", "results", "thoughts")
    )


def content_of(parts: list[Data]) -> Any:
    """Return parts as the content of a message.

    A single plain text becomes a string, and an empty list becomes None.
    """
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts or None


def joined_text(value: Any) -> str:
    r"""Return the text of a string, an object or a list.

    The texts in a list are joined by line breaks. Lists inside the list are skipped. Any value without text becomes "".

    >>> joined_text([{"type": "summary_text", "text": "Look."}, "Then act."])
    'Look.\nThen act.'
    """
    if isinstance(value, list):
        texts = (joined_text(part) for part in value if not isinstance(part, list))
        return "\n".join(filter(None, texts))
    at = value_at(value, format_table("paths")["text"]) if isinstance(value, Mapping) else value
    return at if isinstance(at, str) else ""


def _mark(part: Raw) -> str:
    kind = part.get("type", part.get("content_type"))
    if isinstance(part.get("custom"), Mapping):
        return "function"
    if isinstance(kind, str) and kind:
        if (
            kind.startswith("tool-")
            and "toolCallId" in part
            and kind not in ("tool-call", "tool-result")
        ):
            return "dynamic-tool"  # the AI SDK writes a known tool's name into the type
        if kind.endswith("_call") and part.get("call_id"):  # an item of Responses with an output
            return "function_call"
        endings = format_table("endings").items()
        return next((mark for ending, mark in endings if kind.endswith(ending)), kind)
    if isinstance(part.get("function_call"), Mapping) and "role" not in part:
        return "function_call_part"
    if "toolCallId" in part and "toolName" in part:
        return "tool-invocation"
    if "name" in part and ("arguments" in part or "args" in part):
        return "tool_call"
    if isinstance(part.get("function"), str) and "arguments" in part:
        return "function"
    typeless = format_table("marks")["typeless"]
    return next((name for name in typeless if isinstance(part.get(name), Mapping)), "")


def _call(part: Raw, mark: str) -> Data:
    paths = format_table("calls")[mark]
    id, name, arguments = (value_at(part, path) for path in paths)
    if mark == "dynamic-tool" and name is None:
        name = str(part.get("type")).removeprefix("tool-")
    function = {"name": _name(name), "arguments": _json(arguments)}
    if None in (name, arguments):
        function |= _misspelt(part, paths)
    return {"id": _name(id), "type": "function", "function": function}


def _misspelt(part: Raw, paths: Sequence[str]) -> Data:
    """Return the unknown, possibly misspelled fields of a call or result.

    If a call or result is an object inside its part, such as Gemini's functionCall, all unknown fields with a value are
    returned. A part that is itself the call or result may have fields that a program added, so only fields with names
    similar to a known name are returned.
    """
    known = {path.rpartition(".")[2] for path in "|".join(paths).split("|")} | _NO_CONTENT
    above = paths[-1].partition("|")[0].rpartition(".")[0]
    fields = value_at(part, above) if above else part
    return {
        name: value
        for name, value in (fields.items() if isinstance(fields, Mapping) else ())
        if value and name not in known and (above or nearest_name(str(name), known))
    }


def _result(part: Raw, mark: str) -> Data:
    paths = format_table("results")[mark]
    id, name, output = (value_at(part, path) for path in paths)
    if id is None and mark == "function_call_output":
        # Named after its call, which has no id either.
        name = str(part.get("type")).replace("_output", "_call")
    if isinstance(output, Mapping) and "type" in output:
        output = [output]
    contents = [] if output is None else [{"type": "text", "text": _json(output)}]
    kinds = format_table("marks")["result_part"]
    is_content = isinstance(output, list) and all(
        isinstance(part, Mapping) and any(kind in part for kind in kinds) for part in output
    )
    if output and is_content:
        contents = _contents(output) or contents
    contents += _contents(objects_in(value_at(part, format_table("result_parts").get(mark, ""))))
    is_error = bool(part.get("is_error")) or value_at(part, "toolResult.status") == "error"
    misspelt = [*_misspelt(part, paths)] if output is None else []
    about = without_empty(is_error=is_error, misspelt=misspelt)
    return result_message("tool", id, name, contents) | about


def result_message(role: str, id: Any, name: Any, contents: list[Data]) -> Data:
    """Return a tool result as a message, with its id and name."""
    named = without_empty(name=name if isinstance(name, str) else "")
    return {"role": role, "tool_call_id": _name(id), **named, "content": content_of(contents)}


def _contents(parts: Iterable[Any]) -> list[Data]:
    """Convert the content parts in a list to OpenAI's format.

    Calls, results and thoughts are left out.
    """
    return [value for part in parts for kind, value in sorted_part(part) if kind == "text"]


def _inner_parts(part: Raw) -> list[Data]:
    """List the content of a document, search result or citation, headings first.

    The list is empty if the part has no inner content, or has a text of its own.
    """
    inner = value_at(part, format_table("paths")["inner"])
    if holds(part, "source.type=text"):
        inner = value_at(part, "source.data")
    if not inner or isinstance(value_at(part, format_table("paths")["text"]), str):
        return []
    pieces = inner if isinstance(inner, list) else [inner]
    headings = [value_at(part, path) for path in format_table("paths")["headings"]]
    return _contents([*(text for text in headings if isinstance(text, str)), *pieces])


def _content_part(part: Raw) -> Data:
    if isinstance(wrapped := part.get("message_content"), Mapping):  # OpenInference wraps each part
        return _content_part(wrapped)
    kind = part.get("type", part.get("content_type"))
    mime = value_at(part, format_table("paths")["mime"])
    marks = format_table("marks")
    picture = kind in marks["image"] or part.get("modality") == "image"
    picture = picture or str(mime).startswith("image/")
    if picture or (not kind and isinstance(part.get("image"), Mapping | str)):
        if kind == "image_url" or "file_id" in part:
            return {**part, "type": kind}
        return _image_part(part)
    named = kind if isinstance(kind, str) else ""
    about_user = [words for words in map(part.get, marks["about_user"]) if isinstance(words, str)]
    text = value_at(part, format_table("paths")["text"]) or "\n".join(about_user) or None
    if isinstance(text, str) or part.get("text") == "":
        if named in ("input_text", "output_text", "compaction"):
            return {"type": "text", "text": text}
        return {**part, "type": named or "text", "text": text or ""}
    if not kind and isinstance(part.get("json"), dict | list):
        return {"type": "text", "text": _json(part["json"])}
    named = named or str(mime or "")
    inner = next((key for key, field in part.items() if isinstance(field, Mapping)), "unknown")
    return {**part, "type": named or ("file" if "file_name" in part else inner)}


def _image_part(part: Raw) -> Data:
    """Convert an image to OpenAI's chat format, with its bytes or URL."""
    names = ("image_bytes", "image_url", "mime", "detail")
    encoded, address, mime, detail = (value_at(part, format_table("paths")[n]) for n in names)
    if isinstance(encoded, bytes):
        encoded = b64encode(encoded).decode("ascii")
    if isinstance(encoded, str):
        image_format = value_at(part, "image.format")  # Converse has only the subtype
        if not isinstance(mime, str):
            mime = f"image/{image_format}" if isinstance(image_format, str) else "image"
        address = f"data:{mime};base64,{encoded}"
    size = {name: part[name] for name in ("width", "height") if name in part}
    detail = str(detail or "").casefold().removeprefix("media_resolution_")
    url = {"url": address} if isinstance(address, str) else {}
    shown = without_empty(detail=detail)
    return {"type": "image_url", "image_url": url, **size, **shown}


def objects_in(value: Any) -> list[Raw]:
    """List the objects in a list, or nothing for any other value."""
    return [entry for entry in as_list(value) if isinstance(entry, Mapping)]


def as_list(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, or else an empty sequence."""
    return value if isinstance(value, list | tuple) else ()


def _name(value: Any) -> str:
    """Convert an id or a name of any type to a string.

    None becomes "", and a value that was not a string is cut to 200 characters.
    """
    if isinstance(value, str):
        return value
    return "" if value is None else str(unpacked(value))[:200]


def _json(value: Any) -> str:
    """Write arguments or results as prompt text, with None as "{}"."""
    return "{}" if value is None else as_text(value)
