"""Tables of messages: CSV, TSV, Excel, parquet, arrow, YAML and pandas frames, a message or a conversation a row.

A row that is a document of a known format is read as one; else a column says who speaks, one what is said, and one, if
there is any, which conversation it belongs to. Columns can be chosen by name; else they are found by the usual names.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.files import extra
from budgetkit.framing.paths import filled, unpacked
from budgetkit.trace.importers.formats import table as format_table
from budgetkit.trace.importers.records import read_records
from budgetkit.trace.jsonl import Numbered

Columns = Mapping[str, str] | None
_STREAM = b"\xff\xff\xff\xff"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow", _STREAM: "arrow", b"\xd0\xcf\x11\xe0": "xls"}


def kind(head: bytes, name: str) -> str:
    """Name the kind of a binary table by its first bytes; "" for all else."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def rows(written: bytes, kind: str, name: str, columns: Columns) -> Iterator[Numbered]:
    """Read a binary table."""
    if kind == "xls":
        raise ValueError(f"{name}: a spreadsheet of the kind before 2007; only the newer one is read; save it as .xlsx")
    try:
        table = _excel(written, name) if kind == "excel" else _arrow(written, kind, name)
    except ImportError:
        raise
    except Exception as error:  # each library has its own for a broken file
        raise ValueError(f"{name}: no table that can be read; {one_line(str(error))}; save it again") from None
    yield from conversations(table, name, columns)


def frame_rows(frame: Any, columns: Columns) -> Iterator[Numbered]:
    """Read a pandas frame."""
    return conversations(frame.to_dict("records"), "the frame", columns)


def text_rows(text: str, name: str, columns: Columns) -> list[Numbered] | None:
    """Read CSV, TSV or YAML; None for a text that is neither."""
    suffix = PurePosixPath(name).suffix
    if suffix in (".yaml", ".yml") or text.startswith(("- role:", "messages:", "---\n")):
        return [(1, _yaml(text, name))]
    header = text.partition("\n")[0].lower()
    delimiter = "\t" if "\t" in header else ";" if header.count(";") > header.count(",") else ","
    cells = {cell.strip(' "\r') for cell in header.split(delimiter)}
    usual = format_table("columns")
    if suffix not in (".csv", ".tsv") and not (cells & {*usual["role"]} and cells & {*usual["content"]}):
        return None
    csv.field_size_limit(1 << 30)
    try:
        table = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{name}: no table that can be read; {error}; save it again") from None
    return list(conversations(table, name, columns))


def conversations(table: Iterable[Mapping[Any, Any]], name: str, columns: Columns) -> Iterator[Numbered]:
    """Read rows that are a conversation each, or rows that are a message each and name their conversation."""
    said: dict[str, list[dict[str, Any]]] = {}
    where: dict[str, int] = {}
    chosen: Mapping[str, str | None] | None = None
    for number, row in enumerate(table, start=2):
        cells = {str(key): _cell(each) for key, each in row.items() if key is not None}
        chosen = _chosen(cells, columns, name) if chosen is None else chosen
        if chosen["role"] is None:
            yield number, {key: unpacked(each) for key, each in cells.items() if each not in (None, "")}
            continue
        role, content, key = (cells.get(chosen[what] or "") for what in ("role", "content", "conversation"))
        rest = {key: each for key, each in cells.items() if key not in chosen.values() and each not in (None, "")}
        where.setdefault(str(key), number)
        said.setdefault(str(key), []).append({**rest, "role": role, "content": _parts(content)})
    for key, messages in said.items():
        read = read_records(messages)
        named = filled(warnings=_alone(messages) if len(said) == 1 else []) if key == "None" else {"id": key}
        yield where[key], {**named, "messages": read.messages, "format": "table"}


def _alone(messages: list[dict[str, Any]]) -> list[str]:
    """Say that all rows were taken as one conversation, where a column has values that several of them share."""
    columns = dict.fromkeys(key for each in messages for key in each if key not in ("role", "content"))
    values = {key: [str(each.get(key, "")) for each in messages] for key in columns}
    shared = [key for key, each in values.items() if 1 < len({*each}) <= len(each) / 2 and "" not in each]
    if not shared:
        return []
    told = f"all {len(messages):,} rows were taken as one conversation, since no column says which they belong to"
    mend = f'if {brief(shared[0])} does, pass columns={{"conversation": {brief(shared[0])}}}, or name it "conversation"'
    return [f"{told}; in these, several rows share a value: {quoted(shared[:5])}; {mend} in the table"]


def _parts(content: Any) -> Any:
    """Return a cell's content: a list of parts where the cell holds one, else its text."""
    parts = unpacked(content) if isinstance(content, str) and content.startswith('[{"type"') else content
    return parts if isinstance(parts, list) or isinstance(content, str) else "" if content is None else str(content)


def _chosen(cells: Mapping[str, Any], columns: Columns, name: str) -> dict[str, str | None]:
    """Say which column holds the role, the content and the conversation."""
    if columns is not None and (wrong := [each for each in columns.values() if each not in cells]):
        raise ValueError(f"{name}: column {brief(wrong[0])} was asked for; it has {quoted(cells)}; choose among these")
    lower = {key.lower().strip(): key for key in reversed(list(cells))}
    usual = format_table("columns").items()
    found = {what: next((lower[each] for each in names if each in lower), None) for what, names in usual}
    chosen = {**found, **(columns or {})}
    if chosen["content"] is None or {"prompt", "instruction", "messages", "conversations"} & lower.keys():
        return {**chosen, "role": None} if columns is None else chosen
    return chosen


def _cell(value: Any) -> Any:
    """Write a cell as plain JSON; NaN becomes None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _cell(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_cell(each) for each in value]
    return _cell(value.tolist()) if hasattr(value, "tolist") else str(value)


def _excel(written: bytes, name: str) -> Any:
    with extra("files", name):
        import openpyxl  # type: ignore[import-untyped] # noqa: F401 - what pandas reads it with
    import pandas as pd

    return pd.read_excel(io.BytesIO(written), dtype=str, na_filter=False).to_dict("records")


def _arrow(written: bytes, kind: str, name: str) -> Any:
    with extra("files", name):
        import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import feather, parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    source = io.BytesIO(written)
    if written.startswith(_STREAM):
        return pa.ipc.open_stream(source).read_all().to_pylist()
    return (parquet if kind == "parquet" else feather).read_table(source).to_pylist()


class _Plain(yaml.SafeLoader):
    """Load YAML without aliases, since a small file of aliases can fill the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias, which can make a small file fill the memory")
        return super().compose_node(parent, index)


def _yaml(text: str, name: str) -> Any:
    try:
        return _cell(yaml.load(text, _Plain))  # noqa: S506 - a loader of plain values
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise ValueError(f"{name}: YAML that cannot be read; {told:.200}; mend it, or write it as JSON") from None
