"""Counters by name: what they count, by which conventions, and what they promise."""

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit
from budgetkit.counters import (
    CalibratedCounter,
    CharacterCounter,
    Counter,
    ExactCounter,
    counter,
    encoding_names,
)
from budgetkit.models import Model, model, models
from budgetkit.models.names import calibration_row

CEIL: dict[str, Any] = {"rounding": "ceil", "minimum": 0}


def test_a_token_is_a_piece_of_the_text_often_a_word_with_the_space_before_it() -> None:
    exact = ExactCounter("cl100k_base")
    assert exact.pieces("Hello world") == [b"Hello", b" world"]
    assert exact.tokens("Hello world") == [9906, 1917]


def test_a_token_may_be_a_part_of_a_character() -> None:
    pieces = ExactCounter("cl100k_base").pieces("👩‍🚀")
    assert b"".join(pieces).decode() == "👩‍🚀"
    with pytest.raises(UnicodeDecodeError):
        pieces[0].decode()


@pytest.mark.parametrize(
    ("name", "conventions", "text", "tokens"),
    [
        pytest.param("cl100k_base", {}, "<|endoftext|>", 7, id="p17 the text of a special token"),
        pytest.param("bytes/4", CEIL, "🎉" * 17, 17, id="p12 four bytes a character"),
        pytest.param("chars/3.5", CEIL, "x" * 7, 2, id="p12 two tokens to seven characters"),
        pytest.param("chars/3.5", CEIL, "x" * 35, 10, id="p12 ten tokens to 35"),
        pytest.param("chars/3.5", CEIL, "x", 1, id="p12 rounded up"),
        pytest.param("chars/3.5", CEIL, "", 0, id="p12 nothing"),
        pytest.param("chars/3.3", {"rounding": "ceil"}, "x" * 33, 10, id="the decimal as written"),
        pytest.param("words/0.75", {"rounding": "nearest"}, "three words here", 4, id="words"),
        pytest.param("words/0.75", {"rounding": "nearest"}, "", 1, id="no words"),
        *(
            pytest.param("chars/4", {"rounding": rounding}, "x" * 10, tokens, id=rounding)
            for rounding, tokens in (("floor", 2), ("ceil", 3), ("nearest", 3))
        ),
    ],
)
def test_a_text_counts_by_its_unit_ratio_and_rounding(
    name: str, conventions: dict[str, Any], text: str, tokens: int
) -> None:
    count = counter(name, **conventions)
    assert [count(text), *count.many([text, ""])] == [tokens, tokens, count("")]


def test_p18_counts_do_not_add_up_over_a_cut() -> None:
    exact = counter("cl100k_base")
    assert (exact("Hello wor") + exact("ld"), exact("Hello world")) == (3, 2)


def test_p4_langchain_rounds_up_over_content_and_role_together() -> None:
    rough = CharacterCounter(rounding="ceil", minimum=0)
    assert rough.of(rough.size("Hello world") + rough.size("user")) + 3 == 7


def test_a_ratio_is_the_decimal_that_is_written() -> None:
    assert CharacterCounter("3.3") == CharacterCounter(Fraction(33, 10))


def test_the_unit_can_be_named_or_given() -> None:
    assert counter("chars/4", unit="utf16") == counter("utf16/4")


