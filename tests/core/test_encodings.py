"""Exact counts: equal to tiktoken on every string, from shipped vocabularies, without a network."""

import hashlib
import os
import subprocess
import sys
import zlib
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from unittest import mock

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from budgetkit.counters import ExactCounter, counter, encoding_names, encodings
from budgetkit.files import data_files, read_bytes
from budgetkit.message import replace_surrogates
from tests.conftest import examples

BOTH = ("o200k_base", "cl100k_base")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tiktoken.Encoding]]:
    """tiktoken's own encodings by tiktoken's own way, from a file cache that it checks itself."""
    folder = tmp_path_factory.mktemp("tiktoken")
    for name in ("o200k_base", "cl100k_base", "p50k_base"):
        address = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
        vocabulary = zlib.decompress(read_bytes(f"encodings/{name}.tiktoken.gz"), wbits=31)
        (folder / hashlib.sha1(address.encode()).hexdigest()).write_bytes(vocabulary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield {
            name: tiktoken.get_encoding(name)
            for name in (*BOTH, "p50k_base", "p50k_edit", "o200k_harmony")
        }


any_text = st.text(st.characters(codec=None, exclude_categories=()))
odd_words = st.sampled_from(
    [
        *("<|endoftext|>", "<|endofprompt|>", "<|im_start|>", "\x00", "\ufeff", "\ud83d"),
        *("\ude00", "'\u017f", "'S", "\r\n", " ", "  ", "\n", "\t", "\u00a0", "123456"),
        *("的", "ก", "é", "👩‍🚀", "don't", "Hello", "AAAA", "==="),
    ]
)
odd_text = st.lists(odd_words | any_text.map(lambda text: text[:4]), max_size=40).map("".join)


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=examples(400), deadline=None)
@given(text=any_text | odd_text)
def test_a_count_is_the_length_of_tiktokens_encode_ordinary(
    oracle: dict[str, tiktoken.Encoding], name: str, text: str
) -> None:
    expected = oracle[name].encode_ordinary(text)
    exact = ExactCounter(name)
    assert exact(text) == len(expected)
    assert exact.tokens(text) == expected
    assert encodings.counting_function(name)(text) == len(expected)


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=examples(200), deadline=None)
@given(text=any_text | odd_text)
def test_counting_piece_by_piece_gives_the_same_tokens(
    oracle: dict[str, tiktoken.Encoding], name: str, text: str
) -> None:
    pieces = encodings._tokens_by_piece(encodings.encoding(name), replace_surrogates(text))
    assert [token for piece in pieces for token in piece] == oracle[name].encode_ordinary(text)


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=examples(100), deadline=None)
@given(text=any_text | odd_text)
def test_pieces_join_to_the_text(name: str, text: str) -> None:
    pieces = ExactCounter(name).pieces(text)
    assert b"".join(pieces) == replace_surrogates(text).encode()
    assert len(pieces) == counter(name)(text)


@pytest.mark.parametrize("name", BOTH)
def test_a_tiktoken_without_its_private_buffer_gives_the_same_counts(
    oracle: dict[str, tiktoken.Encoding], name: str
) -> None:
    bare = mock.Mock(wraps=oracle[name])
    bare._core_bpe = object()
    with mock.patch.object(encodings, "encoding", return_value=bare):
        count = encodings.counting_function.__wrapped__(name)
    texts = ["", "Hello world", "<|endoftext|>", "\ud83d lone", "the " * 300]
    assert [count(text) for text in texts] == [
        len(oracle[name].encode_ordinary(text)) for text in texts
    ]
    assert bare.encode.called


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "text", [" " * 2_000_000, " " * 2_000_000 + "end", "\n" + " " * 1_500_000 + "\x00"]
)
def test_millions_of_blanks_neither_raise_nor_hang(name: str, text: str) -> None:
    exact = ExactCounter(name)
    tokens = exact.tokens(text)
    assert exact(text) == len(tokens)
    assert encodings.encoding(name).decode_bytes(tokens) == text.encode()


@pytest.mark.parametrize("character", ["a", "A", "=", "的", "\n", "0", "🎉", "\u0e01", "\x00"])
def test_long_runs_count_as_tiktoken(oracle: dict[str, tiktoken.Encoding], character: str) -> None:
    run = character * 50_000
    assert [counter(name)(run) for name in BOTH] == [
        len(oracle[name].encode_ordinary(run)) for name in BOTH
    ]


@pytest.mark.parametrize("name", ["o200k_harmony", "p50k_base", "p50k_edit"])
def test_other_encodings_count_as_tiktoken(oracle: dict[str, tiktoken.Encoding], name: str) -> None:
    text = read_bytes("README.md").decode() + "    def f():\n        return '的'\n"
    assert ExactCounter(name).tokens(text) == oracle[name].encode_ordinary(text)


