"""Tables of messages: CSV, TSV, Excel, parquet, arrow, YAML and pandas frames, a message or a conversation a row.

A row that is a document of a known format is read as one; else a column says who speaks, one what is said, and one, if
there is any, which conversation it belongs to. Columns can be chosen by name; else they are found by the usual names.
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import yaml

from budgetkit.budget import brief, one_line, quoted
from budgetkit.files import extra
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import format_table as format_table
from budgetkit.requests.reading.formats import row_of, unpacked, without_empty
from budgetkit.requests.reading.records import is_record, read_records
from budgetkit.trace.jsonl import Numbered, Outflow, OutflowError, marks

Columns = Mapping[str, str] | None
_LONGEST_CELL = 1 << 30  # in characters
_STREAM = b"\xff\xff\xff\xff"
_FRAMES = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # zstandard, LZ4
_LARGEST_BUFFER = 1 << 42  # bytes
# The fields of a parquet page's header that hold what kind of page it is: data, dictionary, data of version 2.
_PAGE_KINDS = (5, 7, 8)
# Types of Thrift's compact protocol.
_TRUTHS = (1, 2)
_NUMBERS = (4, 5, 6)
_TEXT = 8
_STRUCTURE = 12
_ROWS = 1_024  # rows that become values at a time
_BLOCK = 1 << 16
_MOST_DIGITS = 3_000  # of a whole number in YAML, which may be hexadecimal
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    _STREAM: "arrow",
    b"\xd0\xcf\x11\xe0": "xls",
}


class UnknownColumns(ValueError):
    """An error for a table whose columns name no speaker and no text.

    Attributes
    ----------
    columns : tuple of str
        Those that it has, to choose among.
    """

    def __init__(self, name: str, columns: Iterable[str]) -> None:
        self.columns = tuple(columns)
        problem = f"a table whose columns are not known: {quoted(self.columns)}"
        wanted = 'columns={"role": ..., "content": ...}'
        super().__init__(
            f"{name} is {problem}; say which holds who speaks and which what is said, with {wanted}"
        )


def kind(head: bytes, name: str) -> str:
    """Name the kind of a binary table by its first bytes; "" for all else."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def rows(
    written: bytes, kind: str, name: str, columns: Columns, outflow: Outflow | None = None
) -> Iterator[Numbered]:
    """Read a binary table.

    Its unpacked size is counted before it becomes values.
    """
    if kind == "xls":
        raise ValueError(
            f"{name}: a spreadsheet of the kind before 2007; only the newer one is read; save it as .xlsx"
        )
    outflow = outflow or Outflow(name, len(written))
    read = _excel if kind == "excel" else partial(_arrow, kind=kind)
    table = _counted(_readable(read(written, name=name, outflow=outflow), name), outflow)
    yield from conversations(enumerate(table, start=2), name, columns)


def _readable(table: Iterator[Data], name: str) -> Iterator[Data]:
    """Yield rows, and explain a library's error in one sentence."""
    try:
        yield from table
    except (ImportError, OutflowError):
        raise
    except MemoryError:
        raise ValueError(
            f"{name}: a table that does not fit into the memory; give a part of it"
        ) from None
    except Exception as error:  # each library has its own for a broken file
        reason = one_line(str(error)) or type(error).__name__
        raise ValueError(f"{name}: no table that can be read; {reason}; save it again") from None


def _counted(table: Iterator[Data], outflow: Outflow) -> Iterator[Data]:
    """Yield rows, and count the JSON values in their cells."""
    for row in table:
        for cell in row.values():
            if isinstance(cell, str) and cell.startswith(("[", "{")):
                outflow.add(values=marks(cell.encode("utf-8", "replace")))
        yield row


def frame_rows(frame: Any, columns: Columns) -> Iterator[Numbered]:
    """Read a pandas frame."""
    return conversations(enumerate(frame.to_dict("records"), start=2), "the frame", columns)


def text_rows(text: str, name: str, columns: Columns) -> list[Numbered] | None:
    """Read CSV, TSV or YAML; None for a text that is neither."""
    suffix = PurePosixPath(name).suffix
    if suffix in (".yaml", ".yml") or text.startswith(("- role:", "messages:", "---\n")):
        try:
            return [(1, _cell(yaml.load(text, _Plain)))]
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{name}: YAML that cannot be read; {reason:.200}; mend it, or write it as JSON"
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
        table = enumerate(list(text_table(text, delimiter)), start=2)
    except csv.Error as error:
        raise ValueError(f"{name}: no table that can be read; {error}; save it again") from None
    return list(conversations(table, name, columns))


