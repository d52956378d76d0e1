"""A report opened from a file, with the network off: nothing is asked for, and its slider goes through the requests."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import budgetkit as bk
from tests.browser.conftest import PATIENCE

#: What runs out of the page, or out of its own box.
OVERFLOWING = """() => {
    const runsOut = (node) => {
        const { left, right } = node.getBoundingClientRect();
        return right > innerWidth || left < 0 || (node.clientWidth && node.scrollWidth > node.clientWidth + 1);
    };
    const boxes = [...document.querySelectorAll("main, .bk-kpi, .bk-kpi *, .bk-card, .bk-strip-table *")];
    return boxes.filter(runsOut).map((node) => node.outerHTML.slice(0, 80));
}"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    policies = ["oldest first", "summarise", "tool results first"]
    bk.ConversationExplorer("coding-agent", window=16_000, policies=policies).save(
        folder / "conversation.html"
    )
    bk.BudgetExplorer("chat", "support-chat", window=8_192).save(folder / "budget.html")
    bk.DesignCard("chat", "mixed-language", window=8_192).save(folder / "card.html")
    odd = "</script><img src=x onerror=alert(1)> $x^2$ \x00\u202e <b>"
    said = [
        {"role": ("user", "assistant")[i % 2], "content": odd * (i + 1), "name": odd}
        for i in range(12)
    ]
    trace = bk.Trace(odd, tuple(map(bk.Message, said)))
    bk.ConversationExplorer(trace, policies={odd: "oldest first", "b": "last turns"}).save(
        folder / "odd.html"
    )
    return folder


@pytest.fixture
def opened(chromium: Browser, reports: Path) -> Callable[..., AbstractContextManager[Page]]:
    @contextmanager
    def open_report(name: str, width: int = 1_440, **options: object) -> Iterator[Page]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            offline=True,
            **options,  # type: ignore[arg-type]
        )
        context.set_default_timeout(1_000 * PATIENCE)
        page = context.new_page()
        told: list[str] = []
        address = (reports / f"{name}.html").as_uri()
        context.on(
            "request", lambda asked: None if asked.url == address else told.append(asked.url)
        )
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.goto(address)
        yield page
        context.close()
        assert told == [], "a report asks for nothing and complains of nothing"

    return open_report


def scrub(page: Page, to: int) -> None:
    page.locator(".bk-scrub input").fill(str(to))


def test_going_to_a_request_moves_all_that_belongs_to_it(
    opened: Callable[..., AbstractContextManager[Page]],
) -> None:
    with opened("conversation") as page:
        expect(page.locator(".bk-scrub output")).to_have_text("request 85 (turn 27) of 27 turns")
        line = page.locator(".bk-figure[data-by=request] .here").first
        before = float(line.get_attribute("x1") or 0)
        page.locator("details[data-table=timeline] summary").click()
        scrub(page, 40)
        expect(page.locator(".bk-scrub output")).to_have_text("request 40 (turn 13) of 27 turns")
        expect(page.locator("#bk-messages h2")).to_have_text("Messages at request 40 (turn 13)")
        assert float(line.get_attribute("x1") or 0) < before
        expect(page.locator("tr.bk-now td").first).to_have_text("40")
        expect(page.locator(".bk-is-gone").first).to_be_visible()
        page.locator(".bk-scrub input").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".bk-scrub output")).to_have_text("request 39 (turn 13) of 27 turns")
        figure = page.locator(".bk-figure[data-by=request] svg").first
        figure.click(position={"x": 200, "y": 150})
        expect(page.locator(".bk-scrub output")).not_to_have_text(
            "request 39 (turn 13) of 27 turns"
        )


def test_a_budget_goes_through_its_turns(
    opened: Callable[..., AbstractContextManager[Page]],
) -> None:
    with opened("budget") as page:
        expect(page.get_by_role("slider", name="Turn")).to_be_visible()
        scrub(page, 1)
        expect(page.locator("#bk-messages li")).to_have_count(2)
        scrub(page, 75)
        # On 0.1.0 only those that the turn itself brings.
        expect(page.locator("#bk-messages li")).to_have_count(30)


def test_no_text_is_taken_for_markup(opened: Callable[..., AbstractContextManager[Page]]) -> None:
    with opened("odd") as page:
        scrub(page, 3)
        expect(page.locator("#bk-messages h2")).to_have_text("Messages at turn 3")
        assert page.locator("img").count() == 0
        # A message is drawn when it comes into sight.
        message = page.locator("#bk-messages").get_by_text(
            "</script><img src=x onerror=alert(1)> $x^2$"
        )
        message.first.scroll_into_view_if_needed()
        expect(message.first).to_contain_text(
            "</script><img src=x onerror=alert(1)> $x^2$", use_inner_text=True
        )


@pytest.mark.parametrize("name", ["conversation", "budget"])
@pytest.mark.parametrize(("width", "scheme"), [(1_440, "light"), (640, "dark")])
def test_it_is_whole_and_named_at_any_width_and_in_both_themes(
    opened: Callable[..., AbstractContextManager[Page]], name: str, width: int, scheme: str
) -> None:
    with opened(name, width, color_scheme=scheme) as page:
        scrub(page, 20)
        page.locator("details summary").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(page).response["violations"]
        assert [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found] == []


@pytest.mark.usefixtures("chromium")
def test_a_figure_is_saved_as_a_png_of_two_pixels_for_one(tmp_path: Path) -> None:
    budget = bk.presets.chat(8_192)
    bk.figures.waterfall.save(tmp_path / "left.png", budget)
    content = (tmp_path / "left.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    assert f'width="{width // 2}" height="{height // 2}"' in bk.figures.waterfall.svg(budget)
    assert len(content) > 10_000, "something is drawn"


@pytest.mark.parametrize("width", [390, 1_200])
def test_a_card_keeps_its_errors_as_a_picture_and_no_box_overflows(
    opened: Callable[..., AbstractContextManager[Page]], width: int
) -> None:
    """On 0.2.0 the saved card had a folded table for them, and boxes ran out of a page of 390 pixels."""
    with opened("card", width) as page:
        card = page.locator(".bk-errors")
        expect(card.locator("h2")).to_have_text("How far off is chars/4?")
        expect(card.locator(".bk-strip-table tbody tr")).to_have_count(6)
        bars = card.locator(".bk-reach")
        assert all(bar.bounding_box()["width"] > 100 for bar in bars.all())  # type: ignore[index]
        expect(card.locator("tbody tr").first).to_contain_text("takes 277 from the pool")
        assert page.evaluate(OVERFLOWING) == []
