"""What attacks on the served app, the gate and the counts found: each case was accepted in silence before."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.checking import growth
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.extras.shell.pytest_plugin import check_files
from budgetkit.requests.reading.tools import has_more_pages


def websocket_message(offsets: list[int], size: int) -> bytes:
    """Write a message of the kernels' protocol with the given offsets, filled up with blanks."""
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets).ljust(size)


@pytest.mark.parametrize(
    ("offsets", "is_read"),
    [
        ([100, 105, 110], True),
        ([100, 100, 200], True),
        ([100, 105, *[1, 20_000] * 1_000], False),
        ([100, 105, 1], False),
    ],
)
def test_a_message_whose_parts_overlap_is_not_read(
    offsets: list[int], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's message of 200 kB took 2.5 GB of the server for all pages."""
    pytest.importorskip("voila")
    from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

    from budgetkit.lab.app.serving import Channels

    events: list[Any] = []
    monkeypatch.setattr(
        VoilaKernelWebsocketHandler, "on_message", lambda page, message: events.append("read")
    )
    page = Channels.__new__(Channels)
    monkeypatch.setattr(page, "close", lambda code, reason: events.append(code), raising=False)
    page.on_message(websocket_message(offsets, 20_000))
    assert events == (["read"] if is_read else [1007])


def test_what_google_genai_sends_is_counted() -> None:
    """Tools under "config", and a cache in snake case, counted nothing."""
    body = {"model": "gemini-2.5-flash", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    tools = [{"function_declarations": [{"name": "ping", "description": "Look. " * 500}]}]
    inside = bk.count_request({**body, "config": {"tools": tools}})
    assert inside.tokens == bk.count_request({**body, "tools": tools}).tokens > 500
    for state in ({"cached_content": "c"}, {"config": {"cached_content": "c"}}):
        assert bk.count_request({**body, **state}).uncounted == ("server state (cachedContent)",)


BUDGET = bk.Budget(
    2_000,
    [bk.Reserve("output", 500, serves="output")],
    [bk.Allocation("system", 200, required=True), bk.Allocation("history", keep="newest")],
    remainder="history",
    roles={
        "system": "system",
        "tools": "system",
        "user": "history",
        "assistant": "history",
        "current": "history",
    },
)
HELLO = [{"role": "user", "content": "Hello"}]
LONG = {"type": "object", "properties": {"a": {"type": "string", "description": "word " * 500}}}
CLAUDE = {"model": "claude-sonnet-4-5", "messages": HELLO, "system": "Be brief."}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"messages": HELLO}, ""),
        ({"input": HELLO, "previous_response_id": "r"}, "estimate"),
        ({"input": HELLO, "conversation": "c"}, "estimate"),
        (
            {
                "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
                "cachedContent": "c",
            },
            "estimate",
        ),
        ({"messages": HELLO, "prediction": {"type": "content", "content": "x"}}, "estimate"),
        ({"messages": HELLO, "web_search_options": {}}, "estimate"),
        ({"messages": HELLO, "has_more": True}, "estimate"),
        ({**CLAUDE, "mcp_servers": [{"name": "a"}]}, "estimate"),
        ({**CLAUDE, "output_format": {"type": "json_schema", "schema": LONG}}, "cap"),
        (
            {
                "messages": HELLO,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": LONG},
                },
            },
            "cap",
        ),
        (
            {
                "input": HELLO,
                "text": {"format": {"type": "json_schema", "name": "a", "schema": LONG}},
            },
            "cap",
        ),
    ],
)
def test_the_gate_reads_what_stands_beside_the_messages(body: dict[str, Any], code: str) -> None:
    """Stored state, servers' tools and answer schemas of a recorded request counted nothing there."""
    result = check(BUDGET, traces=[bk.load_trace(body)], counter="o200k_base")
    assert code in {failure.code for failure in result.failures} if code else result.passed


def test_a_cursor_beside_the_result_means_more_pages() -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "ping"}]}}
    assert has_more_pages({**answer, "nextCursor": "x"})
    assert not has_more_pages(answer)


@pytest.mark.parametrize("key", ["body", "contents", "input", "message"])
def test_a_message_without_content_is_refused(key: str) -> None:
    """Its text, under another key, counted nothing."""
    trace = bk.Trace("odd", (bk.Message({"role": "user", key: "word " * 5_000}),))
    with pytest.raises(ValueError, match="No 'content' in message 1 of odd"):
        check(BUDGET, traces=[trace], counter="o200k_base")


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize(
    ("broken", "is_refused"),
    [
        ('{"messages": [{"role": "user", "content": "cut of', True),
        ('{"messages": [], "messages": []}', True),
        ('[{"role": "user", "content": 5}]', True),
        ('{"name": "settings"}', False),
    ],
)
def test_a_broken_file_in_a_folder_closes_the_gate(
    broken: str, is_refused: bool, tmp_path: Path
) -> None:
    """It was left out with a note, and the rest of the folder opened the gate."""
    chats = tmp_path / "chats"
    chats.mkdir()
    (chats / "a.json").write_text(json.dumps(HELLO))
    (chats / "b.json").write_text(broken)
    (chats / "README.md").write_text("Our chats.")
    budget = tmp_path / "budget.json"
    budget.write_text(bk.state.to_json(BUDGET))
    assert run(["check", "-b", str(budget), str(chats)]) == (2 if is_refused else 0)
    if is_refused:
        with pytest.raises(ValueError, match="b.json"):
            check_files(BUDGET, traces=str(chats))


def test_a_baseline_names_each_section_once(tmp_path: Path) -> None:
    baseline = tmp_path / "base.json"
    baseline.write_text('{"budgetkit": 1, "sections": {"system": 50, "system": 105}}')
    with pytest.raises(ValueError, match="Duplicate key 'system'"):
        growth(str(baseline), check(BUDGET, prompts={"system": "Be brief."}))
