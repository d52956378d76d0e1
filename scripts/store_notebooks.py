"""Run notebooks and store the outputs that nbval compares, and static pictures of figures and explorers.

    python scripts/store_notebooks.py notebooks/01-count-tokens.ipynb ...

Text and tables of at most 30 lines are stored and compared. Of a figure its SVG is stored, and of an explorer its HTML
still, at most 40 kB each; the cell is tagged so that nbval runs it without comparing. A cell tagged "unstored", whose
output differs from run to run, stores nothing. Running it again changes no byte. With notebook 00 the picture of its
card in README and the documentation is taken anew, in a real JupyterLab.
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
LARGEST = 40_000  # bytes of a picture
PICTURES = {"image/svg+xml": "<svg", "text/html": 'bk-still"'}  # of a figure, and of an explorer
PICTURED = "nbval-ignore-output"
SECONDS = 120
DRAWN = ('class="dataframe"', 'class="tex2jax_ignore')  # a table of pandas, and a value of this kit
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def store(path: Path) -> None:
    """Run one notebook where it stands and write it back."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=SECONDS,
        coalesce_streams=True,  # as one output, whenever its lines were printed
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook.metadata = nbformat.from_dict(KERNEL)
    for cell in notebook.cells:
        tags = [tag for tag in cell.metadata.get("tags", []) if tag != PICTURED]
        if cell.cell_type == "code":
            pictures = [drawn for output in cell.outputs if (drawn := picture(output))]
            if pictures:
                cell.outputs = pictures
                tags.append(PICTURED)
            elif "unstored" in tags or not all(map(is_comparable, cell.outputs)):
                cell.outputs = []
            if not cell.outputs:
                cell.execution_count = None
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    nbformat.write(notebook, path)


def picture(output: dict[str, Any]) -> dict[str, Any] | None:
    """Return a figure's SVG or an explorer's still as an output, if it is small enough."""
    data = output.get("data", {})
    for kind, mark in PICTURES.items():
        text = data.get(kind, "")
        if mark in text and 0 < len(text.encode()) <= LARGEST:
            return nbformat.v4.new_output("display_data", {kind: text}, metadata={})
    return None


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
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    for path in paths:
        store(path)
    checkout = Path(__file__).resolve().parents[1]
    if checkout / "notebooks" / "00-start.ipynb" in paths:
        from shoot_explorer import SHOTS, shoot

        shoot(checkout / "docs" / "images", list(SHOTS))
