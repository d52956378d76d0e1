"""Toolset: the tools of a request, read from any format.

    OpenAI chat         {"type": "function", "function": {"name": ..., "description": ..., "parameters": {...}}}
    OpenAI Responses    {"type": "function", "name": ..., "description": ..., "parameters": {...}}
    Anthropic           {"name": ..., "description": ..., "input_schema": {...}}
    Gemini              {"functionDeclarations": [{"name": ..., "description": ..., "parameters": {...}}]}
    in a namespace      {"type": "namespace", "name": ..., "tools": [{"type": "function", ...}]}
    Bedrock Converse    {"toolSpec": {"name": ..., "description": ..., "inputSchema": {"json": {...}}}}
    MCP                 {"name": ..., "description": ..., "inputSchema": {...}}

Tools can be given as a list, as a request body with a list under ``tools`` or ``toolConfig``, or as an MCP server's
answer to ``tools/list`` with or without its JSON-RPC envelope. All counts read tools with this module, so that they
agree. A tool that the provider runs, such as a web search, has no schema to count, so only its type is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetkit.budget import brief
from budgetkit.budget.errors import wrong_kind
from budgetkit.message import Data
from budgetkit.requests.reading.formats import fill_template, format_table, holds, value_at
from budgetkit.requests.reading.parts import as_list, objects_in

Schema = Mapping[str, Any]

_NEWER_PARAMETERS = ("parametersJsonSchema", "parameters_json_schema")
_PARAMETERS = ("parameters", "input_schema", *_NEWER_PARAMETERS, "inputSchema")
# Texts beside the parameters; the model gets them too, in a format that no rule counts.
_EXTRA_TEXTS = ("input_examples", "response", "responseJsonSchema", "response_json_schema")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
# Fields around a list of tools: of a JSON-RPC answer, of Converse's configuration, of a request body.
_ENVELOPES = ("result", "toolConfig", "tools")
_DEEPEST_ENVELOPE = 4
FURTHER_PAGES = ("nextCursor", "next_cursor", "nextPageToken", "next_page", "has_more")
# Entries of Converse's list that are not tools.
_NO_TOOLS = {"cachePoint"}
_DEFINITIONS = ("definitions", "$defs")
_CHOICES = ("anyOf", "any_of", "oneOf", "allOf")
_WITH_TEXT = {"properties", "items", "description", "enum"}
# Values inserted for references. Definitions that refer to each other double at every step.
_MOST_VALUES = 20_000
_DEEPEST_SCHEMA = 100
# Fields that identify an entry without a name as a function.
_OF_A_FUNCTION = {"description", "function", "type", *_PARAMETERS}
_EXPECTED = "a list of schemas, each an object with a name, or an MCP server's answer to tools/list"


@dataclass(frozen=True)
class Toolset:
    """The tools of a request.

    Parameters
    ----------
    listed : tuple of Mapping
        All tools in order, without the wrapping of Gemini, Converse and MCP.
    functions : tuple of Mapping
        The tools that have a schema to count.
    uncounted : tuple of str
        Names of the parts that cannot be counted.

    Examples
    --------
    >>> read_tools([{"name": "ping"}, {"type": "web_search"}])
    Toolset(listed=({'name': 'ping'}, {'type': 'web_search'}), functions=({'name': 'ping'},), \
uncounted=('built-in tool web_search',))
    """

    listed: tuple[Schema, ...] = ()
    functions: tuple[Schema, ...] = ()
    uncounted: tuple[str, ...] = ()


def read_tools(value: Any) -> Toolset:
    """Read the tools of a request in any format.

    Parameters
    ----------
    value : sequence of Mapping, or Mapping
        Tools in any format of this module; None for no tools.

    Returns
    -------
    Toolset
        The tools, with the names of those that cannot be counted.

    Raises
    ------
    ValueError
        If the value is neither an object nor a list of objects, or if it is an MCP server's error.

    Examples
    --------
    >>> answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}}
    >>> read_tools(answer).functions
    ({'type': 'function', 'function': {'name': 'ping', 'parameters': {'type': 'object'}}},)
    >>> read_tools("oops")
    Traceback (most recent call last):
    ValueError: Invalid tools: a value of type str. Expected a list of schemas, each an object with a name, \
