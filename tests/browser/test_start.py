"""The way in: the first notebook, as `make lab` opens it and as it stands after Run All Cells."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import (
    CHECKOUT,
    Notebook,
    Server,
    end,
    lab_command,
    lab_environment,
    listening,
    opened_tab,
)
from tests.browser.explored import written
from tests.browser.states import ALL_HAVE_RUN

FIRST = "00-start.ipynb"
SIZES = pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
#: What stands in the first screen, whole, and of the controls their beginning.
IN_SIGHT = (".bk-headline", ".bk-kpis", ".bk-status", ".bk-bar")


def fresh() -> bytes:
    """Return the first notebook without its stored outputs: a cell that has a number has run."""
    notebook = json.loads((CHECKOUT / "notebooks" / FIRST).read_bytes())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(notebook).encode()


def expect_in_sight(page: Page) -> None:
    for part in IN_SIGHT:
        expect(page.locator(part)).to_be_in_viewport(ratio=1)


@SIZES
def test_after_run_all_the_explorer_stands_in_sight(
    notebook: Callable[..., Notebook], width: int, height: int
) -> None:
    first = notebook(FIRST)
    first.resize(width, height)
    first.run_all()
    expect_in_sight(first.page)
    expect(first.page.locator(".jp-Notebook .jp-CodeCell").first).to_contain_text("DesignCard")
    assert first.page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollTop") == 0


@pytest.fixture(scope="module")
def served(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the notebooks with what the Makefile's target adds to the command."""
    home = tmp_path_factory.mktemp("made")
    root = home / "root"
    (root / "notebooks").mkdir(parents=True)
    (root / "notebooks" / "other.ipynb").write_bytes(fresh())
    recipe = re.search(
        r"-m jupyterlab (.*?)\$\(ROOT_USER\)", (CHECKOUT / "Makefile").read_text(), re.DOTALL
    )
    assert recipe is not None
    added = [
        word
        for word in shlex.split(recipe[1].replace("\\\n", " "))
        if "extra_labextensions_path" in word
    ]
    assert len(added) == 1
    command = [*lab_command(root), *added]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            command, env=lab_environment(home), stdout=log, stderr=log, cwd=CHECKOUT
        )
    try:
        yield listening(process, home, root)
    finally:
        end(process)


@pytest.fixture
def made_lab(served: Server) -> Server:
    """Serve the first notebook as it is shipped; it is saved once it has run."""
    (served.root / "notebooks" / FIRST).write_bytes((CHECKOUT / "notebooks" / FIRST).read_bytes())
    return served


@SIZES
def test_make_lab_ends_with_a_living_explorer(
    made_lab: Server, chromium: Browser, width: int, height: int
) -> None:
    with opened_tab(chromium, made_lab) as page:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{made_lab.address}lab/tree/notebooks/{FIRST}?token={made_lab.token}&reset")
        expect_in_sight(page)
        page.locator(".bk-handle[data-key=conversation]").press("ArrowRight")
        expect(page.locator(".bk-kpi[data-key=remainder] b")).to_have_text("1,658")
        page.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")


def test_a_page_that_is_reloaded_goes_on_where_it_was_whether_it_was_saved_or_not(
    made_lab: Server, chromium: Browser
) -> None:
    """On 0.1.0 a reload before the first save ran the cell while the widgets came back, and no cell ran ever after."""
    path = made_lab.root / "notebooks" / FIRST
    unsaved = path.read_bytes()
    address = f"{made_lab.address}lab/tree/notebooks/{FIRST}?token={made_lab.token}&reset"
    with opened_tab(chromium, made_lab) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        with page.expect_response(
            lambda answer: answer.request.method == "PUT" and FIRST in answer.url
        ):
            page.goto(address)
        budget = page.locator(".bk-kpi[data-key=remainder] b")
        page.locator(".bk-handle[data-key=conversation]").press("ArrowRight")
        expect(budget).to_have_text("1,658")
        page.reload()
        expect(budget).to_have_text("1,658")
        page.goto("about:blank")
        path.write_bytes(unsaved)
        page.goto(address)
        expect(budget).to_have_text("1,638")
        page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        page.wait_for_function(ALL_HAVE_RUN)
        expect(budget).to_have_text("1,638")
        page.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")


WAS_RUN = """name => {
    const panel = [...jupyterapp.shell.widgets("main")].find(panel => panel.context?.path === `notebooks/${name}`);
    return [...panel.content.model.cells].some(cell => cell.executionCount);
}"""


def test_no_other_notebook_is_run(made_lab: Server, chromium: Browser) -> None:
    """Not even when the first one, opened after it, has been."""
    (made_lab.root / "notebooks" / FIRST).write_bytes(fresh())
    with opened_tab(chromium, made_lab) as page:
        other = Notebook(page, made_lab, "other.ipynb")
        other.command("docmanager:open", path=f"notebooks/{FIRST}")
        page.wait_for_function(
            f"(name => !!jupyterapp.shell.currentWidget?.content?.model && ({WAS_RUN})(name))",
            arg=FIRST,
        )
        page.wait_for_function(ALL_HAVE_RUN)
        assert not page.evaluate(WAS_RUN, "other.ipynb")
        other.shut_down()
        other.command("docmanager:open", path="notebooks/other.ipynb")
        other.shut_down()


def test_a_reopened_notebook_shows_the_last_picture_and_goes_on_from_it(
    notebook: Callable[..., Notebook], tab: Page, tmp_path: Path, server: Server
) -> None:
    cell = 'explorer = bk.DesignCard("chat", "mixed-language", window=8_192)\nexplorer'
    lab = notebook(written(tmp_path, cell))
    lab.run_all()
    expect(tab.locator(".bk-kpi")).to_have_count(4)
    lab.execute("explorer.set(window=20_000); explorer.move('output', '30%')")
    stored = server.root / "notebooks" / "own.ipynb"
    # The picture follows once nothing has moved for a moment.
    for _ in range(20):
        lab.command("docmanager:save")
        if "20,000" in stored.read_text():
            break
        tab.wait_for_timeout(250)
    assert "20,000" in stored.read_text()
    lab.shut_down()
    reopened = Notebook(tab, server, "own.ipynb")
    expect(tab.locator(".bk-still")).to_contain_text("window=20,000")
    expect(tab.locator(".bk-still")).to_contain_text("run the cell to continue")
    expect(tab.get_by_text("model not found")).to_be_hidden()
    reopened.run_all()
    expect(reopened.control("Window").locator("input[type=text]")).to_have_value("20,000")
    expect(reopened.control("output").locator("input[type=text]")).to_have_value("6,000")
    expect(tab.locator(".bk-still")).to_be_hidden()
    tab.get_by_role("button", name="Reset", exact=True).click()
    expect(reopened.control("Window").locator("input[type=text]")).to_have_value("8,192")
