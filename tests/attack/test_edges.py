"""Inputs at the edges: long numbers, names with line feeds and half characters, and commands around them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from tests.messages import user

HALF = "\ud83d name"
SECONDS = 3


@pytest.mark.parametrize(
    "typed",
    ["9" * 900_000, "9" * 900_000 + "%", "1_" * 400_000 + "1", "1" + ",000" * 220_000],
    ids=["digits", "percent", "underscores", "groups"],
)
def test_a_long_number_is_refused_at_once(typed: str) -> None:
    """On 0.3.0 one of 800 kB took half a minute, and was said to be [<class 'decimal.Overflow'>]."""
    explorer = bk.BudgetExplorer("chat", window=8_192)
    begin = time.perf_counter()
    explorer.set(window=typed)
    assert time.perf_counter() - begin < SECONDS
    assert "is not a number" in explorer.status and len(explorer.status) < 300
    explorer.set(window=10**5_000)
    assert "about 5,000 digits is too large" in explorer.status
    assert explorer.budget.window == 8_192


@pytest.mark.parametrize(
    "name",
    ["a\nError: forged", "a\n::error::forged", "\x1b]8;;http://forged\x07", "\rError: forged"],
)
def test_a_name_stays_on_its_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 0.3.0 a name with a line feed could write a line of its own, and a report's path command the terminal."""
    path = tmp_path / "chat.json"
    said = [user("Hello"), {"role": name, "content": "Hello"}]
    path.write_text(json.dumps({"id": name, "model": name, "messages": said}))
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {name: {"command": "run"}}}))
    goal = tmp_path / f"{name.replace('/', '')}.html"
    for arguments in (
        ["fit", str(path)],
        ["replay", str(path)],
        ["compare", str(path), "-p", "octopus"],
        ["count", str(path), "--as", "request"],
        ["count", str(servers), "--as", "servers"],
        ["models", name],
        ["report", str(path), "-o", str(goal)],
        ["fit", str(path), "--conversation", f"{name}s"],
    ):
        run(arguments)
        shown = capsys.readouterr()
        for text in (shown.out, shown.err):
            assert not {line.lstrip()[:7] for line in text.splitlines()} & {"Error: f", "::error"}
            assert all(mark.isprintable() or mark == "\n" for mark in text)


def test_half_characters_in_names_become_whole(tmp_path: Path) -> None:
    """On 0.3.0 a tool's name with half an emoji ended the answers on a session and the ledger of a request."""
    call = {"type": "tool_use", "id": HALF, "name": HALF, "input": {"file_path": HALF}}
    usage = {"input_tokens": 100, "output_tokens": 5}
    replies: list[dict[str, Any]] = [
        {"id": "m1", "content": [call], "usage": usage},
        {"id": "m2", "content": [{"type": "text", "text": "Done."}], "usage": usage},
    ]
    result = {"type": "tool_result", "tool_use_id": HALF, "content": HALF}
    rows: list[dict[str, Any]] = [
        {"type": "user", "message": user(HALF)},
        {"type": "assistant", "message": {"role": "assistant", "model": HALF, **replies[0]}},
        {"type": "user", "message": user([result])},
        {"type": "assistant", "message": {"role": "assistant", "model": HALF, **replies[1]}},
    ]
    for number, row in enumerate(rows):
        row |= {
            "uuid": str(number),
            "sessionId": "toy",
            "timestamp": f"2026-01-01T00:0{number}:00Z",
        }
        row |= {"parentUuid": str(number - 1) if number else None}
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    session = bk.Session(path)
    assert any("\ufffd name" in what for what in session.filled_by(2)["what"])
    for options in ([], ["--text"], ["--tools", "--text"]):
        assert run(["sessions", str(path), *options]) == 0

    tool = {"type": "function", "function": {"name": HALF, "parameters": {"type": "object"}}}
    body = {"model": "gpt-4o", "messages": [user("Hello")], "tools": [tool]}
    counted = bk.count_request(body)
    assert counted.frame()["tokens"].sum() == counted.tokens
    assert counted._repr_html_()


@pytest.mark.parametrize(
    "price",
    [-1, -1e-9, float("nan"), float("inf"), 10**400, True, "2.5"],
    ids=["-1", "-1e-9", "nan", "inf", "digits", "bool", "text"],
)
def test_a_price_is_a_number_from_0_on(price: Any) -> None:
    """On 0.3.0 a price below 0 or without end went into every cost, and one of 400 digits ended in OverflowError."""
    with pytest.raises(ValueError, match="^Invalid price: .* 0 or more"):
        bk.cost.prices("gpt-4o", input=price)
    with pytest.raises(ValueError, match="^Invalid price"):
        bk.cost.Price(1.0, ((200_000, price),))


@pytest.mark.parametrize(
    "name",
    ["[" * 50_000, "ft" * 25_000, "a" * 50_000, ":1" * 25_000],
    ids=["brackets", "tuned", "letters", "sizes"],
)
def test_the_name_of_a_model_may_be_long(name: str) -> None:
    """On 0.3.0 the prices of the first took 40 seconds, and to redact the second as long."""
    trace = bk.Trace("toy", (bk.Message(user("Hello")),), meta={"model": name})
    begin = time.perf_counter()
    assert bk.cost.prices(name).input is None
    assert bk.redaction.redact(trace, bk.counter("chars/4")).model is None
    assert time.perf_counter() - begin < 5 * SECONDS


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
def test_a_deep_text_is_no_conversation(text: str) -> None:
    """On 0.3.0 it ended in a RecursionError."""
    with pytest.raises(ValueError, match="^Not a saved conversation: RecursionError"):
        bk.Conversation.from_json(text)


@pytest.mark.parametrize("deep", ["[" * 40_000, '{"a":' * 10_000 + "1" + "}" * 10_000])
def test_a_deep_configuration_is_an_error_in_words(
    deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.json").write_text(deep)
    assert run(["count", "--as", "servers", str(tmp_path / "deep.json")]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_an_explorer_writes_no_escape_sequences(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(
        json.dumps({"id": "a\x1b[31mb\u202ec", "messages": [user("Why?")]}), encoding="utf-8"
    )
    shown = repr(bk.ConversationExplorer(bk.load_trace(file)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
