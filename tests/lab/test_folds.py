"""Folds of the explorers: worked out when they are opened, old while a slider moves, and what stands in each."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import BudgetExplorer, ConversationExplorer
from budgetkit.lab.deciding.space import candidates, sizes_of
from budgetkit.lab.explorers import reading
from budgetkit.lab.explorers.base import Explorer
from budgetkit.lab.explorers.reading import largest
from budgetkit.models import DEFAULT_MODEL
from budgetkit.plan.advice import findings
from budgetkit.presets import PRESETS

SMALL = bk.presets.working_memory(600, output=200, history_floor=0)


def fold(explorer: Explorer, name: str) -> dict[str, Any]:
    """Return a fold as the page has it."""
    found: dict[str, Any] = next(each for each in explorer.view.folds if each["name"] == name)
    return found


def parts(explorer: Explorer, name: str, kind: str) -> list[Any]:
    """Return the parts of one kind in a fold."""
    return [part for part in fold(explorer, name)["parts"] if part["is"] == kind]


def rows(explorer: Explorer, name: str) -> list[dict[str, Any]]:
    """Return all rows in a fold."""
    return [row for part in parts(explorer, name, "rows") for row in part["rows"]]


def tell(explorer: Explorer, name: str, **told: Any) -> None:
    """Do what a hand does in a fold."""
    explorer._receive(explorer.view, {"kind": "fold", "fold": name, **told}, [])


def opened(explorer: Any, name: str) -> Any:
    """Open a fold."""
    explorer.view.opened = [name]
    return explorer


# --- the mechanism --------------------------------------------------------------------------------


def test_nothing_is_worked_out_before_a_fold_is_opened() -> None:
    explorer = BudgetExplorer("working_memory", "support-chat", window=4_096)
    explorer.move("output", "30%")
    assert explorer._folds._contents == {}
    assert all(each["parts"] == [] and not each["open"] for each in explorer.view.folds)
    explorer.view.opened = ["why"]
    assert [*explorer._folds._contents] == ["why"]


def test_a_move_leaves_a_fold_as_it_was_and_says_that_it_is_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    explorer = opened(BudgetExplorer("working_memory", "support-chat", window=4_096), "why")
    why = bk.Plan.why

    def watched(plan: bk.Plan, of: int | bk.Item | str) -> Any:
        asked.append(of)
        return why(plan, of)

    monkeypatch.setattr(bk.Plan, "why", watched)
    before = fold(explorer, "why")["parts"]
    explorer.move("output", 1_000)
    assert (asked, fold(explorer, "why")["parts"], fold(explorer, "why")["stale"]) == (
        [],
        before,
        True,
    )
    tell(explorer, "why")  # the page, once the hand rests
    assert (len(asked), fold(explorer, "why")["stale"]) == (1, False)
    tell(explorer, "why")  # a second page that shows the same explorer
    assert len(asked) == 1


def test_a_fold_that_is_not_there_is_refused_and_what_held_holds() -> None:
    explorer = BudgetExplorer("chat", window=8_192)
    tell(explorer, "nonsense", of="history")
    assert explorer.status.startswith("Unknown fold 'nonsense'. Choose one of: 'why'")


# --- why ------------------------------------------------------------------------------------------


def test_a_sentence_about_a_loss_says_which_section_it_is_about() -> None:
    explorer = BudgetExplorer("working_memory", "support-chat", window=4_096)
    status = explorer.view.state["status"]
    sentences = [status["text"], *status["more"]]
    assert len(status["asks"]) == len(sentences)
    for sentence, section in zip(sentences, status["asks"], strict=True):
        assert section is None or (section in sentence and explorer.plan[section].cut > 0)
    assert "history" in status["asks"]
    assert BudgetExplorer("chat", window=128_000).view.state["status"]["asks"] == [None]


def test_each_mend_is_a_button_that_keeps_what_was_lost_and_can_be_taken_back() -> None:
    explorer = opened(BudgetExplorer(SMALL.assign(window=1_000), "made-up-chats"), "why")
    for number in range(len(explorer.library.conversations("made-up-chats"))):
        explorer._run_command("conversation", number=number)
        if explorer.plan["history"].cut:
            break
    tell(explorer, "why", of="history")
    before, told = explorer.budget, explorer.plan.why("history")
    assert parts(explorer, "why", "list")[0]["items"] == list(told.reasons)
    offered = [
        row for row in rows(explorer, "why") if "mend" in row.get("button", {}).get("tells", {})
    ]
    assert [row["text"] for row in offered] == [mend.sentence for mend in told.mends]
    assert offered
    for place in range(len(offered)):
        tell(explorer, "why", **offered[place]["button"]["tells"])
        assert explorer.plan["history"].cut == 0, offered[place]["text"]
        explorer.undo()
        assert explorer.budget == before
        tell(explorer, "why")


def test_two_changes_that_begin_with_the_window_are_two_buttons() -> None:
    """Both told {"mend": "window"}, so that the first button made the second's change."""
    lines = [bk.Allocation("a", required=True), bk.Allocation("h", cap=bk.Share("0.3"))]
    explorer = BudgetExplorer(bk.Budget(100, (), lines))
    explorer.set(demand_a=60)
    explorer.set(demand_h=60)
    opened(explorer, "why")
    told = [row["button"]["tells"]["mend"] for row in rows(explorer, "why") if "button" in row]
    assert len(told) == 2 == len({*told})
    windows = []
    for mend in told:
        tell(explorer, "why", mend=mend)
        windows.append(explorer.budget.window)
        explorer.undo()
        tell(explorer, "why")
    assert windows == [200, 120]


