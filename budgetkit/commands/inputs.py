"""What commands are given: budgets, conversations, tools and policies, each from a file, a name or standard input."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import catch_warnings, warn

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.commands.texts import PIPE, text_of
from budgetkit.models import Model, model
from budgetkit.plan import Plan
from budgetkit.presets import PRESETS
from budgetkit.pruning.policies import Policy
from budgetkit.pruning.policies.systems import NAMED, policy_of
from budgetkit.state import from_json, from_yaml
from budgetkit.trace.conversation import Trace
from budgetkit.trace.loading import iter_traces, load_trace, load_traces


class Piped(io.BytesIO):
    """Standard input, read whole, so that any format can be told from its first bytes."""

    name = "standard input"


def model_of(name: str | None) -> Model | None:
    """Look a model up; an unknown one is an error here, where nobody sees what stands in."""
    return None if name is None else model(name, unknown="raise")


def budget_of(given: str, window: int | None, model_name: str | None) -> Budget:
    """Read a saved budget, or make a preset's."""
    if given == PIPE or Path(given).expanduser().is_file():
        text = text_of(given)
        saved = from_json(text) if text.lstrip().startswith("{") else from_yaml(text)
        budget = saved.budget if isinstance(saved, Plan) else saved
        return budget if window is None else budget.assign(window=window)
    if given not in PRESETS:
        raise ValueError(f"no budget {brief(given)}; there is no such file; presets are {quoted(PRESETS)}; give one")
    found = model_of(model_name)
    return PRESETS[given](window or found or 8_192)


def trace_of(given: str, conversation: str) -> Trace:
    """Load one conversation, by its number from 1 on, else its id or its title."""
    if not conversation.isdecimal():
        return load_trace(_source(given), conversation)
    many, named = 0, None
    traces = iter_traces(_source(given))
    for many, trace in enumerate(traces, 1):
        if conversation == str(many):
            return _told(given, trace, traces) if many == 1 else trace
        if named is None and conversation in (trace.id, trace.title):
            named = trace
    if named is not None:
        return named
    told = f"it has {many:,}, numbered from 1; take one of these, or an id or a title"
    raise ValueError(f"conversation {brief(conversation)} of {one_line(given)} was asked for; {told}")


def _told(given: str, first: Trace, others: Iterator[Trace]) -> Trace:
    """Return the first conversation; a note says that there are others, and how many."""
    more = 0
    with suppress(ValueError), catch_warnings(action="ignore"):  # what is broken further on is none of this one
        for _ in islice(others, 99):
            more += 1
    if more:
        many = f"{1 + more:,}{' or more' if more == 99 else ''} in {one_line(given)}, {first.title}"
        warn(f"this is conversation 1 of {many}; --conversation takes another's number, id or title", stacklevel=1)
    return first


def traces_of(given: str) -> list[Trace]:
    """Load every conversation of a file."""
    return load_traces(_source(given))


def _source(given: str) -> str | Piped:
    return Piped(sys.stdin.buffer.read()) if given == PIPE else given


def tools_of(given: str) -> list[dict[str, Any]]:
    """Read tool schemas: a list of them, a request with tools, or the answer of an MCP server to tools/list."""
    where = "standard input" if given == PIPE else one_line(given)
    try:
        data = json.loads(text_of(given))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is no JSON ({error}); give tool schemas as JSON") from None
    return tools_in(data, where)


def tools_in(data: Any, where: str = "tools") -> list[dict[str, Any]]:
    """List the tools in plain data; those of the Model Context Protocol become functions.

    >>> tools_in({"result": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}})
    [{'type': 'function', 'function': {'name': 'ping', 'description': '', 'parameters': {'type': 'object'}}}]
    """
    for field in ("result", "tools"):
        data = data.get(field, data) if isinstance(data, Mapping) else data
    listed = [data] if isinstance(data, Mapping) else data
    if not isinstance(listed, list | tuple) or not all(isinstance(each, Mapping) for each in listed):
        raise ValueError(f"{where} holds no tool schemas; they are a list, or stand under 'tools'; give such a file")
    for each in listed:
        if not (each.get("name") or each.get("type") or isinstance(each.get("function"), Mapping)):
            raise ValueError(f"{where} holds {brief(dict(each))}, no tool; a tool has a name; give tool schemas")
    return [_function(each) for each in listed]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    if "inputSchema" not in tool:
        return dict(tool)
    told = {"description": str(tool.get("description") or ""), "parameters": tool["inputSchema"]}
    return {"type": "function", "function": {"name": tool.get("name"), **told}}


def policies_named(names: Iterable[str]) -> dict[str, Policy]:
    """Make policies by their names, in which the shell may have a hyphen for a blank; all where none is named."""
    known = {name.replace(" ", "-"): name for name in NAMED}
    return {known.get(name, name): policy_of(known.get(name, name)) for name in names or NAMED}
