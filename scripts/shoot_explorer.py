"""Take the pictures of the explorers for README and the notebooks 04 and 06, in a real JupyterLab.

python scripts/shoot_explorer.py docs/images [name ...]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import FloatRect, Page, sync_playwright

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

CELL = "import budgetkit as bk\n{}\nexplorer"
CHAT = 'explorer = bk.BudgetExplorer("chat", "support-chat", window=16_384)'
OVER = CHAT + '\nexplorer.controls.lines["output"].slider.value = 50'
REPLAYED = """explorer = bk.ConversationExplorer(
    "coding-agent", bk.presets.working_memory(16_000, output=2_000, history_floor=0),
    ["down to a mark", "oldest first", "tool results first"])
explorer.controls.request.value = 60"""
# name: what is explored, theme, width and height of the page in pixels
SHOTS = {
    "explorer-light": (CHAT, "light", 1360, 1500),
    "explorer-dark": (CHAT, "dark", 1360, 1500),
    "explorer-over": (OVER, "light", 1360, 1500),
    "explorer-narrow": (CHAT, "light", 640, 2900),
    "conversation-light": (REPLAYED, "light", 1360, 2600),
}
ROOM = 8  # pixels
# What JupyterLab draws around the explorer: hidden where it stands, so that nothing moves.
BARE = """.jp-Cell-inputWrapper, .jp-Cell-inputWrapper *, .jp-OutputPrompt { visibility: hidden !important; }
.jp-Collapser { visibility: hidden !important; }
.jp-Cell, .jp-Notebook { border-color: transparent !important; box-shadow: none !important; outline: none !important; }
.jp-Cell::before, .jp-Cell::after { display: none !important; }"""
DRAWN = """() => [...document.querySelectorAll(".bk-charts > .bk-card")]
    .every(card => card.querySelector(".main-svg")) && !document.querySelector("[aria-busy=true]")"""


def shoot(folder: Path, names: list[str]) -> None:
    """Take the pictures of these names."""
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        home, root = Path(temporary), Path(temporary) / "root"
        (root / "notebooks").mkdir(parents=True)
        settings = home / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(NO_NEWS))
        process = subprocess.Popen(lab_command(root), env=lab_environment(home), stderr=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER_ARGUMENTS)
        try:
            server = listening(process, home, root)
            for name in names:
                code, theme, width, height = SHOTS[name]
                page = browser.new_page(viewport={"width": width, "height": height})
                _write(server, f"{name}.ipynb", code)
                notebook = Notebook(page, server, f"{name}.ipynb")
                page.evaluate("jupyterapp.shell.collapseLeft()")
                notebook.set_theme(theme)
                notebook.run_all()
                page.wait_for_function(f"document.querySelector('.bk-card') && ({DRAWN})()")
                page.wait_for_timeout(1_500)  # the charts in the theme's colours, and no pointer's traces
                page.add_style_tag(content=BARE)
                page.screenshot(path=folder / f"{name}.png", clip=_around(page))
                notebook.shut_down()
                page.close()
        finally:
            browser.close()
            process.terminate()
            process.wait(30)


def _around(page: Page) -> FloatRect:
    """Give the explorer down to its charts, with a little room about it."""
    whole, charts = page.locator(".bk-explorer").bounding_box(), page.locator(".bk-charts").bounding_box()
    assert whole is not None
    assert charts is not None
    bottom = charts["y"] + charts["height"]
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
    document = {"cells": [cell | {"source": CELL.format(code)}], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (server.root / "notebooks" / name).write_text(json.dumps(document))


if __name__ == "__main__":
    shoot(Path(sys.argv[1]), sys.argv[2:] or list(SHOTS))
