"""Text cut to a number of tokens: within the limit with its marker, no character split, as much kept as fits."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from budgetkit.counters import counter
from budgetkit.message import Message
from budgetkit.plan.items import Item
from budgetkit.requests import FRAMINGS, Framing
from budgetkit.trace import load_trace
from budgetkit.truncation import boundaries, cutter, truncate
from budgetkit.truncation.boundaries import Boundaries, By
from budgetkit.truncation.cutting import MARKERS, Keep
from tests.conftest import examples
from tests.hostile import any_text
from tests.messages import assistant, user

KEEPS: tuple[Keep, ...] = ("head", "tail", "middle")
BYS: tuple[By, ...] = ("token", "line", "sentence")
EXACT = counter("gpt-4o")
FAMILY, FLAG, ACCENT = "👩‍👩‍👧‍👦", "🇩🇰", "e\u0301"


def words(text: str) -> int:
    """Count so that anybody can check it: one token a word."""
    return len(text.split())


# Toy cases


def test_a_text_that_fits_stays_as_it_is_without_a_marker() -> None:
    assert truncate("one two three", 3, words) == "one two three"
    assert truncate("", 0, words) == ""


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("head", "one two three | ..."),
        ("tail", "... | four five six"),
        ("middle", "one | ... | six"),
    ],
)
def test_head_tail_and_middle_keep_what_their_names_say(keep: Keep, kept: str) -> None:
    markers = {"head": " | ...", "tail": "... | ", "middle": " | ... | "}
    cut = truncate("one two three four five six", 5, words, keep, marker=markers[keep])
    assert " ".join(cut.split()) == kept


@pytest.mark.parametrize(
    ("keep", "marker", "kept"),
    [
        ("tail", "[older]\n", "[older]\nwednesday fog\nthursday snow"),
        ("head", "\n[more]", "monday rain\ntuesday sun\n[more]"),
        ("middle", "\n[...]\n", "monday rain\n[...]\nthursday snow"),
    ],
)
def test_whole_lines_are_kept_and_the_marker_counts(keep: Keep, marker: str, kept: str) -> None:
    entries = "monday rain\ntuesday sun\nwednesday fog\nthursday snow"
    assert truncate(entries, 5, words, keep, "line", marker) == kept


def test_whole_sentences_are_kept() -> None:
    story = 'It cost 3.50 euros. "Too much!" she said. Then it rained. 他笑了。她也笑了。'
    assert truncate(story, 5, words, "head", "sentence", "") == "It cost 3.50 euros."
    expected = 'It cost 3.50 euros. "Too much!" …'
    assert truncate(story, 8, words, "head", "sentence", " …") == expected
    assert truncate(story, 5, words, "tail", "sentence", "") == "Then it rained. 他笑了。她也笑了。"
    characters = counter("chars/1", minimum=0)
    expected = "他笑了。她也笑了。"
    assert truncate("他笑了。她也笑了。天黑了。", 9, characters, "head", "sentence", "") == expected


def test_where_not_one_line_fits_the_first_is_cut_inside() -> None:
    assert truncate("one two three four\nfive", 3, words, "head", "line", " …") == "one two  …"


def test_a_marker_that_leaves_no_room_is_left_out_and_then_nothing_is_left() -> None:
    marker = "[ a very long marker ]"
    assert truncate("one two three", 2, words, marker=marker).split() == ["one", "two"]
    assert truncate("one two three", 0, words, marker=marker) == ""
    assert truncate(FAMILY * 3, 1, EXACT) == ""


def test_a_marker_outside_exceeds_the_limit_as_document_003_does() -> None:
    cut = truncate("one two three four", 2, words, marker=" [cut]", marker_inside=False)
    assert cut.split() == ["one", "two", "[cut]"] and words(cut) == 3


def test_the_markers_are_three_and_say_what_is_missing() -> None:
    cuts = {keep: truncate("word " * 200, 50, EXACT, keep) for keep in KEEPS}
    assert len({cut.replace("word ", "").strip("word ") for cut in cuts.values()}) == 3
    assert all(MARKERS[keep] in cut for keep, cut in cuts.items())


def test_what_document_003s_halving_left_over_its_cap_fits_here() -> None:
    """S12: its loop stops at 100 characters even if they are over, and its marker comes on top."""
    text = "\U00012000" * 300  # cuneiform: several tokens a character
    halved = text
    while EXACT(halved) > 20 and len(halved) > 100:
        halved = halved[: len(halved) // 2]
    assert EXACT(halved + "\n[cut]") > 20
    assert 0 < EXACT(truncate(text, 20, EXACT, marker="\n[cut]")) <= 20


@pytest.mark.parametrize("cluster", [FAMILY, FLAG, ACCENT, "🏳️‍🌈", "한", "\r\n", "กำ", "क्ष"])
@pytest.mark.parametrize("keep", KEEPS)
def test_no_character_is_split(cluster: str, keep: Keep) -> None:
    text = cluster * 40
    for limit in (1, 2, 3, 5, 9, 17):
        kept = truncate(text, limit, counter("chars/2", minimum=0), keep, marker="")
        assert kept == cluster * (len(kept) // len(cluster)), (limit, kept)


def test_a_character_of_a_million_code_points_stays_whole_or_goes() -> None:
    assert truncate("a" + "\u0301" * 200_000, 10, counter("chars/4")) == ""


@pytest.mark.parametrize("limit", [-1, 1.5, True, "7", None])
def test_a_limit_is_a_whole_number_from_zero_on(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"Invalid limit: .*\. Use a whole number from 0 to "):
        truncate("text", limit, words)


@pytest.mark.parametrize(
    ("parameter", "known"),
    [("keep", "'head', 'tail', 'middle'"), ("by", "'token', 'line', 'sentence'")],
)
def test_an_unknown_choice_is_told_the_known_ones(parameter: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"Invalid {parameter}: 'best'. Choose one of: {known}"):
        truncate("text", 1, words, **{parameter: "best"})  # type: ignore[arg-type]


def test_a_large_text_is_not_counted_whole() -> None:
    read: list[int] = []

    def counting(text: str) -> int:
        read.append(len(text))
        return len(text) // 4

    assert len(truncate("abcd efgh " * 400_000, 1_000, counting)) == 4_003
    assert sum(read) < 60 * 4_000 and len(read) < 40


def test_the_number_of_counts_grows_with_the_logarithm_of_the_text() -> None:
    def counts(size: int) -> int:
        asked = [0]

        def uneven(text: str) -> int:
            asked[0] += 1
            return len(text.encode()) // 3

        truncate("a" * (size // 2) + "語" * (size // 2), size // 3, uneven)
        return asked[0]

    assert [counts(size) for size in (1_000, 10_000, 100_000, 1_000_000)] < [40] * 4


# The slow twin: every cut tried


def longest_by_trying(
    text: str, limit: int, count: Callable[[str], int], keep: Keep, marker: str
) -> int:
    """Return how many code points the longest cut between whole characters keeps, 0 where none fits."""
    edges = [0, *(match.end() for match in regex.finditer(r"\X", text))]
    if keep == "head":
        fitting = [edge for edge in edges if count(text[:edge] + marker) <= limit]
        return max(fitting, default=0)
    fitting = [edge for edge in edges if count(marker + text[edge:]) <= limit]
    return len(text) - min(fitting, default=len(text))


alphabet = st.sampled_from(
    [*"ab .\n,Z9ßж语한", FAMILY, FLAG, *("e\u0301", "\u200d", "\u0301", "\r\n", "word ", "<|endoftext|>", "\ud800")]
)  # fmt: skip
texts = st.lists(alphabet, max_size=60).map("".join)
counters = st.sampled_from(
    [words, EXACT, counter("chars/4"), counter("bytes/4", rounding="ceil", minimum=0)]
)
markers = st.sampled_from(["", "…", "\n[cut]\n"])


@given(texts, st.integers(0, 40), counters, st.sampled_from(KEEPS), st.sampled_from(BYS), markers)
def test_cut_text_counted_again_with_its_marker_is_within_the_limit(
    text: str, limit: int, count: Callable[[str], int], keep: Keep, by: By, marker: str
) -> None:
    kept = truncate(text, limit, count, keep, by, marker)
    assert kept == "" or count(kept) <= limit
    assert truncate(text, limit, count, keep, by, marker) == kept


@given(
    texts,
    st.integers(1, 40),
    st.sampled_from([words, counter("chars/4"), counter("utf16/3", rounding="ceil")]),
    st.sampled_from(["head", "tail"]),
    markers,
)
def test_as_much_is_kept_as_trying_every_cut_would_keep(
    text: str, limit: int, count: Callable[[str], int], keep: Keep, marker: str
) -> None:
    """For counters that never find less in a longer text."""
    with_marker = longest_by_trying(text, limit, count, keep, marker)
    best = with_marker or longest_by_trying(text, limit, count, keep, "")
    if count(text) > limit:
        kept = truncate(text, limit, count, keep, marker=marker)
        assert len(kept) == best + (len(marker) if with_marker else 0)


@given(
    st.sampled_from(["support-chat", "coding-agent", "mixed-language"]),
    st.integers(0, 60),
    st.integers(1, 60),
    st.sampled_from(["head", "tail"]),
)
def test_on_real_messages_the_exact_counter_is_filled_to_the_limit_or_nearly(
    name: str, index: int, limit: int, keep: Keep
) -> None:
    text = load_trace(name).messages[index].text
    if EXACT(text) > limit:
        kept = truncate(text, limit, EXACT, keep, marker="")
        assert limit - 8 <= EXACT(kept) <= limit or regex.fullmatch(r"\X?", kept)


@given(texts, st.integers(-3, 80), st.sampled_from(BYS))
@example("a\r\na", -2, "line")
@example("aa\r\n", 3, "line")
def test_ends_and_starts_lie_between_characters(text: str, place: int, by: By) -> None:
    edges = {0, len(text), *(match.end() for match in regex.finditer(r"\X", text))}
    asked = Boundaries(text)
    end, start = asked.end(by, place), asked.start(by, place)
    assert end in edges and start in edges
    assert 0 <= end <= max(0, place) and min(place, len(text)) <= start <= len(text)


# All that a cluster is made of: joiners and what they join, halves of flags, what stands before, syllables of Hangul
# and of Devanagari, controls.
CLUSTERS = (
    "\u0301\u200d\ufe0f🏽👩❤🇫🇷🇩\u0600\u1100\u1161\u11a8가각कि्क\u0903\r\n\x00\u200b aé的ก\ud800"
)
clusters = st.lists(st.tuples(st.sampled_from(CLUSTERS), st.integers(1, 5)), max_size=25).map(
    lambda runs: "".join(character * times for character, times in runs)
)


@settings(max_examples=examples(1_000))
@given(
    clusters | texts | any_text,
    st.lists(st.integers(0, 80), min_size=1, max_size=8),
    st.sampled_from([0, 1_024]),
)
def test_the_nearest_places_in_a_text_are_found(text: str, places: list[int], far: int) -> None:
    """Whatever was asked and remembered before."""
    edges = {0, len(text), *(match.end() for match in regex.finditer(r"\X", text))}
    with mock.patch.object(boundaries, "_FAR", far):
        asked = Boundaries(text)
        for place in (min(place, len(text)) for place in places):
            assert asked.end("token", place) == max(edge for edge in edges if edge <= place)
            assert asked.start("token", place) == min(edge for edge in edges if edge >= place)


sentences = st.lists(
    st.sampled_from([*"ab .!?。」)\n\t", "Word", "...", "  \n\n"]), max_size=60
).map("".join)


@settings(max_examples=examples(500))
@given(
    sentences, st.lists(st.integers(0, 120), min_size=1, max_size=8), st.sampled_from([7, 4_096])
)
def test_a_sentence_has_the_same_ends_whatever_was_asked_before(
    text: str, places: list[int], chunk: int
) -> None:
    with mock.patch.object(boundaries, "_CHUNK", chunk):
        asked = Boundaries(text)
        for place in places:
            fresh = Boundaries(text)
            assert asked.end("sentence", place) == fresh.end("sentence", place)
            assert asked.start("sentence", place) == fresh.start("sentence", place)


# The cut inside an item


def rule(keep: str = "first", granularity: str = "token") -> Any:
    return SimpleNamespace(keep=keep, granularity=granularity)


def item(payload: Any) -> Item:
    return Item("history", 99, score=0.5, group="g", payload=payload)


NOTE = Message(user("one two three four\nfive six seven eight", name="bob"))
MARKED = {"newest": "[older]\n", "best": "\n[weaker]", "first": "\n[more]"}
CUT = cutter(words, Framing(per_message=3), MARKED)


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        ("newest", "[older]\n six seven eight"),
        ("best", "one two three \n[weaker]"),
        ("first", "one two three \n[more]"),
    ],
)
def test_the_newest_keep_their_end_and_all_others_their_beginning(keep: str, text: str) -> None:
    cut = CUT(item(NOTE), 7, rule(keep))
    assert cut is not None
    assert cut.payload.text == text


def test_message_framing_counts_inside_the_limit_and_everything_else_is_kept() -> None:
    cut = CUT(item(NOTE), 8, rule())
    assert cut is not None
    assert cut.tokens == Framing(per_message=3).message(cut.payload, words) == 8
    assert (cut.section, cut.score, cut.group) == ("history", 0.5, "g")
    assert dict(cut.payload.raw) == {**NOTE.raw, "content": "one two three four\n\n[more]"}


def test_lines_are_kept_whole_where_the_section_says_so() -> None:
    cut = CUT(item(NOTE), 9, rule("newest", "line"))
    assert cut is not None
    assert cut.payload.text == "[older]\nfive six seven eight"


def test_no_cut_is_made_where_none_is_allowed_or_none_is_useful() -> None:
    assert CUT(item(NOTE), 8, rule(granularity="item")) is None
    assert CUT(item(NOTE), 4, rule()) is None, "room for the marker alone"
    assert CUT(item(NOTE), 3, rule()) is None, "room for the framing alone"
    assert CUT(item(NOTE), 0, rule()) is None
    assert CUT(item(None), 50, rule()) is None
    assert CUT(item(Message({"role": "tools", "tools": [{"name": "look"}]})), 50, rule()) is None


def test_a_cut_without_room_for_the_marker_would_pass_for_the_whole_message() -> None:
    assert CUT(item(Message(user("one two three"))), 4, rule()) is None
    unmarked = cutter(words, Framing(per_message=3), dict.fromkeys(["newest", "best", "first"], ""))
    cut = unmarked(item(Message(user("one two three"))), 4, rule())
    assert cut is not None and cut.payload.text.strip() == "one"


def test_text_and_plain_dictionaries_are_cut_too() -> None:
    cut = CUT(item("one two three four"), 3, rule())
    assert cut is not None and (cut.tokens, cut.payload) == (3, "one two \n[more]")
    cut = CUT(item(user("one two three four")), 6, rule())
    assert cut is not None and cut.payload == user("one two \n[more]")


def test_images_stay_and_count_when_the_text_beside_them_is_cut() -> None:
    url = {"url": "https://example.org/a.png", "detail": "low"}
    image = {"type": "image_url", "image_url": url}
    shown = Message(user([{"type": "text", "text": "one two three four"}, image]))
    cut = CUT(item(shown), 3 + 85 + 3, rule())
    assert cut is not None
    assert cut.payload.raw["content"] == [{"type": "text", "text": "one two \n[more]"}, image]
    assert cut.tokens == 3 + 85 + 3


def test_tool_calls_are_never_cut_only_the_text_beside_them() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": '{"where": "under the bed"}'}}
    said = Message(assistant("one two three four", tool_calls=[call]))
    cut = CUT(item(said), 3 + 5 + 3, rule())
    assert cut is not None and cut.payload.raw["tool_calls"] == [call]
    assert cut.payload.text == "one two \n[more]"
    assert CUT(item(said), 3 + 5, rule()) is None


@pytest.mark.parametrize("name", FRAMINGS)
@pytest.mark.parametrize("keep", ["newest", "best", "first"])
@pytest.mark.parametrize("granularity", ["token", "line"])
def test_real_items_cut_to_any_limit_are_within_it(name: str, keep: str, granularity: str) -> None:
    framing, cut_any = FRAMINGS[name], 0
    cut = cutter(EXACT, framing)
    for whole in load_trace("coding-agent").items(4, EXACT, framing=framing)[::3]:
        for limit in (1, 10, 30, 100, 300):
            shorter = cut(whole, limit, rule(keep, granularity))
            if shorter is not None:
                cut_any += 1
                assert framing.message(shorter.payload, EXACT) == shorter.tokens <= limit
                assert shorter.payload.text
    assert cut_any > 10


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("ꙮ ", 2),
        ("𐀀🎉a", 3),
        ("🇩🇪🎉👩‍👩‍👧‍👦 é漢", 3),
        ("👩‍👩‍👧‍👦🎉 漢\n\n漢word🎉", 3),
        ("a👩‍👩‍👧‍👦", 1),
    ],
)
@pytest.mark.parametrize("marker", [None, "", " […]"])
def test_a_middle_cut_keeps_one_end_that_fits(text: str, limit: int, marker: str | None) -> None:
    """An end that is dear has no room beside the other, which may have it alone: 0.1.0 kept nothing."""
    count = counter("o200k_base")
    ends = [truncate(text, limit, count, keep, marker="") for keep in ("head", "tail")]
    assert any(ends)
    assert 0 < count(truncate(text, limit, count, "middle", marker=marker)) <= limit
