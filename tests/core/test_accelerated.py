"""The faster tokenizer: used for large work alone, believed after its test, never needed."""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import ExactCounter, encodings, speed
from budgetkit.counters.exact import count_texts, memory
from tests.conftest import examples
from tests.hostile import MILLION, RUNS, any_text, hostile_text, long_text

installed = pytest.mark.skipif(
    find_spec("gigatoken") is None, reason="gigatoken (extra: fast) is not installed"
)
ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony")
SEPARATOR = speed._FASTER_SEPARATOR


def by_tiktoken(name: str, text: str) -> list[int]:
    """Encode as gigatoken does: the separator is one token, everything else is text."""
    parts = [encodings.tokens(name, part) for part in text.split(SEPARATOR)]
    return [token for part in parts for token in (speed._SEPARATES, *part)][1:]


@pytest.fixture(autouse=True)
def nothing_counted_before() -> Iterator[None]:
    speed._characters.clear()
    speed._tokenizers.clear()
    yield
    speed._characters.clear()
    speed._tokenizers.clear()


def test_the_golden_counts_are_tiktokens() -> None:
    texts = speed.golden()["texts"]
    assert len(texts) == len(set(texts)) >= 200
    assert {"'\u017f", "<|endoftext|>", "\ud800"} <= set(texts)
    for name, counts in speed.golden()["counts"].items():
        assert counts == [len(encodings.tokens(name, text)) for text in texts]


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_golden_digests_are_those_of_tiktokens_tokens_of_every_character(name: str) -> None:
    document = speed.golden()
    assert {*document["digests"]} == {*ENCODINGS} and len(document["contexts"]) >= 5
    for context, text in speed.in_contexts(document):
        assert len(text) > 150_000 * len(context) - 10**6
        assert (
            speed.tokens_digest(encodings.tokens(name, text)) == document["digests"][name][context]
        )


@contextmanager
def with_package(
    change: Callable[[str, list[int]], list[int]] = lambda text, tokens: tokens,
) -> Iterator[None]:
    """Pretend that a tokenizer is installed which makes tiktoken's tokens, and changes them."""

    class Tokenizer:
        @staticmethod
        def from_tiktoken(path: object, pattern: str, special: dict[str, int]) -> Any:
            assert special == {SEPARATOR: speed._SEPARATES}
            return SimpleNamespace(
                encode=lambda text: np.array(
                    change(text, by_tiktoken("o200k_base", text)), np.uint32
                )
            )

    package = SimpleNamespace(Tokenizer=Tokenizer)
    with mock.patch.multiple(
        speed, find_spec=mock.Mock(return_value=True), import_module=mock.Mock(return_value=package)
    ):
        yield


def test_one_that_makes_the_right_tokens_is_taken() -> None:
    with with_package():
        faster = speed.accelerated("o200k_base")
    assert faster is not None and faster(["Hello world", "\ud800", "", "\uffff"]) == [2, 1, 0, 2]


def off_by_one(text: str, tokens: list[int]) -> list[int]:
    return [*tokens, 0] if text == "\x00" else tokens


def off_in_company(text: str, tokens: list[int]) -> list[int]:
    return [*tokens, 0] if SEPARATOR in text else tokens


def another_token(text: str, tokens: list[int]) -> list[int]:
    return [*tokens[:-1], 1] if "\U0001f9d1's" in text else tokens


def fails(text: str, tokens: list[int]) -> list[int]:
    raise OSError("no such symbol")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (off_by_one, r"it counted .* in '\\x00'"),
        (off_in_company, r"it counted .* in "),
        (another_token, r"it splits characters differently in the context \"{}'s\""),
        (fails, "it raised OSError: no such symbol"),
    ],
)
def test_one_that_is_off_somewhere_is_left_out_with_a_warning(
    change: Callable[[str, list[int]], list[int]], sentence: str
) -> None:
    with (
        with_package(change),
        pytest.warns(
            RuntimeWarning,
            match=rf"Cannot use gigatoken for o200k_base: {sentence}.*Using tiktoken instead",
        ),
    ):
        assert speed.accelerated("o200k_base") is None


def test_one_that_has_no_room_for_its_file_is_left_out_with_a_warning() -> None:
    full = mock.patch.object(
        tempfile, "TemporaryDirectory", side_effect=OSError(28, "No space left on device")
    )
    with (
        with_package(),
        full,
        pytest.warns(RuntimeWarning, match=r"No space left on device. Using tiktoken instead"),
    ):
        assert speed.accelerated("o200k_base") is None