def text_table(text: str, delimiter: str) -> csv.DictReader[str]:
    """Read the rows of a table as text, however long a cell is; the limit is that of the whole process."""
    csv.field_size_limit(_LONGEST_CELL)
    return csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)


def is_row(value: Any, columns: Columns) -> bool:
    """Say whether an object is the row of a table: by its columns where they are given, else by the usual names."""
    if not isinstance(value, Mapping) or _is_document(value) or "format" in value:
        return False
    if columns is not None:
        return any(column in value for column in columns.values())
    chosen = _chosen(value, None, "")
    return isinstance(value.get(chosen["role"] or ""), str) and isinstance(
        value.get(chosen["content"] or ""), str
    )


def conversations(table: Iterable[Numbered], name: str, columns: Columns) -> Iterator[Numbered]:
    """Read rows of whole conversations, or rows of single messages.

    Rows of messages name their conversation.
    """
    by_conversation: dict[str, list[Data]] = {}
    where: dict[str, int] = {}
    chosen: Mapping[str, str | None] | None = None
    first = None
    for number, row in table:
        first = number if first is None else first
        cells = {str(key): _cell(cell) for key, cell in row.items() if key is not None}
        if chosen is None:
            chosen = _chosen(cells, columns, name)
        if chosen["role"] is None:
            document = {
                key: unpacked(value) for key, value in cells.items() if value not in (None, "")
            }
            if columns is None and number == first and not _is_document(document):
                raise UnknownColumns(name, cells)
            yield number, document
            continue
        role, content, key = (
            cells.get(chosen[what] or "") for what in ("role", "content", "conversation")
        )
        rest = {
            key: cell
            for key, cell in cells.items()
            if key not in chosen.values() and cell not in (None, "")
        }
        where.setdefault(str(key), number)
        by_conversation.setdefault(str(key), []).append(
            {**rest, "role": role, "content": _parts(content)}
        )
    for key, messages in by_conversation.items():
        read = read_records(messages)
        if key == "None":
            named = without_empty(warnings=_alone(messages) if len(by_conversation) == 1 else [])
        else:
            named = {"id": key}
        yield where[key], {**named, "messages": read.messages, "format": "table"}


def _is_document(row: Raw) -> bool:
    """Say whether a row is a conversation by itself, in a form that is known."""
    return "messages" in row or row_of(row) is not None or is_record(row)


def _alone(messages: list[Data]) -> list[str]:
    """Warn that all rows were taken as one conversation.

    It warns where a column has values that several rows share.
    """
    columns = dict.fromkeys(
        key for entry in messages for key in entry if key not in ("role", "content")
    )
    values = {key: [str(entry.get(key, "")) for entry in messages] for key in columns}
    shared = [
        key
        for key, entry in values.items()
        if 1 < len({*entry}) <= len(entry) / 2 and "" not in entry
    ]
    if not shared:
        return []
    notice = f"all {len(messages):,} rows were taken as one conversation, since no column says which they belong to"
    mend = f'if {brief(shared[0])} does, pass columns={{"conversation": {brief(shared[0])}}}, or name it "conversation"'
    return [
        f"{notice}; in these, several rows share a value: {quoted(shared[:5])}; {mend} in the table"
    ]


def _parts(content: Any) -> Any:
    """Return a cell's content: a list of parts where the cell holds one, else its text."""
    if isinstance(content, str) and content.startswith('[{"type"'):
        parts = unpacked(content)
    else:
        parts = content
    if isinstance(parts, list) or isinstance(content, str):
        return parts
    return "" if content is None else str(content)


def _chosen(cells: Raw, columns: Columns, name: str) -> dict[str, str | None]:
    """Say which column holds the role, the content and the conversation."""
    if columns is not None and (
        wrong := [column for column in columns.values() if column not in cells]
    ):
        raise ValueError(
            f"{name}: column {brief(wrong[0])} was asked for; it has {quoted(cells)}; choose among these"
        )
    lower = {key.lower().strip(): key for key in reversed(list(cells))}
    usual = format_table("columns").items()
    matches = {
        what: next((lower[column] for column in names if column in lower), None)
        for what, names in usual
    }
    chosen = {**matches, **(columns or {})}
    if (
        chosen["content"] is None
        or {"prompt", "instruction", "messages", "conversations"} & lower.keys()
    ):
        if columns is None:
            return {**chosen, "role": None}
        return chosen
    return chosen


