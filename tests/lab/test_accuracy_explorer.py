"""The accuracy explorer without a browser: one value behind all widgets, and what follows from the user's texts."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import figures
from budgetkit.counters import Counter, ExactCounter
from budgetkit.lab.accuracy.corpora import Corpus, Document, opening
from budgetkit.lab.accuracy.corpora.opening import read_texts
from budgetkit.lab.accuracy.corpora.reading import rows_in
from budgetkit.lab.explorers.accuracy import AccuracyExplorer
from budgetkit.lab.explorers.accuracy.charts import speeds
from budgetkit.lab.explorers.accuracy.notices import _often
from budgetkit.lab.explorers.accuracy.tokens import FURTHER, lines, reading, token_pieces, visible
from budgetkit.state import from_json, from_yaml, to_yaml
from tests.conftest import examples
from tests.lab.panel import Change, hear, kpi, labels, level, made_by, refused, shown

ENGLISH = "The quick brown fox jumps over the lazy dog. "
GERMAN = "Rindfleischetikettierungsüberwachungsaufgaben sind überaus zeitraubend. "
CODE = "def area(width, height):\n    return width * height\n\n"


def toy(each: int = 20) -> Corpus:
    """Prose in two languages and code, each document a little longer than the one before."""
    kinds = ((ENGLISH, "prose", "en"), (GERMAN, "prose", "de"), (CODE, "code", "python"))
    documents = [
        Document(t * n, k, name, "toy", f"{name} {n}")
        for t, k, name in kinds
        for n in range(1, each + 1)
    ]
    return Corpus(tuple(documents))


@pytest.fixture(scope="module")
def made() -> AccuracyExplorer:
    return AccuracyExplorer("chars/4", toy(), kind=())


@pytest.fixture
def explorer(made: AccuracyExplorer) -> AccuracyExplorer:
    """Give the same explorer, as it was at first, to every test: what was counted stays counted."""
    made.view.opened = []
    made.set(corpus="my texts")
    made.reset()
    return made


def sent(explorer: AccuracyExplorer, name: str, data: bytes) -> None:
    hear(
        explorer,
        {
            "kind": "file",
            "serial": "1",
            "purpose": "file",
            "name": name,
            "size": len(data),
            "offset": 0,
        },
        data,
    )


# --- it shows what budgetkit.lab.accuracy finds ---------------------------------------------------------


def test_its_errors_are_the_frame_of_compare(explorer: AccuracyExplorer) -> None:
    pd.testing.assert_frame_equal(explorer.errors, bk.accuracy.compare(["chars/4"], toy()))


@pytest.mark.parametrize("window_mix", [None, "language"])
def test_its_buffer_is_what_buffer_for_finds(
    explorer: AccuracyExplorer, window_mix: str | None
) -> None:
    explorer.set(window_mix=window_mix or "")
    for risk in (0.05, 0.2):
        explorer.set(risk=risk)
        assert explorer.buffer == bk.accuracy.buffer_for(explorer.errors, 8_192, risk, window_mix)


def test_its_key_figures_are_those_of_the_summary(explorer: AccuracyExplorer) -> None:
    whole = bk.accuracy.summary(explorer.errors, ["counter"]).iloc[0]
    assert kpi(explorer, "mape") == f"{100 * whole['mape']:.1f} %"
    assert kpi(explorer, "bias") == f"{100 * whole['bias']:+.1f} %".replace("-", "\u2212")
    assert kpi(explorer, "p95") == f"{100 * explorer.errors['error'].abs().quantile(0.95):.1f} %"
    assert kpi(explorer, "buffer") == f"{100 * explorer.buffer.share:.1f} %"


def test_what_it_costs_the_preset_is_what_consequences_says(explorer: AccuracyExplorer) -> None:
    costs = bk.accuracy.consequences(bk.presets.chat(8_192), explorer.errors).iloc[0]
    assert kpi(explorer, "overflow") == f"{100 * costs['overflow']:.1f} %"
    assert kpi(explorer, "wasted") == f"{costs['wasted']:,.0f}"


def test_an_exact_counter_needs_no_buffer() -> None:
    explorer = AccuracyExplorer("o200k_base", toy(4))
    assert (explorer.buffer.share, kpi(explorer, "mape"), kpi(explorer, "overflow")) == (
        0,
        "0.0 %",
        "0.0 %",
    )
    assert "counts every document as o200k_base does" in explorer.status


def test_a_counter_that_counts_half_asks_for_half_the_window() -> None:
    """1 - 1 / 2: a window that an estimate of half the tokens calls full holds twice as many."""
    half = bk.accuracy.calibrate(bk.counter("o200k_base"), ["Hello world"], [1], model="half")
    explorer = AccuracyExplorer(half, toy(), kind=())
    assert explorer.buffer.share == pytest.approx(0.5, abs=0.01)
    assert level(explorer) == "over"


# --- one kind of text, and what is held back for it ---------------------------------------------------


def test_it_opens_on_code_cjk_and_prose_side_by_side() -> None:
    """It opened on five documents of English prose, and warned of an overflow that its chart did not show."""
    explorer = AccuracyExplorer()
    assert explorer.config["kind"] == []
    assert len(explorer.errors) == len(bk.corpora.shipped().documents)
    # The sentence and the figure beside it have the same numbers, the worst first.
    sizes = explorer.errors["error"].abs().groupby(explorer.errors["class"]).mean()
    worst_first = sizes.sort_values(ascending=False)
    each = ", ".join(f"{name} {100 * size:.1f} %" for name, size in worst_first.items())
    assert f"({each})" in explorer.status
    drawn = [text["text"] for text in explorer.view.figure_strip["spec"]["layout"]["annotations"]]
    assert [text for text in drawn if text.endswith(" off")] == [
        *(f"{100 * size:.1f} % off" for size in worst_first)
    ]


def test_a_forecast_says_expect_and_its_documents_and_a_count_says_is() -> None:
    """ "Overflows in 13.2 of 100 windows" stood beside a chart on which no document was counted too few."""
    explorer = AccuracyExplorer(kind=("prose", "en"))
    assert not (explorer.errors["error"] < 0).any()
    assert "is 9.0 % off on average over 5 documents" in explorer.status
    assert (
        "expect chat to overflow in 13.2 of 100 windows (forecast from 211 documents)"
        in explorer.status
    )
    assert "None of these texts is undercounted" in explorer.status
    key_figure = next(k for k in explorer.view.state["kpis"] if k["key"] == "overflow")
    assert key_figure["label"] == "expected overflow in chat"


def test_a_tiny_file_of_another_kind_does_not_speak_for_the_texts_at_hand(tmp_path: Path) -> None:
    """A JSON file of 14 characters made the sentence about four Markdown files say 66.7 %."""
    for number in range(1, 5):
        text = "# A heading\n\nSome plain words about a parcel. " * 9 * number
        (tmp_path / f"{number}.md").write_text(text)
    alone = AccuracyExplorer(corpus=str(tmp_path)).buffer.share
    (tmp_path / "tiny.json").write_text('{"a": "b c"} \n')
    explorer = AccuracyExplorer(corpus=str(tmp_path))
    assert explorer.config["kind"] == ["markup", "markdown"]
    assert explorer.buffer.share == alone
    assert "forecast from 4 documents" in explorer.status


def test_one_kind_is_told_by_all_kinds_beside_it() -> None:
    explorer = AccuracyExplorer(kind=("prose", "en"))
    assert set(explorer.errors["language"]) == {"en"}
    every = bk.accuracy.compare(["chars/4"], bk.corpora.shipped())
    assert explorer.buffer == bk.accuracy.buffer_for(every, 8_192, 0.05, kinds=("prose", "en"))
    assert explorer.buffer.share < 0.05
    largest = explorer.errors["error"].abs().max()
    (figure,) = (each for each in explorer.view.state["kpis"] if each["key"] == "p95")
    assert (figure["label"], figure["value"]) == ("largest error", f"{100 * largest:.1f} %")
    assert "over 5 documents of prose, en" in explorer.status


def test_a_kind_is_named_in_any_usual_way_and_an_unknown_one_names_those_that_are_there() -> None:
    explorer = AccuracyExplorer("chars/4", toy(), kind=("text", "German"))
    assert set(explorer.errors["language"]) == {"de"}
    explorer.set(kind=("code", "python"))
    assert explorer.config["classes"] == ["code"]
    with pytest.raises(
        LookupError,
        match="Unknown kind of text 'log, en'.* Choose one of: 'prose, en', 'prose, de'",
    ):
        AccuracyExplorer("chars/4", toy(), kind=("log", "en"))


def test_other_texts_open_on_the_kind_that_most_of_them_are_of(
    explorer: AccuracyExplorer, tmp_path: Path
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.py").write_text(CODE * (number + 1))
    (tmp_path / "notes.md").write_text(ENGLISH)
    explorer.set(path=str(tmp_path))
    assert (explorer.config["kind"], shown(explorer, "kind")) == (
        ["code", "python"],
        ("code", "python"),
    )
    explorer.reset()
    assert explorer.config["kind"] == [], "it was made to look at all kinds"


def test_a_conversation_is_looked_at_as_a_whole() -> None:
    """Its classes are its speakers, whose language is not known: none of them is a kind of text."""
    talk = Corpus(
        tuple(
            Document(ENGLISH, speaker, "text", "talk", speaker) for speaker in ("user", "assistant")
        )
    )
    assert AccuracyExplorer("chars/4", talk).errors["class"].tolist() == ["user", "assistant"]


def test_without_a_kind_of_text_the_status_warns_that_one_kind_may_overflow_more_often(
    explorer: AccuracyExplorer,
) -> None:
    warning = (
        "The risk is an average, and windows of the worst kind of text may overflow more often."
    )
    assert warning in explorer.view.state["status"]["more"]
    whole = explorer.buffer.share
    explorer.set(kind=("prose", "en"))
    assert "worst kind" not in str(explorer.view.state)
    assert explorer.buffer.share < whole


def test_a_class_that_is_chosen_is_not_warned_of_other_kinds() -> None:
    documents = [
        Document(
            f"words about a parcel {number} " * (number + 3),
            kind,
            "en",
            f"source {number}",
            str(number),
        )
        for kind in ("prose", "code")
        for number in range(3)
    ]
    explorer = AccuracyExplorer("chars/4", Corpus(tuple(documents)), window=4_096)
    assert "worst kind" in str(explorer.view.state["status"])
    explorer.set(classes=("prose",))
    assert "worst kind" not in str(explorer.view.state["status"])


def test_each_key_figure_has_percents_of_one_thing(explorer: AccuracyExplorer) -> None:
    """One had percents of windows and of tokens."""
    drawn = {kpi["key"]: kpi for kpi in explorer.view.state["kpis"]}
    buffer, safe = explorer.buffer, explorer.stage.buffered_costs["overflow"]
    assert drawn["buffer"]["value"] == f"{100 * buffer.share:.1f} %"
    assert drawn["buffer"]["change"].endswith(f"; measured texts need {100 * buffer.needed:.1f} %")
    assert drawn["overflow"]["change"] == f"of windows; with the buffer {100 * safe:.1f} %"


def test_a_pool_that_is_short_says_so() -> None:
    """It said that −4,045 tokens remain."""
    note = AccuracyExplorer().view.figure_rooms["note"]
    assert "1,640 tokens left. By actual tokens, it typically has 136 tokens too few" in note
    assert "4,045 tokens too few with the buffer" in note


# --- every control, set from code, does what a hand does -------------------------------------------


def test_classes_choose_documents(explorer: AccuracyExplorer) -> None:
    explorer.set(classes=("code",))
    assert set(explorer.errors["class"]) == {"code"}
    assert explorer.config["classes"] == ["code"]
    explorer.set(classes=("prose", "code"))
    assert len(explorer.errors) == 60
    explorer.set(classes=())
    assert len(explorer.errors) == 60, "none chosen are all"


def test_exact_encoding_and_counter_and_model(explorer: AccuracyExplorer) -> None:
    explorer.set(exact="cl100k_base")
    assert explorer.config["exact"] == "cl100k_base"
    explorer.set(counter="estimate:cl100k_base")
    assert explorer.buffer.counter == "estimate:cl100k_base"
    explorer.set(model="gpt-4")
    assert (explorer.budget.window, explorer.config["exact"]) == (8_192, "cl100k_base")


def test_risk_by_its_slider_and_by_its_box(explorer: AccuracyExplorer) -> None:
    before = explorer.buffer.share
    explorer.set(risk="50")
    assert (shown(explorer, "risk"), explorer.buffer.risk) == (0.5, 0.5)
    assert explorer.buffer.share < before
    explorer.set(risk=0.05)
    assert explorer.panel.controls["risk"]["value"] == "5"
    assert explorer.buffer.share == before


def test_a_window_and_a_preset_feel_the_error(explorer: AccuracyExplorer) -> None:
    explorer.set(window=32_768)
    explorer.set(preset="working_memory")
    plain = bk.presets.working_memory(32_768)
    assert explorer.budget.window == 32_768
    assert explorer.budget.usable == plain.usable - explorer.buffer.reserve.size.of(32_768)  # type: ignore[union-attr]
    rooms = figures.rooms.table(plain, explorer.budget, {"system": 1_000}, {"really": 1.5})
    history = rooms[rooms["line"] == "history"].set_index("case")["tokens"]
    assert history["as counted"] - history["really"] == 500, "1,000 tokens counted are 1,500"


def test_undo_redo_and_reset(explorer: AccuracyExplorer) -> None:
    first = explorer.config
    explorer.set(counter="words/0.75")
    explorer.set(classes=("code",))
    second = explorer.config
    explorer.undo()
    assert (explorer.config["counter"], shown(explorer, "classes")) == (
        "words/0.75",
        ("prose", "code"),
    )
    explorer.redo()
    assert explorer.config == second
    explorer.reset()
    assert explorer.config == first
    assert not explorer.view.state["actions"]["reset"]


# --- figures and tables ----------------------------------------------------------------------------


def test_every_figure_is_drawn_from_a_table_that_can_be_opened(explorer: AccuracyExplorer) -> None:
    explorer.view.opened = list(explorer.view.figures)
    for name in explorer.view.state["figures"]:
        drawn = getattr(explorer.view, f"figure_{name}")
        assert drawn["title"].endswith("?")
        assert drawn["spec"]["data"]
        assert len(drawn["table"]["rows"]) > 0
        json.dumps(drawn, allow_nan=False)


def test_a_point_tells_how_its_text_begins_and_how_it_is_counted(
    explorer: AccuracyExplorer,
) -> None:
    points = explorer.view.figure_strip["spec"]["data"][0]
    place = points["customdata"].index(0)
    tokens = bk.counter("o200k_base")(ENGLISH)
    assert points["text"][place].startswith("<b>en 1</b>, en<br>\u2068The quick brown fox")
    assert f"{tokens} tokens; chars/4 estimates {len(ENGLISH) // 4}" in points["text"][place]


def test_a_clicked_point_is_read_and_ringed(explorer: AccuracyExplorer) -> None:
    assert explorer.view.figure_strip["click"] == "document"
    hear(explorer, {"kind": "document", "document": 45, "id": "1"})
    assert explorer.view.reader["title"] == "How python 6 is cut into tokens"
    assert shown(explorer, "document") == explorer.config["document"] == 45
    assert len(explorer.view.figure_strip["spec"]["data"][1]["x"]) == 1


def test_without_a_choice_the_worst_is_read_and_a_choice_that_is_filtered_away_comes_back(
    explorer: AccuracyExplorer,
) -> None:
    worst = explorer.errors["error"].abs().idxmax()
    assert shown(explorer, "document") == worst
    explorer.set(document=3)
    explorer.set(classes=("code",))
    assert shown(explorer, "document") >= 40
    explorer.set(classes=())
    assert shown(explorer, "document") == 3


def test_a_large_corpus_is_drawn_in_part_and_the_means_are_of_all() -> None:
    errors = pd.DataFrame(
        {
            "class": ["a", "b"] * 1_000,
            "language": "en",
            "source": "s",
            "document": "d",
            "characters": 400,
        }
        | {
            "counter": "mine",
            "exact": 100,
            "estimate": [90, 120] * 1_000,
            "error": [-0.1, 0.2] * 1_000,
        }
    )
    table = figures.document_errors.table(errors, read=1_999)
    assert len(table) == 600
    assert table["read"].sum() == 1
    assert dict(zip(table["class"], table["class_error"].round(3), strict=True)) == {
        "a": 0.1,
        "b": 0.2,
    }


def test_an_error_far_off_is_drawn_at_the_edge_and_told_as_it_is() -> None:
    errors = pd.DataFrame(
        {
            "class": "a",
            "language": "en",
            "source": "s",
            "document": "d",
            "characters": 400,
            "counter": "mine",
        }
        | {"exact": 100, "estimate": [90] * 50 + [9_000], "error": [-0.1] * 50 + [89.0]}
    )
    points = figures.document_errors.spec(errors)["data"][0]
    assert max(points["x"]) < 200
    assert points["marker"]["symbol"].count("triangle-right") == 1
    assert "+8,900 %" in points["text"][points["x"].index(max(points["x"]))]


def test_speeds_are_measured_once_and_named_as_measured_here(
    explorer: AccuracyExplorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer.view.opened = ["speeds"]
    before = explorer.view.figure_speeds["table"]["rows"]
    assert {"chars/4", "langchain", "estimate:o200k_base", "o200k_base"} <= {
        row[0] for row in before
    }
    assert "measured just now on this machine" in explorer.view.figure_speeds["note"]
    monkeypatch.setattr(
        "budgetkit.lab.explorers.accuracy.results.speed", lambda *_: pytest.fail("measured again")
    )
    explorer.set(risk=0.2)
    explorer.set(classes=("code",))
    after = explorer.view.figure_speeds["table"]["rows"]
    assert {row[0]: row[3] for row in after} == {row[0]: row[3] for row in before}


def test_an_encoding_without_an_estimate_has_none_in_the_figure(explorer: AccuracyExplorer) -> None:
    explorer.view.opened = ["speeds"]
    explorer.set(exact="p50k_base")
    names = [row[0] for row in explorer.view.figure_speeds["table"]["rows"]]
    assert "p50k_base" in names
    assert not any(name.startswith("estimate:") for name in names)


def test_a_counter_that_fails_is_not_left_out_in_silence(
    explorer: AccuracyExplorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure of speeds once swallowed whatever went wrong with a counter."""

    def broken(name: object) -> Counter:
        raise ValueError("a broken table")

    monkeypatch.setattr(explorer.library, "counter", broken)
    with pytest.raises(ValueError, match="a broken table"):
        speeds(explorer.stage)