def test_r50k_base_is_p50k_base_without_its_runs_of_blanks() -> None:
    assert counter("r50k_base")("Hello world") == counter("p50k_base")("Hello world") == 2
    assert (counter("r50k_base")(" " * 9 + "x"), counter("p50k_base")(" " * 9 + "x")) == (9, 2)


@pytest.mark.parametrize("name", encoding_names())
def test_pattern_special_tokens_and_digest_are_those_of_the_installed_tiktoken(name: str) -> None:
    with mock.patch.object(openai_public, "load_tiktoken_bpe", return_value={}) as download:
        published = openai_public.ENCODING_CONSTRUCTORS[name]()
    shipped = encodings._definitions()[name]
    assert shipped["pattern"] == published["pat_str"]
    assert shipped["special_tokens"] == published["special_tokens"]
    assert shipped["sha256"] == download.call_args.kwargs["expected_hash"]


def test_each_encoding_has_as_many_tokens_as_tiktokens() -> None:
    assert {name: encodings.encoding(name).n_vocab for name in encoding_names()} == {
        "r50k_base": 50_257,
        "p50k_base": 50_281,
        "p50k_edit": 50_284,
        "cl100k_base": 100_277,
        "o200k_base": 200_019,
        "o200k_harmony": 201_088,
    }


def test_each_vocabulary_takes_less_than_three_megabytes() -> None:
    sizes = {name: len(read_bytes(name)) for name in data_files("encodings")}
    assert max(sizes.values()) < 3_000_000


def test_the_notice_of_the_vocabularies_is_tiktokens_word_for_word() -> None:
    own = next(path for path in distribution("tiktoken").files or [] if path.name == "LICENSE")
    assert read_bytes("licenses/tiktoken.txt").decode() == own.read_text()


@pytest.mark.parametrize("name", encoding_names())
def test_every_rank_is_as_it_is_written(name: str) -> None:
    lines = map(bytes.split, encodings.vocabulary(name).splitlines())
    read = {b64decode(token): int(rank) for token, rank in lines}
    assert encodings._ranks(**encodings._definitions()[name]) == read


def test_a_changed_vocabulary_is_refused() -> None:
    changed = zlib.compress(b"IQ== 0\n", wbits=31)
    definition = encodings._definitions()["o200k_base"]
    with (
        mock.patch.object(encodings, "read_bytes", return_value=changed),
        pytest.raises(
            ValueError,
            match=r"Corrupt file .*o200k_base.tiktoken.gz: .*, but tiktoken publishes 446a9538.* Reinstall",
        ),
    ):
        encodings._ranks(**definition)


def test_an_encoding_that_is_not_shipped_is_an_error_that_says_what_is() -> None:
    with pytest.raises(ValueError, match="Unknown encoding 'gpt2'. Choose one of: 'cl100k_base'"):
        encodings.encoding("gpt2")


BLOCKED = """
import os, socket, sys

def refuse(*arguments, **named):
    raise AssertionError("the network was asked for")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
before = dict(os.environ)
import budgetkit
counts = [budgetkit.counter(name)("Hello world") for name in ("gpt-4o", "gpt-4", "p50k_base", "r50k_base")]
assert counts == [2, 2, 2, 2], counts
assert dict(os.environ) == before
assert "requests" not in sys.modules
"""


def test_counting_needs_no_network_and_no_cache_of_files(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "TIKTOKEN_CACHE_DIR": str(tmp_path / "none"),
    }
    subprocess.run([sys.executable, "-c", BLOCKED], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []


@given(any_text | st.text(st.sampled_from("a\ud83d\ude00\ud800\udfff😀")))
def test_halves_of_characters_are_mended_as_tiktoken_mends_them(text: str) -> None:
    """By a way that takes no longer for a million of them: tiktoken's decoder stops at each."""
    assert replace_surrogates(text) == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )


def test_threads_that_ask_at_once_build_one_encoding_and_count_right() -> None:
    check = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import tiktoken, budgetkit
built, start = [], threading.Barrier(8)
create = tiktoken.Encoding.__init__
tiktoken.Encoding.__init__ = lambda self, *a, **k: (built.append(a), create(self, *a, **k))[1]
def count(number):
    start.wait()
    return budgetkit.counter("gpt-4")("Hello world " * number)
with ThreadPoolExecutor(8) as pool:
    counts = list(pool.map(count, range(1, 9)))
assert counts == [2 * number + 1 for number in range(1, 9)], counts
assert len(built) == 1, built
"""
    subprocess.run([sys.executable, "-c", check], check=True)


def test_batches_and_threads_count_as_one_by_one(oracle: dict[str, tiktoken.Encoding]) -> None:
    texts = [f"message {number}: " + "word 的 " * (number % 50) for number in range(2_000)]
    expected = [len(oracle["o200k_base"].encode_ordinary(text)) for text in texts]
    exact = counter("o200k_base")
    with ThreadPoolExecutor(4) as pool:
        halves = list(pool.map(exact.many, (texts[:1_000], texts[1_000:])))
    assert halves[0] + halves[1] == exact.many(texts) == expected
