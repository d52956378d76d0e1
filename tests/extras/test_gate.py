"""The gate: closed where something outgrows its budget, open beside it; the same from Python, pytest and the shell."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

import budgetkit as bk
from budgetkit.budget import Allocation, Budget, Reserve
from budgetkit.extras.shell.checking import growth, growth_sentences, save_baseline
from budgetkit.extras.shell.gate import CheckResult, check
from budgetkit.extras.shell.inputs import tools_in
from budgetkit.extras.shell.program import run
from budgetkit.extras.shell.pytest_plugin import check_files as checked
from budgetkit.message import Message
from budgetkit.models import Model
from budgetkit.presets import chat
from budgetkit.pruning.policies import OldestFirst, TriggerTarget
from budgetkit.state import to_yaml
from budgetkit.trace.conversation import Trace
from budgetkit.trace.loading import load_trace
from tests.messages import assistant, user

CHECKOUT = Path(__file__).parents[2]
ROLES = {"system": "system", "tools": "tools"}
ROLES |= dict.fromkeys(("user", "assistant", "current"), "history")
SECTIONS = [
    Allocation("system", 20, required=True),
    Allocation("tools", 60),
    Allocation("history", floor=30),
]
ANSWER = Reserve("output", 50, serves="output")
BUDGET = Budget(200, [ANSWER], SECTIONS, remainder="history", roles=ROLES)
PING = {
    "name": "ping",
    "description": "Look whether a host answers",
    "inputSchema": {"type": "object"},
}
MCP = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [PING]}}


class Words:
    """Counts one token a word, and says that this is no estimate."""

    exact = True

    def __call__(self, text: str) -> int:
        return len(text.split())


words = Words()


def talk(words_each: int, turns: int = 2, system: int = 1) -> Trace:
    """Make a conversation whose messages have so many words each."""
    said = [{"role": "system", "content": "be " * system}]
    for _ in range(turns):
        said += [user("why " * words_each), assistant("so " * words_each)]
    return Trace(f"{turns} turns", tuple(map(Message, said)))


def gate(budget: Budget = BUDGET, **given: Any) -> CheckResult:
    return check(budget, counter=words, **given)


def reasons(found: CheckResult) -> list[tuple[str, str]]:
    return [(failure.code, failure.where) for failure in found.failures]


def test_a_prompt_that_fills_its_cap_passes_and_one_word_more_fails_with_plan_and_mend() -> None:
    """A system message costs its words and four tokens of framing."""
    assert gate(prompts={"system": "be " * 16}).passed
    found = gate(prompts={"system": "be " * 17})
    assert not found.passed
    assert str(found) == (
        "cap: prompts and tools: system asks for 21 tokens, 1 above its cap (20)\n"
        "Plan of 200 tokens, 129 free:\n"
        "  system: 21 of 21, limit 21\n"
        "  tools: 0 of 0, limit 60\n"
        "  history: 0 of 0, limit 129\n"
        "system is required and needs 21 tokens, 1 above its cap (20). Raise the cap, shorten the text, "
        'or in code let fit cut it: granularity="line", with a cut function.'
    )


def test_tool_schemas_of_an_mcp_server_outgrow_their_cap() -> None:
    few, many = tools_in(MCP), tools_in({"tools": [PING] * 9})
    assert gate(tools=few).passed
    found = gate(tools=many)
    assert reasons(found) == [("cap", "prompts and tools")]
    needed = found.sections["tools"]
    assert f"- Raise the cap of tools from 60 to {needed} tokens." in found.failures[0].detail
    assert gate(BUDGET.assign(window=400, tools=needed), tools=many).passed
    assert gate(tools=few).sections["tools"] < 60 < gate(tools=many).sections["tools"]


def test_tools_stand_in_the_place_of_a_conversations_own_beside_its_own_prompt() -> None:
    """The role table may put both into one section, as the presets do."""
    together = Budget(
        200, (), [Allocation("system", 50, required=True), Allocation("history")], roles=ROLES
    )
    together = Budget(200, (), together.allocations, roles=ROLES | {"tools": "system"})
    alone, both = (
        gate(together, tools=tools_in(MCP)),
        gate(together, tools=tools_in(MCP), traces=[talk(1, system=40)]),
    )
    assert alone.passed
    assert reasons(both) == [("cap", "2 turns, turn 1")]
    # Tools without a system message before them are billed 4 tokens more, those of the message that they stand in.
    assert both.sections["system"] == alone.sections["system"] - 4 + 44


def test_a_request_that_overruns_the_window_fails_at_its_worst_turn() -> None:
    small = Budget(
        60, (), [Allocation("history", required=True)], roles=dict.fromkeys(ROLES, "history")
    )
    assert gate(small, traces=[talk(5)]).passed
    found = gate(small, traces=[talk(20)])
    assert ("overrun", "2 turns, turn 2") in reasons(found)
    overrun = next(failure for failure in found.failures if failure.code == "overrun")
    assert overrun.sentence == "a request exceeds the window (60) by 20 tokens"
    assert "Lower a reserve or a floor, or choose a larger window" in overrun.detail


TIGHT = Budget(60, (), [Allocation("history")], roles=dict.fromkeys(ROLES, "history"))


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 41},
        {"max_completion_tokens": 41, "max_tokens": None},
        {"max_output_tokens": 41},
        {"inferenceConfig": {"maxTokens": 41}},
        {"generationConfig": {"maxOutputTokens": 41}},
        {"options": {"num_predict": 41}},
        {"max_tokens": 10**4_000},
    ],
)
def test_the_answer_that_a_file_asks_for_must_fit_beside_its_request(
    fields: dict[str, Any],
) -> None:
    body = Trace("body", (Message(user("why " * 13)),))
    assert gate(TIGHT, traces=[replace(body, fields={"max_tokens": 40})]).passed
    asking = [replace(body, fields=fields)]
    [failure] = gate(TIGHT, traces=asking).failures
    assert failure.code == "overrun" and "as the file asks) exceed the window (60)" in str(failure)
    assert "- Ask for a shorter answer in the file" in failure.mend
    # A window of the input alone does not hold the answer.
    assert gate(replace(TIGHT, kind="input"), traces=asking).passed


def test_a_floor_is_lost_where_what_is_required_leaves_less() -> None:
    wide = BUDGET.assign(system=100, tools=50)
    assert gate(wide, prompts={"system": "be " * 96}, floor=50).passed
    found = gate(wide, prompts={"system": "be " * 96}, floor=51)
    assert reasons(found) == [("floor", "prompts and tools")]
    assert found.failures[0].sentence == "history has 50 tokens left, below its floor (51)"
    assert found.failures[0].detail.endswith(
        "- Lower a reserve, or shorten the sections before it."
    )


def test_a_floor_above_the_cap_of_the_history_names_the_cap() -> None:
    capped = BUDGET.assign(history={"cap": 40})
    found = gate(capped, traces=[talk(1)], floor=41)
    assert found.failures[0].detail.endswith("- Raise its cap to 41.")


@pytest.mark.parametrize(
    ("most", "passed"), [(0.0, False), (0.4, False), (0.5, True), (1.0, True), (None, True)]
)
def test_no_more_than_the_agreed_share_may_be_cut(most: float | None, passed: bool) -> None:
    found = gate(traces=[talk(5), talk(80)], most_cut=most)
    assert (found.conversations, found.cut, found.passed) == (2, 1, passed)


def test_findings_about_the_budget_and_the_policy_come_along_and_do_not_close_the_gate() -> None:
    trace, budget = load_trace("support-chat"), chat(4_096)
    thrashing = check(budget, traces=[trace], policy=OldestFirst())
    assert {"cut-at-every-request", "order-breaks-cache"} == {
        finding.code for finding in thrashing.findings
    }
    calm = check(budget, traces=[trace], policy=TriggerTarget())
    assert [finding.code for finding in calm.findings] == ["order-breaks-cache"]
    assert thrashing.passed == calm.passed


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"most_cut": 10}, "Use a share from 0 to 1"),
        ({"prompts": {"sytem": "x"}}, "Unknown section 'sytem'"),
        ({"budget": Budget(100), "floor": 5, "model": "gpt-4o"}, "This budget has no remainder"),
    ],
)
def test_what_is_given_wrongly_is_one_sentence(given: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, LookupError)) as error:
        gate(**given)
    assert told in str(error.value.args[0])


@pytest.mark.parametrize(
    "data", [3, "x", [3], [{}], {"tools": 3}, {"tools": [{"description": "x"}]}, None]
)
def test_what_holds_no_tools_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="tool"):
        tools_in(data)


def test_growth_since_a_baseline_is_told_in_tokens(tmp_path: Path) -> None:
    path = str(tmp_path / "main.json")
    save_baseline(path, gate(prompts={"system": "be " * 10}, tools=tools_in(MCP)))
    now = gate(prompts={"system": "be " * 6}, tools=tools_in({"tools": [PING, PING]}))
    changes = growth(path, now)
    before = gate(prompts={"system": "be " * 10}, tools=tools_in(MCP))
    assert changes == {"system": -4, "tools": now.sections["tools"] - before.sections["tools"]}
    assert growth_sentences({"tools": 1_240}, "main") == ["tools +1,240 tokens since main"]
    assert growth(path, gate(prompts={"system": "be " * 10}, tools=tools_in(MCP))) == {}


@pytest.mark.parametrize(
    "text", ["{", "3", "[]", '{"budgetkit": 1}', '{"budgetkit": 1, "sections": {"a": "b"}}']
)
def test_a_baseline_that_is_none_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "main.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="Save it again"):
        growth(str(path), gate(prompts={"system": "be"}))


PROJECT = """
from datetime import date
from pathlib import Path