class Spy:
    """A counter that notes what it is asked."""

    def __init__(self) -> None:
        self.name, self.exact, self.asked = "spy", False, 0

    def __call__(self, text: str) -> int:
        return max(1, len(text) // 3)

    def many(self, texts: Any) -> list[int]:
        self.asked += len(texts)
        return [self(text) for text in texts]


def test_texts_are_counted_once_and_no_move_counts_again() -> None:
    spy = Spy()
    explorer = AccuracyExplorer(spy, toy())
    asked = spy.asked
    assert isinstance(spy, Counter)
    assert asked >= 60
    explorer.set(risk=0.2)
    explorer.set(classes=("code",))
    explorer.set(counter="chars/4")
    explorer.undo()
    assert explorer.errors["counter"].unique().tolist() == ["spy"]
    assert spy.asked == asked


@pytest.mark.parametrize(
    ("chance", "said"),
    [
        (0, "no window"),
        (1, "every window"),
        (0.25, "25 of 100 windows"),
        (0.004, "4 of 1,000 windows"),
        (0.00025, "2.5 of 10,000 windows"),
        (0.9999, "999.9 of 1,000 windows"),
        (1e-6, "less than 1 of 10,000 windows"),
        (1 - 1e-9, "nearly every window"),
    ],
)
def test_a_chance_is_told_in_windows_and_is_all_of_them_only_if_it_is(
    chance: float, said: str
) -> None:
    assert _often(chance) == said


# --- labels: an estimate is called one -------------------------------------------------------------


def test_an_estimate_is_called_one_wherever_its_number_stands(explorer: AccuracyExplorer) -> None:
    assert explorer.status.startswith("chars/4 (estimate) is")
    assert explorer.view.state["kpis"][0]["change"] == "chars/4 (estimate)"
    assert "estimate" in explorer.view.reader["blocks"][0]["mark"]


def test_a_calibrated_estimate_is_told_apart_from_an_error() -> None:
    explorer = AccuracyExplorer("calibrated:claude-opus-4-7", toy(3))
    assert explorer.view.state["kpis"][0]["change"] == "claude-opus-4-7 (estimate)"
    assert any("different tokenizers" in text for text in explorer.view.state["status"]["more"])


@pytest.mark.parametrize("model", ["claude-opus-4-7", "gemini-2.5-pro", "mistral-large"])
def test_the_reference_is_the_best_count_known_for_the_model_as_in_the_card(model: str) -> None:
    """On 0.2.0 another maker's model was held against an OpenAI vocabulary that stood in, where more is known."""
    explorer = AccuracyExplorer("chars/4", toy(3), model=model)
    card = bk.DesignCard("chat", model=model)
    assert explorer.config["exact"] == card.stage.best.name
    assert any(
        f"Compared with the best count known for {bk.model(model).name}" in text
        and "itself an estimate" in text
        for text in explorer.view.state["status"]["more"]
    )
    assert explorer.view.reader["blocks"], (
        "tokens are shown of the vocabulary that the estimate begins with"
    )


def test_the_accuracy_explorer_begins_with_the_door() -> None:
    """On 0.2.0 nothing on its first screen said how to give it texts."""
    shipped = AccuracyExplorer()
    assert shipped.view.entry["text"] == "Your own texts: drop a file here, paste text, or"
    own = AccuracyExplorer("chars/4", toy(3))
    assert own.view.entry["text"] == ""
    assert own.view.entry["facts"]["messages"].startswith("9 documents: ")


def test_too_few_documents_are_said_to_be() -> None:
    explorer = AccuracyExplorer("chars/4", toy(2))
    assert any("documents for a risk" in text for text in explorer.view.state["status"]["more"])
    assert "too few" in explorer.texts["python"].splitlines()[0]


@pytest.mark.skipif(sys.platform == "win32", reason="its file names hold no control characters")
def test_the_yaml_of_a_file_with_a_control_character_reads_back(tmp_path: Path) -> None:
    """On 0.3.0 the comment above the budget held the character, and YAML refused the text."""
    path = tmp_path / "notes\x1b[31m\n.txt"
    path.write_text(ENGLISH * 9)
    explorer = AccuracyExplorer("chars/4", path)
    assert from_yaml(explorer.texts["yaml"]) == explorer.budget


# --- the token view --------------------------------------------------------------------------------


def test_lines_show_tokens_and_how_each_line_is_counted() -> None:
    shown = reading("Hello world\n\n\tx = 1", "it", bk.counter("o200k_base"), bk.counter("chars/4"))
    labels = [(block["label"], block["mark"]) for block in shown["blocks"]]
    assert labels == [
        ("lines 1\u20132", "exact 3 · estimate 3 · 0 %"),
        ("line 3", "exact 4 · estimate 1 · \u221275.0 %"),
    ]
    assert [piece["text"] for piece in shown["blocks"][0]["pieces"]] == ["Hello", " world", "⏎⏎"]
    assert shown["blocks"][0]["pieces"][0]["tip"] == "token 13225, 5 bytes: b'Hello'"
    assert [piece["tone"] for piece in shown["blocks"][0]["pieces"]] == [0, 1, 2]


def test_a_character_of_several_tokens_stands_once_with_a_mark_for_each_further_one() -> None:
    shown = reading("ቡና", "coffee", bk.counter("cl100k_base"), bk.counter("chars/4"))
    pieces = [piece["text"] for piece in shown["blocks"][0]["pieces"]]
    assert "".join(pieces).replace(FURTHER, "") == "ቡና"
    assert len(pieces) == bk.counter("cl100k_base")("ቡና")
    assert FURTHER in shown["note"]
    assert "tokens form these characters" in shown["blocks"][0]["pieces"][0]["tip"]


@given(st.text(max_size=60), st.sampled_from(["o200k_base", "cl100k_base"]))
def test_tokens_joined_are_the_text_and_as_many_as_are_counted(text: str, encoding: str) -> None:
    """Lone surrogates cannot be in UTF-8; tiktoken mends them, and so they are not drawn here."""
    exact = ExactCounter(encoding)
    found = token_pieces(text, exact)
    assert "".join(token.text for token in found) == text
    assert len(found) == exact(text)
    assert [token for _, _, line in lines(found) for _, token in line] == found


def test_what_would_not_be_seen_is_shown() -> None:
    assert visible("\u200b\u202e\x00\ufffd") == "‹200B›‹202E›‹0›\ufffd"
    assert (visible("  "), visible(" a"), visible("\t\r\n")) == ("··", " a", "⇥␍⏎")


def test_a_long_document_is_cut_and_says_so() -> None:
    shown = reading("word " * 100_000, "long", bk.counter("o200k_base"), bk.counter("chars/4"))
    assert shown["note"].startswith("The first 6,000 of 500,000 characters: ")
    assert sum(len(block["pieces"]) for block in shown["blocks"]) <= 2_500


# --- texts of one's own ----------------------------------------------------------------------------


def test_a_folder_a_file_and_a_glob(explorer: AccuracyExplorer, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "notes.md").write_text(ENGLISH * 3)
    (tmp_path / "deep" / "more.md").write_text(ENGLISH * 5)
    (tmp_path / "area.py").write_text(CODE)
    (tmp_path / "logo.png").write_bytes(b"\0\1")
    explorer.set(path=str(tmp_path))
    assert explorer.config["kind"] == ["markup", "markdown"], "most of them are"
    explorer.set(kind=())
    assert len(explorer.errors) == 3
    assert "left out: logo.png (binary)" in explorer.view.state["source"]
    explorer.set(path=f"{tmp_path}/**/*.md")
    assert set(explorer.errors["language"]) == {"markdown"}
    explorer.set(path=str(tmp_path / "area.py"))
    assert explorer.errors["class"].tolist() == ["code"]
    explorer.set(corpus="my texts")
    explorer.set(kind=())
    assert len(explorer.errors) == 60


def test_a_table_gives_a_document_a_row_and_conversations_one_a_message(tmp_path: Path) -> None:
    table = tmp_path / "talks.csv"
    table.write_text("speaker,said\nAnn,Good morning to all of you\nBob,Good morning Ann\n")
    assert read_texts(str(table)).texts == ["Good morning to all of you", "Good morning Ann"]
    talk = tmp_path / "talk.jsonl"
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    talk.write_text(json.dumps({"messages": messages}) + "\n")
    assert [(d.kind, d.text) for d in read_texts(str(talk))] == [
        ("user", "Hello"),
        ("assistant", "Hi"),
    ]


def test_a_table_is_known_by_its_first_lines_in_any_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is decoded once, by its reader; to see what it holds only its beginning is."""
    table = tmp_path / "talks.tsv"
    table.write_text("speaker\tsaid\n" + "Ann\tGood morning\n" * 100, "utf-16")
    assert read_texts(str(table)).texts == ["Good morning"] * 100
    seen: list[str] = []

    def watched(text: str, suffix: str) -> Iterator[object]:
        seen.append(text)
        return rows_in(text, suffix)

    monkeypatch.setattr(opening, "rows_in", watched)
    read_texts(str(table))
    assert [len(text.splitlines()) for text in seen] == [20]


def test_a_long_cell_of_a_table_is_read_whatever_was_read_before(
    explorer: AccuracyExplorer, tmp_path: Path
) -> None:
    """Python's own bound on a cell, 131,072 characters, held until something else had read a table."""
    csv.field_size_limit(131_072)
    table = tmp_path / "long.csv"
    table.write_text(f"speaker,said\nAnn,{'so ' * 50_000}\n")
    explorer.open(table)
    assert explorer.errors["characters"].tolist() == [150_000]


def test_an_upload_is_looked_at(explorer: AccuracyExplorer) -> None:
    sent(explorer, "letter.txt", (ENGLISH * 4).encode())
    assert (explorer.config["corpus"], len(explorer.errors)) == ("letter.txt", 1)
    assert explorer.errors["source"].tolist() == ["upload"]
    sent(explorer, "letter.txt", (ENGLISH * 8).encode())
    assert (explorer.config["corpus"], explorer.errors["characters"].tolist()) == (
        "letter.txt (2)",
        [8 * len(ENGLISH)],
    )
    explorer.undo()
    assert (explorer.config["corpus"], explorer.errors["characters"].tolist()) == (
        "letter.txt",
        [4 * len(ENGLISH)],
    )
    sent(explorer, "letter.txt", (ENGLISH * 8).encode())
    assert explorer.config["corpus"] == "letter.txt (2)", "the same texts keep their name"
    sent(explorer, "odd text", (ENGLISH * 2).encode())
    assert explorer.config["corpus"] == "odd text (2)", (
        "what every installation has stays what it is"
    )


def test_an_upload_that_is_refused_leaves_the_texts_of_its_name() -> None:
    explorer = AccuracyExplorer("chars/4", toy(4))
    sent(explorer, "letter.txt", (ENGLISH * 40).encode())
    sent(explorer, "letter.txt", b"")
    assert "no file has any text" in explorer.status
    assert (explorer.config["corpus"], explorer.errors["characters"].tolist()) == (
        "letter.txt",
        [40 * len(ENGLISH)],
    )


def test_a_file_whose_name_cannot_be_written_is_refused(explorer: AccuracyExplorer) -> None:
    sent(explorer, "a" * 300 + ".txt", ENGLISH.encode())
    assert level(explorer) == "error"
    assert gettempdir() not in explorer.status


def test_a_class_with_half_a_character_can_be_shown_and_chosen() -> None:
    """A page takes UTF-8 alone; a document that is made by hand may be called anything."""
    kinds = ("prose", "half \ud83d")
    explorer = AccuracyExplorer(
        corpus=Corpus(tuple(Document(ENGLISH, kind, "en", "me") for kind in kinds))
    )
    assert labels(explorer, "classes") == ["prose (1)", "half \ufffd (1)"]
    explorer.set(classes=("half \ufffd",))
    assert explorer.errors["class"].tolist() == ["half \ufffd"]


# --- errors: one sentence, and what held still holds -----------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counter": "abacus"}, "Unknown counter 'abacus'"),
        ({"exact": "abacus"}, "Unknown counter 'abacus'"),
        ({"path": "/no/such/folder"}, "File not found"),
        ({"path": "/no/such/*.md"}, "File not found"),
        (lambda e: sent(e, "logo.png", b"\0\1\2"), "logo.png, binary"),
        (lambda e: sent(e, "../../empty.txt", b""), "no file has any text"),
        (lambda e: sent(e, "rows.jsonl", b"{]\n"), "not JSON"),
        ({"kind": "classes", "names": ["poetry"]}, "Unknown class 'poetry'"),
        ({"kind": "risk", "chance": 0}, "Invalid risk 0"),
        ({"kind": "risk", "chance": "often"}, "should be a valid number"),
        ({"kind": "window_mix", "column": "weather"}, "'weather'"),
        ({"kind": "document", "document": 99}, "Choose a number from 0 to 59."),
        ({"kind": "corpus", "name": "nowhere"}, "Unknown texts 'nowhere'"),
        ({"kind": "window", "tokens": -1}, "window"),
        ({"kind": "preset", "name": "chatt"}, "Unknown preset 'chatt'"),
    ],
)
def test_what_cannot_be_is_said_and_what_held_still_holds(
    explorer: AccuracyExplorer, change: Change, said: str
) -> None:
    buffer = explorer.buffer
    refused(explorer, change, said)
    assert explorer.buffer == buffer
    explorer.set(risk=0.2)
    assert level(explorer) != "error", "the next change is shown as ever"


