"""Inputs of commands: budgets, conversations and tools."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import click

from budgetkit.budget import Budget, brief, one_line, quoted, terminal_line, warn_caller
from budgetkit.budget.errors import unknown_name, wrong_kind
from budgetkit.counters import Counter, basis_for, counter, nearer_sentence
from budgetkit.extras.shell.terminal import PIPE, read_text
from budgetkit.inputs.budgets import AnyBudget, budget_in, budget_of, filled_in, read_budget
from budgetkit.inputs.conversations import opening_model
from budgetkit.models import Model, resolve
from budgetkit.presets import PRESETS
from budgetkit.pruning import Policy
from budgetkit.requests import Framing, framing_for, read_tools
from budgetkit.requests.reading.formats import format_table
from budgetkit.requests.reading.tools import has_more_pages, tool_entries, without_envelopes
from budgetkit.state.plain_data import unique_keys
from budgetkit.trace import Trace, iter_traces, load_trace, load_traces, shipped_traces
from budgetkit.trace.opening import Intake

# Types of tools: a function, or a tool run by the provider.
_KINDS = re.compile(
    r"function|custom|namespace|(?:web_search|web_fetch|x_search|file_search|code_interpreter|code_execution|retrieval"
    r"|image_generation|mcp|mcp_toolset|local_shell|shell|computer|computer_use|bash|text_editor|apply_patch|memory"
    r"|advisor|tool_search)(?:_preview)?(?:_\d[\d_]*)?|tool_search_tool_\w+|computer-use-preview"
)
# Keys that hold a list of tools.
_LISTS = ("result", "tools", "toolConfig", "functions", "functionDeclarations")
# Keys of a tool whose values have names chosen by its author.
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
# Keys of a tool whose values are texts, or lists of them.
_TEXTS = {"name", "title", "description", "type"}


class Piped(io.BytesIO):
    """Standard input, read completely to recognise its format."""

    name = "standard input"


def settings_at(name: str) -> AnyBudget:
    """Read a configuration or budget, or return a preset's name.

    The configuration or budget is in a file or on standard input.
    """
    if name in PRESETS:
        return name
    if name == PIPE:
        text = read_text(PIPE)
        if not text.strip():
            raise ValueError("No budget on standard input. Pipe one, or name a file.")
        return budget_in(text, "standard input")
    path = Path(name).expanduser()
    if not path.is_file():
        problem = unknown_name("budget", name, PRESETS).removesuffix(".")
        raise ValueError(f"{problem}, or pass the path of a file.")
    return read_budget(path)


def model_to_check(model: str | None, traces: Iterable[Trace]) -> Model:
    """Return the model whose window and counter a check uses.

    Without a given model, the result is the model that the conversations name. If they name several, the model with the
    smallest window is used; for an unknown model, this is the assumed window. If they name none, the result is the
    default model.

    Examples
    --------
    >>> messages = [{"role": "user", "content": "Hello"}]
    >>> traces = [Trace(name, messages, fields={"model": name}) for name in ("gpt-5.4", "gpt-4o")]
    >>> model_to_check(None, traces).name, model_to_check("gpt-5.4", traces).name, model_to_check(None, ()).name
    ('gpt-4o', 'gpt-5.4', 'gpt-5.4')
    """
    models = [resolve(trace.model) for trace in traces if model is None and trace.model]
    return opening_model(min(models, key=lambda known: known.window, default=model))


def load_one(source: str, conversation: str) -> Trace:
    """Load one conversation by number (counting from 1), id or title."""
    if not conversation.isdecimal():
        return load_trace(_source(source), conversation)
    number = 0
    named = None
    traces = iter_traces(_source(source))
    for number, trace in enumerate(traces, 1):
        if conversation == str(number):
            if number > 1:
                return trace
            # Warn of others, whose errors do not concern the first.
            more = 0
            with suppress(ValueError), catch_warnings(action="ignore"):
                for _ in islice(traces, 99):
                    more += 1
            if more:
                total = f"{1 + more:,}{' or more' if more == 99 else ''}"
                warn_caller(
                    f"Read conversation 1 of {total} in {one_line(source)}, {trace.title}. "
                    "Choose another with --conversation, by number, id or title."
                )
            return trace
        if conversation in (trace.id, trace.title):
            named = named or trace
    if named is not None:
        return named
    raise ValueError(
        f"No conversation {brief(conversation)} in {one_line(source)}. Choose 1 to {number:,}, an id or a title."
    )


def load_all(sources: Iterable[str]) -> Iterator[Trace]:
    """Yield all conversations in some files."""
    for source in sources:
        yield from load_traces(_source(source))


def _source(source: str) -> str | Piped:
    return Piped(sys.stdin.buffer.read()) if source == PIPE else source


def tools_of(source: str) -> list[dict[str, Any]]:
    """Read tool schemas from a list, request or MCP answer."""
    where = "standard input" if source == PIPE else one_line(source)
    return tools_in(json_at(source, where, "Pass tool schemas as JSON."), where)


def json_at(source: str, where: str, advice: str) -> Any:
    """Read a JSON file, rejecting repeated keys."""
    try:
        return json.loads(read_text(source), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON in {where} ({error}). {advice}") from None


def tools_in(data: Any, where: str = "the list") -> list[dict[str, Any]]:
    """List the tools in plain data, converting MCP tools to functions.

    >>> tools_in({"result": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}})
    [{'type': 'function', 'function': {'name': 'ping', 'parameters': {'type': 'object'}}}]
    """
    try:
        check_tools(data)
        tools = read_tools(data)
    except ValueError as error:
        raise ValueError(f"Invalid tools in {where}: {error}") from None
    if not tools.listed or "a tool without a name" in tools.uncounted:
        raise ValueError(f"No named tools in {where}. Give each tool schema a name.")
    return [dict(tool) for tool in tools.listed]


#: The types of the values of some schema keys.
_SHAPES = {
    "properties": Mapping,
    "enum": list | tuple,
    "items": Mapping | bool,
    "anyOf": list | tuple,
    "oneOf": list | tuple,
}


def check_tools(data: Any) -> None:
    """Reject tools with unknown or invalid parts, so that none goes uncounted.

    >>> check_tools([{"name": "ping", "descriptoin": "Look whether a host answers"}])
    Traceback (most recent call last):
    ValueError: Unknown key 'descriptoin' in a tool. Correct it, or leave it out.
    """
    if has_more_pages(data):
        raise ValueError(
            "The list of tools has more pages (nextCursor). Request every page, and pass all tools."
        )
    keys = {name: frozenset(words.split()) for name, words in format_table("tool_keys").items()}
    words = frozenset(format_table("shared")["words"].split())
    keys["of a schema"] = words - keys["known"] - keys["schemas"] | _TEXTS | {"format"}
    keys["of a tool"] = keys["known"] | keys["schemas"] | keys["provider"]
    if isinstance(data, Mapping):
        if isinstance(answer := data.get("result"), Mapping):
            _refuse_unknown(answer.keys() - keys["answer"])
        lists = [name for name in _LISTS if data.get(name)]
        if len(lists) > 1:
            raise ValueError(
                f"Several lists of tools: {quoted(lists)}. Put all tools into one list."
            )
    for entry in tool_entries(without_envelopes(data)):
        kind = entry.get("type", "function")
        if not isinstance(kind, str):
            raise ValueError(wrong_kind("tool type", kind, "a string"))
        if not _KINDS.fullmatch(kind):
            raise ValueError(f"Unknown tool type {brief(kind)}. Correct it, or leave it out.")
        if kind in ("function", "custom") and entry.keys() - keys["provider"]:
            _check_keys(entry, keys, "of a tool")


def _check_keys(value: Any, keys: Mapping[str, Collection[str]], place: str) -> None:
    """Reject unknown keys and invalid values at any depth of a tool.

    Names chosen by the tool's author are not checked.
    """
    if isinstance(value, list | tuple):
        for entry in value:
            _check_keys(entry, keys, place)
    elif isinstance(value, Mapping):
        _refuse_unknown(
            key for key in value if key not in keys[place] and not str(key).startswith(("x-", "$"))
        )
        for key, entry in value.items():
            if key in _TEXTS and not isinstance(entry, str | list | tuple | None):
                raise ValueError(wrong_kind(f"{brief(key)} in a tool", entry, "a string"))
            if place == "of a schema" and not isinstance(entry, _SHAPES.get(key, object)):
                raise ValueError(wrong_kind(f"{brief(key)} in a tool", entry, "valid JSON Schema"))
            members = entry.items() if key == "properties" and isinstance(entry, Mapping) else ()
            for name, member in members:
                if not isinstance(member, Mapping | bool):
                    raise ValueError(
                        wrong_kind(f"property {brief(name)} in a tool", member, "its schema")
                    )
            if key in keys["schemas"] and isinstance(entry, Mapping):
                is_wrapped = "toolSpec" in keys[place] and entry.keys() == {"json"}
                _check_keys(entry["json"] if is_wrapped else entry, keys, "of a schema")
            elif key in _NAMED and isinstance(entry, Mapping):
                _check_keys([*entry.values()], keys, place)
            elif key not in keys["free"] and key not in keys["provider"]:
                _check_keys(entry, keys, place)


def _refuse_unknown(keys: Iterable[object]) -> None:
    for key in keys:
        raise ValueError(f"Unknown key {brief(key)} in a tool. Correct it, or leave it out.")


@dataclass(frozen=True)
class BudgetCase:
    """The budget, counter, model and policy that a command's options name."""

    budget: Budget
    counter: Counter
    framing: Framing
    model: str | None
    window: int | None
    policy: Policy | None  # of the configuration
    budget_name: str  # as given
    counter_name: str | None


