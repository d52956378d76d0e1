"""The first minute with an explorer, by hand: tips, typed numbers, a dragged handle, a kernel that goes away."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Notebook, Server, opened_tab
from tests.browser.explored import expect_kpi, explored, handle, written

AS_CALLED = "while explorer.view.state['actions']['undo']: explorer.undo()"
Open = Callable[..., Notebook]


@pytest.fixture(scope="module")
def called(
    chromium: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Open a notebook of one explorer for the tests that share it."""
    path = written(
        tmp_path_factory.mktemp("own"),
        "explorer = bk.BudgetExplorer('chat', 'support-chat', window=16_384)\nexplorer",
    )
    (server.root / "notebooks" / "first-minute.ipynb").write_text(path.read_text())
    with opened_tab(chromium, server) as page:
        found = Notebook(page, server, "first-minute.ipynb")
        page.evaluate("jupyterapp.shell.collapseLeft()")
        yield explored(found)
        found.shut_down()


@pytest.fixture
def lab(called: Notebook) -> Notebook:
    """Give the explorer as it was called, in a wide page."""
    called.resize(1360)
    called.rest()
    called.execute(AS_CALLED)
    called.page.mouse.move(0, 0)
    called.page.locator(".bk-kpis").scroll_into_view_if_needed()
    expect_kpi(called.page, "pool", "3,279")
    called.wait_for_charts()
    return called


def type_into(lab: Notebook, title: str, text: str) -> None:
    box = lab.page.locator(f".bk-controls input[title='{title}']")
    box.fill(text)
    box.press("Enter")


def test_a_tip_stands_where_the_pointer_is(lab: Notebook) -> None:
    """JupyterLab contains what is fixed: on 0.1.0 the tip stood a sidebar and a toolbar away."""
    page = lab.page
    segment = lab.place_of(page.locator(".bk-segment[data-key=retrieval] .bk-fill"))
    x, y = segment["x"] + 20, segment["y"] + 20
    page.mouse.move(x, y)
    expect(page.locator(".bk-tip")).to_be_visible()
    tip = lab.place_of(page.locator(".bk-tip"))
    assert [tip["x"] - x, tip["y"] - y] == pytest.approx([14, 18], abs=1)


def test_a_typed_number_is_read_as_meant_or_refused_beside_its_box(lab: Notebook) -> None:
    page = lab.page
    type_into(lab, "Window, in tokens", "100k")
    expect_kpi(page, "window", "100,000")
    expect(page.locator(".bk-controls input[title='Window, in tokens']")).to_have_value("100,000")
    type_into(lab, "Window, in tokens", "plenty")
    told = page.locator(".bk-beside")
    expect(told).to_contain_text("'plenty' is not a number, so 100,000 stays")
    # The live region says it as well, for whoever does not see the box.
    live = page.locator(".bk-status[role=status][aria-live=polite]")
    expect(live).to_contain_text("'plenty' is not a number, so 100,000 stays")
    for refused, reason in {
        "9,000,000,000": "is too large",
        "-5": "is too small",
    }.items():
        type_into(lab, "Window, in tokens", refused)
        expect(told).to_contain_text(reason)
        expect(live).to_contain_text(reason)
    box = lab.place_of(page.locator(".bk-controls input[title='Window, in tokens']"))
    assert 0 <= lab.place_of(told)["y"] - box["y"] < 60
    expect(page.locator(".bk-controls input[title='Window, in tokens']")).to_have_value("100,000")
    type_into(lab, "Window, in tokens", "1.2M")
    expect_kpi(page, "window", "1,200,000")
    expect(live).to_contain_text("the window is set to 1,200,000")
    expect(told).to_have_count(0)


