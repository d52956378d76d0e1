"""Sweeps: a curve and a slider can never disagree."""

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit import presets
from budgetkit.plan.batch import cut_share

DEMAND = {"system": 900, "memory": 900, "retrieval": 4_000, "conversation": 2_000, "user": 100}


def test_one_line_is_a_slider_that_moves_itself() -> None:
    """Every row is the plan of the budget with that value."""
    budget = presets.chat(8_192)
    swept = bk.sweep(budget, DEMAND, output=[0, 1_228, 2_868])
    for output, rows in swept.groupby("output"):
        plan = bk.allocate(budget.assign(output=int(output)), DEMAND)  # type: ignore[arg-type]
        assert rows.set_index("section")["granted"].to_dict() == {
            g.section: g.granted for g in plan.grants
        }
        assert set(rows["free"]) == {plan.free}


def test_two_lines_give_every_pair() -> None:
    """A grid for a heat-map, with shares resolved to tokens."""
    swept = bk.sweep(
        presets.chat(8_192), DEMAND, output=[500, 1_000], retrieval=[bk.Share(0.1), bk.Share(0.2)]
    )
    grid = swept[swept["section"] == "retrieval"].pivot(
        index="output", columns="retrieval", values="cut"
    )
    assert list(map(int, grid.columns)) == [819, 1_638]
    assert grid.to_numpy().tolist() == [[3_181, 2_362], [3_181, 2_362]]


def test_over_committed_values_are_planned_with_a_signed_deficit() -> None:
    """A sweep runs past the edge; it does not stop at it."""
    swept = bk.sweep(presets.chat(8_192), DEMAND, output=[4_000])
    assert set(swept["shared_pool"]) == {8_192 - 4_000 - 5_324}


def test_many_demands_and_in_what_share_something_is_cut() -> None:
    """Two of three conversations are cut at 1,000, one at 2,000."""
    demands = pd.DataFrame(
        {"history": [500, 1_500, 2_500]}, index=pd.Index(["a", "b", "c"], name="conversation")
    )
    swept = bk.sweep(bk.Budget(9, (), [bk.Allocation("history")]), demands, window=[1_000, 2_000])
    assert list(swept["conversation"]) == ["a", "b", "c"] * 2
    share = (
        cut_share(swept, "window").query("section == 'history'").set_index("window")["cut_share"]
    )
    assert share.round(3).to_dict() == {1_000: 0.667, 2_000: 0.333}


def test_the_share_of_turns_and_of_conversations_are_two_numbers() -> None:
    """One of three turns loses something, and so does one of two conversations."""
    index = pd.MultiIndex.from_tuples(
        [("a", 1), ("a", 2), ("b", 1)], names=["conversation", "turn"]
    )
    demands = pd.DataFrame({"history": [100, 700, 200], "notes": [0, 600, 0]}, index=index)
    budget = bk.Budget(9, (), [bk.Allocation("history"), bk.Allocation("notes")])
    swept = bk.sweep(budget, demands, window=[500, 5_000])
    found = {}
    for of in ("turns", "conversations"):
        rows = cut_share(swept, "window", of).query("section == 'any'")
        found[of] = (rows["cut_share"].round(3).tolist(), rows["cut"].round(1).tolist())
    expected = {"turns": ([0.333, 0.0], [266.7, 0.0]), "conversations": ([0.5, 0.0], [400.0, 0.0])}
    assert found == expected
    by_both = cut_share(swept, ["window", "conversation"], "conversations").query(
        "section == 'any' and window == 500"
    )
    assert by_both["cut_share"].tolist() == [1.0, 0.0]
    refusal = "Invalid of: 'rows'. Choose one of: 'turns', 'conversations"
    with pytest.raises(ValueError, match=refusal):
        cut_share(swept, "window", "rows")  # type: ignore[arg-type]


def test_a_conversation_of_its_own_is_cut_or_not() -> None:
    """A frame of turns alone is one conversation."""
    demands = pd.DataFrame({"history": [100, 700]}, index=pd.RangeIndex(1, 3, name="turn"))
    swept = bk.sweep(bk.Budget(9, (), [bk.Allocation("history")]), demands, window=[500])
    assert cut_share(swept, "window", "conversations")["cut_share"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("level", "names", "refusal"),
    [
        ("section", ["history"], "Index levels of demands are named like"),
        (None, ["history", "history"], "Two columns of demands have the same name"),
    ],
)
def test_demands_with_a_name_twice_are_refused(
    level: str | None, names: list[str], refusal: str
) -> None:
    index = pd.Index([0], name=level)
    demands = pd.DataFrame([[1] * len(names)], index, pd.Index(names))
    with pytest.raises(ValueError, match=refusal):
        bk.sweep(bk.Budget(10, (), [bk.Allocation("history")]), demands, window=[5, 10])


@pytest.mark.parametrize(
    "lines", [{}, {"output": []}, {"output": [1], "system": [1], "memory": [1]}]
)
def test_a_sweep_moves_one_line_or_two(lines: dict[str, list[int]]) -> None:
    """Anything else says how to write it."""
    refusal = r"Pass one or two sizes, each .*, as in sweep\(budget, demand, output=range"
    with pytest.raises(ValueError, match=refusal):
        bk.sweep(presets.chat(8_192), DEMAND, **lines)


def test_unknown_line() -> None:
    """The lines are listed."""
    refusal = "Unknown reserve or section 'ouput'. Did you mean 'output'"
    with pytest.raises(LookupError, match=refusal):
        bk.sweep(presets.chat(8_192), DEMAND, ouput=[1])


@pytest.mark.parametrize("name", ["free", "section", "shared_pool"])
def test_a_line_named_as_a_column_of_the_table_is_refused_before_any_plan(name: str) -> None:
    """A table cannot have two columns of one name."""
    budget = bk.Budget(100, (), [bk.Allocation(name)])
    refusal = f"Cannot sweep '{name}': the result has columns of these names: 'section', .* Rename"
    with pytest.raises(ValueError, match=refusal):
        bk.sweep(budget, {name: 3}, **{name: [1, 2]})
    assert list(bk.sweep(budget, {name: 3}, window=[10])["section"]) == [name]