def test_open(budget):
    assert budget("mine.yaml", prompts={"system": "Be brief."}, tools="mcp.json", traces=["support-chat"]).passed

def test_closed(budget):
    budget(Path("mine.yaml"), prompts={"system": "Be brief. " * 2000})

def test_cut(budget):
    budget("chat", window=4_096, traces=["support-chat"], most_cut=0, model="gpt-4o")
"""


def run_pytest(folder: Path, test: str) -> str:
    """Run a project's test with our plugin alone, whether it is installed or not."""
    (folder / "test_mine.py").write_text(test, encoding="utf-8")
    plugin = "budgetkit.extras.shell.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=alone
    )
    return done.stdout + done.stderr


INERT = """
import sys

import pytest


@pytest.fixture
def budget():
    return 7


def test_mine(budget):
    assert budget == 7
    loaded = {name for name in sys.modules if name.startswith("budgetkit")}
    shell = "budgetkit.extras.shell"
    assert loaded <= {"budgetkit", "budgetkit.files", "budgetkit.extras", shell, f"{shell}.pytest_plugin"}
"""


def test_the_fixture_fails_a_projects_own_test_with_the_plan_and_the_mend(tmp_path: Path) -> None:
    """Until it is used it loads none of our modules, and a project's own fixture of that name wins."""
    (tmp_path / "mine.yaml").write_text(to_yaml(chat(8_192)), encoding="utf-8")
    (tmp_path / "mcp.json").write_text(json.dumps(MCP), encoding="utf-8")
    (tmp_path / "test_first.py").write_text(INERT, encoding="utf-8")
    said = run_pytest(tmp_path, PROJECT)
    assert "2 failed, 2 passed" in said
    assert "above its cap (819)" in said
    assert "Raise the cap, shorten the text" in said
    assert "1 of 1 cut, above the limit of 0%" in said
    assert "Traceback" not in said


