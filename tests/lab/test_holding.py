"""What it cost to hold things in the prompts: paid when they come, again at each request, never above the bill."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import budgetkit as bk
from budgetkit.lab.sessions.holding import agents, deferral, holding, requests_holding
from budgetkit.trace import Trace

NEAR = 0.01


CALLS = [("Read", {"file_path": "a"}), ("mcp__hub__list", {}), ("Read", {"file_path": "a"})]


def session_of(
    tools: list[dict[str, Any]] | None = None, calls: list[tuple[str, Any]] = CALLS
) -> bk.Session:
    """A conversation of four requests, each token a character: one file is read twice, a server is called once.

    user 10 | call, file a 100,000 | call, server 40,000 | call, file a again 100,000 | answer

    Calls themselves count a little, and the provider of this one bills none of it: hence the tolerance.
    """
    sizes = [100_000, 40_000, 100_000]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "u" * 10}]
    usage: list[dict[str, Any]] = []
    prompt = 10
    read = 0
    for number, ((tool, arguments), size) in enumerate(zip(calls, sizes, strict=True)):
        usage.append(
            {"message_index": len(messages), "context_tokens": prompt, "cache_read_tokens": read}
        )
        call = {"id": f"c{number}", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "r" * size})
        read = prompt
        prompt += size
    usage.append(
        {"message_index": len(messages), "context_tokens": prompt, "cache_read_tokens": read}
    )
    messages.append({"role": "assistant", "content": ""})
    rows = [{"output_tokens": 0, "cache_write_tokens": 0, "model": "toy", **row} for row in usage]
    trace = Trace(
        "toy", tuple(map(bk.trace.Message, messages)), tuple(tools or ()), fields={"usage": rows}
    )
    return bk.Session(
        trace,
        counter=len,
        prices=bk.cost.prices("toy", input=1.0, cache_read=0.1, cache_write=1.0, output=0.0),
    )


def test_a_result_is_paid_once_when_it_comes_and_again_at_each_request_that_holds_it() -> None:
    sums = requests_holding(session_of())
    results = sums[sums["tokens"] > 30_000]
    assert results["requests"].tolist() == [3, 2, 1]
    expected = [100_000 * (1 + 0.1 + 0.1), 40_000 * (1 + 0.1), 100_000 * 1]
    assert [cost * 1e6 for cost in results["cost"]] == pytest.approx(expected, rel=NEAR)


def test_tools_files_read_again_and_servers_have_a_row_each() -> None:
    session = session_of()
    read, listing = holding(session).to_dict("records")
    assert (read["tool"], read["calls"], listing["tool"], listing["calls"]) == (
        *("Read", 2, "mcp__hub__list", 1),
    )
    assert read["saved"] * 1e6 == pytest.approx(220_000, rel=NEAR)
    (again,) = holding(session, "file").to_dict("records")
    assert (again["file"], again["calls"]) == ("a", 2)
    assert again["saved"] * 1e6 == pytest.approx(100_000, rel=NEAR), "the first reading was needed"
    (server,) = holding(session, "server").to_dict("records")
    assert (server["server"], server["calls"]) == ("hub", 1)
    assert np.isnan(server["deferred"]), "definitions that the log does not hold are not guessed"


@pytest.mark.parametrize(
    "tool",
    ["Read", "read_file", "ReadFile", "mcp__fs__read-text", "NotebookRead", "fs.cat", "READ"],
)
def test_a_tool_reads_files_by_a_whole_word_of_its_name(tool: str) -> None:
    calls = [(tool, {"path": "a"}), ("list", {}), (tool, {"path": "a"})]
    assert holding(session_of(calls=calls), "file")["file"].tolist() == ["a"]


@pytest.mark.parametrize(
    "tool", ["truncate_file", "duplicate_file", "create_thread", "relocate", "SpreadSheet"]
)
def test_letters_within_a_word_make_no_reading(tool: str) -> None:
    """A file that is truncated twice was not read again."""
    calls = [(tool, {"path": "a"}), ("list", {}), (tool, {"path": "a"})]
    assert holding(session_of(calls=calls), "file").empty


def test_pages_of_one_file_are_not_read_again() -> None:
    pages = [("Read", {"file_path": "a", "offset": start, "limit": 100}) for start in (0, 100, 200)]
    assert holding(session_of(calls=pages), "file").empty
    (again,) = holding(session_of(calls=[pages[0], pages[1], pages[0]]), "file").to_dict("records")
    assert (again["file"], again["calls"]) == ("a", 2)
    assert again["saved"] * 1e6 == pytest.approx(100_000, rel=NEAR), "the same page a second time"


def test_a_definition_that_waits_for_its_first_call_saves_what_it_cost_before() -> None:
    words = "what it does " * 1_000
    schema = {
        "type": "function",
        "function": {"name": "mcp__hub__list", "description": words, "parameters": {}},
    }
    session = session_of([schema])
    (server,) = holding(session, "server").to_dict("records")
    assert server["definitions"] == pytest.approx(len(json.dumps(schema)), rel=0.2)
    assert server["deferred"] * 1e6 == pytest.approx(0.1 * server["definitions"]), (
        "one request came before"
    )
    # The search tool's 500 tokens are read by four requests; the second one's prompt is read once more.
    saving = deferral(session)
    assert (saving["tools"], saving["searches"]) == (1, 1)
    assert saving["saved"] == server["deferred"]
    second = int(session.usage["context_tokens"].iloc[1])
    assert saving["search_cost"] * 1e6 == pytest.approx(0.1 * (4 * 500 + second))


@pytest.mark.parametrize("by", ["tool", "file", "server"])
def test_nothing_costs_more_than_was_billed(by: Any) -> None:
    session = bk.Session(bk.load_trace("made-up-session"))
    assert 0 <= holding(session, by)["saved"].sum() < session.totals()["cost"]
    assert requests_holding(session)["cost"].sum() < session.totals()["cost"]


def test_sub_agents_stand_apart_from_the_main_line(tmp_path: Path) -> None:
    def answer(number: int, side: bool) -> list[dict[str, Any]]:
        place = {"sessionId": "s", "isSidechain": side, **({"agentId": "helper"} if side else {})}
        usage = {"input_tokens": 100 * number, "output_tokens": 1}
        message = {
            "role": "assistant",
            "id": f"m{number}",
            "content": "yes",
            "model": "claude-opus-4-5",
            "usage": usage,
        }
        asked = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": "go"}}
        return [
            asked | place,
            {"type": "assistant", "uuid": f"a{number}", "message": message} | place,
        ]

    path = tmp_path / "one.jsonl"
    records = [*answer(1, False), *answer(7, True), *answer(2, False)]
    content = "\n".join(map(json.dumps, records)).encode()
    path.write_bytes(content)
    session = bk.Session(path)
    path.unlink()  # on 0.3.0 the file was read again for the sub-agents
    table = agents(session)
    assert table["side_chain"].tolist() == [False, True]
    assert table["requests"].tolist() == [2, 1]
    assert table["prompt"].tolist() == [300, 700]
    assert (table["cost"] > 0).all()
    assert bk.Session(bk.load_trace(BytesIO(content), conversation=0)).totals()["prompt"] == 300
