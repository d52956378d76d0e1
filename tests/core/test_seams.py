"""Counting in parts: seams add up on every string, a batch counts as one by one, an edit costs what is new."""

import os
import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import ExactCounter, encodings, speed
from budgetkit.counters.exact import LARGE, first_seam, is_seam, last_seam, memory, split_at_seams
from budgetkit.counters.speed import counted_in_threads
from tests import hostile
from tests.conftest import examples
from tests.hostile import any_text, hostile_text, long_text

BOTH = ("o200k_base", "cl100k_base")


def seams(text: str) -> list[int]:
    return [place for place in range(1, len(text)) if is_seam(text, place)]


# Toy cases


def test_seams_are_before_a_space_after_a_word_and_between_a_letter_and_a_mark() -> None:
    assert seams("two words") == [3]
    assert seams("two  words") == [3]
    assert seams("x = f(y)") == [1, 3, 5, 7]
    assert seams("don't, no") == [5, 6]
    assert seams("他笑了。她也笑了。") == [3, 8]
    assert seams("\n  \n") == []


def test_first_and_last_seam_are_the_nearest_ones() -> None:
    text = "one two three"
    assert [first_seam(text, place) for place in range(len(text) + 1)] == [3] * 4 + [7] * 4 + [
        13
    ] * 6
    assert [last_seam(text, 0, place) for place in range(len(text) + 1)] == [0] * 4 + [3] * 4 + [
        7
    ] * 6
    assert last_seam("x" * 100_000, 0, 100_000) == 0
    assert last_seam("a " + "x" * 100_000, 0, 100_000) == 1


def test_parts_join_to_the_text_and_are_neither_tiny_nor_huge() -> None:
    text = long_text(1_000_000)
    sizes = [len(part) for part in split_at_seams(text)]
    assert "".join(split_at_seams(text)) == text
    assert min(sizes[:-1]) >= 16_384 and max(sizes) < 66_000
    assert max(map(len, split_at_seams(text[:100_000]))) < 50_000, (
        "also the last part, which one thread would count alone"
    )
    assert list(split_at_seams("")) == [] and list(split_at_seams("x" * 300_000)) == ["x" * 300_000]


def test_calls_are_few_and_of_about_the_same_length() -> None:
    texts = ["x" * (i % 500) for i in range(10_000)]
    calls = [*speed.in_calls(texts)]
    sizes = [sum(map(len, call)) for call in calls]
    assert [text for call in calls for text in call] == texts
    assert len(calls) == 76 and min(sizes[:-1]) >= 32_768 and max(sizes) < 32_768 + 500
    assert [*speed.in_calls([])] == [] and [*speed.in_calls(["short"] * 10)] == [["short"] * 10]


# Held against tiktoken


#: One encoding of each pattern; the others have the same pieces and tokens, beside special ones.
NAMES = ("o200k_base", "cl100k_base", "p50k_base", "r50k_base")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(300))
@given(text=hostile_text | any_text)
def test_counts_before_and_after_every_seam_add_up(name: str, text: str) -> None:
    count = encodings.counting_function(name)
    whole = count(text)
    for place in seams(text):
        assert count(text[:place]) + count(text[place:]) == whole, (place, text)


@pytest.mark.parametrize("name", NAMES)
def test_counts_add_up_at_every_seam_between_any_two_characters(name: str) -> None:
    """Every character that can stand at a seam, in several surroundings."""
    count = encodings.counting_function(name)
    marks = [chr(code) for code in range(0x250)] + list(
        "\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\u3099\u30fb\u30fc的ぁヺ한"
    )
    chance = random.Random(1)
    for left in marks:
        for right in chance.sample(marks, 40) + [" ", "\n", ",", "。"]:
            for before, after in (
                ("", ""),
                ("ab", "cd"),
                (" ", " "),
                ("1", "\n\n x"),
                ("的", "'s"),
                ("A", "/\r\n"),
            ):
                text = f"{before}{left}{right}{after}"
                place = len(before) + 1
                if is_seam(text, place):
                    assert count(text[:place]) + count(text[place:]) == count(text), text


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=examples(200))
@given(texts=st.lists(hostile_text | any_text, max_size=30))
def test_a_batch_counts_as_one_by_one(name: str, texts: list[str]) -> None:
    alone = [encodings.counting_function(name)(text) for text in texts]
    assert speed.counting_many(name)(texts) == alone
    assert ExactCounter(name).many(texts) == alone


