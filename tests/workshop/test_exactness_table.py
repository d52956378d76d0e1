"""The script that writes the table of exactness, on calls that are made up here."""

from typing import Any

from benchmarks.exactness import Judged, host_of_call, interval, judge, table, written
from budgetkit.files import read_table
from scripts import count_frame_rows


def call(text: str, project: str, billed: int, **more: Any) -> dict[str, Any]:
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    return {
        "request": request,
        "model": "gpt-4o",
        "input_tokens": billed,
        "repo": project,
        "usage": {},
        **more,
    }


def test_equal_calls_of_a_project_stand_once_and_each_stands_in_coarser_groups_too() -> None:
    calls = [
        call("Hello world", "a", 9),
        call("Hello world", "a", 9),
        call("Hello", "a", 8),
        call("Hello", "b", 9),
    ]
    judged = [row for row in map(judge, calls) if row is not None]
    rows = {row.combination: row for row in table(judged)}
    fine, coarse = rows["gpt-4o chat: text"], rows["gpt: any text"]
    assert (
        (fine.calls, fine.projects, fine.exact)
        == (coarse.calls, coarse.projects, coarse.exact)
        == (3, 2, 2)
    )
    assert fine.high == 0.125
    assert "gpt-4o chat: text,3,2,2,0,0.125" in written([fine])


def test_one_project_with_many_calls_does_not_decide_an_interval() -> None:
    many = [Judged(("x",), "many", 100, 100, str(number)) for number in range(100)]
    few = [Judged(("x",), "few", 100, 120, str(number)) for number in range(4)]
    assert interval(many + few) == (0.0, 0.2)
    assert interval(many) == (0.0, 0.0)


def test_a_bill_of_another_time_is_counted_but_takes_no_part_in_an_interval() -> None:
    old = "msg_67d44729a01081908211b3a88551948e0e8e4f6e450e93f0"
    new = "msg_0a4196b7bcc23a9a00695971f347648195bd604c6a0cb0a69a"
    calls = [
        {**call(text, "a", billed), "request": {"input": text}, "response": [{"id": answer}]}
        for text, billed, answer in (("Hello", 26, old), ("Hello world", 9, new))
    ]
    judged = [row for row in map(judge, calls) if row is not None]
    assert [row.is_past for row in judged] == [True, False]
    row = next(row for row in table(judged) if row.combination == "gpt-4o responses: text")
    assert (row.calls, row.exact, row.low, row.high) == (2, 1, 0, 0)


def test_vertex_is_known_by_its_usage_and_what_cannot_be_counted_stays_out() -> None:
    assert host_of_call({"usage": {"trafficType": "ON_DEMAND"}}) == "vertex"
    assert host_of_call({"usage": {}, "host": "openrouter.provider"}) == "openrouter"
    unread = call("Hello", "a", 9)
    unread["request"]["tools"] = [{"type": "web_search"}]
    assert judge(unread) is None


def test_what_a_frame_says_of_its_recorded_calls_is_what_the_table_of_exactness_says() -> None:
    toml = count_frame_rows.FRAMES.read_text(encoding="utf-8")
    assert count_frame_rows.written(toml, read_table("exactness.csv")) == toml
    assert count_frame_rows.rows_of("nobody's", read_table("exactness.csv")) == "none"
