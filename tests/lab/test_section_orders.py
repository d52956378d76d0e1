"""Orders of a prompt's sections: the stable one is found, and each is priced as the replay prices its own."""

from typing import Any

import pytest

import budgetkit as bk
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache, provider_rules

WORDS = bk.Framing()
IDEAL = PromptCache(read=0.1)


def words(text: str) -> int:
    return len(text.split())


def said(role: str, count: int, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": "word " * count, **more}


SAID = (
    said("system", 100),
    said("user", 10, contexts=["found " * 50]),
    said("assistant", 20),
    said("user", 10, contexts=["other " * 50]),
    said("assistant", 20),
    said("user", 10, contexts=["third " * 50]),
)
MESSAGES = tuple(map(bk.Message, SAID))
TRACE = bk.Trace(
    "toy", MESSAGES, contexts={i: each.contexts for i, each in enumerate(MESSAGES) if each.contexts}
)
BUDGET = bk.presets.working_memory(4_000, output=500)


def test_passages_go_behind_the_history_and_the_question_stays_last() -> None:
    outcome = bk.replay(TRACE, BUDGET, "oldest first", counter=words, framing=WORDS, cache=IDEAL)
    found = bk.section_orders(outcome)
    assert found["order"].tolist() == [
        "system, procedure, knowledge, episodes, history, current",
        "system, procedure, episodes, history, knowledge, current",
    ]
    # requests of 160, 190 and 220; the first 100 are equal in both orders, and of the third request the first turn's 30
    assert found["sent"].tolist() == [570, 570]
    assert found["cached"].tolist() == [200, 230]
    assert found["relative_cost"].tolist() == [(370 + 20) / 570, (340 + 23) / 570]
    assert found["saved"].tolist() == [0, pytest.approx(27 / 390)]


@pytest.mark.parametrize("cache", ["openai", "longest prefix", "gemini-2048", "anthropic", "none"])
@pytest.mark.parametrize("preset", ["working_memory", "rag", "chat"])
@pytest.mark.parametrize("window", [8_000, 32_000])
def test_the_order_that_a_replay_sends_is_priced_as_by_the_replay(
    preset: str, window: int, cache: str
) -> None:
    budget = bk.presets.PRESETS[preset](window)
    outcome = bk.replay(bk.load_trace("support-chat"), budget, "oldest first", cache=CACHES[cache])
    stable = bk.section_orders(outcome).iloc[1]
    totals = outcome.totals()
    assert [stable[name] for name in ("sent", "cached", "written", "fresh")] == [
        totals[name] for name in ("sent", "cached", "written", "fresh")
    ]
    assert stable["relative_cost"] == totals["relative_cost"]


def test_an_order_of_ones_own_is_priced_and_a_wrong_one_is_refused() -> None:
    outcome = bk.replay(TRACE, BUDGET, "oldest first", counter=words, framing=WORDS, cache=IDEAL)
    sections = list(BUDGET.sections)
    assert bk.section_orders(outcome, sections)["cached"].tolist() == [200, 230, 200]
    with pytest.raises(ValueError, match=r"the sections are .*; name each once"):
        bk.section_orders(outcome, sections[1:])


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("gpt-4o", 1_024),
        ("claude-haiku-4-5", 4_096),
        ("claude-opus-4-7", 2_048),
        ("gemini-2.5-pro", 2_048),
    ],
)
def test_the_least_prompt_that_is_kept_goes_by_the_model(model: str, least: int) -> None:
    assert CACHES[provider_rules(bk.model(model))].minimum == least
