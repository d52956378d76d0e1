"""Small files that would fill the memory: each kind of container is opened in a child whose memory is bounded.

The child may take 512 MB more than it had and ten seconds, and then says in one sentence that too much comes out.
"""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

resource = pytest.importorskip("resource")

MORE_MEMORY = 512 << 20
SECONDS = 10
SENTENCE = "far more than conversations do"

CHILD = """
import resource, sys, time
import numpy, openpyxl, pandas, pyarrow, pyarrow.compute, pyarrow.feather, pyarrow.parquet, zstandard
import budgetkit as bk

bk.load_traces("support-chat")
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[2]), -1))
start = time.process_time()
try:
    bk.load_traces(sys.argv[1])
except ValueError as error:
    print(error)
print(round(time.process_time() - start, 2), file=sys.stderr)
"""

LINE = b'{"messages": [{"role": "user", "content": "hi"}]}\n'


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return file.getvalue()


def spreadsheet(sheet: bytes = b"", styles: bytes = b"", sheets: int = 1) -> bytes:
    """A spreadsheet of one row, and beside it what fills the memory."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["role", "content"])
    book.active.append(["user", "hi"])
    plain = io.BytesIO()
    book.save(plain)
    file = io.BytesIO()
    with (
        zipfile.ZipFile(plain) as before,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for name in before.namelist():
            content = before.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = content.replace(b"</sheetData>", sheet + b"</sheetData>")
            if name == "xl/styles.xml":
                content = content.replace(b"</cellXfs>", styles + b"</cellXfs>")
            if name == "xl/workbook.xml":
                before_end, end = content.split(b"</sheets>")
                listed = before_end[before_end.index(b"<sheet ") :]
                content = before_end + listed * (sheets - 1) + b"</sheets>" + end
            after.writestr(name, content)
    return file.getvalue()


def table(kind: str, **columns: Any) -> bytes:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    file = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(pa.table(columns), file, compression="zstd", row_group_size=1 << 30)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd" if kind == "zstd" else None)
        batch = pa.record_batch(columns)
        with pa.ipc.new_file(file, batch.schema, options=options) as writer:
            writer.write_batch(batch)
    return file.getvalue()


def repeated(text: str, times: int) -> Any:
    """A column of one text, stored once."""
    pa = pytest.importorskip("pyarrow")
    places = pa.Array.from_buffers(pa.int32(), times, [None, pa.py_buffer(bytes(4 * times))])
    return pa.DictionaryArray.from_arrays(places, [text])


def nulls(times: int) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.nulls(times)


def widthless(kind: str, inner: str = "") -> bytes:
    """An Arrow stream of some hundred bytes with two thousand million rows, or entries, that take no bytes."""
    pa = pytest.importorskip("pyarrow")
    many = 2_000_000_000
    empty = pa.py_buffer(b"")
    columns = {
        "null": lambda: pa.Array.from_buffers(pa.null(), many, [None]),
        "struct": lambda: pa.Array.from_buffers(pa.struct([]), many, [None]),
        "binary": lambda: pa.Array.from_buffers(pa.binary(0), many, [None, empty]),
        "empty lists": lambda: pa.Array.from_buffers(
            pa.list_(pa.string(), 0), many, [None], children=[pa.array([], pa.string())]
        ),
    }
    column = columns[inner or kind]()
    if kind == "fixed list":
        column = pa.Array.from_buffers(pa.list_(column.type, many), 1, [None], children=[column])
    elif kind == "list":
        column = pa.ListArray.from_arrays(pa.array([0, many], pa.int32()), column)
    elif kind == "inside":
        column = pa.StructArray.from_arrays([column], ["text"])
    elif kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), column)
    batch = pa.record_batch({"role": column, "content": column})
    file = io.BytesIO()
    with pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    return file.getvalue()


def no_columns() -> bytes:
    pa = pytest.importorskip("pyarrow")
    rows = pa.Array.from_buffers(pa.struct([]), 2_000_000_000, [None])
    batch = pa.RecordBatch.from_struct_array(rows)
    file = io.BytesIO()
    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return file.getvalue()


def short_texts(rows: int) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.array([str(number % 10_000) for number in range(rows)])


def one_long_list(times: int) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.ListArray.from_arrays(
        pa.array([0, times], type=pa.int32()), pa.nulls(times, pa.string())
    )


def zstd(content: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").compress(content)
    return packed


def gz_of_gz(content: bytes) -> bytes:
    return gzip.compress(gzip.compress(content))


def lying(texts: list[str]) -> bytes:
    """A parquet file whose footer says that its one column unpacks to less than it does."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(
        pa.table({"content": texts}), file, compression="zstd", use_dictionary=False
    )
    content = file.getvalue()
    size = parquet.ParquetFile(file).metadata.row_group(0).column(0).total_uncompressed_size

    def varint(number: int) -> bytes:
        """Write a number of Thrift's in five bytes; its sign is in the lowest bit."""
        groups = [2 * number >> shift & 0x7F for shift in (0, 7, 14, 21, 28)]
        return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])

    # Of the column and of its group; older versions write the column's behind its pages as well.
    assert content.count(varint(size)) in (2, 3)
    return content.replace(varint(size), varint(1_000))


