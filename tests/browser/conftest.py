"""A real JupyterLab in the machine's Chromium, one for all tests; each test gets a fresh notebook and kernel.

A test fails when the page asks for anything that is not on this machine, or when a script on it fails (but for one
fault of JupyterLab's own, which faults.py names). No test waits for a time: each waits for a state, with patience.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    FloatRect,
    Locator,
    Page,
    Request,
    WebSocket,
    expect,
    sync_playwright,
)

from tests.browser.faults import complaint, watch
from tests.browser.states import (
    ALL_HAVE_RUN,
    CELL_ERRORS,
    CHARTS_REST,
    HAND_RESTS,
    HAS_THEME,
    IS_READY,
)

CHECKOUT = Path(__file__).parents[2]
BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Chromium's own errands would leave the machine, and its sandbox does not start as root.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Deadlines are for what hangs, not for what is slow: one core with other work on it takes its time.
PATIENCE = 120  # seconds until a state must have come
RUN = 600  # seconds until a notebook must have run
expect.set_options(timeout=1_000 * PATIENCE)
# The size of targets is off by default. Which heading comes before an explorer is its notebook's to say.
AXE = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "rules": {"target-size": {"enabled": True}, "heading-order": {"enabled": False}},
}
# JupyterLab asks its makers for news and updates unless told not to.
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}


@dataclass(frozen=True, slots=True)
class Server:
    """A running JupyterLab: where it listens, what lets one in, which folder it serves."""

    address: str
    token: str
    root: Path


class Notebook:
    """A notebook open in JupyterLab: the page, and what a person does there."""

    def __init__(self, page: Page, server: Server, name: str) -> None:
        self.page = page
        page.goto(f"{server.address}lab/tree/notebooks/{name}?token={server.token}&reset")
        self.wait()
        self.set_theme("light")

    def wait(self) -> None:
        """Wait until the kernel is idle and the page can be used."""
        self.page.wait_for_function(IS_READY)

    def wait_for_charts(self, least: int = 2) -> None:
        """Wait until this many charts or more are drawn as they will stay."""
        self.page.wait_for_function(CHARTS_REST, arg=least)

    def rest(self) -> None:
        """Wait until the kernel has answered every move that the hand made."""
        self.page.wait_for_function(HAND_RESTS)

    def command(self, name: str, **arguments: object) -> None:
        self.page.evaluate(
            "([name, given]) => jupyterapp.commands.execute(name, given).then(() => {})",
            [name, arguments],
        )

    def run_all(self) -> None:
        """Run > Run All Cells; wait until all have run; no cell may fail."""
        # Or the counts of an earlier run would count as run.
        self.command("notebook:clear-all-cell-outputs")
        self.page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
        self.page.wait_for_function(ALL_HAVE_RUN, timeout=1_000 * RUN)
        assert self.page.evaluate(CELL_ERRORS) == []

    def reload(self) -> None:
        """Reload the page in the browser; the kernel lives on."""
        self.command("docmanager:save")
        self.page.reload()
        self.wait()

    def execute(self, code: str) -> None:
        """Run code in the kernel, beside the cells, and wait until it is done."""
        self.page.evaluate(
            """code => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel
                .requestExecute({ code }).done.then(reply => {
                    if (reply.content.status !== "ok") throw new Error(reply.content.evalue);
                })""",
            code,
        )

    def cells(self) -> int:
        count: int = self.page.evaluate("jupyterapp.shell.currentWidget.content.model.cells.length")
        return count

    def control(self, label: str) -> Locator:
        """Find the control whose visible label is exactly this."""
        return self.page.locator(".bk-controls :is(.bk-field, .bk-slide)").filter(
            has=self.page.locator("> :first-child").get_by_text(label, exact=True)
        )

    def slider(self, label: str) -> Locator:
        """Find a slider: focus it, then press arrow keys."""
        return self.control(label).locator("input[type=range]")

    def set_theme(self, theme: str) -> None:
        """Switch JupyterLab to "light" or "dark", and wait until the page is and can be used again."""
        name = f"JupyterLab {theme.title()}"
        if self.page.evaluate("document.body.dataset.jpThemeName") != name:
            self.command("apputils:change-theme", theme=name)
        self.page.wait_for_function(HAS_THEME, arg=name)

    def resize(self, width: int, height: int = 980) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def place_of(self, locator: Locator) -> FloatRect:
        """Return where something lies once it has come to rest there."""
        locator.element_handle().wait_for_element_state("stable")
        box = locator.bounding_box()
        assert box is not None
        return box

    def violations(self, selector: str) -> list[str]:
        """Ask axe about a part of the page."""
        return violations(self.page, selector)

    def shoot(self, name: str) -> None:
        """Keep a picture of the page in the folder that BUDGETKIT_SHOTS names, if it does."""
        if folder := os.environ.get("BUDGETKIT_SHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png")

    def shut_down(self) -> None:
        self.page.evaluate("jupyterapp.shell.currentWidget?.context.sessionContext.shutdown()")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


def violations(page: Page, selector: str | None = None) -> list[str]:
    """Ask axe what WCAG 2.2 AA and good practice find in a page, or a part of it; one line for each rule broken."""
    response: dict[str, Any] = Axe().run(page, context=selector, options=AXE).response
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {[node['html'] for node in rule['nodes']]}"
        for rule in response["violations"]
    ]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Start Chromium, or skip; where browser tests are required, its absence is a failure."""
    named = os.environ.get("BUDGETKIT_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, BROWSER_NAMES)), None)
    if found is None and os.environ.get("BUDGETKIT_REQUIRE_BROWSER") == "1":
        pytest.fail(
            "browser tests are required, and there is no Chromium: install it or set BUDGETKIT_CHROMIUM"
        )
    if found is None:
        pytest.skip(
            "no Chromium for the browser tests; install it or set BUDGETKIT_CHROMIUM to its path"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=BROWSER_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a copy of the notebooks and of the data, with settings of its own; wait until it answers."""
    home = tmp_path_factory.mktemp("jupyterlab")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(NO_NEWS))
    root = home / "root"
    shutil.copytree(CHECKOUT / "data", root / "data")
    (root / "notebooks").mkdir()
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            lab_command(root), env=lab_environment(home), stdout=log, stderr=log
        )
    try:
        yield listening(process, home, root)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to go; one that does not is killed, and that is a failure."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def lab_command(root: Path) -> list[str]:
    return [
        *(
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--ip=127.0.0.1",
            "--port=0",
        ),
        *(f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"),
    ]


def lab_environment(home: Path) -> dict[str, str]:
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "share",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return os.environ | {variable: str(home / folder) for variable, folder in folders.items()}


def listening(
    process: subprocess.Popen[bytes], home: Path, root: Path, seconds: float = PATIENCE
) -> Server:
    """Wait for the note that a Jupyter server leaves once it listens."""
    note = home / "runtime" / f"jpserver-{process.pid}.json"
    end = time.monotonic() + seconds
    while not (note.exists() and note.read_text().endswith("}")):
        assert process.poll() is None and time.monotonic() < end, (home / "log").read_text()
        time.sleep(0.05)
    said = json.loads(note.read_text())
    return Server(said["url"], said["token"], root)


@contextmanager
def opened_tab(chromium: Browser, server: Server) -> Iterator[Page]:
    """Open an empty tab that no request leaves and on which no script fails."""
    context = chromium.new_context(viewport={"width": 1360, "height": 980})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.address)
    context.set_default_timeout(1_000 * PATIENCE)
    page = context.new_page()
    outside: list[str] = []
    own = (server.address, server.address.replace("http", "ws", 1), "data:", "blob:", "about:")

    def note(asked: Request | WebSocket) -> None:
        if not asked.url.startswith(own):
            outside.append(asked.url)

    context.on("request", note)
    page.on("websocket", note)
    faults = watch(page)
    yield page
    complaints = complaint(faults, lambda script: context.request.get(script).text())
    context.close()
    assert outside == [], "the page asked for something that is not on this machine"
    assert not complaints, complaints


@pytest.fixture
def tab(chromium: Browser, server: Server) -> Iterator[Page]:
    """Open a tab for one test."""
    with opened_tab(chromium, server) as page:
        yield page


@pytest.fixture
def notebook(
    tab: Page, server: Server, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """Open a fresh copy of a notebook by name, or of any notebook by path; its kernel ends with the test."""
    opened: list[Notebook] = []

    def open_notebook(name: str | Path) -> Notebook:
        path = CHECKOUT / "notebooks" / name
        shutil.copy(path, server.root / "notebooks")
        opened.append(Notebook(tab, server, path.name))
        return opened[-1]

    yield open_notebook
    for notebook in opened:
        notebook.shoot(request.node.name)
        notebook.shut_down()
