"""The faster tokenizer: used for large work alone, believed after its test, never needed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import accelerated, encodings
from tests.hostile import MILLION, RUNS, any_text, hostile_text, long_text

installed = pytest.mark.skipif(find_spec("quicktok") is None, reason="quicktok (extra: fast) is not installed")
ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony")


def test_the_golden_counts_are_tiktokens() -> None:
    texts = accelerated.golden()["texts"]
    assert len(texts) == len(set(texts)) >= 200
    assert {"'\u017f", "<|endoftext|>", "\ud800"} <= set(texts)
    for name, counts in accelerated.golden()["counts"].items():
        assert counts == [len(encodings.tokens(name, text)) for text in texts]


def with_package(count: Callable[[str], int], in_batch: object = None) -> object:
    """Pretend that a tokenizer is installed which counts like this."""
    package = SimpleNamespace(get_encoding=lambda name: SimpleNamespace(count=count, encode_batch=in_batch))
    return mock.patch.multiple(
        accelerated, find_spec=mock.Mock(return_value=True), import_module=mock.Mock(return_value=package)
    )


def fresh(name: str = "o200k_base") -> accelerated.CountMany | None:
    found: accelerated.CountMany | None = accelerated.accelerated.__wrapped__(name)
    return found


def test_one_that_counts_right_is_taken() -> None:
    with with_package(encodings.counting("o200k_base")):  # type: ignore[attr-defined]
        faster = fresh()
    assert faster is not None and faster(["Hello world", "\ud800"]) == [2, 1]


def test_one_that_is_off_by_one_somewhere_is_left_out_with_a_warning() -> None:
    right = encodings.counting("o200k_base")
    with (
        with_package(lambda text: right(text) + (text == "\x00")),  # type: ignore[attr-defined]
        pytest.warns(RuntimeWarning, match=r"quicktok was to count o200k_base, and it found .* in '\\x00'.*; tiktoken"),
    ):
        assert fresh() is None


def test_one_that_is_wrong_only_where_many_texts_are_counted_at_once_is_left_out_too() -> None:
    right = encodings.counting("o200k_base")

    def in_batch(texts: list[str], *_: object) -> tuple[None, Any]:
        return None, np.cumsum([0, *(right(text) + (len(texts) > 2 and text == "\x00") for text in texts)])

    with (
        with_package(right, in_batch),  # type: ignore[attr-defined]
        pytest.warns(RuntimeWarning, match=r"it found .* in '\\x00'"),
    ):
        assert fresh() is None


def test_one_that_raises_is_left_out_with_a_warning() -> None:
    with (
        with_package(mock.Mock(side_effect=OSError("no such symbol"))),  # type: ignore[attr-defined]
        pytest.warns(RuntimeWarning, match="it raised OSError: no such symbol; tiktoken counts instead"),
    ):
        assert fresh() is None


def test_the_warning_comes_once_and_counting_goes_on() -> None:
    accelerated.accelerated.cache_clear()
    with with_package(lambda text: 0), warnings.catch_warnings(record=True) as caught:  # type: ignore[attr-defined]
        warnings.simplefilter("always")
        for _ in range(3):
            assert accelerated.counting_many("o200k_base", 5_000_000)(["Hello world"]) == [2]
    accelerated.accelerated.cache_clear()
    assert len(caught) == 1


def test_small_work_loads_nothing() -> None:
    check = (
        "import sys, budgetkit; count = budgetkit.counter('gpt-4o'); count('word ' * 100_000); count.many(['x'] * 9);"
        "assert 'quicktok' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_without_the_package_tiktoken_counts_and_nobody_is_warned() -> None:
    with mock.patch.object(accelerated, "find_spec", return_value=None), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh() is None
    assert fresh("p50k_base") is None


@installed
@pytest.mark.parametrize("name", ENCODINGS)
def test_the_installed_one_passes_its_test(name: str) -> None:
    assert accelerated.accelerated(name) is not None


@installed
@pytest.mark.parametrize("name", ENCODINGS)
@settings(max_examples=300)
@given(texts=st.lists(hostile_text | any_text, max_size=10))
def test_the_installed_one_counts_as_tiktoken(name: str, texts: list[str]) -> None:
    faster = accelerated.accelerated(name)
    assert faster is not None
    assert faster(texts) == [len(encodings.tokens(name, text)) for text in texts]


@installed
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_the_installed_one_counts_long_texts_as_tiktoken(name: str) -> None:
    faster = accelerated.accelerated(name)
    assert faster is not None
    texts = [long_text(200_000), *(run * (MILLION // 10) for run in RUNS)]
    assert faster(texts) == [len(encodings.tokens(name, text)) for text in texts]
