"""Figures: the table behind each, what is drawn from it, one colour a section, and names that stay text."""

import itertools
import json
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import figures
from budgetkit.budget.html import POOL, colour, ink, luminance
from budgetkit.lab.figures.question import Question, Spec, end_labels
from budgetkit.lab.figures.window import window_claims

ANCHOR = bk.Budget(
    8_192,
    [bk.Reserve("output", 1_200)],
    [bk.Allocation("system", 800), bk.Allocation("retrieval", 3_200), bk.Allocation("memory")],
    undeclared="pool",
)
OCTOPUS = bk.Budget(
    10_000,
    [bk.Reserve("output", 2_000)],
    [
        bk.Allocation("system", required=True),
        bk.Allocation("history"),
        bk.Allocation("current", required=True),
    ],
    remainder="history",
    deficit="signed",
)
GROWING = pd.DataFrame(
    {"system": [1_000, 1_000, 1_000], "history": [2_000, 6_000, 9_000], "current": [500, 500, 500]},
    index=pd.RangeIndex(1, 4, name="turn"),
)
LAST = {"system": 1_000, "history": 9_000, "current": 500}
BILLED = bk.count_request(
    {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Hello world"}],
        "tools": [{"type": "function", "function": {"name": "ping"}}],
    }
)


def plain(table: pd.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return list(table[list(columns)].itertuples(index=False, name=None))


def every_figure() -> list[tuple[Question[...], Spec]]:
    plan = bk.fit(
        ANCHOR, [bk.Item("system", 900), bk.Item("retrieval", 300), bk.Item("memory", 50)]
    )
    many = pd.concat({0: GROWING, 1: GROWING * 2}, names=["conversation"])
    line = bk.sweep(OCTOPUS, LAST, window=range(4_000, 16_001, 2_000))
    both = bk.sweep(OCTOPUS, LAST, window=range(8_000, 16_001, 2_000), output=[0, 1_000, 2_000])
    return [
        (figures.window, figures.window.spec(plan)),
        (figures.waterfall, figures.waterfall.spec(plan)),
        (figures.sections, figures.sections.spec(plan)),
        (figures.turns, figures.turns.spec(OCTOPUS, GROWING, 2, OCTOPUS.assign(output=3_000))),
        (figures.counter_error, figures.counter_error.spec(OCTOPUS, GROWING, GROWING // 2)),
        (figures.conversations, figures.conversations.spec(OCTOPUS, many)),
        (figures.sweep_line, figures.sweep_line.spec(line)),
        (figures.sweep_map, figures.sweep_map.spec(both)),
        (figures.ledger, figures.ledger.spec(BILLED)),
    ]


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_caps_claim_the_window_and_the_pool_has_the_rest() -> None:
    """Anchor's example: 8,192 less 1,200 less 800 less 3,200 leaves 2,992, of which memory takes 50."""
    plan = bk.allocate(ANCHOR, {"system": 500, "memory": 50})
    assert plain(figures.window.table(plan), "line", "kind", "tokens", "granted") == [
        ("system", "section", 800, 500),
        ("retrieval", "section", 3_200, 0),
        ("memory", "section", 50, 50),
        ("shared pool", "pool", 2_942, 0),
        ("output", "reserve", 1_200, 1_200),
    ]
    assert plain(figures.waterfall.table(plan), "line", "tokens", "start", "end") == [
        ("window", 8_192, 0, 8_192),
        ("output", -1_200, 8_192, 6_992),
        ("system", -800, 6_992, 6_192),
        ("retrieval", -3_200, 6_192, 2_992),
        ("shared pool", 2_992, 0, 2_992),
    ]


def test_where_a_section_has_the_rest_the_others_claim_what_they_take() -> None:
    plan = bk.allocate(OCTOPUS, {"system": 1_200, "current": 100, "history": 9_000})
    table = figures.waterfall.table(plan)
    assert plain(table, "line", "tokens")[-1] == ("history", 6_700)
    assert plan["history"].limit == 6_700
    assert plain(figures.window.table(plan), "line", "tokens")[1] == ("history", 6_700)


def test_tokens_that_a_reserve_holds_for_a_section_are_claimed_once() -> None:
    held = bk.Budget(
        1_000, [bk.Reserve("incoming", 500, serves="current")], [bk.Allocation("current")]
    )
    found = {
        claim.line: claim.tokens for claim in window_claims(bk.allocate(held, {"current": 300}))
    }
    assert found == {"current": 300, "shared pool": 500, "incoming": 200}


def test_too_much_claimed_is_a_negative_bar_in_the_colour_of_alarm() -> None:
    over = bk.Budget(
        1_000, [bk.Reserve("output", 600)], [bk.Allocation("system", 500)], deficit="signed"
    )
    spec = figures.waterfall.spec(bk.allocate(over, {}))
    assert figures.waterfall.table(over)["tokens"].iloc[-1] == -100
    assert spec["data"][0]["marker"]["color"][-1] == "#D55E00"
    assert figures.window.spec(over)["layout"]["annotations"][0]["text"] == "window ends: 1,000"


def test_sections_table_counts_the_items_that_were_cut() -> None:
    budget = bk.Budget(
        100, (), [bk.Allocation("history", 50, keep="newest"), bk.Allocation("system")]
    )
    plan = bk.fit(budget, [bk.Item("history", 40), bk.Item("history", 30), bk.Item("system", 10)])
    assert plain(
        figures.sections.table(plan), "section", "demand", "granted", "cut", "items", "items_cut"
    ) == [
        ("history", 70, 30, 40, 2, 1),
        ("system", 10, 10, 0, 1, 0),
    ]


def test_turns_follow_the_remainder_and_mark_the_first_cut() -> None:
    table = figures.turns.table(OCTOPUS, GROWING, turn=2)
    assert plain(table, "turn", "demand", "limit", "granted", "cut", "chosen", "first_cut") == [
        (1, 2_000, 6_500, 2_000, 0, False, ""),
        (2, 6_000, 6_500, 6_000, 0, True, ""),
        (3, 9_000, 6_500, 6_500, 2_500, False, "history"),
    ]
    notes = [note["text"] for note in figures.turns.spec(OCTOPUS, GROWING)["layout"]["annotations"]]
    assert notes == ["kept and limit: 6,500", "demand: 9,000", "first cut: turn 3"]


def test_turns_show_what_the_key_figure_shows_where_a_floor_overruns() -> None:
    """The history keeps its floor of 4,000, and the line says what was left for it: the same subtraction."""
    budget = bk.presets.working_memory(10_000, history_floor=4_000)
    table = figures.turns.table(budget, GROWING)
    assert plain(table, "demand", "limit", "granted") == [
        (2_000, 10_000 - 4_096 - 1_500, 2_000),
        (6_000, 10_000 - 4_096 - 1_500, 4_404),
        (9_000, 10_000 - 4_096 - 1_500, 4_404),
    ]
    narrow = figures.turns.table(budget.assign(window=5_000), GROWING)
    last = bk.allocate(budget.assign(window=5_000), LAST)
    assert list(narrow["limit"]) == [5_000 - 4_096 - 1_500] * 3
    assert (last.remainder, last["history"].granted) == (5_000 - 4_096 - 1_500, 4_000)
    assert list(narrow["granted"]) == [2_000, 4_000, 4_000]


@pytest.mark.parametrize(
    ("turn", "anchor"), [(1, "left"), (3, "left"), (5, "center"), (7, "right"), (9, "right")]
)
def test_the_mark_of_the_first_cut_stays_inside_the_figure(turn: int, anchor: str) -> None:
    """A quarter of the figure's width is enough for its text on either side of where it stands."""
    demand = pd.DataFrame({"history": [0] * (turn - 1) + [9_000] * (11 - turn)}, index=range(1, 11))
    demand.index.name = "turn"
    note = figures.turns.spec(OCTOPUS, demand)["layout"]["annotations"][-1]
    assert (note["text"], note["xanchor"]) == (f"first cut: turn {turn}", anchor)


def test_an_axis_of_sizes_names_their_unit() -> None:
    """In 0.3.0 most axes had numbers without a unit."""
    plan = bk.allocate(OCTOPUS, LAST)
    swept = bk.sweep(OCTOPUS, LAST, window=[9_000, 10_000])
    for axis, spec in (
        ("xaxis", figures.window.spec(plan)),
        ("xaxis", figures.waterfall.spec(plan)),
        ("xaxis", figures.sections.spec(plan)),
        ("xaxis", figures.ledger.spec(BILLED)),
        ("yaxis", figures.turns.spec(OCTOPUS, GROWING)),
        ("yaxis", figures.counter_error.spec(OCTOPUS, GROWING, GROWING)),
        ("yaxis", figures.sweep_line.spec(swept)),
    ):
        assert spec["layout"][axis]["title"]["text"] == "tokens"


def test_names_at_the_ends_of_lines_stand_in_the_order_of_the_lines_and_off_them() -> None:
    table = pd.DataFrame(
        {"turn": [1, 2, 3], "low": [5, 6, 90], "high": [50, 100, 100], "flat": [70, 70, 70]}
    )
    notes = end_labels(table, {"high": "high", "low": "low", "flat": "flat"}, 10)
    assert [note["text"] for note in notes] == ["flat", "low", "high"]
    places = [note["y"] for note in notes]
    assert all(after - before >= 10 for before, after in itertools.pairwise(places))
    assert places[0] == 70, "above its own line; the others end higher"


def test_a_line_that_falls_is_named_below_its_end() -> None:
    """ "count −1,724" was struck through by the line that it names."""
    table = pd.DataFrame({"turn": [*range(1, 11)], "error": [-10 * turn for turn in range(1, 11)]})
    (note,) = end_labels(table, {"error": "count −100"}, 9)
    assert note["y"] == -100 - 9


def test_a_sweep_names_its_lines_in_their_order() -> None:
    swept = bk.sweep(OCTOPUS, LAST, window=range(4_000, 16_001, 2_000))
    spec = figures.sweep_line.spec(swept)
    ends = {trace["name"]: trace["y"][-1] for trace in spec["data"]}
    named = [
        note["text"] for note in sorted(spec["layout"]["annotations"], key=lambda note: note["y"])
    ]
    assert [ends[name] for name in named] == sorted(ends.values())


def test_turns_of_a_budget_without_a_remainder_follow_all_that_is_asked() -> None:
    table = figures.turns.table(ANCHOR, pd.DataFrame({"system": [500], "memory": [700]}, index=[1]))
    assert plain(table, "line", "demand", "limit", "granted") == [
        ("all sections", 1_200, 6_992, 1_200)
    ]


def test_a_count_that_is_too_low_makes_the_history_budget_too_large() -> None:
    table = figures.counter_error.table(OCTOPUS, GROWING, GROWING // 2)
    assert plain(table, "turn", "error", "error_percent", "shift")[0] == (1, -1_750, -50.0, 750)


def test_conversations_are_counted_once_whichever_of_their_turns_is_cut() -> None:
    many = pd.concat({0: GROWING.iloc[:2], 1: GROWING, 2: GROWING * 2}, names=["conversation"])
    assert plain(
        figures.conversations.table(OCTOPUS, many), "section", "conversations", "cut", "share"
    ) == [
        ("all sections", 3, 2, 0.6667),
        ("system", 3, 0, 0.0),
        ("history", 3, 2, 0.6667),
        ("current", 3, 0, 0.0),
    ]


def test_sweep_map_needs_two_lines() -> None:
    swept = bk.sweep(OCTOPUS, {"history": 900}, window=[1_000, 4_000])
    with pytest.raises(ValueError, match="exactly two varied sizes, not 1"):
        figures.sweep_map(swept)


def test_sweep_line_needs_one_line() -> None:
    """Two lines in one curve would be summed."""
    swept = bk.sweep(OCTOPUS, {"history": 900}, window=[1_000, 4_000], output=[0, 500])
    with pytest.raises(
        ValueError,
        match=r"exactly one varied size, not 2 \('window', 'output'\). Give .* or use sweep_map",
    ):
        figures.sweep_line.table(swept)


def test_sweeps_of_many_demands_show_their_mean_and_say_so() -> None:
    """Three turns of 2,000, 6,000 and 9,000 ask for 5,667 of history in the mean, and lose what is over 8,500."""
    swept = bk.sweep(OCTOPUS, GROWING, window=[12_000, 20_000])
    table = figures.sweep_line.table(swept)
    history = table[table["section"] == "history"].round(1)
    assert plain(history, "window", "demand", "granted", "cut", "demands") == [
        (12_000, 5_666.7, 5_500.0, 166.7, 3),
        (20_000, 5_666.7, 5_666.7, 0.0, 3),
    ]
    assert (
        figures.sweep_line.spec(swept)["layout"]["yaxis"]["title"]["text"]
        == "tokens, mean of 3 demands"
    )
    with pytest.raises(ValueError, match="exactly two varied sizes, not 1"):
        figures.sweep_map.table(swept)


def test_sweep_map_of_many_demands_begins_where_one_of_them_is_cut() -> None:
    swept = bk.sweep(OCTOPUS, GROWING, window=[12_000, 20_000], output=[0, 2_000])
    assert plain(figures.sweep_map.table(swept).round(1), "window", "output", "cut", "demands") == [
        (12_000, 0, 0.0, 3),
        (12_000, 2_000, 166.7, 3),
        (20_000, 0, 0.0, 3),
        (20_000, 2_000, 0.0, 3),
    ]
    (heat,) = figures.sweep_map.spec(swept)["data"]
    assert heat["colorbar"]["title"]["text"] == "cut, tokens, mean of 3 demands"


def test_sweep_map_is_green_where_nothing_is_cut() -> None:
    swept = bk.sweep(OCTOPUS, {"history": 5_000}, window=[6_000, 8_000], output=[0, 3_000])
    (heat,) = figures.sweep_map.spec(swept)["data"]
    assert heat["z"] == [[0, 0], [2_000, 0]]
    assert heat["colorscale"][0] == [0, "rgba(0,158,115,0.35)"]


@pytest.mark.parametrize("place", range(8))
def test_each_figure_asks_a_question_that_plotly_can_draw(place: int) -> None:
    question, spec = every_figure()[place]
    assert question.title.endswith("?")
    assert json.loads(json.dumps(spec)) == spec, "plain data, as the page gets it"
    assert spec["layout"]["height"] > 0
    assert {"l", "r", "t", "b"} <= spec["layout"]["margin"].keys()


def test_a_figure_is_its_specification_with_the_question_as_its_title() -> None:
    plan = bk.allocate(ANCHOR, {"system": 500})
    figure = figures.waterfall(plan)
    assert figure.layout.title.text == figures.waterfall.title
    assert len(figure.data) == 1
    assert list(figure.data[0].customdata) == [
        *("window", "output", "system", "retrieval", "shared pool"),
    ]


@pytest.mark.parametrize("place", range(8))
def test_no_figure_has_an_attribute_that_plotly_does_not_know(place: int) -> None:
    import plotly.graph_objects as go

    question, spec = every_figure()[place]
    go.Figure(spec)
    assert question.title


def test_a_specification_is_made_without_plotly() -> None:
    program = (
        "import sys, budgetkit as bk; from budgetkit import figures\n"
        "figures.waterfall.spec(bk.Budget(100)); assert 'plotly' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("name", list(bk.presets.PRESETS))
def test_a_section_has_one_colour_in_every_figure_and_no_other_section_of_its_preset_has_it(
    name: str,
) -> None:
    budget = bk.presets.PRESETS[name](32_768)
    plan = bk.allocate(budget, dict.fromkeys(budget.sections, 100))
    assert len({colour(section) for section in budget.sections}) == len(budget.sections)
    bar = {
        trace["customdata"][0]: trace["marker"]["color"]
        for trace in figures.window.spec(plan)["data"]
    }
    fall = figures.waterfall.spec(plan)["data"][0]
    granted = figures.sections.spec(plan)["data"][1]
    for trace in (fall, granted):
        for section, shown in zip(trace["customdata"], trace["marker"]["color"], strict=True):
            assert shown == bar.get(section, colour(section))


def test_an_unknown_name_has_the_same_colour_in_every_session() -> None:
    program = "from budgetkit.lab.figures import colour; print(colour('my own section'))"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert said.stdout.strip() == colour("my own section")


@given(st.text(min_size=1, max_size=20))
def test_text_on_any_colour_can_be_read(name: str) -> None:
    """4.5:1 by WCAG 2's formula, for the black or the white that is chosen."""
    assert ink(colour(name)) in ("#111111", "#ffffff")
    assert contrast(ink(colour(name)), colour(name)) >= 4.5


def contrast(first: str, second: str) -> float:
    bright, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_names_stay_text() -> None:
    """plotly reads tags in its texts, so a name that looks like one arrives as entities."""
    evil = "<b>x</b><img src=x onerror=alert(1)>"
    budget = bk.Budget(1_000, [bk.Reserve("<i>r", 10)], [bk.Allocation(evil, 100)], remainder=evil)
    demand = pd.DataFrame({evil: [50, 500]}, index=pd.RangeIndex(1, 3, name="turn"))
    plan = bk.allocate(budget, {evil: 200})
    many = pd.concat({0: demand}, names=["conversation"])
    specs = [
        figures.window.spec(plan),
        figures.waterfall.spec(plan),
        figures.sections.spec(plan),
        figures.turns.spec(budget, demand),
        figures.counter_error.spec(budget, demand, demand),
        figures.conversations.spec(budget, many),
        figures.sweep_line.spec(bk.sweep(budget, {evil: 200}, window=[500, 1_000])),
    ]
    for spec in specs:
        for trace in spec["data"]:
            trace.pop("customdata", None)  # data, never shown
        assert not [
            text for text in texts(spec) if "<i>r" in text or "<img" in text or "<b>x" in text
        ]


sizes = st.integers(0, 5_000)


@given(
    sizes,
    st.lists(st.tuples(sizes, st.none() | sizes), min_size=1, max_size=5),
    st.booleans(),
    sizes,
)
def test_claims_always_sum_to_the_window(
    output: int, lines: list[tuple[int, int | None]], has_rest: bool, window: int
) -> None:
    sections = [bk.Allocation(f"s{i}", cap) for i, (_, cap) in enumerate(lines)]
    rest = [bk.Allocation("rest")] if has_rest else []
    budget = bk.Budget(
        window,
        [bk.Reserve("output", output, serves="output")],
        [*sections, *rest],
        deficit="signed",
        remainder="rest" if has_rest else None,
    )
    plan = bk.allocate(budget, {f"s{i}": demand for i, (demand, _) in enumerate(lines)})
    found = window_claims(plan)
    assert sum(claim.tokens for claim in found) == window
    assert all(claim.tokens >= 0 for claim in found if claim.line != POOL)


def test_the_ledger_has_a_bar_for_everything_that_is_billed() -> None:
    """3 for the request, 4 and 2 for the message; the tool, and what stands around it."""
    table = figures.ledger.table(BILLED)
    assert plain(table, "kind", "part", "place")[:3] == [
        ("framing", "request", ""),
        ("message", "user", "0"),
        ("tools", "ping", ""),
    ]
    assert table["tokens"].tolist()[:2] == [3, 6]
    assert table["tokens"].sum() == BILLED.tokens
    drawn = figures.ledger.spec(BILLED)
    assert drawn["data"][0]["x"] == table["tokens"].tolist()
    assert drawn["layout"]["annotations"][0]["text"] == f"{BILLED.tokens:,} tokens in all"


def test_few_turns_are_whole_numbers_on_the_axis() -> None:
    """On 0.1.0 an axis of two turns had ticks at 1.2 and 1.4."""
    budget = bk.presets.chat(8_192)
    for many, ticks in ((2, {"tick0": 1, "dtick": 1}), (40, {"nticks": 8})):
        demand = pd.DataFrame(
            {"conversation": range(1, many + 1)}, index=pd.RangeIndex(1, many + 1, name="turn")
        )
        for drawn in (
            figures.turns.spec(budget, demand),
            figures.counter_error.spec(budget, demand, demand),
        ):
            assert drawn["layout"]["xaxis"].items() >= ticks.items()


def test_the_subtitles_of_a_sweep_agree_with_its_table() -> None:
    line = bk.sweep(OCTOPUS, LAST, window=range(4_000, 16_001, 2_000))
    history = line[line["section"] == "history"].set_index("window")["granted"]
    gain = history[16_000] - history[4_000]
    answer = figures.sweep_line.spec(line)["layout"]["meta"]["answer"]
    assert answer == f"From window 4,000 to 16,000: history +{gain:,}"
    small = bk.sweep(OCTOPUS, {"system": 10}, window=[15_000, 16_000])
    answer = figures.sweep_line.spec(small)["layout"]["meta"]["answer"]
    assert answer == "From window 15,000 to 16,000: no change"
    both = bk.sweep(OCTOPUS, LAST, window=range(8_000, 16_001, 2_000), output=[0, 1_000, 2_000])
    cut = both.groupby(["window", "output"])["cut"].sum()
    window, output = min(cut[cut == 0].index)
    answer = figures.sweep_map.spec(both)["layout"]["meta"]["answer"]
    assert answer == f"In the green area; its smallest window is {window:,}, at output {output:,}"
    narrow = bk.sweep(OCTOPUS, LAST, window=[8_000, 9_000], output=[2_000, 3_000])
    answer = figures.sweep_map.spec(narrow)["layout"]["meta"]["answer"]
    assert answer == "Something is cut in every combination"


@pytest.mark.parametrize("answer", ["", "Too low at 8,192"])
def test_the_subtitle_of_bars_is_the_answer_to_their_question(answer: str) -> None:
    """In 0.3.0 it was the range, whatever the title asked, and windows had no thousands separator."""
    sizes = pd.Series([-50.0, 20.0], index=[8_192, 16_384])
    drawn = bk.figures.bars.spec(sizes, "How far off is it?", "percent", answer)
    assert drawn["layout"]["meta"]["answer"] == answer
    assert drawn["layout"]["yaxis"]["ticktext"] == ["8,192", "16,384"]


def test_a_frontier_names_the_settings_to_choose_from() -> None:
    """In 0.3.0 its points had no names; those to choose from have, one under the other."""
    tried = pd.DataFrame(
        {
            "output": [100, 200, 300],
            "policy": ["oldest first"] * 3,
            "cost": [1.0, 2.0, 2.0],
            "lost": [2.0, 1.0, 2.0],
        }
    )
    drawn = bk.figures.frontier.spec(tried, "cost", "lost", {"output": 300})["layout"]
    names = ["output 100, oldest first", "output 200, oldest first"]
    assert [note["text"] for note in drawn["annotations"]] == names
    assert drawn["meta"]["answer"] == f"2 of 3, those on the line; {names[0]} has the lowest cost"
    best = bk.figures.frontier.spec(tried[:1], "cost", "lost")["layout"]["meta"]["answer"]
    assert best == f"One of 1 settings is best in both measures: {names[0]}"
    picture = bk.figures.frontier.svg(tried, "cost", "lost", {"output": 300})
    assert "current: output 300, oldest first" in picture
