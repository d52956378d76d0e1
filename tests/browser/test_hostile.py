"""Markup and code in texts and names are shown as the text they are, and run nowhere: not in the explorer, not in a
table, not in a figure, not in what is copied.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Notebook
from tests.browser.explored import explored, written

IMAGE = '<img src=x onerror="window.hit = 1">'
SCRIPT = "</script><script>window.hit = 2</script>"
LINK = '<a href="javascript:window.hit = 3">here</a>'
CODE = "'); __import__('builtins').hit = 4 #"
STYLE = "<style>* { display: none }</style>"
HOSTILE = (IMAGE, SCRIPT, LINK, CODE, STYLE)

# What would be there had anything been read as markup, here or in a frame of a figure.
TRACES = """() => [document, ...[...document.querySelectorAll("iframe")].map(frame => frame.contentDocument)]
    .filter(Boolean)
    .flatMap(page => [
        ...page.querySelectorAll("img[src=x], a[href^=javascript]"),
        ...[...page.querySelectorAll("a")].filter(link => /javascript/.test(link.getAttribute("xlink:href"))),
        ...[...page.querySelectorAll("style, script")].filter(node => /^window.hit|^[*] { disp/.test(node.textContent)),
        ...(page.defaultView.hit === undefined ? [] : [page.body]),
    ])
    .map(node => node.outerHTML.slice(0, 200))"""


def conversation(folder: Path) -> Path:
    """Write messages, names and results of tools, an id and a file name that are all hostile."""
    call = {
        "id": IMAGE,
        "type": "function",
        "function": {"name": SCRIPT, "arguments": json.dumps({LINK: IMAGE})},
    }
    said = [
        {"role": "system", "content": SCRIPT, "name": IMAGE},
        *({"role": "user", "content": f"{text} " * 20, "name": text} for text in HOSTILE),
        {"role": "assistant", "content": LINK, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": IMAGE, "content": STYLE},
    ]
    path = folder / "<img src=x onerror=hit()>.jsonl"
    path.write_text(
        json.dumps({"id": IMAGE, "messages": said, "contexts": [{"text": LINK, "source": IMAGE}]})
        + "\n"
    )
    return path


def cells(path: Path) -> tuple[str, ...]:
    """Say what is shown: the explorers, a plan and its tables, figures of them."""
    lines = ", ".join(f"bk.Allocation({name!r}, 300)" for name in HOSTILE)
    documents = ", ".join(
        f"bk.corpora.Document({text!r} * 9, {text!r}, {text!r}, {text!r}, {text!r})"
        for text in HOSTILE
    )
    roles = {
        "system": IMAGE,
        "user": SCRIPT,
        "assistant": LINK,
        "tool": CODE,
        "context": STYLE,
        "tools": STYLE,
    }
    budget = f"bk.Budget(8_192, [bk.Reserve('<b>output', 900)], [{lines}], roles={roles!r}, name={IMAGE!r})"
    return (
        f"budget = {budget}\nexplorer = bk.BudgetExplorer(budget, {str(path)!r}, model='gpt-4o')\nexplorer",
        "plan = explorer.plan\ndisplay(plan, plan.frame(), plan.decisions.frame())",
        f"trace = bk.load_trace({str(path)!r})\ndisplay(trace, trace.demand(bk.counter('chars/4'), budget.roles))",
        "display(bk.figures.waterfall(plan), bk.figures.sections(plan))",
        f"texts = [{documents}]\nbk.AccuracyExplorer(corpus=bk.corpora.Corpus(tuple(texts)))",
        f"bk.ConversationExplorer({str(path)!r}, window=8_192)",
    )


def copied_as(page: Page, name: str) -> str:
    """Choose a format and press Copy."""
    takeaway = page.locator(".bk-takeaway").first
    takeaway.get_by_role("button", name=name).click()
    takeaway.get_by_role("button", name="Copy").click()
    expect(page.locator(".bk-answer").first).to_contain_text(f"Copied as {name}.")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_markup_in_texts_and_names_is_shown_as_text_and_code_in_them_never_runs(
    notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    lab = explored(notebook(written(tmp_path, *cells(conversation(tmp_path)))))
    page = lab.page
    budget, measured, said = (page.locator(".bk-explorer").nth(place) for place in range(3))
    for name in ("<b>output", *HOSTILE):
        expect(budget.locator(".bk-legend")).to_contain_text(name)
    expect(budget.locator(".bk-source")).to_contain_text("<img src=x onerror=hit()>.jsonl")
    expect(measured.locator(".bk-reader")).to_contain_text(
        re.compile("|".join(map(re.escape, HOSTILE)))
    )
    for text in HOSTILE:
        expect(said.locator(".bk-reader")).to_contain_text(text)
    expect(page.locator(".jp-RenderedPlotly .nsewdrag")).to_have_count(2)
    expect(page.locator(".jp-RenderedHTML table.dataframe")).to_have_count(3)
    lab.wait_for_charts()  # of all three
    folded = ".bk-explorer details:not([open]) > summary"
    page.evaluate(f"document.querySelectorAll('{folded}').forEach(summary => summary.click())")
    lab.resize(1700)  # a narrow page has no legend
    budget.locator(".bk-legend li").nth(1).hover()
    for figure in page.locator(".jp-RenderedPlotly .nsewdrag").all():
        figure.hover(force=True)
    assert (
        page.locator(".jp-RenderedPlotly .main-svg.hl, .jp-RenderedPlotly .infolayer").count() >= 2
    )
    lab.shoot("hostile")
    assert page.evaluate(TRACES) == []

    made = copied_as(page, "Python")
    lab.execute(f"exec({made!r}, copied := {{}})\nassert copied['budget'] == budget")
    lab.execute("assert not hasattr(__import__('builtins'), 'hit')")

    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", IMAGE + LINK)
    assert len(page.evaluate(TRACES)) >= 2, "had any been read as markup, it would have been found"


BEYOND = """() => [...document.querySelectorAll(".bk-view :is(h3, .bk-note, .bk-facts, .bk-knob)")]
    .filter(node => (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).textOverflow !== "ellipsis")
        || (node.matches(".bk-knob")
        && node.getBoundingClientRect().left < node.closest(".bk-card").getBoundingClientRect().left))
    .map(node => node.outerHTML.slice(0, 200))"""


def test_many_sections_and_long_names_stay_in_their_cards(
    notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    document = "bk.corpora.Document('Hello ' * n, 'k' * 300, 'l' * 300, 'n' * 300)"
    cells = (
        "lines = [bk.Allocation(f'part {n}', 100) for n in range(45)]\n"
        "explorer = bk.BudgetExplorer(bk.Budget(9_000, (), lines))\nexplorer",
        f"bk.AccuracyExplorer(corpus=bk.corpora.Corpus(tuple({document} for n in range(1, 45))))",
    )
    lab = explored(notebook(written(tmp_path, *cells)))
    expect(lab.page.locator(".bk-facts", has_text="k" * 300).first).to_be_visible()
    assert lab.page.evaluate(BEYOND) == []
