"""What a model may think: published numbers with their source, and nothing made up where there is none."""

import pytest

import budgetkit as bk
from budgetkit.files import read_table
from budgetkit.models.limits import EFFORTS


def test_what_is_published_is_reserved_beside_the_answer() -> None:
    found = bk.limits.thinking("gemini-2.5-flash", "high")
    assert (found.tokens, found.date) == (24_576, "2026-11-22")
    assert found.source.startswith("Google")
    reserves = [found.reserve(), bk.Reserve("output", 4_096, serves="output")]
    budget = bk.Budget(100_000, reserves, [bk.Allocation("history")])
    assert budget.usable == 100_000 - 24_576 - 4_096


def test_what_nobody_says_is_unknown_and_asks_for_a_number() -> None:
    found = bk.limits.thinking("gpt-5.1", "high")
    assert found.tokens is None
    refusal = r"no provider publishes .* Pass the thinking tokens that your own answers used"
    with pytest.raises(ValueError, match=refusal):
        found.reserve()
    assert found.reserve(9_000).size == 9_000
    assert bk.limits.thinking("gpt-5.1", "none").tokens == 0
    assert bk.limits.thinking("gpt-5-mini", "none").tokens is None
    assert "no published number" in bk.limits.thinking("a-model-of-mine", "low").source


def test_a_library_that_makes_tokens_of_an_effort_is_named() -> None:
    assert bk.limits.thinking("claude-haiku-4-5", "medium").tokens is None
    assert bk.limits.thinking("claude-haiku-4-5", "medium", through="litellm").tokens == 2_048


def test_an_unknown_effort_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Choose one of: 'none', 'minimal', 'low"):
        bk.limits.thinking("gpt-5.1", "hard")


def test_every_row_has_a_source_a_date_and_an_effort_that_is_known() -> None:
    for row in read_table("thinking.csv"):
        assert row["source"]
        assert row["date"] == "2026-11-22"
        assert row["effort"] in ("", *EFFORTS)