# --- what to take away -----------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(bk.presets.PRESETS))
def test_every_format_makes_the_budget_with_the_measured_buffer(
    explorer: AccuracyExplorer, preset: str
) -> None:
    explorer.set(preset=preset)
    budget = explorer.budget
    assert budget.sizes["safety"] == explorer.buffer.reserve.size.of(budget.window)  # type: ignore[union-attr]
    assert made_by(explorer.texts["python"]) == budget
    assert from_yaml(explorer.texts["yaml"]) == from_json(explorer.texts["json"]) == budget


def test_a_window_that_is_the_models_is_taken_away_as_the_models() -> None:
    explorer = AccuracyExplorer("chars/4", toy(8), model="gpt-5", window=None)
    assert "bk.model('gpt-5')" in explorer.texts["python"]
    assert made_by(explorer.texts["python"]) == explorer.budget


def test_a_budget_of_ones_own_gets_its_buffer() -> None:
    own = bk.Budget(
        4_000, [bk.Reserve("output", 500)], [bk.Allocation("notes", 1_000)], name="mine"
    )
    explorer = AccuracyExplorer("chars/4", toy(8), budget=own, window=None)
    assert made_by(explorer.texts["python"]) == explorer.budget
    assert (explorer.budget.window, explorer.budget.sizes["output"]) == (4_000, 500)


