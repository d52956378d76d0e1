"""The words on the screen: each is explained where it stands, from one table, as the glossary explains it."""

import re
from pathlib import Path

import pytest

import budgetkit as bk
from budgetkit.files import read_toml
from budgetkit.lab.explorers.panel import word_meaning

CHECKOUT = Path(__file__).parents[2]
WORDS = read_toml("glossary.toml")["words"]


def test_the_screen_and_the_glossary_explain_a_word_alike() -> None:
    page = (CHECKOUT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = dict(re.findall(r"^(\w[\w ]*)\n  (.+)$", page, re.MULTILINE))
    both = WORDS.keys() & terms.keys()
    assert {"window", "usable", "shared pool"} <= both
    assert {word: terms[word] for word in both} == {word: WORDS[word] for word in both}


@pytest.mark.parametrize("word", ["shared pool", "usable", "first cut"])
def test_a_key_figure_says_what_its_word_means(word: str) -> None:
    """On 0.2.0 a tip said the number again, and nobody could find out what a shared pool is."""
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    figures = {figure["label"]: figure["tip"] for figure in card.view.state["kpis"]}
    assert word_meaning(word) in figures[word]


@pytest.mark.parametrize(
    ("word", "explorer"),
    [
        ("left in pool", lambda: bk.DesignCard("chat", "mixed-language", window=8_192)),
        ("free", lambda: bk.BudgetExplorer("working_memory", "support-chat", window=65_536)),
    ],
)
def test_the_bar_says_what_its_words_mean(word: str, explorer: object) -> None:
    segments = explorer().view.state["bar"]["segments"]  # type: ignore[operator]
    tips = {segment["name"]: segment["tip"] for segment in segments}
    assert tips[word].endswith(word_meaning(word))


def test_the_table_of_errors_and_a_saved_report_say_what_in_truth_is(tmp_path: Path) -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    strip = card.view.state["strip"]
    tips = dict(zip(strip["columns"], strip["meanings"], strict=True))
    assert tips["actual"].startswith("Actual tokens when the cheap count")
    assert all(tips[column] for column in ("error", "actual", "pool left", "result"))
    card.save(tmp_path / "card.html")
    assert word_meaning("actual") in (tmp_path / "card.html").read_text(encoding="utf-8")
