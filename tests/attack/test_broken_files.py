"""Files that were broken on purpose give a value or an error in words, and end no process."""

import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import warnings
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import budgetkit as bk
from budgetkit.extras.shell.checking import growth
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.extras.shell.pytest_plugin import check_files
from budgetkit.files import data_path
from tests import made_sessions

HELLO = '[{"role": "user", "content": "Hello"}]'
BUDGET = bk.presets.chat(2_000, output=500)

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
        archive.writestr("chat.json", HELLO)
        nameless = zipfile.ZipInfo("x")
        archive.writestr(nameless, "")
        nameless.filename = ""
    assert bk.load_trace(path).messages[0].text == "Hello"


def test_names_in_a_zip_may_begin_at_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "chats.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("./a.json", "b.json", ".hidden.json"):
            archive.writestr(name, HELLO)
    assert len(bk.load_traces(path)) == 2


def make_database(folder: Path, script: str) -> None:
    """Write OpenCode's database with an SQL script."""
    with closing(sqlite3.connect(folder / "opencode.db")) as connection:
        connection.executescript(script)


def number_of_sessions(folder: Path) -> int:
    """Count the sessions of a folder in a process of its own, which may take a minute."""
    code = "import sys, budgetkit as bk; print(len(bk.sessions(sys.argv[1], billed=True)))"
    command = [sys.executable, "-c", code, str(folder)]
    environment = {**os.environ, "BUDGETKIT_CACHE": ""}
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert child.returncode == 0, child.stderr[-800:]
    return int(child.stdout)


_ENDLESS = """
CREATE TABLE session (id TEXT, directory TEXT, title TEXT, parent_id TEXT);
INSERT INTO session VALUES ('s', '/p', 't', NULL);
CREATE VIEW message AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
    SELECT x AS id, 's' AS session_id, x AS time_created, x AS time_updated, '{}' AS data FROM c;
CREATE VIEW part AS SELECT id, id AS message_id, session_id, time_created, data FROM message;
"""


def test_a_database_whose_view_never_ends_is_listed_as_unreadable(tmp_path: Path) -> None:
    make_database(tmp_path, _ENDLESS)
    assert number_of_sessions(tmp_path) == 1


def share_pages(path: Path, depth: int, fan: int) -> None:
    """Point every entry of a table's inner pages at the same page, so that few pages hold many rows.

    The layout is that of https://www.sqlite.org/fileformat2.html, section 1.6.
    """
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'message'"
        ).fetchone()
    pages = bytearray(path.read_bytes())
    pages += pages[(root - 1) * size : root * size]
    for level in range(depth):
        below = len(pages) // size
        page = bytearray(size)
        for number in range(fan):
            place = size - 5 * (number + 1)
            page[place : place + 5] = struct.pack(">IB", below, number % 127 + 1)
            page[12 + 2 * number : 14 + 2 * number] = struct.pack(">H", place)
        page[:12] = struct.pack(">BHHHBI", 5, 0, fan, place, 0, below)
        if level == depth - 1:
            pages[(root - 1) * size : root * size] = page
        else:
            pages += page
    pages[28:32] = struct.pack(">I", len(pages) // size)
    path.write_bytes(pages)


def test_a_database_whose_rows_share_pages_is_listed_as_unreadable(tmp_path: Path) -> None:
    make_database(tmp_path, _TABLES + rows_of("ses_1"))
    share_pages(tmp_path / "opencode.db", depth=5, fan=300)
    assert number_of_sessions(tmp_path) == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes are files here")
def test_a_pipe_among_the_records_of_a_session_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "message" / "ses_1"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "m1.json")
    session = tmp_path / "storage" / "session" / "p" / "ses_1.json"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"id": "ses_1", "directory": "/p", "title": "t"}))
    assert number_of_sessions(tmp_path / "storage") == 1


_TABLES = """
CREATE TABLE session (id TEXT, directory TEXT, title TEXT, parent_id TEXT);
CREATE TABLE message (id TEXT, session_id TEXT, time_created, time_updated, data TEXT);
"""


_COMPUTED = _TABLES.replace("directory TEXT", "directory AS (hex(zeroblob(1000)))")


def rows_of(id: str, changed: str = "1") -> str:
    """Return the SQL for a session with one message, and the time of its last change."""
    return (
        f"INSERT INTO session (id) VALUES ('{id}');"
        f"INSERT INTO message VALUES ('m', '{id}', 1, {changed}, '{{}}');"
    )