def with_budget(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command to receive a `BudgetCase` in place of its options."""

    @wraps(command)
    def run_command(
        budget: str, window: int | None, model: str | None, counting: str | None, **rest: Any
    ) -> Any:
        settings = settings_at(budget)
        model, counting, policy = filled_in(settings, model, counting)
        opened = (
            model_to_check(model, rest["traces"])
            if "traces" in rest
            else opening_model(model, rest.get("trace"))
        )
        # Only a given model must be known: a conversation's unknown model has an estimate.
        own_counter = opened if opened.is_known or model is None else opened.name
        case = BudgetCase(
            budget=budget_of(settings, opened, window),
            counter=counter(own_counter if counting is None else counting),
            # The model's framing, even with another counter, as in explorers.
            framing=framing_for(opened),
            model=model,
            window=window,
            policy=policy,
            budget_name=budget,
            counter_name=counting,
        )
        if basis_for(case.counter, opened) != "exact":
            sentences = [f"Counted with {case.counter.name}.", nearer_sentence(case.counter)]
            click.echo(terminal_line(" ".join(filter(None, sentences))), err=True)
        return command(case, **rest)

    return run_command


def with_conversation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command to receive a `BudgetCase` and the loaded conversation."""
    with_lines = with_budget(command)

    @wraps(with_lines)
    def run_command(file: str, conversation: str, **rest: Any) -> Any:
        trace = load_one(file, conversation)
        if file not in shipped_traces():
            click.echo(read_line(trace), err=True)
        # The first warning about a conversation without text was shown on loading.
        for explanation in trace.warnings[trace.is_silent :]:
            warn_caller(explanation)
        return with_lines(trace=trace, **rest)

    return run_command


def read_line(trace: Trace) -> str:
    """Summarise a conversation in one line, in the wording of the explorers.

    The conversation's warnings are omitted, because they are shown separately.

    Examples
    --------
    >>> read_line(Trace("toy", [{"role": "user", "content": "Hello"}]))
    'Read: OpenAI chat, 1 message: 1 user'
    """
    facts = [fact for fact in Intake([trace]).sentences if fact not in trace.warnings]
    return terminal_line(f"Read: {'; '.join(facts)}")
