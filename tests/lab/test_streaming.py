"""Corpora larger than memory: the same numbers as in one go, here and on a cluster that loses a worker."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit import streaming
from budgetkit.counters import ExactCounter, stretches
from budgetkit.counters.exact import is_seam, memory
from budgetkit.lab.accuracy import compare
from budgetkit.lab.accuracy.corpora import Corpus, Document
from budgetkit.lab.accuracy.streaming import (
    Block,
    compare_stream,
    completed_tasks,
    count_block,
    count_files,
)
from tests.conftest import examples
from tests.hostile import hostile_text, long_text

EXACT = ExactCounter("cl100k_base")
ORDER = ["counter", "document"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of several sizes, an empty one and one without a single seam among them."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [
        "",
        "Hello world",
        "预算" * 5_000,
        *(written(long_text(60_000, seed)) for seed in range(4)),
    ]
    paths = [folder / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    return paths


def written(text: str) -> str:
    """Leave out what no UTF-8 file can hold."""
    return text.encode("utf-8", "ignore").decode()


def whole(path: Path) -> int:
    return len(EXACT.tokens(path.read_bytes().decode()))


@pytest.mark.parametrize("block", [1_000, 10_000, 8 << 20])
def test_blocks_of_any_size_count_as_the_whole_file(corpus: list[Path], block: int) -> None:
    found = count_files(corpus, EXACT, block=block)
    assert found["tokens"].tolist() == [whole(path) for path in corpus]
    assert found["bytes"].tolist() == [path.stat().st_size for path in corpus]
    assert found["path"].tolist() == [str(path) for path in corpus]


SCRIPTS = {
    "Russian": "Сколько знаков помещается в окно, столько и считаем. ",
    "Hindi": "खिड़की में जितने अक्षर आते हैं, उतने ही गिने जाते हैं। ",
    "Arabic": "نحسب ما تتسع له النافذة، ولا نزيد عليه؟ ",
    "Thai": "เรานับเท่าที่หน้าต่างรับได้",
    "Japanese": "窓に入るだけの文字を数えます。それ以上は数えません。",
    "kana": "まどにはいるだけ",
    "emoji": "👩🏽\u200d🚀❤\ufe0f🇫🇷",
    "one letter": "а",
    "blanks": " ",
    "line ends": "\n",
    "base64": "aGVsbG8gd29ybGQx",
    "contractions": "s's'S",
}


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_every_script_counts_in_blocks_as_whole_with_lines_and_without(
    tmp_path: Path, text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block is read in windows, and from what has no seam for long the pieces are searched."""
    monkeypatch.setattr(streaming, "BLOCK", 3_000)
    monkeypatch.setattr(streaming, "_WINDOW", 512)
    monkeypatch.setattr(stretches, "_WINDOW", 1_024)
    path = tmp_path / "text"
    for lines in ("", "\n"):
        written = (text + lines) * (30_000 // len(text + lines))
        path.write_text(written, "utf-8", newline="")
        for block in (700, 20_000):
            found = count_files([path], encoding, block=block)["tokens"].tolist()
            assert found == [len(ExactCounter(encoding).tokens(written))]


def test_what_has_no_seam_for_long_is_counted(tmp_path: Path) -> None:
    """69 MB of one letter, without a place to cut; such text was refused."""
    path = tmp_path / "text"
    path.write_text("的" * 23_000_000, "utf-8")
    found = count_files([path], "cl100k_base")["tokens"].tolist()
    sizes = [len(ExactCounter("cl100k_base").tokens("的" * length)) for length in (23_000, 46_000)]
    # Grows evenly, as tiktoken counts what it can.
    assert found == [sizes[0] + 999 * (sizes[1] - sizes[0])]


@settings(max_examples=examples(200))
@given(text=hostile_text.map(written), start=st.integers(0, 40), ahead=st.integers(1, 40))
def test_blocks_end_at_seams(text: str, start: int, ahead: int) -> None:
    data = text.encode()
    start = len(text[: min(start, len(text))].encode())
    place = streaming._seam(
        lambda at, size: data[at : at + size], start, min(start + ahead, len(data))
    )
    assert place == len(data) or (place > start and is_seam(text, len(data[:place].decode())))


def test_nothing_is_remembered_of_what_does_not_come_again(corpus: list[Path]) -> None:
    memory("cl100k_base").forget()
    count_files(corpus, EXACT)
    assert len(memory("cl100k_base")) == 0


@settings(max_examples=examples(100))
@given(text=hostile_text.map(written), block=st.integers(1, 40))
def test_blocks_of_hostile_text_add_up(
    tmp_path_factory: pytest.TempPathFactory, text: str, block: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.txt"
    path.write_bytes(text.encode())
    assert count_files([path], EXACT, block=block)["tokens"].tolist() == [whole(path)]


def test_what_cannot_be_counted_in_blocks_is_an_error_in_three_parts(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("one two drei fünf".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.txt is not UTF-8 at byte 14. Save it as UTF-8"):
        count_files([path])
    path.write_text("words " * 2_000 + "end")
    with path.open("ab") as stream:
        stream.write(b"\xff more")
    with pytest.raises(ValueError, match=r"latin.txt is not UTF-8 at byte 12,003"):
        count_files([path], block=5_000)
    with pytest.raises(ValueError, match=r"Invalid block size: 0. Use 1 or more."):
        count_files([path], block=0)
    with pytest.raises(
        ValueError,
        match="Counter 'chars/4' is not exact, so .*. Use an encoding",
    ):
        count_files([path], "chars/4")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(megabytes: int) -> int:
        path = tmp_path / f"{megabytes}.txt"
        with path.open("wb") as stream:
            for seed in range(megabytes):
                stream.write(written(long_text(50_000, seed)).encode() * 8)
        tracemalloc.start()
        count_files([path], EXACT, block=1 << 19)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    EXACT("the encoding is loaded before it is measured")
    assert peak(12) < 1.5 * peak(3)


def documents() -> Iterator[Document]:
    for number in range(40):
        yield Document(long_text(2_000, number), "mixed", "any", "made up", str(number))


def test_documents_compared_in_batches_give_the_rows_of_one_go() -> None:
    counters = ["chars/4", "bytes/4"]
    streamed = pd.concat(
        compare_stream(counters, documents(), EXACT, characters=9_000), ignore_index=True
    )
    once = compare(counters, Corpus(tuple(documents())), EXACT)
    pd.testing.assert_frame_equal(
        streamed.sort_values(ORDER, ignore_index=True), once.sort_values(ORDER, ignore_index=True)
    )


def test_tasks_are_asked_for_as_they_are_needed() -> None:
    asked: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(1_000):
            asked.append(number)
            yield number

    found = completed_tasks(str, tasks())
    assert [next(found) for _ in range(3)] == ["0", "1", "2"]
    assert len(asked) == 3


def test_a_block_says_which_it_is(corpus: list[Path]) -> None:
    block = Block(str(corpus[1]), 0, 11)
    assert count_block(block, "cl100k_base") == (block, 2)


def test_progress_counts_bytes_and_documents(
    corpus: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    count_files(corpus, EXACT, progress=True)
    [*compare_stream(["chars/4"], documents(), EXACT, progress=True, characters=9_000)]
    shown = capsys.readouterr().err
    assert "counting: 100%" in shown
    assert "comparing: 40document" in shown


# On a cluster


@pytest.fixture
def client() -> Iterator[Any]:
    """Start two workers anew: one that was killed may be counted as alive for a while."""
    distributed = pytest.importorskip(
        "distributed", reason="dask.distributed (extra: cluster) is absent"
    )
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Deadly:
    """A client that kills a worker, as a power cut would, when so many tasks have been asked for."""

    def __init__(self, client: Any, tasks: int) -> None:
        self.client, self.tasks, self.asked = client, tasks, 0
        self.victim = next(iter(client.run(os.getpid).values()))

    def ncores(self) -> dict[str, int]:
        found: dict[str, int] = self.client.ncores()
        return found

    def submit(self, function: Callable[..., Any], *values: Any, **options: Any) -> Any:
        self.asked += 1
        if self.asked == self.tasks:
            os.kill(self.victim, signal.SIGKILL)
        return self.client.submit(function, *values, **options)


#: Dask says how slow the disk of a loaded machine is as it starts.
slow = pytest.mark.filterwarnings(
    "ignore:Creating scratch directories is taking a surprisingly long time:UserWarning"
)


@slow
def test_a_worker_that_is_killed_while_files_are_counted_changes_no_number(
    client: Any, corpus: list[Path]
) -> None:
    deadly = Deadly(client, tasks=20)
    found = count_files(corpus, EXACT, deadly, block=5_000)
    pd.testing.assert_frame_equal(found, count_files(corpus, EXACT))
    assert deadly.asked > 40
    assert deadly.victim not in client.run(os.getpid, on_error="return").values()


@slow
def test_a_worker_that_is_killed_while_documents_are_compared_changes_no_row(client: Any) -> None:
    deadly = Deadly(client, tasks=8)
    streamed = pd.concat(
        compare_stream(["chars/4"], documents(), "cl100k_base", deadly, characters=3_000)
    )
    once = compare(["chars/4"], Corpus(tuple(documents())), EXACT)
    pd.testing.assert_frame_equal(
        streamed.sort_values(ORDER, ignore_index=True), once.sort_values(ORDER, ignore_index=True)
    )
    assert deadly.asked == 20
