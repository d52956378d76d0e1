"""What a hand types, opens and takes back in the explorers: read as it was meant, or refused in words."""

import json
import re
import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.explorers import BudgetExplorer
from budgetkit.lab.explorers.accuracy import AccuracyExplorer
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.conversation.settings import CHOICES
from budgetkit.lab.explorers.panel import decimal, typed_number
from budgetkit.lab.explorers.report import report_html
from budgetkit.lab.explorers.undo import ONE_MOVE
from budgetkit.models import DEFAULT_MODEL
from tests.lab.panel import labels, put, shown, typed

SAID = [{"role": "user", "content": "Hello world"}, {"role": "assistant", "content": "Hello."}]


def status(explorer: Any) -> dict[str, Any]:
    found: dict[str, Any] = explorer.view.state["status"]
    return found


# --- numbers as people type them ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("8192", 8_192),
        ("8_192", 8_192),
        ("12,000", 12_000),
        ("12 000", 12_000),
        ("1e5", 100_000),
        ("1.5e3", 1_500),
        ("100k", 100_000),
        ("100 K", 100_000),
        ("1.05M", 1_050_000),
        (" 7 ", 7),
        ("50%", 4_096),
        ("33.3 %", 2_727),
    ],
)
def test_a_number_is_read_as_it_was_meant(text: str, tokens: int) -> None:
    assert typed_number(text, whole=8_192) == tokens


@pytest.mark.parametrize(
    "text", ["", "many", "1,5", "12.000", "1.5", "12,00", "0x10", "1e", "k", "--3", "1e999", "٣"]
)
def test_what_could_be_another_number_or_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number|not a whole number"):
        typed_number(text)


@given(st.integers(0, 10**9))
def test_whatever_a_box_shows_it_can_read(number: int) -> None:
    assert (
        typed_number(f"{number:,}")
        == typed_number(f"{number:_}")
        == typed_number(str(number))
        == number
    )


def test_a_percentage_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="is a percentage, and this field takes tokens only"):
        typed_number("50%")
    assert decimal("0.1 %") == (Decimal("0.1"), True)


# --- the boxes ------------------------------------------------------------------------------------


def test_a_box_takes_100k_and_shows_it_written_out() -> None:
    explorer = BudgetExplorer("chat")
    assert typed(explorer, "window", "100k") == "100,000"
    assert explorer.budget.window == 100_000
    assert typed(explorer, "line_system", "25%") == "25,000"
    assert explorer.budget.cap("system") == 25_000


def test_what_is_no_number_is_refused_beside_the_box_and_the_old_value_stays() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    assert typed(explorer, "window", "a lot") == "8,192"
    assert explorer.budget.window == 8_192
    assert status(explorer)["level"] == "error"
    assert status(explorer)["beside"] == "window"
    assert status(explorer)["text"].startswith(
        "'a lot' is not a number, so 8,192 stays. Type digits"
    )


@pytest.mark.parametrize("text", ["9,000", "8,192", "1e9", "-5"])
def test_a_cap_that_is_out_of_reach_is_refused_beside_its_box_and_the_old_one_stays(
    text: str,
) -> None:
    """On 0.1.0 a huge one became no cap and a negative one 0, without a word."""
    explorer = BudgetExplorer("chat", window=8_192)
    before = explorer.budget
    assert typed(explorer, "line_system", text) == "819"
    assert explorer.budget == before
    end = "large, so 819 stays. Type at most 8,191, or nothing for no cap."
    if text == "-5":
        end = "small, so 819 stays. Type at least 0."
    assert status(explorer)["text"].endswith(f" is too {end}")
    assert status(explorer)["beside"] == "line_system"


@pytest.mark.parametrize("text", ["-5", "0", "200M"])
def test_a_window_that_cannot_be_is_refused_and_the_old_one_stays(text: str) -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    assert typed(explorer, "window", text) == "8,192"
    assert explorer.budget.window == 8_192
    assert re.search(
        "so 8,192 stays. Type (at least 1|at most 100,000,000).",
        status(explorer)["text"],
    )
    assert typed(explorer, "at_least", "1M") == "0"
    assert "1,000,000 is too large, so 0 stays. Type at most 8,192." in status(explorer)["text"]


