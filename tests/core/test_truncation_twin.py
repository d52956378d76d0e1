"""Cuts held against the slow twin that tries every one, on every kind of text, and against the clock."""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from budgetkit.counters import ExactCounter
from budgetkit.truncation import truncate
from budgetkit.truncation.boundaries import By
from budgetkit.truncation.cutting import Keep
from budgetkit.truncation.measures import measured
from tests.conftest import examples
from tests.hostile import CLUSTERS, MILLION, MIXED, RUNS, any_text, hostile_text, long_text

EXACT = ExactCounter("o200k_base")
KEEPS: tuple[Keep, ...] = ("head", "tail", "middle")
BYS: tuple[By, ...] = ("token", "line", "sentence")
MARKERS = ("", "\n[cut]", "[…]\n", "…", " ", "'s", "\u0301")
CLASSES = {
    "prose": "It was the best of times, it was the worst of times; nobody's budget held. And then? It rained.\n",
    "code": "    def allocate(self, demand: dict[str, int]) -> Plan:\n        return walk(self, demand)  # once\n\n",
    "json": '{"role":"user","content":"a\\nb","n":[1,2.50,-3e9],"deep":{"x":null}},\n',
    "csv": "2026-11-21,0.0031,Ærø,17;18,,\n",
    "log": "2026-11-21T23:42:01.123Z WARN [worker-7] retry=3 id=9f86d081-884c-4d63\n",
    "base64": "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24sIGJ1",
    "chinese": "他说预算不够，于是我们删掉了旧的消息。还剩多少？不知道！",
    "japanese": "コンテキストの窓は狭い。古い発言から順に消えていく、と彼女は言った。",
    "korean": "예산이 부족하면 오래된 메시지부터 지웁니다. 얼마나 남았나요?",
    "thai": "งบประมาณไม่พอจึงตัดข้อความเก่าออกก่อน",
    "arabic": "إذا لم تكفِ الميزانية تُحذف الرسائل القديمة أولاً، أليس كذلك؟ ",
    "hindi": "बजट कम हो तो पुराने संदेश पहले हटते हैं। कितना बचा है? ",
    "emoji": "👩‍👩‍👧‍👦🎉👩🏽‍🚀🏳️‍🌈🇩🇰 ",
    "blanks": " \t  \n \r\n      \n\n",
    **{f"mixed {number}": text for number, text in enumerate(MIXED)},
}


def kept_code_points(cut: str, marker: str) -> int:
    return max(0, len(cut) - len(marker))


def best_by_trying(text: str, limit: int, keep: Keep, marker: str) -> int:
    """Try every cut between two characters; return how many code points the longest keeps, 0 where none fits."""
    edges = [match.end() for match in regex.finditer(r"\X", text)][:-1]
    kept = (
        (edge for edge in reversed(edges))
        if keep == "head"
        else (len(text) - edge for edge in edges)
    )
    for size in kept:
        cut = text[:size] + marker if keep == "head" else marker + text[len(text) - size :]
        if EXACT.fresh(cut) <= limit:
            return size
    return 0


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("keep", ["head", "tail"])
def test_no_cut_keeps_more_on_any_kind_of_text(kind: str, keep: Keep) -> None:
    chance = random.Random(kind)
    text = CLASSES[kind] * (1 + 400 // len(CLASSES[kind]))
    size = EXACT.fresh(text)
    for _ in range(12):
        limit, marker = chance.randint(8, size), chance.choice(MARKERS)
        if size > limit:
            cut = truncate(text, limit, EXACT, keep, marker=marker)
            assert EXACT.fresh(cut) <= limit
            assert kept_code_points(cut, marker) == best_by_trying(text, limit, keep, marker), (
                limit,
                marker,
            )


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.sampled_from([*CLASSES.values(), *CLUSTERS, "a", " ", "\n", "word "]), max_size=8
    ).map("".join),
    st.integers(8, 60),
    st.sampled_from(["head", "tail"]),
    st.sampled_from(MARKERS),
)
@example("a" + MIXED[7] + CLASSES["prose"], 41, "head", "…")
def test_no_cut_keeps_more_on_mixtures(text: str, limit: int, keep: Keep, marker: str) -> None:
    if EXACT.fresh(text) > limit:
        cut = truncate(text, limit, EXACT, keep, marker=marker)
        best = best_by_trying(text, limit, keep, marker)
        assert EXACT.fresh(cut) <= limit
        assert not best or kept_code_points(cut, marker) == best


