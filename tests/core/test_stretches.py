"""Text without seams: the same count in windows as in one go, whatever it is made of, and tiktoken's own Unicode."""

import io
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import ExactCounter, encoding_names, encodings, stretches
from budgetkit.counters.encodings import characters, pattern, settled
from budgetkit.counters.stretches import Read, count_stretch, piece_end
from budgetkit.message import replace_surrogates
from tests.conftest import examples
from tests.hostile import any_text, hostile_text

PATTERNS = ("o200k_base", "cl100k_base", "r50k_base")
# One character or more of every class that a pattern tells apart; U+088F is a letter to some versions of Unicode alone.
KINDS = (
    *("a", "Z", "\u01c5", "的", "ー", "\u0301", "7", " ", "\n", "\r", "\t", "\u3000", "!", "/"),
    *("'", "😀", "\u088f", "s"),
)
seamless = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 40)), max_size=30).map(
    lambda runs: "".join(character * times for character, times in runs)
)


def reading(text: str) -> Read:
    data = text.encode()
    return lambda at, size: data[at : at + size]


def whole(name: str, text: str) -> int:
    return len(encodings.encoding(name).encode(text, disallowed_special=()))


def written(text: str) -> str:
    return replace_surrogates(text)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_spelled_out_finds_the_pieces_that_tiktoken_finds(name: str) -> None:
    """Every character, in surroundings in which its class decides; assigned or not."""
    assert {encodings.pattern_of(other) for other in encoding_names()} == {
        encodings.pattern_of(other) for other in PATTERNS
    }
    built, spelled_out = encodings.encoding(name), pattern(encodings.pattern_of(name))
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    some = random.Random(1).sample(everything, 6_000)
    some += everything[:0x3100] + everything[0x10D40:0x10DA0]
    for surroundings in (
        "a{}b",
        "A{}A",
        " {}x",
        "1{}1",
        "!{}!",
        "{}'S",
        "  {}\n",
        "é{}{}/\r\n",
        "'{}",
        "\u0301{}b",
    ):
        text = "\n!\n".join(surroundings.replace("{}", character) for character in some)
        found = [piece.group().encode() for piece in spelled_out.finditer(text)]
        tokens = [token for piece in found for token in built._core_bpe.encode_single_piece(piece)]
        assert tokens == built.encode(text, disallowed_special=()), surroundings


@pytest.mark.parametrize("unicode_class", [r"\p{L}", r"\p{M}", r"\p{N}", r"\s"])
def test_the_planes_that_are_not_looked_at_hold_nothing_of_a_class(unicode_class: str) -> None:
    others = "".join(
        map(chr, {*range(0x110000)} - {*range(0xD800, 0xE000)} - {*chain(*encodings.PLANES)})
    )
    with mock.patch.object(encodings, "_everything", return_value=others):
        assert characters.__wrapped__(unicode_class) == ""


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=examples(400))
@given(text=seamless | hostile_text.map(written) | any_text.map(written), more=seamless)
def test_what_is_settled_stays_whatever_follows(name: str, text: str, more: str) -> None:
    place = settled(encodings.pattern_of(name), text)
    cuts = {piece.end() for piece in pattern(encodings.pattern_of(name)).finditer(text + more)}
    assert place in {0, *cuts}
    alone = {piece.end() for piece in pattern(encodings.pattern_of(name)).finditer(text[:place])}
    assert alone == {cut for cut in cuts if cut <= place}


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=examples(400))
@given(text=seamless | hostile_text.map(written), window=st.integers(16, 64))
def test_a_piece_ends_where_the_pattern_ends_it(name: str, text: str, window: int) -> None:
    with mock.patch.object(stretches, "_WINDOW", window):
        for piece in pattern(encodings.pattern_of(name)).finditer(text):
            start, end = (len(text[:place].encode()) for place in piece.span())
            assert piece_end(encodings.pattern_of(name), reading(text), start) == end


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=examples(400))
@given(
    text=seamless | hostile_text.map(written) | any_text.map(written), window=st.integers(16, 64)
)
def test_windows_of_any_size_count_as_one_text(name: str, text: str, window: int) -> None:
    with mock.patch.multiple(stretches, _WINDOW=window, _FEW=window, _OVERLAP=2):
        assert count_stretch(name, reading(text)) == whole(name, text)


