"""The accuracy explorer in real JupyterLab, by hand: notebook 04 run from its top to its end.

Every test also fails when a request leaves the machine or a script on the page fails (see conftest).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from budgetkit import accuracy, corpora
from budgetkit.state import from_yaml
from tests.browser.conftest import CHECKOUT, Notebook, Server, opened_tab
from tests.browser.explored import expect_kpi, show

NAME = "04-errors.ipynb"
CHARTS = 5
AS_AT_FIRST = (
    "explorer.view.opened = []; explorer.set(corpus='mini-corpus and odd text'); "
    "explorer.reset(); explorer.set(kind=())"
)
TOO_WIDE = """() => [...document.querySelectorAll(".bk-kpi b, .bk-explorer, .bk-card, .bk-plot")]
    .filter(node => node.scrollWidth > node.clientWidth + 1).length"""


@pytest.fixture(scope="module")
def notebook_05(chromium: Browser, server: Server) -> Iterator[Notebook]:
    """Run the notebook once for the tests that share it."""
    shutil.copy(CHECKOUT / "notebooks" / NAME, server.root / "notebooks")
    with opened_tab(chromium, server) as page:
        found = Notebook(page, server, NAME)
        page.evaluate("jupyterapp.shell.collapseLeft()")
        found.run_all()
        show(page)
        found.wait_for_charts(CHARTS)
        yield found
        found.shut_down()


@pytest.fixture
def lab(notebook_05: Notebook) -> Notebook:
    """Give the explorer as it was at first, in sight, in a light and wide page."""
    notebook_05.resize(1360)
    notebook_05.set_theme("light")
    notebook_05.rest()
    notebook_05.execute(AS_AT_FIRST)
    notebook_05.page.mouse.move(0, 0)
    show(notebook_05.page)
    expect(notebook_05.page.locator(".bk-kpi[data-key=mape]")).to_contain_text("chars/4 (estimate)")
    expect(notebook_05.page.locator(".bk-card details[open]")).to_have_count(0)
    notebook_05.wait_for_charts(CHARTS)
    return notebook_05


@pytest.fixture(scope="module")
def buffers() -> dict[float, float]:
    """Find the buffer of two risks without the explorer, as the notebook's cells do."""
    errors = accuracy.compare(["chars/4"], corpora.shipped() + corpora.odd(documents=2))
    return {risk: accuracy.buffer_for(errors, 8_192, risk).share for risk in (0.05, 0.1)}


def test_risk_moved_by_keys_moves_buffer_and_copied_text(
    lab: Notebook, buffers: dict[float, float]
) -> None:
    page = lab.page
    expect_kpi(page, "buffer", f"{100 * buffers[0.05]:.1f} %")
    page.get_by_role("slider", name="Risk, %").press("ArrowRight")  # from 5 % to 10 %
    expect_kpi(page, "buffer", f"{100 * buffers[0.1]:.1f} %")
    expect(page.locator(".bk-card[data-key=buffers] .bk-note")).to_contain_text(
        "For a risk of 10 %"
    )
    reserve = accuracy.Buffer(buffers[0.1], 0, 1, 0.1, 8_192, 2, "chars/4").reserve
    expect(page.locator(".bk-code")).to_contain_text(
        f"ratio: '{getattr(reserve.size, 'ratio', None)}'"
    )
    page.locator(".bk-takeaway").get_by_role("button", name="Copy").click()
    expect(page.locator(".bk-answer")).to_contain_text("Copied as YAML.")
    assert reserve in from_yaml(page.evaluate("navigator.clipboard.readText()")).reserves  # type: ignore[union-attr]


def test_the_kind_of_text_at_hand_is_chosen_and_named(lab: Notebook) -> None:
    page = lab.page
    kinds = lab.control("Kind of text").locator("select")
    kinds.select_option(label="prose, en (5)")
    expect(page.locator(".bk-status")).to_contain_text("over 5 documents of prose, en")
    buffer = page.locator(".bk-kpi[data-key=buffer]")
    expect(buffer.locator("b")).to_have_text("3.6 %")
    expect(buffer.locator("i")).to_contain_text("measured texts need")
    lab.wait_for_charts(CHARTS)
    lab.shoot("accuracy-one-kind")
    assert page.evaluate(TOO_WIDE) == 0