def test_a_saved_budget_is_loaded_and_feels_the_error() -> None:
    own = bk.Budget(4_000, [bk.Reserve("safety", 10)], [bk.Allocation("notes", 1_000)], name="mine")
    explorer = AccuracyExplorer("chars/4", toy(8))
    explorer.load(to_yaml(own))
    assert (explorer.budget.window, explorer.budget.name) == (4_000, "mine")
    assert explorer.budget.sizes["safety"] == explorer.buffer.reserve.size.of(4_000)  # type: ignore[union-attr]
    explorer.undo()
    assert explorer.config["preset"] == "chat"


def test_the_text_says_on_what_the_buffer_rests(explorer: AccuracyExplorer) -> None:
    first = explorer.texts["python"].splitlines()[0]
    assert first.startswith(f"# safety {100 * explorer.buffer.share:.1f} % (95 % interval: ")
    assert "chars/4 against o200k_base, 60 documents of my texts, risk 5 %" in first


@given(
    st.lists(
        st.sampled_from(["code", "prose", "risk", "window_mix", "undo", "redo", "reset", "bad"]),
        max_size=6,
    )
)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_done_state_widgets_and_figures_agree(
    made: AccuracyExplorer, steps: list[str]
) -> None:
    explorer = made
    explorer.set(corpus="my texts")
    explorer.reset()
    for step in steps:
        if step in ("undo", "redo", "reset"):
            getattr(explorer, step)()
        elif step == "risk":
            explorer.set(risk="30")
        elif step == "window_mix":
            explorer.set(window_mix="language")
        elif step == "bad":
            explorer.set(counter="abacus")
        else:
            explorer.set(classes=(step,))
    config = explorer.config
    assert shown(explorer, "risk") == config["risk"] == explorer.buffer.risk
    assert (shown(explorer, "window_mix") or None) == config["window_mix"]
    assert (
        set(explorer.errors["class"]) == set(config["classes"]) == set(shown(explorer, "classes"))
    )
    assert explorer.buffer.documents == len(explorer.stage.buffer_errors)
    assert f"{explorer.buffer.share * 100:.1f} %" == kpi(explorer, "buffer")
    assert shown(explorer, "counter") == config["counter"] == "chars/4"