LONG = {
    "letters": "a",
    "capitals, then small": "Ab",
    "no case": "的",
    "Thai": "เราจะไปตลาดพรุ่งนี้",
    "marks": "e\u0301",
    "numbers": "7",
    "signs": "=",
    "signs with marks": "❤\ufe0f",
    "signs on lines": "!\n",
    "capitals in words": "aB",
    "capitals after letters without case": "的" + "AB" * 5_000,
    "emoji": "👩🏽\u200d🚀",
    "flags": "🇫🇷",
    "line ends": "\r\n",
    "contractions": "'s",
    "base64": "aGVsbG8gd29ybGQx",
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
def test_a_long_run_counts_in_windows_as_whole(name: str, unit: str) -> None:
    text = unit * (120_000 // len(unit)) + "x 1!"
    with mock.patch.multiple(stretches, _WINDOW=4_096, _FEW=1_024):
        assert count_stretch(name, reading(text)) == whole(name, text)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_run_in_which_words_begin_at_random_counts_in_windows_as_whole(name: str) -> None:
    """Letters at random merge across every border, so that windows differ near their ends."""
    chance = random.Random(3)
    for letters in ("ab", "abcdefghijklmnopqrstuvwxyz", "аеинос", "的了是我", "=-+*#"):
        text = "".join(chance.choices(letters, k=100_000))
        with mock.patch.multiple(stretches, _WINDOW=1_024, _FEW=256, _OVERLAP=3):
            assert count_stretch(name, reading(text)) == whole(name, text)


class Endless(io.RawIOBase):
    """A file of one text over and over, that nobody holds."""

    def __init__(self, unit: str, size: int) -> None:
        self.data, self.size = unit.encode() * (1 + (1 << 19) // len(unit.encode())), size
        self.unit = len(unit.encode())

    def at(self, place: int, size: int) -> bytes:
        begin = place % self.unit
        return self.data[begin : begin + max(0, min(size, self.size - place))]


@pytest.mark.parametrize("unit", ["a", " ", "的"])
def test_memory_does_not_grow_with_a_piece(unit: str) -> None:
    def peak(windows: int) -> int:
        endless = Endless(unit, windows * stretches._WINDOW // 6 * 6)
        tracemalloc.start()
        assert count_stretch("o200k_base", endless.at) > 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    count_stretch("o200k_base", Endless(unit, 999_996).at)
    assert peak(16) < 1.2 * peak(4)


def test_eight_threads_share_what_is_known_of_windows() -> None:
    """Each thread counts every text, in another order, while the others fill and empty what is remembered."""
    runs = [
        unit * (150_000 // len(unit)) + f" {number}"
        for number, unit in enumerate(("a", "🇫🇷", "e\u0301", "!\n"))
    ]
    expected = {text: whole("o200k_base", text) for text in runs}
    orders = [random.Random(number).sample(runs, len(runs)) for number in range(8)]

    def count(texts: list[str]) -> list[int]:
        return [ExactCounter("o200k_base").fresh(text) for text in texts]

    stretches._window.cache_clear()
    stretches._tokens.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        for texts, found in zip(orders, pool.map(count, orders), strict=True):
            assert found == [expected[text] for text in texts]


@pytest.mark.parametrize(
    "text", ["a" * 200_000 + "\ud800", "\ud83d" * 140_000, "\ud83d\ude00" * 140_000]
)
def test_half_a_character_in_a_text_without_seams_counts_as_tiktoken_counts_it(text: str) -> None:
    assert ExactCounter("o200k_base")(text) == len(
        encodings.encoding("o200k_base").encode_ordinary(text)
    )
