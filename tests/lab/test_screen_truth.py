"""Whether what stands on the first screen is true: every sentence, key figure and colour is a function of the plan.

The screen is asked for over presets, models of every maker, windows that are too small to windows over the model's, and
conversations. What it says is worked out anew from `allocate` or `fit` alone, and compared.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.figures.window import takes_the_rest
from budgetkit.models import resolve
from budgetkit.plan import Plan
from budgetkit.presets import PRESETS
from budgetkit.requests import framing_for

#: One model of each maker, an open one, and one that nobody knows.
MODELS = (
    *("gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"),
    *("Llama-3.3-70B-Instruct", "no-such-model-1"),
)
#: Too small for any preset's parts, small, usual, as long as the longest models', over all models'.
WINDOWS = (700, 4_096, 16_384, 128_000, 1_048_576, 20_000_000)
#: Windows in which parts that must be there take what others were promised.
TINY_WINDOWS = (300, 500, 800, 1_300)
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "find", "arguments": '{"order": 4711}'},
}
CONVERSATIONS: dict[str, Any] = {
    "none": None,
    "one message": [{"role": "user", "content": "Where is my parcel?"}],
    "huge": [{"role": "user", "content": "hello world " * 60_000}],
    "CJK": [
        {"role": "user", "content": "我的包裹在哪里？" * 40},
        {"role": "assistant", "content": "在路上。" * 40},
    ],
    "tools": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Find order 4711."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "row 1\nrow 2\n" * 200},
        {"role": "assistant", "content": "It left on Monday."},
        {"role": "user", "content": "Thanks. And 4712?"},
    ],
}
GREEN = {"exact", "safe"}


@cache
def card(conversation: str) -> bk.DesignCard:
    return bk.DesignCard("chat", CONVERSATIONS[conversation], model="gpt-4o")


def shown(
    conversation: str, preset: str, model: str, window: int
) -> tuple[bk.DesignCard, dict[str, Any]] | None:
    """Show one state; None where the preset has no budget of that window at all."""
    held = card(conversation)
    settings = BudgetSettings(preset=preset, model=model, window=window, trace=held.settings.trace)
    try:
        assert settings.budget
    except ValueError:
        return None
    held.take(settings, afresh=True)
    assert held.settings == settings, held.status
    return held, dict(held.view.state)


def planned(conversation: str, preset: str, model: str, window: int) -> Plan:
    """Plan the same with nothing but the kit: the preset's budget, and `allocate` or `fit`."""
    known = resolve(model)
    sized = replace(known, window=window, max_output=None)
    budget = replace(PRESETS[preset](sized), deficit="signed")
    known_demand = {section: PRESETS[preset].demand.get(section, 0) for section in budget.sections}
    if CONVERSATIONS[conversation] is None:
        return bk.allocate(budget, known_demand)
    if not budget.roles:
        budget = replace(budget, undeclared="pool")
    trace = bk.Trace("messages", tuple(CONVERSATIONS[conversation]))
    count = bk.counter(known)
    framing = framing_for(known.name)
    items = trace.items(len(trace.turns), count, budget.roles or None, framing)
    return bk.fit(budget, items, bk.truncation.cutter(count, framing))


def numbers(text: str) -> set[int]:
    """Read the numbers of a sentence, those in names such as gpt-4o left out."""
    return {
        int(found.replace(",", "")) for found in re.findall(r"(?<![\w.-])\d[\d,]*(?![\w-])", text)
    }


def figure(state: dict[str, Any], key: str) -> str | None:
    return next((str(kpi["value"]) for kpi in state["kpis"] if kpi["key"] == key), None)


def signed(number: int) -> str:
    return f"{number:,}".replace("-", "\u2212")


def check_figures(state: dict[str, Any], plan: Plan) -> None:
    budget = plan.budget
    assert figure(state, "pool") == signed(budget.shared_pool)
    assert figure(state, "usable") == signed(budget.usable)
    if budget.remainder is not None:
        assert figure(state, "remainder") == signed(plan.remainder)
    for kpi in state["kpis"]:
        if kpi["key"] in ("pool", "usable", "remainder"):
            assert (kpi["level"] == "alarm") == str(kpi["value"]).startswith("\u2212")


