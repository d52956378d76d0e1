"""The rules of the notebooks: what is stored is checked, each idea has a picture, and every solution is right.

nbval compares the stored numbers and small tables. Pictures are compared here, byte by byte, with those of a new run.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk

CHECKOUT = Path(__file__).parents[2]
NOTEBOOKS = sorted((CHECKOUT / "notebooks").glob("*.ipynb"))
FIRST = CHECKOUT / "notebooks" / "00-start.ipynb"
EXPECTED = ["00-start", "01-count-tokens", "02-budget-a-window", "03-fit-a-trace"]
MOST_CELLS = 25
LARGEST_PICTURE = 40_000  # bytes
PICTURED = "nbval-ignore-output"  # the tag of a cell with a stored picture
STILL = '<div class="tex2jax_ignore mathjax_ignore bk-still">'
DRAWN = ('class="dataframe"', 'class="tex2jax_ignore')  # by pandas, and by the values of this kit
LONGEST_OUTPUT = 30  # lines of a small table
LONGEST_CELL = 20  # lines; beyond that a notebook has become a program
SHOWS = re.compile(r"(\w+\.)?(figures\.\w+|\w+Explorer|DesignCard|App|display)")

Cell = dict[str, Any]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[Cell]:
    return [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]


def source(cell: Cell) -> str:
    """Give a cell's Python, without the lines that speak to IPython."""
    return "\n".join(
        line for line in "".join(cell["source"]).splitlines() if not line.startswith(("%", "!"))
    )


def tree(cell: Cell) -> ast.Module:
    return ast.parse(source(cell))


def test_the_first_notebooks_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS][:4] == EXPECTED


@each_notebook
def test_a_notebook_has_at_most_25_cells(path: Path) -> None:
    assert len(json.loads(path.read_text(encoding="utf-8"))["cells"]) <= MOST_CELLS


@each_notebook
def test_stored_outputs_are_numbers_small_tables_and_pictures(path: Path) -> None:
    for cell in code_cells(path):
        is_picture = PICTURED in cell["metadata"].get("tags", [])
        for output in cell["outputs"]:
            kinds = output.get("data", {"text/plain": output.get("text", "")})
            if is_picture:
                assert len(kinds) == 1, source(cell)
                (picture,) = kinds.values()
                assert "".join(picture).startswith(("<svg ", STILL)), source(cell)
                assert len("".join(picture).encode()) <= LARGEST_PICTURE, source(cell)
                continue
            assert output["output_type"] in {"execute_result", "stream"}, source(cell)
            assert output.get("name", "stdout") == "stdout", source(cell)
            assert set(kinds) <= {"text/plain", "text/html"}, source(cell)
            assert len("".join(kinds["text/plain"]).splitlines()) <= LONGEST_OUTPUT, source(cell)