def _cell(value: Any) -> Any:
    """Write a cell as plain JSON; NaN becomes None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _cell(member) for key, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_cell(member) for member in value]
    if hasattr(value, "tolist"):
        return _cell(value.tolist())
    return str(value)


def _excel(written: bytes, name: str, outflow: Outflow) -> Iterator[Data]:
    """Give the rows of a spreadsheet's first sheet, looked over before any of it is held."""
    with extra("lab", name):
        import openpyxl  # type: ignore[import-untyped]
    import pandas as pd

    _check_excel_files(written, outflow)

    # A cell far down and far to the right is a few bytes of the file, and a row of blanks for each row above it.
    book = openpyxl.load_workbook(io.BytesIO(written), read_only=True, data_only=True)
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its size need not be so
        for row in sheet.iter_rows(values_only=True):
            outflow.add(
                size=sum(len(cell) for cell in row if isinstance(cell, str)), values=1 + len(row)
            )
    finally:
        book.close()
    frame = pd.read_excel(io.BytesIO(written), dtype=str, na_filter=False)
    for row in frame.to_dict("records"):
        yield {str(column): cell for column, cell in row.items()}


def _check_excel_files(written: bytes, outflow: Outflow) -> None:
    """Check the unpacked bytes and elements of a spreadsheet's files."""
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        for member in archive.infolist():
            mark = b"<c" if member.filename.startswith("xl/worksheets/") else b"<"
            elements = 0
            with archive.open(member) as stream:
                while block := stream.read(_BLOCK):
                    outflow.add(size=len(block))
                    elements += block.count(mark)
                    if elements > outflow.most_values:
                        raise outflow.exceeded(
                            f"{outflow.most_values:,} elements of {member.filename} come"
                        )


def _arrow(written: bytes, kind: str, name: str, outflow: Outflow) -> Iterator[Data]:
    """Give the rows of a parquet or arrow file, a few at a time."""
    with extra("lab", name):
        import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]
    batches = _parquet(written, outflow) if kind == "parquet" else _feather(written, outflow)
    for batch in batches:
        for column in batch.columns:
            values, size = _weight(column, pa)
            outflow.add(size=size, values=values)
        yield from batch.to_pylist()