def check_headline(state: dict[str, Any], plan: Plan) -> None:
    text, budget = f"{state['headline']['title']} {state['headline']['text']}", plan.budget
    if plan.free < 0:
        assert text.startswith(f"The request exceeds the window by {-plan.free:,} tokens. ")
        section, tokens = re.search(r"\. (.+) alone takes ([\d,]+) of", text).groups()  # type: ignore[union-attr]
        assert (
            plan[section].granted
            == int(tokens.replace(",", ""))
            == max(grant.granted for grant in plan.grants)
        )
        return
    if budget.unclaimed < 0 and not takes_the_rest(budget):
        assert text == (
            "The budget does not fit. "
            f"Reserves and caps exceed the window by {-budget.unclaimed:,} tokens."
        )
        return
    if budget.remainder is not None and plan.remainder <= 0:
        assert text.startswith(f"Nothing is left for {budget.remainder}.")
        assert numbers(text) == ({-plan.remainder} if plan.remainder else set())
        return
    too_many = claimed_too_many(plan)
    assert ("exceed the window by" in text) == bool(too_many)
    assert (
        f"window by {too_many:,} tokens." if too_many else f" {unclaimed(plan):,} tokens are free."
    ) in text
    verdict = re.match(r"([\d,]+) of ([\d,]+) (turns?|sections?) fit\.", text)
    if verdict and verdict[3].startswith("section"):
        whole = sum(grant.cut == 0 for grant in plan.grants)
        assert (verdict[1], verdict[2]) == (f"{whole:,}", f"{len(plan.grants):,}")
    assert verdict


def unclaimed(plan: Plan) -> int:
    """Add up what is left of the window when every section has its cap, and more where it needs more."""
    budget = plan.budget
    is_rest = takes_the_rest(budget)
    sections = {
        grant.section: max(grant.granted, 0 if is_rest else budget.caps[grant.section] or 0)
        for grant in plan.grants
    }
    reserves = 0
    for reserve in budget.reserves:
        if reserve.serves == "output" and budget.kind != "shared":
            continue  # the answer comes on top
        reserves += max(0, budget.sizes[reserve.name] - sections.get(reserve.serves or "", 0))
    return budget.window - sum(sections.values()) - reserves


def claimed_too_many(plan: Plan) -> int:
    """Give the number that is said of a window that is too small: the worst of what is wrong."""
    budget = plan.budget
    promised = 0 if takes_the_rest(budget) else max(0, -budget.unclaimed)
    return max(0, -plan.free) or promised or max(0, -unclaimed(plan))


def check_bar(state: dict[str, Any], plan: Plan) -> None:
    """The bar says the same number as the sentence over it, and its segments are as long as they say."""
    bar = state["bar"]
    text = f"{state['headline']['title']} {state['headline']['text']}"
    segments = {
        segment["name"]: segment for segment in bar["segments"] if segment["kind"] == "pool"
    }
    drawn = sum(segment["tokens"] for segment in bar["segments"])
    over = claimed_too_many(plan)
    if drawn > bar["window"]:
        assert bar["end_text"] == f"Window ends at {plan.budget.window:,}; over by {over:,}"
        assert over > 0
    if over:
        assert over in numbers(text) or text.startswith("Nothing is left"), (text, over)
        assert drawn > bar["window"]
        assert "are free" not in text
    left = max(0, unclaimed(plan))
    assert [segment["tokens"] for segment in segments.values()] == [left]
    if "left in pool" in segments and not over and plan.budget.remainder and plan.remainder > 0:
        assert f" {left:,} tokens are free." in text


def check_losses(state: dict[str, Any], plan: Plan) -> None:
    status = state["status"]
    sentences = [status["text"], *status["more"]]
    assert len({*sentences}) == len(sentences), "one thing once"
    text = " ".join(sentences)
    for grant in plan.grants:
        is_told = re.search(
            rf"\b{re.escape(grant.section)} (?:is required and )?loses ([\d,]+)", text
        )
        assert bool(is_told) == (grant.cut > 0), (grant, text)
    assert not re.search(r"\d{4,}", re.sub(r"'[^']*'|[\w.]*-[\w.-]*", "", text)), (
        f"no separator: {text}"
    )
    assert not re.search(r"\b1 (tokens|items|turns|texts|messages)\b(?! (?:of|too|more))", text), (
        text
    )


