"""Means of texts speak of other sources, and counts of a few projects speak of no percentage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import budgetkit as bk
from budgetkit import accuracy
from budgetkit.lab.accuracy.claims import claims
from tests.lab.test_accuracy import errors_of


def of_sources(random: np.random.Generator, sources: int, texts: int = 30) -> pd.DataFrame:
    """Texts whose error is mostly that of their source."""
    middle = np.repeat(random.normal(0.2, 0.05, sources), texts)
    error = middle + random.normal(0, 0.02, sources * texts)
    return pd.DataFrame(
        {"counter": "mine", "source": np.repeat(np.arange(sources), texts), "error": error}
    )


@pytest.mark.parametrize("sources", [6, 12, 30])
def test_the_interval_of_a_mean_holds_the_mean_of_all_sources(sources: int) -> None:
    """Drawing texts again instead of sources covered 14 to 35 of 100."""
    random = np.random.default_rng(sources)
    held = []
    for _ in range(150):
        row = accuracy.summary(of_sources(random, sources), ["counter"]).iloc[0]
        held.append(row["mape_low"] <= 0.2 <= row["mape_high"])
    assert np.mean(held) >= 0.9


def test_of_fewer_than_six_sources_there_is_no_interval() -> None:
    row = accuracy.summary(of_sources(np.random.default_rng(0), 5), ["counter"]).iloc[0]
    assert row["sources"] == 5 and np.isnan([row["mape_low"], row["mape_high"]]).all()


def test_the_claims_are_measured_on_sources_drawn_again() -> None:
    """A corpus of one source says nothing of the next: its claims have no interval."""
    documents = [
        bk.corpora.Document(f"Some words, {n} of them. " * 9, "prose", "en", "one", f"{n}")
        for n in range(30)
    ]
    table = claims(bk.corpora.Corpus(tuple(documents))).set_index("claim")
    assert table.loc["error of 95 % of texts", ["low", "high"]].isna().all()
    assert table.loc["overflowing windows of 128,000", ["low", "high"]].isna().all()


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-2.5-pro", "mistral-large-latest"])
def test_a_request_whose_rules_rest_on_a_few_projects_says_so_and_no_percentage(model: str) -> None:
    counted = bk.count_request(
        {"model": model, "messages": [{"role": "user", "content": "Hello world"}]}
    )
    assert (
        counted.interval_words.startswith("range observed in ")
        and "%" not in counted.interval_words
    )
    assert counted.interval_words in counted._repr_html_()
    exact = bk.count_request(
        {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello world"}]}
    )
    assert exact.interval_words == ""


def test_a_calibration_promises_nine_in_ten_texts_from_nineteen_on() -> None:
    """Of fewer it is the range that was seen; each text is measured by a slope that it had no part in."""
    random = np.random.default_rng(0)
    texts = [f"word {n} " * 40 for n in range(60)]
    base = bk.counter("o200k_base")
    counts = [round(base(text) * float(random.normal(1.4, 0.05))) for text in texts]
    few = bk.accuracy.calibrate(base, texts[:18], counts[:18])
    many = bk.accuracy.calibrate(base, texts, counts)
    assert few.interval_words == "range observed in 18 texts"
    assert many.interval_words == "for 90 % of the next texts, based on 60"
    assert few.low is not None and few.high is not None and few.low < 0 < few.high

    held = []
    for run in range(60):
        random = np.random.default_rng(100 + run)
        slopes = random.normal(1.4, 0.05, 41)
        counts = [
            round(base(text) * float(slope)) for text, slope in zip(texts, slopes, strict=False)
        ]
        counter = bk.accuracy.calibrate(base, texts[:40], counts[:40])
        low, high = counter.interval(texts[40])
        held.append(low <= counts[40] <= high)
    assert np.mean(held) >= 0.85


def test_a_summary_of_documents_without_a_source_takes_each_as_one() -> None:
    errors = errors_of([100] * 40, [90, 110] * 20)[["counter", "error"]]
    row = accuracy.summary(errors, ["counter"]).iloc[0]
    assert row["sources"] == 40