@pytest.mark.parametrize("width", [1_440, 1_024, 640])
def test_key_figures_keep_their_digits_or_are_shortened_and_stand_in_even_rows(
    lab: Notebook, width: int
) -> None:
    page = lab.page
    lab.resize(width)
    lab.execute("explorer.set(window=1_047_576)")
    page.wait_for_function(
        "document.querySelector('.bk-kpi[data-key=window] b').textContent.match(/1,047,576|1.05M/)"
    )
    lab.wait_for_charts()
    cut = "[...document.querySelectorAll('.bk-kpi b')].filter(node => node.scrollWidth > node.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    rows = page.evaluate("""() => Object.values(Object.groupBy([...document.querySelectorAll(".bk-kpi")],
        node => node.offsetTop)).map(row => row.length)""")
    assert max(rows) - min(rows) <= 1, rows


def test_while_a_handle_is_dragged_over_the_end_its_knob_stays_under_the_pointer_and_nothing_jumps(
    lab: Notebook,
) -> None:
    page = lab.page
    bar = lab.place_of(page.locator("svg.bk-bar"))
    knob = lab.place_of(handle(page, "retrieval").locator(".bk-knob"))
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    knobs, bars = [], []
    places = [x + step * (bar["x"] + 0.7 * bar["width"] - x) / 30 for step in range(1, 31)]
    for place in places:
        page.mouse.move(place, y)
        now: Any = handle(page, "retrieval").locator(".bk-knob").bounding_box()
        knobs.append(now["x"] + now["width"] / 2)
        bars.append(page.evaluate("document.querySelector('svg.bk-bar').getBoundingClientRect().y"))
    is_over = page.locator(".bk-end path").count() == 1
    page.mouse.up()
    assert is_over, "over the window's end"
    assert knobs == pytest.approx(places, abs=2)
    assert bars == pytest.approx([bar["y"]] * 30, abs=0.5)


def test_a_border_that_two_lines_share_moves_the_one_that_is_grabbed(lab: Notebook) -> None:
    """Where the pool is used up, conversation ends where the output reserve begins."""
    page = lab.page
    lab.execute("explorer.move('conversation', 3_276 + 3_279)")
    expect_kpi(page, "pool", "0")
    segment = lab.place_of(page.locator(".bk-segment[data-key=conversation] .bk-fill"))
    edge, y = segment["x"] + segment["width"], segment["y"] + 20
    page.mouse.move(edge - 2, y)
    page.mouse.down()
    page.mouse.move(edge - 60, y, steps=5)
    page.mouse.up()
    expect(page.locator(".bk-legend li[data-key=output] b")).to_have_text("2,457")
    expect(page.locator(".bk-legend li[data-key=conversation] b")).not_to_have_text("6,555")


def test_one_figure_that_cannot_be_drawn_stops_no_other(notebook: Open, tmp_path: Path) -> None:
    """On 0.1.0 the explorer drew no chart again."""
    own = explored(
        notebook(
            written(tmp_path, "explorer = bk.BudgetExplorer('chat', 'support-chat')\nexplorer")
        )
    )
    page = own.page
    page.evaluate("window.addEventListener('error', event => event.preventDefault())")
    own.execute(
        "explorer.view.figure_waterfall = {**explorer.view.figure_waterfall, 'spec': {'data': 3}}"
    )
    expect(page.locator(".bk-card[data-key=waterfall] .bk-note")).to_contain_text(
        "could not be drawn"
    )
    own.execute("explorer.move('system', '20%')")
    own.wait_for_charts()
    expect(page.locator(".bk-card[data-key=waterfall] .bk-note")).not_to_contain_text(
        "could not be drawn"
    )


def test_a_kernel_that_is_gone_leaves_its_last_picture_and_a_sentence(
    notebook: Open, tmp_path: Path
) -> None:
    made = "explorer = bk.BudgetExplorer('chat', 'support-chat', window=100_000)\nexplorer"
    own = explored(notebook(written(tmp_path, made)))
    page = own.page
    expect(page.locator(".bk-still")).to_be_hidden()
    page.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    expect(page.locator(".bk-status")).to_contain_text("Run the cell again")
    expect(page.locator(".bk-segment").first).to_be_visible()
    expect(page.locator(".bk-explorer")).to_have_attribute("inert", "")
    own.shoot("kernel-gone")
    own.wait()
    own.run_all()
    own.wait_for_charts()
    expect(page.locator(".bk-status")).not_to_contain_text("Run the cell again")
    # On a narrow page the bar's handles stand for the sliders.
    page.evaluate("jupyterapp.shell.collapseLeft()")
    own.slider("output").focus()
    page.keyboard.press("ArrowRight")
    expect_kpi(page, "usable", "84,500")


@pytest.mark.parametrize("made", ["BudgetExplorer('chat', ", "DesignCard('chat', ", "App("])
def test_a_saved_notebook_shows_the_explorers_last_state(
    notebook: Open, tmp_path: Path, made: str
) -> None:
    own = notebook(written(tmp_path, f"explorer = bk.{made}'support-chat')\nexplorer"))
    own.run_all()
    page = own.page
    expect(page.locator(".bk-kpi").first).to_be_visible()
    expect(page.locator(".bk-still")).to_be_hidden()
    own.execute("getattr(explorer, 'card', explorer).set(window=5_555)")
    stored = """() => JSON.stringify(jupyterapp.shell.currentWidget.content.model.toJSON()).includes("5,555")"""
    page.wait_for_function(stored)
    own.command("docmanager:save")
    own.shut_down()
    page.reload()
    expect(page.locator(".bk-still")).to_be_visible()
    expect(page.locator(".bk-still")).to_contain_text("5,555")
    own.shoot("no-kernel")
    own.wait()  # JupyterLab has begun another kernel, which has to be there to be shut down


def test_a_key_is_marked_as_ours_before_notebook_7_hears_it(lab: Notebook) -> None:
    """Notebook 7 hears a key on its way down, where nothing in a cell can stop it; both leave marked targets alone."""
    page = lab.page
    page.evaluate("""() => document.addEventListener("keydown", event => {
        window.marked = event.target.hasAttribute("data-lm-suppress-shortcuts");
    }, true)""")
    places = [
        handle(page, "system"),
        lab.slider("output"),
        page.locator(".bk-controls input[title='Window, in tokens']"),
        lab.control("Preset").locator("select"),
        page.locator(".bk-card summary").first,
    ]
    for place in places:
        place.focus()
        page.keyboard.press("Shift")
        assert page.evaluate("window.marked") is True
        page.keyboard.press("Control")
        assert page.evaluate("window.marked") is False, "shortcuts of the page pass"
