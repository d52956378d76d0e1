"""A policy that brings back what has left, and a proxy for evidence, on conversations whose evidence is known."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetkit as bk
from benchmarks.promised import IMPORTANCE, PARTS, POLICIES, kendall, kept
from budgetkit.pruning.search import Index

THINGS = (
    "passport",
    "bicycle",
    "cellar",
    "violin",
    "orchard",
    "telescope",
    "dentist",
    "mower",
    "aquarium",
    "stairs",
)
PLACES = ("Bergen", "Lyon", "Porto", "Graz", "Turku", "Malmo", "Ghent", "Split", "Brno", "Cork")
CHATTER = (
    "weather",
    "morning",
    "lunch",
    "train",
    "window",
    "coffee",
    "music",
    "walk",
    "garden",
    "rain",
    "book",
    "sun",
)


def marked(seed: int, turns: int = 80) -> bk.Trace:
    """Chatter, in which ten facts are told early, and asked for late by the words that they were told with."""
    chance = random.Random(seed)
    things, places = chance.sample(THINGS, 10), chance.sample(PLACES, 10)
    told = sorted(chance.sample(range(turns // 2), 10))
    asked = sorted(chance.sample(range(turns // 2 + 5, turns), 10))
    raw: list[dict[str, Any]] = []
    where: dict[str, str] = {}
    for turn in range(turns):
        small = " ".join(chance.choices(CHATTER, k=chance.randint(8, 30)))
        user: dict[str, Any] = {"role": "user", "content": f"Today: {small}.", "id": f"m{turn}"}
        if turn in told:
            thing = things[told.index(turn)]
            user["content"] = (
                f"My {thing} is in {places[told.index(turn)]}, bought in {1900 + turn}, {small}."
            )
            where[thing] = user["id"]
        if turn in asked:
            thing = things[asked.index(turn)]
            user |= {"content": f"Where is my {thing}?", "evidence": [where[thing]]}
        answer = " ".join(chance.choices(CHATTER, k=chance.randint(5, 40)))
        raw += [user, {"role": "assistant", "content": f"I see, {answer}."}]
    return bk.Trace(f"marked {seed}", tuple(bk.Message(each) for each in raw))


@pytest.fixture(scope="module")
def shares() -> dict[str, Any]:
    """Give the shares of evidence that policies keep, by the marks and by the proxy."""
    traces = [marked(seed) for seed in range(4)]
    found = {}
    for by in ("marks", "names"):
        rows = [row for trace in traces for row in kept(trace, by).to_dict("records")]
        sums: dict[Any, Any] = {}
        for row in rows:
            sums.setdefault((row["policy"], row["part"]), []).append(
                (row["present"], row["needed"])
            )
        found[by] = {
            key: sum(p for p, _ in each) / sum(n for _, n in each) for key, each in sums.items()
        }
    return found


@pytest.mark.slow
def test_at_a_tenth_of_the_conversation_half_of_the_evidence_comes_back(
    shares: dict[str, Any],
) -> None:
    by_marks = shares["marks"]
    assert by_marks["oldest first", 0.1] <= 0.15
    assert by_marks["half of it brought back", 0.1] >= 0.5
    for part in PARTS:
        assert by_marks["hindsight", part] >= max(
            share for (_, at), share in by_marks.items() if at == part
        )


@pytest.mark.parametrize(("names", "least"), [(tuple(POLICIES), 0.5), (tuple(IMPORTANCE), 0.45)])
def test_the_proxy_ranks_policies_as_the_marks_do(
    shares: dict[str, Any], names: tuple[str, ...], least: float
) -> None:
    found = []
    for part in PARTS:
        one, other = (
            pd.Series([shares[by][name, part] for name in names]) for by in ("marks", "names")
        )
        found.append(kendall(one, other))
    assert np.mean(found) >= least


def two_questions() -> bk.Trace:
    said = ["The cellar key hangs behind the blue door.", "Good.", *["la " * 30, "so " * 30] * 6]
    said += ["Where is the cellar key?", "Behind the door.", "Thanks, and now a song.", "La."]
    raw = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": text}
        for n, text in enumerate(said)
    ]
    return bk.Trace("keys", tuple(bk.Message(each) for each in raw))


def test_what_the_question_asks_for_comes_back_for_that_turn_alone_and_within_the_limit() -> None:
    budget = bk.presets.working_memory(400, output=50, history_floor=0)
    outcome = bk.replay(two_questions(), budget, bk.policies.BringBack(share=bk.Share("0.4")))
    frame = outcome.frame()
    assert outcome.returned[7] == (0, 1), "the fact, and the answer beside it"
    assert outcome.returned[8] == ()
    assert (frame["history"] <= frame["limit"]).all()
    assert (frame["sent"] == frame["history"] + frame["others"]).all()
    plain = bk.replay(two_questions(), budget, bk.policies.OldestFirst())
    assert not any(plain.returned)


def test_the_cache_ends_where_something_came_back() -> None:
    """What stands before the current turn in one request and is gone in the next breaks the prefix there."""
    budget = bk.presets.working_memory(400, output=50, history_floor=0)
    outcome = bk.replay(two_questions(), budget, bk.policies.BringBack(share=bk.Share("0.4")))
    frame = outcome.frame()
    kept_there = frame["history"].iloc[7] - sum(outcome.placed.tokens[list(outcome.returned[7])])
    head = outcome.placed.head()
    assert frame["cached"].iloc[8] <= head + kept_there


def test_a_call_comes_back_with_its_result() -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"what": "zebra"}'},
    }
    raw: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "found in the north"},
        {"role": "assistant", "content": "done"},
        *[{"role": role, "content": "la " * 40} for role in ("user", "assistant")] * 5,
        {"role": "user", "content": "zebra?"},
    ]
    trace = bk.Trace("calls", tuple(map(bk.Message, raw)))
    budget = bk.presets.working_memory(400, output=50, history_floor=0)
    outcome = bk.replay(trace, budget, bk.policies.BringBack(neighbours=0))
    assert outcome.returned[-1] == (1, 2)


def test_a_search_ranks_rare_words_above_common_ones() -> None:
    index = Index(["the cat", "the dog", "the bird sings", "the zebra"])
    assert index.scores("the zebra", 4).argmax() == 3
    assert (index.scores("zebra", 3) == 0).all(), "what comes later is not known"
    assert index.scores("", 4).tolist() == [0, 0, 0, 0]
    assert Index(["我住在卑尔根", "天气很好"]).scores("卑尔根", 2).argmax() == 0
