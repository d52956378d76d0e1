"""The folds in real JupyterLab: a warning opens why, a mend is seen before it is made, tuning runs beside the sliders.

Every test also fails when a request leaves the machine or a script on the page fails (see conftest).
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Notebook
from tests.browser.explored import written

Open = Callable[..., Notebook]
BUDGET = "explorer = bk.BudgetExplorer('working_memory', 'support-chat', window=9_000)\nexplorer"
SMALL = "bk.presets.working_memory(600, output=200, history_floor=0)"
CHATS = f"explorer = bk.BudgetExplorer({SMALL}, 'made-up-chats')\nexplorer"
AGENT = "explorer = bk.ConversationExplorer('coding-agent', window=16_384)\nexplorer"
WIDER = """() => [...document.querySelectorAll(".bk-fold, .bk-fold *")]
    .filter(node => !node.closest("svg, .bk-scroll, .bk-code") && node.clientWidth)
    .filter(node => node.getBoundingClientRect().right > node.closest(".bk-explorer").getBoundingClientRect().right + 1)
    .map(node => node.className)"""


def shown(notebook: Open, folder: Path, cell: str) -> Notebook:
    """Run an explorer in a cell, and wait until its charts are drawn."""
    found = notebook(written(folder, cell))
    found.page.evaluate("jupyterapp.shell.collapseLeft()")
    found.run_all()
    # of a conversation one chart stands above the tabs
    found.wait_for_charts(1 if "ConversationExplorer" in cell else 2)
    return found


def fold(lab: Notebook, name: str) -> Locator:
    """Open a fold by a click on its tab or its heading, and wait until it has something to say."""
    found = lab.page.locator(f".bk-fold[data-key={name}]")
    tab = lab.page.locator(f"[role=tab][data-key={name}]")
    if tab.count():
        tab.click()
    elif found.get_attribute("open") is None:
        found.locator("> summary").click()
    expect(found.locator(".bk-parts > *").first).not_to_have_text("Calculating…")
    return found


def test_a_warning_opens_why_and_a_mend_is_seen_before_it_is_made_and_can_be_taken_back(
    notebook: Open, tmp_path: Path
) -> None:
    lab = shown(notebook, tmp_path, BUDGET)
    page = lab.page
    expect(page.locator(".bk-fold[open]")).to_have_count(0)
    page.locator(".bk-asks", has_text="history loses").click()
    why = page.locator(".bk-fold[data-key=why]")
    expect(why.locator(".bk-reasons li").first).to_contain_text(
        "history asked for 9,283 tokens and got"
    )
    window = page.locator(".bk-kpi[data-key=window] b")
    row = why.locator(".bk-rows li", has_text="Enlarge the window from 9,000")
    ticks = page.locator(".bk-axis")
    before = ticks.text_content()
    row.locator("button").hover()
    expect(page.locator(".bk-bar.bk-previewed")).to_be_visible()
    expect(ticks).not_to_have_text(before or "")
    expect(window).to_have_text("9,000")
    page.locator(".bk-kpis").hover()
    expect(page.locator(".bk-bar.bk-previewed")).to_have_count(0)
    expect(ticks).to_have_text(before or "")
    row.locator("button").click()
    expect(window).not_to_have_text("9,000")
    expect(page.locator(".bk-status")).not_to_contain_text("history loses")
    page.get_by_role("button", name="Undo").click()
    expect(window).to_have_text("9,000")
    expect(row).to_be_visible()  # the page has asked for it again


def test_a_dropped_message_says_why(notebook: Open, tmp_path: Path) -> None:
    lab = shown(notebook, tmp_path, CHATS)
    block = lab.page.locator(".bk-block.bk-is-gone").last
    block.locator(".bk-label").click()
    said = (block.locator(".bk-label span").text_content() or "").partition(" tokens")[0]
    block.get_by_role("button", name="What would keep it?").click()
    why = lab.page.locator(".bk-fold[data-key=why]")
    expect(why.locator(".bk-said").first).to_contain_text(f"message of {said} tokens")
    expect(why.locator(".bk-reasons li")).to_have_count(3)


def test_tuning_runs_on_its_button_and_a_point_of_the_front_sets_all_sliders(
    notebook: Open, tmp_path: Path
) -> None:
    lab = shown(notebook, tmp_path, CHATS)
    decide = fold(lab, "decide")
    decide.get_by_role("button", name="Tune on 48 conversations").click()
    sentence = decide.locator(".bk-said.bk-is-fits")
    expect(sentence).to_contain_text("the true saving lies between")
    lab.wait_for_charts(3)
    before = sentence.text_content() or ""
    output = lab.page.locator(".bk-controls input[title='output, in tokens']")
    expect(output).to_have_value("200")
    decide.get_by_role("button", name="Set the sliders").click()
    expect(output).to_have_value("78")
    lab.page.get_by_role("button", name="Undo").click()
    expect(output).to_have_value("200")
    lab.wait_for_charts(3)
    other = decide.locator(".scatterlayer .trace").nth(1).locator("path.point").last
    other.click(force=True)
    expect(decide.locator(".bk-said").first).not_to_have_text(before)
    decide.get_by_role("button", name="Copy").click()
    expect(decide.locator(".bk-answer")).to_have_text("Copied as Markdown.")
    assert lab.page.evaluate("navigator.clipboard.readText()").startswith("# Which budget?")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_folds_of_both_explorers_stand_in_nobodys_way(
    notebook: Open, tmp_path: Path, theme: str
) -> None:
    cell = AGENT if theme == "dark" else BUDGET.replace("window=", "model='gpt-4o', window=")
    lab = shown(notebook, tmp_path, cell)
    lab.set_theme(theme)
    charts = 1 if theme == "dark" else 3
    for name in ("billed", "check", *(["why"] if theme == "light" else [])):
        fold(lab, name)
    sure = "tokens (between" if theme == "dark" else "tokens (exact"
    expect(fold(lab, "billed").locator(".bk-note").first).to_contain_text(sure)
    total = fold(lab, "billed").locator(".annotation-text")
    assert lab.place_of(total)["y"] >= lab.place_of(fold(lab, "billed").locator(".bk-plot"))["y"], (
        "not cut off"
    )
    lab.wait_for_charts(charts)
    assert lab.violations(".bk-explorer") == []
    lab.resize(640)
    lab.wait_for_charts(charts)
    assert lab.page.evaluate(WIDER) == []


def test_systems_stand_side_by_side_and_a_message_is_followed_through_them(
    notebook: Open, tmp_path: Path
) -> None:
    lab = shown(
        notebook, tmp_path, "explorer = bk.ConversationExplorer('made-up-session')\nexplorer"
    )
    lab.resize(1360, 1500)
    systems = fold(lab, "systems")
    expect(systems.locator(".bk-said").first).to_contain_text("not a forecast")
    for name in ("Claude Code", "Codex", "Gemini CLI", "opencode", "Cline"):
        expect(systems.get_by_text(name).first).to_be_attached()
    systems.scroll_into_view_if_needed()
    systems.locator("select").select_option(index=1)
    expect(systems.locator(".bk-rows li", has_text="no pruning")).to_contain_text("kept to the end")
    expect(systems.locator(".bk-rows li", has_text="Gemini CLI")).to_contain_text(
        "needed later, in request"
    )
    assert lab.page.evaluate(WIDER) == []
    lab.shoot("systems")
    reads = fold(lab, "reads")
    expect(reads.locator(".bk-rows li").first).to_contain_text("Compaction")
    reads.scroll_into_view_if_needed()
    lab.shoot("reads")
    assert lab.violations(".bk-folds") == []