@settings(max_examples=examples(400))
@given(
    hostile_text | any_text,
    st.integers(0, 60),
    st.sampled_from(KEEPS),
    st.sampled_from(BYS),
    st.sampled_from(MARKERS),
)
def test_any_string_cut_any_way_is_within_its_limit(
    text: str, limit: int, keep: Keep, by: By, marker: str
) -> None:
    cut = truncate(text, limit, EXACT, keep, by, marker)
    assert EXACT.fresh(cut) <= limit or (limit == 0 and cut == "")


@settings(max_examples=examples(200))
@given(
    st.integers(0, 10**6), st.integers(0, 1_000), st.integers(0, 1_000), st.sampled_from(MARKERS)
)
def test_costs_from_seams_are_the_counts_of_the_written_text(
    seed: int, front: int, back: int, marker: str
) -> None:
    text = long_text(2_000, seed)
    tail = max(front, len(text) - back)
    measure = measured(text, EXACT)
    assert measure.cost(front, marker, tail) == EXACT.fresh(text[:front] + marker + text[tail:])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("keep", KEEPS)
def test_a_million_of_one_character_is_cut_within_its_limit(run: str, keep: Keep) -> None:
    cut = truncate(run * (MILLION if keep == "head" else MILLION // 10), 1_000, EXACT, keep)
    assert EXACT.fresh(cut) <= 1_000
    assert len(cut) > 100 or run in "\u0301\u200d", (
        "one character as a reader sees it stays whole or goes"
    )


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("by", BYS)
def test_the_work_of_a_cut_does_not_grow_with_the_text(keep: Keep, by: By) -> None:
    """A thousand tokens of a million are found by reading what finding them of ten thousand takes."""
    text = long_text(4_000_000)
    read: list[int] = []

    class Reading:
        def fresh(self, part: str) -> int:
            read.append(len(part))
            return EXACT.fresh(part)

        __call__ = fresh

    def work(size: int) -> int:
        read.clear()
        truncate(text[:size], 1_000, Reading(), keep, by)
        return sum(read)

    few, many = work(40_000), work(4_000_000)
    assert many < 1.5 * few < 60_000


def growing() -> Iterator[tuple[str, Callable[[int], str]]]:
    yield "words", lambda size: "word after word, " * (size // 17)
    yield "no seam", lambda size: "a" * size
    yield "chinese", lambda size: "预算不够。" * (size // 5)
    for kind, unit in HOSTILE.items():
        yield kind, partial(str.__mul__, unit)


# What took a scan of the text, or its square, for each place that was tried: rows without a place to cut.
HOSTILE = {
    "flags": "🇫🇷",
    "marks on one letter": "\u0301",
    "joined emoji": "👩\u200d",
    "signs with marks": "❤\ufe0f",
    "syllables of one character": "क्",
    "letters of Hangul": "\u1100",
    "what comes before": "\u0600",
    "closing brackets": ")",
    "blanks": " ",
    "line ends": "\n",
    "apostrophes": "a'",
}


@pytest.mark.parametrize(
    ("kind", "make"), [*growing()], ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize(
    ("keep", "by"), [("head", "token"), ("tail", "sentence"), ("middle", "token")]
)
def test_cutting_half_is_linear(kind: str, make: Callable[[int], str], keep: Keep, by: By) -> None:
    def runs(size: int) -> Iterator[float]:
        text = make(size)
        limit = EXACT.fresh(text) // 2
        for _ in range(3):
            start = time.process_time()
            truncate(text, limit, EXACT, keep, by)
            yield time.process_time() - start

    bound = 8 * 3 * min(runs(25_000)) + 0.05
    assert any(seconds < bound for seconds in runs(200_000)), "the quickest of three"
