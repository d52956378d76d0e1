"""A package of somebody else adds a counter, a file format and a preset; it is built, installed and used."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "notes-for-budgetkit"
version = "1.0"

[project.entry-points."budgetkit.counters"]
vowels = "notes_for_budgetkit:count_vowels"
broken = "notes_for_budgetkit:nothing_of_that_name"

[project.entry-points."budgetkit.formats"]
notebook-chat = "notes_for_budgetkit:read_chat"

[project.entry-points."budgetkit.presets"]
notes = "notes_for_budgetkit:notes"
"""

PACKAGE = """
import budgetkit as bk


def count_vowels(text):
    return sum(letter in "aeiou" for letter in text)


def read_chat(document):
    if not isinstance(document, dict) or "exchanges" not in document:
        return None
    messages = []
    for question, answer in document["exchanges"]:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    return [{"messages": messages}]


def notes(window):
    sections = [bk.Allocation("system", 800, required=True), bk.Allocation("history")]
    return bk.Budget(window, [bk.Reserve("output", 1_000)], sections, name="notes", remainder="history")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a folder of its own, as pip does it."""
    source = tmp_path_factory.mktemp("source")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "notes_for_budgetkit.py").write_text(PACKAGE)
    target = tmp_path_factory.mktemp("site")
    options = [
        "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(target),
    ]  # fmt: skip
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    return target


def run(installed: Path, *lines: str, folder: Path | None = None) -> str:
    """Run lines of Python where the package is installed, and return what they print."""
    environment = {"PYTHONPATH": f"{CHECKOUT}:{installed}", "PATH": ""}
    program = "\n".join(["import budgetkit as bk", *lines])
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=folder or installed
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_counter_is_there_by_its_name(installed: Path) -> None:
    counted = run(
        installed,
        "counter = bk.counter('vowels')",
        "print(counter('Hello world'), counter.name, counter.exact)",
    )
    assert counted == "3 vowels False"
    assert (
        run(
            installed,
            "print(bk.load_trace('mixed-language').demand('vowels')['history'].iloc[-1] > 0)",
        )
        == "True"
    )


def test_a_format_is_read_like_any_other(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text(
        '{"exchanges": [["What is a token?", "A piece of a word."], ["And a window?", "All."]]}'
    )
    read = "trace = bk.load_trace('notes.json')"
    assert (
        run(installed, read, "print(len(trace.messages), trace.format)", folder=tmp_path)
        == "4 notebook-chat"
    )
    (tmp_path / "other.json").write_text('{"neither": 1}')
    refused = run(
        installed,
        "try: bk.load_trace('other.json')",
        "except ValueError as e: print(e)",
        folder=tmp_path,
    )
    assert "no conversation" in refused


def test_a_saved_trace_of_that_format_loads_again(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text(
        '{"exchanges": [["What is a token?", "A piece of a word."]]}'
    )
    lines = [
        "from budgetkit.trace import to_line",
        "open('saved.jsonl', 'w').write(to_line(bk.load_trace('notes.json')))",
        "print(bk.load_trace('saved.jsonl').messages == bk.load_trace('notes.json').messages)",
    ]
    assert run(installed, *lines, folder=tmp_path) == "True"


def test_a_preset_is_known_wherever_presets_are(installed: Path) -> None:
    budget = "print(bk.presets.preset('notes')(16_000).sizes, 'notes' in bk.presets.PRESETS)"
    assert run(installed, budget) == "{'output': 1000} True"


def test_a_plugin_that_cannot_be_loaded_is_named_and_nothing_else_is_hurt(installed: Path) -> None:
    refused = run(installed, "try: bk.counter('broken')", "except ValueError as e: print(e)")
    assert (
        "plug-in 'broken' of budgetkit.counters" in refused
        and "Update or uninstall its package" in refused
    )
    assert run(installed, "print(bk.counter('gpt-4o')('Hello world'))") == "2"


def test_nothing_of_a_plugin_is_imported_before_it_is_used(installed: Path) -> None:
    lines = [
        "import sys",
        "bk.counter('gpt-4o'); bk.presets.chat(8_192)",
        "print('notes_for_budgetkit' in sys.modules)",
    ]
    assert run(installed, *lines) == "False"
