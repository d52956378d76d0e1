"""Take the picture of the card for README and pictures of every explorer's states, in a real JupyterLab.

python scripts/shoot_explorer.py docs/images [name ...]     the pictures of the documentation
python scripts/shoot_explorer.py --page FOLDER [state ...]  every state at every width in both themes, as one page;
    it fails where text leaves its card, is cut off or lies over another
python scripts/shoot_explorer.py --layouts                  the card's combinations of model, preset, state, width and
    theme alone, without pictures
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.conftest import (
    BROWSER_ARGUMENTS,
    NO_NEWS,
    Notebook,
    Server,
    lab_command,
    lab_environment,
    listening,
)
from tests.browser.layouts import CONTAINER, FAULTS_AT_REST, code_of, every_layout

CARD = 'explorer = bk.DesignCard("chat", "mixed-language", window=8_192)'
CELL = "import budgetkit as bk\n{}\nexplorer"
CHAT = 'explorer = bk.BudgetExplorer("chat", "support-chat", window=16_384)'
OVER = CHAT + '\nexplorer.move("output", "50%")'
REPLAYED = """explorer = bk.ConversationExplorer(
    "coding-agent", bk.presets.working_memory(16_000, output=2_000, history_floor=0),
    ["down to a mark", "oldest first", "tool results first"])
