"""The explorer without a browser: one value behind all widgets, one way to change it, and what follows from it."""

import gzip
import json
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import plotly
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.amounts import Share
from budgetkit.counters import Counter
from budgetkit.extras.endpoints import EndpointError
from budgetkit.lab.explorers import BudgetExplorer
from budgetkit.lab.explorers.accuracy import AccuracyExplorer
from budgetkit.lab.explorers.budget.settings import BudgetSettings, resized, shortest_ratio
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.undo import UndoStack
from budgetkit.lab.explorers.view import LARGEST, View, plotly_script
from budgetkit.models import DEFAULT_MODEL
from budgetkit.state import from_json, from_yaml, to_yaml
from tests.lab.panel import Change, kpi, level, lines, made_by, percent, put, refused, shown, slide

HELLO = {"role": "user", "content": "Hello world"}
ANSWER = {"role": "assistant", "content": "Hello. What can I do for you today?"}
EXTRA = "litellm:anthropic_tokenizer.json"


def conversation(turns: int, name: str = "toy") -> bk.Trace:
    messages = [{"role": "system", "content": "Be brief and kind."}, *[HELLO, ANSWER] * turns]
    return bk.Trace(name, tuple(bk.Message(message) for message in messages))


def hear(
    explorer: BudgetExplorer, content: dict[str, Any], *buffers: bytes
) -> list[dict[str, Any]]:
    """Send what a page would send; return what the page is told beside the state."""
    told: list[dict[str, Any]] = []
    send, explorer.view.send = (
        explorer.view.send,
        lambda content, buffers=None: told.append(content),
    )
    try:
        explorer._receive(explorer.view, content, list(buffers))
    finally:
        explorer.view.send = send
    return told


# --- it shows what it was given -------------------------------------------------------------------


@pytest.mark.parametrize("name", list(bk.presets.PRESETS))
def test_untouched_it_holds_the_preset_itself(name: str) -> None:
    explorer = BudgetExplorer(name, window=32_768)
    assert explorer.budget == bk.presets.PRESETS[name](32_768)
    assert lines(explorer) == list(
        dict.fromkeys(
            [
                "output",
                *(r.name for r in explorer.budget.reserves),
                "safety",
                *explorer.budget.sections,
            ]
        )
    )


def test_a_preset_given_as_a_budget_is_that_preset() -> None:
    explorer = BudgetExplorer(bk.presets.chat(8_192))
    assert (shown(explorer, "preset"), explorer.budget) == ("chat", bk.presets.chat(8_192))


def test_a_budget_of_ones_own_is_kept_as_it_is() -> None:
    own = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("notes", Share(0.25))])
    explorer = BudgetExplorer(own)
    assert explorer.budget == own
    assert set(lines(explorer)) == {"output", "safety", "notes"}


def test_it_prints_the_same_text_every_time_and_shows_as_a_widget() -> None:
    explorer = BudgetExplorer("chat")
    bundle, _ = explorer._repr_mimebundle_()
    text = "BudgetExplorer(chat, gpt-5.4, window=1,050,000)"
    assert repr(explorer) == bundle["text/plain"] == text
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_what_is_typed_in_and_a_conversation_of_the_same_size_are_granted_alike() -> None:
    """A required section over its cap: 0.1.0 granted 819 of 900 as a typed number, and all of it as a message."""
    typed = BudgetExplorer("rag", window=8_192)
    typed.set(demand_system=900)
    said = {"role": "system", "content": "x" * 4 * 900}
    read = BudgetExplorer(
        "rag", bk.Trace("toy", (bk.Message(said),)), window=8_192, counter="chars/4"
    )
    assert typed.plan["system"].granted == 900
    assert read.plan["system"].granted == read.plan["system"].demand >= 900


def test_without_a_trace_the_sections_ask_for_their_typical_sizes() -> None:
    """The example sizes of document 002: system 1,200, procedure 300, knowledge 1,500, episodes 400, current 100."""
    explorer = BudgetExplorer("working_memory", window=150_000)
    explorer.move("output", 8_192)
    assert explorer.plan["history"].limit == 138_308
    explorer.set(demand_system=2_200)
    assert explorer.plan["history"].limit == 137_308
    assert kpi(explorer, "remainder") == "137,308"


# --- every control, set from code, does what a hand does ------------------------------------------


def test_every_line_has_a_slider_in_percent_and_a_box_in_tokens() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    assert (percent(explorer, "retrieval"), shown(explorer, "line_retrieval")) == (25.0, 2_048)
    put(explorer, "line_retrieval", "30%")
    assert (shown(explorer, "line_retrieval"), explorer.budget.cap("retrieval")) == (2_457, 2_457)
    put(explorer, "line_retrieval", "1,024")
    assert (percent(explorer, "retrieval"), explorer.budget.cap("retrieval")) == (12.5, 1_024)


@pytest.mark.parametrize("preset", ["chat", "rag", "agent", "memory_engine"])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize("step", [-0.5, 0.5])
def test_every_press_of_a_slider_changes_the_plan_also_where_a_limit_holds(
    preset: str, model: str, step: float
) -> None:
    """The answer's share of 15 % is held by what the model writes at most: on 0.2.0 the first presses did nothing."""
    explorer = bk.BudgetExplorer(preset, model=model)
    start = percent(explorer, "output")
    assert abs(start - 100 * explorer.budget.sizes["output"] / explorer.budget.window) <= 0.25
    presses = 4 if step > 0 else min(4, int(start / -step))
    for _ in range(presses):
        before = explorer.budget.sizes["output"]
        put(explorer, "line_output", f"{percent(explorer, 'output') + step}%")
        assert (explorer.budget.sizes["output"] - before) * step > 0
    assert shown(explorer, "line_output") == explorer.budget.sizes["output"]


