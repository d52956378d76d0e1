"""Claude's tokens by ctok, chunk by chunk: the same number as ctok's public function on every text, only sooner.

These tests need ctok, which is an extra for Python 3.12 and later; `make extras` runs them.
"""

import base64
import random
import time
from importlib import import_module
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import (
    ReconstructedCounter,
    basis_of,
    counter,
    nearer_of,
    reconstructed,
    spread_of,
)
from budgetkit.lab.accuracy.corpora import odd, shipped

pytestmark = pytest.mark.skipif(
    not reconstructed.is_usable(), reason="ctok (extra: claude) is absent"
)

FAMILIES = ("3.0", "4.7", "4.8")
FRAMES = {"3.0": 7, "4.7": 11, "4.8": 6}
# What ctok's rules turn on: borders of words, cases, quotes, marks, digits, blanks, its own marker characters.
ATOMS = [
    *" \n\t'\".,!?()[]{}<>=-_/@#$%&*+:;0129abcxyzABCXYZ",
    *("  ", "\n\n", "    ", "'s", "'ll", "'S", "don't", "HELLO", "Hello", "GaN", "1,234", "x=1"),
    *("...", "----"),
    *("\u2019", "\u201c", "\u2014", "\u00e9", "e\u0301", "\u0301", "\u00df", "\u1e9e", "\u0130"),
    *("\u00b2", "\u00bd"),
    *("\u5b57", "\u306e", "\u30fc", "\ud55c", "\u0661", "\u0627", "\u0905\u094d", "\u0e01\u0e33"),
    "\u0e4d\u0e32",
    *("\U0001f600", "\U0001f3fd", "\u200d", "\ufe0f", "\u3000", "\u00a0", "\u2028", "\x00"),
    *("\x07", "\x85"),
    *("\ud800", "\ufdd0", "\ufdd1", "\ufdd3", "\ue000", "\u0711", "\u0730", "\u03a3", "\u03c2"),
    *("\u2163", "\u24d0"),
    *("\u3002", "\u3001", "\uff08", "\uff09", "\u3012", "\u3005", "\u27e8bow\u27e9"),
    *("<|endoftext|>", "\n\nHuman:"),
]
hostile = st.lists(st.sampled_from(ATOMS) | st.characters(), max_size=24).map("".join)


def public(text: str, family: str) -> int:
    """Count with ctok's public function, without the frame of a message."""
    return int(import_module("ctok").token_count(text, family)) - FRAMES[family] if text else 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_corpora_count_as_ctok_counts_them(family: str) -> None:
    texts = [*shipped().texts, *odd(documents=2, characters=2_000).texts]
    assert ReconstructedCounter("claude", family).many(texts) == [
        public(text, family) for text in texts
    ]


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=400, deadline=None)
@given(text=hostile)
def test_hostile_text_counts_as_ctok_counts_it(family: str, text: str) -> None:
    assert reconstructed.rebuilt(family)(text) == public(text, family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("character", "=a.A \n\u5b57\t1-\u00e9\u2500")
def test_a_run_of_one_character_is_shortened_exactly(family: str, character: str) -> None:
    count = reconstructed.rebuilt(family)
    for text in (character * 21_003, f"x{character * 20_500} y"):
        assert count(text) == public(text, family)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_text_without_blanks_is_cut_exactly(family: str) -> None:
    text = base64.b64encode(random.Random(7).randbytes(40_000)).decode()
    assert reconstructed.rebuilt(family)(text) == public(text, family)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_marks_take_no_quadratic_time_and_count_the_same(family: str) -> None:
    """Unicode's normal form sorts marks by insertion: a row of 100,000 would take minutes."""
    marks = [random.Random(3).choice("\u0300\u0316\u0334\u0e38") for _ in range(1_000)]
    assert reconstructed.rebuilt(family)("a" + "".join(marks)) == public(
        "a" + "".join(marks), family
    )
    start = time.process_time()
    reconstructed.rebuilt(family)("a" + "\u0300\u0316" * 50_000)
    assert time.process_time() - start < 20


def test_it_is_fast_enough_for_a_slider_and_linear() -> None:
    words = [text for text in shipped().texts if text.isascii()]
    page = " ".join(words)
    count = reconstructed.rebuilt("3.0")
    message = page[:400]
    count(message)
    start = time.process_time()
    for _ in range(200):
        count(message)
    assert (time.process_time() - start) / 200 < 0.0005, "0.02 to 0.1 ms where nothing else runs"

    ends = [time.process_time()]
    for size in (1, 2, 4):
        count(page * size)
        ends.append(time.process_time())
    assert ends[3] - ends[2] < 8 * max(0.01, ends[2] - ends[1])


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstructed, "_MOST_CHUNKS", 100)
    tiling = reconstructed._Tiling("3.0")
    text = " ".join(f"w{number}-x" for number in range(2_000))
    assert tiling.count(text) == public(text, "3.0")
    remembered = (tiling._cached_unit, tiling._cached_cost, tiling._cached_tokens)
    assert all(memory.cache_info().currsize <= 100 for memory in remembered)


def test_a_claude_model_is_counted_by_it_and_says_so() -> None:
    sonnet, newest = counter("claude-sonnet-4-5"), counter("anthropic/claude-opus-4.8")
    assert sonnet.name == "claude-sonnet-4-5 (reconstructed by ctok, family 3.0)"
    expected = ("reconstructed", False, (0.0, 0.0))
    assert (basis_of(sonnet), sonnet.exact, spread_of(sonnet)) == expected
    assert isinstance(newest, ReconstructedCounter) and newest.family == "4.8"
    assert nearer_of(sonnet) == ""
    assert counter(sonnet.name) == sonnet
    assert sonnet.many(["Hello, world", ""]) == [3, 0]
    with pytest.raises(TypeError, match="Invalid text for .* Expected a string"):
        sonnet(4)  # type: ignore[arg-type]


def test_a_changed_ctok_counts_by_its_public_function(monkeypatch: pytest.MonkeyPatch) -> None:
    reconstructed.rebuilt.cache_clear()
    monkeypatch.setattr(import_module("ctok.normalize"), "stream_norm", lambda *_, **__: "")
    count = reconstructed.rebuilt("4.7")
    assert getattr(count, "__name__", "") == "public"
    assert count("NASA likes tokenizers")
    monkeypatch.undo()
    reconstructed.rebuilt.cache_clear()


def test_where_ctok_miscounts_an_estimate_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    reconstructed.is_usable.cache_clear()
    monkeypatch.setattr(
        reconstructed, "import_module", lambda name: SimpleNamespace(token_count=lambda *_: 1)
    )
    assert basis_of(counter("claude-sonnet-4-5")) == "estimate"
    assert "budgetkit[claude]" in nearer_of(counter("claude-sonnet-4-5"))
    monkeypatch.undo()
    reconstructed.is_usable.cache_clear()
