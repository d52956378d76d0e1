"""The command line: what each command prints and returns, on files and standard input, and what an error says."""

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import COMMANDS, run
from budgetkit.files import read_toml
from budgetkit.models import DEFAULT_MODEL, models
from budgetkit.trace.opening import Intake
from tests.messages import user

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ROGUE = "\x1b[31m\x1b]0;mine\x07\x9b2J"
Captured = pytest.CaptureFixture[str]


def budgetkit(*arguments: str, given: bytes = b"", **environment: str) -> Any:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "budgetkit", *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, input=given, capture_output=True, timeout=120, env=env)


def written(path: Path, *rows: Any) -> str:
    """Write rows of JSON, one a line, and return the path as a command takes it."""
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def data(capsys: Captured, *arguments: str) -> Any:
    """Run a command here with --json, and read what it prints."""
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_help_lists_every_command_with_a_sentence_and_loads_none(capsys: Captured) -> None:
    program = (
        "import sys; from budgetkit.extras.shell.program import run; run(['--help']); "
        "print({'numpy', 'pandas', 'tiktoken', 'rich', 'yaml', 'pydantic'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # fmt: skip
    said = done.stdout
    assert said.endswith("set()\n")
    for name, row in COMMANDS.items():
        summary = re.escape(row["summary"])
        assert re.search(rf"^  {name} +{summary}$", said, re.MULTILINE)
        assert run([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: budgetkit {name} ")


def test_the_help_names_the_default_model() -> None:
    rows = read_toml("commands.toml")["shared"]["budget"]
    (model,) = (row for row in rows if "--model" in row["flags"])
    assert model["help"].endswith(f"or {DEFAULT_MODEL}.")


def test_the_shell_completes_the_names_of_commands() -> None:
    typed: dict[str, Any] = {"COMP_WORDS": "budgetkit co", "COMP_CWORD": "1"}
    said = budgetkit(_BUDGETKIT_COMPLETE="bash_complete", **typed).stdout.decode()
    assert said.splitlines() == ["plain,count", "plain,compare"]


def test_a_text_is_counted_as_the_library_counts_it(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Grüße 🎉 " * 50, encoding="utf-8")
    assert run(["count", "-t", "Hello world"]) == 0
    assert capsys.readouterr().out == "2 tokens (o200k_base)\n"
    found = data(capsys, "count", str(path), "-c", "gpt-4o", "-c", "chars/4")
    text = path.read_text(encoding="utf-8")
    expected = {"gpt-4o": bk.counter("gpt-4o")(text), "chars/4": bk.counter("chars/4")(text)}
    assert found["tokens"] == expected


@pytest.mark.parametrize("option", ["-m", "--model"])
def test_a_model_is_named_as_in_every_other_command(capsys: Captured, option: str) -> None:
    assert run(["count", "-t", "Hello world", option, "gpt-4o"]) == 0
    assert capsys.readouterr().out == "2 tokens (gpt-4o)\n"
    found = data(capsys, "count", "-t", "Hello world", "-c", "chars/4", option, "gpt-4o")
    assert found["tokens"] == {"chars/4": 2, "gpt-4o": 2}
    assert run(["count", "-t", "Hello world", option, "gtp-4o"]) == 2


class Provider:
    """Stands in for a provider's endpoint: it is named as one is, and opens no connection."""

    exact = True

    def __init__(self, provider: str, model: str) -> None:
        self.name = f"{model} (counted by {provider})"

    def __call__(self, text: str) -> int:
        return len(text.split())

    def many(self, texts: list[str]) -> list[int]:
        return [*map(self, texts)]


Provider.__name__ = "ProviderCounter"


@pytest.mark.usefixtures("no_network")
def test_a_providers_count_is_a_row(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """000: three approaches, with accuracy, cost and when to use them; the endpoint goes by its provider's name."""
    monkeypatch.setattr("budgetkit.extras.endpoints.provider_counter", Provider)
    words = ["count", "-t", "Hello world", "-c", "chars/4", "-m", "gpt-4o", "--ask", "openai"]
    expected = {"chars/4": 2, "gpt-4o": 2, "gpt-4o (counted by openai)": 2}
    assert data(capsys, *words)["tokens"] == expected
    rows = data(capsys, *words, "--ways")
    expected_rows = [("characters", False, False), ("tokenizer", True, False), ("endpoint", True, True)]  # fmt: skip
    assert [(row["kind"], row["exact"], row["network"]) for row in rows] == expected_rows
    assert all(row["costs"] and row["use"] for row in rows)
    assert run([*words, "--ways"]) == 0
    assert "a network call for each new text" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--ask", "openai"], "Missing --model for --ask openai"),
        (["--ask", "opnai", "-m", "gpt-4o"],
         "Unknown provider 'opnai'. Did you mean 'openai'? Choose one of: 'openai', 'anthropic', 'gemini'"),
        (["--ask", "openai", "-m", "gpt-4o", "--as", "request"], "they count texts only"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("no_network")
def test_nobody_is_asked_by_mistake(capsys: Captured, more: list[str], sentence: str) -> None:
    assert run(["count", "-t", "Hello world", *more]) == 2
    assert sentence in capsys.readouterr().err


def test_models_are_listed_with_what_is_known_of_each(capsys: Captured) -> None:
    rows = {row["name"]: row for row in data(capsys, "models")}
    assert len(rows) == len(models())
    assert (rows["gpt-4o"]["window"], rows["gpt-4o"]["max_output"]) == (128_000, 16_384)
    asked = ["openai/gpt-4o", "gpt-4o-mini"]
    assert [row["name"] for row in data(capsys, "models", *asked)] == asked
    assert run(["models", "gtp-5.4"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Unknown model 'gtp-5.4'" in shown and "Did you mean 'gpt-5.4'?" in shown


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no such device")
@pytest.mark.parametrize(
    "command",
    ["count /dev/zero", "check -b chat --window 8000 --prompt system=/dev/zero"],
)
def test_a_device_is_not_read(command: str, capsys: Captured) -> None:
    """It never ends."""
    assert run(command.split()) == 2
    assert "Not a file: /dev/zero. Pass the path of a file." in capsys.readouterr().err


def test_standard_input_is_counted_where_no_file_is_named() -> None:
    assert budgetkit("count", given=b"Hello world").stdout == b"2 tokens (o200k_base)\n"
    assert budgetkit("count", "-", given=b"Hello world").stdout == b"2 tokens (o200k_base)\n"


def test_a_request_that_is_counted_as_text_is_named(capsys: Captured, tmp_path: Path) -> None:
    """A picture's base64 counted 135,684 tokens, and nothing said that its request bills 1,736."""
    url = {"url": "data:image/png;base64," + "QUJD" * 200}
    content = [{"type": "image_url", "image_url": url}]
    body = {"model": "gpt-4o", "messages": [user(content)]}
    path = tmp_path / "body.json"
    assert run(["count", written(path, body)]) == 0
    assert "Use --as request to count the billed tokens" in capsys.readouterr().out
    assert run(["count", written(path, {"title": "no request"})]) == 0
    assert "--as request" not in capsys.readouterr().out


def test_a_request_is_counted_as_it_is_billed(capsys: Captured, tmp_path: Path) -> None:
    body = {"model": "gpt-4o", "messages": [user("Hello world")]}
    folder = tmp_path / ("a path longer than the table is wide stays on one line " * 3).strip()
    folder.mkdir()
    path = written(folder / "body.json", body)
    (row,) = data(capsys, "count", path, "--as", "request")
    assert (row["tokens"], row["exact"]) == (bk.count_request(body).tokens, True)
    assert run(["count", path, "--as", "request"]) == 0
    assert f"{path}: gpt-4o, 9 tokens\n" in capsys.readouterr().out


def test_fit_says_what_fit_says(capsys: Captured) -> None:
    words = ["fit", "support-chat", "-b", "chat", "-w", "4096", "--turn", "30"]
    found = data(capsys, *words, "--why", "conversation")
    budget = bk.presets.chat(4_096, deficit="signed")
    items = bk.load_trace("support-chat").items(30, bk.counter(DEFAULT_MODEL), budget.roles)
    plan = bk.fit(budget, items)
    granted = [grant.granted for grant in plan.grants]
    assert [each["granted"] for each in found["plan"]["grants"]] == granted
    assert found["free"] == plan.free
    assert found["why"][0] == plan.why("conversation").reasons[0]


@pytest.mark.parametrize("turn", [["--turn", "3"], []])
def test_a_saved_budget_is_yaml_or_json(capsys: Captured, tmp_path: Path, turn: list[str]) -> None:
    budget = bk.presets.rag(16_384)
    for name, text in (("b.yaml", bk.state.to_yaml(budget)), ("b.json", bk.state.to_json(budget))):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        found = data(capsys, "fit", "support-chat", "-b", str(path), *turn)
        assert found["plan"]["budget"]["window"] == 16_384


def test_replay_and_compare_give_the_librarys_numbers(capsys: Captured) -> None:
    trace, budget = bk.load_trace("support-chat"), bk.presets.chat(8_192)
    outcome = bk.replay(trace, budget, "haystack", model=DEFAULT_MODEL)
    found = data(capsys, "replay", "support-chat", "-p", "haystack", "-w", "8192")
    assert found["totals"]["sent"] == outcome.totals()["sent"]
    assert found["totals"]["cost"] is None
    assert [row["cached"] for row in found["requests"]] == outcome.frame()["cached"].tolist()
    rows = data(capsys, "compare", "support-chat", "-p", "haystack", "-p", "octopus", "-w", "8192")
    assert {row["policy"]: row["sent"] for row in rows}["haystack"] == outcome.totals()["sent"]


@pytest.mark.parametrize("named", ["2", "made-up-2", "Second"])
def test_a_conversation_by_number_id_or_title(capsys: Captured, tmp_path: Path, named: str) -> None:
    rows = [
        {"id": f"made-up-{n}", "title": title, "messages": [user("word " * n)]}
        for n, title in ((1, "First"), (2, "Second"))
    ]
    path = written(tmp_path / "two.jsonl", *rows)
    found = data(capsys, "replay", path, "--conversation", named)
    second = bk.load_traces(Path(path))[1]
    assert found["requests"][0]["sent"] == second.demand(DEFAULT_MODEL).to_numpy().sum()
    for missing in ("0", "3"):
        assert run(["fit", str(path), "--conversation", missing]) == 2
        assert "Choose 1 to 2, an id or a title" in capsys.readouterr().err


def test_a_number_is_a_place_before_it_is_an_id(capsys: Captured, tmp_path: Path) -> None:
    rows = [{"id": id, "messages": [user(f"I am {id}.")]} for id in ("3", "1", "2", "9")]
    path = written(tmp_path / "numbered.jsonl", *rows)
    for asked, found in (("1", "3"), ("2", "1"), ("3", "2"), ("4", "9"), ("9", "9")):
        assert run(["fit", str(path), "--conversation", asked]) == 0
        assert capsys.readouterr().out.startswith(f"{found}: a window of")


def test_a_policy_goes_by_its_plain_name(capsys: Captured) -> None:
    for written in ("oldest first", "oldest-first"):
        assert run(["replay", "support-chat", "-p", written]) == 0
        assert capsys.readouterr().out.startswith("support-chat, oldest first, in tokens")


def test_a_gate_that_was_not_asked_about_cuts_says_so(capsys: Captured) -> None:
    arguments = ["check", "support-chat", "-b", "chat", "-w", "8192"]
    assert run(arguments) == 0
    told = (
        "1 of 1 conversation loses something, and no limit is set. Set one, such as --most-cut 0.1"
    )
    assert told in capsys.readouterr().err
    assert run([*arguments, "--most-cut", "0.1"]) == 1
    assert "no limit is set" not in capsys.readouterr().err


def test_a_conversation_comes_in_by_standard_input_in_any_format() -> None:
    """LangChain's messages, and a compressed file of ours."""
    said = [{"type": "human", "content": "Hello world"}, {"type": "ai", "content": "Hello."}]
    whole = (Path(__file__).parents[2] / "data" / "traces" / "support-chat.jsonl").read_bytes()
    for given in (json.dumps(said).encode(), whole, gzip.compress(whole)):
        done = budgetkit("fit", "-", "--turn", "1", "--json", given=given)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["plan"]["grants"][-1]["demand"] > 0


WRONG = {
    "no file": (("fit", "nosuch.jsonl"), "File not found: nosuch.jsonl. Check the path."),
    "no shipped trace": (("fit", "nosuch"), "Unknown trace 'nosuch'. Choose one of: "),
    "no budget": (("fit", "support-chat", "-b", "nosuch"), "Unknown budget 'nosuch'"),
    "no policy": (("replay", "support-chat", "-p", "nosuch"), "Unknown policy 'nosuch'. Choose one of"),
    "no counter": (("count", "-t", "x", "-c", "nosuch"), "Unknown counter 'nosuch'"),
    "no model": (("fit", "support-chat", "-c", "chars/4", "-m", "nosuch"), "Unknown model 'nosuch'"),
    "no turn": (("fit", "support-chat", "--turn", "999"), "No turn 999 in trace 'support-chat'. Choose 1 to 75."),
    "no section": (("fit", "support-chat", "--why", "x"), "Unknown section 'x'. Choose one of"),
    "no prompt": (("check", "--prompt", "x"), "Invalid --prompt 'x': use SECTION=FILE"),
    "too small": (("fit", "support-chat", "-w", "3"), "The window of 'chat' (3 tokens) leaves 'system' 0 tokens"),
    "no notebook": (("notebook", "99"), "Unknown notebook '99'. Choose one of: 00-start, "),
    "piped app": (("explore", "-"), "Cannot explore standard input"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_an_error_exits_with_2(arguments: tuple[str, ...], told: str, capsys: Captured) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"Error: {told}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nosuch",), "Unknown command 'nosuch'. Choose one of: 'sessions'"),
        (("sesions",), "Unknown command 'sesions'. Did you mean 'sessions'?"),
        (("fit", "--nosuch"), "No such option"),
        (("fit", "x", "y"), ""),
        (("fit", "--turn", "x"), ""),
    ],
)
def test_a_wrong_option_is_answered_with_the_usage(
    arguments: tuple[str, ...], told: str, capsys: Captured
) -> None:
    assert run(arguments) == 2
    usage, _, error = capsys.readouterr().err.partition("\nError: ")
    assert usage.startswith("Usage: budgetkit ") and error.startswith(told)


@pytest.mark.parametrize(
    "given", [b"\xff\xfe\x00", b"{", b"", b"[" * 10_000, b'{"messages": 3}', b"\x1f\x8b\x00"]
)
@pytest.mark.parametrize(
    "command", [("fit", "-"), ("fit", "support-chat", "-b", "-"), ("count", "--as", "request")]
)
def test_no_input_ends_in_a_traceback(
    given: bytes,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    tmp_path: Path,
) -> None:
    path = tmp_path / "given"
    path.write_bytes(given)
    with path.open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run(command) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_no_name_or_text_commands_the_terminal(tmp_path: Path) -> None:
    said = [{"role": ROGUE, "content": ROGUE}, user("Hello")]
    conversation = {"id": ROGUE, "messages": said, "tools": [{"name": ROGUE}]}
    trace = written(tmp_path / "trace.jsonl", conversation)
    budget = {"window": 50, "allocations": [{"section": ROGUE, "cap": 3}]}
    saved = written(tmp_path / "budget.json", {"budgetkit": 1, "budget": budget})
    for arguments in (
        ("fit", trace),
        ("fit", trace, "-b", saved, "--why", ROGUE),
        ("fit", trace, "--conversation", ROGUE),
        ("fit", trace, "--conversation", "x" + ROGUE),
        ("replay", trace, "-p", ROGUE),
        ("redact", trace),
        ("check", trace, "-b", saved),
        ("count", "-t", ROGUE, "-t", "x"),
        ("count", "-t", ROGUE, "--json"),
        ("count", "-c", ROGUE),
        ("count", ROGUE),
        (ROGUE,),
    ):
        done = budgetkit(*(each.replace("\x00", "") for each in arguments), given=b"")
        shown = (done.stdout + done.stderr).decode()
        assert shown
        assert not CONTROL.search(shown), arguments
        assert "Traceback" not in shown


def test_a_warning_is_a_sentence_on_the_error_output(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.json", json.dumps([user("Hello")]))
        archive.writestr("other.json", json.dumps({"nothing": 1}))
    done = budgetkit("check", str(path), "--json")
    assert done.returncode == 0
    told = "Note: Left out 1 file of export.zip without a conversation: export.zip/other.json.\n"
    assert done.stderr.decode() == told
    assert json.loads(done.stdout)["conversations"] == 1


def test_what_was_read_of_a_file_is_said_in_the_words_of_the_explorers(tmp_path: Path) -> None:
    """On 0.2.0 the terminal showed numbers of a file and nobody knew what had been read of it."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": [user("Hello")]}))
    done = budgetkit("fit", str(path), "--window", "4096", "--json")
    facts = Intake(bk.load_traces(path))
    assert done.stderr.decode().strip() == f"Read: {'; '.join(facts.sentences)}"
    assert "1 message: 1 user; the file names the model gpt-4o" in done.stderr.decode()
    assert json.loads(done.stdout)["free"] > 0
    assert b"Read:" not in budgetkit("fit", "support-chat", "--window", "4096", "--json").stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [
        sys.executable, "-m", "budgetkit", "replay", "coding-agent", "--by", "request", "--json",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_check_closes_with_exit_code_1_and_opens_with_0(capsys: Captured, tmp_path: Path) -> None:
    prompt, baseline = tmp_path / "system.txt", tmp_path / "main.json"
    prompt.write_text("Be brief.", encoding="utf-8")
    arguments = ["check", "support-chat", "-w", "4096", "--prompt", f"system={prompt}"]
    assert run([*arguments, "--save-baseline", str(baseline)]) == 0
    assert "The check passed; 1 of 1 conversation loses something." in capsys.readouterr().out
    prompt.write_text("Be brief. " * 500, encoding="utf-8")
    assert run([*arguments, "--baseline", str(baseline)]) == 1
    said = capsys.readouterr().out
    assert "above its cap (409)" in said
    assert re.search(r"^system \+[\d,]+ tokens since main$", said, re.MULTILINE)
    assert run([*arguments, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failures"][0]["code"] == "cap"


def test_strict_fails_on_a_finding(capsys: Captured) -> None:
    arguments = ["check", "-m", "claude-sonnet-4-5"]
    assert run(arguments) == 0
    assert run([*arguments, "--strict"]) == 1
    assert "stand-in-without-buffer" in capsys.readouterr().out


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let only these of the two programs that show a page be found."""
    programs = {"voila", "jupyterlab"} - {*names}
    monkeypatch.setattr(
        "budgetkit.extras.shell.opening.find_spec",
        lambda name: None if name in programs else find_spec(name),
    )


@pytest.mark.parametrize("port", [["--port", "9999"], ["--port=9999"]])
def test_explore_opens_with_its_options(monkeypatch: pytest.MonkeyPatch, port: list[str]) -> None:
    """On 0.3.0 `--port 9999` took the number for a file. The app itself is driven in its own tests."""
    served: list[tuple[str, ...]] = []
    monkeypatch.setattr("budgetkit.lab.app.serving.serve", lambda *given: served.append(given))
    assert run(["explore", "support-chat", "--no-browser", *port]) == 0
    assert run(["explore"]) == 0
    assert served == [("support-chat", "--no-browser", "--port=9999"), ("support-chat",)]


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Collect the commands that would start JupyterLab, with the script that runs the first notebook."""
    started: list[tuple[list[str], str]] = []

    def start(command: list[str], cwd: str = ".") -> subprocess.CompletedProcess[bytes]:
        # Jupyter runs settings, and Python modules, of the folder that it is started in.
        assert not {*Path(cwd).iterdir()} - {Path(cwd, "lab")}
        _, _, folder = command[-1].partition("extra_labextensions_path=")
        scripts = Path(folder).glob("*/static/start.js") if folder else []
        started.append((command, "".join(map(Path.read_text, scripts))))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", start)
    return started


def test_explore_writes_a_notebook_for_jupyterlab_where_there_is_no_app(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, labs: list[tuple[list[str], str]]
) -> None:
    """The new notebook is run; one that was there already, which anybody may have written, is only shown."""
    monkeypatch.chdir(tmp_path)
    installed(monkeypatch, "jupyterlab")
    Path("my chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    command = ["explore", "my chat.json", "--no-browser", "--port", "9999"]
    assert run(command) == 3
    page = Path("explore-my-chat.ipynb")
    (cell,) = json.loads(page.read_text())["cells"]
    assert f"bk.DesignCard(trace={str(tmp_path / 'my chat.json')!r})" in cell["source"]
    names: dict[str, Any] = {}
    exec(cell["source"].replace("bk.DesignCard", "card = bk.DesignCard"), names)
    assert DEFAULT_MODEL in repr(names["card"])
    page.write_text("{}")
    assert run(command) == 3
    (new, script), (again, none) = labs
    assert {"--LabApp.default_url=/lab/tree/explore-my-chat.ipynb", "--port=9999"} < {*new}
    assert f"--ServerApp.root_dir={tmp_path}" in new
    assert 'const FIRST = "explore-my-chat.ipynb"' in script
    assert page.read_text() == "{}" and not none
    assert not [option for option in again if "labextensions" in option]


def test_notebooks_are_written_and_nobodys_work_is_overwritten(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: Captured,
    labs: list[tuple[list[str], str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    installed(monkeypatch)
    assert run(["notebook", "02", "mine"]) == 0
    assert "pip install 'budgetkit[jupyter]'" in capsys.readouterr().out
    (page,) = Path("mine").iterdir()
    page.write_text("changed")
    installed(monkeypatch, "jupyterlab")
    assert run(["notebook", "all", "mine", "--no-browser"]) == 3
    assert "Already in mine, not changed: 02-budget-a-window.ipynb." in capsys.readouterr().out
    assert page.read_text() == "changed"
    shipped = {path.name for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")}
    assert {path.name for path in Path("mine").iterdir()} == shipped
    ((command, script),) = labs
    assert "--LabApp.default_url=/lab/tree/00-start.ipynb" in command
    assert 'const FIRST = "00-start.ipynb"' in script


def test_one_of_several_is_said_where_none_was_named(capsys: Captured, tmp_path: Path) -> None:
    rows = [{"id": f"toy-{n}", "messages": [user(f"Hello {n}")]} for n in range(8)]
    path = written(tmp_path / "eight.jsonl", *rows)
    goal = tmp_path / "made.html"
    assert run(["report", str(path), "-o", str(goal)]) == 0
    shown = capsys.readouterr()
    told = "toy-0. Choose another with --conversation, by number, id or title.\n"
    read = "Read: OpenAI chat, 1 message: 1 user\n"
    assert shown.err == f"Note: Read conversation 1 of 8 in {path}, {told}{read}"
    assert shown.out.endswith(" kB, in a window of 1,050,000 tokens; change it with --window\n")
    for named in (["--conversation", "2"], ["--conversation", "toy-3"]):
        assert run(["report", str(path), "-o", str(goal), *named]) == 0
        assert capsys.readouterr().err == read


def test_what_is_broken_further_on_is_none_of_the_first(capsys: Captured, tmp_path: Path) -> None:
    rows = [{"messages": [user("Hello")]}, {"messages": [{}]}]
    assert run(["fit", written(tmp_path / "broken.jsonl", *rows)]) == 0
    assert capsys.readouterr().err == "Read: OpenAI chat, 1 message: 1 user\n"


def test_what_reading_left_out_is_a_note(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    rows = "a,user,Hello\n" * 2 + "b,user,Hello\n" * 2
    path.write_text(f"fall,role,content\n{rows}", encoding="utf-8")
    assert run(["fit", str(path)]) == 0
    read, note = capsys.readouterr().err.splitlines()[:2]
    assert read == "Read: table, 4 messages: 4 user"
    assert note.startswith("Note: All 4 rows became one conversation")
    body = written(tmp_path / "body.json", {"model": "gtp-4o", "messages": [user("Hello")]})
    assert run(["count", body, "--as", "request"]) == 0
    assert "unknown model 'gtp-4o', similar to 'gpt-4o'" in capsys.readouterr().out
