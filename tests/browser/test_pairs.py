"""Layout by its container: no text outside its card, none cut off, none over another, in whatever meets whatever.

On 0.2.0 the table of errors lost its bars and ran out of its card beside the list of files, and section sliders were
39 pixels long.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from budgetkit.presets import PRESETS
from tests.browser.conftest import Notebook, Server, opened_tab
from tests.browser.explored import written
from tests.browser.layouts import (
    CONTAINER,
    FACTORS,
    FAULTS_AT_REST,
    code_of,
    pairs_of,
    pairwise_layouts,
)

CARD = "explorer = bk.DesignCard('chat', 'mixed-language', window=8_192)\nexplorer"
MOST_PAGES = 60
#: How wide the sliders are that are shown, in pixels.
SLIDERS = """[...document.querySelectorAll(".bk-controls input[type=range]")].map(node => node.clientWidth)
    .filter(width => width)"""


@pytest.fixture(scope="module")
def card(
    chromium: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Open one card, for all layouts that are looked at."""
    path = written(tmp_path_factory.mktemp("pairs"), CARD)
    (server.root / "notebooks" / "pairs.ipynb").write_text(path.read_text())
    with opened_tab(chromium, server) as page:
        notebook = Notebook(page, server, "pairs.ipynb")
        notebook.resize(1_600, 1_000)
        page.evaluate("jupyterapp.shell.collapseLeft()")
        notebook.run_all()
        yield notebook
        notebook.shut_down()


def test_few_pages_have_every_pair() -> None:
    layouts = pairwise_layouts()
    assert len(layouts) <= MOST_PAGES
    met = set().union(*map(pairs_of, layouts))
    assert len(met) == sum(
        len(one) * len(other)
        for name, one in FACTORS.items()
        for after, other in FACTORS.items()
        if name < after
    )


def test_nothing_leaves_its_card_is_cut_off_or_lies_over_another(card: Notebook) -> None:
    faults = []
    for layout in pairwise_layouts():
        card.set_theme(str(layout["theme"]))
        card.execute(code_of(layout))
        card.page.evaluate(CONTAINER, layout["width"])
        title = PRESETS[str(layout["preset"])].title.partition(":")[0]
        expect(card.page.locator(".bk-over")).to_contain_text(f"{title}, {layout['model']}, ")
        faults += [f"{layout}: {fault}" for fault in card.page.evaluate(FAULTS_AT_REST)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("window", [8_192, 2_000_000])
def test_the_table_of_errors_gives_way_to_long_numbers(card: Notebook, window: int) -> None:
    """On 0.2.0 "planned" lay over a heading at 1,300 pixels, and "277 of the pool" took two lines at 1,100."""
    card.execute(code_of({"model": "gpt-4o", "preset": "chat", "state": "as it opens"}))
    card.execute(f"explorer.set(window={window})")
    expect(card.page.locator(".bk-over")).to_contain_text(f"gpt-4o, {window:,} tokens")
    for width in (560, 1_010, 1_100, 1_160, 1_300, 1_350):
        card.page.evaluate(CONTAINER, width)
        assert card.page.evaluate(FAULTS_AT_REST) == [], width
        heights = card.page.locator(".bk-strip-table td:last-child").evaluate_all(
            "nodes => nodes.map(n => n.clientHeight)"
        )
        assert max(heights) < 30, (width, heights)


def test_a_long_verdict_goes_on_in_a_second_line(card: Notebook) -> None:
    """Found by the command that looks at every combination: at 640 pixels it lay over "pool 243,927"."""
    layout = {"model": "llama-3.1-70b", "preset": "chat", "state": "a large window"}
    card.execute(code_of(layout))
    expect(card.page.locator(".bk-over")).to_contain_text("llama-3.1-70b, 2,000,000 tokens")
    for width in (640, 720):
        card.page.evaluate(CONTAINER, width)
        assert card.page.evaluate(FAULTS_AT_REST) == [], width


@pytest.mark.parametrize(
    ("width", "least"),
    [
        (480, 0.45),
        (560, 0.8),
        (640, 0.8),
        (720, 0.5),
        (780, 0.5),
        (939, 0.5),
        (940, 0.8),
        (1024, 0.8),
    ],
)
def test_a_slider_is_as_wide_as_the_controls(card: Notebook, width: int, least: float) -> None:
    """On 0.2.0 it was 39 pixels long, so that a pixel was 2.6 % of the window."""
    card.page.evaluate(CONTAINER, width)
    row = card.place_of(card.page.locator(".bk-controls .bk-slide").first)
    slider = card.place_of(card.page.locator(".bk-controls .bk-slide input[type=range]").first)
    assert slider["width"] > least * row["width"]
    assert slider["width"] > 120


@pytest.mark.parametrize(
    "explorer",
    [
        "BudgetExplorer('chat', 'support-chat', window=16_384)",
        "AccuracyExplorer()",
        "ConversationExplorer()",
    ],
)
def test_other_explorers_keep_their_text_too(
    notebook: Callable[..., Notebook], tmp_path: Path, explorer: str
) -> None:
    own = notebook(written(tmp_path, f"bk.{explorer}"))
    own.resize(1_600, 1_000)
    own.page.evaluate("jupyterapp.shell.collapseLeft()")
    own.run_all()
    faults = []
    for width in FACTORS["width"]:
        own.page.evaluate(CONTAINER, width)
        faults += [f"{width}: {fault}" for fault in own.page.evaluate(FAULTS_AT_REST)]
        # A pixel of a slider is at most a hundredth of what it moves, also where the reader stands beside it.
        sliders = own.page.evaluate(SLIDERS)
        faults += [f"{width}: a slider of {size} pixels" for size in sliders if size < 100]
    assert not faults, "\n".join(faults)
