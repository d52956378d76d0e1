"""Files that budgetkit 0.1.0 wrote load for ever; they are never written again.

``tests/states/0.1.0`` holds the presets at a window of 128,000 tokens, a budget with no field at its default, plans of
two shipped conversations with their texts, one of any plain payloads, and the twelve ways to divide a window of 400.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import state
from budgetkit.budget.orders import with_order

FILES = sorted((Path(__file__).parents[1] / "states" / "0.1.0").glob("*.json"))


# What 0.1.0 could be told and no preset, document or notebook did; the nearest order stands for it.
GONE = {
    "walk-pool-together-section",
    "walk-pool-each-section",
    "walk-pool-each-item",
    "walk-importance-each-item",
    "every-field",
}


def loaded(path: Path) -> bk.Budget | bk.Plan:
    read = state.from_json if path.suffix == ".json" else state.from_yaml
    with (
        pytest.warns(UserWarning, match="is the nearest; look at its plan")
        if path.stem in GONE
        else nullcontext()
    ):
        return read(path.read_bytes().decode())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:this state of 0.1.0 divides:UserWarning")
def test_a_file_of_0_1_0_loads_with_all_that_it_holds(path: Path) -> None:
    """The same from JSON and from YAML, and nothing is lost when it is saved again; three fields are one order."""
    value, written = loaded(path), json.loads(path.read_bytes())
    assert value == loaded(path.with_suffix(".yaml"))
    budget = written.get("plan", written)
    budget["budget"] = with_order(budget["budget"])
    assert state.to_dict(value, texts=True) == written


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if p.stem.startswith("walk") and p.stem not in GONE],
    ids=lambda path: path.stem,
)
def test_a_window_is_divided_as_0_1_0_divided_it(path: Path) -> None:
    plan = loaded(path)
    assert isinstance(plan, bk.Plan)
    again = bk.fit(plan.budget, plan.decisions.columns)
    assert [grant.granted for grant in again.grants] == [grant.granted for grant in plan.grants]


def test_a_budget_of_0_1_0_with_every_field_says_the_same() -> None:
    budget = loaded(next(path for path in FILES if path.stem == "every-field"))
    assert isinstance(budget, bk.Budget)
    assert (budget.order, budget.kind, budget.rounding, budget.window) == (
        *("pool each", "usable", "largest_remainder", 4_096),
    )
    assert (budget.constrained_below, budget.remainder, budget.deficit) == (256, "null", "signed")


@pytest.mark.parametrize("field", ["order", "pool", "compete"])
@pytest.mark.parametrize("value", [3, None, [], "best"])
def test_an_order_that_0_1_0_did_not_know_is_refused(field: str, value: object) -> None:
    old = {"window": 9, "pool": "open", field: value}
    with pytest.raises(
        ValueError,
        match="order, pool and compete are .*; known are the names of 0.1.0; write an order",
    ):
        state.from_dict({"budgetkit": 1, "budget": old})


def test_there_are_as_many_as_were_written() -> None:
    assert len(FILES) == 24


RUNNING = sorted((Path(__file__).parents[1] / "states" / "0.2.0").glob("*.json"))


def about(replaced: list[Any]) -> str:
    return f"{len(replaced)} messages about a parcel."


POLICIES: dict[str, tuple[bk.policies.Policy, dict[str, Any]]] = {
    "oldest-first": (bk.policies.OldestFirst(), {}),
    "summaries": (
        bk.policies.Summarise(bk.Share("0.5")),
        {"summarise": about},
    ),
    "placeholders": (bk.policies.DropToolResults(intact=1), {}),
    "bring-back": (bk.policies.BringBack(bk.policies.SlidingWindow(2), bk.Share("0.3")), {}),
}


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_a_running_conversation_of_0_2_0_goes_on_as_it_would_have_gone(path: Path) -> None:
    """Its rows had no names; its next request is the one that 0.2.0 itself made next."""
    written = json.loads(path.read_bytes())
    policy, more = POLICIES[path.stem]
    talk = bk.Conversation.from_json(
        json.dumps(written["saved"]), policy, "o200k_base", overrun="tell", **more
    )
    again = bk.Conversation.from_json(talk.to_json(), policy, "o200k_base", overrun="tell", **more)
    for each in (talk, again):
        request = each.request()
        assert (request.messages, request.tokens) == (written["next"], written["tokens"])


def test_there_is_a_running_conversation_of_each_kind_of_policy() -> None:
    assert [path.stem for path in RUNNING] == sorted(POLICIES)