def runs(times: int) -> Any:
    """A column of one text, stored once with how often it comes."""
    pa = pytest.importorskip("pyarrow")
    kind = pa.run_end_encoded(pa.int32(), pa.string())
    return pa.RunEndEncodedArray.from_arrays([times], ["user"], kind)


def lzma_zip(dictionary: int) -> bytes:
    """A zip whose one file asks for a dictionary of so many bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("chat.jsonl", LINE)
    content = file.getvalue()
    # Behind the local header and the name: version, size of the properties, one byte, and the dictionary's size.
    place = 30 + len("chat.jsonl") + 5
    return content[:place] + dictionary.to_bytes(4, "little") + content[place + 4 :]


def bzip2_zip() -> bytes:
    """A zip of some hundred bytes that its reader unpacks to 800 MB at once."""
    file = io.BytesIO()
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2)
    with archive, archive.open("chat.json", "w", force_zip64=True) as member:
        for _ in range(800):
            member.write(bytes(1 << 20))
    return file.getvalue()


MANY = 5_000_000
LINKS = (
    b"</sheetData><hyperlinks>" + b'<hyperlink ref="A1"/>' * 600_000 + b"</hyperlinks><sheetData>"
)
PREFIXED = (
    b'<x:row xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    + b"<x:c/>" * 4_000_000
    + b"</x:row>"
)
BOMBS: dict[str, Callable[[], bytes]] = {
    "lines.jsonl.gz": lambda: gzip.compress(LINE * 1_000_000),
    "messages.jsonl.gz": lambda: gzip.compress(b'{"role": "user"}\n' * MANY),
    "blank.jsonl.gz": lambda: gzip.compress(b"\r\n  \n" * 40_000_000),
    "zeros.json.gz": lambda: gzip.compress(bytes(100_000_000)),
    "lists.json.gz": lambda: gzip.compress(b'{"messages": [' + b"[]," * 20_000_000),
    "text.json.gz": lambda: gzip.compress(
        b'{"messages": [{"role": "user", "content": "' + b"a" * 100_000_000 + b'"}]}'
    ),
    "rows.csv.gz": lambda: gzip.compress(b"role,content\n" + b"a\n" * 20_000_000),
    "one-row.csv.gz": lambda: gzip.compress(b"role;content\n" + b";" * 50_000_000),
    "flow.yaml.gz": lambda: gzip.compress(b"messages: [" + b"[]," * 20_000_000),
    "twice.jsonl.gz": lambda: gz_of_gz(LINE * 1_000_000),
    "lines.jsonl.bz2": lambda: bz2.compress(LINE * 1_000_000),
    "lines.jsonl.xz": lambda: lzma.compress(LINE * 1_000_000, preset=0),
    "lines.jsonl.zst": lambda: zstd(LINE * 1_000_000),
    "one.zip": lambda: zipped(chat_jsonl=LINE * 1_000_000),
    "many.zip": lambda: zipped(**{f"chat{number}_jsonl": LINE * 10_000 for number in range(100)}),
    "gz-in.zip": lambda: zipped(chat_jsonl_gz=gzip.compress(LINE * 1_000_000)),
    "members.zip": lambda: zipped(**{f"chat{number}_jsonl": b"" for number in range(20_000)}),
    "far-cell.xlsx": lambda: spreadsheet(sheet=b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "rows.xlsx": lambda: spreadsheet(sheet=b"<row><c><v>0</v></c></row>" * 2_000_000),
    "styles.xlsx": lambda: spreadsheet(styles=b"<xf/>" * 3_000_000),
    "fewer-styles.xlsx": lambda: spreadsheet(styles=b"<xf/>" * 900_000),
    "blank-rows.xlsx": lambda: spreadsheet(sheet=b"<row/>" * 900_000),
    "links.xlsx": lambda: spreadsheet(sheet=LINKS),
    "prefix.xlsx": lambda: spreadsheet(sheet=PREFIXED),
    "repeated.parquet": lambda: table(
        "parquet", role=repeated("user", 900_000), content=repeated("x" * 9_999, 900_000)
    ),
    "many-rows.parquet": lambda: table("parquet", role=repeated("user", MANY), content=repeated("x", MANY)),
    "long-list.parquet": lambda: table("parquet", messages=one_long_list(20_000_000)),
    "long-text.parquet": lambda: table("parquet", content=["x" * 100_000_000]),
    "json-cell.parquet": lambda: table("parquet", messages=["[" + "[]," * 20_000_000 + "[]]"]),
    "lying-footer.parquet": lambda: lying(["x" * 100_000_000] * 5),
    "short-texts.parquet": lambda: table(
        "parquet", role=repeated("user", 900_000), content=short_texts(900_000)
    ),
    "packed.arrow": lambda: table("zstd", content=["x" * 100_000_000]),
    "nulls.arrow": lambda: table("plain", role=nulls(50_000_000), content=nulls(50_000_000)),
    "repeated.arrow": lambda: table("zstd", role=repeated("user", MANY), content=repeated("x" * 9_999, MANY)),
}  # fmt: skip
BOMBS |= {
    f"{kind}-{inner}.arrow".replace(" ", "-"): partial(widthless, kind, inner)
    for kind, inner in [
        ("null", ""),
        ("struct", ""),
        ("binary", ""),
        ("empty lists", ""),
        ("inside", "null"),
        ("inside", "binary"),
        ("list", "null"),
        ("list", "struct"),
        ("fixed list", "null"),
        ("dictionary", "null"),
    ]
}
BOMBS["no-columns.arrow"] = no_columns
#: What is read, although it unpacks to almost as much as it may.
READ: dict[str, Callable[[], bytes]] = {
    "quoted.csv.gz": lambda: gzip.compress(b'role,content\nuser,"' + b'""' * 30_000_000 + b'"\n'),
    "many-rows.csv.gz": lambda: gzip.compress(b"role,content\n" + b"user,a\n" * 499_000),
    "many-rows.xlsx": lambda: spreadsheet(
        sheet=b"<row><c><v>0</v></c><c><v>1</v></c></row>" * 60_000
    ),
    "many-styles.xlsx": lambda: spreadsheet(styles=b'<xf numFmtId="14"><alignment/></xf>' * 65_000),
    "one-sheet-often.xlsx": lambda: spreadsheet(sheets=100_000),
}
#: What is refused for what it is, with a part of the sentence.
OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "runs.arrow": (
        lambda: table("plain", role=runs(2**31 - 1), content=runs(2**31 - 1)),
        "run_end_encoded",
    ),
    "dictionary.zip": (lambda: lzma_zip(0xFFFFFFFF), "compressed with LZMA"),
    "zeros.zip": (bzip2_zip, "compressed with bzip2"),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bombs")


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc"
)
@pytest.mark.parametrize("name", [*BOMBS, *OTHERS])
def test_a_small_file_that_would_fill_the_memory_is_refused(name: str, folder: Path) -> None:
    make, sentence = OTHERS[name] if name in OTHERS else (BOMBS[name], SENTENCE)
    child = read_in_child(folder / name, make())
    assert sentence in child.stdout, child.stdout[-500:]
    assert float(child.stderr.splitlines()[-1]) < SECONDS


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc"
)
@pytest.mark.parametrize("name", READ)
def test_a_file_within_the_limit_is_read_in_the_same_memory(name: str, folder: Path) -> None:
    child = read_in_child(folder / name, READ[name]())
    assert not child.stdout, child.stdout[-500:]
    assert float(child.stderr.splitlines()[-1]) < 2 * SECONDS


def read_in_child(file: Path, content: bytes) -> subprocess.CompletedProcess[str]:
    file.write_bytes(content)
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", CHILD, str(file), str(MORE_MEMORY)]
    child = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert child.returncode == 0, child.stderr[-2_000:]
    return child


def test_the_first_file_of_zstandard_is_refused_in_words_too(tmp_path: Path) -> None:
    """Its library is loaded while the file is read; its own error came through."""
    file = tmp_path / "window.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd\xa0\xff\xff\xff\x7f" + bytes(50))
    program = "import budgetkit as bk, sys; bk.load_traces(sys.argv[1])"
    command = [sys.executable, "-c", program, str(file)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "ValueError: Cannot unpack window.zst" in child.stderr