def _parquet(written: bytes, outflow: Outflow) -> Iterator[Any]:
    """Give a parquet file in batches, texts by the dictionaries that they are stored with."""
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    file = parquet.ParquetFile(io.BytesIO(written))
    meta = file.metadata
    _check_types(file.schema_arrow)
    unpacked = 0
    largest = 1
    for group in range(meta.num_row_groups):
        for place in range(meta.num_columns):
            # The reader takes as much memory as each page says, whatever the footer says of its column.
            for page in _pages(written, meta.row_group(group).column(place)):
                size = page[2]
                count = max(page[kind].get(1, 0) for kind in _PAGE_KINDS if kind in page)
                unpacked += size
                largest = max(largest, size)
                outflow.check(size=unpacked, values=count)
    leaves = [meta.schema.column(place) for place in range(meta.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = parquet.ParquetFile(io.BytesIO(written), read_dictionary=texts, pre_buffer=False)
    # A row may repeat the row before, so that each is as long as its page.
    rows = max(1, min(_ROWS, outflow.most_bytes // largest))
    yield from file.iter_batches(batch_size=rows, use_threads=False)


def _pages(written: bytes, chunk: Any) -> Iterator[dict[int, Any]]:
    """Give the headers of the pages that a column is stored in."""
    place = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
    end = place + chunk.total_compressed_size
    while place < end:
        header, place = _structure(written, place)
        yield header
        place += max(0, header[3])


def _structure(written: bytes, place: int) -> tuple[dict[int, Any], int]:
    """Read a structure of Thrift's compact protocol: its fields by number, and where it ends."""

    def varint() -> int:
        nonlocal place
        value = 0
        for shift in range(0, 70, 7):
            byte = written[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a page header with a number that is too long")

    fields: dict[int, Any] = {}
    field = 0
    while head := written[place]:
        place += 1
        kind = head & 0x0F
        field = field + (head >> 4) if head >> 4 else varint()
        if kind == _TEXT:
            size = varint()
            place += size
        elif kind == _STRUCTURE:
            fields[field], place = _structure(written, place)
        elif kind in _NUMBERS:
            number = varint()
            fields[field] = number >> 1 ^ -(number & 1)
        elif kind not in _TRUTHS:
            raise ValueError("a page header of an unknown form")
    return fields, place + 1


def _check_types(schema: Any) -> None:
    """Refuse columns of a type that cannot be weighed, before any of their rows are read."""
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

    for kind in schema.types:
        _weight(pa.nulls(0, kind), pa)


def _feather(written: bytes, outflow: Outflow) -> Iterator[Any]:
    """Give an arrow file, or a stream of one, in batches."""
    import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

    outflow.check(size=_unpacked_size(written))
    opened = pa.ipc.open_stream if written.startswith(_STREAM) else pa.ipc.open_file
    if written.startswith(b"FEA1"):
        from pyarrow import feather  # type: ignore[import-not-found,import-untyped,unused-ignore]

        yield from feather.read_table(io.BytesIO(written)).to_batches(max_chunksize=_ROWS)
        return
    reader = opened(io.BytesIO(written))
    _check_types(reader.schema)
    yield from reader.read_all().to_batches(max_chunksize=_ROWS)


def _unpacked_size(written: bytes) -> int:
    """Return the unpacked size stated by an arrow file's buffers, in bytes.

    Each begins with its unpacked size, in eight bytes, and the first bytes of zstandard or LZ4. A size that no machine
    has is a chance hit in a text.
    """
    size = 0
    for frame in _FRAMES:
        place = written.find(frame)
        while place >= 0:
            buffer = int.from_bytes(written[max(0, place - 8) : place], "little")
            if buffer < _LARGEST_BUFFER:
                size += buffer
            place = written.find(frame, place + 1)
    return size


def _weight(array: Any, pa: Any) -> tuple[int, int]:
    """Return how many values an arrow array becomes in Python, and how many bytes of text."""
    from pyarrow import compute  # type: ignore[import-not-found,import-untyped,unused-ignore]

    kinds = pa.types
    kind = array.type
    length = len(array)
    inside = None
    if kinds.is_struct(kind):
        inside = array.flatten()
    elif kinds.is_map(kind):
        first = array.offsets[0].as_py()
        last = array.offsets[-1].as_py()
        inside = [part.slice(first, last - first) for part in (array.keys, array.items)]
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        inside = [array.flatten()]
    if inside is not None:
        weights = [_weight(part, pa) for part in inside]
        return length + sum(values for values, _ in weights), sum(size for _, size in weights)
    if kinds.is_dictionary(kind):
        # Each row repeats an entry: what one is at most, as often as there are rows; exactly so for texts.
        entries = array.dictionary
        if _is_text(entries.type, kinds):
            lengths = compute.binary_length(entries).cast(pa.int64())
            return length, compute.sum(compute.take(lengths, array.indices)).as_py() or 0
        values, size = _weight(entries, pa)
        return length * (1 + values), length * size
    if _is_text(kind, kinds):
        return length, compute.sum(compute.binary_length(array).cast(pa.int64())).as_py() or 0
    if kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        # A view is sixteen bytes, of which the first four are its length; many may show the same text.
        views = memoryview(array.buffers()[1])[16 * array.offset : 16 * (array.offset + length)]
        return length, sum(
            int.from_bytes(views[at : at + 4], "little") for at in range(0, len(views), 16)
        )
    if (
        kinds.is_primitive(kind)
        or kinds.is_null(kind)
        or kinds.is_boolean(kind)
        or kinds.is_decimal(kind)
    ):
        return length, 8 * length
    if kinds.is_fixed_size_binary(kind):
        return length, length * int(kind.byte_width)
    raise ValueError(f"a column of type {kind}, which no conversation needs")


def _is_text(kind: Any, kinds: Any) -> bool:
    """Say whether a column holds texts or bytes of any length."""
    return any(
        is_kind(kind)
        for is_kind in (
            kinds.is_string,
            kinds.is_large_string,
            kinds.is_binary,
            kinds.is_large_binary,
        )
    )


class _Plain(yaml.SafeLoader):
    """Load YAML without aliases, since a small file of aliases can fill the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias, which can make a small file fill the memory")
        return super().compose_node(parent, index)


def _whole_number(loader: yaml.SafeLoader, node: Any) -> int:
    """Read a whole number that can be written again: Python writes at most 4,300 digits."""
    if len(node.value) > _MOST_DIGITS:
        raise yaml.YAMLError("a whole number with too many digits")
    return loader.construct_yaml_int(node)


_Plain.add_constructor("tag:yaml.org,2002:int", _whole_number)
