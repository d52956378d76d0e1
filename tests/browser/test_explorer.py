"""The explorer in real JupyterLab, by hand: keys, mouse, files, themes and widths.

Every test also fails when a request leaves the machine or a script on the page fails (see conftest).
"""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from budgetkit.budget import Budget
from budgetkit.presets import chat
from budgetkit.state import from_yaml, to_yaml
from tests.browser.conftest import CHECKOUT, Notebook, Server, opened_tab
from tests.browser.explored import expect_kpi, explored, handle, written

Open = Callable[..., Notebook]
WINDOW, CHAT = 16_384, {"output": 2_457, "retrieval": 4_096, "pool": 3_279}
AS_AT_FIRST = """
explorer.view.opened = []
while explorer.view.state["actions"]["undo"]:
    explorer.undo()
"""
SHELF = "globalThis[Symbol.for('budgetkit.plotly')]"
CHART_IS_NEW = """() => document.querySelector(".bk-card[data-key=waterfall]").dataset.drawn
    === document.querySelector(".bk-head").dataset.serial"""
# What the page sends from now on, in bytes.
WEIGH = """() => {
    const send = WebSocket.prototype.send;
    window.sent = 0;
    WebSocket.prototype.send = function (data) {
        window.sent += data.byteLength ?? data.length;
        return send.call(this, data);
    };
}"""


@pytest.fixture(scope="module")
def notebook_04(chromium: Browser, server: Server) -> Iterator[Notebook]:
    """Open the notebook that people see first, once for the tests that share it."""
    shutil.copy(CHECKOUT / "tests" / "browser" / "explore.ipynb", server.root / "notebooks")
    with opened_tab(chromium, server) as page:
        found = Notebook(page, server, "explore.ipynb")
        page.evaluate("jupyterapp.shell.collapseLeft()")
        yield explored(found)
        found.shut_down()


@pytest.fixture
def lab(notebook_04: Notebook) -> Notebook:
    """Give the explorer as it was at first, in sight, in a light and wide page."""
    notebook_04.resize(1360)
    notebook_04.set_theme("light")
    notebook_04.rest()
    notebook_04.execute(AS_AT_FIRST)
    notebook_04.page.mouse.move(0, 0)
    notebook_04.page.locator(".bk-kpis").scroll_into_view_if_needed()
    expect_kpi(notebook_04.page, "pool", "3,279")
    notebook_04.wait_for_charts()
    return notebook_04


def copied(page: Page) -> Budget:
    """Press Copy and read the clipboard: the YAML that is shown, which comes with the charts, after the key figures."""
    page.wait_for_function(CHART_IS_NEW)
    page.locator(".bk-takeaway").get_by_role("button", name="Copy").click()
    expect(page.locator(".bk-answer")).to_contain_text("Copied as YAML.")
    budget = from_yaml(page.evaluate("navigator.clipboard.readText()"))
    assert isinstance(budget, Budget)
    return budget


def width_of(page: Page, key: str) -> float:
    box = page.locator(f".bk-segment[data-key='{key}'] .bk-fill").bounding_box()
    assert box is not None
    return box["width"]


def width_of_bar(page: Page) -> float:
    box = page.locator("svg.bk-bar").bounding_box()
    assert box is not None
    return box["width"]


def test_a_slider_moved_by_keys_moves_bar_key_figures_and_copied_text(lab: Notebook) -> None:
    page = lab.page
    expect_kpi(page, "pool", "3,279")
    before = width_of(page, "output")
    lab.slider("output").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect_kpi(page, "usable", "13,108")  # 15 % and ten half percents: 20 % of 16,384 is 3,276
    expect_kpi(page, "pool", "2,460")
    expect(page.locator(".bk-legend li[data-key=output] b")).to_have_text("3,276")
    expect(page.locator(".bk-code")).to_contain_text("ratio: '0.2'")
    assert width_of(page, "output") == pytest.approx(before * 3_276 / 2_457, rel=0.02)
    assert copied(page).sizes["output"] == 3_276


def test_a_section_is_switched_off_by_a_click_and_on_by_a_key(lab: Notebook) -> None:
    switch = lab.page.get_by_role("switch", name="retrieval")
    expect(switch).to_have_attribute("aria-checked", "true")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(switch).to_have_text("off")
    expect_kpi(lab.page, "pool", f"{CHAT['pool'] + CHAT['retrieval']:,}")
    switch.press("Enter")
    expect(switch).to_have_text("25 %")
    expect_kpi(lab.page, "pool", f"{CHAT['pool']:,}")