def test_an_empty_cap_draws_on_the_pool_and_looks_so() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    assert typed(explorer, "line_system", "") == ""
    assert explorer.budget.caps["system"] is None
    drawn = explorer.panel.controls["line_system"]
    assert (drawn["hint"], drawn["share"]) == ("no cap", "pool")
    assert "to draw on the shared pool" in drawn["box_tip"]
    assert typed(explorer, "line_system", "10%") == "819"
    assert typed(explorer, "window", "") == "8,192", "a window is never empty"
    assert "Nothing was typed" in explorer.status


@pytest.mark.slow
def test_chances_and_money_have_fractions_and_turns_have_no_percent() -> None:
    accuracy = AccuracyExplorer(window=8_192)
    assert typed(accuracy, "risk", "2.5") == "2.5"
    assert accuracy.settings.risk == 0.025
    replayed = ConversationExplorer("support-chat", window=8_192)
    assert typed(replayed, "money", "0.25") == "0.25"
    assert typed(replayed, "request", "50%") == "75"
    assert "is a percentage, and this field takes tokens only" in replayed.status


# --- one move, one step; reset --------------------------------------------------------------------


def test_a_slow_move_of_a_slider_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand that holds a slider rests now and then; 0.1.0 made a step of every rest of more than a second."""
    explorer, now = BudgetExplorer("chat", window=8_192), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    before = explorer.budget
    for percent in (11, 12, 13):
        put(explorer, "line_system", f"{percent}%", gesture="drag line_system 1")
        now[0] += 2 * ONE_MOVE
    explorer._receive(explorer.view, {"kind": "rest"}, [])
    explorer.undo()
    assert explorer.budget == before


def test_two_quick_moves_of_a_slider_are_two_steps() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    for percent in (11, 12):
        put(explorer, "line_system", f"{percent}%", gesture=f"drag line_system {percent}")
        explorer._receive(explorer.view, {"kind": "rest"}, [])
    explorer.undo()
    assert explorer.budget.cap("system") == 901  # 11 %


def test_quick_presses_of_a_key_are_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer, now = BudgetExplorer("chat", window=8_192), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for percent in (11, 12, 13):
        put(explorer, "line_system", f"{percent}%", gesture="key line_system")
    now[0] += 2 * ONE_MOVE
    put(explorer, "line_system", "14%", gesture="key line_system")
    explorer.undo()
    assert explorer.budget.cap("system") == 1_064  # 13 %
    explorer.undo()
    assert explorer.budget == bk.presets.chat(8_192)


def test_reset_goes_back_to_what_the_explorer_was_called_with() -> None:
    own = bk.presets.rag(12_000).assign(system=500)
    explorer = BudgetExplorer(own, "support-chat", model="gpt-4.1", counter="chars/4")
    explorer.set(preset="agent")
    explorer.set(window=5_000)
    explorer.set(model="gpt-4o-mini")
    explorer.set(counter="o200k_base")
    assert explorer.view.state["actions"]["reset"]
    explorer.reset()
    assert (explorer.budget, explorer.config["model"], explorer.config["counter"]) == (
        own,
        "gpt-4.1",
        "chars/4",
    )
    assert not explorer.view.state["actions"]["reset"]


# --- where the numbers come from ------------------------------------------------------------------


def opened(
    explorer: Any, messages: list[dict[str, Any]], name: str = "mine.json", **more: Any
) -> Any:
    explorer._run_command(
        "file", name=name, content=json.dumps({"messages": messages, **more}).encode()
    )
    return explorer


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_an_estimate_is_never_said_to_be_exact(make: Callable[..., Any]) -> None:
    """estimate:o200k_base has the encoding of the model and guesses its count."""
    exact = make("chat", "support-chat") if make is BudgetExplorer else make("support-chat")
    assert "counted exactly with o200k_base" in exact.view.state["source"]
    exact.set(counter="estimate:o200k_base")
    assert (
        f"counted with estimate:o200k_base, an estimate for {DEFAULT_MODEL}"
        in exact.view.state["source"]
    )
    if make is BudgetExplorer:
        exact.set(compare="estimate:o200k_base")
        note = exact.view.figure_errors["note"]
        assert "estimate:o200k_base counts " in note
        assert f" {DEFAULT_MODEL}" in note


@pytest.mark.filterwarnings("ignore:.*No text in the")
@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_a_file_without_text_never_fits(make: Callable[..., Any]) -> None:
    explorer = opened(
        make(window=8_192),
        [{"role": "user", "stuff": "Hi"}, {"role": "assistant", "stuff": "Hello"}],
    )
    assert status(explorer)["level"] == "over"
    assert explorer.status.startswith(
        "No text in the 2 messages (OpenAI chat). Export the conversation with its texts."
    )
    assert "fits" not in explorer.status


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_what_reading_left_out_or_changed_is_said_as_it_stands(make: Callable[..., Any]) -> None:
    explorer = opened(make(window=8_192), SAID, warnings=["2 thoughts have no text"])
    assert "2 thoughts have no text." in read_of(explorer)["notes"]
    assert "2 thoughts have no text." not in status(explorer)["more"], (
        "it is no fault of the budget"
    )


def test_what_is_counted_otherwise_is_not_said_to_be_not_counted() -> None:
    notes = [
        "messages of branches are not counted: 1",
        "tool results without a call, counted as text: 3",
    ]
    explorer = opened(BudgetExplorer(window=8_192), SAID, warnings=notes)
    assert read_of(explorer)["notes"] == [f"{note[0].upper()}{note[1:]}." for note in notes]


def read_of(explorer: Any) -> dict[str, Any]:
    """Return what the page says was read of the file."""
    facts: dict[str, Any] = explorer.view.entry["facts"]
    return facts


def pressed(explorer: Any) -> Any:
    """Press the button that takes the model which the file names, with its window."""
    name = read_of(explorer)["model"]["name"]
    explorer._receive(explorer.view, {"kind": "model", "name": name, "whole": True}, [])
    return explorer


def test_a_session_offers_its_own_model_and_brings_its_prices() -> None:
    """The model was taken in silence, whatever stood in the box; now one button takes it."""
    explorer = ConversationExplorer("support-chat", window=8_192)
    explorer.open(Path(__file__).parents[1] / "formats" / "claude-code.jsonl")
    assert explorer.config["model"] == DEFAULT_MODEL
    own = bk.model("claude-sonnet-4-5")
    button = f"Use it, with its window of {own.window:,}"
    assert read_of(explorer)["model"]["button"] == button
    pressed(explorer)
    assert (explorer.config["model"], explorer.budget.window) == (own.name, own.window)
    assert explorer.stage.prices.model == own.name
    assert read_of(explorer)["model"] == {
        "text": "made for claude-sonnet-4-5, according to the file"
    }
    assert (
        pressed(opened(BudgetExplorer("chat"), SAID, model="gpt-4.1")).config["model"] == "gpt-4.1"
    )
    unknown = read_of(opened(BudgetExplorer("chat"), SAID, model="nobody knows"))["model"]
    assert unknown == {"text": "the file names an unknown model, nobody knows"}


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_a_shipped_conversation_has_the_door_above_it_and_a_file_what_was_read(
    make: Callable[..., Any],
) -> None:
    explorer = make(window=8_192)
    assert (
        explorer.view.entry["text"] == "Your own conversation: drop a file here, paste its text, or"
    )
    assert "facts" not in explorer.view.entry
    explorer.open(Path(__file__).parents[1] / "formats" / "chatgpt.json")
    facts = read_of(explorer)
    assert facts["format"] == "ChatGPT export"
    assert facts["messages"] == "4 messages: 1 user, 2 assistant, 1 tool"
    assert facts["conversations"] == [
        {"value": 0, "label": "1: Weather"},
        {"value": 1, "label": "2: A picture"},
    ]
    assert facts["notes"] == ["Not counted: 1 message on abandoned branches."]
    explorer._receive(explorer.view, {"kind": "conversation", "number": 1}, [])
    assert read_of(explorer)["conversation"] == 1
    assert read_of(explorer)["messages"] == "1 message: 1 user"


TABLE = b"case,by_whom,said_what\na,user,How is Oslo?\na,assistant,Sunny.\nb,user,And Bergen?\n"


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_a_table_whose_columns_are_not_known_is_asked_about(make: Callable[..., Any]) -> None:
    explorer = make(window=8_192)
    before = explorer.settings
    explorer._run_command("file", name="chat.csv", content=TABLE)
    asked = explorer.view.entry["columns"]
    assert asked["names"] == ["case", "by_whom", "said_what"]
    assert asked["text"] == "chat.csv is a table. Choose its columns"
    assert explorer.settings == before
    chosen = {"role": "by_whom", "content": "by_whom", "conversation": ""}
    explorer._receive(explorer.view, {"kind": "columns", **chosen}, [])
    assert "chosen twice" in explorer.status and "columns" in explorer.view.entry
    chosen = {"role": "by_whom", "content": "said_what", "conversation": "case"}
    explorer._receive(explorer.view, {"kind": "columns", **chosen}, [])
    assert [option["label"] for option in read_of(explorer)["conversations"]] == ["1: a", "2: b"]
    assert read_of(explorer)["messages"] == "2 messages: 1 user, 1 assistant"
    assert "columns" not in explorer.view.entry


def test_a_table_named_by_its_path_is_asked_about_as_well(tmp_path: Path) -> None:
    path = tmp_path / "chat.csv"
    path.write_bytes(TABLE)
    explorer = BudgetExplorer(window=8_192)
    explorer.open(path)
    assert "columns" in explorer.view.entry
    chosen = {"role": "by_whom", "content": "said_what", "conversation": ""}
    explorer._receive(explorer.view, {"kind": "columns", **chosen}, [])
    assert read_of(explorer)["messages"] == "3 messages: 2 user, 1 assistant"
    explorer._receive(explorer.view, {"kind": "columns", **chosen}, [])
    assert "No table is waiting for its columns" in explorer.status


def test_a_report_says_what_was_read(tmp_path: Path) -> None:
    explorer = BudgetExplorer("chat", Path(__file__).parents[1] / "formats" / "chatgpt.json")
    explorer.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "ChatGPT export, conversation 1 of 2, 4 messages: 1 user, 2 assistant, 1 tool." in page
    assert "Not counted: 1 message on abandoned branches." in page


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer, AccuracyExplorer])
def test_a_model_that_nobody_knows_keeps_the_window_and_names_the_nearest(
    make: Callable[..., Any],
) -> None:
    explorer = make(window=8_192)
    explorer.set(model="claude-sonet-4-5")
    assert shown(explorer, "model") == DEFAULT_MODEL
    assert shown(explorer, "window") == 8_192
    assert "claude-sonnet-4-5" in explorer.status


# --- the picture for those who have no kernel -----------------------------------------------------


def test_the_picture_that_is_stored_is_small_and_safe_and_says_what_the_view_says() -> None:
    explorer = BudgetExplorer("chat", "support-chat", window=8_192)
    drawn = report_html(explorer.view.state, repr(explorer))
    assert len(drawn) < 6_000
    for said in (
        explorer.status,
        "shared pool",
        "conversation",
        "BudgetExplorer(chat, gpt-5.4, window=8,192)",
    ):
        assert said in drawn
    assert not any(mark in drawn for mark in ("<script", "onerror", "javascript:", "http"))


def test_a_saved_notebook_takes_up_its_settings_where_the_cell_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored(explorer: Any) -> str:
        return report_html(explorer.view.state, repr(explorer), explorer._kept)

    def rerun(explorer: Any, cell: str) -> Any:
        shell = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": cell}})
        monkeypatch.setattr("IPython.get_ipython", lambda: shell)
        monkeypatch.setattr(explorer.still, "show", lambda drawn: None)
        explorer.show_still()
        return explorer

    asked = {"window": "16,384", "line_output": "30%", "model": "gpt-5", "line_user": 90}
    last = BudgetExplorer("chat", "support-chat", window=8_192)
    last.set(**asked)
    talk = bk.ConversationExplorer("support-chat", window=8_192)
    talk.set(policies=["claude-code", "last turns"], trace="coding-agent", request=7)
    untouched = BudgetExplorer("chat")
    assert "data-kept" not in stored(untouched)
    outputs = {"a": last, "b": talk, "c": last, "d": untouched}
    cells = [
        {"id": cell, "outputs": [{"data": {"text/html": stored(of).splitlines(True)}}]}
        for cell, of in outputs.items()
    ]
    notebook = tmp_path / "own.ipynb"
    notebook.write_text(json.dumps({"cells": [{"id": "text"}, *cells]}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(notebook))
    monkeypatch.setattr("budgetkit.lab.explorers.report._SHOWN", set())
    again = rerun(BudgetExplorer("chat", "support-chat", window=8_192), "a")
    assert (again.budget, again.settings.model) == (last.budget, "gpt-5")
    once_more = rerun(BudgetExplorer("chat", "support-chat", window=8_192), "a")
    assert once_more.budget.window == 8_192, "in the same kernel the code holds"
    spoken = rerun(bk.ConversationExplorer("support-chat", window=8_192), "b")
    assert spoken.config == talk.config | {"main": spoken.config["main"]}
    edited = rerun(BudgetExplorer("chat", "support-chat", window=32_768), "c")
    assert edited.budget.window == 32_768, "the cell was edited"
    assert rerun(BudgetExplorer("chat"), "d").settings == untouched.settings


def test_no_name_in_a_file_becomes_markup_in_the_picture() -> None:
    budget = bk.Budget(1_000, [], [bk.Allocation("<img src=x onerror=alert(1)>", 100)])
    assert "<img" not in report_html(BudgetExplorer(budget).view.state, "<b>")


# --- models by the names that people type ---------------------------------------------------------


@pytest.mark.parametrize(
    ("typed_in", "window"),
    [
        ("Qwen/Qwen3-32B", 32_768),
        ("qwen3:32b", 32_768),
        ("llama3.1:8b", 131_072),
        ("meta.llama3-1-8b-instruct-v1:0", 131_072),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", bk.model("claude-sonnet-4-5").window),
        ("bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", bk.model("claude-haiku-4-5").window),
        ("anthropic/claude-opus-4.5", bk.model("claude-opus-4-5").window),
        ("openai/gpt-4o:extended", 128_000),
        ("gpt4o", 128_000),
    ],
)
def test_models_are_found_as_people_type_them(typed_in: str, window: int) -> None:
    """genai-prices 0.2.3 lists the first four; a window is the one that most of their providers give."""
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.set(model=typed_in)
    assert (status(explorer)["level"] != "error", explorer.config["model"]) == (True, typed_in)
    assert bk.model(typed_in).window == window


def test_a_family_is_answered_with_its_members() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.set(model="claude")
    assert explorer.budget.window == 8_192
    assert explorer.status.count("'claude-") == 4


# --- accuracy -------------------------------------------------------------------------------------


def test_one_document_gives_no_interval(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("It was the best of times, it was the worst of times. " * 40)
    explorer = AccuracyExplorer(corpus=tmp_path)
    assert "one document" in explorer.texts["yaml"].splitlines()[0]
    assert "95 % interval" not in json.dumps(explorer.view.state)
    drawn = json.dumps(explorer.view.figure_buffers["spec"])
    assert "95 %" not in explorer.view.figure_buffers["note"], drawn


def test_a_conversation_given_by_its_path_is_read_message_by_message(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": SAID}))
    explorer = AccuracyExplorer(corpus=path)
    assert explorer.errors["class"].tolist() == ["user", "assistant"]
    assert explorer.errors["characters"].tolist() == [11, 6]


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer, AccuracyExplorer])
def test_every_control_has_a_tip_in_plain_words(make: Callable[..., Any]) -> None:
    explorer = make(window=8_192)
    controls = explorer.panel.controls.values()
    assert len(controls) > 5
    tips = [(control["label"], control["tip"]) for control in controls]
    tips += [(choice[0], choice[2]) for choice in explorer.view.choices.get("policies", ())]
    assert [label for label, tip in tips if not tip or tip == label] == []


def test_every_policy_says_what_it_does() -> None:
    assert all(choice.says for choice in CHOICES.values())


def test_sentences_for_the_hand_have_no_code() -> None:
    explorer = BudgetExplorer("chat", "support-chat", window=5_555)
    said = json.dumps(status(explorer))
    assert "system is required and needs 752 tokens" in said
    assert "in code" not in said
    assert "granularity" not in said


def test_what_is_copied_names_model_counter_and_file() -> None:
    explorer = BudgetExplorer(
        "chat", "support-chat", model="gpt-4.1", counter="chars/4", window=8_192
    )
    assert explorer.texts["yaml"].startswith("# gpt-4.1, counted with chars/4; support-chat\n")
    names: dict[str, Any] = {}
    exec(explorer.texts["python"], names)
    assert (names["budget"], names["count"].name, names["trace"].id) == (
        explorer.budget,
        "chars/4",
        "support-chat",
    )
    explorer.load(explorer.texts["yaml"])
    assert explorer.budget == names["budget"], "and it is read again"


@pytest.mark.parametrize("made", [partial(BudgetExplorer, "chat"), ConversationExplorer])
def test_what_is_copied_reads_the_file_again_or_says_that_its_path_is_not_known(
    made: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"role": "user", "content": "Where is my parcel?"}\n', encoding="utf-8")
    names: dict[str, Any] = {}
    exec(made(path).texts["python"], names)
    assert names["trace"].messages == bk.load_trace(path).messages
    dropped = made(bk.load_trace(path)).texts["python"]
    assert "\n# Write the path of the file here: trace = bk.load_trace('mine')" in dropped
    assert "\ntrace =" not in dropped


def test_conversations_of_an_export_go_by_their_titles() -> None:
    path = Path(__file__).parents[1] / "formats" / "chatgpt.json"
    first, second = bk.load_traces(path)
    assert (first.title, first.id) == (first.fields["title"], "conv1")
    explorer = BudgetExplorer("chat", path)
    assert labels(explorer, "conversation") == [f"1: {first.title}", f"2: {second.title}"]
    assert f"conversation 1 of 2 ({first.title})" in explorer.view.state["source"]
    assert bk.Trace("mine", first.messages).title == "mine"


@pytest.mark.parametrize("made", [BudgetExplorer, ConversationExplorer])
def test_a_conversation_of_many_is_found_by_a_part_of_its_title(made: Callable[..., Any]) -> None:
    titles = [
        "Trip to Porto",
        "A parser in Rust",
        "Bread",
        "Porto again",
        "Taxes",
        "Names for a cat",
    ]
    messages = bk.load_trace("support-chat").messages[:3]
    traces = [
        bk.Trace(f"c{i}", messages, fields={"title": title}) for i, title in enumerate(titles)
    ]
    explorer = made(trace=traces)
    assert labels(explorer, "conversation")[3:5] == ["4: Porto again", "5: Taxes"]
    assert typed(explorer, "conversation", "porto") == "1: Trip to Porto"
    assert explorer.config["conversation"] == 0, "what is shown has it too, and stays"
    assert typed(explorer, "conversation", "RUST") == "2: A parser in Rust"
    assert explorer.config["conversation"] == 1
    assert typed(explorer, "conversation", "nowhere") == "2: A parser in Rust"
    assert status(explorer)["text"] == (
        "None of the 6 titles contains 'nowhere'. Type part of another title."
    )
    assert status(explorer)["beside"] == "conversation"
    assert explorer.config["conversation"] == 1
    assert typed(explorer, "conversation", "4: Porto again") == "4: Porto again"


@pytest.mark.parametrize("made", [BudgetExplorer, ConversationExplorer])
def test_a_move_lists_the_titles_of_a_file_no_more(
    made: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 5,000 conversations each move listed and searched all, in more time than all else takes."""
    messages = bk.load_trace("support-chat").messages[:3]
    explorer = made(trace=[bk.Trace(f"c{i}", messages) for i in range(6)])
    asked = set[str]()

    def title(trace: bk.Trace) -> str:
        asked.add(trace.id)
        return trace.id

    monkeypatch.setattr(bk.Trace, "title", property(title))
    before = explorer.budget.window
    explorer._receive(
        explorer.view, {"kind": "size", "line": "window", "size": 5_000, "gesture": "a"}, []
    )
    assert before != explorer.budget.window == 5_000
    assert asked <= {"c0"}, "the one that is shown"
    explorer._receive(explorer.view, {"kind": "conversation", "number": 3}, [])
    assert shown(explorer, "conversation") == "4: c3"


def test_a_file_of_few_conversations_has_no_search() -> None:
    messages = bk.load_trace("support-chat").messages[:3]
    explorer = BudgetExplorer("chat", [bk.Trace(str(i), messages) for i in range(2)])
    drawn = explorer.panel.controls["conversation"]
    assert (drawn["is"], drawn["value"]) == ("choice", 0)
    assert "conversation" not in BudgetExplorer("chat", "support-chat").panel.controls


def test_a_conversation_of_one_turn_is_told_as_one() -> None:
    said = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "On its way."},
    ]
    planned, replayed = bk.BudgetExplorer("chat", said, window=8_192), bk.ConversationExplorer(said)
    assert planned.status == "The only turn fits."
    assert "turn 1 of 1, 2 messages, " in planned.view.state["source"]
    assert "its one request holds everything" in replayed.status
    assert "2 messages, 1 turn, 1 request, " in replayed.view.state["source"]
    assert replayed.view.reader["note"].startswith("1 message, ")
