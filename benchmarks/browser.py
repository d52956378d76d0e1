"""Real JupyterLab: from a key on a slider, or a move of a handle, to what is painted."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Row, row

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Notebook

PRESSES, MOVES = 60, 90
TRIES = 5
DROPPED = 5_000_000  # bytes
CELLS = (
    "import budgetkit as bk\nexplorer = bk.BudgetExplorer('chat', 'support-chat', window=64_000)\nexplorer",
    "explorer.plan",
)
# What is painted is known one task after the frame in which it was drawn.
WATCH = """() => {
    const bench = window.bench = { asked: 0, bar: [], charts: 0, moved: 0, drag: [] };
    const painted = (then) => requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => then(performance.now());
        port2.postMessage(0);
    });
    document.addEventListener("keydown", () => { bench.asked = performance.now(); bench.waits = true; }, true);
    document.addEventListener("pointermove", () => { bench.moved ||= performance.now(); }, true);
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(() => {
        if (!bench.waits) return;
        bench.waits = false;
        const from = bench.asked;
        painted((now) => bench.bar.push(now - from));
    }).observe(document.querySelector(".bk-kpis"), all);
    new MutationObserver(() => {
        if (!bench.moved) return;
        const from = bench.moved;
        bench.moved = 0;
        painted((now) => bench.drag.push(now - from));
    }).observe(document.querySelector("svg.bk-bar"), all);
    for (const plot of document.querySelectorAll(".js-plotly-plot")) {
        plot.on("plotly_afterplot", () => { bench.charts = performance.now() - bench.asked; });
    }
}"""

# From a deed to the frame in which what it leads to stands on the page, in milliseconds.
SINCE = """async (text) => {
    const from = performance.now(), frame = () => new Promise(requestAnimationFrame);
    const isThere = () => THERE;
    DEED
    while (!isThere()) await frame();
    await frame();
    return performance.now() - from;
}"""
#: The source that an explorer names has come.
NAMED = '[...document.querySelectorAll(".bk-source")].some(node => node.textContent.includes(text))'
RUN = "jupyterapp.commands.execute('notebook:run-all-cells');"
DROP = """const data = new DataTransfer();
    data.items.add(new File([window.dropped], text));
    const dropped = new DragEvent("drop", { dataTransfer: data, bubbles: true });
    document.querySelector(".bk-explorer").dispatchEvent(dropped);"""


def rows() -> Iterator[Row]:
    """Give the figures of one explorer on a shipped conversation; nothing where there is no Chromium."""
    if shutil.which("chromium") is None:
        return
    with opened({"bench": CELLS}) as notebooks:
        notebook = notebooks["bench"]
        page = notebook.page
        page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length > 1")
        page.wait_for_timeout(1_000)
        page.evaluate(WATCH)
        bar, charts = _pressed(notebook)
        yield row("browser", "slider to paint, bar and key figures", bar, 0.033, limit_p95=0.060)
        yield row("browser", "slider to paint, all charts", charts, 0.150, limit_p95=0.250)
        yield row("browser", "drag of a handle to repaint", _dragged(page), 0.033)
        yield row("browser", "a dropped file of 5 MB to its key figures", [*_dropped(page)], 1.0)
        yield row(
            "browser",
            "Run All to the first explorer",
            [started(notebook) for _ in range(TRIES)],
            1.5,
        )


def _pressed(notebook: Notebook) -> tuple[list[float], list[float]]:
    page, charts = notebook.page, []
    notebook.slider("output").focus()
    for i in range(PRESSES):
        page.keyboard.press("ArrowRight" if i < PRESSES // 2 else "ArrowLeft")
        page.wait_for_function(f"bench.bar.length > {i}")
        page.wait_for_timeout(400)
        charts.append(page.evaluate("bench.charts") / 1_000)
    return _seconds(page, "bench.bar"), charts


def _dragged(page: Page) -> list[float]:
    box = page.locator("svg.bk-bar [role=slider]").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate("bench.drag = []")
    for i in range(MOVES):
        page.mouse.move(x + i, y)
        page.wait_for_timeout(16)
    page.mouse.up()
    page.wait_for_timeout(300)
    return _seconds(page, "bench.drag")


def started(notebook: Notebook, selector: str = ".bk-explorer", there: str = NAMED) -> float:
    """Begin a new kernel and run all cells in it; return the seconds until what is waited for is painted."""
    page = notebook.page
    page.bring_to_front()
    page.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    page.evaluate("jupyterapp.shell.activateById(jupyterapp.shell.currentWidget.id)")
    notebook.wait()
    notebook.command("notebook:clear-all-cell-outputs")
    page.wait_for_function("selector => !document.querySelector(selector)", arg=selector)
    page.wait_for_timeout(1_000)
    milliseconds: float = page.evaluate(
        SINCE.replace("DEED", RUN).replace("THERE", there), "support-chat"
    )
    return milliseconds / 1_000


def _dropped(page: Page) -> Iterator[float]:
    """Drop conversations of one size on the explorer, each of other words."""
    from budgetkit.trace import load_trace

    words = " ".join(message.text for message in load_trace("support-chat").messages).split()
    for seed in range(TRIES):
        draw, lines, size = random.Random(seed), list[str](), 0
        while size < DROPPED:
            said = " ".join(draw.choices(words, k=120))
            lines.append(
                json.dumps({"role": ("user", "assistant")[len(lines) % 2], "content": said})
            )
            size += len(lines[-1].encode()) + 1
        page.evaluate("text => { window.dropped = text; }", "\n".join(lines))
        yield (
            page.evaluate(
                SINCE.replace("DEED", DROP).replace("THERE", NAMED), f"dropped-{seed}.jsonl"
            )
            / 1_000
        )


def _seconds(page: Page, what: str) -> list[float]:
    found: list[float] = page.evaluate(what)
    return [milliseconds / 1_000 for milliseconds in found]


@contextmanager
def opened(notebooks: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Notebook]]:
    """Open notebooks of these cells in one JupyterLab, each in a tab of its own, and run them."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import (
        BROWSER_ARGUMENTS,
        Notebook,
        lab_command,
        lab_environment,
        listening,
    )

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home, root = Path(folder), Path(folder) / "root"
        (root / "notebooks").mkdir(parents=True)
        for name, cells in notebooks.items():
            (root / "notebooks" / f"{name}.ipynb").write_text(json.dumps(_notebook(cells)))
        process = subprocess.Popen(
            lab_command(root), env=lab_environment(home), stderr=subprocess.DEVNULL
        )
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=BROWSER_ARGUMENTS
        )
        try:
            server = listening(process, home, root)
            running = {}
            for name in notebooks:
                page = browser.new_page(viewport={"width": 1800, "height": 980})
                running[name] = Notebook(page, server, f"{name}.ipynb")
                running[name].run_all()
            yield running
        finally:
            browser.close()
            process.terminate()
            process.wait(30)


def _notebook(sources: Sequence[str]) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "source": code,
            "outputs": [],
            "execution_count": None,
        }
        for i, code in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
