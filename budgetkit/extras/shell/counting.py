"""Commands that count: ``budgetkit count``, ``models`` and ``redact``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from budgetkit.budget import many, one_line
from budgetkit.counters import Counter, basis_of, counter, nearer_sentence
from budgetkit.extras.shell.terminal import (
    PIPE,
    Names,
    read_text,
    show_json,
    show_lines,
    show_table,
)
from budgetkit.models import models, resolve

if TYPE_CHECKING:
    from budgetkit.requests import RequestCount


def count_command(
    files: Names,
    texts: Names,
    names: Names,
    models: Names,
    provider: str | None,
    ways: bool,
    kind: str,
    as_json: bool,
) -> None:
    """Count the tokens of texts, files, conversations or a request.

    A request is the JSON body sent to a provider: messages, tools and framing are counted as billed. MCP servers are
    read from a client's configuration (Claude Code, Codex, Gemini CLI, VS Code, Cursor); for each server, a saved
    answer to tools/list in a file NAME.json is counted. No server is started. Data is sent only with --ask, which needs
    the extra endpoints and the provider's key in the environment.
    """
    if kind != "text" and (provider or ways):
        raise ValueError(
            "Cannot use --ask or --ways with --as: they count texts only. Leave --as out."
        )
    if provider and not models:
        raise ValueError(
            f"Missing --model for --ask {provider}. Pass the provider's name for the model."
        )
    names = (*names, *models)
    if kind == "servers":
        return _servers(files, names[0] if names else "gpt-4o", as_json)
    if kind == "request":
        return _requests(files or (PIPE,), names, as_json)
    counters = [counter(name) for name in names or ("o200k_base",)]
    if provider:
        endpoints = import_module("budgetkit.extras.endpoints")
        counters += [endpoints.provider_counter(provider, model) for model in models]
    if kind == "conversation":
        pairs = [*_conversations(files or (PIPE,))]
        counts = [[int(trace.counts(way).sum()) for way in counters] for _, trace in pairs]
    else:
        pairs = [*_texts(files, texts)]
        if ways:
            return _ways([text for _, text in pairs], counters, as_json)
        counts = [[way(text) for way in counters] for _, text in pairs]
    columns = [way.name for way in counters]
    table = [dict(zip(columns, row, strict=True)) for row in counts]
    totals = {name: sum(row[name] for row in table) for name in columns}
    if as_json:
        counted = [
            {"name": name, "tokens": row} for (name, _), row in zip(pairs, table, strict=True)
        ]
        basis = {way.name: basis_of(way) for way in counters}
        return show_json({"counted": counted, "tokens": totals, "basis": basis})
    if len(pairs) == len(counters) == 1:
        show_lines(f"{many(counts[0][0], 'token')} ({columns[0]})")
    else:
        rows = [(name, *row.values()) for (name, _), row in zip(pairs, table, strict=True)]
        rows += [("all", *totals.values())] if len(rows) > 1 else []
        show_table("Tokens", ["", *columns], rows)
    show_lines(*filter(None, map(nearer_sentence, counters)))
    show_lines(
        *(
            f"{name} is a request body, counted as text. Use --as request to count the billed tokens."
            for name, value in pairs
            if kind == "text" and _is_request(value)
        )
    )


def _is_request(text: str) -> bool:
    """Return True if a text is the JSON body of a request."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        return bool(import_module("budgetkit.requests").read_request(text).messages)
    except ValueError:
        return False


def _ways(texts: list[str], counters: list[Counter], as_json: bool) -> None:
    """Print a comparison of the methods of counting."""
    table = import_module("budgetkit.lab.accuracy").ways(
        [text for text in texts if text], *counters
    )
    if as_json:
        return show_json(table)
    columns = ["name", "kind", "basis", "tokens", "off", "network"]
    show_table("Ways of counting", columns, table[columns].itertuples(index=False))
    kinds = table.drop_duplicates("kind")
    show_lines(
        *(f"{row.kind}: costs {row.costs}; use it for {row.use}" for row in kinds.itertuples())
    )


def _texts(files: Names, texts: Names) -> Iterator[tuple[str, str]]:
    """Yield each text with its name.

    If there are neither texts nor files, standard input is read.
    """
    yield from ((text if len(text) <= 40 else f"{text[:39]}…", text) for text in texts)
    for file in files or (() if texts else (PIPE,)):
        yield ("standard input" if file == PIPE else file), read_text(file)


def _conversations(files: Names) -> Iterator[tuple[str, Any]]:
    """Yield every conversation of every file, with its id."""
    inputs = import_module("budgetkit.extras.shell.inputs")
    return ((trace.id, trace) for trace in inputs.load_all(files))