def test_the_entry_points_and_the_hook_name_what_is_there() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"budgetkit": "budgetkit.extras.shell:main"}
    assert project["entry-points"] == {
        "pytest11": {"budgetkit": "budgetkit.extras.shell.pytest_plugin"}
    }
    (hook,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "budgetkit check"
    assert "additional_dependencies" not in hook  # the core has the command


def test_a_misspelt_section_never_opens_the_gate_where_others_draw_on_the_pool() -> None:
    with pytest.raises(LookupError, match="Unknown section 'sytem'"):
        check(chat(8_192), prompts={"sytem": "be " * 9_000}, counter=words)


def test_strict_is_one_meaning_in_the_answer_and_its_text() -> None:
    few = Budget(8_192, [Reserve("output", 8_191, serves="output")], [Allocation("system")])
    loose = check(few, model="gpt-4o", counter=words)
    strict = check(few, model="gpt-4o", counter=words, strict=True)
    assert loose.findings == strict.findings != ()
    assert (loose.passed, strict.passed) == (True, False)
    assert "nothing-usable" in str(strict)


def test_a_model_that_is_ended_closes_the_gate() -> None:
    ended = Model("old-one", 8_192, ends="2026-01-01")
    assert check(chat(8_192), model=ended, today=date(2025, 12, 31)).passed
    found = check(chat(8_192), model=ended, today=date(2026, 1, 1))
    assert [failure.code for failure in found.failures] == ["retired"]
    without_a_day = gate(model=Model("old", 8_192, ends="2020-01-01"))
    assert [failure.code for failure in without_a_day.failures] == ["retired"]


def test_a_lone_prompt_is_not_measured_by_the_caches_minimum() -> None:
    found = check(chat("gpt-4o"), model="gpt-4o", prompts={"system": "Be brief."})
    assert "prompt-below-cache" not in {finding.code for finding in found.findings}


BUFFERED = Reserve("safety", 10)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"model": "claude-sonnet-4-5"}, "estimates the tokens, and no reserve covers its error"),
        ({"counter": "chars/4"}, "chars/4 estimates the tokens, and no reserve covers its error"),
        ({"counter": len}, "len estimates the tokens, and no reserve covers its error"),
        (
            {"model": "claude-sonnet-4-5", "counter": "o200k_base"},
            "o200k_base estimates the tokens of claude-sonnet-4-5, and no",
        ),
        (
            {"model": "gpt-4", "counter": "o200k_base"},
            "o200k_base estimates the tokens of gpt-4, and no reserve",
        ),
    ],
)
def test_an_estimate_needs_a_buffer(settings: dict[str, Any], sentence: str) -> None:
    """In 0.2.0 a count that may be a fifth too low opened it; with a reserve for the error it may."""
    prompts, settings = {"system": "Be brief."}, settings | {"today": date(2026, 1, 1)}
    closed = check(chat(8_192), prompts=prompts, **settings)
    assert reasons(closed) == [("estimate", "count")]
    assert closed.headline == "The check failed: estimate."
    assert sentence in closed.failures[0].sentence
    assert 'Add one, such as Reserve("safety", Share(0.1))' in closed.failures[0].detail
    assert "stand-in-without-buffer" not in {finding.code for finding in closed.findings}, (
        "it is said once"
    )
    safe = chat(8_192)
    assert check(
        replace(safe, reserves=[*safe.reserves, BUFFERED]), prompts=prompts, **settings
    ).passed
    assert check(chat(8_192), prompts=prompts, model="gpt-4o").passed