@pytest.mark.parametrize(
    ("name", "conventions", "error", "message"),
    [
        ("chars/0", {}, ValueError,
         "Invalid ratio: '0'. Use a number of units per token above 0 and at most 100, such as 4"),
        ("chars/-4", {}, ValueError, "Invalid ratio: '-4'."),
        ("chars/four", {}, ValueError, "Invalid ratio: 'four'."),
        ("chars/1e9", {}, ValueError, "Invalid ratio: '1e9'."),
        ("chars/nan", {}, ValueError, "Invalid ratio: 'nan'."),
        ("chars/4", {"rounding": "up"}, ValueError,
         "Invalid rounding: 'up'. Choose one of: 'floor', 'ceil', 'nearest'."),
        ("chars/4", {"unit": "line"}, ValueError,
         "Invalid unit: 'line'. Choose one of: 'codepoint', 'utf16', 'byte', 'word'."),
        ("chars/4", {"minimum": -1}, ValueError, "Invalid minimum: -1. Use 0 or more."),
        ("chars/4", {"minimum": 0.5}, TypeError, "Invalid minimum: 0.5. Expected a whole number of tokens"),
        ("chars/4", {"round": "floor"}, ValueError,
         "Unknown setting 'round'. Choose one of: 'rounding', 'minimum', 'unit'"),
        ("chars/4 (sideways)", {}, ValueError, "Invalid rounding: 'sideways'"),
        ("o200k_base", {"minimum": 1}, ValueError,
         "Unexpected settings for counter 'o200k_base': minimum. Leave them out"),
        ("char/4", {}, ValueError,
         r"Unknown counter 'char/4'\. Did you mean 'chars/4'\? Choose a ratio .*, an encoding \(cl100k_base"),
        ("gtp-4o", {}, ValueError, "Unknown counter 'gtp-4o'. Did you mean 'gpt-4o'"),
        (4, {}, TypeError, "Invalid counter: 4. Expected a model, a function or a name"),
    ],
)  # fmt: skip
def test_what_is_not_a_counter_is_an_error_in_three_parts(
    name: Any, conventions: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        counter(name, **conventions)


@pytest.mark.parametrize("name", ["chars/4", "gpt-4o"])
def test_only_text_is_counted(name: str) -> None:
    with pytest.raises(
        TypeError, match="Invalid text for .*: a value of type NoneType. Expected a string"
    ):
        counter(name)(None)  # type: ignore[arg-type]


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_units_agree_with_python_on_any_text(text: str) -> None:
    sizes = {
        unit: CharacterCounter(unit=unit).size(text) for unit in ("codepoint", "utf16", "byte")
    }
    above = sum(character > "\uffff" for character in text)
    assert sizes["codepoint"] == len(text)
    assert sizes["utf16"] == len(text) + above
    assert sizes["codepoint"] <= sizes["utf16"] <= sizes["byte"] <= 4 * sizes["codepoint"]


@given(st.integers(0, 10**9), st.fractions(Fraction(1, 100), 100))
def test_roundings_enclose_the_exact_quotient(units: int, ratio: Fraction) -> None:
    floor, nearest, ceil = (
        CharacterCounter(ratio, rounding=rounding, minimum=0).of(units)
        for rounding in ("floor", "nearest", "ceil")
    )
    assert floor <= units / ratio <= ceil <= floor + 1
    assert abs(nearest - units / ratio) <= Fraction(1, 2)


def test_a_counter_says_whether_its_number_is_the_models_own() -> None:
    own, stand_in, rough = counter("gpt-4o"), counter("muse-spark-1.1"), counter("chars/4")
    assert (own.name, own.exact) == ("gpt-4o", True)
    assert (stand_in.name, stand_in.exact) == ("muse-spark-1.1 (o200k_base stands in)", False)
    assert (rough.name, rough.exact) == ("chars/4", False)


def test_a_model_is_as_good_as_its_name() -> None:
    assert counter(model("gpt-4o")) == counter("gpt-4o")


def test_a_model_with_an_encoding_that_is_not_shipped_is_an_error_that_says_what_is() -> None:
    refusal = "Unknown encoding 'llama3'. Choose one of: 'cl100k_base', .* Model mine was given this encoding"
    with pytest.raises(ValueError, match=refusal):
        counter(Model("mine", 8_192, encoding="llama3"))


def test_document_001s_two_answers_to_an_unknown_model_are_two_values_of_unknown() -> None:
    in_code = counter("nobody-knows", unknown="default")
    in_words = counter("nobody-knows", unknown="chars/4")
    assert (in_code.name, in_code("Hello world")) == ("nobody-knows (cl100k_base stands in)", 2)
    assert (in_words.name, in_words("Hello world")) == ("chars/4", 2)


conventions = st.builds(
    CharacterCounter,
    ratio=st.fractions(Fraction(1, 100), 100),
    rounding=st.sampled_from(["floor", "ceil", "nearest"]),
    minimum=st.integers(0, 10),
    unit=st.sampled_from(["codepoint", "utf16", "byte"]),
)
by_model = st.sampled_from(models()).map(counter)


@given(conventions | by_model | st.sampled_from(encoding_names()).map(counter))
def test_a_counters_name_makes_it_again(made: Counter) -> None:
    assert counter(made.name) == made


@pytest.mark.parametrize(
    ("rule", "name", "hello"),
    [
        ("octopus", "utf16/4", 2),
        ("langchain", "chars/4 (ceil, minimum 0)", 3),
        ("praisonai", "chars/4 (minimum 0)", 2),
        ("ibex", "bytes/4 (ceil, minimum 0)", 3),
        ("ibex-runes", "chars/3.5 (ceil, minimum 0)", 4),
    ],
)
def test_the_rules_of_other_systems_go_by_their_names(rule: str, name: str, hello: int) -> None:
    """S3, P4, P6, P12: what each counts for "Hello world", framing apart."""
    assert counter(rule) == counter(name)
    assert counter(rule)("Hello world") == hello


def test_a_calibrated_estimate_says_so_with_slope_source_and_date() -> None:
    claude, gemini = counter("calibrated:claude-opus-4-5"), counter("calibrated:gemini-2.5-pro")
    slope = float(calibration_row("claude-4.5")["slope"])
    marked = float(calibration_row("gemini")["mark"])
    assert not claude.exact
    estimate = rf"claude-opus-4-5 \(calibrated estimate: {slope:g} x cl100k_base"
    calls = r"\d+ recorded calls from \d+ public projects, read 2026-11-21"
    assert re.fullmatch(rf"{estimate}, {calls}\)", claude.name)
    text = "one " * 100
    assert claude(text) == round(slope * counter("cl100k_base")(text)) == claude.many([text])[0]
    plain, marks = gemini("word " * 100), gemini("word " * 100 + "! ? " * 50)
    assert marks - plain > 100 * marked > 0, "Gemini's tokenizer never joins punctuation"
    assert counter(gemini.name) == gemini
    refusal = "No published slope for 'gpt-9'. Choose one of: claude-.*, or fit"
    with pytest.raises(ValueError, match=refusal):
        counter("calibrated:gpt-9")


def test_a_model_of_a_family_that_nothing_lists_is_counted_by_its_family() -> None:
    assert counter("claude-sonnet-4-6-next").name.startswith("claude-sonnet-4-6-next (")
    assert counter("nova-2-lite-next").name.startswith("nova-2-lite-next (calibrated estimate: ")
    expected = "claude-opus-4-5 (o200k_base stands in)"
    assert counter(model("claude-opus-4-5", encoding="o200k_base")).name == expected


def test_a_slope_is_fitted_to_what_the_provider_counted() -> None:
    texts = ["Hello world", "one two three four five six"]
    mine = budgetkit.accuracy.calibrate(counter("cl100k_base"), texts, [4, 12], model="mine")
    assert isinstance(mine, CalibratedCounter)
    assert (mine.slope, mine.low, mine.high) == (2.0, 0.0, 0.0)
    assert mine.name == "mine (calibrated estimate: 2 x cl100k_base, fitted to 2 texts)"
    assert mine.many(texts) == [4, 12]
    assert mine.interval(texts[1]) == (12, 12)
    refusal = "Number of texts: 1; number of counts: 2. Pass at least one text"
    with pytest.raises(ValueError, match=refusal):
        budgetkit.accuracy.calibrate(counter("cl100k_base"), ["a"], [1, 2])


@pytest.mark.parametrize("wrong", [["1", "3"], [1, float("nan")], [-1, 3], [0, 0]])
def test_counts_that_no_provider_gives_are_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="count"):
        budgetkit.accuracy.calibrate("cl100k_base", ["abc", "d e f"], wrong)


