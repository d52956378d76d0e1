"""The app as `make app` serves it: no cells, four tabs, one conversation and one budget, and nobody asked outside."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE, Server, end, lab_environment, opened_tab, violations
from tests.browser.explored import expect_kpi
from tests.lab.test_serving import printed_token

#: Every chart of the tab that is shown is drawn.
DRAWN = """() => [...document.querySelectorAll(".bk-charts > .bk-card")]
    .filter(card => card.clientWidth).every(card => card.querySelector(".main-svg"))"""
OWN = """{"model": "gpt-4o", "messages": [
    {"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}]}""".replace(
    "\n", ""
)


@pytest.fixture(scope="module")
def served(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a file of somebody's own, from a folder of its own."""
    pytest.importorskip("voila")
    home = tmp_path_factory.mktemp("app")
    (home / "mine.jsonl").write_text(OWN)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "budgetkit.lab.app",
        "mine.jsonl",
        "--no-browser",
        f"--port={port}",
    ]
    environment = lab_environment(home) | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)
    try:
        token = printed_token(process, home / "log")
        yield Server(f"http://127.0.0.1:{port}/", token, home)
    finally:
        end(process)


@pytest.fixture(scope="module")
def app(served: Server, chromium: Browser) -> Iterator[Page]:
    with opened_tab(chromium, served) as page:
        page.goto(f"{served.address}?token={served.token}")
        expect(page.locator(".bk-bar .bk-segment").first).to_be_visible()
        yield page


def test_what_is_set_in_one_tab_is_there_in_the_next(app: Page) -> None:
    expect(app.locator(".bk-source")).to_contain_text("mine.jsonl")
    expect(app.locator(".jp-InputArea, .jp-Cell-inputWrapper")).to_have_count(0)
    expect_kpi(app, "remainder", "25,600")
    app.locator(".bk-handle[data-key=conversation]").press("ArrowRight")
    expect_kpi(app, "remainder", "26,100")
    for tab in ("Turn by turn", "Accuracy", "Pruning and cost"):
        app.get_by_role("tab", name=tab).click()
        expect(app.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(app.locator(".bk-kpis:visible")).to_have_count(1)
        if tab == "Turn by turn":
            expect(app.locator(".bk-kpi[data-key=remainder]:visible b")).to_have_text("26,100")
            app.locator(".bk-handle[data-key=conversation]:visible").press("ArrowRight")
            expect(app.locator(".bk-kpi[data-key=remainder]:visible b")).to_have_text("26,600")
    expect(app.locator(".bk-source:visible")).to_contain_text("mine.jsonl")
    app.get_by_role("tab", name="Design").click()
    expect(app.locator(".bk-kpi[data-key=remainder]:visible b")).to_have_text("26,600")


def test_the_whole_page_is_accessible_in_every_tab_and_at_every_width(app: Page) -> None:
    """On 0.2.0 nothing of it stood in a landmark, and a slider's handle lay over the lock of its line."""
    for tab in ("Design", "Turn by turn", "Accuracy", "Pruning and cost"):
        app.get_by_role("tab", name=tab).click()
        expect(app.locator(".bk-kpis:visible")).to_have_count(1)
        app.wait_for_function(DRAWN)
        for width in (1360, 1024, 640):
            app.set_viewport_size({"width": width, "height": 980})
            assert violations(app) == [], (tab, width)


def test_a_file_that_cannot_be_read_is_told_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("{}")
    command = [
        sys.executable,
        "-m",
        "budgetkit.lab.app",
        str(tmp_path / "none.jsonl"),
        "--no-browser",
    ]
    root = {"PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | root, timeout=PATIENCE
    )
    assert run.returncode == 1
    assert "none.jsonl" in run.stderr.splitlines()[-1]


def test_an_example_is_one_press(app: Page) -> None:
    expect(app.locator(".bk-title h1")).to_have_text("budgetkit")
    app.get_by_role("button", name="Mixed languages in 8k").click()
    expect(app.locator(".bk-headline h2:visible")).to_have_text("10 of 35 turns fit.")