def test_a_conversation_with_another_model_is_an_estimate_by_the_counter_of_this_one() -> None:
    held = Trace("held", (Message(user("Hi")),), fields={"model": "claude-sonnet-4-5"})
    closed = check(chat(8_192), traces=[held], counter="gpt-4o")
    assert reasons(closed) == [("estimate", "count")]
    assert "of claude-sonnet-4-5" in closed.failures[0].sentence


@pytest.mark.parametrize(
    "name",
    ["llama3.2", "unknown-x", "my-azure-deployment", "gpt-99", "deepseek-chat", "deepseek-r1:7b"],
)
def test_a_conversation_with_an_unknown_or_retired_model_is_an_estimate(name: str) -> None:
    """They were counted with o200k_base as if exactly, and the gate was open."""
    held = Trace("held", (Message(user("Hi")),), fields={"model": name})
    closed = check(chat(8_192), traces=[held])
    assert reasons(closed) == [("estimate", "count")]
    assert f"o200k_base estimates the tokens of {name}, and no reserve" in str(closed)
    is_unknown = name != "deepseek-chat"
    assert (f"Unknown model '{name}'" in str(closed)) == is_unknown
    assert (
        "- Or choose a listed model (-m in the shell, model= in Python)" in str(closed)
    ) == is_unknown
    # Each fix opens it.
    safe = replace(chat(8_192), reserves=[*chat(8_192).reserves, BUFFERED])
    assert check(safe, traces=[held]).passed
    assert check(chat(8_192), traces=[held], counter=words).passed
    assert check(chat(8_192), traces=[held], model="gpt-4o").passed