def test_a_preview_is_the_bar_of_the_very_budget_that_the_button_makes() -> None:
    explorer = opened(BudgetExplorer("working_memory", "support-chat", window=9_000), "why")
    row = next(
        row for row in rows(explorer, "why") if "mend" in row.get("button", {}).get("tells", {})
    )
    tell(explorer, "why", **row["button"]["tells"])
    assert row["button"]["bar"] == explorer.view.state["bar"]


def test_a_dropped_message_is_asked_why() -> None:
    explorer = opened(BudgetExplorer(SMALL, "made-up-chats"), "why")
    blocks = explorer.view.reader["blocks"]
    lost = [block for block in blocks if block["level"] in ("gone", "cut")]
    assert [block for block in blocks if "asks" in block] == lost != []
    tell(explorer, "why", of=lost[-1]["asks"])
    assert parts(explorer, "why", "list")[0]["items"] == list(
        explorer.plan.why(lost[-1]["asks"]).reasons
    )
    assert any(
        each.get("note") == "Change the text itself; no setting can."
        for each in rows(explorer, "why")
    )


def test_an_offer_of_another_budget_is_not_taken() -> None:
    explorer = opened(BudgetExplorer("working_memory", "support-chat", window=9_000), "why")
    row = next(
        row for row in rows(explorer, "why") if "mend" in row.get("button", {}).get("tells", {})
    )
    explorer.move("output", 2_000)
    before = explorer.budget
    tell(explorer, "why", **row["button"]["tells"])
    assert explorer.budget == before
    assert explorer.status.startswith("These fixes are out of date")


def test_a_locked_line_is_not_offered() -> None:
    explorer = opened(BudgetExplorer("chat", window=8_192), "why")
    explorer.move("output", 5_000)
    explorer.lock("output")
    tell(explorer, "why")
    sentences = {row["text"]: row for row in rows(explorer, "why")}
    locked = next(
        row for text, row in sentences.items() if text.startswith("Lower the reserve output")
    )
    assert "button" not in locked


# --- decide ---------------------------------------------------------------------------------------


def tuned(explorer: Any, objective: str) -> Any:
    """Tune by the button, and wait for its thread."""
    opened(explorer, "decide")
    tell(explorer, "decide", objective=objective)
    tell(explorer, "decide", tune=True)
    run = explorer._folds._contents["decide"]._run
    run.thread.join(120)
    assert run.problem == ""
    return run.report


def test_what_may_be_wanted_is_named_in_whole_words() -> None:
    explorer = opened(BudgetExplorer(SMALL, "made-up-chats"), "decide")
    assert "{}" not in str(fold(explorer, "decide"))
    assert "loses fewer needed messages than the current setting" in str(fold(explorer, "decide"))


@pytest.mark.parametrize(
    "make", [lambda: BudgetExplorer("chat", "support-chat", window=8_192), ConversationExplorer]
)
def test_what_tuning_needs_is_said_first_and_shipped_conversations_are_one_click_away(
    make: Callable[[], Any],
) -> None:
    """On 0.2.0 somebody who followed what was said came to a refusal, twice."""
    explorer = opened(make(), "decide")
    assert parts(explorer, "decide", "text")[0]["text"].startswith(
        "Tuning needs 12 conversations: it picks a setting on each half"
    )
    assert "This file has 1." in parts(explorer, "decide", "text")[0]["text"]

    tell(explorer, "decide", example=True)
    assert (
        "Nothing is cut from these 48 conversations" in parts(explorer, "decide", "text")[0]["text"]
    )

    smaller = parts(explorer, "decide", "button")[0]
    tell(explorer, "decide", **smaller["tells"])
    aim = parts(explorer, "decide", "choice")[0]["value"]
    tell(explorer, "decide", tune=True)
    run = explorer._folds._contents["decide"]._run
    run.thread.join(120)
    assert run.problem == "", aim
    assert run.report.tuned.scores[:, 0, 0].sum() > 0, (
        "the aim that it opened with had something to gain"
    )