@pytest.mark.parametrize("name", BOTH)
def test_large_texts_count_as_tiktoken_counts_them_whole(name: str) -> None:
    """The text is long enough for parts on several threads; `tokens` encodes it in one go."""
    text = long_text(LARGE * 8)
    assert ExactCounter(name)(text) == len(ExactCounter(name).tokens(text))
    assert ExactCounter(name).many([text[:LARGE], text, "", "short"])[1] == ExactCounter(name)(text)


@pytest.mark.parametrize("character", hostile.RUNS)
def test_a_million_of_one_character_is_counted_in_linear_time_and_right(character: str) -> None:
    run = character * hostile.MILLION
    exact = ExactCounter("o200k_base")
    assert exact.many([run, f"a {run}"])[0] == len(exact.tokens(run))


# What is not counted twice


class Spy:
    """Remember the length of everything that was counted anew."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def __call__(self, name: str) -> object:
        def count_many(texts: Sequence[str]) -> list[int]:
            self.lengths += map(len, texts)
            return [*map(encodings.counting_function.__wrapped__(name), texts)]

        return count_many


@pytest.fixture
def spy() -> Spy:
    memory("cl100k_base").forget()
    return Spy()


def test_a_conversation_that_grew_by_a_turn_costs_the_new_turn_only(spy: Spy) -> None:
    messages = [f"message {number} says something" for number in range(500)]
    with mock.patch.object(speed, "counting_many", spy):
        ExactCounter("cl100k_base").many(messages)
        spy.lengths.clear()
        ExactCounter("cl100k_base").many([*messages, "what now?", "this now"])
    assert spy.lengths == [9, 8]


@pytest.mark.parametrize("place", [1_000, 700_000, 1_400_000])
def test_an_edit_in_a_large_document_costs_the_parts_around_it(spy: Spy, place: int) -> None:
    text = long_text(1_500_000)
    edited = f"{text[:place]} an edit {text[place:]}"
    with mock.patch.object(speed, "counting_many", spy):
        ExactCounter("cl100k_base")(text)
        spy.lengths.clear()
        counted = ExactCounter("cl100k_base")(edited)
    assert sum(spy.lengths) < 200_000
    assert counted == len(ExactCounter("cl100k_base").tokens(edited))


def test_the_same_text_twice_in_a_batch_is_counted_once(spy: Spy) -> None:
    with mock.patch.object(speed, "counting_many", spy):
        assert ExactCounter("cl100k_base").many(["again", "again", "other"] * 3) == [1, 1, 1] * 3
    assert spy.lengths == [5, 5]


# Threads


def test_large_work_from_many_threads_at_once_is_right() -> None:
    texts = [long_text(100_000, seed) for seed in range(12)]
    expected = [len(ExactCounter("cl100k_base").tokens(text)) for text in texts]
    memory("cl100k_base").forget()
    with ThreadPoolExecutor(6) as callers:
        assert list(callers.map(ExactCounter("cl100k_base"), texts)) == expected


def test_a_failure_in_a_thread_reaches_the_caller() -> None:
    def refuse(texts: Sequence[str]) -> list[int]:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        counted_in_threads(refuse, ["x" * 100_000] * 4)


def test_the_thread_that_asks_counts_too_and_the_sizes_keep_their_order() -> None:
    texts = [str(number) * 20_000 for number in range(40)]
    asker, asks, helps = threading.get_ident(), threading.Event(), threading.Event()

    def count_many(group: Sequence[str]) -> list[int]:
        """Count when somebody of the other side counts too, however many threads there are."""
        here, there = (asks, helps) if threading.get_ident() == asker else (helps, asks)
        here.set()
        assert there.wait(60)
        return [len(text) for text in group]

    with mock.patch("budgetkit.counters.speed._cores", return_value=2):
        assert counted_in_threads(count_many, texts) == [len(text) for text in texts]
    assert asks.is_set() and helps.is_set()


def test_one_tokenizer_serves_all_threads() -> None:
    """To build another takes 0.12 s in which nothing else runs: the first large documents were counted late for it."""
    texts = [long_text(200_000, seed) for seed in range(6)]
    expected = [len(encodings.tokens("cl100k_base", text)) for text in texts]
    memory("cl100k_base").forget()
    with (
        mock.patch.object(encodings, "_build_encoding", wraps=encodings._build_encoding) as build,
        ThreadPoolExecutor(4) as pool,
    ):
        assert [*pool.map(ExactCounter("cl100k_base"), texts)] == expected
    assert not build.called


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_counts_with_threads_of_its_own() -> None:
    text = long_text(LARGE * 4)
    expected = ExactCounter("cl100k_base")(text)
    child = os.fork()
    if child == 0:
        memory("cl100k_base").forget()
        os._exit(0 if ExactCounter("cl100k_base")(text) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
