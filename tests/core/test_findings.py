"""Findings: each is raised by a budget that has its fault, and by no budget that we ship."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from budgetkit.budget import Allocation, Budget, Reserve
from budgetkit.models import Model, model, models
from budgetkit.plan.advice import CODES, findings
from budgetkit.presets import PRESETS, working_memory
from budgetkit.pruning.policies import OldestFirst, SlidingWindow, Step, TriggerTarget, system

TODAY = date(2026, 11, 22)
WINDOWS = (8_192, 32_768, 128_000, 1_000_000)
NAMES = ("gpt-4o", "gpt-4o-mini", "gpt-5", "o3", "gpt-4.1")
PLAIN = Budget(
    10_000,
    [Reserve("output", 2_000, serves="output")],
    [Allocation("system"), Allocation("history")],
)
PLAIN = replace(PLAIN, remainder="history")
MINE = Model("mine", 10_000, max_output=4_000, encoding_is_own=True, date="2026-11-21")


def codes(budget: Budget, **given: Any) -> list[str]:
    return [finding.code for finding in findings(budget, **given)]


def asking(**sections: list[int]) -> pd.DataFrame:
    return pd.DataFrame(sections)


REQUIRED = replace(PLAIN, allocations=[Allocation("system", required=True), Allocation("history")])
CHANGING = [100, 200, 300, 400]
CAPPED = replace(PLAIN, deficit="signed").assign(system=2_000)
# Notes are asked before the history, whose cap leaves them a pool of 2,000.
TAKING = replace(
    PLAIN, allocations=[Allocation("notes", importance=9), Allocation("history", 6_000)]
)
FAULTY: dict[str, tuple[Budget, dict[str, Any]]] = {
    "reserve-above-output": (PLAIN.assign(output=4_001), {"model": MINE}),
    "no-answer-reserve": (PLAIN.assign(output=0), {"model": MINE}),
    "nothing-usable": (PLAIN.assign(output=9_999), {}),
    "trigger-never-reached": (PLAIN.assign(output=3_001), {"policy": system("haystack")}),
    "target-below-fixed": (
        REQUIRED,
        {"policy": system("haystack"), "demand": asking(system=[4_000, 4_000], history=[0, 9])},
    ),
    "cut-at-every-request": (PLAIN, {"lost": [0, 1, 2, 1, 1, 3, 0]}),
    "order-breaks-cache": (PLAIN, {"demand": asking(system=CHANGING, history=CHANGING)}),
    "cap-never-filled": (replace(PLAIN, deficit="signed").assign(history=8_001), {}),
    "caps-overcommitted": (CAPPED.assign(history=6_001), {}),
    "floor-above-usable": (PLAIN.assign(system={"floor": 3_000}, history={"floor": 5_001}), {}),
    "pool-not-enforced": (TAKING, {"demand": asking(notes=[3_001, 9_000], history=[6_000, 6_000])}),
    "heavy-tools": (PLAIN, {"tools": 2_501}),
    "thinking-fills-answer": (PLAIN, {"thinking": 2_000}),
    "prompt-below-cache": (
        PLAIN,
        {"cache_minimum": 1_024, "demand": asking(system=[500, 900], history=[0, 123])},
    ),
    "price-step": (PLAIN, {"price_step": 7_999}),
    "old-facts": (PLAIN, {"model": replace(MINE, date="2025-11-21"), "today": TODAY}),
    "stand-in-without-buffer": (PLAIN, {"model": replace(MINE, encoding_is_own=False)}),
}
SOUND: dict[str, tuple[Budget, dict[str, Any]]] = {
    "reserve-above-output": (PLAIN.assign(output=4_000), {"model": MINE}),
    "no-answer-reserve": (PLAIN.assign(output=1), {"model": MINE}),
    "nothing-usable": (PLAIN.assign(output=9_900), {}),
    "trigger-never-reached": (PLAIN.assign(output=3_000), {"policy": system("haystack")}),
    "target-below-fixed": (
        REQUIRED,
        {"policy": system("haystack"), "demand": asking(system=[3_999, 4_000], history=[0, 9])},
    ),
    "cut-at-every-request": (PLAIN, {"lost": [0, 1, 2, 1, 1, 0, 3]}),
    "order-breaks-cache": (PLAIN, {"demand": asking(system=[100] * 4, history=CHANGING)}),
    "cap-never-filled": (PLAIN.assign(history=8_000), {}),
    "caps-overcommitted": (CAPPED.assign(history=6_000), {}),
    "floor-above-usable": (PLAIN.assign(system={"floor": 3_000}, history={"floor": 5_000}), {}),
    "pool-not-enforced": (TAKING, {"demand": asking(notes=[2_000, 7_900], history=[6_000, 100])}),
    "heavy-tools": (PLAIN, {"tools": 2_500}),
    "thinking-fills-answer": (PLAIN, {"thinking": 1_999}),
    "prompt-below-cache": (
        PLAIN,
        {"cache_minimum": 1_024, "demand": asking(system=[500, 900], history=[0, 124])},
    ),
    "price-step": (PLAIN, {"price_step": 8_000}),
    "old-facts": (PLAIN, {"model": replace(MINE, date="2025-11-22"), "today": TODAY}),
    "stand-in-without-buffer": (
        replace(PLAIN, reserves=[*PLAIN.reserves, Reserve("safety", 100)]),
        {"model": replace(MINE, encoding_is_own=False)},
    ),
}


def test_every_code_has_a_faulty_and_a_sound_budget_here() -> None:
    assert list(FAULTY) == list(SOUND) == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_fault_is_found_and_its_nearest_sound_neighbour_is_not(code: str) -> None:
    faulty, sound = FAULTY[code], SOUND[code]
    assert codes(faulty[0], **faulty[1]) == [code]
    assert codes(sound[0], **sound[1]) == []


def test_a_finding_says_its_numbers_and_the_mend() -> None:
    found = findings(PLAIN.assign(output=3_001), policy=system("haystack"))
    assert str(found[0]) == (
        "trigger-never-reached: TriggerTarget starts at 7,000 tokens, but there are never more than 6,999. "
        "Lower its trigger below 6,999, or a reserve."
    )


def test_a_mark_on_the_limit_is_measured_by_the_cap_of_the_history() -> None:
    capped = PLAIN.assign(history=1_000)
    assert codes(capped, policy=TriggerTarget(1_000, 500)) == []
    assert codes(capped, policy=TriggerTarget(1_001, 500)) == ["trigger-never-reached"]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("window", WINDOWS)
def test_no_preset_at_any_window_is_found_fault_with(name: str, window: int) -> None:
    """Under every policy of ours too, and with the demand that the preset starts from."""
    preset = PRESETS[name]
    typical = asking(**{section: [tokens] * 5 for section, tokens in preset.demand.items()})
    budget = preset(window)
    assert findings(budget, demand=typical) == findings(budget) == ()
    if name == "working_memory" and window == 8_192:
        return  # its answer takes half of such a window, and what is fixed most of the rest: see the next test
    for policy in (
        OldestFirst(),
        SlidingWindow(),
        Step(),
        TriggerTarget(),
        *map(system, ("octopus", "agent-framework", "haystack", "prompt-poet")),
    ):
        assert findings(budget, policy=policy, demand=typical) == ()
        assert findings(budget, policy=policy) == ()


def test_marks_of_a_window_of_which_the_answer_takes_half_collapse() -> None:
    small = working_memory(8_192)
    typical = asking(
        **{section: [tokens] * 5 for section, tokens in PRESETS["working_memory"].demand.items()}
    )
    assert codes(small, policy=system("haystack")) == ["trigger-never-reached"]
    expected = ["trigger-never-reached", "target-below-fixed"]
    assert codes(small, policy=system("haystack"), demand=typical) == expected
    assert codes(small, policy=system("agent-framework"), demand=typical) == ["target-below-fixed"]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", NAMES)
def test_no_preset_for_a_model_with_its_encoding_has_a_finding(preset: str, name: str) -> None:
    """Plan #195 reserves nothing for the answer unless its configuration says so."""
    known = model(name)
    holds_answer = known.kind == "shared"
    expected = ["no-answer-reserve"] if preset == "agent_prompt" and holds_answer else []
    assert codes(PRESETS[preset](known), model=known, today=TODAY) == expected


def test_sections_that_may_each_take_the_pool_are_found_before_any_request() -> None:
    """One alone takes no more than the pool; of two nothing limits the sum."""
    each = replace(
        PLAIN, order="pool each", allocations=[Allocation("notes"), Allocation("history", 6_000)]
    )
    assert codes(each) == []
    both = replace(each, allocations=[*each.allocations, Allocation("memory")])
    assert codes(both) == ["pool-not-enforced"]
    assert codes(replace(both, order="pool together")) == []
    assert "notes and memory may each take the shared pool (2,000)" in findings(both)[0].sentence


def test_a_stand_in_is_found_for_every_model_that_has_one_and_for_no_other() -> None:
    for known in models():
        if known.window >= 8_192:
            found = codes(PRESETS["memory_engine"](known), model=known)
            assert "stand-in-without-buffer" not in found, "its safety reserve is a buffer"
            chat = codes(PRESETS["chat"](known), model=known)
            assert ("stand-in-without-buffer" in chat) == (not known.encoding_is_own)


def test_every_code_has_its_place_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
    assert [line[4:-1] for line in page.splitlines() if line.startswith("## `")] == list(CODES)