def saved(path: Path, words_each: int, *models: str) -> str:
    """Save one conversation for each model, and return the path."""
    said = [user("why " * words_each)]
    lines = [json.dumps({"model": model, "messages": said}) for model in models]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("models", "words_each", "closed"),
    [
        (["gpt-4o"], 90_000, False),
        (["gpt-4o"], 128_000, True),
        (["gpt-4o", "gpt-5.4"], 128_000, True),
        (["gpt-5.4"], 128_000, False),
        (["gpt-4-0314"], 5_000, False),
        (["gpt-4-0314"], 8_192, True),  # retired
    ],
)
def test_the_window_and_the_counter_are_those_of_the_conversations_own_model(
    models: list[str], words_each: int, closed: bool, tmp_path: Path
) -> None:
    """A preset divided the window of gpt-5.4, whichever model the conversation named."""
    path = saved(tmp_path / "talks.jsonl", words_each, *models)
    assert run(["check", path]) == closed
    assert run(["check", path, "-m", "gpt-5.4"]) == 0
    # The fixture counts with o200k_base, which is an estimate for gpt-4.
    is_estimate = models == ["gpt-4-0314"]
    assert checked("chat", traces=[path]).passed == (not closed and not is_estimate)


@pytest.mark.parametrize("preset", ["chat", "memory_engine"])
def test_a_preset_without_a_window_never_opens_for_an_unknown_model(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path / "talk.jsonl", 5, "llama3.2")
    assert run(["check", path, "-b", preset]) == 2
    assert "Unknown model 'llama3.2'" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"Unknown model 'llama3\.2'"):
        checked(preset, traces=[path])
    assert run(["check", path, "-b", preset, "-m", "gpt-4o"]) == 0
    # Only the memory engine has a buffer.
    for model in ("llama3.2", "my-azure-deployment", "gpt-99"):
        path = saved(tmp_path / "talk.jsonl", 5, model)
        assert run(["check", path, "-b", preset, "-w", "8192"]) == (preset == "chat")


def test_what_estimates_nothing_is_not_closed_for_it() -> None:
    """A budget alone is looked over by findings."""
    assert check(chat(8_192), model="claude-sonnet-4-5").passed