def check_warnings(state: dict[str, Any], plan: Plan, model: str) -> None:
    known = resolve(model)
    warning = known.notice
    status, budget = state["status"], plan.budget
    text = " ".join([status["text"], *status["more"]])
    is_known = not known.provenance.startswith("default")
    longest = known.total if budget.kind == "shared" else known.window
    is_beyond = is_known and budget.window > longest
    assert ("takes at most" in text) == is_beyond
    most = known.max_output
    too_long = [
        reserve
        for reserve in budget.reserves
        if reserve.serves == "output" and most is not None and budget.sizes[reserve.name] > most
    ]
    assert text.count("the model writes at most") == len(too_long)
    assert bool(warning) == (warning in text if warning else False)

    # The colour says the worst of it.
    is_impossible = plan.free < 0 or budget.unclaimed < 0 or is_beyond
    is_lossy = any(grant.cut for grant in plan.grants) or bool(plan.warnings) or bool(too_long)
    is_lossy = is_lossy or (budget.constrained_below is not None and plan.is_constrained)
    level = "fits"
    if is_lossy or warning:
        level = "cut"
    if is_impossible:
        level = "over"
    assert status["level"] == level
    says_that_it_fits = status["text"].split(".")[0].endswith((" fits", " fit"))
    assert says_that_it_fits == (not is_impossible and not is_lossy)


def check_strip(held: bk.DesignCard, state: dict[str, Any], plan: Plan) -> None:
    strip, budget = state["strip"], plan.budget
    assert held.stage.cheap.name == "chars/4"
    planned_tokens = budget.shared_pool if budget.remainder is None else plan.remainder
    safety = max(0, budget.sizes.get("safety", 0))
    assert strip["line_text"] == f"planned {max(0, planned_tokens):,}"
    drawn_rows = [row for row in strip["rows"] if row["level"] != "none"]
    for row, drawn in zip(held.errors.to_dict("records"), drawn_rows, strict=True):
        level = drawn["level"]
        if plan.free < 0:
            assert level == "overrun"
            continue
        if planned_tokens <= 0:
            assert level == "empty"
            continue
        actual = round(planned_tokens * row["exact"] / row["estimate"])
        over = actual - planned_tokens
        assert drawn["actual"] == f"{actual:,}"
        assert row["actual_low"] <= row["actual_high"]
        assert drawn["between"] == f"{row['actual_low']:,} to {row['actual_high']:,}"
        assert (level in GREEN) == (0 <= over <= safety)
        assert (level == "waste") == (over < 0)
        if level == "over":
            assert row["pool"] == 0
        stated = numbers(drawn["verdict"])
        assert stated <= {abs(over), over - safety, *numbers(strip["behind"])} or level == "over"


STATES = [*product(CONVERSATIONS, PRESETS)]


@pytest.mark.parametrize(("conversation", "preset"), STATES)
def test_every_sentence_figure_and_colour_is_a_function_of_the_plan(
    conversation: str, preset: str
) -> None:
    seen = 0
    # Every model meets every window over the presets and conversations; each pair of these has a quarter of them.
    place = STATES.index((conversation, preset))
    for number, (model, window) in enumerate(product(MODELS, WINDOWS)):
        if (number + place) % 4:
            continue
        state_shown = shown(conversation, preset, model, window)
        if state_shown is None:
            continue
        held, state = state_shown
        plan = planned(conversation, preset, model, window)
        assert held.plan.budget == plan.budget
        assert held.plan.grants == plan.grants
        check_figures(state, plan)
        check_headline(state, plan)
        check_bar(state, plan)
        check_losses(state, plan)
        check_warnings(state, plan, model)
        check_strip(held, state, plan)
        seen += 1
    assert seen >= 5


@pytest.mark.parametrize(("conversation", "preset"), STATES)
def test_headline_bar_and_plan_say_one_number_in_a_tiny_window(
    conversation: str, preset: str
) -> None:
    """On 0.2.0 "100 more are shared" stood over a bar that said "210 too many"."""
    for model, window in product(MODELS, TINY_WINDOWS):
        state_shown = shown(conversation, preset, model, window)
        if state_shown is None:
            continue
        _, state = state_shown
        plan = planned(conversation, preset, model, window)
        check_headline(state, plan)
        check_bar(state, plan)


def test_a_required_section_above_its_cap_takes_the_pool_in_every_sentence() -> None:
    """In a window of 500 the system prompt has 306 tokens; its cap of 50 and the pool of 100 hold 150 of them."""
    state = bk.DesignCard("chat", "mixed-language", model="gpt-4o", window=500).view.state
    assert state["bar"]["end_text"] == "Window ends at 500; over by 210"
    assert "The sections exceed the window by 210 tokens." in state["headline"]["text"]
