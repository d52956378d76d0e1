"""The design card in real JupyterLab: one hand moves a reserve and an allocation, and all that hangs on them moves."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Notebook
from tests.browser.explored import expect_kpi, written

CARD = 'card = bk.DesignCard("chat", "mixed-language", window=8_192)\ncard'
NOT_WIDER = "width => document.querySelector('.jp-NotebookPanel').getBoundingClientRect().right <= width"
KINDS = ("code", "CJK", "prose")


@pytest.fixture
def card(notebook: Callable[..., Notebook], tmp_path: Path) -> Notebook:
    found = notebook(written(tmp_path, CARD))
    found.page.evaluate("jupyterapp.shell.collapseLeft()")
    found.run_all()
    expect_kpi(found.page, "pool", "1,640")
    expect(found.page.locator(".bk-strip-table tbody tr")).to_have_count(6)
    return found


def strip(card: Notebook) -> list[list[str]]:
    """Read the table of errors: kind, where, error, in truth, and what that is."""
    rows = card.page.locator(".bk-strip-table tbody tr").all()
    return [[text for i, text in enumerate(row.locator("th, td").all_text_contents()) if i != 2] for row in rows]


def test_a_reserve_and_an_allocation_move_pool_history_and_errors_together(card: Notebook) -> None:
    page = card.page
    first = strip(card)
    assert [row[0] for row in first] == ["Code, data", "Code, data", "CJK", "CJK", "Prose", "Prose"]
    assert all(row[2].startswith("−") and row[2].endswith(" %") for row in first)
    card.slider("safety").focus()
    for _ in range(16):
        page.keyboard.press("ArrowRight")
    expect_kpi(page, "pool", "985")  # 8 % of 8,192 are 655
    expect_kpi(page, "remainder", "1,638")
    expect(page.locator(".bk-strip-table tbody tr").first).to_contain_text("277 from safety")
    reserved = strip(card)
    card.slider("conversation").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect_kpi(page, "remainder", "2,048")
    expect_kpi(page, "pool", "575")
    expect(page.locator(".bk-sentence")).to_contain_text("may take 2,048 tokens")
    expect(page.locator(".bk-scale")).to_contain_text("budget 2,048")
    allocated = strip(card)
    for before, between, after in zip(first, reserved, allocated, strict=True):
        assert before[2] == between[2] == after[2]  # the share is the counter's; what it means is the budget's
        assert before[3] == between[3] != after[3]
        assert before[4] != after[4]
    assert [row[4].split(" ", 1)[1] for row in first] == [
        *("from the pool", "from the pool", "too many", "too many", "from the pool", "from the pool"),
    ]


def test_the_card_stands_in_one_view_and_is_accessible(card: Notebook) -> None:
    page = card.page
    page.set_viewport_size({"width": 1440, "height": 900})
    for selector in (".bk-headline", ".bk-kpis", ".bk-bar", ".bk-errors", ".bk-controls"):
        expect(page.locator(selector)).to_be_in_viewport(ratio=1)
    for theme in ("light", "dark"):
        card.set_theme(theme)
        assert card.violations(".bk-explorer") == []
    for width in (1024, 640):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(NOT_WIDER, arg=width)
        over = "[...document.querySelectorAll('.bk-strip-table, .bk-kpis, .bk-controls .bk-row')]"
        assert page.evaluate(f"{over}.every(node => node.scrollWidth <= node.clientWidth + 1)")
        assert card.violations(".bk-explorer") == []


def test_an_error_is_told_to_those_who_do_not_see_the_bars(card: Notebook) -> None:
    table = card.page.get_by_role("table", name="How far off is chars/4?")
    expect(table.get_by_role("columnheader", name="error")).to_be_visible()
    expect(table.get_by_role("rowheader", name="CJK")).to_have_count(2)