def test_a_handle_dragged_by_mouse_gives_and_takes_from_the_pool(lab: Notebook) -> None:
    page = lab.page
    bar = lab.place_of(page.locator("svg.bk-bar"))
    knob = lab.place_of(handle(page, "retrieval").locator(".bk-knob"))
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 31):
        page.mouse.move(x - 2 * step, y)
    page.mouse.up()
    tokens = math.floor(CHAT["retrieval"] - 60 * WINDOW / bar["width"] + 0.5)
    expect(page.locator(".bk-legend li[data-key=retrieval] b")).to_have_text(f"{tokens:,}")
    expect_kpi(page, "pool", f"{CHAT['pool'] + CHAT['retrieval'] - tokens:,}")
    assert width_of(page, "retrieval") == pytest.approx(tokens * bar["width"] / WINDOW, abs=2)
    assert copied(page).cap("retrieval") == tokens
    page.get_by_role("button", name="Undo", exact=True).click()  # the whole drag is one step
    expect_kpi(page, "pool", "3,279")
    assert not page.evaluate("document.querySelector('.bk-bar').classList.contains('bk-dragging')")


def test_nothing_that_the_hand_does_is_lost_while_the_kernel_is_slow(lab: Notebook) -> None:
    """Moves of one gesture replace each other on their way; what stands between them does not."""
    page = lab.page
    for _ in range(3):
        handle(page, "conversation").press("ArrowRight")
        handle(page, "retrieval").press("ArrowRight")
    lab.rest()
    expect_kpi(page, "pool", f"{CHAT['pool'] - 3 * (50 + 50):,}")
    page.get_by_role("button", name="Undo", exact=True).evaluate(
        "node => [1, 2, 3, 4].forEach(() => node.click())"
    )
    lab.rest()
    expect_kpi(page, "pool", f"{CHAT['pool'] - 50 - 50:,}")


def test_two_lines_moved_in_turn_lose_no_step_before_the_kernel_has_answered(lab: Notebook) -> None:
    """On 0.2.0 a second press on a line began where the kernel last was, once another line had been moved between."""
    page = lab.page
    page.evaluate("""() => {
        const press = (key) => document.querySelector(`.bk-handle[data-key=${key}]`)
            .dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        for (let i = 0; i < 3; i++) ["conversation", "retrieval"].forEach(press);
    }""")
    lab.rest()
    expect_kpi(page, "pool", f"{CHAT['pool'] - 3 * (50 + 50):,}")
    for line, tokens in {"conversation": "3,426", "retrieval": "4,246"}.items():
        expect(page.locator(f".bk-legend li[data-key={line}] b")).to_have_text(tokens)


def test_a_handle_is_a_slider_for_the_keyboard(lab: Notebook) -> None:
    page = lab.page
    knob = handle(page, "conversation")
    expect(knob).to_have_attribute("role", "slider")
    expect(knob).to_have_attribute("aria-valuenow", "3276")
    expect(knob).to_have_attribute("aria-valuetext", "3,276 tokens, 20.0 % of the window")
    knob.press("ArrowRight")
    expect(knob).to_have_attribute("aria-valuenow", "3326")
    page.keyboard.press("Shift+ArrowRight")
    expect(knob).to_have_attribute("aria-valuenow", "3826")
    page.keyboard.press("ArrowLeft")
    expect(knob).to_have_attribute("aria-valuenow", "3776")
    page.keyboard.press("Home")
    expect(knob).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("End")
    expect(knob).to_have_attribute("aria-valuetext", "no cap")
    expect(knob).to_be_focused()
    for _ in range(5):
        page.keyboard.press("Control+z")
    expect(knob).to_have_attribute("aria-valuenow", "3276")


def test_another_model_brings_another_window(notebook: Open, tmp_path: Path) -> None:
    lab = explored(notebook(written(tmp_path, "explorer = bk.BudgetExplorer('chat')\nexplorer")))
    page = lab.page
    expect_kpi(page, "window", "1,050,000")
    lab.control("Model").locator("input").fill("gpt-4")
    page.keyboard.press("Enter")
    expect_kpi(page, "window", "8,192")
    expect_kpi(page, "pool", "1,640")
    expect(page.locator(".bk-legend li[data-key=output] b")).to_have_text("1,228")