@pytest.mark.parametrize(
    ("tables", "changed", "listed"),
    [
        (_TABLES, "9e999", "opencode.db"),
        (_TABLES, "9223372036854775", "opencode.db/ses_1"),
        (_TABLES, "'soon'", "opencode.db"),
        (_TABLES, "-9223372036854775", "opencode.db/ses_1"),
        (_COMPUTED, "1", "opencode.db"),
        (_COMPUTED.replace("TABLE session", "TABLE SESSION"), "1", "opencode.db"),
    ],
    ids=["infinity", "late", "word", "early", "computed column", "capitals"],
)
def test_an_odd_column_is_listed(tables: str, changed: str, listed: str, tmp_path: Path) -> None:
    make_database(tmp_path, tables + rows_of("ses_1", changed))
    paths = [Path(path).relative_to(tmp_path).as_posix() for path in bk.sessions(tmp_path)["path"]]
    assert paths == [listed]


def test_an_id_in_a_database_names_no_file_elsewhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside.jsonl"
    shutil.copy(data_path("traces/made-up-session.jsonl"), outside)
    inside = tmp_path / "inside"
    inside.mkdir()
    make_database(inside, _TABLES + rows_of(str(outside)))
    (row,) = bk.sessions(inside, billed=True).to_dict("records")
    assert Path(row["path"]) == inside / "opencode.db"
    assert row["requests"] != 139


@pytest.mark.parametrize("way", ["absolute", "above", "link"])
def test_a_session_in_files_names_no_folder_elsewhere(way: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    text = {"type": "text", "text": "A text outside", "id": "p"}
    (outside / "p.json").write_text(json.dumps(text))
    storage = tmp_path / "storage"
    for folder in ("session/p", "message/ses_1", "part"):
        (storage / folder).mkdir(parents=True)
    id = {"absolute": str(outside), "above": "../../outside", "link": "m"}[way]
    if way == "link":
        (storage / "part/m").symlink_to(outside)
    message = {"id": id, "role": "user"}
    (storage / "message/ses_1/m.json").write_text(json.dumps(message))
    session = storage / "session/p/ses_1.json"
    session.write_text('{"id": "ses_1", "title": "t"}')
    try:
        texts = [message.text for message in bk.load_trace(session).messages]
    except ValueError:
        texts = []
    assert "A text outside" not in texts


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of bills in an empty cache folder, beside a folder with one session."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(made_sessions.claude_code(made_sessions.requests(1, 3)))
    monkeypatch.setenv("BUDGETKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache/bills.json"


def _requests(cache: Path) -> list[int]:
    table = bk.sessions(cache.parent.parent / "sessions", billed=True)
    return [int(requests) for requests in table["requests"]]


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_the_file_of_bills_is_not_written_through_a_link(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for goal in ("mine.txt", "new.txt"):
        cache.symlink_to(tmp_path / goal)
        assert _requests(cache) == [3]
        cache.unlink()
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes are files here")
def test_a_pipe_in_place_of_the_file_of_bills_holds_nobody_up(cache: Path) -> None:
    os.mkfifo(cache)
    code = "import sys, budgetkit as bk; bk.sessions(sys.argv[1], billed=True)"
    command = [sys.executable, "-c", code, str(cache.parent.parent / "sessions")]
    assert subprocess.run(command, timeout=60).returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="a file has no mode")
def test_only_the_owner_reads_the_file_of_bills(cache: Path) -> None:
    cache.write_text("[" * 100_000)
    cache.chmod(0o644)
    assert _requests(cache) == [3]
    assert cache.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("value", ["NaN", '"12"', "1e999", "[]", "true", "9" * 400])
@pytest.mark.parametrize("field", ["cost", "requests", "model", "day", "parts", "answers"])
def test_a_bill_of_other_types_is_read_again(cache: Path, field: str, value: str) -> None:
    assert _requests(cache) == [3]
    bills = cache.read_text()
    cache.write_text(re.sub(f'"{field}": [^,}}\\]]+', f'"{field}": {value}', bills))
    assert run(["sessions", "--folder", str(cache.parent.parent / "sessions")]) == 0
    assert _requests(cache) == [3]
    assert cache.read_text() == bills


@pytest.mark.parametrize("number", [1000.5, "many", True], ids=str)
@pytest.mark.parametrize(
    "field", ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation"]
)
def test_an_unreadable_number_is_named(field: str, number: object, tmp_path: Path) -> None:
    content = made_sessions.claude_code(made_sessions.requests(1, 3)).decode()
    records = [json.loads(line) for line in content.splitlines()]
    billed = [record["message"]["usage"] for record in records if record["type"] == "assistant"]
    if field == "cache_creation":
        billed[-1][field]["ephemeral_1h_input_tokens"] = number
    else:
        billed[-1][field] = number
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = [*bk.load_trace(path).warnings, *(str(note.message) for note in caught)]
    wanted = ("Not read: usage fields", "Left out: a request whose usage is unreadable")
    assert any(note.startswith(wanted) and field in note for note in notes)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("content: my SECRET: is: this", r"invalid YAML \(.*line \d"),
        ('content: "SECRET', r"invalid YAML \(.*line \d"),
        ("? [SECRET]", r"invalid YAML \(.*line \d"),
        ("content: @SECRET", r"invalid YAML \(.*line \d"),
        ('content: "\\qSECRET"', r"invalid YAML \(.*line \d"),
        ("content: !x SECRET", r"invalid YAML \(.*line \d"),
        ("content: SECRET\n  content: two", "a key appears twice"),
    ],
)
def test_an_error_about_yaml_quotes_no_text(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(f"- role: user\n  {line}\n")
    with pytest.raises(ValueError, match=problem) as error:
        bk.load_trace(path)
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "User: Grüße\nAssistant: Hello\n"),
        ("a.csv", "role,content\nuser,Grüße\nassistant,Hello\n"),
        ("a.json", '[{"role":"user","content":"Grüße"},{"role":"assistant","content":"Hello"}]'),
    ],
)
def test_utf_32_is_read_whole(name: str, text: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode(encoding))
    trace = bk.load_trace(tmp_path / name)
    assert [message.text for message in trace.messages] == ["Grüße", "Hello"]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('role,content\nuser,"one\nassistant,two\nuser,three\n', "quotation marks after line 1"),
        ('role,content\nuser,"He said "hi" to me"\n', "quotation marks after line 1"),
        ("role,content\nuser,one\nuser,Hello, world\n", "row 3: more cells than columns"),
        ("role,content,content\nuser,the text,b\n", "two columns are called 'content'"),
        ("role,Content,content\nuser,the text,b\n", "two columns are called 'content'"),
    ],
)
def test_a_table_that_would_lose_a_text_is_refused(
    table: str, problem: str, tmp_path: Path
) -> None:
    """Rows and cells were lost without a word."""
    (tmp_path / "a.csv").write_text(table)
    with pytest.raises(ValueError, match=problem):
        bk.load_trace(tmp_path / "a.csv")
    (tmp_path / "b.json").write_text(HELLO)
    assert run(["check", str(tmp_path)]) == 2


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ["role", "content", "content"]
    cells = [pa.array([name]) for name in ("user", "the text", "b")]
    parquet.write_table(pa.Table.from_arrays(cells, names=names), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="two columns have the same name"):
        bk.load_trace(tmp_path / "a.parquet")


