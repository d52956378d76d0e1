"""Numbers with one meaning agree wherever they stand on a page, over what Hypothesis draws."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.conversation.settings import CHOICES
from budgetkit.presets import PRESETS
from tests.conftest import examples

MODELS = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "o3", "mistral-large-latest")
WINDOWS = (700, 2_048, 4_096, 8_192, 16_384, 32_768, 128_000)
TALKS = ("mixed-language", "support-chat", "coding-agent", "made-up-session")
SEEDED = settings(max_examples=examples(60), derandomize=True, deadline=None)


def first(pattern: str, text: str) -> int | None:
    """Read a number of a text; None where it is not said."""
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else None


def figures_of(state: dict[str, Any]) -> dict[str, str]:
    return {kpi["key"]: str(kpi["value"]) for kpi in state["kpis"]}


def sentences_of(state: dict[str, Any]) -> str:
    return " ".join([state["status"]["text"], *state["status"]["more"]])


@cache
def pages(talk: str) -> tuple[bk.DesignCard, bk.BudgetExplorer]:
    return bk.DesignCard("chat", talk, model="gpt-4o"), bk.BudgetExplorer(
        "chat", talk, model="gpt-4o"
    )


@SEEDED
@given(
    talk=st.sampled_from(TALKS),
    preset=st.sampled_from([*PRESETS]),
    model=st.sampled_from(MODELS),
    window=st.sampled_from(WINDOWS),
    place=st.floats(0, 1),
)
def test_a_budget_says_each_number_once(
    talk: str, preset: str, model: str, window: int, place: float
) -> None:
    card, explorer = pages(talk)
    last = len(explorer.stage.trace.turns)  # type: ignore[union-attr]
    wanted = BudgetSettings(
        preset=preset, model=model, window=window, trace=talk, turn=max(1, round(place * last))
    )
    for page in (card, explorer):
        page.take(wanted, afresh=True)
    if card.settings != wanted:
        return  # the preset has no budget of that window
    state, beside = card.view.state, explorer.view.state
    headline = f"{state['headline']['title']} {state['headline']['text']}"
    figures, status, bar = figures_of(beside), sentences_of(state), state["bar"]
    assert status == sentences_of(beside)
    assert {key: figures.get(key) for key in figures_of(state)} == figures_of(state)

    # The bar, its line and its tips; the headline and the key figures over it.
    cut = sum(grant.cut for grant in card.plan.grants)
    assert first(r"cut ([\d,]+)", bar["sums"]) == cut
    (pool,) = (segment for segment in bar["segments"] if segment["kind"] == "pool")
    free = first(r"([\d,]+) tokens are free", headline)
    if free is not None:
        assert pool["tokens"] == free == first(r"free ([\d,]+)", bar["sums"])
        assert first(r": ([\d,]+) tokens", pool["tip"]) == free
    over = first(r"over by ([\d,]+)", bar["sums"])
    if over is None:  # all usable tokens are named: used, claimed but unused, and free
        line = [first(rf"{name} ([\d,]+)", bar["sums"]) for name in ("used", "unused caps", "free")]
        assert sum(filter(None, line)) == card.plan.budget.usable
    drawn = sum(segment["tokens"] for segment in bar["segments"])
    assert (over is not None) == (drawn > bar["window"])
    if over is not None:
        assert over == first(r"; over by ([\d,]+)", bar["end_text"])
    assert bar["usable_text"] == f"usable {figures['usable']}"
    for segment in bar["segments"]:
        if segment["key"] in card.plan.budget.sections:
            assert f"gets {card.plan[segment['key']].granted:,}" in segment["tip"]

    # The notice, the figures beside it and their tables.
    told = [int(size.replace(",", "")) for size in re.findall(r"loses ([\d,]+) of", status)]
    assert sum(told) == cut
    granted = first(r"^([\d,]+) of", explorer.view.figure_sections["note"])
    if granted is not None:
        assert granted == first(r"used ([\d,]+)", bar["sums"])
    turn = first(r"turn ([\d,]+)", figures.get("first", ""))
    for text in (headline, explorer.view.figure_turns["note"]):
        said = first(r"(?:From|first cut comes at) turn ([\d,]+)", text)
        assert said is None or said == turn
    fits = re.search(r"([\d,]+) of ([\d,]+) turns? fit", headline)
    if fits:
        fitting, turns = (int(number.replace(",", "")) for number in fits.groups())
        assert (fitting == turns) == (turn is None)
        assert turn is None or fitting >= turn - 1

    # Items and messages are told apart, and add up.
    note = explorer.view.reader["note"]
    fates = re.findall(r"([\d,]+) (?:kept|cut|dropped)", note)
    items = sum(int(number.replace(",", "")) for number in fates)
    assert items == first(r"of ([\d,]+) items?:", note)
    sent, others = first(r"([\d,]+) of the", note), first(r"([\d,]+) passages or", note) or 0
    assert items == sent + others  # type: ignore[operator]
    messages = first(r"([\d,]+) messages?,", state["source"])
    assert messages == first(r"of the ([\d,]+) message", note)

    # A remedy that is pressed does what it says: it sets what it names, nothing more is cut, and it tells the rest.
    before = {grant.section: grant.cut for grant in card.plan.grants}
    for remedy in state["status"]["remedies"]:
        tells = remedy["tells"]
        if remedy["text"].startswith("Raise "):
            section = re.escape(tells["key"].removeprefix("line_"))
            most = first(rf"{section} loses [^.]*?raised to ([\d,]+)", status)
            assert most is None or f"{most:,}" == tells["value"]
        card.take(wanted, afresh=True)
        card._receive(card.view, dict(tells), [])
        after = {grant.section: grant.cut for grant in card.plan.grants}
        assert "key" not in tells or card.panel.values[tells["key"]] == tells["value"], card.status
        assert "over by" not in card.view.state["bar"]["sums"]
        assert all(after[section] <= before[section] for section in before)
        assert remedy["bar"]["segments"] == card.view.state["bar"]["segments"]
        assert sum(after.values()) == (first(r"\(([\d,]+) still cut\)", remedy["text"]) or 0)
        if tells["kind"] == "unused":
            assert not after[tells["section"]]


@cache
def talk_page(talk: str) -> ConversationExplorer:
    return ConversationExplorer(talk)


@SEEDED
@given(
    talk=st.sampled_from(TALKS),
    window=st.sampled_from(WINDOWS[2:]),
    rules=st.lists(st.sampled_from([*CHOICES]), min_size=1, max_size=3, unique=True),
    place=st.floats(0, 1),
)
def test_a_conversation_says_each_number_once(
    talk: str, window: int, rules: list[str], place: float
) -> None:
    explorer = talk_page(talk)
    explorer.set(window=window, policies=rules)
    explorer.set(main=rules[-1])
    requests = explorer.stage.request_count
    explorer.set(request=max(1, round(place * requests)))
    state, view = explorer.view.state, explorer.view
    figures, text = figures_of(state), state["status"]["text"]
    assert state["status"]["level"] != "error", text
    (lane,) = (lane for lane in explorer.panel.controls["policies"]["lanes"] if lane["main"])

    # The verdict, the first key figure and the chart.
    said = first(r"^From (?:turn|request) ([\d,]+)", text)
    by_request = "request " in text.partition(" on ")[0]
    (kpi,) = (kpi for kpi in state["kpis"] if kpi["key"] == "first")
    told = kpi["change"] if by_request else kpi["value"]
    assert first(r"(?:turn|request) ([\d,]+)", told) == said
    timeline = view.figure_timeline["note"]
    assert lane["cuts"] == f"{first(r'cuts at ([0-9,]+) request', timeline) or 0:,}"
    if lane["cuts"] != "0":
        assert said is not None

    # The lane, the key figures and the notes say what the rule costs and keeps.
    if figures["cost"] != "unknown":
        assert lane["cost"] == figures["cost"]
        spent = view.figure_spending["note"]
        if len(rules) == 1:
            assert lane["cost"] in spent
    assert abs(float(lane["cached"].rstrip("%")) - float(figures["cached"].rstrip("%"))) <= 0.5
    if lane["kept"]:
        assert lane["kept"] == figures["evidence"]

    # The request on show: key figure, chart, cache and messages.
    sent = first(r"sends ([\d,]+) tokens", timeline)
    assert figures["now"] == f"{sent:,}"
    assert first(r", ([\d,]+) tokens;", view.reader["note"]) == sent
    parts = re.findall(r"([\d,]+) (?:cached|written|fresh)", view.figure_caching["note"])
    assert sum(int(part.replace(",", "")) for part in parts) == sent

    # What has left, in the reader and in the figure of lifetimes.
    gone = first(r"gone by .*: ([\d,]+) message", view.figure_dropping["note"])
    left = first(r"; ([\d,]+) messages? dropped earlier", view.reader["note"]) or 0
    left += first(r"took out ([\d,]+) more", view.reader["note"]) or 0
    assert gone == left
    notes = view.figure_dropping["note"], view.reader["note"]
    assert not re.search(r"\b1 (tokens|messages)\b", " ".join(notes)), notes
    known = (first(r"^([\d,]+) message", view.reader["note"]) or 0) + left
    later = first(r"Not part of this request: ([\d,]+) of", view.reader["note"]) or 0
    assert known + later == first(r"([\d,]+) messages?,", state["source"])
    assert f"{requests:,} request" in state["source"]


def test_one_token_is_singular() -> None:
    card = bk.DesignCard("chat", window=8_192)
    card.move("safety", 1)
    tips = [segment["tip"] for segment in card.view.state["bar"]["segments"]]
    assert any(tip.startswith("safety: 1 token, 0.0 %") for tip in tips), tips


@pytest.mark.parametrize(
    ("budget", "cause"),
    [
        ("chat", "There, conversation asks for 3,355 tokens, above its cap of 3,276."),
        (
            bk.presets.working_memory(8_192, output=2_000, history_floor=0),
            "There, history asks for 4,806 tokens, above the 4,786 that the window leaves it.",
        ),
    ],
)
def test_pruning_names_its_limit_and_a_remedy_that_is_enough(
    budget: str | bk.Budget, cause: str
) -> None:
    window = 16_384 if budget == "chat" else None
    page = ConversationExplorer("support-chat", budget, model="gpt-5.4", window=window)
    assert page.view.state["status"]["more"][0] == cause
    (remedy,) = page.view.state["status"]["remedies"]
    page._receive(page.view, dict(remedy["tells"]), [])
    assert page.stage.shown.first_loss is None
    assert "remedies" not in page.view.state["status"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("line_conversation", "Raise conversation to 3,225 (3,247 still cut)"),
        ("unused", "Fit all 6,437 in unused caps"),
        ("window", "Set window to 32,768"),
    ],
)
def test_a_remedy_names_what_is_free_and_is_enough(key: str, text: str) -> None:
    """It said that the cap could be raised to 3,278, which left nothing for the user's message of 54 tokens."""
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    if key == "line_conversation":
        card.lock("retrieval")
    remedies = {
        remedy["tells"].get("key", remedy["tells"]["kind"]): remedy
        for remedy in card.view.state["status"]["remedies"]
    }
    assert remedies[key]["text"] == text
    card._receive(card.view, dict(remedies[key]["tells"]), [])
    assert card.plan["user"].cut == 0
    assert "0 tokens are free" in card.view.state["headline"]["text"] or key == "window"
    assert card.plan["conversation"].cut == (3_247 if key == "line_conversation" else 0)
    if key == "unused":
        changes = "Cap of system: 819 → 474. Cap of memory: 819 → 0. Cap of retrieval: 2,048 → 0."
        assert changes in remedies[key]["tip"]
    card.undo()
    card.move("output", "80%")
    (lower,) = card.view.state["status"]["remedies"]
    assert lower["text"].startswith("Lower output to ")
    card._receive(card.view, dict(lower["tells"]), [])
    assert card.budget.unclaimed >= 0