def test_the_sentence_is_computed_on_conversations_held_out() -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats")
    found = tuned(explorer, "evidence")
    said = parts(explorer, "decide", "text")[0]["text"]
    halves = zip(found.tuned.parts[::-1], map(found.tuned.choice, found.tuned.parts), strict=True)
    pairs = [(part, 0 if row is None else 1 + row) for part, row in halves]
    before, after = (
        sum(found.tuned.scores[part, at * moved, 0].sum() for part, at in pairs) for moved in (0, 1)
    )
    chosen = found.tuned.gain_at(found.advised)
    gain, low, high = chosen.share, chosen.low, chosen.high
    assert gain == pytest.approx(1 - after / before)
    assert said.startswith(
        f"This budget loses {100 * gain:.0f} % fewer needed messages than the current setting "
        f"({after:.0f} instead of {before:.0f}, "
    )
    assert ") on 48 conversations not used to choose it; " in said
    assert (
        f"the true saving lies between {100 * low:.0f} and {100 * high:.0f} % with 95 % confidence."
        in said
    )
    assert 0 < low < gain < high


def test_what_is_not_better_is_said_so() -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats", model="gpt-4o")
    tuned(explorer, "cost")
    said = parts(explorer, "decide", "text")[0]["text"]
    assert (
        said
        == "No setting tried costs less than the current setting without more needed messages lost. "
        "Keep the current setting."
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [BudgetExplorer, ConversationExplorer])
def test_a_point_sets_all_sliders_to_what_was_measured(make: Callable[..., Any]) -> None:
    """The replay of the budget that the sliders then make has the very score of that point."""
    given = (SMALL, "made-up-chats") if make is BudgetExplorer else ("made-up-chats", SMALL)
    explorer = make(*given)
    found = tuned(explorer, "cut")
    before = explorer.budget
    for row in (0, len(found.tuned.table) - 1):
        tell(explorer, "decide", point=row)
        setting = found.setting(row)
        sizes = explorer.budget.sizes | explorer.budget.caps
        assert {line: sizes[line] for line in setting if line != "policy"} == {
            line: found.values[line][name] for line, name in setting.items() if line != "policy"
        }
        assert (
            make is BudgetExplorer
            or setting.get("policy", explorer.settings.main) == explorer.settings.main
        )
        explorer.undo()
        assert explorer.budget == before


@pytest.mark.slow
def test_the_lines_that_matter_are_those_that_change_most_when_moved_alone() -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats")
    found = tuned(explorer, "cut")
    spread = found.moves.groupby("line")["spread"].first()
    assert found.matter == [*spread[spread > 0].sort_values(ascending=False).index[:3]]
    row = next(row for row in rows(explorer, "decide") if row["key"] == "set")
    assert (
        row["note"]
        == f"Settings with the largest effect, each changed alone: {', '.join(found.matter)}."
    )


@pytest.mark.slow
def test_the_report_brings_sentence_and_budget() -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats")
    found = tuned(explorer, "cut")
    (report,) = parts(explorer, "decide", "copy")
    assert f"**{found.sentence(found.advised)}**" in report["text"]
    written = report["text"].partition("```yaml\n")[2].partition("```")[0]
    values = {line: found.values[line][name] for line, name in found.setting(found.advised).items()}
    assert bk.state.from_yaml(written) == found.budget.assign(**values)


@pytest.mark.slow
def test_the_saved_report_holds_what_the_open_folds_found(tmp_path: Path) -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats")
    explorer.save(tmp_path / "before.html")
    found = tuned(explorer, "cut")
    explorer.save(tmp_path / "after.html")
    before, after = (
        (tmp_path / f"{when}.html").read_text(encoding="utf-8") for when in ("before", "after")
    )
    assert found.sentence(found.advised) in after
    assert "Which settings are worth choosing?" in after
    assert "Which settings are worth choosing?" not in before


