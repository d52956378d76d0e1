"""What tests of every explorer do on its page: write a notebook, wait until it is drawn, read a key figure."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Notebook


def written(folder: Path, *cells: str) -> Path:
    """Write a notebook of these cells."""
    code: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "source": cell,
            "outputs": [],
            "execution_count": None,
        }
        for i, cell in enumerate((f"import budgetkit as bk\n{cells[0]}", *cells[1:]))
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / "own.ipynb"
    path.write_text(
        json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


def explored(notebook: Notebook) -> Notebook:
    """Run all cells, and wait until every chart is drawn."""
    notebook.run_all()
    notebook.wait_for_charts()
    return notebook


def show(page: Page) -> None:
    """Bring the explorer into sight: JupyterLab draws a cell's output when it is scrolled to."""
    page.evaluate("""() => {
        const notebook = jupyterapp.shell.currentWidget.content;
        const at = notebook.widgets.findIndex(cell => /^explorer = bk\\./m.test(cell.model.sharedModel.getSource()));
        notebook.activeCellIndex = at;
        return notebook.scrollToItem(at, "start");
    }""")
    page.locator(".bk-kpis").scroll_into_view_if_needed()


def expect_kpi(page: Page, key: str, value: str) -> None:
    expect(page.locator(f".bk-kpi[data-key={key}] b")).to_have_text(value)


def handle(page: Page, key: str) -> Locator:
    return page.locator(f".bk-handle[data-key='{key}']")
