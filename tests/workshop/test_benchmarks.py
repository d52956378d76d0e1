"""What the benchmarks make of the figures that they have stored."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import __main__ as bench
from benchmarks import arithmetic, calibrations, figure, growth, promised, provider_usage
from benchmarks.accuracy import labelled, standard_library
from benchmarks.measure import row
from benchmarks.promises import Promised
from benchmarks.provider_usage import Call
from tests.messages import assistant, user

PAGE = """
2 cores, Linux; budgetkit 0.1.0.

| group | what | median | p95 | target | | beside |
| --- | --- | --: | --: | --: | --- | --- |
| a document of 2 characters | tiktoken, len(encode) | 182 ms | 1.2 s |  |  | same counts |
| a document of 2 characters | rough | 1.07e+03 µs | 9 ms |  |  | +10.69 % of tokens, 1.71e+03 times as fast |
| 900 messages | load and count | 3 s | 3 s | < 1 s | missed |  |
| 10,000 messages | a | 1 ns | 1 ns |  |  |  |
| 10,000 messages | b | 1 ns | 1 ns |  |  |  |
| 10,000 messages | c | 1 ns | 1 ns |  |  |  |
| 10,000 messages | budgetkit | 1 ns | 1 ns |  |  |  |
| cut 5,000 of 8,674 tokens | budgetkit, head | 3 ms | 4 ms |  |  |  |
| cut 1,000 of 1,355,125 tokens | budgetkit, head | 1 ms | 4 ms |  |  |  |
| 100 items | litellm, trim_messages, text counted | 2 s | 4 s |  |  |  |
| 100 items | budgetkit, fit | 1 ms | 4 ms |  |  |  |
| 1,000 items | budgetkit, fit | 2 ms | 4 ms |  |  |  |
| 1,000 items | budgetkit, fit again | 2 ms | 4 ms |  |  |  |
"""


@pytest.mark.parametrize(
    ("limits", "target", "met"),
    [
        ({}, "", None),
        ({"limit": 0.070}, "< 70 ms", True),
        ({"limit": 0.070, "limit_p95": 0.110}, "< 70 ms, p95 < 110 ms", False),
        ({"limit": 0.070, "limit_p95": 0.210}, "< 70 ms, p95 < 210 ms", True),
        ({"limit": 0.040, "limit_p95": 0.210}, "< 40 ms, p95 < 210 ms", False),
    ],
)
def test_a_figure_is_met_where_its_median_and_its_95th_percentile_are(
    limits: dict[str, float], target: str, met: bool | None
) -> None:
    """Two of twenty moves take 200 ms: the median is 50 ms, and the 95th percentile is not."""
    found = row("browser", "slider to paint", [0.050] * 18 + [0.200] * 2, **limits)  # type: ignore[arg-type]
    assert (found.median, found.p95) == (0.050, 0.200)
    assert (found.target, found.met) == (target, met)


def test_a_stored_table_is_read_back_in_seconds() -> None:
    found = figure.times(PAGE)
    assert found["a document of 2 characters"] == {
        "tiktoken, len(encode)": (0.182, ""),
        "rough": (pytest.approx(1.07e-3), "+10.69 % of tokens"),
    }
    assert found["900 messages"] == {"load and count": (3.0, "")}


def test_the_figure_compares_where_there_are_peers_and_the_longest_cut() -> None:
    titles = [title for title, _ in figure.panels(figure.times(PAGE))]
    assert titles == [
        "How long does it take to count\na document of 2 characters?",
        "How long does it take to count\n10,000 messages?",
        "How long does it take to\ncut 1,000 of 1,355,125 tokens?",
    ]


def test_names_of_lines_that_end_together_stand_apart() -> None:
    heights = figure.apart(
        {"a": [(1, 0.5), (10, 1.0)], "b": [(10, 1.0)], "alone": [(1, 1.0)], "far": [(10, 100.0)]}
    )
    assert heights["a"] == 1.0 == heights["alone"]
    assert heights["b"] > 1.3
    assert heights["far"] == 100.0


def test_the_stored_results_can_be_drawn_and_the_same_way_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib (extra: peers) is absent")
    drawn = [tmp_path / name for name in ("first.svg", "second.svg", "stored.svg")]
    pages = (PAGE, PAGE, figure.RESULTS.read_text(encoding="utf-8"))
    for page, path in zip(pages, drawn, strict=True):
        figure.draw(page, path)
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert b"assemble a window" in drawn[2].read_bytes()


def claude_call(project: str, text: str, tools: int, billed: int) -> dict[str, Any]:
    body: dict[str, Any] = {"max_tokens": 9, "messages": [user(text)], "system": "Be brief."}
    if tools:
        body["tools"] = [
            {"name": f"ping{i}", "description": "Look", "input_schema": {}} for i in range(tools)
        ]
    bill = {"model": "claude-sonnet-4-5", "request": body, "input_tokens": billed}
    return {**bill, "repo": project, "source": "x@1:y"}


def claude_calls() -> list[dict[str, Any]]:
    """Three projects of twelve calls, billed 10 and 1.2 a token, with tools 500 more; one call is wrong."""
    calls = []
    for project in "abc":
        for size in range(10, 130, 10):
            tools = size // 10 % 3
            call = claude_call(project, f"{project} one two " * size, tools, 0)
            seen = calibrations.row_of(call)
            assert seen is not None
            calls.append(
                {**call, "input_tokens": round(10 + 1.2 * seen.words + (500 if tools else 0))}
            )
    return [*calls, claude_call("a", "one", 0, 9_000)]


def test_a_fit_finds_slope_and_hidden_prompt_and_is_not_dragged() -> None:
    fitted = calibrations.fit(calibrations.rows(claude_calls()))["claude-4.5"]
    assert fitted.slope == pytest.approx(1.2, abs=0.005)
    assert fitted.constants["tools"] == pytest.approx(500, abs=2)
    assert fitted.constants["request"] == pytest.approx(10, abs=2)


def test_a_project_is_estimated_without_its_own_calls() -> None:
    found = calibrations.rows(claude_calls())
    without = calibrations.left_out(found)
    assert without.keys() == {"a", "b", "c"}
    off = []
    for reading in found:
        estimate = calibrations.estimated(reading, without[reading.project][reading.family])
        off.append(abs(estimate - reading.billed))
    assert sorted(off)[-2] < 3 < sorted(off)[-1]


def test_shares_weigh_projects_alike_and_small_groups_are_shown_only() -> None:
    """Project a has three calls of which one is exact, b one that is: a third and one are two thirds."""
    calls = [Call("api", "text", "a", counted, 9.0, 12.0, 10, None) for counted in (10, 12, 20)]
    calls.append(Call("api", "text", "b", 10, 11.0, 12.0, 10, 10))
    (summed,) = provider_usage.table(calls).to_dict("records")
    expected = (4, 2, 3, "67%")
    shown = (summed["calls"], summed["exact"], summed["within 3"], summed["exact, by project"])
    assert shown == expected
    rest = ("+10.0%", "75% (few)", 1)
    assert (summed["median error"], summed["in interval"], summed["litellm exact"]) == rest


def test_a_target_says_what_is_wanted_and_reached_with_the_constant_of_other_projects() -> None:
    """Both projects' tools cost 5 more than was counted: each is counted exactly by the other's constant."""
    numbers = (100, 90, 120, 105, None)
    about: dict[str, Any] = {"rules": "claude-4.5", "choice": "auto"}
    calls = [Call("claude, anthropic", "tools", name, *numbers, **about) for name in ("a", "b")]
    calls.append(replace(calls[0], rules="claude-4", project="alone"))
    rows = {row["what"]: row for row in provider_usage.targets(calls).to_dict("records")}
    tools = rows["Claude, tools without results, the constant from other projects"]
    expected = ("2", "exact 80%, within 3 95%", "met, met")
    assert (tools["calls"], tools["wanted"], tools[""]) == expected


def test_a_run_is_added_to_the_history_and_a_missed_target_ends_it_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        row("plan", "fit", [0.002] * 3, 0.001),
        row("plan", "allocate", [0.002] * 3, 0.003),
        row("start", "x", [1]),
    ]
    for _ in range(2):
        bench.remember(found, tmp_path / "history.csv")
    kept = pd.read_csv(tmp_path / "history.csv", keep_default_na=False)
    columns = ["group", "what", "median_seconds", "met"]
    fitted, allocated = ["plan", "fit", 0.002, "missed"], ["plan", "allocate", 0.002, "met"]
    expected = [fitted, allocated, ["start", "x", 1.0, ""]]
    assert kept[columns].values.tolist() == expected * 2
    assert set(kept["machine"].str.contains(" cores, ")) == {True}
    monkeypatch.setattr(arithmetic, "rows", lambda: iter(found))
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "plan"])
    with pytest.raises(SystemExit, match="1 targets are missed:\n| plan | fit |"):
        bench.main()
    assert "| plan | allocate |" in capsys.readouterr().out


def test_the_slope_of_growth_is_the_exponent_without_the_smallest_size() -> None:
    """A fixed cost of a call does not hide how the rest grows."""
    sizes = (10, 100, 1_000, 10_000)
    seconds = {10: 5.0} | {size: size**2 * 1e-6 for size in sizes[1:]}
    square = growth.Growth("x", "items", seconds, dict.fromkeys(sizes, 0))
    assert square.slope == pytest.approx(2)
    assert "| x | 10,000 items | 100 s | 0.00 | 2.00 | missed |" in growth.page([square])


def test_what_a_larger_corpus_takes_is_the_largest_and_the_cost_of_what_it_is_larger_by() -> None:
    """The start of the cluster, 5 seconds, is in it once."""
    sizes = (10**7, 10**8, 10**9)
    seconds = {size: 5 + size * 2e-8 for size in sizes}
    streamed = growth.Growth("stream, this process", "bytes", seconds, dict.fromkeys(sizes, 0))
    assert streamed.cost * 1e9 == pytest.approx(20) and streamed.extrapolated(
        10**10
    ) == pytest.approx(205)
    assert "| stream, this process | 20.0 s | 205 s |" in growth.page([streamed])


@pytest.mark.parametrize(
    "sized",
    [growth.counting, growth.estimating, growth.planning, growth.replaying, growth.comparing],
)
def test_what_grows_is_measured_for_real(sized: growth.Sized) -> None:
    found = growth.measured("x", "items", (10, 20), sized)
    assert min(found.peaks.values()) > 0
    assert sized(10)() is not None


# --- promises ---------------------------------------------------------------------------------------


def test_what_was_seen_too_few_times_is_not_judged_and_no_miss() -> None:
    about: dict[str, Any] = {"observed": 0.2, "width": "40 points", "judged_from": 1_000}
    few, enough = (
        Promised("tune", "at most 3.3 %", n=n, is_kept=False, **about) for n in (5, 2_000)
    )
    assert (few.verdict, few.is_missed) == ("not judged (n = 5)", False)
    assert (enough.verdict, enough.is_missed) == ("no", True)


def test_promises_are_measured_over_any_folder_and_five_runs_of_noise_miss_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with 1 before, as five runs say nothing of a chance of 2.5 %."""

    def said(n: int) -> list[dict[str, Any]]:
        return [user(f"word {n} " * n), assistant(f"word {n} " * n)] * 8

    lines = [{"id": str(n), "messages": said(n)} for n in range(1, 9)]
    (tmp_path / "chats.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["promised", str(tmp_path), "--runs", "5", "--out", str(page)])
    promised.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith("| tune")]
    assert len(rows) == 7
    assert all("not judged (n = 5)" in row for row in rows)


def test_a_manifest_says_what_the_files_are(tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.csv").write_text(
        "path,class,language,source,version\na.txt,prose,de,book,2\nt.jsonl,prose,fr,talk,1\n"
    )
    (tmp_path / "a.txt").write_text("Hallo")
    (tmp_path / "t.jsonl").write_text('{"text": "Bonjour"}\n')
    expected = [("de", "book 2", "Hallo"), ("fr", "talk 1", "Bonjour")]
    assert [(d.language, d.source, d.text) for d in labelled(tmp_path)] == expected


def test_a_manifest_of_something_else_is_a_file_like_any_other(tmp_path: Path) -> None:
    """A folder of conversations may have a manifest with other columns; it is no list of texts."""
    (tmp_path / "MANIFEST.csv").write_text("file,kind\na.jsonl,agent\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("# Notes", encoding="utf-8")
    found = labelled(tmp_path)
    assert {document.name for document in found} == {"MANIFEST.csv", "notes.md"}


@pytest.mark.slow
def test_the_standard_library_names_its_version() -> None:
    code = standard_library(most=5)
    assert {"python", "en"} == set(code.frame()["language"])
    assert all(d.source.startswith("CPython 3.") for d in code)
