"""The explorers in marimo, which shows anywidgets and no ipywidgets; skipped where marimo is not installed."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE, Server, end, opened_tab

NOTEBOOK = """
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo
    import budgetkit as bk
    return bk, mo


@app.cell
def _(bk, mo):
    card = bk.DesignCard("chat", window=8_192)
    shown = mo.ui.anywidget(card.view)
    shown
    return card, shown


@app.cell
def _(card, mo, shown):
    shown.value
    mo.md(f"the pool has {card.budget.shared_pool}")
    return


@app.cell
def _(bk):
    bk.BudgetExplorer("rag", "support-chat", window=16_384)
    return


@app.cell
def _(bk):
    bk.App("mixed-language", window=8_192)
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(scope="module")
def marimo(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Serve a notebook with three explorers, and open it."""
    pytest.importorskip("marimo")
    home = tmp_path_factory.mktemp("marimo")
    (home / "explorers.py").write_text(NOTEBOOK)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "explorers.py", "--headless", "--no-token"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--port={port}"], cwd=home, stdout=log, stderr=log, text=False
        )
    server = Server(f"http://127.0.0.1:{port}/", "", home)
    try:
        with opened_tab(chromium, server) as page:
            for _ in range(PATIENCE):
                if "URL" in (home / "log").read_text():
                    break
                page.wait_for_timeout(1_000)
            page.goto(server.address)
            expect(page.locator(".bk-explorer")).to_have_count(3)
            yield page
    finally:
        end(process)


def test_a_card_moves_and_cells_that_depend_on_it_run_again(marimo: Page) -> None:
    card = marimo.locator(".bk-explorer").first
    expect(card.locator(".bk-kpi[data-key=pool] b")).to_have_text("1,640")
    slider = card.locator("[data-control=line_output] input[type=range]")
    slider.press("ArrowRight")
    expect(card.locator(".bk-kpi[data-key=pool] b")).to_have_text("1,599")
    expect(marimo.get_by_text("the pool has 1599")).to_be_visible()
    box = card.locator("[data-control=line_conversation] input[type=text]")
    box.fill("a lot")
    box.press("Enter")
    expect(card.locator(".bk-beside")).to_contain_text("is not a number")
    expect(box).to_have_value("1,638")


def test_an_explorer_is_shown_by_itself_with_its_charts(marimo: Page) -> None:
    explorer = marimo.locator(".bk-explorer").nth(1)
    expect(explorer.locator(".bk-kpi[data-key=window] b")).to_have_text("16,384")
    expect(explorer.locator(".bk-charts .main-svg").first).to_be_attached()
    explorer.locator("[data-control=preset] select").select_option(label="Agent with tools")
    expect(explorer.locator("[data-control=line_tool]")).to_be_visible()


def test_the_app_has_its_own_tabs(marimo: Page) -> None:
    app = marimo.locator(".bk-app")
    expect(app.locator(".bk-kpis:visible")).to_have_count(1)
    app.get_by_role("tab", name="Turn by turn").click()
    expect(app.locator(".bk-charts:visible .main-svg").first).to_be_attached()
    expect(app.locator(".bk-kpis:visible")).to_have_count(1)