def test_code_sets_what_a_hand_sets_and_hears_of_each_change() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    windows = list[int]()
    explorer.view.observe(lambda change: windows.append(explorer.budget.window), "state")
    explorer.set(preset="rag", window="16k")
    explorer.undo()
    assert windows == [8_192, 16_000, 8_192]
    explorer.lock("output")
    explorer.move("output", 7)
    assert "is locked at" in explorer.status
    explorer.lock("output", on=False)
    explorer.move("output", "25%")
    assert explorer.budget.reserves[0].size == Share(0.25)
    with pytest.raises(LookupError, match=r"Did you mean 'window'\? Choose one of: 'model', "):
        explorer.set(widow=5)
    with pytest.raises(LookupError, match="Unknown control 'line_outptu'"):
        explorer.move("outptu", 5)


def test_a_share_stays_a_share_and_follows_the_window() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.move("retrieval", 1_024)
    explorer.set(window=16_384)
    assert explorer.budget.cap("retrieval") == 2_048


def test_tokens_stay_tokens() -> None:
    explorer = BudgetExplorer("working_memory", window=8_192)
    explorer.move("knowledge", "10%")
    explorer.set(window=16_384)
    assert explorer.budget.cap("knowledge") == 819


def test_at_the_end_of_its_slider_a_section_has_no_cap() -> None:
    explorer = BudgetExplorer("working_memory", window=8_192)
    explorer.move("knowledge", "100%")
    assert explorer.budget.caps["knowledge"] is None
    explorer.move("knowledge", "50%")
    assert explorer.budget.caps["knowledge"] == 4_096


def test_a_share_that_lost_its_cap_comes_back_as_a_share() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.move("retrieval", "100%")
    assert explorer.budget.caps["retrieval"] is None
    explorer.move("retrieval", "25%")
    assert explorer.budget == bk.presets.chat(8_192)
    explorer.move("retrieval", None)
    explorer.move("retrieval", 2_048)
    assert explorer.budget == bk.presets.chat(8_192)


def test_the_lines_of_a_preset_come_back_with_it() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    before = explorer.panel.controls
    explorer.set(preset="agent")
    assert lines(explorer) == ["output", "safety", *explorer.budget.sections]
    explorer.set(preset="chat")
    assert explorer.panel.controls == before


def test_the_output_reserve_is_a_ratio_between_a_minimum_and_a_maximum() -> None:
    explorer = BudgetExplorer("memory_engine", window=128_000)
    keys = ("at_least", "at_most", "line_output")
    assert [shown(explorer, key) for key in keys] == [500, 4_096, 4_096]
    explorer.set(at_most=8_000)
    assert explorer.budget.sizes["output"] == 8_000
    explorer.set(at_most=128_000)
    assert explorer.budget.sizes["output"] == 19_200
    explorer.set(at_least="20k")
    assert explorer.budget.reserves[0].size == Share(0.15, 20_000)


def test_a_safety_reserve_can_be_moved_even_where_the_preset_has_none() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.move("safety", 500)
    assert explorer.budget.sizes["safety"] == 500
    assert explorer.budget.shared_pool == bk.presets.chat(8_192).shared_pool - 500


def test_another_model_brings_its_window_and_the_shares_follow() -> None:
    explorer = BudgetExplorer("chat")
    explorer.set(model="gpt-4")
    assert explorer.budget == bk.presets.chat(8_192)
    assert kpi(explorer, "window") == "8,192"


def test_a_model_that_nobody_knows_changes_nothing_and_the_nearest_are_named() -> None:
    explorer = BudgetExplorer("chat")
    explorer.set(model="gpt-4oo")
    assert (explorer.budget.window, shown(explorer, "model")) == (1_050_000, DEFAULT_MODEL)
    assert level(explorer) == "error"
    assert "'gpt-4oo'" in explorer.status
    assert "Choose one of: 'gpt-4o'" in explorer.status
    assert explorer.view.state["status"]["picks"][0] == "gpt-4o"
    explorer.set(model="my-own-llm")
    assert explorer.status.startswith("No model 'my-own-llm' is listed. To use an unlisted model,")
    assert explorer.view.state["status"]["picks"] == []


def test_a_model_that_nobody_knows_can_be_given_in_code_and_is_said_so() -> None:
    explorer = BudgetExplorer("chat", model="no-such-model-1")
    assert explorer.budget.window == 8_192
    assert "Unknown model 'no-such-model-1'" in explorer.view.state["status"]["more"][0]


def test_a_model_with_an_input_window_keeps_its_kind_at_another_size() -> None:
    explorer = BudgetExplorer("chat", model="gpt-5", window=100_000)
    assert (explorer.budget.kind, explorer.budget.usable) == ("input", 100_000)
    assert made_by(explorer.texts["python"]) == explorer.budget


def test_where_the_answer_comes_on_top_of_the_window_every_place_says_so() -> None:
    """gpt-5 takes 272,000 tokens of input; 40,800 reserved for the answer claim nothing of them, and are not none."""
    explorer = BudgetExplorer("chat", model="gpt-5")
    output = next(s for s in explorer.view.state["bar"]["segments"] if s["key"] == "output")
    assert (output["tokens"], output["text"]) == (0, "40,800 on top")
    assert output["tip"] == "output: 40,800 tokens; the answer comes on top of the window"
    assert explorer.panel.controls["line_output"]["label"] == "output, on top"
    window = explorer.view.state["kpis"][0]
    assert (window["label"], window["tip"]) == (
        "input window",
        "input window: 272,000 tokens; the answer comes on top of the window",
    )
    assert "The answer comes on top of the window." in explorer.view.state["bar"]["hint"]
    explorer.set(model="gpt-4o")
    assert explorer.panel.controls["line_output"]["label"] == "output"
    assert explorer.view.state["kpis"][0]["label"] == "context window"


def test_what_sections_leave_of_the_shared_pool_is_not_called_the_shared_pool() -> None:
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    pool = next(s for s in explorer.view.state["bar"]["segments"] if s["kind"] == "pool")
    user = explorer.plan["user"].granted
    assert (pool["name"], pool["tokens"]) == ("left in pool", explorer.budget.shared_pool - user)
    assert (
        f"user took {user:,} of {explorer.budget.shared_pool:,} in the shared pool" in pool["tip"]
    )
    assert "typical sizes" in BudgetExplorer("chat").view.state["source"]
    explorer.move("user", 500)
    pool = next(s for s in explorer.view.state["bar"]["segments"] if s["kind"] == "pool")
    assert (pool["name"], pool["text"]) == ("shared pool", kpi(explorer, "pool"))


