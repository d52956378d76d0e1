"""Run notebooks and store in them what nbval is to compare: numbers and small tables, nothing else.

    python scripts/store_notebooks.py notebooks/01-count-tokens.ipynb ...

A cell keeps its outputs when each is plain text, or a table that pandas or this kit drew, and no longer than a page. A
figure, a widget and a cell tagged "unstored" (what it shows differs from run to run) keep none, and no number of
execution either, so that nbval runs them and compares nothing. Running it again changes no byte.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

os.environ["BUDGETKIT_TODAY"] = "2026-11-26"  # as their tests do
LONGEST = 30  # lines
SECONDS = 120
DRAWN = ('class="dataframe"', 'class="tex2jax_ignore')  # a table of pandas, and a value of this kit
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def store(path: Path) -> None:
    """Run one notebook where it stands and write it back."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    notebook.metadata = nbformat.from_dict(KERNEL)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code" and (
            "unstored" in tags or not all(map(is_comparable, cell.outputs))
        ):
            cell.outputs = []
        if cell.cell_type == "code" and not cell.outputs:
            cell.execution_count = None
    nbformat.write(notebook, path)


def is_comparable(output: dict[str, Any]) -> bool:
    """Tell whether an output is text or a small table, the same in every run."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    is_said = output["output_type"] == "execute_result" or output.get("name") == "stdout"
    html = data.get("text/html", DRAWN[0])
    is_table = any(mark in html for mark in DRAWN)
    text = data.get("text/plain", "")
    is_same = " at 0x" not in text and len(text.splitlines()) <= LONGEST
    return is_said and is_table and is_same and set(data) <= {"text/plain", "text/html"}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        store(Path(name))