or an MCP server's answer to tools/list.
    """
    raw_tools = tool_entries(without_envelopes(value))
    tools = [tool for entry in raw_tools for tool in _flat(_without_nulls(entry))]
    uncounted = ["further pages of tools"] if has_more_pages(value) else []
    functions: list[Schema] = []
    for tool in tools:
        function = unwrapped(tool)
        label = _builtin(tool)
        if not label and {**tool, **function}.get("defer_loading"):
            label = "deferred tools"  # added to the prompt only after a tool search finds them
        if label:
            uncounted.append(label)
            continue
        functions.append(tool)
        uncounted += [
            f"{key} of tool {tool_name(tool)}" for key in _EXTRA_TEXTS if function.get(key)
        ]
        values = filter(None, map(function.get, _PARAMETERS))
        if not all(isinstance(value, Mapping) for value in values):
            uncounted.append(f"parameters of tool {tool_name(tool)}")

    return Toolset(
        listed=tuple(tools),
        functions=tuple(functions),
        uncounted=tuple(dict.fromkeys(uncounted)),
    )


def write_tools(entries: Iterable[Schema], form: str) -> tuple[list[Data], list[str]]:
    """Write tools in a provider's format.

    Tools that already have the format are unchanged, and so are built-in tools. With "any", only the tools of an MCP
    server are converted. Return the tools, and the names of the built-in tools that belong to another format.

    >>> write_tools([{"name": "ping", "description": "Ping."}], "converse")[0]
    [{'toolSpec': {'name': 'ping', 'description': 'Ping.', 'inputSchema': {'json': {'type': 'object'}}}}]
    """
    row = format_table("tools")[form]
    written: list[Data] = []
    declared: list[Data] = []  # Gemini's tools, all in one entry
    foreign: list[str] = []
    for entry in map(_without_nulls, entries):
        if any(holds(entry, condition) for condition in row["accepted"]):
            written.append(dict(entry))
            continue
        for tool in _flat(entry):
            if label := _builtin(tool):
                foreign.append(label)
                written.append(dict(tool))
                continue
            fields = {**unwrapped(tool), "schema": parameters_of(tool) or {"type": "object"}}
            tool = {**row["defaults"], **fill_template(row["template"], fields)}
            (declared if form == "gemini" else written).append(tool)
    if declared:
        written.append({"functionDeclarations": declared})
    return written, foreign


def without_envelopes(value: Any) -> Any:
    """Remove the envelopes around a list of tools.

    If an MCP server returned an error in place of tools, raise `ValueError`.
    """
    for _ in range(_DEEPEST_ENVELOPE):
        value = _sdk_fields(value)
        if not isinstance(value, Mapping) or "name" in value:
            break
        inside = [value[field] for field in _ENVELOPES if field in value]
        if not inside and "error" in value:
            raise ValueError(
                f"The MCP server returned an error: {brief(value['error'])}. Send the request again."
            )
        if not inside:
            break
        value = inside[0]
    return value


def _sdk_fields(value: Any) -> Any:
    """Convert an SDK's object to a dictionary, leaving other values unchanged."""
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    return dump(by_alias=True, exclude_none=True)


def _without_nulls(entry: Schema) -> Schema:
    """Remove the null fields that some clients write."""
    return {field: value for field, value in entry.items() if value is not None}


def has_more_pages(value: Any) -> bool:
    """Return True if an MCP server's answer has further pages."""
    answer = value.get("result", value) if isinstance(value, Mapping) else None
    return (
        isinstance(answer, Mapping)
        and "tools" in answer
        and any(map({**answer, **value}.get, FURTHER_PAGES))
    )


def tool_entries(value: Any) -> Sequence[Schema]:
    """Return one tool or several tools as a sequence.

    None and an empty object become an empty sequence. Raise `ValueError` for anything else.
    """
    if value is None or value == {}:
        return ()
    if isinstance(value, Mapping):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ValueError(wrong_kind("tools", value, _EXPECTED))
    tools = [_sdk_fields(tool) for tool in value]
    for tool in tools:
        if not isinstance(tool, Mapping):
            raise ValueError(wrong_kind("tool", tool, _EXPECTED))
    return tools


def _flat(entry: Schema) -> Iterator[Schema]:
    """Yield the tools of one entry without their wrapping."""
    spec = entry.get("toolSpec")
    declarations = next((field for field in _DECLARATIONS if field in entry), None)
    if isinstance(spec, Mapping):
        yield _with_schema_as(spec, "input_schema")
    elif declarations is not None:
        yield from map(_gemini_tool, tool_entries(entry[declarations]))
        yield from ({name: settings} for name, settings in entry.items() if name != declarations)
    elif entry.get("type") == "namespace":
        yield from tool_entries(entry.get("tools"))
        yield {name: value for name, value in entry.items() if name != "tools"}
    elif "inputSchema" in entry and "function" not in entry:
        yield {"type": "function", "function": _with_schema_as(entry, "parameters")}
    elif not entry.keys() <= _NO_TOOLS:
        yield entry


def _gemini_tool(tool: Schema) -> Schema:
    """Move a Gemini declaration's schema to the key "parameters"."""
    for field in _NEWER_PARAMETERS:
        if isinstance(tool.get(field), Mapping) and "parameters" not in tool:
            others = {name: value for name, value in tool.items() if name != field}
            return {**others, "parameters": tool[field]}
    return tool