@pytest.mark.parametrize("name", ["notes.txt", "set.yaml"])
def test_one_text_has_no_interval_and_every_number_that_is_sent_is_one(name: str) -> None:
    """Its error bars were NaN, which JSON lacks, and the kernel warned with every message."""
    explorer = AccuracyExplorer(corpus=Corpus((Document("some words", "prose", "en", "a", "a"),)))
    content = b"some words " * 40
    told = {
        "kind": "file",
        "serial": "1",
        "name": name,
        "purpose": "file",
        "size": len(content),
        "offset": 0,
    }
    explorer._receive(explorer.view, told, [content])
    explorer.view.opened = list(explorer.view.figures)
    assert explorer.view.state["status"]["level"] != "error"
    json.dumps(explorer.view.get_state(), allow_nan=False, default=str)


def test_lists_in_lists_without_end_are_no_rows_of_text() -> None:
    """Python's own words about its recursion before."""
    explorer = AccuracyExplorer(corpus=Corpus((Document("some words", "prose", "en", "a", "a"),)))
    content = b"[" * 3_000
    told = {
        "kind": "file",
        "serial": "1",
        "name": "a.jsonl",
        "purpose": "file",
        "size": len(content),
        "offset": 0,
    }
    explorer._receive(explorer.view, told, [content])
    assert (
        "nothing could be read (problems: 1, first: a.jsonl:1, not JSON)"
        in explorer.view.state["status"]["text"]
    )
