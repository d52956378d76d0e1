"""``budgetkit sessions``: a list from the usual places, three answers on one screen, a page only its owner can read."""

import json
import os
import re
import stat
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.files import data_path
from budgetkit.lab.sessions.sentences import sentences_of

Captured = pytest.CaptureFixture[str]
#: The session under the home of these tests.
ONE = Path(".claude/projects/-work-shop/one.jsonl")
SECRET = "The tests of refunds fail since Friday"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one session of Claude Code."""
    place = tmp_path / ".claude" / "projects" / "-work-shop"
    place.mkdir(parents=True)
    (place / "one.jsonl").write_bytes(data_path("traces/made-up-session.jsonl").read_bytes())
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def test_sessions_are_listed_with_what_they_cost(home: Path, capsys: Captured) -> None:
    assert run(["sessions"]) == 0
    shown = capsys.readouterr().out
    assert f"in {home / '.claude' / 'projects'}" in shown
    assert "Claude Code" in shown and "$6.24" in shown and "$0.98" in shown
    assert "cost: budgetkit sessions 1\n" in shown
    assert shown.endswith("compaction: budgetkit sessions 1 --what-if threshold\n")
    assert SECRET not in shown


def test_a_list_imports_no_explorer() -> None:
    """They took a second of the two in which 200 sessions are to be listed; only --report needs them."""
    code = "import sys, budgetkit.extras.shell.sessions; print('budgetkit.lab.explorers' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"


@pytest.mark.usefixtures("home")
def test_one_session_answers_three_questions_on_one_screen(capsys: Captured) -> None:
    assert run(["sessions", "1"]) == 0
    shown = capsys.readouterr().out
    for question in (
        "What filled the largest prompt?",
        "Why did the cache miss?",
        "Which rule would have been cheaper?",
    ):
        assert question in shown
    assert "Its 3 cache misses cost $0.98 of $6.24." in shown
    for question in ("Why so expensive?", "What was lost?", "What would another rule have cost?"):
        assert question in shown
    assert (
        "by the provider's count, which is exact" in shown
        and "estimated" in shown
        and "derived" in shown
    )
    assert "not a forecast: the agent would have acted differently" in shown
    assert (
        "expired during a pause" in shown and "A compaction from 155,284 to 75,915 tokens" in shown
    )
    assert len(shown.splitlines()) < 60
    assert SECRET not in shown and "a made-up session" not in shown, "numbers only"
    assert run(["sessions", "1", "--text"]) == 0
    assert "request 41: a pause of 11 minutes" in capsys.readouterr().out


@pytest.mark.usefixtures("home")
def test_what_held_the_prompts_is_explained_in_one_sentence(capsys: Captured) -> None:
    assert run(["sessions", "1", "--tools"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "Tool definitions missing from the log are not counted, nor are changes in the agent's behaviour"
        in shown
    )


def test_a_page_is_written_that_only_its_owner_can_read(home: Path, capsys: Captured) -> None:
    output = home / "page.html"
    assert run(["sessions", "1", "--report", str(output)]) == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600 or sys.platform == "win32"
    written = output.read_text(encoding="utf-8")
    assert SECRET not in written
    for question in ("Why so expensive?", "What was lost?", "What would another rule have cost?"):
        assert question in written
    assert "with filler in place of its words; --text keeps them" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--json"], ["--report", "page.html"]])
def test_names_of_tools_and_servers_are_shown_with_text_only(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, options: list[str]
) -> None:
    """On 0.3.0 the screen, the page and the JSON named them."""
    monkeypatch.chdir(home)
    path = home / ONE
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"Bash"', '"mcp__acme__merge"'), encoding="utf-8")

    def shown(*more: str) -> str:
        assert run(["sessions", "1", *options, *more]) == 0
        page = Path("page.html")
        return capsys.readouterr().out + (page.read_text("utf-8") if page.exists() else "")

    numbers = shown()
    assert "results of tool 1" in numbers and "results of server 1 tool 1" in numbers
    assert "acme" not in numbers and "results of Read" not in numbers
    names = shown("--text")
    assert "results of mcp__acme__merge" in names and "results of Read" in names


@pytest.mark.usefixtures("capsys")
def test_a_page_tells_one_thing(home: Path) -> None:
    """What stands for the session is the record: no replay under other policies with requests and costs of its own.

    One page said "471 messages dropped" beside "never cuts", and 242 requests for $17.95 beside 225 for $23.95.
    """
    output = home / "page.html"
    assert run(["sessions", "1", "--report", str(output)]) == 0
    written = output.read_text(encoding="utf-8")
    session = bk.Session(bk.load_trace("made-up-session"))
    totals = session.totals()
    for number in (f"{totals['requests']:,}", "&#36;6.24"):
        assert f"<b>{number}</b>" in written
    for words in ("oldest first", "First cut", "window full", "dropped"):
        assert words not in written
    data = written.partition('id="bk-data">')[2].partition("</script>")[0]
    requests = json.loads(data)["requests"]
    assert len(requests["turns"]) == totals["requests"]
    (compaction,) = session.trace.fields["compactions"]
    left = sum(at > 0 for at in requests["gone"])
    assert compaction["at"] - 5 < left <= compaction["at"], "what its compaction took out"
    assert "only the recorded rule was billed" in written
    assert "Exact, from the provider" in written, "how sure each number is"


@pytest.mark.usefixtures("home")
def test_a_sessions_compactions_cost_what_the_table_of_causes_says(capsys: Captured) -> None:
    """The lines gave the whole next request's cost, $0.60, where the table said $0.48 for the same misses."""
    session = bk.Session(bk.load_trace("made-up-session"))
    missed = session.misses()
    of_compactions = missed.loc[missed["cause"] == "compaction", "cost"].sum()
    assert session.compactions()["miss_cost"].sum() == pytest.approx(of_compactions)
    assert run(["sessions", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"not in the cache: a miss that cost ${of_compactions:,.2f}." in shown


def test_a_session_of_one_request_is_said_in_the_singular(tmp_path: Path, capsys: Captured) -> None:
    lines = data_path("traces/made-up-session.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [number for number, line in enumerate(lines) if '"usage"' in line]
    path = tmp_path / "short.jsonl"
    path.write_text("\n".join(lines[: answers[0] + 1]), encoding="utf-8")
    assert run(["sessions", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 request to ") and "1 requests" not in shown


def test_without_sessions_a_made_up_one_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert run(["sessions"]) == 0
    assert "No sessions found in the usual places" in (shown := capsys.readouterr().out)
    assert "budgetkit sessions made-up-session" in shown
    assert run(["sessions", "made-up-session"]) == 0
    assert run(["sessions", "7"]) == 2
    assert "Unknown session 7. No sessions were found" in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_numbers_come_as_json_too(capsys: Captured) -> None:
    assert run(["sessions", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["totals"]["misses"] == len(told["misses"]) == 3
    assert {row["system"] for row in told["rules"]} >= {"codex", "pi", "as recorded"}


@pytest.mark.usefixtures("home")
def test_the_bare_program_lists_sessions_and_three_next_steps(capsys: Captured) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert "$6.24" in shown and SECRET not in shown
    steps = re.findall(r"^  budgetkit (\w+)(.*): \w", shown, re.MULTILINE)
    assert steps == [("sessions", " 1"), ("explore", " FILE"), ("notebook", "")]
    for command, _ in steps:
        assert run([command, "--help"]) == 0


def test_the_bare_program_offers_a_shipped_session_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert "\n  budgetkit sessions made-up-session: " in shown
    done = subprocess.run(
        [sys.executable, "-m", "budgetkit"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == shown.split()


def test_rules_that_do_not_act_are_one_row_and_a_cost_is_in_dollars(capsys: Captured) -> None:
    """0.2.0 printed ten identical rows without a price."""
    assert run(["compare", "coding-agent", "-m", "claude-opus-4-8"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "unpruned: 20 policies without effect" in shown
    assert (
        "tokens. Use --window to set a smaller window" in shown and "in tokens and dollars" in shown
    )
    assert "Each turn counts as one request. Use --by request to count each answer as one" in shown


def test_a_price_that_is_not_known_is_said(capsys: Captured) -> None:
    assert run(["compare", "support-chat", "-p", "octopus"]) == 0
    shown = capsys.readouterr().out
    assert "No cost in dollars: no model is named. Name a model with --price" in shown
    assert "policies, in tokens\n" in shown
    assert run(["compare", "support-chat", "-p", "octopus", "--price", "nobodys-model"]) == 0
    assert "the price of nobodys-model is unknown" in capsys.readouterr().out
    assert run(["replay", "support-chat"]) == 0
    assert (
        "No cost in dollars: no model is named. Name a model with --price"
        in capsys.readouterr().out
    )
    assert run(["replay", "support-chat", "--price", "gpt-4o"]) == 0
    assert "No cost in dollars" not in capsys.readouterr().out


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names of files are Unicode there")
def test_a_file_name_that_is_not_utf_8_stops_nothing(home: Path, capsys: Captured) -> None:
    place = (home / ONE).parent
    (place / "one.jsonl").rename(place / "bad\udcff.jsonl")
    folder = home / "d\udcff"
    folder.mkdir()
    (folder / "two.jsonl").write_bytes((place / "bad\udcff.jsonl").read_bytes())
    listed = (["sessions"], ["sessions", "1"], ["sessions", "1", "--json"])
    for words in (*listed, ["sessions", "--folder", str(folder)]):
        assert run(words) == 0, capsys.readouterr().err
    assert "�" in capsys.readouterr().out  # the folder's name
    assert run(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["path"].endswith("bad\udcff.jsonl")
    assert bk.sessions()["path"].tolist() == [str(place / "bad\udcff.jsonl")]


@pytest.mark.usefixtures("home")
def test_another_setting_is_replayed_and_said(capsys: Captured) -> None:
    assert run(["sessions", "1", "--what-if", "threshold"]) == 0
    shown = capsys.readouterr().out
    assert "What would another setting have cost?" in shown and "150,000" in shown
    assert "This is not a forecast" in shown
    assert run(["sessions", "1", "--what-if", "claude-haiku-4-5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in rows] == ["as recorded", "claude-haiku-4-5"]


def test_a_cost_that_nobody_knows_is_not_zero(home: Path, capsys: Captured) -> None:
    path = home / ONE
    path.write_text(path.read_text().replace("claude-sonnet-4-5", "nobodys-model"))
    assert run(["sessions"]) == run(["sessions", "1"]) == 0
    shown = capsys.readouterr().out
    assert "3 cache misses" in shown and "$" not in shown
    assert run(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["missed_cost"] is None


def test_the_cost_of_sub_agents_is_in_the_list_and_the_replay(home: Path, capsys: Captured) -> None:
    path = home / ONE
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    side = '"isSidechain": true, "agentId": "a1"'
    own = path.read_text().replace('"requestId": "', '"requestId": "a1-')
    agent.write_text(own.replace('"isSidechain": false', side))
    assert run(["sessions"]) == 0
    assert "$12.48" in capsys.readouterr().out
    assert run(["sessions", "1", "--what-if", "threshold"]) == 0
    shown = capsys.readouterr().out
    assert "As recorded, it cost $6.24" in shown
    assert "These costs do not include 1 sub-agent ($6.24)." in shown
    assert run(["sessions", "1", "--what-if", "claude-haiku-4-5"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "As recorded with claude-sonnet-4-5, it cost $6.24" in shown


def test_a_bill_is_read_once_and_again_when_its_file_has_changed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("BUDGETKIT_CACHE", str(tmp_path / "kept"))
    assert run(["sessions"]) == 0
    first = capsys.readouterr().out
    kept = tmp_path / "kept" / "bills.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert SECRET not in kept.read_text() and "shop" not in kept.read_text()

    read: list[object] = []
    monkeypatch.setattr("budgetkit.lab.sessions.listing._bill", read.append)
    assert run(["sessions"]) == 0
    assert capsys.readouterr().out == first and not read
    monkeypatch.undo()
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setenv("BUDGETKIT_CACHE", str(tmp_path / "kept"))

    session = home / ONE
    session.write_bytes(b"\n".join(session.read_bytes().split(b"\n")[:60]))
    kept.write_text("{")  # a broken file of bills is as none
    assert run(["sessions"]) == 0
    assert "$6.24" not in capsys.readouterr().out
    assert json.loads(kept.read_bytes())["bills"]


def test_no_bill_is_kept_where_none_is_wanted(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("BUDGETKIT_CACHE", "")
    assert run(["sessions"]) == 0
    assert "$6.24" in capsys.readouterr().out and not (home / ".cache").exists()


def test_large_sessions_are_read_in_processes_to_the_same_list(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Warnings are shown once, and a process that cannot be started or is killed leaves its file to be read here."""
    monkeypatch.setenv("BUDGETKIT_CACHE", "")
    place = (home / ONE).parent
    for name in ("two", "three"):
        (place / f"{name}.jsonl").write_bytes((place / "one.jsonl").read_bytes())
    silent = '{"messages": [{"role": "user", "content": "", "tool_calls": []}]}\n'
    (place / "silent.jsonl").write_text(silent)
    assert run(["sessions"]) == 0
    alone = capsys.readouterr()
    assert alone.err.startswith("Note: ")

    listing = "budgetkit.lab.sessions.listing"
    pool = "concurrent.futures.ProcessPoolExecutor"
    monkeypatch.setattr(f"{listing}._PROCESS_SHARE", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    for broken in (None, f"{pool}.__init__", f"{pool}.map"):
        if broken is not None:
            monkeypatch.setattr(broken, _raise_broken)
        assert run(["sessions"]) == 0
        assert capsys.readouterr() == alone


def _raise_broken(*_: object, **__: object) -> None:
    raise BrokenExecutor


@pytest.mark.parametrize("by", ["day", "project", "model", "agent"])
def test_sums_are_those_of_all_sessions(home: Path, capsys: Captured, by: str) -> None:
    place = (home / ONE).parent
    others = (place / "one.jsonl").read_text().replace('"requestId": "', '"requestId": "two-')
    (place / "two.jsonl").write_text(others)
    (place / "none.jsonl").write_text('{"type": "user"}\n')
    assert run(["sessions", "--by", by]) == 0
    shown = capsys.readouterr().out
    assert "\u2265 $12.48" in shown and "97%" in shown
    assert (
        "\u2265 marks sums that may be too low: 1 session could not be read or priced in full."
        in shown
    )
    assert run(["sessions", "--by", by, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["requests"] or 0 for row in rows) == 2 * 139
    assert sum(row["sessions"] for row in rows) == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["-n", "0"], "range x>=1"), (["1", "--report", ""], "page as ''")],
)
def test_a_wrong_number_or_page_is_refused(
    home: Path, capsys: Captured, options: list[str], problem: str
) -> None:
    assert run(["sessions", *options]) == 2
    assert problem in capsys.readouterr().err


OF_ONE = "1 session could not be read or priced in full"
OF_A_LINE = "Left out 1 line of invalid JSON: line {}."


@pytest.mark.parametrize(
    ("options", "sum_shown", "reason"),
    [
        ([], "\u2265 $6.", OF_ONE),
        (["--by", "day"], "\u2265 $6.", OF_ONE),
        (["1"], "\u2265 $6.", OF_A_LINE),
        (["1", "--tools"], "", OF_A_LINE),
    ],
    ids=["list", "days", "session", "tools"],
)
def test_sums_without_an_unread_line_are_marked(
    home: Path, capsys: Captured, options: list[str], sum_shown: str, reason: str
) -> None:
    """The list showed a lower sum without a word: an unread line may be a request."""
    path = home / ONE
    lines = path.read_text(encoding="utf-8").splitlines()
    (place, *_) = (n for n, line in enumerate(lines) if '"usage"' in line)
    lines[place : place + 2] = ["".join(lines[place : place + 2])]
    path.write_text("\n".join(lines), encoding="utf-8")
    for _ in range(2):  # the second time from the cache
        assert run(["sessions", *options]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert sum_shown in shown
        assert reason.format(place + 1) in shown
    session = bk.Session(path)
    assert session.totals()["missing"] == 1 == bk.sessions(billed=True)["missing"].sum()
    assert "of \u2265 $6." in session.sentence
    table = bk.what_if(session, cache_life="1h")
    assert "Parts of 1 session could not be read or priced" in " ".join(sentences_of(table))


def test_requests_are_summed_on_their_own_day_and_model(home: Path, capsys: Captured) -> None:
    """As ccusage does: a session over midnight, or one that changes its model, is in two sums."""

    def answer(n: int, time: str, model: str) -> str:
        usage = {"input_tokens": 1_000_000 * n, "output_tokens": 0}
        message = {"id": f"m{n}", "role": "assistant", "model": model, "content": "ok"}
        record = {"type": "assistant", "sessionId": "s", "uuid": f"u{n}", "requestId": f"r{n}"}
        return json.dumps(record | {"timestamp": time, "message": message | {"usage": usage}})

    haiku, opus = "claude-haiku-4-5-20251001", "claude-opus-4-8"
    answers = [
        answer(1, "2026-11-01T23:59:00Z", haiku),
        answer(2, "2026-11-02T00:01:00Z", haiku),
        answer(3, "2026-11-02T00:02:00Z", opus),
    ]
    (home / ONE).write_text("\n".join(answers))
    sums = {}
    for by in ("day", "model"):
        assert run(["sessions", "--by", by, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        sums[by] = [(row[by], row["sessions"], row["requests"], row["cost"]) for row in rows]
    assert sums["day"] == [("2026-11-02", 1, 2, 17.0), ("2026-11-01", 1, 1, 1.0)]
    expected = [("claude-haiku-4-5", 1, 2, 3.0), ("claude-opus-4-8", 1, 1, 15.0)]
    assert sorted(sums["model"]) == expected


def test_a_setting_is_tried_over_all_sessions(home: Path, capsys: Captured) -> None:
    place = (home / ONE).parent
    for name in ("two", "three", "four"):
        (place / f"{name}.jsonl").write_bytes((place / "one.jsonl").read_bytes())
    assert run(["sessions", "--what-if", "threshold"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "$24.9" in shown and "cost least on the older 2 sessions; on the newer 2" in shown
    (place / "two.jsonl").unlink()
    assert run(["sessions", "--what-if", "threshold"]) == 2
    assert "Pass at least 4 such sessions" in capsys.readouterr().err


def test_a_list_whose_bills_are_kept_imports_no_frames(home: Path, tmp_path: Path) -> None:
    """ccusage lists sessions in a quarter of a second, in which pandas is not imported; nor is it for new bills."""
    code = "import sys; from budgetkit.extras.shell.program import run; run(['sessions']); "
    code += "print(sorted({'numpy', 'pandas'} & {*sys.modules}))"
    place = {"HOME": str(home), "USERPROFILE": str(home), "BUDGETKIT_CACHE": str(tmp_path / "kept")}
    command = [sys.executable, "-c", code]
    runs: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    runs["env"] = os.environ | place
    first, second = (subprocess.run(command, **runs).stdout.splitlines() for _ in range(2))
    assert first[-1] == "['numpy']" and second[-1] == "[]"
    assert first[:-1] == second[:-1]


def test_mcp_servers_of_a_configuration_are_listed(tmp_path: Path, capsys: Captured) -> None:
    """Nothing is started; a saved answer to tools/list is counted beside its server."""
    server = {"command": "npx", "env": {"TOKEN": "do not show"}}
    claude = {"projects": {"/shop": {"mcpServers": {"github": server}}}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = {"result": {"tools": [{"name": "ping", "description": "Ping.", "inputSchema": schema}]}}
    files = {
        "claude.json": json.dumps(claude),
        "mcp.json": """{
            // of VS Code, whose comments JSON does not know; "quoted"
            "servers": {"linear": {"type": "http", "url": "https://x.test/*,]" /* , } */,},},
        }""",
        "config.toml": '[mcp_servers.context7]\ncommand = "npx"\nenabled = false\n',
        "github.json": json.dumps(tools),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    assert run(["count", "--as", "servers", "--json", *paths]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = [("github", "command", 1), ("linear", "address", None), ("context7", "off", None)]
    assert [(row["server"], row["started by"], row["tools"]) for row in rows] == expected
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
    with_tools = bk.count_request(body | {"tools": tools["result"]["tools"]}).tokens
    assert rows[0]["tokens"] == with_tools - bk.count_request(body).tokens > 0
    assert run(["count", "--as", "servers", *paths]) == 0
    shown = capsys.readouterr().out
    assert "Not counted: linear, context7. budgetkit does not start servers" in shown
    assert "do not show" not in shown


def test_what_held_the_prompts_comes_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "made-up-session", "--tools", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [*tables] == ["lines", "tool", "server", "file", "on_demand"]
    assert [row["tool"] for row in tables["tool"]] == ["Read", "Bash"]
    assert not [row for row in tables["file"] if "/" in row["file"]]
    assert run(["sessions", "tests/formats/cline-window.json", "--tools"]) == 0
    assert capsys.readouterr().out == "No tool results in this session.\n"


def test_a_misspelt_setting_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """It was taken for a model, and its error was about counters."""
    assert run(["sessions", "made-up-session", "--what-if", "treshold"]) == 2
    told = capsys.readouterr().err
    assert "Unknown setting 'treshold'. Did you mean 'threshold'?" in told
    assert "You can also name a model." in told


def test_lines_that_were_not_read_are_named(home: Path, capsys: Captured) -> None:
    """In 0.3.0 the screen said nothing of a line that two writers had mixed."""
    path = home / ONE
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:60], lines[60][:200] + lines[61][:300], *lines[62:]]))
    assert run(["sessions", "1"]) == 0
    assert "Left out 1 line of invalid JSON: line 61." in capsys.readouterr().out
