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
from budgetkit.accuracy import compare
from budgetkit.accuracy.corpora import Corpus, Document
from budgetkit.accuracy.dask import answers
from budgetkit.accuracy.streaming import Block, compare_stream, count_block, count_files
from budgetkit.counters import ExactCounter
from budgetkit.counters.exact import memory
from budgetkit.counters.seams import is_seam
from tests.hostile import hostile_text, long_text

EXACT = ExactCounter("cl100k_base")
ORDER = ["counter", "document"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of several sizes, an empty one and one without a single seam among them."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = ["", "Hello world", "预算" * 5_000, *(written(long_text(60_000, seed)) for seed in range(4))]
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


def test_what_bytes_show_as_a_seam_is_one(corpus: list[Path]) -> None:
    """Chinese and Korean text too, in which no word ends with a blank."""
    text = written(long_text(40_000)) + "预算，不够。한국어\n预\n한!" * 100
    data = text.encode()
    places = [len(data[: found.start()].decode()) for found in streaming._SEAM.finditer(data)]
    assert len(places) > 5_000
    assert [place for place in places if not is_seam(text, place)] == []


@pytest.mark.parametrize("character", [" ", "\n", "。", "，"])
def test_a_seam_is_found_where_two_windows_meet(tmp_path: Path, character: str) -> None:
    """Whichever offset asks, the first seam from it on is the same; else bytes would be counted twice."""
    path = tmp_path / "windows.txt"
    for before in range(-4, 5):
        ahead = "的" * ((streaming._WINDOW + before) // 3) + "的"
        path.write_text(f"x{ahead}{character}y。", encoding="utf-8", newline="")
        with path.open("rb") as stream:
            data = stream.read()
            found = {streaming._first_seam(stream, Block(str(path), 0, 0), at) for at in range(1, 9)}
        expected = streaming._SEAM.search(data)
        assert expected is not None
        assert found == {expected.start()}


def test_nothing_is_remembered_of_what_does_not_come_again(corpus: list[Path]) -> None:
    memory("cl100k_base").forget()
    count_files(corpus, EXACT)
    assert len(memory("cl100k_base")) == 0


@settings(max_examples=100)
@given(text=hostile_text.map(written), block=st.integers(1, 40))
def test_blocks_of_hostile_text_add_up(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.txt"
    path.write_bytes(text.encode())
    assert count_files([path], EXACT, block=block)["tokens"].tolist() == [whole(path)]


def test_what_cannot_be_counted_in_blocks_is_an_error_in_three_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("one two drei fünf".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.txt, byte 14: not UTF-8; text files are counted as UTF-8; save it"):
        count_files([path])
    path.write_bytes(b"a" * 100)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"byte 10: 0 MiB without .*; break its lines"):
        patch.setattr(streaming, "_FARTHEST", 50)
        count_files([path], block=10)
    with pytest.raises(
        ValueError, match="files were to be counted with chars/4; only exact counts .*; use an encoding"
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
    streamed = pd.concat(compare_stream(counters, documents(), EXACT, characters=9_000), ignore_index=True)
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

    found = answers(str, tasks())
    assert [next(found) for _ in range(3)] == ["0", "1", "2"]
    assert len(asked) == 3


def test_a_block_says_which_it_is(corpus: list[Path]) -> None:
    block = Block(str(corpus[1]), 0, 11)
    assert count_block(block, "cl100k_base") == (block, 2)


def test_progress_counts_bytes_and_documents(corpus: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    count_files(corpus, EXACT, progress=True)
    [*compare_stream(["chars/4"], documents(), EXACT, progress=True, characters=9_000)]
    shown = capsys.readouterr().err
    assert "counting: 100%" in shown
    assert "comparing: 40document" in shown


# On a cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask.distributed (extra: cluster) is absent")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
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


def test_a_worker_that_is_killed_while_files_are_counted_changes_no_number(client: Any, corpus: list[Path]) -> None:
    deadly = Deadly(client, tasks=20)
    found = count_files(corpus, EXACT, deadly, block=5_000)
    pd.testing.assert_frame_equal(found, count_files(corpus, EXACT))
    assert deadly.asked > 40
    assert deadly.victim not in client.run(os.getpid, on_error="return").values()


def test_a_worker_that_is_killed_while_documents_are_compared_changes_no_row(client: Any) -> None:
    deadly = Deadly(client, tasks=8)
    streamed = pd.concat(compare_stream(["chars/4"], documents(), "cl100k_base", deadly, characters=3_000))
    once = compare(["chars/4"], Corpus(tuple(documents())), EXACT)
    pd.testing.assert_frame_equal(
        streamed.sort_values(ORDER, ignore_index=True), once.sort_values(ORDER, ignore_index=True)
    )
    assert deadly.asked == 20
