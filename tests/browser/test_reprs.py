"""A value at the end of a cell, in JupyterLab: a bar and a table, in which no name becomes markup or a formula."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Notebook
from tests.browser.explored import written

FORMULA = "$\\href{https://example.org}{x}$ <img src=x>"


def test_names_are_seen_as_they_are_beside_a_formula_that_is_set(
    notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    """MathJax is at work on the page, and leaves these alone."""
    cells = (
        "from IPython.display import HTML\nimport budgetkit as bk",
        f"name = {FORMULA!r}\nbudget = bk.Budget(900, (), [bk.Allocation(name, 500)], name=name)\nbudget",
        "bk.allocate(budget, {name: 700})",
        f"HTML({FORMULA.partition(' ')[0]!r})",
    )
    lab = notebook(written(tmp_path, *cells))
    lab.run_all()
    lab.page.locator("mjx-container").first.wait_for()
    assert lab.page.locator("mjx-container").count() == 1
    shown = lab.page.locator(".jp-OutputArea .mathjax_ignore")
    expect(shown.first).to_contain_text(FORMULA)
    assert shown.locator("img, a, script").count() == 0
    assert shown.locator("[title]").first.bounding_box()["width"] > 100  # type: ignore[index]
    lab.shoot("reprs")
