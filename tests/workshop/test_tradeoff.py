"""The page on error and time: what is measured, on which texts, and that a part left out is really not looked up."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import estimator_parts, tradeoff
from benchmarks.estimator_parts import PARTS
from budgetkit import corpora, files
from budgetkit.counters.estimate import LEVELS, Weights, laid_out

TIMES = ["message", "message of a batch", "megabyte"]
ERRORS = [
    f"{name}, {what}" for name in (tradeoff.MINI, tradeoff.MESSAGES) for what in ("error", "bias")
]


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    """Measure the shipped texts once."""
    return tradeoff.measured([], "o200k_base", repeats=1)[0]


def test_every_way_of_counting_has_a_row_with_times_errors_and_biases(found: pd.DataFrame) -> None:
    ways = [
        *tradeoff.RATIOS,
        "calibrated chars/4",
        "calibrated cl100k_base",
        "estimate, as shipped",
    ]
    ways += ["sampled (a large text)", "exact, tiktoken"]
    assert [way for way in found["way"] if way != "exact, extra fast"] == ways
    assert (found[TIMES] > 0).all(axis=None)
    assert found.set_index("way").loc[ways[:-2], ERRORS].notna().all(axis=None)


def test_exact_ways_are_exact_and_the_estimate_beats_ratios(found: pd.DataFrame) -> None:
    errors = found.set_index("way")
    assert (errors.loc[errors["group"] == "exact", ERRORS] == 0).all(axis=None)
    nearest = errors.loc[[*tradeoff.RATIOS], ERRORS[::2]].min()
    assert (errors.loc[["estimate, as shipped"], ERRORS[::2]] < 0.5 * nearest).all(axis=None)
    assert errors.loc["sampled (a large text)", ERRORS].isna().all()
    assert errors.loc[["sampled (a large text)"], "large text, error"].between(0.01, 2).all()


def test_all_but_the_times_is_the_same_again(found: pd.DataFrame) -> None:
    again = tradeoff.measured([], "o200k_base", repeats=1)[0]
    pd.testing.assert_frame_equal(found.drop(columns=TIMES), again.drop(columns=TIMES))


def test_sources_of_one_family_are_on_the_same_side() -> None:
    halves = tradeoff.halves(["docs-prose", "docs", "code", "talk", "docs-html"])
    assert halves == {"code": 0, "docs": 1, "docs-html": 1, "docs-prose": 1, "talk": 0}


@pytest.mark.parametrize("part", [part for part in PARTS.values() if part.without])
def test_not_to_look_a_level_up_is_the_same_as_to_find_it_empty(part: estimator_parts.Part) -> None:
    with np.load(files.data_path("estimates/o200k_base.npz")) as shipped:
        stored = {**shipped} | {
            f"level_{level}": np.zeros(LEVELS[level], np.int16) for level in part.without
        }
    reduced, whole = part.reads.of(stored), Weights.of(stored)
    texts = corpora.shipped().texts + corpora.odd(documents=2).texts
    for some in (texts, texts[:4], [text for text in texts if text.isascii()]):
        row = laid_out(some)[0]
        np.testing.assert_array_equal(reduced.values(row), whole.values(row))


def test_parts_are_trained_on_the_folder_and_measured_on_the_half_that_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source, text in (
        ("mine", "The quick brown fox. "),
        ("yours", "Der schnelle braune Fuchs. "),
    ):
        (tmp_path / source).mkdir()
        (tmp_path / source / "one.txt").write_text(text * 80, encoding="utf-8")
    for level in ("own", "long"):  # a few texts need no more
        monkeypatch.setitem(LEVELS, level, 2**10)
    train, runs = (
        estimator_parts.training(),
        (np.zeros((128, 128), np.int16), np.zeros(2**16, np.int16)),
    )
    monkeypatch.setattr(train, "odd", lambda: ())
    monkeypatch.setattr(train, "runs", lambda encoding: runs)
    seen: list[list[str]] = []

    def noted(lessons: list[Any]) -> list[Any]:
        seen.append([lesson.source for lesson in lessons])
        return lessons

    monkeypatch.setattr(estimator_parts, "some", noted)
    parts = {name: PARTS[name] for name in ("all of it", "pairs of classes alone")}
    found, about = tradeoff.measured([tmp_path], "cl100k_base", parts, repeats=1)
    assert seen == [["mine"], ["yours"]] or seen == [["yours"], ["mine"]]
    trained = found[found["group"] == "part"]
    assert [*trained["way"]] == [f"trained here, {name}" for name in parts]
    assert trained[f"{tradeoff.FOLDERS}, error"].notna().all()
    assert " of folders, " in about


def test_the_page_has_a_line_for_each_way_of_counting(found: pd.DataFrame, tmp_path: Path) -> None:
    page = tradeoff.page(found, "Texts: few.", "o200k_base")
    assert all(f"| {way} | " in page for way in found["way"])
    pytest.importorskip("matplotlib", reason="matplotlib (extra: peers) is absent")
    drawn = [tmp_path / name for name in ("first.svg", "second.svg")]
    for path in drawn:
        tradeoff.draw(found, path)
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert b"How long does a short message take" in drawn[0].read_bytes()


def test_names_of_points_stand_apart() -> None:
    assert tradeoff.apart([1.0, 1.0, 1.5, 9.0], 0.5) == [1.0, 1.5, 2.0, 9.0]
