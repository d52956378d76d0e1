"""Counts remembered by text: asked once, bounded in bytes, safe under threads."""

import threading
import tracemalloc
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit.counters import counter, encodings
from budgetkit.counters.memory import CountMemory
from tests.conftest import examples


def test_a_text_is_counted_once() -> None:
    counting = mock.Mock(return_value=3)
    remembered = CountMemory(limit=100_000)
    assert [remembered.count("again and again", counting) for _ in range(5)] == [3] * 5
    assert counting.call_count == 1


def test_counters_of_one_encoding_share_what_they_remember() -> None:
    text = "a text that no other test counts"
    known = counter("gpt-4o")(text)
    never = mock.Mock(side_effect=AssertionError("counted again"))
    with mock.patch.object(encodings, "counting_function", return_value=never):
        assert counter("o200k_base")(text) == known


def test_what_is_used_stays_and_what_is_not_goes() -> None:
    remembered = CountMemory(limit=100_000)
    counting = mock.Mock(side_effect=len)
    for number in range(2_000):
        remembered.count("used all the time", counting)
        remembered.count(f"used once, {number}", counting)
    assert counting.call_count == 2_001
    remembered.count("used once, 0", counting)
    assert counting.call_count == 2_002


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1_000, 50_000), st.lists(st.text(max_size=3_000), max_size=200))
def test_memory_stays_within_its_limit_and_answers_right(limit: int, texts: list[str]) -> None:
    remembered = CountMemory(limit)
    for text in texts:
        assert remembered.count(text, len) == len(text)
        assert remembered.nbytes <= max(limit, 2 * (4 * 3_000 + 300))


def test_the_limit_is_one_of_real_bytes() -> None:
    remembered = CountMemory(limit=2_000_000)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(100_000):
        remembered.count(f"{number} " * (number % 20), lambda text: 10_000 + len(text))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken <= 2_000_000


def test_a_long_text_is_not_kept_alive() -> None:
    remembered = CountMemory(limit=1_000_000)
    for start in range(20):
        text = chr(97 + start) * 5_000_000
        assert remembered.count(text, len) == 5_000_000
        assert remembered.count(text, mock.Mock(side_effect=AssertionError)) == 5_000_000
    assert remembered.nbytes < 10_000


def test_threads_share_a_memory_without_harm() -> None:
    remembered = CountMemory(limit=20_000)
    texts = [f"text {number}" * (number % 7) for number in range(500)]
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for text in texts * 10:
                assert remembered.count(text, len) == len(text)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert remembered.nbytes <= 20_000