def test_a_shipped_trace_is_uploaded_and_shown(lab: Notebook) -> None:
    page = lab.page
    file = CHECKOUT / "data" / "traces" / "coding-agent.jsonl"
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open file").click()
    chooser.value.set_files(file)
    expect(page.locator(".bk-source")).to_contain_text("coding-agent.jsonl")
    expect(page.locator(".bk-source")).to_contain_text("counted exactly with o200k_base")
    expect(lab.control("Source").locator("select option:checked")).to_have_text(
        "coding-agent.jsonl"
    )


DROP = """([node, name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name));
    const told = { dataTransfer: carried, bubbles: true, cancelable: true };
    const over = new DragEvent("dragover", told);
    node.dispatchEvent(over);
    const marked = node.closest(".bk-explorer").classList.contains("bk-dropping");
    node.dispatchEvent(new DragEvent("drop", told));
    return [over.defaultPrevented, marked];
}"""
PASTE = """([node, text]) => {
    const carried = new DataTransfer();
    carried.setData("text/plain", text);
    node.dispatchEvent(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true, cancelable: true }));
}"""


def test_a_file_dropped_anywhere_on_an_explorer_is_opened(lab: Notebook) -> None:
    page, formats = lab.page, CHECKOUT / "tests" / "formats"
    places = (".bk-bar", ".bk-charts", ".bk-controls", ".bk-kpis")
    files = sorted(path for path in formats.iterdir() if path.suffix in {".json", ".jsonl"})[:10]
    for number, file in enumerate(files):
        where = page.locator(".bk-explorer").locator(places[number % len(places)]).first
        said = page.evaluate(DROP, [where.element_handle(), file.name, file.read_text("utf-8")])
        assert said == [True, True], "the page would open the file in the explorer's place"
        expect(page.locator(".bk-source")).to_contain_text(file.name)
        expect(page.locator(".bk-status.bk-is-error")).to_have_count(0)
    expect(page.locator(".bk-dropping")).to_have_count(0)


def test_text_that_is_pasted_is_a_conversation_and_in_a_box_it_is_typed(lab: Notebook) -> None:
    page = lab.page
    said = "User: Where is my parcel?\nAssistant: On its way.\nUser: Since when?\n"
    page.evaluate(PASTE, [page.locator(".bk-bar").first.element_handle(), said])
    expect(page.locator(".bk-source")).to_contain_text("pasted text")
    page.evaluate(PASTE, [lab.control("Model").locator("input").element_handle(), "gpt-4.1"])
    expect(page.locator(".bk-source")).to_contain_text("pasted text")
    assert page.locator(".bk-status.bk-is-error").count() == 0


def test_a_file_over_20_megabytes_is_refused_before_it_is_sent(
    lab: Notebook, tmp_path: Path
) -> None:
    page = lab.page
    large = tmp_path / "large.jsonl"
    large.write_bytes(b" " * (20 * 1024 * 1024 + 1))
    page.evaluate(WEIGH)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open file").click()
    chooser.value.set_files(large)
    expect(page.locator(".bk-status.bk-is-error")).to_contain_text("Type its path instead")
    expect(page.locator(".bk-source")).to_contain_text("support-chat")
    assert page.evaluate("window.sent") < 1_000_000
    lab.slider("output").press("ArrowRight")
    expect_kpi(page, "usable", "13,845")
    assert page.evaluate("window.sent") > 0, "had it been sent, it would have been weighed"


def test_a_broken_file_is_said_with_its_line_and_nothing_else_changes(
    lab: Notebook, tmp_path: Path
) -> None:
    page = lab.page
    broken = tmp_path / "broken.jsonl"
    broken.write_text(
        '{"messages": [{"role": "user", "content": "Hi"}]}\n{"messages": [{"content": "who?"}]}\n'
    )
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open file").click()
    chooser.value.set_files(broken)
    expect(page.locator(".bk-status.bk-is-error")).to_contain_text("broken.jsonl, line 2")
    expect(page.locator(".bk-source")).to_contain_text("support-chat")
    expect_kpi(page, "pool", "3,279")


def test_too_much_is_drawn_past_the_windows_end_and_says_how_to_mend_it(lab: Notebook) -> None:
    page = lab.page
    handle(page, "output").press("End")
    expect(page.locator(".bk-status.bk-is-over")).to_contain_text("Lower a cap or a reserve")
    expect(page.locator(".bk-end text")).to_contain_text("Window ends at 16,384")
    expect_kpi(page, "pool", "\u221210,648")  # 3,279 less 16,384 instead of 2,457
    bar = page.locator("svg.bk-bar").bounding_box()
    past = page.locator(".bk-end rect").bounding_box()
    assert bar is not None
    assert past is not None
    assert past["x"] + past["width"] == pytest.approx(bar["x"] + bar["width"], abs=1)
    assert past["width"] > 0.3 * bar["width"]