def test_the_warning_comes_once_and_counting_goes_on() -> None:
    texts = ["word " * 2_000]
    with with_package(off_by_one), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert count_texts("o200k_base", texts, ahead=speed.WORTH_LOADING) == [2_001]
    assert len(caught) == 1


def test_it_is_loaded_where_that_is_won_back_and_used_from_then_on() -> None:
    few, many = 100, speed.WORTH_LOADING
    with with_package(), mock.patch.object(speed, "_encode", wraps=speed._encode) as made:
        assert speed.for_work("o200k_base", few, ahead=many) is None
        assert speed.for_work("o200k_base", many // 2) is None
        assert not made.called
        assert speed.for_work("o200k_base", many // 8, ahead=many) is not None
        assert speed.for_work("o200k_base", 10_000) is not None
        assert speed.for_work("cl100k_base", 10_000) is None
    assert made.call_count == 1


def test_it_is_loaded_when_that_is_little_beside_what_was_counted() -> None:
    with with_package():
        found = [speed.for_work("o200k_base", 20_000_000) is not None for _ in range(20)]
    assert found == [False] * 12 + [True] * 8


def test_it_is_made_anew_before_it_has_remembered_too_much() -> None:
    with with_package(), mock.patch.object(speed, "_FRESH_AFTER", 20_000):
        faster = speed.accelerated("o200k_base")
        assert faster is not None
        with mock.patch.object(speed, "_encode", wraps=speed._encode) as made:
            assert faster(["word " * 2_000] * 10) == [2_001] * 10
    assert made.call_count == 5, (
        "after each two of the texts, which are long enough for calls of their own"
    )


def test_eight_threads_share_one() -> None:
    """It serves no two at once."""
    busy: list[int] = []

    def one_at_a_time(text: str, tokens: list[int]) -> list[int]:
        busy.append(1)
        assert len(busy) == 1
        busy.pop()
        return tokens

    with with_package(one_at_a_time), ThreadPoolExecutor(8) as pool:
        texts = [long_text(20_000, seed) for seed in range(8)]
        found = [
            *pool.map(
                lambda text: count_texts("o200k_base", [text], ahead=speed.WORTH_LOADING), texts
            )
        ]
    assert found == [[len(encodings.tokens("o200k_base", text))] for text in texts]


def test_without_the_package_tiktoken_counts_and_nobody_is_warned() -> None:
    with mock.patch.object(speed, "find_spec", return_value=None), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert speed.accelerated("o200k_base") is None
    assert speed.accelerated("p50k_base") is None


@pytest.fixture(scope="module", params=ENCODINGS)
def real(request: pytest.FixtureRequest) -> tuple[str, speed.CountMany]:
    found = speed.accelerated(request.param)
    assert found is not None, "it fails its test"
    return request.param, found


@installed
@settings(max_examples=examples(300))
@given(texts=st.lists(hostile_text | any_text, max_size=10))
def test_the_installed_one_counts_as_tiktoken(
    real: tuple[str, speed.CountMany], texts: list[str]
) -> None:
    name, faster = real
    assert faster(texts) == [len(encodings.tokens(name, text)) for text in texts]


@installed
def test_the_installed_counts_long_texts_as_tiktoken(real: tuple[str, speed.CountMany]) -> None:
    name, faster = real
    texts = [long_text(200_000), *(run * (MILLION // 10) for run in RUNS)]
    assert faster(texts) == [len(encodings.tokens(name, text)) for text in texts]


@installed
def test_newer_unicode_is_counted_by_tiktoken(real: tuple[str, speed.CountMany]) -> None:
    """U+088F came with Unicode 17: a letter for gigatoken and quicktok alone, after which 's is a piece of its own."""
    name, faster = real
    points = np.flatnonzero(~speed._known_characters()[:0x20000]).tolist()
    unassigned = [chr(point) for point in points if not 0xD800 <= point < 0xE000]
    texts = [f"a{character}'s " + "x" * 40 for character in ["\u088f", *unassigned[::7]]]
    assert faster(texts) == [len(encodings.tokens(name, text)) for text in texts]
    memory(name).forget()
    ExactCounter(name).many([texts[0], "word " * 3_000])
    assert ExactCounter(name)(texts[0]) == len(encodings.tokens(name, texts[0]))
