"""The figures of a replay: the table behind each, and what is drawn from it."""

from __future__ import annotations

import json

import pytest

import budgetkit as bk
from budgetkit import figures, policies
from budgetkit.lab.figures.question import Question, Spec
from budgetkit.lab.replay.forecast import Pace, paths
from tests.lab.test_replay import AGENT, CLAUDE, TOY, chat, replayed, window

OUTCOME = replayed(TOY, window(100), policies.OldestFirst())
SHRUNK = replayed(AGENT, window(100), policies.DropToolResults(5))
BY_NAME = {"oldest": OUTCOME, "low <mark>": replayed(TOY, window(100), policies.TriggerTarget())}


def every_figure() -> list[tuple[Question[...], Spec]]:
    return [
        (figures.timeline, figures.timeline.spec(OUTCOME)),
        (figures.caching, figures.caching.spec(OUTCOME)),
        (figures.spending, figures.spending.spec(BY_NAME)),
        (figures.dropping, figures.dropping.spec(SHRUNK)),
        (figures.fan, figures.fan.spec(paths([10, 20], 5), {"window": 90})),
    ]


@pytest.mark.parametrize(
    ("question", "spec"), every_figure(), ids=lambda part: getattr(part, "title", "")
)
def test_a_figure_is_plain_data_and_asks_a_question(question: Question[...], spec: Spec) -> None:
    assert json.loads(json.dumps(spec)) == spec
    assert question.title.endswith("?")
    assert spec["data"]
    assert all(spec["layout"][axis]["title"]["text"] for axis in ("xaxis", "yaxis"))


def test_the_timeline_stacks_what_is_sent_and_marks_what_left() -> None:
    table = figures.timeline.table(OUTCOME)
    assert table.groupby("request")["tokens"].sum().tolist() == OUTCOME.sent.tolist()
    cuts = figures.timeline.spec(OUTCOME)["data"][-1]
    assert cuts["x"] == [4, 5, 6, 7, 8]
    assert cuts["text"][0] == "request 4: 10 tokens dropped"
    answer = figures.timeline.spec(OUTCOME)["layout"]["meta"]["answer"]
    largest = table["tokens"].max()
    assert answer == (
        f"Mostly history, up to {largest} tokens; from request 4 on, messages are dropped in 5 of 8 requests"
    )


def test_the_cache_figure_stacks_to_what_is_sent() -> None:
    stacked = [trace["y"] for trace in figures.caching.spec(OUTCOME)["data"]]
    sent = OUTCOME.sent.tolist()
    assert [sum(column) for column in zip(*stacked, strict=True)] == [*sent, sent[-1]], (
        "the last one is drawn to its end"
    )
    answer = figures.caching.spec(OUTCOME)["layout"]["meta"]["answer"]
    assert answer.startswith(f"{OUTCOME.cached.sum() / sum(sent):.0%}".replace("%", " % of "))


def test_of_two_requests_each_has_its_width_and_every_tick_is_one_of_them() -> None:
    """On 0.1.0 the last request had none, and an axis of two turns had ticks between them."""
    two = replayed(chat(2, 10, 20, 5), window(100), policies.OldestFirst())
    drawn = figures.timeline.spec(two)
    last = int(two.frame()["request"].max())
    assert drawn["layout"]["xaxis"]["range"] == [1, last + 1]
    assert (drawn["layout"]["xaxis"]["tick0"], drawn["layout"]["xaxis"]["dtick"]) == (1, 1)
    assert all(trace["x"][-1] == last + 1 for trace in drawn["data"] if trace["mode"] == "lines")


def test_more_policies_than_colours_are_told_apart() -> None:
    drawn = figures.spending.spec({f"policy {number}": OUTCOME for number in range(20)})
    assert len({(trace["line"]["color"], trace["line"]["dash"]) for trace in drawn["data"]}) == 20


def test_small_sums_of_money_have_ticks_that_are_not_all_zero() -> None:
    table = figures.spending.table(BY_NAME).assign(
        spent=lambda frame: frame["spent"] / 1e6, unit="US dollars"
    )
    assert figures.spending.draw(table)["layout"]["yaxis"]["tickformat"] == ".3~r"
    assert (
        figures.spending.draw(table.assign(spent=table["spent"] * 1e6))["layout"]["yaxis"][
            "tickformat"
        ]
        == ",.2~f"
    )


def test_spending_is_in_dollars_only_where_every_price_is_known() -> None:
    weighed = figures.spending.table(BY_NAME)
    assert weighed["unit"].unique().tolist() == ["weighted input tokens"]
    priced = {
        name: replayed(TOY, window(100), outcome.policy, prices=CLAUDE)
        for name, outcome in BY_NAME.items()
    }
    dollars = figures.spending.table(priced)
    assert dollars["unit"].unique().tolist() == ["US dollars"]
    last = dollars.groupby("policy")["spent"].max()
    assert last["oldest"] == pytest.approx(priced["oldest"].totals()["cost"])


def test_a_dropped_message_is_a_line_that_ends_where_it_left() -> None:
    table = figures.dropping.table(OUTCOME).set_index("message")
    assert list(table.loc[1, ["first", "until", "fate"]]) == [1, 4, "dropped"]
    assert list(table.loc[15, ["first", "until", "fate"]]) == [8, 9, "kept"]
    shrunk = next(t for t in figures.dropping.spec(SHRUNK)["data"] if t["name"] == "shrunk")
    assert shrunk["text"][0] == "message 2, tool, 50 tokens: shrunk"


def test_policies_are_ranked() -> None:
    assert bk.deciding.rank_policies(BY_NAME)["policy"].tolist() == ["low <mark>", "oldest"]


def test_the_fan_has_two_bands_a_middle_and_its_limits() -> None:
    spec = figures.fan.spec(paths([10], 3, start=5, pace=Pace(1.0, 0.0)), {"window": 30})
    assert [len(trace["x"]) for trace in spec["data"]] == [6, 6, 3]
    assert spec["data"][2]["y"] == [15.0, 25.0, 35.0]
    assert spec["layout"]["annotations"][0]["text"] == "window 30"


def test_plotly_takes_them_all() -> None:
    assert (
        bk.figures.timeline(OUTCOME).layout.title.text
        == "What fills the window, request by request?"
    )
    for figure in (
        bk.figures.caching(OUTCOME),
        bk.figures.dropping(SHRUNK),
    ):
        assert len(figure.data) > 0
    assert len(bk.figures.fan(paths([10, 20], 5)).data) == 3
    assert len(bk.figures.spending(BY_NAME).data) == 2