def test_plotly_reaches_a_page_once_and_outlives_the_explorer_that_asked(
    notebook: Open, tmp_path: Path
) -> None:
    frames: list[int] = []

    def note(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(len(frame)))

    own = notebook(
        written(
            tmp_path,
            "bk.BudgetExplorer('chat')",
            "second = bk.BudgetExplorer('rag', window=100_000)\nsecond",
        )
    )
    page = own.page
    page.on("websocket", note)
    own.reload()
    explored(own)
    assert page.locator(".bk-explorer").count() == 2
    assert page.evaluate(f"{SHELF}.transfers") == 1
    assert len([size for size in frames if size > 1_000_000]) == 1
    page.evaluate(
        """() => { const content = jupyterapp.shell.currentWidget.content; content.activeCellIndex = 0; }"""
    )
    own.command("notebook:delete-cell")
    expect(page.locator(".bk-explorer")).to_have_count(1)
    own.slider("output").press("ArrowRight")
    expect(page.locator(".bk-legend li[data-key=output] b")).to_have_text("15,500")
    page.wait_for_function(CHART_IS_NEW)


def test_a_view_asks_for_itself_when_the_one_that_asked_is_gone(
    notebook: Open, tmp_path: Path
) -> None:
    own = notebook(written(tmp_path, "bk.BudgetExplorer('chat')"))
    own.page.evaluate(f"""() => {{
        {SHELF} = {{ library: null, asker: () => false, since: performance.now(), transfers: 0, waiting: new Set() }};
    }}""")
    explored(own)
    assert own.page.evaluate(f"{SHELF}.transfers") == 1


def test_keys_on_a_widget_leave_the_cells_alone(lab: Notebook) -> None:
    """In JupyterLab's command mode x cuts a cell, b inserts one and dd deletes one."""
    page = lab.page
    cells = lab.cells()
    places = [
        lab.control("Preset").locator("select"),
        lab.slider("output"),
        handle(page, "system"),
        page.get_by_role("button", name="Pin"),
        page.locator(".bk-lock").first,
    ]
    for place in places:
        place.focus()
        for key in ("x", "b", "a", "d", "d"):
            page.keyboard.press(key)
    assert lab.cells() == cells


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_anybody(lab: Notebook, theme: str) -> None:
    page = lab.page
    lab.set_theme(theme)
    page.locator(".bk-card[data-key=turns] summary").click()
    expect(page.locator(".bk-card[data-key=turns] tbody tr")).to_have_count(75)
    lab.wait_for_charts()  # they are drawn again in the theme's colours
    assert lab.violations(".bk-explorer") == []
    lab.shoot(f"explorer-{theme}")


# Charts are to be drawn, and have no place just then; no frame is painted before they have it again.
HIDDEN_WITHIN_A_FRAME = """async () => {
    const charts = document.querySelector(".bk-charts"), start = window.setTimeout, held = [];
    window.setTimeout = (call, wait, ...given) => wait ? start(call, wait, ...given) : held.push(call);
    charts.style.width = "90%";
    while (!charts.hasAttribute("aria-busy") || !held.length) await new Promise(requestAnimationFrame);
    charts.style.display = "none";
    while (charts.hasAttribute("aria-busy")) {
        held.splice(0).forEach(call => call());
        await null;
    }
    charts.style.display = "";
    window.setTimeout = start;
}"""


def test_charts_are_drawn_though_the_page_was_hidden_as_their_turn_came(lab: Notebook) -> None:
    """JupyterLab hides all of it for a moment when a theme comes, which on a slow machine is while they are drawn."""
    lab.page.evaluate(HIDDEN_WITHIN_A_FRAME)
    lab.wait_for_charts()
    lab.page.evaluate("document.querySelector('.bk-charts').style.width = ''")
    lab.wait_for_charts()


