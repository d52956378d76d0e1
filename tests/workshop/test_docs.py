"""The tables of the documents agree with the code, and their links lead somewhere."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import budgetkit as bk
from budgetkit import presets
from budgetkit.extras.shell.program import COMMANDS, run
from budgetkit.models import DEFAULT_MODEL, models, resolve
from budgetkit.state import to_yaml

CHECKOUT = Path(__file__).parents[2]
DIFFERENCES = CHECKOUT / "docs" / "differences.md"
ADR_0039 = CHECKOUT / "docs" / "adr" / "0039-token-budget-allocation-strategy.md"
ADRS = sorted((CHECKOUT / "docs" / "adr").glob("[0-9]*.md"))
WRITTEN_BY_THE_BUILD = {
    CHECKOUT / "docs" / "images" / "layers.svg",
    CHECKOUT / "docs" / "reference.rst",
}
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def rows(page: Path, first: str) -> list[list[str]]:
    """Give the cells of the table whose first heading is so named, without their backticks."""
    text = page.read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| `?{first}`? \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in table.splitlines()]


def tokens(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_the_presets_are_as_the_differences_say() -> None:
    said = rows(DIFFERENCES, "preset")
    assert {row[0] for row in said} == presets.PRESETS.keys()
    for name, _, *fields in said:
        budget = presets.PRESETS[name](8_192)
        assert fields == [
            budget.order,
            budget.deficit,
            budget.undeclared,
            budget.remainder or "none",
        ], name


def test_the_framings_are_as_the_differences_say() -> None:
    hello = [{"role": "user", "content": "Hello world"}]
    for name, per_message, role, priming, counter, total in rows(DIFFERENCES, "FRAMINGS"):
        framing = bk.requests.FRAMINGS[name]
        assert tokens(per_message) == framing.per_message, name
        assert role == ("yes" if framing.count_role else "no"), name
        assert tokens(priming) == framing.priming, name
        assert counter == framing.counter, name
        assert tokens(total) == framing.request(hello, bk.counter(counter)), name


def row_of_adr_0039() -> Callable[[str], tuple[int, int, int, int]]:
    """Run the code that stands in ADR-0039."""
    (code,) = re.findall(
        r"^```python\n(.*?)^```", ADR_0039.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Callable[[str], tuple[int, int, int, int]]] = {}
    exec(code, names)
    return names["row"]


def test_adr_0039_computes_its_table() -> None:
    compute = row_of_adr_0039()
    said = rows(ADR_0039, "model")
    assert len(said) == 10
    for name, *numbers, _ in said:
        assert tuple(map(tokens, numbers)) == compute(name), name


def test_adr_0039_says_by_how_much_the_document_departs_from_its_formula() -> None:
    compute, text = row_of_adr_0039(), ADR_0039.read_text(encoding="utf-8")
    large, small = compute("gpt-4o")[-1], compute("gpt-3.5-turbo")[-1]
    assert (large, small) == (117_501, 13_106)
    assert f"leaves {large:,} tokens, {large - 80_000:,} more" in text
    assert f"it leaves {small:,}, not about 8,000" in text


def test_adr_0039_quotes_the_errors_that_notebook_01_measures() -> None:
    cells = json.loads(
        (CHECKOUT / "notebooks" / "01-count-tokens.ipynb").read_text(encoding="utf-8")
    )["cells"]
    outputs = [
        output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]
    ]
    printed = "\n".join("".join(output.get("data", {}).get("text/plain", "")) for output in outputs)
    text = ADR_0039.read_text(encoding="utf-8")
    for row, quoted in {
        "English": "English prose {} % too many",
        "Python": "Python {} % too many",
        "JSON": "JSON {} %",
        "an id": "an id {} %",
        "Chinese": "Chinese {} % too few",
    }.items():
        (error,) = re.findall(rf"^{row} .* (-?\d+)$", printed, re.MULTILINE)
        assert quoted.format(error.lstrip("-")) in text, row


@pytest.mark.parametrize("page", ADRS, ids=lambda path: path.stem)
def test_a_record_gives_context_decision_and_consequence(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    expected = ["Context", "Decision", "Consequence"]
    assert [h for h in headings if h in ("Context", "Decision", "Consequence")] == expected
    assert f"({page.name})" in (page.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "SECURITY.md", *PAGES],
    ids=lambda path: path.stem,
)
def test_a_file_of_ours_that_a_page_names_is_there(page: Path) -> None:
    """Replaced records name the modules of their time; every other page names files that exist."""
    text = page.read_text(encoding="utf-8")
    if "Replaced by [" in text:
        return
    paths = re.findall(r"`((?:[a-z_]+/)+[\w.-]*)`", text)
    roots = [CHECKOUT, CHECKOUT / "budgetkit", *(CHECKOUT / "budgetkit").iterdir()]
    folders = {path.split("/")[0] for path in paths} & {
        child.name for root in roots if root.is_dir() for child in root.iterdir()
    }
    named = [
        path for path in paths if path.split("/")[0] in folders and not path.endswith("_build")
    ]
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Files that the build writes are checked in test_pages."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        written = page.parent / target in WRITTEN_BY_THE_BUILD
        assert target.startswith("https://") or written or (page.parent / target).exists(), target


def test_examples_and_notebooks_use_models_that_had_not_ended_when_the_table_was_read() -> None:
    """Code to copy names living models; tables of facts name models of any age."""
    ended = {known.name for known in models() if known.ends and known.ends <= known.date}
    ends = resolve(DEFAULT_MODEL).ends
    assert not ends or ends > "2027-12-31"
    assert "gpt-4" in ended
    code = {
        path: re.findall(
            r"^(?:>>>|\.\.\.) .*$|^ {4}\S.*$", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        for path in PAGES
        if path.parent.name in ("how-to", CHECKOUT.name)
    }
    for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code[path] = [
            line for cell in cells if cell["cell_type"] == "code" for line in cell["source"]
        ]
    used = {
        path.name: set(re.findall(r'"([\w.-]+)"', "\n".join(lines))) & ended
        for path, lines in code.items()
    }
    assert {name: found for name, found in used.items() if found} == {}


@pytest.mark.parametrize(("page", "extra"), [("share", "lab"), ("notebook-to-production", "lab")])
def test_a_page_that_needs_an_extra_says_how_to_install_it(page: str, extra: str) -> None:
    """These pages named none in 0.2.0."""
    text = (CHECKOUT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    assert f'pip install "budgetkit[{extra}]"' in text.split("```")[0], "before its first code"


PAGES_FOR_USERS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs" / "how-to").glob("*.md"))]
TEXTS = [page.read_text(encoding="utf-8") for page in PAGES_FOR_USERS]
BLOCKS = re.findall(r"^```.*?\n(.*?)^```$", "\n".join(TEXTS), re.DOTALL | re.MULTILINE)
LINES = re.findall(r"^budgetkit (.*?)(?:  +#.*)?$", "\n".join(BLOCKS), re.MULTILINE)
# --ask needs a network; explore opens a server, which test_packaging tries.
OFFLINE = [line for line in LINES if "--ask" not in line and not line.startswith("explore")]
CHAT = '{"messages": [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Here."}]}\n'


@pytest.mark.parametrize("line", OFFLINE)
def test_a_line_for_the_shell_runs_on_files_of_the_names_it_has(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own configuration closed the gate of its own line, for the smallest conversations."""
    monkeypatch.chdir(tmp_path)
    own_preset = (CHECKOUT / "docs" / "how-to" / "own-preset.md").read_text(encoding="utf-8")
    (configuration,) = re.findall(r"^```yaml\n(.*?)^```", own_preset, re.DOTALL | re.MULTILINE)
    Path("context.yaml").write_text(configuration, encoding="utf-8")
    Path("my-budget.yaml").write_text(to_yaml(bk.presets.chat(8_192)), encoding="utf-8")
    for name in ("chat.json", "chat.jsonl", "chats.jsonl"):
        Path(name).write_text(CHAT, encoding="utf-8")

    # `explore` does all but start its server, which would run until it is stopped.
    monkeypatch.setenv("JUPYTER_PATH", "")
    launches: list[list[str]] = []
    monkeypatch.setattr("budgetkit.lab.app.serving.GuardedVoila.launch_instance", launches.append)

    assert run(shlex.split(line)) == 0
    assert len(launches) == line.startswith("explore ")


def test_a_command_or_an_extra_that_a_page_names_is_there() -> None:
    commands = re.findall(r"`budgetkit (\w+)", "\n".join(TEXTS))
    assert len(commands) >= 3
    assert {*commands} - {*COMMANDS} == set()
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        extra
        for names in re.findall(r"(?:budgetkit|-e \"\.)\[([\w,-]+)\]", "\n".join(TEXTS))
        for extra in names.split(",")
    }
    assert len(extras) > 3
    assert extras - {*project["optional-dependencies"]} == set()