def _with_schema_as(tool: Schema, field: str) -> Data:
    """Return a tool's name and description, with its schema under `field`.

    The schema is the tool's "inputSchema", without Converse's wrapping. A missing field is left out.
    """
    template = {"name": "{name}", "description": "{description}", field: "{schema}"}
    return fill_template(
        template, {**tool, "schema": value_at(tool, "inputSchema.json|inputSchema")}
    )


def _builtin(tool: Schema) -> str:
    """Return a label for a built-in or unnamed tool, or ""."""
    kind = tool.get("type")
    name = unwrapped(tool).get("name")
    has_schema = any(isinstance(tool.get(field), Mapping) for field in _PARAMETERS)
    if kind not in (None, "function") and not (has_schema and name):
        return f"built-in tool {kind}"
    if name:
        return ""
    if _OF_A_FUNCTION & tool.keys():
        return "a tool without a name"
    return f"built-in tool {next(iter(tool), '')}"


def unwrapped(tool: Schema) -> Schema:
    """Remove the wrapping ``{"type": "function", "function": {...}}`` from a tool."""
    function = tool.get("function")
    if isinstance(function, Mapping) and function:
        return function
    return tool


def tool_name(tool: Schema) -> str:
    """Return a tool's name, or the type of a built-in tool."""
    function = unwrapped(tool)
    return str(function.get("name") or function.get("type") or "")


def parameters_of(tool: Schema) -> Schema:
    """Return a function's parameter schema, under whichever key it is given.

    Return an empty mapping if the function has no parameters.
    """
    function = unwrapped(tool)
    schemas = (function.get(name) for name in _PARAMETERS)
    return next((schema for schema in schemas if isinstance(schema, Mapping) and schema), {})


def inlined(schema: Schema) -> Schema:
    """Replace the references in a schema with their definitions.

    A recursive definition is inserted once, and values deeper than 100 levels are dropped. After 20,000 inserted
    values, further references are kept.

    >>> word = {"properties": {"word": {"$ref": "#/$defs/Word"}}, "$defs": {"Word": {"type": "string"}}}
    >>> inlined(word)
    {'properties': {'word': {'type': 'string'}}}
    """
    definitions: Data = {}
    for name in _DEFINITIONS:
        if isinstance(schema.get(name), Mapping):
            definitions |= schema[name]
    values = 0

    def written(value: Any, above: tuple[str, ...] = (), depth: int = 0) -> Any:
        nonlocal values
        values += bool(above)
        if depth > _DEEPEST_SCHEMA:
            return {}
        if isinstance(value, list | tuple):
            return [written(inner, above, depth + 1) for inner in value]
        if not isinstance(value, Mapping):
            return value
        fields = {name: written(inner, above, depth + 1) for name, inner in value.items()}
        reference = fields.get("$ref")
        if not isinstance(reference, str) or values > _MOST_VALUES:
            return fields
        del fields["$ref"]
        name = reference.rpartition("/")[2]
        if name in above or not isinstance(definitions.get(name), Mapping):
            return fields
        return {**written(definitions[name], (*above, name), depth + 1), **fields}

    result: Schema = written({n: value for n, value in schema.items() if n not in _DEFINITIONS})
    return result


def inner_schemas(schema: Schema) -> list[Schema]:
    """List the schemas of a schema's items and choices.

    Choices without properties, items, a description or an enumeration are left out.

    >>> inner_schemas({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    [{'type': 'array', 'items': {'type': 'string'}}]
    """
    items = schema.get("items")
    inner = [items] if isinstance(items, Mapping) and items else []
    for name in _CHOICES:
        inner += [choice for choice in objects_in(schema.get(name)) if _WITH_TEXT & choice.keys()]
    return inner


def choices_of(schema: Schema) -> list[str]:
    """List the values of an enumeration as strings.

    The list is empty for any other schema.
    """
    return [*map(str, as_list(schema.get("enum")))]


def properties_of(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of an object's properties by name."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {
        name: member if isinstance(member, Mapping) else {} for name, member in properties.items()
    }


_SERVERS = {"mcpServers", "mcp_servers", "servers", "context_servers"}
_ADDRESSES = ("command", "url", "httpUrl", "serverUrl")


def servers_in(configuration: Any) -> dict[str, Schema]:
    """Return the MCP servers that a client's configuration lists, by name.

    The configuration comes from a file in JSON (Claude Code, Gemini CLI, Cursor, VS Code) or TOML (Codex).

    Examples
    --------
    >>> servers_in({"projects": {"/shop": {"mcpServers": {"git": {"command": "uvx"}}}}})
    {'git': {'command': 'uvx'}}
    """
    servers: dict[str, Schema] = {}
    waiting = [configuration]
    while waiting:
        value = waiting.pop()
        for key, inside in value.items() if isinstance(value, Mapping) else ():
            if key not in _SERVERS or not isinstance(inside, Mapping):
                waiting.append(inside)
                continue
            for name, entry in inside.items():
                if isinstance(entry, Mapping) and any(field in entry for field in _ADDRESSES):
                    servers[name] = entry
    return servers