def _requests(files: Names, names: Names, as_json: bool) -> None:
    """Print the tokens of request bodies and of their parts."""
    count_request = import_module("budgetkit.requests").count_request
    counts = [
        (file, count_request(read_text(file), name)) for file in files for name in names or (None,)
    ]
    if as_json:
        fields = (
            "model",
            "tokens",
            "exact",
            "basis",
            "interval",
            "uncounted",
            "counted_by",
            "nearer",
        )
        return show_json(
            [
                {"name": file, **{field: getattr(count, field) for field in fields}}
                for file, count in counts
            ]
        )
    for file, count in counts:
        rows = [(row.kind, row.part, row.message, row.tokens) for row in count.ledger]
        rows.append(("all", "", None, count.tokens))
        title = f"{file}: {count.model}, {count.tokens:,} tokens{f'; {count.unknown}' if count.unknown else ''}"
        show_table(title, ["kind", "part", "message", "tokens"], rows)
        show_lines(_basis_line(count), *filter(None, [nearer_sentence(count)]))


# Match a string in JSON, which is kept, or a comment or comma, which is removed.
_TEXT = r'("(?:[^"\\]|\\(?s:.)?)*+(?:"|\Z))'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)")
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*+[\]}}])")


def _servers(files: Names, model: str, as_json: bool) -> None:
    """List MCP servers with the token counts of their saved tool lists.

    A file without servers is a saved list of tools, and has the name of its server. The configured servers come first,
    then the servers that only a saved list names.
    """
    requests = import_module("budgetkit.requests")
    servers_in = import_module("budgetkit.requests.reading.tools").servers_in
    tools_in = import_module("budgetkit.extras.shell.inputs").tools_in
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    without = requests.count_request(body).tokens
    servers: dict[str, str] = {}
    saved: dict[str, tuple[int, int]] = {}
    for file in files:
        path = Path(file)
        text = read_text(file)
        if path.suffix == ".toml":
            value = import_module("tomllib").loads(text)
        else:
            # VS Code and Cursor allow comments and, before a closing bracket, a comma.
            for extension in (_COMMENT, _LAST_COMMA):
                text = extension.sub(lambda match: match[1] or "", text)
            value = json.loads(text)
        named = servers_in(value)
        for name, entry in named.items():
            is_off = entry.get("disabled") or entry.get("enabled") is False
            started_by = "command" if "command" in entry else "address"
            servers[name] = "off" if is_off else started_by
        if not named:
            tools = requests.read_tools(value).listed and tools_in(value, one_line(file))
            count = requests.count_request(body | {"tools": tools})
            saved[path.stem] = len(tools), count.tokens - without
    rows = [
        (name, servers.get(name, "not configured"), *saved.get(name, (None, None)))
        for name in servers | saved
    ]
    columns = ["server", "started by", "tools", "tokens"]
    if as_json:
        return show_json([dict(zip(columns, row, strict=True)) for row in rows])
    show_table(
        f"MCP servers, with the tokens of their tools in a request to {model}", columns, rows
    )
    if saved:
        total = many(sum(tokens for _, tokens in saved.values()), "token")
        show_lines(f"{total} of tools in every request, unless the client loads them on demand.")
    if missing := ", ".join(name for name in servers if name not in saved):
        advice = "budgetkit does not start servers; save each server's tools/list as NAME.json."
        show_lines(f"Not counted: {missing}. {advice}")
    return None


def _basis_line(count: RequestCount) -> str:
    """Describe the basis of a request count, and its interval."""
    basis = f"{count.basis[0].upper()}{count.basis[1:]}"
    if count.exact:
        return f"{basis}: counted by the {count.counted_by}."
    low, high = count.interval
    most = "an unknown number" if high is None else f"{high:,}"
    missing = f" Not counted: {', '.join(count.uncounted)}." if count.uncounted else ""
    return f"{basis}, {low:,} to {most} tokens: counted by the {count.counted_by}.{missing}"


#: The fields of a model that ``budgetkit models --json`` prints.
_FIELDS = (
    "name",
    "window",
    "kind",
    "max_output",
    "encoding",
    "encoding_is_own",
    "provider",
    "source",
    "date",
    "ends",
)


def models_command(names: Names, as_json: bool) -> None:
    """List models with window, longest answer, vocabulary, source and end date.

    A name that is not in the table is looked up as in all other commands, and the output names the model used for it.
    """
    resolved = [*map(resolve, names)]
    rows = resolved or [*models()]
    if as_json:
        return show_json([{field: getattr(model, field) for field in _FIELDS} for model in rows])
    columns = [
        "model",
        "window",
        "window for",
        "max output",
        "vocabulary",
        "exact",
        "provider",
        "source date",
        "ends",
    ]
    cells = [
        (
            model.name,
            model.window,
            "prompt and answer" if model.kind == "shared" else "prompt only",
            model.max_output,
            model.encoding,
            "yes" if model.encoding_is_own else "no",
            model.provider,
            model.date,
            model.ends,
        )
        for model in rows
    ]
    show_table("Models, in tokens", columns, cells)
    return show_lines(*(model.notice for model in resolved if model.notice))


def redact_command(file: str, name: str) -> None:
    """Print a file's conversations as JSON lines, with filler for all words.

    Texts keep their size under the counter, names and ids are replaced, and fields that no figure uses are left out.
    """
    redact = import_module("budgetkit.extras.redaction").redact
    to_line = import_module("budgetkit.trace").to_line
    way = counter(name)
    for _, trace in _conversations((file,)):
        line = to_line(redact(trace, way))
        # Control characters are escaped, so that no text can control the terminal.
        click.echo("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line))
