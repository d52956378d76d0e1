"""Where things stand: the first screen, what stays in sight, the reader beside the bar, the way of the keyboard.

On 0.1.0 the controls scrolled away, "How many turns does it last?" lay below the first screen, nothing could be read
beside the bar, and more than twenty stops of the keyboard lay before it.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Notebook, Server, opened_tab
from tests.browser.explored import expect_kpi, explored, handle, written

CUT = """
lines = [
    bk.Allocation("system", 300, granularity="token"),
    bk.Allocation("history", 1_500, keep="newest", granularity="token"),
]
roles = {"system": "system", "user": "history", "assistant": "history", "tool": "history"}
budget = bk.Budget(4_096, [bk.Reserve("output", 800)], lines, undeclared="pool", roles=roles)
explorer = bk.BudgetExplorer(budget, "support-chat")
explorer"""
FIRST_SCREEN = "bk.BudgetExplorer('chat', 'support-chat', window=16_384)"
#: Of each slider that is shown: its label, how wide it is, and whether the label is whole, a word in one line.
LINES = """[...document.querySelectorAll(".bk-controls .bk-slide")].filter(node => node.clientWidth).map(node => {
    const label = node.querySelector(".bk-name"), slider = node.querySelector("input[type=range]");
    const isWhole = label.scrollWidth <= label.clientWidth && label.scrollHeight <= label.clientHeight + 1;
    const text = document.createRange();
    text.selectNodeContents(label);
    const isBroken = !label.textContent.includes(" ") && text.getClientRects().length > 1;
    return [label.textContent, slider.clientWidth, isWhole && !isBroken];
})"""
SCROLLER = "document.querySelector('.jp-WindowedPanel-outer')"


@pytest.fixture(scope="module")
def called(
    chromium: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Open a notebook of one explorer whose budget cuts inside its messages, for the tests that share it."""
    path = written(tmp_path_factory.mktemp("own"), CUT)
    (server.root / "notebooks" / "layout.ipynb").write_text(path.read_text())
    with opened_tab(chromium, server) as page:
        found = Notebook(page, server, "layout.ipynb")
        yield explored(found)
        found.shut_down()


@pytest.fixture
def lab(called: Notebook) -> Notebook:
    """Give the explorer as it was called, at the top of a wide page, with its code out of the way."""
    called.resize(1440, 900)
    called.rest()
    called.execute("while explorer.view.state['actions']['undo']: explorer.undo()")
    called.command("notebook:hide-all-cell-code")
    called.page.evaluate(f"{SCROLLER}.scrollTop = 0")
    called.page.mouse.move(0, 0)
    called.wait_for_charts()
    return called


def expect_whole(page: Page, *places: str) -> None:
    for place in places:
        expect(page.locator(place).first).to_be_in_viewport(ratio=0.99)


@pytest.mark.parametrize(("width", "height", "files"), [(1440, 900, True), (1024, 768, False)])
def test_the_first_screen_holds_bar_sentence_turns_and_controls(
    notebook: Callable[..., Notebook], tmp_path: Path, width: int, height: int, files: bool
) -> None:
    own = notebook(written(tmp_path, FIRST_SCREEN))
    page = own.page
    page.evaluate(f"jupyterapp.shell.{'expand' if files else 'collapse'}Left()")
    own.resize(width, height)
    explored(own)
    expect_whole(page, "svg.bk-bar", ".bk-status", ".bk-kpis", ".bk-card[data-key=turns] .bk-plot")
    expect_whole(page, ".bk-controls input[title='Window, in tokens']")
    for line in ("output", "system", "conversation", "Turn"):
        expect(own.control(line).first).to_be_in_viewport(ratio=0.99)
    expect(page.locator(".bk-block").first).to_be_in_viewport()


@pytest.mark.parametrize(
    "explorer", ["App('mixed-language', window=8_192)", FIRST_SCREEN.removeprefix("bk.")]
)
def test_a_narrow_page_beside_the_file_browser_holds_bar_and_controls_and_nothing_is_cut_off(
    notebook: Callable[..., Notebook], tmp_path: Path, explorer: str
) -> None:
    """On 0.1.0 fewer than 300 pixels began with a screen without a control, and the app was wider than they are."""
    own = notebook(written(tmp_path, f"bk.{explorer}"))
    page = own.page
    page.evaluate("jupyterapp.shell.expandLeft()")
    own.resize(640, 900)
    own.run_all()
    own.command("notebook:hide-all-cell-code")
    expect_whole(page, "svg.bk-bar", ".bk-status", ".bk-controls input[title='Window, in tokens']")
    room = own.place_of(page.locator(".jp-WindowedPanel-outer"))
    remedies = page.locator(".bk-remedies button").all()
    assert len(remedies) > 1
    for part in (page.locator(".bk-status").first, page.locator("svg.bk-bar").first, *remedies):
        found = own.place_of(part)
        assert found["x"] + found["width"] <= room["x"] + room["width"]