@each_notebook
def test_no_sum_of_money_is_taken_for_a_formula(path: Path) -> None:
    """JupyterLab sets the text between two dollar signs as a formula, unless they are escaped."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = [source(cell) for cell in cells if cell["cell_type"] == "markdown"]
    assert not [text for text in texts if re.search(r"(?<!\\)\$", text)]


@each_notebook
def test_no_cell_shows_a_bare_tuple(path: Path) -> None:
    """A tuple has to be decoded in the text below; a small table has labels."""
    for cell in code_cells(path):
        last = tree(cell).body[-1]
        assert not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Tuple)), source(cell)


@each_notebook
def test_a_notebook_imports_nothing_of_the_kit_but_its_public_names(path: Path) -> None:
    for cell in code_cells(path):
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("budgetkit"), source(cell)
            if isinstance(node, ast.Import) and "budgetkit" in ast.unparse(node):
                assert ast.unparse(node) == "import budgetkit as bk"


@each_notebook
def test_html_is_stored_only_for_tables_and_stills(path: Path) -> None:
    for cell in code_cells(path):
        for output in cell["outputs"]:
            if html := "".join(output.get("data", {}).get("text/html", "")):
                assert any(mark in html for mark in DRAWN), source(cell)
                assert "<script" not in html, source(cell)


@each_notebook
def test_a_cell_has_a_number_of_execution_just_when_it_has_an_output(path: Path) -> None:
    for cell in code_cells(path):
        assert bool(cell["outputs"]) == (cell["execution_count"] is not None), source(cell)


@each_notebook
def test_something_is_stored_and_so_checked(path: Path) -> None:
    assert any(cell["outputs"] for cell in code_cells(path))


@each_notebook
def test_no_state_of_a_widget_is_saved(path: Path) -> None:
    assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]


@each_notebook
def test_no_cell_has_become_a_program(path: Path) -> None:
    for cell in code_cells(path):
        assert len(source(cell).splitlines()) <= LONGEST_CELL, source(cell)
        for node in ast.walk(tree(cell)):
            assert not isinstance(
                node, ast.ClassDef | ast.Global | ast.Nonlocal | ast.AsyncFunctionDef
            ), source(cell)
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 3, source(cell)


@each_notebook
def test_a_figure_or_explorer_is_stored_with_its_picture(path: Path) -> None:
    figures: set[str] = set()
    for cell in code_cells(path):
        figures |= names_of_figures(tree(cell))
        if shows_a_figure(tree(cell), figures):
            assert PICTURED in cell["metadata"].get("tags", []), source(cell)


@each_notebook
def test_a_sentence_stands_before_and_after_each_picture(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for before, cell, after in zip(cells, cells[1:], [*cells[2:], None], strict=False):
        if PICTURED in cell["metadata"].get("tags", []):
            assert before["cell_type"] == "markdown", source(cell)
            assert after is not None and after["cell_type"] == "markdown", source(cell)


@pytest.mark.slow
@each_notebook
def test_stored_outputs_and_solutions_are_those_of_a_new_run(path: Path, tmp_path: Path) -> None:
    """The solutions run after the last cell; each prints its last value, and the text below it is compared."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    folds = solutions(path)
    assert len(folds) >= 2
    for number, (code, _) in enumerate(folds):
        *lines, last = ast.parse(code).body
        assert isinstance(last, ast.Expr), code
        shown = (
            f"value = {ast.unparse(last)}\nprint(value if isinstance(value, str) else repr(value))"
        )
        written = "\n".join([*map(ast.unparse, lines), shown])
        notebook["cells"].append(stored(written, None) | {"id": f"solution-{number}"})
    copied = tmp_path / path.name
    copied.write_text(json.dumps(notebook), encoding="utf-8")
    # Of a slow solution the time limit of a test decides, as of any other code.
    program = "import sys, pathlib; from scripts import store_notebooks as script; script.SECONDS = None; "
    program += "script.store(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(copied)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)
    assert run.returncode == 0, run.stderr
    again = json.loads(copied.read_text(encoding="utf-8"))
    solved = again["cells"][-len(folds) :]
    del again["cells"][-len(folds) :]
    assert again == json.loads(path.read_text(encoding="utf-8"))
    for cell, (code, output) in zip(solved, folds, strict=True):
        assert (
            "".join("".join(each["text"]) for each in cell["outputs"]).strip() == output.strip()
        ), code


def solutions(path: Path) -> list[tuple[str, str]]:
    """Return the code of each folded solution, and the output that stands below it."""
    text = "\n".join(
        "".join(cell["source"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "markdown"
    )
    return [
        (code, output)
        for fold in re.findall(r"<details><summary>Solution</summary>(.*?)</details>", text, re.S)
        for code, output in re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", fold, re.S)
    ]


def names_of_figures(cell: ast.Module) -> set[str]:
    """Find the variables that a cell assigns a figure or a widget to."""
    return {
        ast.unparse(target)
        for node in cell.body
        if isinstance(node, ast.Assign) and makes_a_figure(node.value)
        for target in node.targets
    }


def makes_a_figure(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and SHOWS.fullmatch(ast.unparse(node.func)) is not None


def shows_a_figure(cell: ast.Module, figures: set[str]) -> bool:
    last = cell.body[-1] if cell.body else None
    return isinstance(last, ast.Expr) and (
        makes_a_figure(last.value) or ast.unparse(last.value) in figures
    )


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["bk.figures.window(plan)"], True),
        (["figure = figures.window(plan)", "figure"], True),
        (["explorer = bk.BudgetExplorer(budget)\nexplorer"], True),
        (["explorer = bk.BudgetExplorer(budget)", "explorer.plan.used"], False),
        (["plan.frame()"], False),
    ],
)
def test_the_rule_knows_a_figure_when_it_sees_one(cells: list[str], shown: bool) -> None:
    trees = list(map(ast.parse, cells))
    figures = set[str]().union(*map(names_of_figures, trees))
    assert shows_a_figure(trees[-1], figures) is shown