def test_dark_follows_jupyterlab_at_once(lab: Notebook) -> None:
    page = lab.page
    ink = "getComputedStyle(document.querySelector('.bk-card h3')).color"
    tick = "getComputedStyle(document.querySelector('.bk-plot .xtick text')).fill"
    light = page.evaluate(f"[{ink}, {tick}]")
    lab.set_theme("dark")
    page.wait_for_function(f"light => {ink} !== light[0] && {tick} !== light[1]", arg=light)
    lab.wait_for_charts()
    assert page.evaluate(ink).startswith("rgba(255, 255, 255")
    assert page.evaluate(tick) == "rgb(255, 255, 255)"
    assert page.evaluate(
        "getComputedStyle(document.querySelector('.bk-plot .main-svg')).backgroundColor"
    ) in (
        "rgba(0, 0, 0, 0)",
        "transparent",
    )


def test_at_640_pixels_the_key_figures_and_the_bar_come_first(lab: Notebook) -> None:
    page = lab.page
    lab.resize(640, 1_200)
    page.wait_for_function(
        "document.querySelector('.bk-controls').getBoundingClientRect().left < 200"
    )
    lab.wait_for_charts()
    tops = [
        page.locator(place).first.bounding_box()
        for place in (".bk-kpis", ".bk-bar", ".bk-controls", ".bk-charts")
    ]
    places = [box["y"] for box in tops if box is not None]
    assert places == sorted(places)
    assert len(places) == 4
    page.wait_for_function("""() => [...document.querySelectorAll(".bk-kpi b, .bk-explorer, .bk-card, .bk-plot")]
        .every(node => node.scrollWidth <= node.clientWidth + 1)""")
    assert lab.violations(".bk-explorer") == []
    lab.shoot("explorer-narrow")


OUTSIDE = """() => [...document.querySelectorAll(".bk-plot")].flatMap(plot => {
    const { left, right, top } = plot.getBoundingClientRect();
    return [...plot.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.left < left - 1 || box.right > right + 1 || box.top < top - 1);
    }).map(text => text.textContent);
})"""


# JupyterLab has taken in how wide the page is and whether the file browser is open.
LAID_OUT = """([width, files]) => {
    const side = document.querySelector("#jp-left-stack").offsetWidth;
    const { left, right } = document.querySelector(".jp-NotebookPanel").getBoundingClientRect();
    return files === side > 0 && left >= side && right <= width && right > width - 60;
}"""


@pytest.mark.parametrize(
    ("width", "files"), [(640, True), (640, False), (1_280, False), (1_600, False)]
)
def test_no_letter_of_a_chart_is_cut_off(lab: Notebook, width: int, files: bool) -> None:
    """Also beside JupyterLab's file browser, which leaves the explorer fewer than 300 pixels of 640."""
    page = lab.page
    # First cut in the middle of the turns.
    lab.execute("explorer.move('conversation', '27%')")
    lab.resize(width, 1_200)
    page.evaluate(f"jupyterapp.shell.{'expand' if files else 'collapse'}Left()")
    try:
        page.wait_for_function(LAID_OUT, arg=[width, files])
        lab.wait_for_charts()
        assert page.evaluate(OUTSIDE) == []
        cut = "[...document.querySelectorAll('.bk-kpi b, .bk-controls .bk-digits')]"
        assert (
            page.evaluate(f"{cut}.filter(node => node.scrollWidth > node.clientWidth + 1).length")
            == 0
        )
    finally:
        lab.shoot(f"explorer-{width}-{files}")
        page.evaluate("jupyterapp.shell.collapseLeft()")


