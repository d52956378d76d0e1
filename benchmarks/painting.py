"""From a key on a slider to what is painted, and from Run All to what is seen: the explorer beside a plain widget.

The plain one is what somebody writes without an explorer: a slider, `interactive_output`, and one FigureWidget with the
sections of the same budget on the same conversation. Both stand in one JupyterLab and are pressed in turn, so that a
slow moment of the machine strikes both. Painted is what stands on the screen one task after the frame it was drawn in.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.browser import NAMED, opened, started
from benchmarks.measure import Row, machine, readable, row

if TYPE_CHECKING:
    from tests.browser.conftest import Notebook

PRESSES, STARTS = 50, 5
PAUSE = 300  # milliseconds after each press, for what comes after what is painted first
#: How long the explorer may take, as a share of the plain one's median.
PAINT, START = 0.7, 0.5
EXPLORER = "explorer = bk.BudgetExplorer('chat', 'support-chat', window=64_000)\nexplorer"
#: The slider "output", of ipywidgets or of an explorer.
SLIDER = ".noUi-handle, [data-control=line_output] input[type=range]"
PLAIN = """import ipywidgets as widgets
import plotly.graph_objects as go

trace = bk.load_trace("support-chat")
start = bk.presets.chat(64_000)
items = trace.items(len(trace.turns), bk.counter("gpt-4o"), start.roles)
figure = go.FigureWidget(go.Bar(x=list(start.sections), y=[0] * len(start.sections)))
slider = widgets.FloatSlider(15, min=0, max=100, step=0.5, description="output")

def show(output):
    plan = bk.fit(start.assign(output=int(output / 100 * start.window)), items)
    with figure.batch_update():
        figure.data[0].y = [grant.granted for grant in plan.grants]
        figure.layout.title.text = f"{plan.remainder:,} tokens for the conversation, {plan.free:,} free"

widgets.VBox([slider, figure, widgets.interactive_output(show, {"output": slider})])"""
NOTEBOOKS = {
    name: (f"import budgetkit as bk\n{code}",)
    for name, code in (("explorer", EXPLORER), ("plain", PLAIN))
}
#: What is waited for after Run All, and what is painted anew after a press.
SEEN = {
    "explorer": (".bk-explorer", NAMED),
    "plain": (
        ".js-plotly-plot",
        '[...document.querySelectorAll(".js-plotly-plot .bars .point")].length > 0',
    ),
}
# The first change after a key is that of the key figures, in the task in which the bar is drawn too; a figure of
# plotly's says by an event that it is drawn.
WATCH = """() => {
    const bench = window.bench = { pressed: 0, isWaiting: false, paints: [] };
    const isDrawn = () => {
        if (!bench.isWaiting) return;
        bench.isWaiting = false;
        const from = bench.pressed;
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => bench.paints.push(performance.now() - from);
            port2.postMessage(0);
        });
    };
    document.addEventListener("keydown", () => { bench.pressed = performance.now(); bench.isWaiting = true; }, true);
    const figures = document.querySelector(".bk-kpis");
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    if (figures) new MutationObserver(isDrawn).observe(figures, all);
    else document.querySelector(".js-plotly-plot").on("plotly_afterplot", isDrawn);
}"""


def rows() -> Iterator[Row]:
    """Give both figures of the explorer and of the plain one; nothing where there is no Chromium."""
    if shutil.which("chromium") is None:
        return
    with opened(NOTEBOOKS) as notebooks:
        seconds = _pressed(notebooks)
        yield from _beside("slider to paint", seconds, PAINT)
        starts: dict[str, list[float]] = {name: [] for name in notebooks}
        for _ in range(STARTS):
            for name, notebook in notebooks.items():
                starts[name].append(started(notebook, *SEEN[name]))
        yield from _beside("Run All to what is seen", starts, START)


def _pressed(notebooks: dict[str, Notebook]) -> dict[str, list[float]]:
    """Press a key on the slider of each in turn; return the seconds from the key to what is painted."""
    for notebook in notebooks.values():
        notebook.page.bring_to_front()
        notebook.page.wait_for_selector(".js-plotly-plot .main-svg")
        notebook.page.wait_for_timeout(1_000)
        notebook.page.evaluate(WATCH)
    for i in range(PRESSES):
        for notebook in notebooks.values():
            page = notebook.page
            page.bring_to_front()
            page.locator(SLIDER).first.focus()
            page.wait_for_timeout(PAUSE)
            page.keyboard.press("ArrowRight" if i < PRESSES // 2 else "ArrowLeft")
            page.wait_for_function(f"bench.paints.length > {i}")
    milliseconds = {
        name: notebook.page.evaluate("bench.paints") for name, notebook in notebooks.items()
    }
    return {name: [time / 1_000 for time in times] for name, times in milliseconds.items()}


def _beside(name: str, seconds: dict[str, list[float]], share: float) -> Iterator[Row]:
    """Sum up the plain one, and the explorer beside it."""
    plain = statistics.median(seconds["plain"])
    yield row("painting", f"{name}, plain", seconds["plain"])
    yield row("painting", f"{name}, explorer", seconds["explorer"], share * plain)


def main() -> None:
    """Print median, 95th percentile and the ratio of the medians; end with 1 where a target is missed."""
    print(machine("budgetkit", "jupyterlab", "ipywidgets", "plotly"))
    print(
        "| what | median | p95 | repeats | beside plain | target | |\n| --- | --: | --: | --: | --: | --: | --- |"
    )
    plain = None
    is_missed = False
    for figure in rows():
        if figure.met is None:
            plain = figure
        assert plain is not None, "the plain one comes first"
        ratio = figure.median / plain.median
        target = "" if figure.met is None else f"{PAINT if 'paint' in figure.name else START}"
        verdict = {None: "", True: "met", False: "missed"}[figure.met]
        is_missed = is_missed or figure.met is False
        times = f"{readable(figure.median)} | {readable(figure.p95)} | {figure.repeats}"
        print(f"| {figure.name} | {times} | {ratio:.2f} | {target} | {verdict} |", flush=True)
    sys.exit(is_missed)


if __name__ == "__main__":
    main()