def test_the_first_notebook_begins_with_one_short_text_and_the_explorer() -> None:
    text, cell = json.loads(FIRST.read_text(encoding="utf-8"))["cells"][:2]
    assert len("".join(text["source"]).split()) < 40
    assert len([*filter(None, source(cell).splitlines())]) == 2
    assert ast.unparse(tree(cell).body[-1]).startswith("bk.DesignCard(")


def test_the_first_notebook_asks_six_questions_each_with_its_picture() -> None:
    """On 0.2.0 it had the explorer alone, and nobody said what its words mean."""
    cells = json.loads(FIRST.read_text(encoding="utf-8"))["cells"]
    questions = [
        heading
        for cell in cells
        for heading in re.findall(r"^## \d\. (.+\?)$", "".join(cell["source"]), re.M)
    ]
    assert len(questions) == 6
    assert "shared pool" in questions[2] and "Chinese" in questions[4]
    pictures = [cell for cell in code_cells(FIRST) if shows_a_figure(tree(cell), set())]
    assert len(pictures) == 8


def test_the_numbers_in_the_first_notebook_are_those_of_the_kit() -> None:
    budget = bk.presets.chat(8_192)
    chat = bk.load_trace("mixed-language")
    cheap, exact = (
        chat.items(19, bk.counter(name), budget.roles) for name in ("chars/4", "gpt-5.4")
    )
    filled = bk.figures.overrun.table(bk.fit(budget, cheap), exact)
    turns = bk.figures.turns.table(budget, chat.demand("gpt-5.4", roles=budget.roles))
    numbers = [budget.usable, budget.shared_pool, *filled[["counted", "actual"]].sum()]
    numbers += [turns["demand"].iloc[-1], turns.query("cut > 0")["turn"].min()]
    assert numbers == [6_964, 1_640, 1_608, 2_628, 6_437, 11]
    text = FIRST.read_text(encoding="utf-8")
    assert all(re.search(rf"\b{number:,}\b", text) for number in numbers)


def test_the_explorer_says_first_how_to_run_it() -> None:
    first = json.loads(FIRST.read_text(encoding="utf-8"))["cells"][0]
    assert first["cell_type"] == "markdown"
    assert "Run > Run All Cells" in "".join(first["source"])


def stored(text: str, output: str | None) -> Cell:
    """Write a code cell, with the number it is said to give or with nothing stored."""
    cell = {"cell_type": "code", "id": "cell", "metadata": {}, "source": text}
    if output is None:
        return cell | {"outputs": [], "execution_count": None}
    result = {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": output}}
    return cell | {"outputs": [result | {"execution_count": 1}], "execution_count": 1}


def run_notebooks(folder: Path, **notebooks: Cell) -> dict[str, str]:
    """Run notebooks of one cell each as `make test` runs the project's; give the outcome of each."""
    for name, cell in notebooks.items():
        document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
        (folder / f"{name}.ipynb").write_text(json.dumps(document))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(CHECKOUT / "pyproject.toml"),
        "-rA",
        "--no-header",
    ]
    run = subprocess.run([*command, str(folder)], capture_output=True, text=True, cwd=CHECKOUT)
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S*?(\w+)\.ipynb::", run.stdout, re.MULTILINE)
    assert {name for _, name in found} == notebooks.keys(), run.stdout + run.stderr
    return {name: outcome for outcome, name in found}


def test_a_stored_number_edited_by_hand_makes_the_run_fail(tmp_path: Path) -> None:
    count = 'import budgetkit\nbudgetkit.counter("chars/4")("Hello world")'
    assert run_notebooks(
        tmp_path,
        true=stored(count, "2"),
        edited=stored(count, "3"),
        unstored=stored("object()", None),
        broken=stored("1 / 0", None),
    ) == {"true": "PASSED", "edited": "FAILED", "unstored": "PASSED", "broken": "FAILED"}
