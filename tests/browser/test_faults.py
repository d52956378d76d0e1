"""What the check of every page forgives, and what it does not: nothing else sees the view's own script fail."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Notebook, Server, opened_tab
from tests.browser.explored import explored, written
from tests.browser.faults import watch

# The kernel sends the view what its script cannot show: in a message, a change and a chart.
BREAKS = (
    "explorer.view.send({'kind': 'status'})",
    "explorer.view.state = {**explorer.view.state, 'kpis': 5}",
    "explorer.view.figure_waterfall = {'spec': {}}",
)
STRANGER = "setTimeout(() => document.body.removeChild(document.createElement('p')))"
# Two splashes as if within 200 ms, however slow the machine is: what ends their fading is held until both fade.
HOLD = """() => {
    const start = window.setTimeout;
    window.held = [];
    const ends = (call, wait) => wait === 200 && /removeChild/.test(call);
    window.setTimeout = (call, wait, ...given) => ends(call, wait) ? held.push(call) : start(call, wait, ...given);
}"""
LET_GO = "held.forEach(call => setTimeout(call))"


def opened(page: Page, server: Server, folder: Path) -> Notebook:
    path = written(folder, "explorer = bk.BudgetExplorer('chat')\nexplorer")
    shutil.copy(path, server.root / "notebooks")
    return Notebook(page, server, path.name)


def test_whatever_fails_in_the_view_fails_the_test(
    chromium: Browser, server: Server, tmp_path: Path
) -> None:
    """Also where ipywidgets would catch it."""
    with (
        pytest.raises(AssertionError, match="^budgetkit's script failed: "),
        opened_tab(chromium, server) as page,
    ):
        lab = explored(opened(page, server, tmp_path))
        seen = watch(page)
        for code in BREAKS:
            with page.expect_event("pageerror"):
                lab.execute(code)
        lab.shut_down()
    assert all(fault.is_ours for fault in seen)
    assert len({fault.message for fault in seen}) == len(BREAKS), (
        "what is broken fails again when it is drawn again"
    )


def test_a_splash_removed_twice_is_forgiven_and_the_same_words_from_elsewhere_are_not(
    chromium: Browser, server: Server, tmp_path: Path
) -> None:
    with (
        pytest.raises(
            AssertionError, match="^a script that is not budgetkit's failed: .*removeChild"
        ) as raised,
        opened_tab(chromium, server) as page,
    ):
        lab = opened(page, server, tmp_path)
        seen = watch(page)
        page.evaluate(HOLD)
        for fading, theme in enumerate(("Dark", "Light"), 1):
            lab.command("apputils:change-theme", theme=f"JupyterLab {theme}")
            page.wait_for_function("fading => held.length === fading", arg=fading)
        with page.expect_event("pageerror"):
            page.evaluate(LET_GO)
        expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        with page.expect_event("pageerror"):
            page.evaluate(STRANGER)
        lab.shut_down()
    assert ["jlab_core" in fault.stack for fault in seen] == [True, False]
    assert all("'removeChild' on 'Node'" in fault.message for fault in seen)
    assert "jlab_core" not in str(raised.value)
