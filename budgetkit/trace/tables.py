"""Tables: CSV, TSV, Excel, parquet, arrow, YAML and pandas frames.

Each row is a message or a conversation. A row may be a document of a known format. Otherwise, one column has the role,
another has the text, and an optional third has the name of the conversation. Columns are chosen by the caller or found
by their usual names.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import yaml

import budgetkit.frames as pd
from budgetkit.budget import brief, one_line, quoted
from budgetkit.budget.errors import unknown_name
from budgetkit.files import extra
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import format_table, row_of, unpacked, without_empty
from budgetkit.requests.reading.records import is_record, read_records
from budgetkit.trace.jsonl import Numbered, Outflow, OutflowError, marks

Columns = Mapping[str, str] | None
_LONGEST_CELL = 1 << 30  # in characters
_STREAM = b"\xff\xff\xff\xff"
_FRAME = re.compile(rb"\x28\xb5\x2f\xfd|\x04\x22\x4d\x18")  # zstandard, LZ4
_LARGEST_BUFFER = 1 << 42  # bytes
# The fields of a parquet page header for each kind of page: data, dictionary, data version 2.
_PAGE_KINDS = (5, 7, 8)
# Types of Thrift's compact protocol.
_TRUTHS = (1, 2)
_NUMBERS = (4, 5, 6)
_FIXED = {3: 1, 7: 8}  # a byte and a float, with their sizes
_TEXT = 8
_LIST = 9
_STRUCTURE = 12
_ROWS = 1_024  # rows converted at a time
_LINE = re.compile(r"[^\r\n]*+(?:\r?\n|\r)|[^\r\n]++")
_BLOCK = 1 << 16
# Cells, texts and properties of fonts in a workbook. openpyxl takes up to five times as long for other elements.
_CHEAP = re.compile(rb"<(?:\w+:)?(?:[a-z]|is|si|sz|color|rFont|family|charset|scheme)[\s/>]")
_DEEPEST = 300  # levels of nested lists and mappings in YAML
_MOST_DIGITS = 3_000  # in a whole number of YAML, which may be hexadecimal
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    _STREAM: "arrow",
}


class UnknownColumnsError(ValueError):
    """The error for a table without recognisable columns.

    Attributes
    ----------
    columns : tuple of str
        The columns of the table.
    """

    def __init__(self, name: str, columns: Iterable[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"{name}: no known column of speakers and texts among {quoted(self.columns)}. "
            'Name them with columns={"role": ..., "content": ...}.'
        )


def kind_of_table(head: bytes) -> str:
    """Return the kind of a binary table, or "" for other files.

    The kind is recognised by the first bytes.
    """
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def text_table(text: str, delimiter: str, strict: bool = False) -> csv.DictReader[str]:
    """Read the rows of CSV text, with cells of any length.

    If `strict` is true, a misplaced or unclosed quotation mark is an error.
    """
    csv.field_size_limit(_LONGEST_CELL)
    # A file object for the text would take four bytes for each character.
    lines = (line[0] for line in _LINE.finditer(text))
    return csv.DictReader(lines, delimiter=delimiter, strict=strict)


@dataclass(frozen=True)
class TableReader:
    """A reader of tables of messages or conversations.

    Its errors name the table.
    """

    name: str
    columns: Columns = None

    def binary(self, content: bytes, kind: str, outflow: Outflow) -> Iterator[Numbered]:
        """Read the conversations in a spreadsheet, parquet or arrow file.

        The unpacked size is checked first.
        """
        read = {"excel": _excel, "parquet": _parquet, "arrow": _feather}[kind]
        rows = read(content, outflow)
        return self.conversations(enumerate(self._explained(rows, outflow), start=2))

    def _explained(self, rows: Iterator[Data], outflow: Outflow) -> Iterator[Data]:
        """Count the JSON values in each row, and reword the library's errors."""
        try:
            with extra("lab", self.name):
                for row in rows:
                    for cell in row.values():
                        if isinstance(cell, str) and cell.startswith(("[", "{")):
                            outflow.add(values=marks(cell.encode("utf-8", "replace")))
                    yield row
        except (ImportError, OutflowError, UnknownColumnsError):
            raise
        except MemoryError:
            raise ValueError(
                f"{self.name}: the table does not fit in memory. Pass only part of it."
            ) from None
        except Exception as error:  # each library raises errors of its own
            reason = one_line(str(error)) or type(error).__name__
            raise ValueError(
                f"{self.name}: not a readable table ({reason}). Save it again."
            ) from None

    def text(self, text: str) -> list[Numbered] | None:
        """Read CSV, TSV or YAML, or return None for other texts."""
        suffix = PurePosixPath(self.name).suffix
        if suffix in (".yaml", ".yml") or text.startswith(("- role:", "messages:", "---\n")):
            try:
                return [(1, _cell(_plain_yaml(text)))]
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                reason = " ".join(str(error).split())
                raise ValueError(
                    f"{self.name}: invalid YAML ({reason:.200}). Correct it, or write it as JSON."
                ) from None
        header = text.partition("\n")[0].lower()
        delimiter = ";" if header.count(";") > header.count(",") else ","
        if "\t" in header:
            delimiter = "\t"
        cells = {cell.strip(' "\r') for cell in header.split(delimiter)}
        usual = format_table("columns")
        if suffix not in (".csv", ".tsv") and not (
            cells & {*usual["role"]} and cells & {*usual["content"]}
        ):
            return None
        try:
            table = text_table(text, delimiter, strict=True)
            names = [column.strip().lower() for column in table.fieldnames or ()]
            rows = list(table)
        except csv.Error as error:
            raise ValueError(
                f"{self.name}: not a readable table ({error}). Check the quotation marks after line {table.line_num:,}."
            ) from None
        # Of two columns of one name, the reader keeps the last.
        for column in chain((self.columns or {}).values(), *usual.values()):
            if names.count(column.strip().lower()) > 1:
                raise ValueError(
                    f"{self.name}: two columns are called {brief(column)}. Rename one of them."
                )
        return list(self.conversations(enumerate(rows, start=2)))

    def frame(self, frame: pd.DataFrame) -> Iterator[Numbered]:
        """Read the conversations in a pandas frame."""
        rows: list[Any] = frame.to_dict("records")
        return self.conversations(enumerate(rows, start=2))

    def fits(self, value: Any) -> bool:
        """Return True if an object has the columns of a table row."""
        if not isinstance(value, Mapping) or _is_document(value) or "format" in value:
            return False
        if self.columns is not None:
            return any(column in value for column in self.columns.values())
        chosen = self._choose(value)
        texts = [value.get(chosen[part] or "") for part in ("role", "content")]
        return all(isinstance(text, str) for text in texts)

    def conversations(self, table: Iterable[tuple[int, Any]]) -> Iterator[Numbered]:
        """Yield conversations from rows that each hold one conversation or one message."""
        by_conversation: dict[str, list[Data]] = {}
        lines: dict[str, int] = {}
        chosen: dict[str, str | None] | None = None
        for number, row in table:
            if any(row.get(None, ())):
                raise ValueError(
                    f"{self.name}, row {number:,}: more cells than columns. Put a text that contains a separator in "
                    "quotation marks."
                )
            cells = {str(key): _cell(cell) for key, cell in row.items() if key is not None}
            is_first = chosen is None
            if chosen is None:
                chosen = self._choose(cells)
            if chosen["role"] is None:
                document = {
                    key: unpacked(value) for key, value in cells.items() if value not in (None, "")
                }
                if self.columns is None and is_first and not _is_document(document):
                    raise UnknownColumnsError(self.name, cells)
                yield number, document
                continue
            message = {
                key: cell
                for key, cell in cells.items()
                if key not in chosen.values() and cell not in (None, "")
            }
            message["role"] = cells.get(chosen["role"])
            message["content"] = _content(cells.get(chosen["content"] or ""))
            name = str(cells.get(chosen["conversation"] or ""))
            lines.setdefault(name, number)
            by_conversation.setdefault(name, []).append(message)
        for name, messages in by_conversation.items():
            if name != "None":
                about: Data = {"id": name}
            elif len(by_conversation) == 1:
                about = without_empty(warnings=_shared_values(messages))
            else:
                about = {}
            yield (
                lines[name],
                {**about, "messages": read_records(messages).messages, "format": "table"},
            )

    def _choose(self, cells: Raw) -> dict[str, str | None]:
        """Return the names of the columns for role, content and conversation.

        The column for the role is None if each row is a whole conversation.
        """
        given = self.columns or {}
        for column in given.values():
            if column not in cells:
                raise ValueError(f"{self.name}: {unknown_name('column', column, cells)}")
        lower = {key.lower().strip(): key for key in reversed([*cells])}
        chosen: dict[str, str | None] = {
            part: next((lower[column] for column in names if column in lower), None)
            for part, names in format_table("columns").items()
        }
        chosen |= given
        is_whole = {"prompt", "instruction", "messages", "conversations"} & lower.keys()
        if self.columns is None and (chosen["content"] is None or is_whole):
            chosen["role"] = None
        return chosen


