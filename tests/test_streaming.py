"""Corpora larger than memory: the same numbers as in one go, here and on a cluster that loses a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.accuracy import compare
from budgetkit.cluster import answers
from budgetkit.corpora import Corpus, Document
from budgetkit.counters import ExactCounter
from budgetkit.streaming import Block, compare_stream, count_block, count_files
from tests.hostile import hostile_text, long_text

EXACT = ExactCounter("cl100k_base")


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


@pytest.mark.parametrize("block", [7, 1_000, 10_000, 8 << 20])
def test_blocks_of_any_size_count_as_the_whole_file(corpus: list[Path], block: int) -> None:
    paths = corpus[:3] if block == 7 else corpus
    found = count_files(paths, EXACT, block=block)
    assert found["tokens"].tolist() == [whole(path) for path in paths]
    assert found["bytes"].tolist() == [path.stat().st_size for path in paths]
    assert found["path"].tolist() == [str(path) for path in paths]


@settings(max_examples=100)
@given(text=hostile_text.map(written), block=st.integers(1, 40))
def test_blocks_of_hostile_text_add_up(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.txt"
    path.write_bytes(text.encode())
    assert count_files([path], EXACT, block=block)["tokens"].tolist() == [whole(path)]


def test_what_cannot_be_counted_in_blocks_is_an_error_in_three_parts(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("one two drei fünf".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.txt, byte 14: not UTF-8; text files are counted as UTF-8; save it"):
        count_files([path])
    with pytest.raises(
        ValueError, match="files were to be counted with chars/4; only exact counts .*; use an encoding"
    ):
        count_files([path], "chars/4")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(megabytes: int) -> int:
        path = tmp_path / f"{megabytes}.txt"
        with path.open("wb") as stream:
            for seed in range(megabytes):
                stream.write(written(long_text(100_000, seed)).encode() * 8)
        tracemalloc.start()
        count_files([path], EXACT, block=1 << 20)
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
    order = ["counter", "document"]
    pd.testing.assert_frame_equal(
        streamed.sort_values(order, ignore_index=True), once.sort_values(order, ignore_index=True)
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


# On a cluster

on_a_cluster = pytest.mark.skipif(
    find_spec("distributed") is None, reason="dask.distributed (extra: cluster) is absent"
)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


@on_a_cluster
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_is_killed_changes_no_number(client: Any, corpus: list[Path]) -> None:
    expected = [whole(path) for path in corpus]
    assert count_files(corpus, EXACT, client, block=5_000)["tokens"].tolist() == expected
    killed: list[int] = []

    def kill() -> None:
        time.sleep(0.3)
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()
    found = count_files(corpus * 1, EXACT, client, block=250)
    killer.join()
    assert found["tokens"].tolist() == expected
    assert len(killed) == 1
    order = ["counter", "document"]
    streamed = pd.concat(compare_stream(["chars/4"], documents(), "cl100k_base", client, characters=9_000))
    once = compare(["chars/4"], Corpus(tuple(documents())), EXACT)
    pd.testing.assert_frame_equal(
        streamed.sort_values(order, ignore_index=True), once.sort_values(order, ignore_index=True)
    )
