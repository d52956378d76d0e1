"""The estimator: what it promises of any text, and how near it comes on texts that it has not seen."""

import hashlib
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetkit import corpora, files
from budgetkit.counters import counter
from budgetkit.counters.estimate import LEVELS, RUN, WINDOW, EstimateCounter, table_names
from tests.conftest import examples

ROUGH = EstimateCounter("o200k_base")
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
repeated = st.builds(lambda part, times: part * times, st.text(max_size=3), st.integers(0, 60))
texts = st.builds("".join, st.lists(any_text | repeated, max_size=4))


def test_it_goes_by_the_name_of_what_it_estimates() -> None:
    assert counter("estimate:o200k_base") == ROUGH
    assert counter(ROUGH.name) == ROUGH
    assert not ROUGH.exact


def test_no_text_no_tokens_and_any_text_at_least_one() -> None:
    assert ROUGH.many(["", "a", " "]) == [0, 1, 1]


def test_an_encoding_without_a_table_is_an_error_that_says_which_have_one() -> None:
    refusal = "Unknown estimate 'p50k_base'.* Choose one of: 'cl100k_base', 'o200k_base'"
    with pytest.raises(ValueError, match=refusal):
        counter("estimate:p50k_base")


@given(st.lists(texts, max_size=8))
def test_a_batch_is_the_same_as_one_by_one(batch: list[str]) -> None:
    assert ROUGH.many(batch) == [ROUGH(text) for text in batch]


@given(st.lists(texts, min_size=1, max_size=3), st.integers(0, 400))
@settings(max_examples=examples(60))
def test_a_text_is_estimated_alike_in_any_stretches(batch: list[str], lead: int) -> None:
    text = "a" * lead + "".join(batch) * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("budgetkit.counters.estimate.STRETCH", 64)
        small = ROUGH(text)
    assert small == ROUGH(text)


@given(texts, st.integers(1, 9))
@settings(max_examples=examples(60))
def test_mostly_ascii_and_hardly_ascii_are_looked_up_alike(text: str, few: int) -> None:
    mixed = text + "plain words, mostly" * few
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("budgetkit.counters.estimate._FEW", 10**9)
        dense = [ROUGH(mixed[:end]) for end in range(len(mixed))]
        patch.setattr("budgetkit.counters.estimate._FEW", 1)
        assert [ROUGH(mixed[:end]) for end in range(len(mixed))] == dense


@pytest.mark.parametrize("encoding", table_names())
@pytest.mark.parametrize(
    "one", [" ", "\n", "\t", "=", "-", "a", "A", "0", "的", "я", "—", "█", "ab", "=-", "\r\n"]
)
def test_a_long_run_is_as_long_as_it_was_measured(encoding: str, one: str) -> None:
    text = one * 1_000
    exact = counter(encoding)(text)
    assert abs(EstimateCounter(encoding)(text) - exact) <= 0.1 * exact + 5


def test_a_run_is_recognised_after_so_many_windows() -> None:
    assert RUN * WINDOW == 12  # characters


@pytest.mark.parametrize("encoding", table_names())
def test_on_texts_of_this_project_the_mean_error_is_at_most_6_percent(encoding: str) -> None:
    """The mini-corpus and odd text of other seeds: nothing of it was learned from."""
    unseen = corpora.shipped() + corpora.odd(documents=10)
    exact, rough = counter(encoding), EstimateCounter(encoding)
    frame = unseen.frame().assign(exact=exact.many(unseen.texts), estimate=rough.many(unseen.texts))
    error = (frame["estimate"] / frame["exact"] - 1).abs() * 100
    by_language = error.groupby([frame["class"], frame["language"]]).mean()
    assert by_language.mean() <= 6.0, by_language.nlargest(8)


def test_the_sources_are_written_down_and_the_tests_texts_are_not_among_them() -> None:
    written = json.loads(files.read_bytes("estimates/sources.json"))
    assert all(len(each["sha256"]) == 64 and each["characters"] > 0 for each in written["sources"])
    assert not any("mini-corpus" in each["source"] for each in written["sources"])


def test_training_is_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(files.data_folder().parent / "scripts")
    training = import_module("train_estimator")
    folder = tmp_path / "texts" / "mine"
    folder.mkdir(parents=True)
    (folder / "one.txt").write_text(
        "The quick brown fox jumps over the lazy dog.\n" * 50, encoding="utf-8"
    )
    documents = list(training.read(tmp_path / "texts"))
    for level in ("own", "long"):  # a few texts need no more
        monkeypatch.setitem(LEVELS, level, 2**10)
    digests = set()
    for name in ("first.npz", "second.npz"):
        np.savez_compressed(tmp_path / name, **training.train("cl100k_base", documents))
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1
