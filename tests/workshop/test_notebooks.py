"""The notebooks' rule: what is stored is what is checked, and nbval checks exactly that.

An output is kept only where it is a number or a small table; all other cells keep none, run all the same, and
a cell that shows a figure or a widget is followed by a stored number that says what it shows.
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
EXPECTED = ["00-start", "01-count-tokens", "02-budget-a-window", "03-fit-a-trace", "04-explore"]
DRAWN = ('class="dataframe"', 'class="tex2jax_ignore')  # by pandas, and by the values of this kit
LONGEST_OUTPUT = 30  # lines of a small table
LONGEST_CELL = 20  # lines; beyond that a notebook has become a program
SHOWS = re.compile(r"(\w+\.)?(figures\.\w+|\w+Explorer|DesignCard|App|display)")

Cell = dict[str, Any]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# What the first notebook stored would stand above the explorer's end, and Run All would scroll away from it.
each_that_stores = pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path != FIRST], ids=lambda path: path.stem
)


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
    assert [path.stem for path in NOTEBOOKS][:5] == EXPECTED


@each_notebook
def test_what_is_stored_is_a_number_or_a_small_table(path: Path) -> None:
    for cell in code_cells(path):
        for output in cell["outputs"]:
            assert output["output_type"] in {"execute_result", "stream"}, source(cell)
            assert output.get("name", "stdout") == "stdout", source(cell)
            kinds = set(output.get("data", {"text/plain": ""}))
            assert kinds in ({"text/plain"}, {"text/plain", "text/html"}), source(cell)
            text = "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            assert len(text.splitlines()) <= LONGEST_OUTPUT, source(cell)


@each_notebook
def test_html_is_stored_only_as_the_twin_of_a_table(path: Path) -> None:
    for cell in code_cells(path):
        for output in cell["outputs"]:
            if html := "".join(output.get("data", {}).get("text/html", "")):
                assert any(mark in html for mark in DRAWN), source(cell)
                assert "<script" not in html, source(cell)


@each_notebook
def test_a_cell_has_a_number_of_execution_just_when_it_has_an_output(path: Path) -> None:
    for cell in code_cells(path):
        assert bool(cell["outputs"]) == (cell["execution_count"] is not None), source(cell)


@each_that_stores
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


@each_that_stores
def test_a_figure_or_widget_is_followed_by_a_stored_number(path: Path) -> None:
    cells = code_cells(path)
    figures: set[str] = set()
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        figures |= names_of_figures(tree(cell))
        if shows_a_figure(tree(cell), figures):
            assert following is not None, f"nothing follows: {source(cell)}"
            assert following["outputs"], f"no stored number follows: {source(cell)}"


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


def test_the_first_notebook_teaches_five_ideas_each_with_its_picture() -> None:
    """On 0.2.0 it had the explorer alone, and nobody said what its words mean."""
    cells = json.loads(FIRST.read_text(encoding="utf-8"))["cells"][2:]
    texts = ["".join(cell["source"]) for cell in cells[::2]]
    ideas = ["The window", "Claims", "The shared pool", "The history", "A wrong count"]
    assert [re.match(r"\*\*(.+?)\.?\*\*", text)[1] for text in texts] == ideas  # type: ignore[index]
    for picture in cells[1::2]:
        assert len(source(picture).splitlines()) <= 2
        assert shows_a_figure(tree(picture), set()), source(picture)


def test_the_number_that_the_first_notebook_names_is_what_its_picture_shows() -> None:
    budget = bk.presets.chat(8_192)
    exact, rough = (
        bk.load_trace("mixed-language").demand(bk.counter(name), roles=budget.roles)
        for name in ("gpt-4o", "chars/4")
    )
    row = bk.figures.counter_error.table(budget, exact, rough).iloc[-1]
    first = bk.figures.turns.table(budget, exact).query("cut > 0")["turn"].min()
    assert (row["turn"], row["error"], row["shift"], first) == (35, -1_724, 0, 11)


@pytest.mark.parametrize("name", ["00-start", "04-explore"])
def test_the_explorer_says_first_how_to_run_it(name: str) -> None:
    first = json.loads((CHECKOUT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ][0]
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
