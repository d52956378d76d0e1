"""The conversation explorer in real JupyterLab, in the notebook that tells its story.

Every test also fails when a request leaves the machine or a script on the page fails (see conftest).
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import CHECKOUT, Notebook, Server, opened_tab
from tests.browser.explored import expect_kpi, show

NAME = "06-pruning-and-caches.ipynb"
AS_AT_FIRST = """
explorer.view.opened = []
while explorer.view.state["actions"]["undo"]:
    explorer.undo()
"""
CHARTS = 1


@pytest.fixture(scope="module")
def notebook_06(chromium: Browser, server: Server) -> Iterator[Notebook]:
    """Run all cells of the notebook once, for the tests that share it."""
    shutil.copy(CHECKOUT / "notebooks" / NAME, server.root / "notebooks")
    with opened_tab(chromium, server) as page:
        found = Notebook(page, server, NAME)
        page.evaluate("jupyterapp.shell.collapseLeft()")
        found.run_all()
        show(page)
        found.wait_for_charts(CHARTS)
        yield found
        found.shoot("conversation-explorer")
        found.shut_down()


@pytest.fixture
def lab(notebook_06: Notebook) -> Notebook:
    """Give the explorer as it was at first, in sight, in a light and wide page."""
    notebook_06.resize(1360)
    notebook_06.set_theme("light")
    notebook_06.rest()
    notebook_06.execute(AS_AT_FIRST)
    show(notebook_06.page)
    expect_kpi(notebook_06.page, "first", "turn 10")
    notebook_06.wait_for_charts(CHARTS)
    return notebook_06


def test_a_scrub_by_keys_moves_key_figures_marks_and_messages(lab: Notebook) -> None:
    page = lab.page
    expect(page.locator(".bk-reader h3")).to_contain_text("request 85 (turn 27)")
    lab.slider("Request").press("Home")
    expect_kpi(page, "now", "708")
    expect(page.locator(".bk-reader h3")).to_have_text(
        "What does request 1 (turn 1) send, and what is missing?"
    )
    expect(page.locator(".bk-reader .bk-note")).to_contain_text("nothing was dropped earlier")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".bk-reader h3")).to_contain_text("request 3 (turn 1)")
    page.keyboard.press("End")
    gone = page.locator(".bk-block.bk-is-gone").first
    expect(gone).to_contain_text("dropped at request")
    expect(page.locator(".bk-block").last).to_contain_text("tokens")


def test_two_policies_side_by_side_cost_what_the_notebook_says(lab: Notebook) -> None:
    page = lab.page
    expect_kpi(page, "cost", "$0.54")
    page.get_by_role("button", name="Remove tool results first").click()
    page.locator(".bk-picker summary").click()
    page.get_by_role("button", name="last turns Keeps only the last turns").click()
    lanes = page.locator(".bk-lanes tbody tr")
    expect(lanes).to_have_text(
        [re.compile(name) for name in ("down to a mark", "last turns", "oldest first")]
    )
    page.get_by_role("button", name="last turns", exact=True).click()
    expect_kpi(page, "cost", "$1.32")
    expect(lanes.nth(1)).to_contain_text("$1.32")
    page.get_by_role("tab", name="Cost").click()
    names = page.locator(".bk-card[data-key=spending] .annotation-text")
    expect(names).to_have_count(3)
    for name in ("down to a mark", "oldest first", "last turns"):
        expect(names.filter(has_text=name)).to_have_count(1)
    lab.slider("turns").press("ArrowLeft")
    expect(page.locator(".bk-code")).to_contain_text("budgetkit: 1")
    page.get_by_role("button", name="Python", exact=True).click()
    expect(page.locator(".bk-code")).to_contain_text("policy = bk.policies.SlidingWindow(9)")


def test_a_click_in_the_timeline_goes_to_its_request(lab: Notebook) -> None:
    page = lab.page
    page.get_by_role("tab", name="Cache", exact=True).click()
    lab.wait_for_charts(2)
    plot = page.locator(".bk-card[data-key=caching] .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = lab.place_of(plot)
    plot.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    expect(lab.control("Request").locator("input[type=text]")).to_have_value("43")
    page.keyboard.press("Tab")
    page.get_by_role("tab", name="Cache", exact=True).press("Home")
    expect(page.get_by_role("tab", name="Messages")).to_be_focused()
    expect(page.locator(".bk-reader h3")).to_contain_text("request 43 ")
    expect(page.locator(".bk-card[data-key=caching]")).to_have_count(0)


def test_a_click_anywhere_in_the_timeline_goes_to_that_request(lab: Notebook) -> None:
    """On 0.1.0 only what was drawn could be clicked; what is read stands beside the figure."""
    page = lab.page
    plot = page.locator(".bk-card[data-key=timeline] .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = lab.place_of(plot)
    for share, height, request in ((0.005, 6, 1), (0.25, 6, 22), (0.995, box["height"] - 6, 85)):
        plot.click(position={"x": share * box["width"], "y": height})
        expect(page.locator(".bk-reader h3")).to_contain_text(f"request {request} ")
        expect(page.locator(".bk-reader h3")).to_be_in_viewport()


def test_an_uploaded_session_is_shown_and_can_be_taken_back(lab: Notebook, tmp_path: Path) -> None:
    page = lab.page
    messages = [
        {"role": role, "content": f"{role} {i}"} for i in range(4) for role in ("user", "assistant")
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"id": "mine", "messages": messages}))
    page.locator(".bk-strip input[type=file]").first.set_input_files(path)
    expect(page.locator(".bk-source")).to_contain_text(
        "mine.jsonl: 8 messages, 4 turns, 4 requests"
    )
    expect_kpi(page, "first", "none")
    expect(page.locator(".bk-block")).to_have_count(7)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"messages": [}')
    page.locator(".bk-strip input[type=file]").first.set_input_files(broken)
    expect(page.locator(".bk-status.bk-is-error")).to_contain_text("line 1")
    expect(page.locator(".bk-source")).to_contain_text("mine.jsonl")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect_kpi(page, "first", "turn 10")


def test_a_reloaded_page_shows_and_moves_as_before(lab: Notebook) -> None:
    page = lab.page
    lab.slider("Request").press("Home")
    expect_kpi(page, "now", "708")
    lab.reload()
    show(page)
    lab.wait_for_charts(CHARTS)
    expect_kpi(page, "now", "708")
    lab.slider("Request").press("ArrowRight")
    expect(page.locator(".bk-reader h3")).to_contain_text("request 2 (turn 1)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_anybody(lab: Notebook, theme: str) -> None:
    lab.set_theme(theme)
    lab.wait_for_charts(CHARTS)
    assert lab.violations(".bk-explorer") == []
    lab.shoot(f"conversation-{theme}")


def test_at_640_pixels_the_key_figures_come_first_and_nothing_is_wider_than_the_page(
    lab: Notebook,
) -> None:
    page = lab.page
    lab.resize(640)
    lab.wait_for_charts(CHARTS)
    order = page.evaluate("""() => [".bk-status", ".bk-kpis", ".bk-charts", ".bk-lanes", ".bk-questions", ".bk-reader"]
        .map(name => document.querySelector(name).getBoundingClientRect().top)""")
    assert order == sorted(order)
    wide = page.evaluate("""() => [...document.querySelectorAll(".bk-explorer *")]
        .filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX === "visible"
            && node.clientWidth && !node.closest("svg") && node.matches(".bk-card, .bk-kpi, .bk-strip, .bk-group"))
        .map(node => node.className)""")
    assert wide == []
