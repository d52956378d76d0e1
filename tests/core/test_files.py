"""The one door to data/."""

import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from budgetkit import files
from budgetkit.files import write_whole


def test_every_file_under_data_is_described_in_its_readme() -> None:
    readme = files.read_bytes("README.md").decode()
    described = set(re.findall(r"`([\w./-]+)`", readme))
    undescribed = [
        name for name in files.data_files() if name != "README.md" and name not in described
    ]
    assert undescribed == []


def test_the_readme_describes_no_file_that_is_not_there() -> None:
    readme = files.read_bytes("README.md").decode()
    in_folders = set(re.findall(r"`((?:encodings|traces|corpora)/[\w./-]+\.\w+)`", readme))
    assert in_folders
    assert in_folders <= set(files.data_files())


def test_every_kind_of_data_says_under_which_licence_it_is() -> None:
    sections = re.split(r"^## ", files.read_bytes("README.md").decode(), flags=re.MULTILINE)[1:]
    assert len(sections) >= 7
    assert [
        text.splitlines()[0] for text in sections if not re.search(r"\(MIT|Apache|licence", text)
    ] == []


@pytest.mark.parametrize("name", files.data_files("licenses"))
def test_a_notice_names_its_holder_and_permits_copying(name: str) -> None:
    notice = files.read_bytes(name).decode()
    assert "Copyright (c) " in notice
    assert "Permission is hereby granted, free of charge" in notice


def test_a_file_is_found_read_and_listed() -> None:
    assert files.data_path("models.csv").is_file()
    assert files.read_bytes("models.csv").startswith(b"# ")
    assert "encodings/o200k_base.tiktoken.gz" in files.data_files("encodings")
    assert "models.csv" not in files.data_files("encodings")


def test_a_table_leaves_out_its_provenance() -> None:
    assert files.read_table("models.csv")[0]["name"] == "gpt-4o"
    assert files.read_bytes("models.csv").startswith(b"# Windows and maximum outputs from litellm")


@pytest.mark.parametrize("name", ["nothing.csv", "../pyproject.toml", "/etc/hostname", "encodings"])
def test_a_name_that_is_no_data_file_is_an_error_that_says_what_there_is(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="Unknown data file .* Choose one of: .*models.csv"):
        files.data_path(name)


def test_an_error_about_a_folder_lists_that_folder() -> None:
    refusal = r"Choose one of: encodings/cl100k_base.tiktoken.gz, .*json"
    with pytest.raises(FileNotFoundError, match=refusal) as error:
        files.data_path("encodings/gpt2.tiktoken.gz")
    assert "models.csv" not in str(error.value)


def test_rows_that_take_fields_from_others_are_made_anew_so_that_threads_may_read_them() -> None:
    before = deepcopy(files.read_toml("framings.toml"))
    rows = files.read_rows("framings.toml", "family")
    assert files.read_toml("framings.toml") == before
    assert any("like" in row for row in before["family"].values())
    assert not any("like" in row for row in rows.values())


def test_a_table_is_read_when_it_is_first_used_and_once() -> None:
    reads: list[int] = []

    def read() -> dict[str, int]:
        reads.append(1)
        return {"a": 1, "b": 2}

    table = files.Table(read)
    assert reads == []
    expected = (1, 2, {"a": 1, "b": 2}, "{'a': 1, 'b': 2}")
    assert (table["a"], len(table), {**table}, repr(table)) == expected
    assert (reads, table == {"a": 1, "b": 2}) == ([1], True)
    with pytest.raises(KeyError):
        table["c"]


def test_nothing_is_read_at_import() -> None:
    """Not the table of prompt caches for a default either, nor that of the count endpoints."""
    check = """
import sys
import budgetkit.files
folder, read = str(budgetkit.files.data_folder()), []
sys.addaudithook(lambda event, args: read.append(args[0]) if event == "open" and str(args[0]).startswith(folder) else 0)
import budgetkit.lab.app, budgetkit.extras.shell.program, budgetkit.lab.deciding, budgetkit.extras.endpoints
import budgetkit.lab.explorers
import budgetkit.lab.explorers.accuracy, budgetkit.lab.explorers.conversation
assert not read, read
budgetkit.extras.endpoints.ENDPOINTS["openai"]
assert len(read) == 1, read
"""
    subprocess.run([sys.executable, "-c", check], check=True)


def test_a_file_that_is_saved_again_keeps_its_readers_and_its_link(tmp_path: Path) -> None:
    """One of mode 0600 became readable by all, and a link became a file."""
    secret, link = tmp_path / "secret.yaml", tmp_path / "link.yaml"
    secret.write_bytes(b"before")
    secret.chmod(0o600)
    link.symlink_to(secret)
    write_whole(link, b"after")
    assert link.is_symlink()
    assert secret.read_bytes() == b"after"
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path, is_linked: bool) -> None:
    """It became an ordinary file, as /dev/null did for root."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(link if is_linked else pipe, b"content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_saved_again_keeps_its_owner_and_group(tmp_path: Path) -> None:
    file = tmp_path / "kept.yaml"
    file.write_bytes(b"before")
    os.chown(file, 65534, 65533)
    file.chmod(0o640)
    write_whole(file, b"after")
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (65534, 65533, 0o640)
