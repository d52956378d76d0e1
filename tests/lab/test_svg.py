"""Figures as SVG: what stands where, that it is XML whatever a name is, and the same bytes each time."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.io
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import accuracy, corpora, figures
from budgetkit.lab.figures.drawing import svg
from budgetkit.lab.figures.marks import between
from budgetkit.lab.figures.question import plain, spec_of
from budgetkit.lab.figures.scales import Scale, scale_of, tick_text, ticks
from tests.conftest import examples
from tests.hostile import BIDI, CLUSTERS, MARKUP, ODD

LETTERS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), max_size=60)

SVG = "{http://www.w3.org/2000/svg}"


def drawn(spec: dict[str, Any], title: str = "Why?") -> ET.Element:
    return ET.fromstring(svg(spec, title))


def texts(picture: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in picture.iter(f"{SVG}text")]


def places(picture: ET.Element, tag: str, *names: str) -> list[tuple[float, ...]]:
    return [
        tuple(float(node.get(name, "nan")) for name in names)
        for node in picture.iter(f"{SVG}{tag}")
    ]


def test_a_bar_is_as_long_as_its_share_of_the_axis() -> None:
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": [0, 1],
        "x": [50, 100],
        "marker": {"color": ["#111111", "#222222"]},
    }
    spec = spec_of([bar], 200, {"range": [0, 200]}, {"visible": False})
    picture = drawn(spec)
    bars = [
        node for node in picture.iter(f"{SVG}rect") if node.get("fill") in ("#111111", "#222222")
    ]
    short, long = (float(bar.get("width", "0")) for bar in bars)
    assert long == pytest.approx(2 * short, abs=0.2)
    inside = 640 - 16 - 8  # the width less the margins
    assert long == pytest.approx(inside / 2, abs=0.2)


def corners(path: str) -> list[tuple[float, float]]:
    """Return the points of a path that is written with M, h, v, l and z."""
    x = y = 0.0
    points = []
    for command, rest in re.findall(r"([Mhvl])([^Mhvlz]*)", path):
        numbers = [float(each) for each in re.findall(r"-?[0-9.]+", rest)]
        if command == "M":
            x, y = numbers
        elif command == "l":
            x, y = x + numbers[0], y + numbers[1]
        elif command == "h":
            x += numbers[0]
        else:
            y += numbers[0]
        points.append((round(x, 1), round(y, 1)))
    return points


def test_stacked_steps_stand_on_one_another_and_a_line_with_a_gap_is_two() -> None:
    common = {
        "type": "scatter",
        "mode": "lines",
        "x": [1, 2, 3],
        "stackgroup": "one",
        "fillcolor": "#123456",
    }
    data = [{**common, "y": [10, 10, 10], "name": "a"}, {**common, "y": [10, 10, 10], "name": "b"}]
    gap = {"type": "scatter", "mode": "lines", "x": [1, 2, None, 2, 3], "y": [0, 0, None, 5, 5]}
    spec = spec_of([*data, gap], 200, {}, {"range": [0, 20]}, showlegend=True)
    areas = [
        node.get("d", "")
        for node in drawn(spec).iter(f"{SVG}path")
        if node.get("fill") == "#123456"
    ]
    tops = [{y for _, y in corners(area)} for area in areas]
    assert max(tops[0]) > min(tops[0]) == max(tops[1]) > min(tops[1])
    lines = [
        node.get("d", "") for node in drawn(spec).iter(f"{SVG}path") if node.get("fill") == "none"
    ]
    assert lines[-1].count("M") == 2
    assert {"a", "b"} <= set(texts(drawn(spec)))


def test_ticks_are_round_and_written_as_the_axis_asks() -> None:
    scale = scale_of({"nticks": 5}, [0, 8_000], 0, 500, from_zero=True)
    assert [name for _, name in ticks({"tickformat": "~s", "nticks": 5}, scale)] == [
        *("0", "2k", "4k", "6k", "8k"),
    ]
    assert [tick_text(each, {"tickformat": ",.2~f"}) for each in (0.5, 12.0, 1234.56)] == [
        "0.5",
        "12",
        "1,234.56",
    ]
    decades = scale_of({"type": "log"}, [10, 1_000], 0, 100)
    assert [name for _, name in ticks({"type": "log"}, decades)] == ["10", "100", "1,000"]
    assert Scale(0, 1, 0, 10, names=("a", "b")).at("b") == 10
    assert ticks({"visible": False}, scale) == []


def test_a_map_has_a_cell_for_each_combination() -> None:
    budget = bk.Budget(1_000, [bk.Reserve("output", 100)], [bk.Allocation("history")])
    swept = bk.sweep(
        budget, {"history": 500}, window=[400, 500, 600, 700, 800], output=[100, 200, 300]
    )
    picture = ET.fromstring(figures.sweep_map.svg(swept))
    cells = [
        node.get("d", "")
        for node in picture.iter(f"{SVG}path")
        if node.get("fill", "").startswith("rgb")
    ]
    assert "".join(cells).count("M") == 15
    assert between([[0, "#000000"], [1, "#ffffff"]], 1.0) == "rgb(255,255,255)"


def test_a_map_of_seven_hundred_cells_is_small_enough_to_be_stored() -> None:
    budget = bk.presets.chat(16_384)
    lines = {"window": range(8_000, 24_001, 500), "conversation": range(4_000, 14_001, 500)}
    swept = bk.sweep(budget, {"conversation": 9_135, "user": 55}, **lines)
    assert len(figures.sweep_map.svg(swept)) < 40_000


def test_a_figure_is_shown_with_its_picture_and_never_as_a_png(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    bundle = figures.window(bk.presets.chat(8_192))._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "image/svg+xml"}
    picture = ET.fromstring(bundle["image/svg+xml"])
    assert picture.get("aria-label") == "What fills the window?"
    assert texts(picture) == texts(ET.fromstring(figures.window.svg(bk.presets.chat(8_192))))


def test_a_figure_changed_by_hand_is_shown_without_a_picture_where_none_can_be_drawn() -> None:
    figure = figures.window(bk.presets.chat(8_192))
    figure.add_pie(values=[1, 2])
    assert "image/svg+xml" not in figure._repr_mimebundle_()


def test_boxes_show_the_middle_half_of_the_errors() -> None:
    errors = accuracy.compare(["chars/4"], corpora.shipped())
    picture = ET.fromstring(figures.errors_by_class.svg(errors))
    assert sum(path.get("d", "").count("h0") for path in picture.iter(f"{SVG}path")) == len(errors)


@pytest.mark.parametrize(
    "name", [*ODD, *MARKUP, *BIDI, *CLUSTERS, "</svg><script>", "a & b", "$x^2$"]
)
def test_any_name_is_text_and_the_picture_is_xml(name: str) -> None:
    # No budget takes halves of characters.
    whole = "x" if any("\ud800" <= sign <= "\udfff" for sign in name) else name
    budget = bk.Budget(1_000, [bk.Reserve("output", 100)], [bk.Allocation(whole, 300)])
    for figure in (figures.waterfall, figures.window):
        picture = drawn(figure.spec(budget), name)
        assert {node.tag.removeprefix(SVG) for node in picture.iter()} <= {
            *("svg", "defs", "pattern", "path", "rect", "line", "text", "tspan", "title", "circle")
        }


@settings(max_examples=examples(60), deadline=None)
@given(LETTERS, LETTERS)
def test_what_is_written_reads_as_it_was_and_is_the_same_each_time(name: str, title: str) -> None:
    bar = {"type": "bar", "orientation": "h", "y": [0], "x": [1], "text": [plain(name)]}
    spec = spec_of([bar], 90, {}, {"visible": False})
    picture = drawn(spec, title)
    assert picture.get("aria-label") == title
    assert name in ["", *texts(picture)]
    assert svg(spec, title) == svg(spec, title)


def test_a_figure_is_saved_as_svg_always_and_as_png_where_there_is_a_chromium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = bk.presets.chat(8_192)
    figures.waterfall.save(tmp_path / "left.svg", budget)
    assert (tmp_path / "left.svg").read_text("utf-8") == figures.waterfall.svg(budget)
    assert [path.name for path in tmp_path.iterdir()] == ["left.svg"], "nothing is left beside it"
    monkeypatch.delenv("BUDGETKIT_CHROMIUM", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"needs Chromium.*Save the figure as \.svg"):
        figures.waterfall.save(tmp_path / "left.png", budget)
    with pytest.raises(ValueError, match=r"ends in \.svg or \.png"):
        figures.waterfall.save(tmp_path / "left.gif", budget)
    assert not (tmp_path / "left.png").exists()


def test_every_question_can_be_drawn_without_plotly() -> None:
    explorers = [
        bk.ConversationExplorer("coding-agent", window=16_000),
        bk.BudgetExplorer("chat", "made-up-chats", window=2_048),
        bk.AccuracyExplorer(),
    ]
    for explorer in explorers:
        for name, chart in explorer.kind.charts(explorer.stage, []).items():
            picture = drawn(chart["spec"], chart["title"])
            height = float(picture.get("height", "0"))
            for x, y in places(picture, "text", "x", "y"):
                assert -1 <= x <= 641 and 0 <= y <= height, name


def test_a_very_long_line_is_thinned_to_what_can_be_seen() -> None:
    many = 100_000
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": [*range(many)],
        "y": [at % 97 for at in range(many)],
    }
    made = svg(spec_of([line], 200, {}, {}), "long")
    assert len(made) < 60_000


def test_a_table_without_rows_is_a_picture_too() -> None:
    table = pd.DataFrame(
        {
            name: []
            for name in ("section", "demand", "limit", "granted", "cut", "items", "items_cut")
        }
    )
    assert drawn(figures.sections.draw(table)).get("role") == "img"


NAN, INF = float("nan"), float("inf")
LINE = {"type": "scatter"}
SCALE = [[0, "#000000"], [1, "#ffffff"]]
UNKNOWN: dict[str, list[dict[str, Any]]] = {
    "bars": [{"type": "bar", "x": [5, NAN, 3, INF], "y": [0, 1, 2, 3], "base": [0, 0, NAN, 0]}],
    "a line": [
        {
            "type": "scatter",
            "mode": "lines+markers+text",
            "x": [1, 2, NAN],
            "y": [NAN, 5, 6],
            "text": ["a"] * 3,
        }
    ],
    "an interval": [
        {
            "type": "scatter",
            "x": [1, 2],
            "y": [3, 4],
            "error_y": {"array": [NAN, 1], "arrayminus": [1, INF]},
        }
    ],
    "a pile": [{**LINE, "mode": "lines", "x": [1, 2, 3], "y": [1, NAN, 3], "stackgroup": "one"}]
    * 2,
    "boxes": [{"type": "box", "x": ["a", "a", "b"], "y": [1, NAN, 2]}],
    "no box": [{"type": "box", "x": ["a"], "y": [NAN]}],
    "cells": [
        {"type": "heatmap", "x": [1, 2], "y": [1, 2], "z": [[1, NAN], [3, 4]], "colorscale": SCALE}
    ],
}


@pytest.mark.parametrize("data", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_finite_number_is_left_out_and_the_picture_says_so(
    data: list[dict[str, Any]],
) -> None:
    """A raw error before, or numbers in the picture that are none."""
    lines = [{"type": "line", "x0": NAN, "x1": 1, "y0": 0, "y1": 1}]
    notes = [{"text": "here", "x": NAN, "y": 1}]
    spec = spec_of(data, 200, {"range": [0, NAN]}, {}, shapes=lines, annotations=notes)
    made = svg(spec, "Why?")
    assert "nan" not in made and "inf" not in made
    assert any(text.endswith("unknown values are not drawn") for text in texts(ET.fromstring(made)))
