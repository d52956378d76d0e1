"""Files that were broken on purpose give a value or an error in words, and end no process."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import budgetkit as bk

# Every byte of a table in turn; a library that reads past its end, or throws where nothing catches, ends this process.
_EACH_BYTE = """
import io, sys
import pyarrow as pa
from pyarrow import ipc, parquet
import budgetkit as bk

kind, path = sys.argv[1:]
rows = [["user", "assistant"] * 4, [f"text number {n}" for n in range(8)]]
table = pa.table(dict(zip(["role", "content"], rows)))
stream = io.BytesIO()
if kind == "parquet":
    parquet.write_table(table, stream)
else:
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
whole = stream.getvalue()
read = 0
for place in range(4, len(whole)):
    for byte in (0, 127, whole[place] ^ 1):
        with open(path, "wb") as file:
            file.write(whole[:place] + bytes([byte]) + whole[place + 1 :])
        try:
            read += bool(bk.load_traces(path))
        except ValueError:
            pass
print("read", read)
"""


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_table_with_a_broken_byte_ends_no_process(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-W", "ignore", "-c", _EACH_BYTE, kind, str(tmp_path / f"a.{kind}")]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr[-800:]
    assert int(child.stdout.split()[1]) > 100


def test_a_zip_with_a_file_without_a_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.json", '[{"role": "user", "content": "Hello"}]')
        nameless = zipfile.ZipInfo("x")
        archive.writestr(nameless, "")
        nameless.filename = ""
    assert bk.load_trace(path).messages[0].text == "Hello"