def test_a_class_that_is_chosen_leaves_its_documents_alone(lab: Notebook) -> None:
    page = lab.page
    before = page.locator(".bk-kpi[data-key=mape] b").inner_text()
    option = page.locator(".bk-controls select[multiple] option", has_text="code (")
    option.click()
    expect(page.locator(".bk-source")).to_contain_text("of them selected")
    expect(page.locator(".bk-kpi[data-key=mape] b")).not_to_have_text(before)
    expect(page.locator(".bk-card[data-key=strip] .bk-note")).to_contain_text("on average over")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect_kpi(page, "mape", before)


def test_a_clicked_point_is_read_token_by_token(lab: Notebook) -> None:
    page = lab.page
    title = page.locator(".bk-reader h3")
    before = title.inner_text()
    points = page.locator(".bk-card[data-key=strip] .points").first.locator("path.point")
    points.nth(points.count() // 2).scroll_into_view_if_needed()
    box = lab.place_of(points.nth(points.count() // 2))
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".bk-card[data-key=strip] .hoverlayer")).to_contain_text(
        "tokens; chars/4 estimates"
    )
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(title).not_to_have_text(before)
    expect(
        page.locator(".bk-reader h3")
    ).to_be_in_viewport()  # beside the figure, wherever that was clicked
    expect(page.locator(".bk-reader .bk-label").first).to_contain_text("estimate")
    assert page.locator(".bk-reader .bk-tone").count() > 10
    assert (page.locator(".bk-reader .bk-tone").first.get_attribute("title") or "").startswith(
        "token "
    )


@pytest.mark.parametrize("mix", ["texts of one kind", "texts of all kinds"])
def test_sentence_key_figure_and_figure_of_the_buffer_speak_of_the_same_windows(
    lab: Notebook, mix: str
) -> None:
    page = lab.page
    lab.control("Window content").locator("select").select_option(mix)
    lab.wait_for_charts(CHARTS)
    share = page.locator(".bk-kpi[data-key=buffer] b").inner_text()
    tokens = page.locator(".bk-kpi[data-key=buffer] i").inner_text().split(" ")[0]
    expect(page.locator(".bk-status")).to_contain_text(
        f"Reserve {share} of the window ({tokens} tokens)"
    )
    figure = page.locator(".bk-card[data-key=buffers]")
    expect(figure.locator(".bk-note")).to_contain_text(
        f"For a risk of 5 %, reserve {share} of the window"
    )
    figure.locator("summary").click()
    row = figure.locator("tbody tr").filter(has_text="0.05").first
    expect(row).to_contain_text(tokens)
    figure.locator("summary").click()


def test_a_text_of_ones_own_is_uploaded_and_a_broken_one_is_refused(
    lab: Notebook, tmp_path: Path
) -> None:
    page = lab.page
    own, broken = tmp_path / "<b>letter<b>.md", tmp_path / "logo.png"
    own.write_text(
        "# Letter\n\nDear Ann, thank you for the <img src=x onerror='window.hit = 1'> picture.\n"
        * 9
    )
    broken.write_bytes(b"\0\1\2")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open texts").click()
    chooser.value.set_files(own)
    expect(page.locator(".bk-source")).to_contain_text("<b>letter<b>.md: 1 document")
    expect(page.locator(".bk-status")).to_contain_text("documents for a risk")
    expect(page.locator(".bk-reader .bk-text").nth(1)).to_contain_text("<img src=x")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open texts").click()
    chooser.value.set_files(broken)
    expect(page.locator(".bk-status.bk-is-error")).to_contain_text("logo.png, binary")
    expect(page.locator(".bk-source")).to_contain_text("<b>letter<b>.md: 1 document")
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_anybody(lab: Notebook, theme: str) -> None:
    page = lab.page
    lab.set_theme(theme)
    page.locator(".bk-card[data-key=strip] summary").click()
    expect(page.locator(".bk-card[data-key=strip] tbody tr").first).to_be_visible()
    lab.wait_for_charts(CHARTS)
    assert lab.violations(".bk-explorer") == []
    lab.shoot(f"accuracy-{theme}")


def test_at_640_pixels_the_key_figures_come_first_and_nothing_is_too_wide(lab: Notebook) -> None:
    page = lab.page
    lab.resize(640, 1_200)
    page.wait_for_function(
        "document.querySelector('.bk-controls').getBoundingClientRect().left < 200"
    )
    lab.wait_for_charts(CHARTS)
    tops = [
        page.locator(place).first.bounding_box()
        for place in (".bk-kpis", ".bk-controls", ".bk-charts")
    ]
    places = [box["y"] for box in tops if box is not None]
    assert places == sorted(places)
    page.wait_for_function(f"({TOO_WIDE})() === 0")
    lab.shoot("accuracy-narrow")