def test_a_count_of_0_leaves_the_interval_unknown_where_nothing_else_is_left() -> None:
    mine = budgetkit.accuracy.calibrate("cl100k_base", ["abc", "d e f"], [0, 3])
    assert (mine.slope, mine.low, mine.high) == (1.0, None, None)


def test_one_wrong_count_does_not_drag_a_slope_and_shows_in_the_interval() -> None:
    """The ratio of the sums, which 0.1.0 took, would be 5.2: nine texts of ten at 1.5, one at 38.5."""
    texts = [f"word number {'one ' * size}" for size in range(10, 20)]
    own = counter("o200k_base").many(texts)
    billed = [3 * tokens // 2 for tokens in own]
    billed[4] += 37 * own[4]
    base = counter("o200k_base")
    mine = budgetkit.accuracy.calibrate(base, texts, billed)
    assert mine.slope == pytest.approx(1.5, rel=0.05)
    projects = ["a"] * 4 + ["b"] + ["c"] * 5
    alone = budgetkit.accuracy.calibrate(base, texts, billed, projects=projects)
    assert alone.high is not None
    assert alone.high > 20, "the interval is that of projects the slope was fitted without"


def test_every_counter_keeps_the_protocol() -> None:
    for name in ("chars/4", "o200k_base", "claude-opus-5"):
        assert isinstance(counter(name), Counter)


@pytest.mark.parametrize("name", ["gpt-4o", "chars/4", "estimate:o200k_base", "gemini-2.5-pro"])
def test_an_iterator_of_texts_is_counted_like_a_list(name: str) -> None:
    """An encoding counted none of them: a check had used the iterator up."""
    texts = ["Hello world", "Where is my parcel?"]
    count: Any = counter(name)
    assert count.many(iter(texts)) == count.many(texts)