@pytest.mark.parametrize(
    "path", ["prompt.txt", "prompts/system", "./system.md", "~/mine.txt", "C:\\prompts\\a.txt"]
)
def test_a_path_given_as_text_is_refused_and_never_opened(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 0.2.0 the fixture counted the letters of the path, and the gate was open."""
    monkeypatch.chdir(tmp_path)
    Path("prompt.txt").write_text("Be brief.", encoding="utf-8")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a text was taken for a file")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        patched.setattr("builtins.open", refuse)
        with pytest.raises(ValueError, match=r"looks like a path: .* Pass pathlib\.Path"):
            gate(prompts={"system": path})


def test_a_path_given_as_a_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("be " * 16, encoding="utf-8")
    assert gate(prompts={"system": path}).sections == gate(prompts={"system": "be " * 16}).sections
    with pytest.raises(FileNotFoundError):
        gate(prompts={"system": tmp_path / "promt.txt"})


@pytest.mark.parametrize(
    "text",
    [
        *("Be brief.", "Use tools/list, then answer.", "你好。", "and", "3.5", "Hi.", "/no_think"),
        # One visible sign is enough.
        *(".", "\u2764\ufe0f", "\u2801", "\u3131\u3164"),
    ],
)
def test_a_text_is_taken_for_neither_a_path_nor_an_empty_prompt(text: str) -> None:
    assert gate(prompts={"system": text}).passed


@pytest.mark.parametrize("text", ["prompts/system", "Answer.md", "/no_think"])
def test_a_text_from_a_file_is_not_judged_as_a_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt"
    path.write_text(text, encoding="utf-8")
    assert gate(prompts={"system": path}).passed
    assert run(["check", "-b", "chat", "-w", "8192", "--prompt", f"system={path}"]) == 0


def test_an_unknown_model_is_refused_unless_its_window_is_given() -> None:
    with pytest.raises(ValueError, match=r"Unknown model 'gtp-4o'. Did you mean 'gpt-4o'"):
        gate(model="gtp-4o")
    assert run(["check", "support-chat", "-m", "gtp-4o"]) == 2
    assert gate(model="gtp-4o", window=200).passed


def test_a_section_that_roles_misspell_is_refused_where_others_draw_on_the_pool() -> None:
    """The line that was meant stays empty, and nothing limits the other."""
    budget = Budget(
        200, (), [Allocation("history", 50)], undeclared="pool", roles=ROLES | {"user": "histroy"}
    )
    with pytest.raises(LookupError, match="Unknown section 'histroy'"):
        gate(budget, traces=[talk(5)])


def test_a_price_step_below_the_window_is_found() -> None:
    """Gemini 2.5 Pro costs more above 200,000 tokens of prompt (genai-prices)."""
    pytest.importorskip("genai_prices")
    wide, narrow = (
        check(chat("gemini-2.5-pro"), model="gemini-2.5-pro", window=w) for w in (None, 200_000)
    )
    assert "price-step" in {finding.code for finding in wide.findings}
    assert "price-step" not in {finding.code for finding in narrow.findings}


@pytest.mark.parametrize("option", ["--prompt=system=nothere.txt", "--tools=nothere.json"])
def test_a_missing_file_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It read "[Errno 2] No such file or directory"."""
    assert run(["check", "-b", "chat", "-m", "gpt-4o", option]) == 2
    error = capsys.readouterr().err
    assert "File not found: 'nothere." in error and "Errno" not in error


def test_the_headline_agrees_with_the_lines_above_it_and_a_plan_is_shown_once() -> None:
    """A required prompt above its cap loses nothing, and breaks a limit: it was said that nothing is lost."""
    found = gate(traces=[talk(1, system=40), talk(1, system=40)])
    assert reasons(found) == [("cap", "2 turns, turn 1"), ("cap", "2 turns, turn 1")]
    assert found.headline == "The check failed: cap; a limit is exceeded in 2 of 2 conversations."
    assert str(found).count("Plan of 200 tokens") == 1
    assert str(found).count("cap: 2 turns, turn 1: system asks for 44 tokens") == 2


CUT = "1 of 2 conversations loses something."
CAPPED = "a limit is exceeded in 1 of 1 conversation; 1 of 1 conversation loses something."


@pytest.mark.parametrize(
    ("settings", "headline"),
    [
        ({"prompts": {"system": "be"}}, "The check passed."),
        ({"traces": [talk(1)]}, "The check passed; 0 of 1 conversation loses something."),
        ({"traces": [talk(1), talk(80)], "most_cut": 0}, f"The check failed: cut; {CUT}"),
        ({"traces": [talk(80, system=40)]}, f"The check failed: cap; {CAPPED}"),
    ],
)
def test_one_headline_says_all(settings: dict[str, Any], headline: str) -> None:
    assert gate(**settings).headline == headline


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--prompt=system=folder", "Cannot read or write 'folder': Is a directory."),
        ("--tools=folder", "Cannot read or write 'folder': Is a directory."),
        ("--save-baseline=folder", "Cannot read or write 'folder': Is a directory."),
        ("--save-baseline=nofolder/main.json", "Folder not found: 'nofolder'."),
        ("--counter=", "Unknown counter ''"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows says it in other words")
def test_what_is_no_file_and_no_counter_never_opens_the_gate_and_is_a_sentence(
    option: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert run(["check", "support-chat", "-w", "32000", option]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert "Errno" not in told


NAMED = {f"tool_{number}": {"description": "Look", "parameters": {}} for number in range(12)}
PINGS = [{"name": "ping", "inputSchema": {"type": "object"}}]


@pytest.mark.parametrize(
    "tools",
    [
        [],
        {},
        NAMED,
        {"mcpServers": {"files": {"command": "npx", "args": ["-y", "server"]}}},
        {"openapi": "3.1.0", "info": {"title": "Shop"}, "paths": {"/orders": {"get": {}}}},
        {"name": "package", "version": "1.0.0", "scripts": {"test": "jest"}},
        [{"name": "ping", "descriptoin": "Look whether a host answers"}],
        [{"name": "ping", "inputSchema": {"type": "object", "propertis": {"host": {}}}}],
        [{"name": "ping", "type": "functoin"}],
        {"tools": PINGS, "nextCursor": "2"},
        {"result": {"tools": PINGS, "nextCursr": "2"}},
        {"tols": PINGS},
    ],
)
@pytest.mark.parametrize("gate", [check, checked])
def test_tools_that_would_not_be_counted_never_open_the_gate(gate: Any, tools: Any) -> None:
    with pytest.raises(ValueError, match="tool|page"):
        gate(chat(8_192), tools=tools)


@pytest.mark.parametrize("gate", [check, checked])
@pytest.mark.parametrize("given", [{}, {"traces": []}, {"prompts": {}}, {"traces": iter(())}])
def test_nothing_to_check_never_opens_the_gate(gate: Any, given: Any) -> None:
    with pytest.raises(ValueError, match=r"^No"):
        gate(chat(8_192), **given)


@pytest.mark.parametrize(
    "text",
    [
        *("\ufeff", "\u200b\u200b", "\0", " \n\u2060", "\u00ad\u200e", "\u202e\u2066", "\ud83d"),
        *("\u3164", "\uffa0\u115f\u1160", "\ufe0f", "\U000e0101", "\U000e0001\U000e0041", "\U000e0fff"),
        *("\u034f", "\u17b4\u17b5", "\u180b\u180e", "\u2800 \u2800", "\U0001d159", "\u00a0\u3000"),
    ],
    ids=ascii,
)  # fmt: skip
def test_a_prompt_of_signs_that_nobody_sees_is_empty(text: str) -> None:
    with pytest.raises(ValueError, match="Empty prompt"):
        gate(prompts={"system": text})


@pytest.mark.parametrize("key", ["contnet", "conten", "tool_cals"])
def test_a_misspelt_key_of_a_message_never_opens_the_gate(key: str) -> None:
    message = {"role": "user", "content": "Why?", key: "be " * 900}
    with pytest.raises(ValueError, match=f"Unknown key '{key}' in message 1 of a"):
        gate(traces=[Trace("a", (Message(message),))])


def test_tools_of_every_provider_are_accounted_for() -> None:
    schema = {"type": "object", "properties": {"descriptoin": {"type": "string", "x-order": 1}}}
    for tools in (
        [{"type": "function", "function": {"name": "ping", "parameters": schema, "strict": True}}],
        [{"name": "ping", "input_schema": schema, "cache_control": {"type": "ephemeral"}}],
        [{"functionDeclarations": [{"name": "ping", "parameters": schema}]}],
        [{"toolSpec": {"name": "ping", "inputSchema": {"json": schema}}}, {"cachePoint": {}}],
        {"tools": [{"name": "ping", "inputSchema": schema, "annotations": {"readOnly": True}}]},
    ):
        assert check(chat(8_192), tools=tools, counter=words).passed


def test_a_blank_cap_is_no_missing_cap() -> None:
    text = to_yaml(Budget(100, (), [Allocation("system", 20)])).replace("cap: 20", "cap:")
    with pytest.raises(ValueError, match="cap of 'system' is blank"):
        bk.state.from_yaml(text)