@pytest.mark.parametrize("width", [1440, 1024, 760, 640])
def test_names_and_numbers_are_whole_at_every_width(
    notebook: Callable[..., Notebook], tmp_path: Path, width: int
) -> None:
    """On 0.1.0 a short segment had one letter for its name, a narrow page no sliders, and a box cut nine digits."""
    own = notebook(written(tmp_path, FIRST_SCREEN))
    page = own.page
    page.evaluate("jupyterapp.shell.collapseLeft()")
    own.resize(width, 900)
    explored(own)
    sections = ["system", "memory", "retrieval", "conversation", "user", "left in pool", "output"]
    names = [name for name in page.locator(".bk-segment text.bk-name").all_text_contents() if name]
    assert len(names) >= len(sections) - 1, "all but the current message, which is a hair wide"
    assert all(name in sections or len(name) >= len("sys…") for name in names), names
    lines = page.evaluate(LINES)
    assert {"Window", "output", "safety", "system", "memory", "conversation", "Turn"} <= {
        name for name, *_ in lines
    }
    assert all(slider > 30 and is_whole for _, slider, is_whole in lines), lines
    folds = own.place_of(page.locator(".bk-folds"))
    for fold in page.locator(".bk-fold").all():
        place = own.place_of(fold)
        assert place["x"] + place["width"] <= folds["x"] + folds["width"] + 1
    box = page.locator(".bk-controls input[title='Window, in tokens']")
    box.fill("100,000,000")
    box.press("Enter")
    expect(page.locator(".bk-kpi[data-key=pool] b")).to_have_text(re.compile("20,0|20M"))
    for each in (box, own.control("Maximum").locator("input")):
        expect(each).to_have_value("100,000,000")
        assert each.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_controls_and_reader_stay_in_sight_while_the_charts_scroll(lab: Notebook) -> None:
    page = lab.page
    page.locator(".bk-card[data-key=errors] .bk-plot").scroll_into_view_if_needed()
    expect(page.locator(".bk-kpis")).not_to_be_in_viewport()
    expect(lab.slider("Turn")).to_be_in_viewport()
    expect(page.locator(".bk-reader h3")).to_be_in_viewport()


def test_groups_that_are_seldom_needed_are_folded_and_open_by_key(lab: Notebook) -> None:
    page = lab.page
    path = lab.control("File").locator("input")
    expect(path).to_be_hidden()
    more = page.locator("summary", has_text="Conversation and counter")
    more.press("Enter")
    expect(path).to_be_visible()
    more.press("Enter")


def block(page: Page, state: str) -> Locator:
    return page.locator(f".bk-block.bk-is-{state}")


def test_a_cut_runs_through_the_very_words(lab: Notebook) -> None:
    page = lab.page
    system = block(page, "cut").first
    lab.execute(
        "kept = explorer.plan.decisions.cuts[0].payload.text.split('\\n[more text')[0][-60:]"
    )
    lab.execute("whole = explorer.plan.decisions.columns.items[0].payload.text")
    lab.execute(
        "import json; explorer.view.texts = {'yaml': json.dumps([kept, whole[whole.index(kept) + 60:][:60]])}"
    )
    page.wait_for_function("document.querySelector('.bk-code').textContent.startsWith('[')")
    kept, gone = page.evaluate("JSON.parse(document.querySelector('.bk-code').textContent)")
    before, after = page.evaluate("""() => {
        const struck = document.querySelector('.bk-block.bk-is-cut del');
        return [struck.previousSibling.textContent.slice(-60), struck.textContent.slice(0, 60)];
    }""")
    assert (before, after) == (kept, gone)
    expect(system.locator("del")).to_have_css("text-decoration-line", "line-through")
    lab.execute("explorer.move('system', 200)")
    page.wait_for_function(
        "before => document.querySelector('.bk-is-cut del').previousSibling.textContent.slice(-60) !== before",
        arg=before,
    )


def test_a_segment_lights_its_messages_up_and_a_message_says_what_became_of_it(
    lab: Notebook,
) -> None:
    page = lab.page
    page.locator(".bk-segment[data-key=history] .bk-fill").hover()
    expect(block(page, "cut").first).to_have_class("bk-block bk-is-cut bk-faded")
    expect(block(page, "cut").nth(1)).not_to_have_class("bk-block bk-is-cut bk-faded")
    expect(block(page, "cut").nth(1)).to_be_in_viewport()
    page.mouse.move(0, 0)
    gone = block(page, "gone").last
    gone.locator(".bk-label").click()
    expect(gone.locator(".bk-why")).to_contain_text(
        "Dropped: over its cap. history asks for 9,337 tokens"
    )
    expect(gone.locator(".bk-label")).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".bk-segment[data-key=system]")).to_have_class(
        "bk-segment bk-section bk-faded"
    )
    page.locator(".bk-reading").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(block(page, "cut").first.locator(".bk-why")).to_contain_text("may take 300 and gets 300")


def test_the_bar_is_two_stops_of_the_keyboard_away(lab: Notebook) -> None:
    page = lab.page
    page.locator(".bk-skip").focus()
    expect(page.locator(".bk-skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(handle(page, "system")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect_kpi(page, "pool", "1,476")


def test_controls_are_called_what_they_are(lab: Notebook) -> None:
    page = lab.page
    for name in (
        "Turn number",
        "Window, in tokens",
        "system, in tokens; leave empty to draw on the shared pool",
    ):
        expect(page.get_by_role("textbox", name=name, exact=True)).to_have_count(1)
    for name in ("Turn", "Window", "system"):
        expect(
            page.locator(".bk-controls").get_by_role("slider", name=name, exact=True)
        ).to_have_count(1)


def test_who_wants_no_motion_gets_none(lab: Notebook) -> None:
    page = lab.page
    moving = """() => [...document.querySelectorAll(".bk-explorer *")]
        .filter(node => getComputedStyle(node).transitionDuration.split(", ").some(time => parseFloat(time) > 0.001)
            && node.closest(".bk-view"))
        .map(node => node.className.baseVal ?? node.className)"""
    assert page.evaluate(moving) != []
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(moving) == []
    page.emulate_media(reduced_motion="no-preference")