# --- more than there is: drawn and signed, never an error -----------------------------------------


def test_over_commitment_is_signed_drawn_and_says_how_to_mend_it() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.move("output", "60%")
    assert explorer.budget.shared_pool == -2_047
    assert (level(explorer), kpi(explorer, "pool")) == ("over", "\u22122,047")
    assert explorer.view.state["bar"]["end_text"] == "Window ends at 8,192; over by 2,047"
    assert "Lower a cap or a reserve" in explorer.status
    assert sum(s["tokens"] for s in explorer.view.state["bar"]["segments"]) > 8_192
    explorer.move("output", "15%")
    assert explorer.budget == bk.presets.chat(8_192), "and it raises again where it did"


def test_every_section_that_loses_is_named_with_what_would_mend_it_the_largest_loss_first() -> None:
    sections = [
        bk.Allocation("system", 3),
        bk.Allocation("history", 40, keep="newest"),
        bk.Allocation("notes"),
    ]
    budget = bk.Budget(
        60, (), sections, undeclared="pool", roles={"user": "history", "assistant": "notes"}
    )
    explorer = BudgetExplorer(budget)
    explorer.set(demand_system=10)
    explorer.set(demand_history=90)
    explorer.set(demand_notes=20)
    # And each section has its own sentence, once.
    assert explorer.status == "60 tokens of the demand are cut."
    assert explorer.view.state["status"]["more"] == [
        "history loses 50 of 90 tokens because it is over its cap (40). The cap cannot rise. Lower other caps "
        "or a reserve, choose a larger window, or shorten the text.",
        "system loses 7 of 10 tokens because it is over its cap (3). The cap cannot rise. Lower other caps "
        "or a reserve, choose a larger window, or shorten the text.",
        "notes loses 3 of 20 tokens because the window (60) is full. Lower a reserve, shorten another "
        "section, or choose a window larger by 3.",
    ]


def test_a_minus_stands_before_numbers_and_hyphens_stay_in_names() -> None:
    lines = [bk.Allocation("tool-results", 900), bk.Allocation("re-used", required=True)]
    budget = bk.Budget(
        1_000,
        (),
        lines,
        remainder="re-used",
        roles={"user": "tool-results", "assistant": "re-used"},
    )
    explorer = BudgetExplorer(replace(budget, undeclared="pool"), conversation(3))
    assert "re-used may take " in explorer.view.figure_turns["note"]
    explorer.move("safety", 400)
    assert explorer.view.figure_waterfall["note"].startswith("The window minus reserves and ")
    assert "tokens for re-used." in explorer.view.figure_waterfall["note"]
    assert (kpi(explorer, "pool"), explorer.view.state["kpis"][-2]["label"]) == (
        "\u2212300",
        "re-used budget",
    )
    assert "re-used budget" in json.dumps(
        explorer.view.figure_errors["spec"]["layout"]["annotations"]
    )


def test_too_much_claimed_does_not_hide_what_is_lost() -> None:
    explorer = BudgetExplorer("chat", conversation(40), window=1_000)
    explorer.move("output", "60%")
    assert "exceed the window" in explorer.status
    assert explorer.view.state["status"]["more"][0].startswith("At turn 40, conversation loses ")


# --- errors: one sentence, and what held still holds ----------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"window": 5}, "Choose a window of 10 or more"),
        ({"counter": "nonsense"}, "Unknown counter 'nonsense'"),
        ({"counter": EXTRA}, "pip install 'budgetkit[makers]'"),
        ({"path": "no/such.jsonl"}, "no/such.jsonl"),
        (
            {"kind": "load", "text": "budgetkit: 1\nbudget: {windw: 3}"},
            "Unknown key in budget: 'windw'",
        ),
        ({"kind": "load", "text": "{"}, "Invalid JSON in saved state"),
        ({"kind": "size", "line": "histroy", "size": 3}, "Unknown reserve or section 'histroy'"),
        ({"kind": "size", "line": "system", "size": -3}, "Invalid system: -3. Use 0 or more."),
        ({"kind": "preset", "name": "chatt"}, "Unknown preset 'chatt'"),
        ({"kind": "explode"}, "Unknown command 'explode'"),
        ({"kind": "turn", "turn": 99}, "Choose a number from 1 to 3"),
        ({"kind": "conversation", "number": 7}, "Choose 0, the only one."),
    ],
)
def test_what_cannot_be_is_said_and_what_held_still_holds(
    change: Change, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)  # the extra is not installed
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    plan = explorer.plan
    refused(explorer, change, said)
    assert explorer.plan == plan
    assert shown(explorer, "window") == 8_192, "the widgets go back, too"
    explorer.move("system", 900)
    assert level(explorer) != "error", "the next change is shown as ever"