def test_a_finger_moves_a_handle_to_the_side_and_scrolls_the_page_up_and_down(
    lab: Notebook,
) -> None:
    page = lab.page
    knob = lab.place_of(handle(page, "retrieval").locator(".bk-knob"))
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    touch = page.context.new_cdp_session(page)
    for kind, at in (
        ("touchStart", x),
        ("touchMove", x - 30),
        ("touchMove", x - 60),
        ("touchEnd", None),
    ):
        points = [] if at is None else [{"x": at, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    tokens = math.floor(CHAT["retrieval"] - 60 * WINDOW / width_of_bar(page) + 0.5)
    expect(page.locator(".bk-legend li[data-key=retrieval] b")).to_have_text(f"{tokens:,}")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.bk-bar')).touchAction") == "pan-y"
    )


def test_files_are_opened_and_changes_taken_back_without_a_mouse(
    lab: Notebook, tmp_path: Path
) -> None:
    page = lab.page
    saved = tmp_path / "set-up.yaml"
    saved.write_text(to_yaml(chat(8_192)))
    spoken = CHECKOUT / "data" / "traces" / "coding-agent.jsonl"
    files = [spoken, saved]
    page.on("filechooser", lambda chooser: chooser.set_files(files.pop(0)))
    for name, key in (("Open file…", "Enter"), ("Load settings…", "Space")):
        page.get_by_role("button", name=name).press(key)
        expect(page.locator(".bk-source")).to_contain_text("coding-agent.jsonl")
    expect_kpi(page, "usable", "6,964")
    lab.slider("output").press("ArrowRight")
    expect_kpi(page, "usable", "6,923")  # 15.5 % of 8,192 is 1,269
    page.get_by_role("button", name="Undo", exact=True).press("Enter")
    expect_kpi(page, "usable", "6,964")
    page.get_by_role("button", name="Redo", exact=True).press("Space")
    expect_kpi(page, "usable", "6,923")
    page.get_by_role("button", name="Reset", exact=True).press("Enter")
    expect_kpi(page, "window", "16,384")  # as it was called


def test_charts_and_rows_may_go_while_they_are_drawn_and_have_the_focus(lab: Notebook) -> None:
    """No script fails on what has left the page, and what comes back is drawn as before."""
    page = lab.page
    for preset in ("agent", "working_memory", "memory_engine", "chat"):
        lab.slider("output").press("ArrowRight")
        lab.execute("explorer.set(trace=None)")
        lab.execute(f"explorer.set(trace='support-chat', preset={preset!r})")
    expect(page.locator(".bk-charts > .bk-card")).to_have_count(4)
    expect(lab.slider("retrieval")).to_have_count(1)
    lab.wait_for_charts(4)


def test_hovering_a_section_fades_the_others_everywhere(lab: Notebook) -> None:
    page = lab.page
    page.locator(".bk-legend li[data-key=retrieval]").hover()
    expect(page.locator(".bk-segment[data-key=system]")).to_have_class(
        "bk-segment bk-section bk-faded"
    )
    faded = """() => [...document.querySelectorAll(".bk-card[data-key=waterfall] .point")]
        .filter(point => point.style.opacity).length"""
    # Of window, output, system, memory, retrieval, conversation and pool.
    assert page.evaluate(faded) == 5
    page.locator(".bk-source").hover()
    expect(page.locator(".bk-faded")).to_have_count(0)


def test_a_reloaded_page_shows_and_moves_as_before(lab: Notebook) -> None:
    page = lab.page
    lab.slider("output").press("ArrowRight")
    expect_kpi(page, "usable", "13,845")  # 15.5 % of 16,384 is 2,539
    lab.reload()
    lab.wait_for_charts()
    expect_kpi(page, "usable", "13,845")
    handle(page, "output").press("ArrowRight")
    expect_kpi(page, "usable", "13,795")
    assert page.evaluate(f"{SHELF}.transfers") == 1


IMAGE_FAILS = "() => new Promise(done => Object.assign(new Image(), { onerror: done, src: 'x' }))"
EVIL = '<img src=x onerror="window.hit = 1">'


def test_names_of_sections_models_and_files_are_never_read_as_markup(
    notebook: Open, tmp_path: Path
) -> None:
    budget = (
        f"bk.Budget(8_192, [bk.Reserve('output', 900)], [bk.Allocation({EVIL!r}, 700)], "
        f"roles={{'user': {EVIL!r}}})"
    )
    evil = tmp_path / "<b>evil<b>.jsonl"
    evil.write_text(
        json.dumps({"id": EVIL, "messages": [{"role": "user", "content": "Hi"}]}) + "\n"
    )
    cells = [f"explorer = bk.BudgetExplorer({budget}, {str(evil)!r}, model='gpt-4o')\nexplorer"]
    lab = explored(notebook(written(tmp_path, *cells)))
    page = lab.page
    expect(page.locator(".bk-legend li span").nth(1)).to_have_text(EVIL)
    expect(page.locator(".bk-source")).to_contain_text("<b>evil<b>.jsonl")
    lab.control("Model").locator("input").fill(EVIL)
    page.keyboard.press("Enter")
    expect(page.locator(".bk-status")).to_contain_text(f"No model {EVIL!r}")
    lab.resize(1700)  # a narrow page has no legend
    page.locator(".bk-legend li").first.hover()
    page.locator(".bk-card[data-key=sections] summary").click()
    expect(page.locator(".bk-card[data-key=sections] tbody tr").first).to_be_visible()
    page.evaluate(IMAGE_FAILS)  # what was asked for before has failed by then
    assert page.evaluate("window.hit") is None
    assert page.locator(".bk-explorer img").count() == 0