def test_a_slider_moves_while_tuning_runs_and_stop_ends_it() -> None:
    explorer = opened(BudgetExplorer(SMALL, "made-up-chats"), "decide")
    tell(explorer, "decide", tune=True)
    run = explorer._folds._contents["decide"]._run
    began = time.monotonic()
    explorer.move("output", 150)
    assert time.monotonic() - began < 5
    assert run.runs
    assert explorer.budget.sizes["output"] == 150
    tell(explorer, "decide", stop=True)
    run.thread.join(60)
    assert run.problem == "Stopped; nothing was chosen."
    assert parts(explorer, "decide", "text")[0]["text"] == "Stopped; nothing was chosen."


def test_a_model_without_a_price_is_not_tuned_for_cost() -> None:
    explorer = opened(BudgetExplorer(SMALL, "made-up-chats", model="octopus"), "decide")
    tell(explorer, "decide", objective="cost")
    tell(explorer, "decide", tune=True)
    run = explorer._folds._contents["decide"]._run
    run.thread.join(60)
    assert parts(explorer, "decide", "text")[0]["text"] == run.problem
    assert run.problem.startswith("The price of this model is not known")


def test_locked_lines_are_left_alone() -> None:
    explorer = BudgetExplorer(SMALL, "made-up-chats")
    explorer.lock("output")
    found = tuned(explorer, "cut")
    assert "output" not in found.values


@pytest.mark.slow
def test_the_report_says_how_many_answers_are_longer_than_the_reserve_that_it_advises() -> None:
    """A reserve of 0 tokens that is not tuned leaves every answer without room."""
    for explorer in (
        BudgetExplorer("agent_prompt", "made-up-chats", window=700),
        BudgetExplorer(SMALL, "made-up-chats"),
    ):
        tuned(explorer, "evidence")
        (report,) = parts(explorer, "decide", "copy")
        budget = bk.state.from_yaml(report["text"].partition("```yaml\n")[2].partition("```")[0])
        assert isinstance(budget, bk.Budget)
        size, traces = budget.sizes.get("output", 0), bk.load_traces("made-up-chats")
        said = [each for trace in traces for each in trace.messages if each.role == "assistant"]
        share = sum(bk.counter("gpt-4o")("".join(each.texts)) > size for each in said) / len(said)
        told = f"{100 * share:.1f} % of the recorded answers are longer than the {size:,} tokens reserved for them."
        assert told in report["text"]


def test_what_the_preset_refuses_is_not_advised() -> None:
    """The sliders show a claim beyond the window as a negative number; a budget that is taken away must hold."""
    explorer = BudgetExplorer("chat", "made-up-chats", window=700)
    found = tuned(explorer, "evidence")
    budgets = [
        found.budget.assign(**sizes_of(found.values, found.setting(row))) for row in allowed(found)
    ]
    assert budgets
    assert all(budget.deficit == "raise" and budget.shared_pool >= 0 for budget in budgets)
    (report,) = parts(explorer, "decide", "copy")
    assert (
        bk.state.from_yaml(report["text"].partition("```yaml\n")[2].partition("```")[0]) in budgets
    )
    tell(explorer, "decide", point=found.advised)
    assert explorer.plan.budget.shared_pool >= 0


def allowed(found: Any) -> list[int]:
    """Return the rows of a table that could be measured."""
    return [row for row in found.table(0)["point"] if row >= 0]


def test_what_is_thought_is_not_tuned_as_if_it_were_answered() -> None:
    """Recorded answers hold no thoughts, so that they say nothing about the reserve of these."""
    thought = bk.limits.thinking("gemini-2.5-flash", "low").reserve(1_500)
    budget = bk.Budget(8_000, [thought, bk.Reserve("output", 2_000, serves="output")])
    found = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-4o"), risk=0.05)
    assert [*found["output"]] == ["78", "1,039", "2,000"]
    assert "thinking" not in found


# --- billed and check -----------------------------------------------------------------------------


def figure(explorer: Any, name: str) -> dict[str, Any]:
    """Return the figure of a fold, its table by column."""
    (part,) = parts(explorer, name, "figure")
    table = part["figure"]["table"]
    columns = zip(*table["rows"], strict=True)
    named = {
        each["name"]: list(cells) for each, cells in zip(table["columns"], columns, strict=True)
    }
    return {**part["figure"], "table": named}


def total(drawn: dict[str, Any]) -> int:
    return sum(int(cell.replace(",", "")) for cell in drawn["table"]["tokens"])


