"""The fixture itself: without it no other browser test means anything."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Notebook

CELLS = """
import ipywidgets
slider = ipywidgets.IntSlider(value=500, max=1_000, description="Output reserve")
told = ipywidgets.Label()
slider.observe(lambda change: setattr(told, "value", f"usable {1_000 - change.new}"), "value")
ipywidgets.VBox([slider, told])
"""


@pytest.fixture
def slider_notebook(tmp_path: Path) -> Path:
    cell = {"cell_type": "code", "id": "slider", "metadata": {}, "source": CELLS.strip()}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
    path = tmp_path / "slider.ipynb"
    path.write_text(
        json.dumps(document | {"cells": [cell | {"outputs": [], "execution_count": None}]})
    )
    return path


def test_a_slider_moved_by_keyboard_reaches_the_kernel_and_comes_back(
    notebook: Callable[..., Notebook], slider_notebook: Path
) -> None:
    lab = notebook(slider_notebook)
    lab.run_all()
    handle = lab.page.locator(".noUi-handle")
    handle.focus()
    handle.press("ArrowRight")
    lab.page.get_by_text("usable 499").wait_for()
    assert lab.page.locator(".widget-readout").inner_text() == "501"


def test_the_theme_follows_and_axe_finds_the_nameless_handle_of_ipywidgets(
    notebook: Callable[..., Notebook], slider_notebook: Path
) -> None:
    lab = notebook(slider_notebook)
    lab.run_all()
    lab.set_theme("dark")
    assert lab.page.evaluate("document.body.dataset.jpThemeLight") == "false"
    assert any(
        line.startswith("aria-input-field-name") for line in lab.violations(".jp-OutputArea-output")
    )
