"""Windows of products and servers: none of them is the model's, and each says where it was read."""

import pytest

from budgetkit.models.limits import PRODUCT_WINDOWS, product_window


@pytest.mark.parametrize(
    ("name", "window", "shown", "acts_at"),
    [
        ("codex", None, 258_400, 244_800),
        ("codex", 372_000, 353_400, 334_800),
        ("cline", 200_000, 180_000, 162_000),
        ("cline-unknown", None, 128_000, 115_200),
        ("claude-code", 1_000_000, 1_000_000, 967_000),
        ("ollama", 131_072, 4_096, 4_096),
        ("ollama", 2_048, 2_048, 2_048),
    ],
)
def test_shown_window_and_trigger(name: str, window: int | None, shown: int, acts_at: int) -> None:
    known = product_window(name, window)
    assert (known.shown, known.acts_at) == (shown, acts_at)


def test_every_row_has_a_source_and_a_date() -> None:
    for name, row in PRODUCT_WINDOWS.items():
        assert row["source"] and row["date"].startswith("2026-"), name


def test_a_window_that_nobody_knows_is_asked_for() -> None:
    with pytest.raises(ValueError, match="Claude Code needs the model's window"):
        product_window("claude-code")
    with pytest.raises(LookupError, match="Unknown product 'nobody'. Choose one of: 'codex'"):
        product_window("nobody")