def test_the_ledger_of_the_chosen_turn_adds_up_to_its_bill() -> None:
    trace = bk.load_trace("coding-agent")
    explorer = opened(BudgetExplorer("agent", trace), "billed")
    for turn in (len(trace.turns), 1):
        explorer.set(turn=turn)
        tell(explorer, "billed")
        sent = {
            "model": DEFAULT_MODEL,
            "messages": [m.raw for m in trace.request(turn)],
            "tools": [*trace.tools],
        }
        counted = bk.count_request(sent)
        drawn = figure(explorer, "billed")
        assert total(drawn) == sum(drawn["spec"]["data"][0]["x"]) == counted.tokens
        low, high = counted.interval
        sure = "exact" if counted.exact else f"between {low:,} and {high:,}"
        assert drawn["note"].startswith(
            f"{counted.tokens:,} tokens ({sure}) for everything that this turn asks for"
        )
        assert (
            drawn["table"]["kind"].count("tools")
            == sum(row.kind == "tools" for row in counted.ledger)
            > 1
        )


def test_the_smaller_messages_are_one_bar() -> None:
    counted = bk.count_request(
        {"messages": [{"role": "user", "content": "word " * n} for n in range(40)]}
    )
    table = bk.figures.ledger.table(counted)
    merged = largest(table)
    assert int(merged["tokens"].sum()) == counted.tokens
    assert merged.iloc[-1][["part", "tokens"]].tolist() == [
        "26 other messages",
        table["tokens"][1:27].sum(),
    ]
    assert largest(table.head(10)).equals(table.head(10))


def test_the_ledger_of_a_pruned_request_has_what_was_kept_and_names_the_rest() -> None:
    explorer = ConversationExplorer(
        "coding-agent", policies=["oldest first", "tool results first"], window=16_384
    )
    opened(explorer, "billed")
    trace, outcome, last = (
        bk.load_trace("coding-agent"),
        explorer.replay,
        explorer.config["request"],
    )
    there = [trace.messages[slot].raw for slot in outcome.present(last)]
    sent = {"model": DEFAULT_MODEL, "messages": there, "tools": [*trace.tools]}
    assert total(figure(explorer, "billed")) == bk.count_request(sent).tokens
    explorer.set(main="tool results first")
    tell(explorer, "billed")
    assert "placeholders" in figure(explorer, "billed")["note"]


def test_sizes_that_are_typed_in_are_no_request() -> None:
    explorer = opened(BudgetExplorer("chat"), "billed")
    assert parts(explorer, "billed", "text")[0]["text"].startswith("Typed sizes are not a request.")


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_is_found_fault_with(preset: str) -> None:
    explorer = opened(BudgetExplorer(preset, window=32_768), "check")
    parts = fold(explorer, "check")["parts"]
    if preset == "agent_prompt":  # its document reserves nothing for the answer, which is said
        assert "no-answer-reserve" in str(parts)
        return
    (told,) = parts
    assert (told["level"], told["text"][:16]) == ("fits", "The 17 checks of")


def test_a_finding_has_its_code_its_sentence_its_mend_and_its_page() -> None:
    explorer = opened(BudgetExplorer("chat", window=8_192), "check")
    explorer.move("output", 8_191)
    tell(explorer, "check")
    expected = findings(explorer.budget, model=bk.model(DEFAULT_MODEL))
    assert {each.code for each in expected} == {"nothing-usable", "cap-never-filled"}
    assert [row["text"] for row in rows(explorer, "check")] == [str(each) for each in expected]
    assert rows(explorer, "check")[0]["note"] == "docs/findings.md#nothing-usable"


def test_the_conversations_policy_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def watched(budget: bk.Budget, **told: Any) -> tuple[()]:
        given.append(told)
        return ()

    monkeypatch.setattr(reading, "findings", watched)
    explorer = opened(
        ConversationExplorer("coding-agent", policies=["oldest first"], window=16_384), "check"
    )
    assert given[0]["policy"] == bk.policies.OldestFirst()
    assert list(given[0]["lost"]) == list(explorer.replay.kept.dropped_messages)
    assert given[0]["tools"] > 0


def test_what_is_needed_does_not_lead_where_nothing_is_found_needed() -> None:
    said = [
        {"role": role, "content": "yes " * 80} for _ in range(4) for role in ("user", "assistant")
    ]
    plain = [bk.Trace(f"toy-{n}", tuple(map(bk.Message, said))) for n in range(12)]
    explorer = opened(ConversationExplorer(plain, SMALL), "decide")
    assert explorer.view.state["kpis"] and "none found" in str(explorer.view.state["kpis"])
    assert parts(explorer, "decide", "choice")[0]["value"] == "cut"
    tell(explorer, "decide", objective="evidence")
    assert parts(explorer, "decide", "choice")[0]["value"] == "evidence"
    marked = opened(ConversationExplorer("made-up-chats", SMALL), "decide")
    needed, present = marked.stage.shown.evidence
    assert needed > present
    assert parts(marked, "decide", "choice")[0]["value"] == "evidence"
