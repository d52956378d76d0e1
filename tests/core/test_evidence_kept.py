"""A proxy for evidence, and how much of it policies keep, on conversations whose evidence is known."""

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetkit as bk
from benchmarks.promised import IMPORTANCE, PARTS, POLICIES, kendall, kept

THINGS = (
    *("passport", "bicycle", "cellar", "violin", "orchard", "telescope", "dentist", "mower"),
    *("aquarium", "stairs"),
)
PLACES = ("Bergen", "Lyon", "Porto", "Graz", "Turku", "Malmo", "Ghent", "Split", "Brno", "Cork")
CHATTER = (
    *("weather", "morning", "lunch", "train", "window", "coffee", "music", "walk", "garden"),
    *("rain", "book", "sun"),
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
def test_at_a_tenth_oldest_first_loses_most_and_hindsight_least(shares: dict[str, Any]) -> None:
    by_marks = shares["marks"]
    assert by_marks["oldest first", 0.1] <= 0.15
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