@pytest.mark.parametrize(
    "kind",
    [partial(BudgetExplorer, "chat", conversation(3)), ConversationExplorer, AccuracyExplorer],
)
def test_every_explorer_says_what_an_extra_or_an_endpoint_lacks(
    kind: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an ImportError nor an EndpointError, a RuntimeError, leaves a widget that shows what does not hold."""
    monkeypatch.setitem(sys.modules, "litellm", None)
    explorer = kind()
    held = shown(explorer, "counter")
    explorer.set(counter=EXTRA)
    assert (level(explorer), shown(explorer, "counter")) == ("error", held)
    assert "pip install 'budgetkit[makers]'" in explorer.status

    def refuse(name: str) -> Counter:
        raise EndpointError("the endpoint did not answer; ask again later")

    monkeypatch.setattr("budgetkit.lab.explorers.shelves.counter", refuse)
    explorer.set(counter="chars/3")
    assert (explorer.status, shown(explorer, "counter")) == (
        "the endpoint did not answer; ask again later",
        held,
    )


def test_what_cannot_be_drawn_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure, a text or the reader that fails leaves the settings, the widgets and every figure as they were."""
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    before = explorer.budget, explorer.texts, explorer.view.figure_waterfall, kpi(explorer, "pool")

    def fail(*given: Any) -> Any:
        raise ValueError("nothing can be drawn of this")

    for part in ("charts", "texts", "reader"):
        with monkeypatch.context() as patched:
            patched.setattr(explorer, "kind", replace(explorer.kind, **{part: fail}))  # type: ignore[arg-type]
            explorer.move("system", 900)
            assert explorer.status == "nothing can be drawn of this"
        assert (
            explorer.budget,
            explorer.texts,
            explorer.view.figure_waterfall,
            kpi(explorer, "pool"),
        ) == before
        assert shown(explorer, "line_system") == 819
        assert not explorer.view.state["actions"]["undo"]


def test_a_table_that_cannot_be_made_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = BudgetExplorer("chat", window=8_192)

    def fail(*given: Any) -> Any:
        raise ValueError("no table can be made of this")

    monkeypatch.setattr(explorer, "kind", replace(explorer.kind, charts=fail))
    explorer.view.opened = ["waterfall"]
    assert (level(explorer), explorer.status) == ("error", "no table can be made of this")


def test_a_broken_file_names_its_line_and_leaves_the_conversation(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n{"messages": [}\n')
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    explorer.open(broken)
    assert level(explorer) == "error"
    assert "line 2" in explorer.status
    assert explorer.config["trace"] == "toy"


def test_a_path_that_cannot_be_read_gives_way_to_the_last_one_that_could(tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n')
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    explorer.set(path="no/such.jsonl")
    assert ("no/such.jsonl" in explorer.status, shown(explorer, "path")) == (True, "")
    explorer.set(path=str(good))
    explorer.set(path="no/such.jsonl")
    assert ("no/such.jsonl" in explorer.status, shown(explorer, "path")) == (True, str(good))
    explorer.set(trace="support-chat")
    assert shown(explorer, "path") == "", "what is shown is no longer that file"


# --- locks, undo, reset, pin ----------------------------------------------------------------------


def test_a_locked_line_keeps_its_tokens_whatever_else_changes() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.lock("system")
    explorer.set(window=16_384)
    assert (explorer.budget.cap("system"), explorer.budget.cap("memory")) == (819, 1_638)
    explorer.set(preset="agent")
    assert explorer.budget.cap("system") == 819
    explorer.reset()
    assert (explorer.budget.cap("system"), explorer.budget.window) == (819, 8_192), (
        "as it was called"
    )
    assert explorer.panel.controls["line_system"]["locked"]


def test_a_locked_line_refuses_to_move_until_it_is_unlocked() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.lock("system")
    explorer.move("system", 900)
    assert explorer.status == "'system' is locked at 819 tokens. Unlock it first."
    assert shown(explorer, "line_system") == 819
    explorer.lock("system", False)
    explorer.move("system", 900)
    assert explorer.budget.cap("system") == 900


def test_a_section_is_switched_off_and_on_again_with_the_cap_it_began_with() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer._run_command("switch", line="retrieval", on=False)
    assert explorer.budget.cap("retrieval") == 0
    assert explorer.panel.controls["line_retrieval"]["share"] == "off"
    explorer._run_command("switch", line="retrieval", on=True)
    explorer.set(window=16_384)
    assert explorer.budget.cap("retrieval") == 4_096, "a share of the window, as before"
    assert "switch" not in explorer.panel.controls["line_user"], "what is required is always sent"
    explorer._run_command("switch", line="output", on=False)
    assert explorer.status.startswith("Unknown section 'output'.")


def test_undo_and_redo_walk_through_every_kind_of_change() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    seen = [explorer.budget]
    explorer.move("system", 900)
    seen.append(explorer.budget)
    explorer.set(preset="rag")
    seen.append(explorer.budget)
    explorer.set(model="gpt-4")
    seen.append(explorer.budget)
    for budget in reversed(seen[:-1]):
        explorer.undo()
        assert explorer.budget == budget
    assert shown(explorer, "preset") == "chat"
    explorer.undo()
    assert explorer.budget == seen[0], "at its beginning nothing is left to take back"
    for budget in seen[1:]:
        explorer.redo()
        assert explorer.budget == budget


def test_one_drag_is_one_step_back() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    for tokens in range(900, 1_000, 10):
        hear(
            explorer,
            {
                "kind": "size",
                "line": "system",
                "size": tokens,
                "gesture": "drag system 1",
                "id": "1",
            },
        )
    assert explorer.budget.cap("system") == 990
    explorer.undo()
    assert explorer.budget == bk.presets.chat(8_192)


def test_a_pinned_budget_stays_in_sight_and_is_compared() -> None:
    explorer = BudgetExplorer("chat", conversation(40), window=1_000)
    explorer.pin()
    explorer.move("conversation", "40%")
    kpis = {k["key"]: k["change"] for k in explorer.view.state["kpis"]}
    assert (kpis["window"], kpis["pool"], kpis["remainder"]) == (
        "same as pinned",
        "\u2212200 vs. pinned",
        "+200 vs. pinned",
    )
    assert explorer.view.state["bar"]["pinned"]["text"] == "pinned: chat, 1,000 tokens"
    assert "pinned limit" in json.dumps(explorer.view.figure_turns)
    explorer.pin()
    assert explorer.view.state["bar"]["pinned"] is None


def test_a_pinned_budget_of_another_preset_is_planned_with_its_own_roles() -> None:
    """What the chat calls conversation and user, a working memory calls history and current."""
    explorer = BudgetExplorer("chat", conversation(40), window=8_192)
    explorer.pin()
    explorer.set(preset="working_memory")
    pinned = explorer.stage.pinned
    assert pinned is not None
    assert pinned.warnings == ()
    assert {g.section for g in pinned.grants if g.demand} == {"system", "conversation", "user"}


# --- take it away, and bring it back --------------------------------------------------------------


def with_moved_lines() -> BudgetExplorer:
    explorer = BudgetExplorer("chat", window=8_192)
    explorer.move("system", 900)
    explorer.move("output", "20%")
    return explorer


def with_a_lock() -> BudgetExplorer:
    explorer = BudgetExplorer("agent", model="gpt-4")
    explorer.lock("tool")
    explorer.set(window=20_000)
    return explorer


def over_committed() -> BudgetExplorer:
    explorer = BudgetExplorer("rag", window=8_192)
    explorer.move("retrieval", "90%")
    return explorer


def with_a_safety_reserve() -> BudgetExplorer:
    explorer = BudgetExplorer("working_memory")
    explorer.move("safety", "3%")
    return explorer


def of_ones_own() -> BudgetExplorer:
    explorer = BudgetExplorer(
        bk.Budget(900, [bk.Reserve("output", 90)], [bk.Allocation("my notes", Share("0.3", 10))])
    )
    explorer.move("my notes", 300)
    return explorer


LEFT = [with_moved_lines, with_a_lock, over_committed, with_a_safety_reserve, of_ones_own]
LEFT += [partial(BudgetExplorer, name) for name in bk.presets.PRESETS]


@pytest.mark.parametrize("make", LEFT)
def test_what_is_copied_makes_the_same_budget_again(make: Callable[[], BudgetExplorer]) -> None:
    explorer = make()
    copied = explorer.texts
    assert made_by(copied["python"]) == explorer.budget
    assert from_yaml(copied["yaml"]) == explorer.budget
    assert from_json(copied["json"]) == explorer.budget


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_a_saved_state_is_loaded_and_can_be_taken_back(format: str) -> None:
    saved = with_moved_lines()
    explorer = BudgetExplorer("rag")
    explorer.load(saved.texts[format])
    assert explorer.budget == saved.budget
    explorer.undo()
    assert explorer.budget == BudgetExplorer("rag").budget


def test_the_config_is_plain_data() -> None:
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    assert json.loads(json.dumps(explorer.config)) == explorer.config
    assert {**explorer.config, "budget": None} == {
        "model": DEFAULT_MODEL,
        "preset": "chat",
        "counter": DEFAULT_MODEL,
        "trace": "toy",
        "conversation": 0,
        "turn": 3,
        "locked": [],
        "budgetkit": 1,
        "budget": None,
    }


# --- conversations --------------------------------------------------------------------------------


class Watched:
    """A counter that notes what it was asked."""

    def __init__(self, own: Counter, asked: list[str]) -> None:
        self.own, self.asked = own, asked
        self.name, self.exact, self.encoding = own.name, own.exact, getattr(own, "encoding", "")

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return self.own(text)

    def many(self, texts: Sequence[str]) -> list[int]:
        self.asked.extend(texts)
        return self.own.many(texts)


def test_a_conversation_is_counted_once_and_a_move_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "budgetkit.lab.explorers.shelves.counter", lambda name: Watched(bk.counter(name), asked)
    )
    explorer = BudgetExplorer("working_memory", conversation(30), window=4_096)
    assert asked, "once, with the exact counter and with the rough one"
    asked.clear()
    explorer.move("output", "20%")
    explorer.move("knowledge", 100)
    explorer.set(turn=12)
    explorer.pin()
    explorer.undo()
    explorer.set(preset="chat")
    assert asked == []


def test_a_move_makes_the_preset_once_and_lists_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = BudgetExplorer("chat", conversation(30), window=4_096)
    made: list[str] = []
    real = bk.presets.PRESETS["chat"]

    def preset(name: str) -> Any:
        made.append(name)
        return real

    monkeypatch.setattr("budgetkit.lab.explorers.budget.settings.preset", preset)
    monkeypatch.setattr(Path, "rglob", lambda *given: made.append("a folder"))
    explorer.move("output", "20%")
    assert made == [], "known from the first look on"
    explorer.set(window=16_411)
    assert made == ["chat"]


def test_the_turn_says_what_is_planned() -> None:
    trace = conversation(30)
    explorer = BudgetExplorer("working_memory", trace, window=4_096)
    count = bk.counter(DEFAULT_MODEL)
    roles = explorer.budget.roles
    assert explorer.plan == bk.fit(explorer.budget, trace.items(30, count, roles))
    explorer.set(turn=12)
    assert explorer.plan == bk.fit(explorer.budget, trace.items(12, count, roles))
    assert explorer.config["turn"] == 12


@pytest.mark.parametrize(
    ("preset", "trace", "window"),
    [
        ("working_memory", "support-chat", 8_000),
        ("chat", "support-chat", 16_384),
        ("agent", "coding-agent", 16_384),
        ("agent_prompt", "mixed-language", 8_192),
    ],
)
def test_every_turn_is_planned_as_the_chosen_one_is(preset: str, trace: str, window: int) -> None:
    """The figure over the turns, the first cut and the figure of one turn tell one story, item by item."""
    explorer = BudgetExplorer(preset, trace, window=window)
    explorer.view.opened = ["turns"]
    drawn: Any = explorer.view.figure_turns["table"]
    names = [column["name"] for column in drawn["columns"]]
    for row in drawn["rows"][::7] + drawn["rows"][-1:]:
        told = dict(zip(names, row, strict=True))
        explorer.set(turn=int(told["turn"]))
        rest = explorer.budget.remainder
        grants = explorer.plan.grants if rest is None else [explorer.plan[rest]]
        assert told["granted"] == f"{sum(grant.granted for grant in grants):,}"
        assert told["demand"] == f"{sum(grant.demand for grant in grants):,}"
        assert told["cut"] == f"{sum(grant.cut for grant in explorer.plan.grants):,}"
        assert rest is None or told["limit"] == f"{explorer.plan.remainder:,}"
    cuts = [row[0] for row in drawn["rows"] if row[names.index("cut")] != "0"]
    assert kpi(explorer, "first") == (f"turn {cuts[0]}" if cuts else "none")


def test_the_first_cut_knows_of_the_best_few_and_of_whole_items() -> None:
    """Six passages in the first turn and the best three stay: that is a cut, however large the window is."""
    assert kpi(BudgetExplorer("working_memory", "support-chat"), "first") == "turn 1"
    required = bk.Budget(4_000, (), [bk.Allocation("system", 3, required=True)], undeclared="pool")
    explorer = BudgetExplorer(required, conversation(3))
    assert explorer.plan["system"].granted > 3, "what is required stays whole over its cap"
    assert kpi(explorer, "first") == "none"


def test_of_many_conversations_one_is_shown_and_all_are_counted() -> None:
    many = [conversation(3, "short"), conversation(60, "long")]
    explorer = BudgetExplorer("chat", many, window=1_000)
    assert explorer.view.state["figures"][-1] == "conversations"
    assert (
        explorer.view.figure_conversations["note"]
        == "1 of 2 conversations lose something in at least one turn."
    )
    explorer.set(conversation=1)
    assert (slide(explorer, "turn")["max"], explorer.plan["conversation"].cut > 0) == (60, True)


@pytest.mark.parametrize("limit", ["MOST_TURNS", "MOST_ITEMS"])
def test_of_what_is_too_long_sections_are_cut_anywhere_and_the_page_says_so(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty turns of up to 40 messages are 420 items: with no more than 30 of either allowed, none are made."""
    monkeypatch.setattr(
        f"budgetkit.lab.explorers.budget.results.{limit}",
        {"MOST_TURNS": 15, "MOST_ITEMS": 30}[limit],
    )
    explorer = BudgetExplorer(
        "chat", [conversation(20, "long"), conversation(2, "short")], window=1_000
    )
    anywhere = "turns are too many to plan message by message, so a cut may split a message."
    assert explorer.view.figure_turns["note"].endswith(f" 20 {anywhere}")
    assert explorer.view.figure_conversations["note"].endswith(f" 22 {anywhere}")
    assert explorer.stage.requests is not None
    requests = explorer.stage.turns, explorer.stage.requests.all_turns()
    assert [each.items for each in requests if each is not None] == [None, None]
    explorer.set(conversation=1)
    assert "anywhere" not in explorer.view.figure_turns["note"], (
        "two turns are planned message by message"
    )


def test_a_rough_counter_is_compared_with_the_exact_one() -> None:
    explorer = BudgetExplorer("working_memory", conversation(30), window=8_192, counter="chars/4")
    note = explorer.view.figure_errors["note"]
    assert note.startswith("At turn 30, chars/4 counts ")
    assert f"less than {DEFAULT_MODEL}" in note
    assert f"an estimate for {DEFAULT_MODEL}" in explorer.view.state["source"]
    explorer.set(counter="o200k_base")
    assert "counted exactly with o200k_base" in explorer.view.state["source"]


def sent(explorer: BudgetExplorer, name: str, trace: str) -> None:
    file = {
        "kind": "file",
        "serial": trace,
        "purpose": "file",
        "name": name,
        "size": len(trace),
        "offset": 0,
    }
    hear(explorer, file, trace.encode())


def test_a_file_never_takes_the_place_of_another_of_its_name() -> None:
    """What was shown is there for a step back, and a file that cannot be shown loses nothing."""
    explorer = BudgetExplorer("chat", window=8_192)
    one, two = (
        json.dumps({"id": "it", "messages": [HELLO, ANSWER] * turns}) + "\n" for turns in (1, 2)
    )
    sent(explorer, "mine.jsonl", one)
    sent(explorer, "mine.jsonl", two)
    assert (explorer.config["trace"], explorer.config["turn"]) == ("mine.jsonl (2)", 2)
    explorer.undo()
    assert (explorer.config["trace"], explorer.config["turn"]) == ("mine.jsonl", 1)
    sent(explorer, "mine.jsonl", two)
    assert explorer.config["trace"] == "mine.jsonl (2)", "the same conversations keep their name"
    sent(explorer, "support-chat", one)
    assert explorer.config["trace"] == "support-chat (2)"
    explorer.set(trace="support-chat")
    assert slide(explorer, "turn")["max"] > 1, "what is shipped stays what it is"


def test_a_shipped_conversation_that_was_loaded_keeps_its_name() -> None:
    trace = bk.load_trace("support-chat")
    explorer = BudgetExplorer("chat", trace)
    assert (explorer.config["trace"], explorer.library.conversations.names.count(trace.id)) == (
        trace.id,
        1,
    )


def test_of_what_was_counted_the_least_used_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budgetkit.lab.explorers.shelves.MOST", 2)
    library, made = Library(lambda text, done: None), list[str]()

    def get(name: str) -> None:
        library.once((name,), lambda: made.append(name))

    for name in ("a", "b", "a", "c", "a", "b"):
        get(name)
    assert made == ["a", "b", "c", "b"], "a, asked for again, outlived b"


def test_a_long_file_is_read_and_counted_with_progress(tmp_path: Path) -> None:
    line = (
        json.dumps({"messages": [HELLO, {**ANSWER, "content": "A long answer. " * 400}] * 50})
        + "\n"
    )
    path = tmp_path / "long.jsonl"
    path.write_text(line * 12)
    explorer = BudgetExplorer("chat", window=8_192)
    told: list[dict[str, Any]] = []
    explorer.view.send = lambda content, buffers=None: told.append(content["status"])
    explorer.set(path=str(path))
    assert explorer.config["trace"] == "long.jsonl"
    assert told[0]["text"].startswith("Reading long.jsonl: ")
    assert told[-1]["text"] == "Counting long.jsonl: conversation 12 of 12"
    assert all(status["level"] == "busy" and 0 <= status["progress"] <= 1 for status in told)


def test_while_a_slider_is_held_the_texts_to_copy_wait_and_are_written_when_they_are_read() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    before = explorer.view.texts
    put(explorer, "line_system", "20%", gesture="drag system 1")
    assert explorer.view.texts is before, "nobody copies with a slider in the hand"
    assert from_yaml(explorer.texts["yaml"]).cap("system") == 1_638  # type: ignore[union-attr]
    hear(explorer, {"kind": "rest", "id": "page 1"})
    assert explorer.view.texts == explorer.texts
    assert explorer.view.state["ack"] == "page 1"
    put(explorer, "line_system", "900")  # no move of what is held
    assert explorer.view.texts == explorer.texts


def test_the_end_of_a_move_leaves_what_was_refused_in_it() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    put(explorer, "line_system", "-5", gesture="drag system 1")
    status = explorer.view.state["status"]
    hear(explorer, {"kind": "rest", "id": "page 1"})
    assert explorer.view.state["status"] == status and status["beside"] == "line_system"


def test_only_figures_that_changed_are_sent_again() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    before = explorer.view.figure_waterfall
    explorer.set(demand_memory=10)
    assert explorer.view.figure_waterfall is before
    assert explorer.view.figure_sections["serial"] == explorer.view.state["serial"]


def test_a_table_is_sent_only_while_it_is_open() -> None:
    explorer = BudgetExplorer("chat", conversation(3), window=8_192)
    assert explorer.view.figure_turns["table"] is None
    explorer.view.opened = ["turns"]
    table: Any = explorer.view.figure_turns["table"]
    assert [column["name"] for column in table["columns"]][:3] == ["turn", "line", "demand"]
    assert len(table["rows"]) == 3


# --- what the page sends --------------------------------------------------------------------------


def test_each_message_of_the_page_is_acknowledged_whether_it_can_be_done_or_not() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    hear(explorer, {"kind": "size", "line": "system", "size": 900, "id": "page 1"})
    assert (explorer.view.state["ack"], explorer.budget.cap("system")) == ("page 1", 900)
    hear(explorer, {"kind": "size", "line": "system", "size": "x", "id": "page 2"})
    assert (explorer.view.state["ack"], level(explorer)) == ("page 2", "error")
    hear(explorer, {"kind": "undo", "id": "page 3"})
    assert (explorer.view.state["ack"], explorer.budget.cap("system")) == ("page 3", 819)


def test_a_file_comes_in_pieces_and_is_shown() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    content = json.dumps({"id": "one", "messages": [HELLO, ANSWER]}).encode()
    file = {
        "kind": "file",
        "serial": "a",
        "purpose": "file",
        "name": "mine.jsonl",
        "size": len(content),
    }
    assert hear(explorer, {**file, "offset": 0}, content[:20])[0] == {"kind": "file", "serial": "a"}
    assert explorer.config["trace"] is None
    hear(explorer, {**file, "offset": 20}, content[20:])
    assert explorer.config["trace"] == shown(explorer, "trace") == "mine.jsonl"


def test_a_set_up_comes_as_a_file_too() -> None:
    explorer = BudgetExplorer("chat")
    content = to_yaml(bk.presets.rag(8_192)).encode()
    size = len(content)
    hear(
        explorer,
        {
            "kind": "file",
            "serial": "b",
            "purpose": "setup",
            "name": "s.yaml",
            "size": size,
            "offset": 0,
        },
        content,
    )
    assert explorer.budget == bk.presets.rag(8_192)


@pytest.mark.parametrize("purpose", ["file", "setup"])
def test_a_file_that_is_not_utf_8_is_said_so(purpose: str) -> None:
    explorer = BudgetExplorer("chat")
    hear(
        explorer,
        {
            "kind": "file",
            "serial": "c",
            "purpose": purpose,
            "name": "x.jsonl",
            "size": 4,
            "offset": 0,
        },
        b'{"\xe9}',
    )
    assert level(explorer) == "error"
    assert "UTF-8" in explorer.status


def test_an_upload_that_grows_too_large_is_refused_here_as_well() -> None:
    explorer = BudgetExplorer("chat")
    file = {
        "kind": "file",
        "serial": "d",
        "purpose": "file",
        "name": "x.jsonl",
        "size": 10 * LARGEST,
        "offset": 0,
    }
    hear(explorer, file, b" " * (LARGEST + 1))
    assert explorer.status == "x.jsonl is larger than 20 MB. Type its path instead."
    assert explorer._uploads._parts == {}


@pytest.mark.parametrize(
    "wrong", [{"serial": None}, {"size": "much"}, {"offset": None}, {"name": None}]
)
def test_a_piece_that_does_not_say_where_it_belongs_is_refused(wrong: dict[str, Any]) -> None:
    explorer = BudgetExplorer("chat")
    file = {
        "kind": "file",
        "serial": "e",
        "purpose": "file",
        "name": "x.jsonl",
        "size": 9,
        "offset": 0,
        **wrong,
    }
    hear(explorer, {name: value for name, value in file.items() if value is not None}, b"{}")
    assert explorer.status.startswith("A part of the uploaded file lacks its serial number")
    assert explorer._uploads._parts == {}


def test_files_whose_pages_were_closed_give_way_to_newer_ones() -> None:
    explorer = BudgetExplorer("chat")
    file = {"kind": "file", "purpose": "file", "name": "x.jsonl", "size": 9, "offset": 0}
    for serial in "abcdef":
        hear(explorer, {**file, "serial": serial}, b"{")
    assert list(explorer._uploads._parts) == ["c", "d", "e", "f"]


def test_pieces_of_several_files_from_many_threads_each_come_whole() -> None:
    """The bytes of a file are read once, whole, whatever else arrives or is moved meanwhile."""
    explorer = BudgetExplorer("chat", window=8_192)
    content = json.dumps({"id": "one", "messages": [HELLO, ANSWER]}).encode()
    taken: list[tuple[str, bytes]] = []
    explorer._uploads._do = lambda purpose, name, content: taken.append((name, content))

    def send(name: str) -> None:
        file = {
            "kind": "file",
            "serial": name,
            "purpose": "file",
            "name": name,
            "size": len(content),
        }
        for offset in range(len(content)):
            explorer._receive(
                explorer.view, {**file, "offset": offset}, [content[offset : offset + 1]]
            )

    threads = [threading.Thread(target=send, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [(name, content) for name in "abc"]


def test_plotlys_own_script_is_sent_when_a_page_asks() -> None:
    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    assert gzip.decompress(plotly_script()) == script.read_bytes()
    assert hear(BudgetExplorer("chat"), {"kind": "plotly"}) == [{"kind": "plotly"}]
    assert len(View._esm) < 100_000, "it is not part of the view"


def test_the_page_never_reads_a_text_as_markup() -> None:
    """Names of files, models and sections come from anywhere; they are set as text and nothing else."""
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\("
    assert re.findall(ways, View._esm) == []


def test_moves_from_many_threads_at_once_end_in_one_state() -> None:
    """JupyterLab delivers what a page sends in threads of their own while a cell runs."""
    explorer = BudgetExplorer("chat", conversation(20), window=8_192)
    moved_lines = ["system", "memory", "retrieval", "conversation"]

    def move(line: str) -> None:
        for tokens in range(500, 510):
            hear_one = {"kind": "size", "line": line, "size": tokens, "id": line}
            explorer._receive(explorer.view, hear_one, [])

    threads = [threading.Thread(target=move, args=(line,)) for line in moved_lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [explorer.budget.cap(line) for line in moved_lines] == [509] * 4
    assert [shown(explorer, f"line_{line}") for line in moved_lines] == [509] * 4
    assert explorer.view.state["serial"] == explorer._serial


# --- the pieces -----------------------------------------------------------------------------------


@given(st.integers(1, 3_000_000), st.data())
def test_the_shortest_ratio_gives_back_the_very_tokens(window: int, data: st.DataObject) -> None:
    tokens = data.draw(st.integers(0, window))
    ratio = shortest_ratio(tokens, window)
    assert Share(ratio).of(window) == tokens
    assert len(str(ratio)) <= len(str(window)) + 4


@given(st.integers(1, 200_000), st.integers(0, 5_000), st.data())
def test_a_moved_share_has_the_size_it_was_moved_to(
    window: int, at_least: int, data: st.DataObject
) -> None:
    tokens = data.draw(st.integers(0, window))
    share = resized(Share(0.15, at_least, at_least + 100), tokens, window, False)
    assert isinstance(share, Share)
    assert share.of(window) == tokens


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(0, 50))
def test_as_many_steps_forward_as_back_lead_to_the_same_place(
    windows: list[int], steps: int
) -> None:
    history = UndoStack(BudgetSettings())
    for window in windows:
        history = history.then(BudgetSettings(window=window))
    there = history
    for _ in range(steps):
        there = there.undo()
    assert len(there.past) + len(there.future) == len(history.past)
    for _ in range(steps):
        there = there.redo()
    assert there.now == history.now


def test_a_saved_state_of_wrong_kinds_leaves_what_held() -> None:
    """One sentence, and the budget, the picture and the steps back are as they were."""
    explorer = BudgetExplorer("chat", window=8_192)
    before = explorer.budget
    explorer.load("budgetkit: 1\nbudget: {window: 100, constrained_below: x}")
    assert explorer.budget == before
    assert "Invalid budget.constrained_below: 'x'. Expected a whole number" in explorer.status
    assert not explorer.view.state["actions"]["undo"]


def test_a_lock_names_a_line() -> None:
    """Anything else says which lines there are, and locks of lines that a preset lacks are not shown."""
    explorer = BudgetExplorer("agent", window=8_192)
    explorer._run_command("lock", line="bogus", on=True)
    assert "Unknown reserve or section 'bogus'. Choose one of: 'output'" in explorer.status
    explorer.lock("tool")
    assert explorer.config["locked"] == ["tool"]
    explorer.set(preset="memory_engine")
    assert explorer.config["locked"] == []


def test_late_pieces_of_a_refused_file_are_answered_and_dropped() -> None:
    """The page gets its answer, and nothing is kept of them."""
    explorer = BudgetExplorer("chat", window=8_192)
    file = {"kind": "file", "serial": "late", "name": "big.jsonl", "size": 99, "purpose": "file"}
    assert hear(explorer, {**file, "offset": 50}, b"x")[0] == {"kind": "file", "serial": "late"}
    assert explorer._uploads._parts == {}


def test_what_the_best_few_leave_out_is_not_blamed_on_the_window() -> None:
    """Six passages, the best three stay, and no larger window would change that."""
    explorer = BudgetExplorer("working_memory", "support-chat")
    assert "because it keeps only its best 3 items. Let it keep more" in explorer.status
    assert explorer.view.state["status"]["more"] == []


# --- what nobody foresaw ------------------------------------------------------------------------------------------


def test_an_interrupt_while_figures_are_made_leaves_what_was_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    figures, interrupts = explorer.kind.charts, [KeyboardInterrupt()]

    def interrupted(*given: Any) -> Any:
        if interrupts:
            raise interrupts.pop()
        return figures(*given)

    monkeypatch.setattr(explorer, "kind", replace(explorer.kind, charts=interrupted))
    with pytest.raises(KeyboardInterrupt):
        explorer.move("output", 2_000)
    assert explorer.budget.sizes["output"] == shown(explorer, "line_output") == 1_228
    assert kpi(explorer, "usable") == "6,964"
    explorer.move("output", 2_000)
    assert kpi(explorer, "usable") == "6,192"


def test_what_nobody_foresaw_is_a_sentence_to_report_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = BudgetExplorer("chat", window=8_192)

    def broken(stage: Any) -> Any:
        return stage.settings.strip()

    commands = {**explorer.kind.commands, "pin": broken}
    monkeypatch.setattr(explorer, "kind", replace(explorer.kind, commands=commands))
    hear(explorer, {"kind": "pin", "id": "page 1"})
    assert explorer.status == (
        "budgetkit itself failed: AttributeError in test_explorer.py, line "
        f"{explorer.status.partition('line ')[2].partition(':')[0]}: \"'BudgetSettings' object has "
        "no attribute 'strip'\". "
        "The settings are as before. Please report this message, and what you did."
    )
    assert explorer.view.state["ack"] == "page 1", "the page waits for no answer"
    assert explorer.budget == bk.presets.chat(8_192)