def test_an_archive_in_an_archive_is_named(tmp_path: Path) -> None:
    """The error said that it had no messages."""
    for name, inner in (("in.zip", "chat.json"), ("out.zip", "in.zip")):
        content = (tmp_path / inner).read_bytes() if inner == "in.zip" else HELLO
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(inner, content)
    with pytest.raises(ValueError, match=r"out.zip has no conversation file among 'in.zip'"):
        bk.load_trace(tmp_path / "out.zip")


@pytest.mark.parametrize("place", [5, 9])
def test_zeros_after_a_crash_are_an_unread_line(place: int, tmp_path: Path) -> None:
    """The whole session was refused as a binary file."""
    lines = data_path("traces/made-up-session.jsonl").read_bytes().split(b"\n")[:9]
    lines.insert(place, b"\0" * 512)
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    session = bk.Session(tmp_path / "a.jsonl")
    assert session.missing == [f"Left out 1 line of invalid JSON: line {place + 1}."]


@pytest.mark.parametrize("option", ["--baseline", "--save-baseline"])
def test_an_empty_path_of_a_baseline_is_refused(option: str) -> None:
    assert run(["check", "support-chat", option, ""]) == 2


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize(
    ("broken", "is_refused"),
    [
        ('{"messages": [{"role": "user", "content": "cut of', True),
        ('{"messages": [], "messages": []}', True),
        ('[{"role": "user", "content": 5}]', True),
        ('{"name": "settings"}', False),
    ],
)
def test_a_broken_file_closes_the_gate(broken: str, is_refused: bool, tmp_path: Path) -> None:
    """It was left out with a note, and the rest of the folder opened the gate."""
    chats = tmp_path / "chats"
    chats.mkdir()
    (chats / "a.json").write_text(HELLO)
    (chats / "b.json").write_text(broken)
    (chats / "README.md").write_text("Our chats.")
    budget = tmp_path / "budget.json"
    budget.write_text(bk.state.to_json(BUDGET))
    assert run(["check", "-b", str(budget), str(chats)]) == (2 if is_refused else 0)
    if is_refused:
        with pytest.raises(ValueError, match="b.json"):
            check_files(BUDGET, traces=str(chats))


def test_a_baseline_names_each_section_once(tmp_path: Path) -> None:
    baseline = tmp_path / "base.json"
    baseline.write_text('{"budgetkit": 1, "sections": {"system": 50, "system": 105}}')
    with pytest.raises(ValueError, match="Duplicate key 'system'"):
        growth(str(baseline), check(BUDGET, prompts={"system": "Be brief."}))