explorer.set(request=60)"""
TWO = """words = ["Hi", "Hello, how can I help?", "What is two and two?", "Four."]
messages = [{"role": ("user", "assistant")[i % 2], "content": said} for i, said in enumerate(words)]
"""
MANY = """messages = [{"role": ("user", "assistant")[i % 2], "content": f"message {i} of many"} for i in range(10_000)]
"""
LONG = """names = ["instructions_of_the_whole_department", "Donaudampfschifffahrtsgesellschaftskapitaen", "history"]
lines = [bk.Allocation(name, 3_000) for name in names]
explorer = bk.BudgetExplorer(bk.Budget(16_384, [bk.Reserve("output", 2_000)], lines, undeclared="pool"))"""
CUT = """lines = [bk.Allocation("system", 300, granularity="token")]
lines += [bk.Allocation("history", 1_500, keep="newest", granularity="token")]
roles = {"system": "system", "user": "history", "assistant": "history", "tool": "history"}
budget = bk.Budget(4_096, [bk.Reserve("output", 800)], lines, undeclared="pool", roles=roles)
explorer = bk.BudgetExplorer(budget, "support-chat")"""
EVERY = """from budgetkit.lab.explorers.conversation.settings import CHOICES
explorer = bk.ConversationExplorer(policies=list(CHOICES))"""
GONE = "jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()"
# name: what is explored, theme, width and height of the page in pixels
SHOTS = {
    "card-light": (CARD, "light", 1360, 1500),
}
#: The last part that a picture shows, of a wide page.
DOWN_TO = {"card": ".bk-errors"}
#: Every state that somebody meets: what is explored, by name.
STATES = {
    "card": CARD,
    "card with a safety reserve": CARD + '\nexplorer.move("safety", "8%")',
    "card that claims too much": CARD + '\nexplorer.move("output", "50%")',
    "card whose history has the rest": 'explorer = bk.DesignCard("working_memory", "coding-agent", window=16_384)',
    "card without a conversation": 'explorer = bk.DesignCard("chat", model="claude-haiku-4-5")',
    "card without a remainder": 'explorer = bk.DesignCard("agent_prompt", "support-chat", window=8_192)',
    "budget": CHAT,
    "budget that claims too much": OVER,
    "budget pinned": CHAT + '\nexplorer.pin()\nexplorer.move("conversation", "40%")',
    "budget without a conversation": 'explorer = bk.BudgetExplorer("memory_engine")',
    "budget whose cuts run through the words": CUT,
    "budget with names that are too long": LONG,
    "budget of two turns": TWO + 'explorer = bk.BudgetExplorer("chat", messages)',
    "budget of 10,000 messages": MANY
    + 'explorer = bk.BudgetExplorer("chat", messages, window=128_000)',
    "budget with an error": CHAT + '\nexplorer.open("nowhere.jsonl")',
    "budget whose kernel is gone": CHAT,
    "accuracy": "explorer = bk.AccuracyExplorer()",
    "accuracy with an error": 'explorer = bk.AccuracyExplorer()\nexplorer.set(counter="abacus")',
    "pruning": REPLAYED,
    "pruning as it opens": "explorer = bk.ConversationExplorer()",
    "pruning by every policy": EVERY,
    "pruning of two turns": TWO + "explorer = bk.ConversationExplorer(messages)",
    "app": 'explorer = bk.App("mixed-language", window=8_192)',
}
WIDTHS = {
    1440: 2600,
    1024: 3800,
    640: 5400,
}  # pixels: how wide, and how high a page of that width may be
ROOM = 8  # pixels
RUN_IN_KERNEL = """code => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel
    .requestExecute({ code }).done.then(reply => {
        if (reply.content.status !== "ok") throw new Error(reply.content.evalue);
    })"""
SET_THEME = (
    "theme => jupyterapp.commands.execute('apputils:change-theme', { theme }).then(() => {})"
)
# What JupyterLab draws around the explorer: hidden where it stands, so that nothing moves.
BARE = """.jp-Cell-inputWrapper, .jp-Cell-inputWrapper *, .jp-OutputPrompt { visibility: hidden !important; }
.jp-Collapser { visibility: hidden !important; }
.jp-Cell, .jp-Notebook { border-color: transparent !important; box-shadow: none !important; outline: none !important; }
.jp-Cell::before, .jp-Cell::after { display: none !important; }"""
DRAWN = """() => document.querySelector(".bk-kpi") && [...document.querySelectorAll(".bk-charts > .bk-card")]
    .every(card => card.querySelector(".main-svg")) && !document.querySelector("[aria-busy=true]")"""
PAGE = """<!doctype html><meta charset="utf-8"><title>Every state</title>
<style>body{{font:14px system-ui;margin:24px}}img{{max-width:32%;margin:4px;border:1px solid #ccc;vertical-align:top}}
</style>{}"""


@contextmanager
def jupyterlab() -> Iterator[tuple[Server, Browser]]:
    """Start a JupyterLab of its own, and Chromium."""
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        home, root = Path(temporary), Path(temporary) / "root"
        (root / "notebooks").mkdir(parents=True)
        settings = home / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(NO_NEWS))
        process = subprocess.Popen(
            lab_command(root), env=lab_environment(home), stderr=subprocess.DEVNULL
        )
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=BROWSER_ARGUMENTS
        )
        try:
            yield listening(process, home, root), browser
        finally:
            browser.close()
            process.terminate()
            process.wait(30)


@contextmanager
def opened(
    server: Server, browser: Browser, name: str, code: str, theme: str, size: tuple[int, int]
) -> Iterator[Page]:
    """Open a notebook of one cell and run it, with nothing of JupyterLab around what it shows."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    _write(server, f"{name}.ipynb", code)
    notebook = Notebook(page, server, f"{name}.ipynb")
    page.evaluate("jupyterapp.shell.collapseLeft()")
    notebook.set_theme(theme)
    notebook.run_all()
    page.add_style_tag(content=BARE)
    yield page
    notebook.shut_down()
    page.close()


def take(page: Page, path: Path, down_to: str) -> None:
    """Take a picture when all is drawn, in the theme's colours, without a pointer's traces."""
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(1_500)
    page.screenshot(path=path, clip=_around(page, down_to))


def shoot(folder: Path, names: list[str]) -> None:
    """Take the pictures of these names."""
    with jupyterlab() as (server, browser):
        for name in names:
            code, theme, width, height = SHOTS[name]
            with opened(server, browser, name, code, theme, (width, height)) as page:
                take(
                    page, folder / f"{name}.png", DOWN_TO.get(name.partition("-")[0], ".bk-charts")
                )


def shoot_page(folder: Path, names: list[str]) -> None:
    """Take every state of these names at every width in both themes, and write the page that shows them.

    Raises
    ------
    SystemExit
        If text leaves its card, is cut off or lies over another; the page is written all the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    faults: list[str] = []
    with jupyterlab() as (server, browser):
        for name in names:
            shown.append(f"<h2>{name}</h2>")
            with opened(
                server, browser, "state", STATES[name], "light", (1440, WIDTHS[1440])
            ) as page:
                if name.endswith("kernel is gone"):
                    page.wait_for_function(DRAWN)
                    page.evaluate(GONE)
                    page.wait_for_selector(".bk-gone", state="attached")
                for theme in ("light", "dark"):
                    page.evaluate(SET_THEME, f"JupyterLab {theme.title()}")
                    for width, height in WIDTHS.items():
                        page.set_viewport_size({"width": width, "height": height})
                        picture = f"{name.replace(' ', '-')}-{width}-{theme}.png"
                        take(page, folder / picture, ".bk-explorer")
                        faults += [
                            f"{name}, {width}, {theme}: {fault}"
                            for fault in page.evaluate(FAULTS_AT_REST)
                        ]
                        shown.append(f'<img src="{picture}" alt="{name}, {width} pixels, {theme}">')
            (folder / "index.html").write_text(PAGE.format("\n".join(shown)), encoding="utf-8")
        if names == list(STATES):
            faults += every_fault(server, browser)
    if faults:
        raise SystemExit("\n".join(faults))


def every_fault(server: Server, browser: Browser) -> list[str]:
    """Look at the card in every state, for every model, preset, width and theme; `make test` looks at the pairs."""
    faults = []
    before: dict[str, object] = {}
    with opened(server, browser, "state", CARD, "light", (1600, 1000)) as page:
        # One theme after the other; within it the width changes first, for which nothing is worked out anew.
        for layout in sorted(every_layout(), key=lambda layout: str(layout["theme"]), reverse=True):
            state = {name: value for name, value in layout.items() if name != "width"}
            if layout["theme"] != before.get("theme"):
                page.evaluate(SET_THEME, f"JupyterLab {str(layout['theme']).title()}")
            if state != before:
                page.evaluate(RUN_IN_KERNEL, code_of(layout))
            before = state
            page.evaluate(CONTAINER, layout["width"])
            for fault in page.evaluate(FAULTS_AT_REST):
                faults.append(f"{layout}: {fault}")
                print(faults[-1], flush=True)
    return faults


def _around(page: Page, down_to: str) -> FloatRect:
    """Give the explorer down to one of its parts, with a little room about it."""
    whole, last = page.locator(".bk-explorer").bounding_box(), page.locator(down_to).bounding_box()
    assert whole is not None
    assert last is not None
    bottom = last["y"] + last["height"]
    return {
        "x": whole["x"] - ROOM,
        "y": whole["y"] - ROOM,
        "width": whole["width"] + 2 * ROOM,
        "height": bottom - whole["y"] + 2 * ROOM,
    }


def _write(server: Server, name: str, code: str) -> None:
    cell: dict[str, object] = {"cell_type": "code", "id": "explorer", "metadata": {}, "outputs": []}
    cell["execution_count"] = None
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    document = {
        "cells": [cell | {"source": CELL.format(code)}],
        "metadata": kernel,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (server.root / "notebooks" / name).write_text(json.dumps(document))


if __name__ == "__main__":
    if sys.argv[1] == "--layouts":
        with jupyterlab() as (lab_server, chromium):
            sys.exit("\n".join(every_fault(lab_server, chromium)) or 0)
    elif sys.argv[1] == "--page":
        shoot_page(Path(sys.argv[2]), sys.argv[3:] or list(STATES))
    else:
        shoot(Path(sys.argv[1]), sys.argv[2:] or list(SHOTS))