def _is_document(row: Raw) -> bool:
    """Return True if a row is itself a conversation or a message."""
    return "messages" in row or row_of(row) is not None or is_record(row)


def _shared_values(messages: list[Data]) -> list[str]:
    """Return a warning if some columns may separate conversations."""
    shared = []
    for key in dict.fromkeys(key for message in messages for key in message):
        column = [str(message.get(key, "")) for message in messages]
        is_shared = 1 < len({*column}) <= len(column) / 2 and "" not in column
        if is_shared and key not in ("role", "content"):
            shared.append(key)
    if not shared:
        return []
    first = brief(shared[0])
    return [
        f"All {len(messages):,} rows became one conversation, since no column names it. Rows share values in "
        f'{quoted(shared[:5])}; to split them, pass columns={{"conversation": {first}}} or rename the column.'
    ]


def _content(content: Any) -> Any:
    """Return a cell's content: a list of parts, or its text."""
    if isinstance(content, str) and content.startswith('[{"type"'):
        parts = unpacked(content)
        return parts if isinstance(parts, list) else content
    if isinstance(content, str | list):
        return content
    return "" if content is None else str(content)


def _cell(value: Any) -> Any:
    """Convert a cell to plain JSON data, and NaN to None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _cell(member) for key, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_cell(member) for member in value]
    return _cell(value.tolist()) if hasattr(value, "tolist") else str(value)


def _excel(content: bytes, outflow: Outflow) -> Iterator[Any]:
    """Yield the rows of a spreadsheet's first sheet, after checking its size."""
    from openpyxl.reader.excel import ExcelReader  # type: ignore[import-untyped]
    from openpyxl.styles.stylesheet import apply_stylesheet  # type: ignore[import-untyped]

    reader = ExcelReader(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    elements = 0
    for member in reader.archive.infolist():
        with reader.archive.open(member) as stream:
            while block := stream.read(_BLOCK):
                outflow.add(size=len(block))
                elements += 5 * (block.count(b"<") - block.count(b"</"))
                elements -= 4 * len(_CHEAP.findall(block))
                outflow.check(values=elements)

    # Load the first sheet only: a workbook may list one sheet many times, and openpyxl would read it each time.
    reader.read_manifest()
    reader.read_strings()
    reader.read_workbook()
    apply_stylesheet(reader.archive, reader.wb)
    sheets = reader.parser.find_sheets()
    reader.parser.sheets = [sheet for sheet, part in sheets if "chartsheet" not in part.Type][:1]
    reader.read_worksheets()
    sheet = reader.wb.worksheets[0]
    sheet.reset_dimensions()  # the size stated in the file may be wrong

    # A cell far down and to the right takes a few bytes of the file, but all rows above it become blank rows.
    for row in sheet.iter_rows(values_only=True):
        outflow.add(
            size=sum(len(cell) for cell in row if isinstance(cell, str)), values=1 + len(row)
        )
    frame = pd.read_excel(reader.wb, engine="openpyxl", dtype=str, na_filter=False)
    yield from frame.to_dict("records")


def _rows(batches: Iterable[Any], outflow: Outflow) -> Iterator[Data]:
    """Yield the rows of a parquet or arrow file, batch by batch.

    For the limit of `outflow`, each row counts as a value, as in JSON, and so does the name of each of its cells.
    """
    for batch in batches:
        outflow.add(values=batch.num_rows * (1 + batch.num_columns))
        for column in batch.columns:
            values, size = _weight(column)
            outflow.add(size=size, values=values)
        yield from batch.to_pylist()


def _parquet(content: bytes, outflow: Outflow) -> Iterator[Data]:
    """Yield the rows of a parquet file, after checking its unpacked size."""
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    file = parquet.ParquetFile(io.BytesIO(content))
    meta = file.metadata
    _check_table(file.schema_arrow, meta.num_rows, outflow)
    unpacked = 0
    largest = 1
    # Read the footer here, since pyarrow's own objects for columns crash the process on a broken statistic.
    footer, _ = _structure(content, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    for column in chain.from_iterable(group[1] for group in footer[4]):
        about = column[3]
        at = min(about.get(11) or about[9], about[9])
        end = at + about[7]
        # The library allocates the size stated in each page, whatever the footer states for the column.
        while at < end:
            page, at = _structure(content, at)
            at += max(0, page[3])
            size = page[2]
            count = max(page[kind].get(1, 0) for kind in _PAGE_KINDS if kind in page)
            unpacked += size
            largest = max(largest, size)
            outflow.check(size=unpacked, values=count)
    leaves = [meta.schema.column(place) for place in range(meta.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts, pre_buffer=False)
    # With a dictionary, a row may be as long as its page.
    rows = max(1, min(_ROWS, outflow.most_bytes // largest))
    yield from _rows(file.iter_batches(batch_size=rows, use_threads=False), outflow)


def _structure(content: bytes, place: int) -> tuple[dict[int, Any], int]:
    """Read a structure in Thrift's compact protocol.

    Return its fields, and the position after its end.
    """

    def varint() -> int:
        nonlocal place
        value = 0
        for shift in range(0, 70, 7):
            byte = content[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is too long")

    def value(kind: int) -> Any:
        nonlocal place
        if kind == _STRUCTURE:
            fields, place = _structure(content, place)
            return fields
        if kind in _FIXED:
            place += _FIXED[kind]
        elif kind == _LIST:
            head = content[place]
            place += 1
            size = varint() if head >= 0xF0 else head >> 4
            return [value(head & 0x0F) for _ in range(size)]
        elif kind == _TEXT:
            size = varint()
            place += size
        elif kind in _NUMBERS:
            number = varint()
            return number >> 1 ^ -(number & 1)
        else:
            raise ValueError("a field of the footer or of a page header has an unknown type")
        return None

    fields: dict[int, Any] = {}
    field = 0
    while head := content[place]:
        place += 1
        kind = head & 0x0F
        field = field + (head >> 4) if head >> 4 else varint()
        if kind not in _TRUTHS:
            fields[field] = value(kind)
    return fields, place + 1


def _check_table(schema: Any, rows: int, outflow: Outflow) -> None:
    """Reject unsupported types or too many rows before any conversion.

    Rows of some types, such as null, take no space in the file.
    """
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

    if len({*schema.names}) < len(schema):
        raise ValueError("two columns have the same name")
    for kind in schema.types:
        _weight(pa.nulls(0, kind))
    outflow.check(values=rows * (1 + len(schema)))


def _feather(content: bytes, outflow: Outflow) -> Iterator[Data]:
    """Yield the rows of an arrow file, after checking its size."""
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pyarrow import feather  # type: ignore[import-not-found,import-untyped,unused-ignore]

    # Each buffer begins with its unpacked size, in eight bytes, and the first bytes of zstandard or LZ4. An impossibly
    # large size is a chance match in a text.
    starts = (frame.start() for frame in _FRAME.finditer(content))
    sizes = (int.from_bytes(content[max(0, at - 8) : at], "little") for at in starts)
    outflow.check(size=sum(size for size in sizes if size < _LARGEST_BUFFER))
    # Read in this thread: for a Python file object, Arrow starts another thread, in which some processes crash.
    file = pa.BufferReader(content)
    if content.startswith(b"FEA1"):
        table = feather.read_table(file)
    else:
        reader = (pa.ipc.open_stream if content.startswith(_STREAM) else pa.ipc.open_file)(file)
        table = reader.read_all()
    _check_table(table.schema, table.num_rows, outflow)
    table.validate(full=True)
    yield from _rows(table.to_reader(max_chunksize=_ROWS), outflow)


def _weight(array: Any) -> tuple[int, int]:
    """Return the number of an array's Python values and their total bytes."""
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pyarrow import compute  # type: ignore[import-not-found,import-untyped,unused-ignore]

    kinds = pa.types
    kind = array.type
    length = len(array)
    inside = None
    if kinds.is_struct(kind):
        inside = array.flatten()
    elif kinds.is_map(kind):
        first, last = (array.offsets[end].as_py() for end in (0, -1))
        inside = [part.slice(first, last - first) for part in (array.keys, array.items)]
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        inside = [array.flatten()]
    if inside is not None:
        weights = [(length, 0), *map(_weight, inside)]
        return sum(values for values, _ in weights), sum(size for _, size in weights)
    if kinds.is_dictionary(kind):
        # Each row repeats an entry. The weight is exact for texts; otherwise each row counts as all entries together.
        entries = array.dictionary
        if not _is_text(entries.type):
            values, size = _weight(entries)
            return length * (1 + values), length * size
        lengths = compute.take(compute.binary_length(entries), array.indices)
        return length, compute.sum(lengths.cast(pa.int64())).as_py() or 0
    if _is_text(kind):
        return length, compute.sum(compute.binary_length(array).cast(pa.int64())).as_py() or 0
    if kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        # A view has sixteen bytes and begins with its length in four; several views may share one text.
        lengths = np.frombuffer(array.buffers()[1], "<u4")[::4][array.offset :][:length]
        return length, int(lengths.sum(dtype="int64"))
    if kinds.is_primitive(kind) or kinds.is_null(kind) or kinds.is_decimal(kind):
        return length, 8 * length
    if kinds.is_fixed_size_binary(kind):
        return length, length * int(kind.byte_width)
    raise ValueError(f"columns of type {kind} are not supported")


def _is_text(kind: Any) -> bool:
    """Return True if a column has texts or bytes of variable length."""
    return str(kind) in ("string", "large_string", "binary", "large_binary")


# PyYAML's C extension reads five times faster than its Python code; not every wheel has it.
_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Plain(_Fast):  # type: ignore[misc]
    """A YAML loader that rejects repeated keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.YAMLError("a key appears twice in one object")
        return mapping


def _plain_yaml(text: str) -> Any:
    """Read YAML, rejecting aliases and deep nesting.

    A small file with aliases could fill the memory.
    """
    # Texts are read from a stream, so that an error quotes no line of it.
    depth = 0
    for event in yaml.parse(io.StringIO(text), _Plain):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(
                "aliases are not supported, since a small file with aliases can fill the memory"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"nested deeper than {_DEEPEST} levels")
    return yaml.load(io.StringIO(text), _Plain)


def _whole_number(loader: yaml.SafeLoader, node: Any) -> int:
    """Read a whole number of at most 3,000 characters.

    Even a hexadecimal number of this length has fewer than 4,300 decimal digits, the most that Python can write.
    """
    if len(node.value) > _MOST_DIGITS:
        raise yaml.YAMLError("a whole number has too many digits")
    return loader.construct_yaml_int(node)


_Plain.add_constructor("tag:yaml.org,2002:int", _whole_number)
