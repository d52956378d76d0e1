"""The tool that stores notebooks keeps what nbval can compare, and drops the rest."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "store_notebooks.py"
CELLS = {
    "number": "6 * 7",
    "said": "print('hello')",
    "slow": "import time\nprint('first', flush=True)\ntime.sleep(1)\nprint('last')",
    "table": "import pandas as pd\npd.DataFrame({'tokens': [1, 2]})",
    "html": "from IPython.display import HTML\nHTML('<b>not a table</b>')",
    "figure": "import budgetkit as bk\nbk.figures.window(bk.presets.chat(8_192))",
    "address": "object()",
    "long": "print('line\\n' * 31)",
    "warned": "import sys\nprint('careful', file=sys.stderr)",
    "tagged": "1 + 1",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with a cell of each kind, run and stored."""
    path = tmp_path_factory.mktemp("notebooks") / "kinds.ipynb"
    common: dict[str, Any] = {"cell_type": "code", "outputs": [], "execution_count": None}
    written = [
        common | {"id": name, "source": source, "metadata": {}} for name, source in CELLS.items()
    ]
    written[-1]["metadata"] = {"tags": ["unstored"]}
    metadata: dict[str, Any] = {"widgets": {"state": {}}}
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": written})
    )
    store(path)
    return path


def store(path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def cells(path: Path) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}


def test_numbers_texts_and_small_tables_are_stored(notebook: Path) -> None:
    stored = {name for name, cell in cells(notebook).items() if cell["outputs"]}
    assert stored == {"number", "said", "slow", "table", "figure"}


def test_lines_printed_at_different_times_are_one_output(notebook: Path) -> None:
    """A cell that printed between two computations was stored as one output or as two, from run to run."""
    (output,) = cells(notebook)["slow"]["outputs"]
    assert "".join(output["text"]) == "first\nlast\n"


def test_of_a_figure_only_its_picture_is_stored_and_nbval_ignores_it(notebook: Path) -> None:
    cell = cells(notebook)["figure"]
    assert cell["metadata"]["tags"] == ["nbval-ignore-output"]
    assert [list(output["data"]) for output in cell["outputs"]] == [["image/svg+xml"]]


def test_a_number_of_execution_goes_with_an_output_only(notebook: Path) -> None:
    for name, cell in cells(notebook).items():
        assert (cell["execution_count"] is None) == (not cell["outputs"]), name


def test_widgets_and_times_leave_no_trace(notebook: Path) -> None:
    assert list(json.loads(notebook.read_text(encoding="utf-8"))["metadata"]) == ["kernelspec"]
    assert all(set(cell["metadata"]) <= {"tags"} for cell in cells(notebook).values())


def test_storing_again_changes_no_byte(notebook: Path) -> None:
    before = notebook.read_bytes()
    store(notebook)
    assert notebook.read_bytes() == before
