"""The app as it is served: who reaches it, and which files its boxes open."""

import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

import budgetkit as bk
from budgetkit.lab.explorers.reach import Reach

TALK = '{"messages": [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}]}'
PATIENCE = 120  # seconds
PAGES = (
    *("/", "/voila/static/voila.js"),
    *("/voila/templates/lab/static/index.css", "/voila/files/budgetkit.ipynb"),
)
KERNEL = "/api/kernels/00000000-0000-0000-0000-000000000000"


def printed_token(process: "subprocess.Popen[bytes]", log: Path, seconds: float = PATIENCE) -> str:
    """Wait until the server prints its address, and return the token in it."""
    deadline = time.monotonic() + seconds
    while not (token := re.search(r"http://\S+\?token=(\S+)", log.read_text())):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return token[1]


@dataclass
class Served:
    """The app, served for these tests."""

    port: int
    token: str
    home: Path
    opened: str = ""

    def status(self, path: str, method: str = "GET", host: str = "", **headers: str) -> int:
        return self.answer(path, method, host, **headers)[0]

    def answer(
        self, path: str, method: str = "GET", host: str = "", **headers: str
    ) -> tuple[int, Message]:
        """Return the status of an answer, and its headers."""
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        ) as connection:
            connection.request(
                method, path, headers={"Host": host or f"127.0.0.1:{self.port}", **headers}
            )
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers

    def cookie(self) -> str:
        """Visit as a browser does for the first time, and return the cookie that it is given."""
        _, headers = self.answer(f"/?token={self.token}")
        return str(headers["Set-Cookie"]).partition(";")[0]

    def kernel(self) -> str:
        """Open the page, once for all tests, and return the name of its kernel."""
        if not self.opened:
            with closing(
                http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            ) as connection:
                connection.request("GET", "/", headers={"Cookie": self.cookie()})
                page = connection.getresponse().read().decode()
            self.opened = re.findall(r'kernelId[":\s]+([0-9a-f-]{36})', page)[0]
        return self.opened

    async def websocket(self, headers: dict[str, str], kernel: str, *protocols: str) -> Any:
        """Connect to a kernel as its page does."""
        address = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels?session_id=here"
        request = HTTPRequest(address, headers=headers)
        return await websocket_connect(request, subprotocols=list(protocols))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    pytest.importorskip("voila")
    home = tmp_path_factory.mktemp("served")
    (home / "mine.jsonl").write_text(TALK)
    (home / "voila.json").write_text(
        '{"VoilaConfiguration": {"file_allowlist": [".*"], "file_denylist": []}}'
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "budgetkit.lab.app",
        "mine.jsonl",
        "--no-browser",
        f"--port={port}",
    ]
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "JUPYTER_DATA_DIR": str(home / "share"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
    }
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)
    try:
        yield Served(port, printed_token(process, home / "log"), home)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


BROWSER = """
import webbrowser
from budgetkit.lab.app.serving import Gate, GuardedVoila

class Printing(webbrowser.BaseBrowser):
    def open(self, url, new=0, autoraise=True):
        print(url)
        return True

webbrowser.register("printing", None, Printing())
server = GuardedVoila(browser="printing")
server.gate = Gate("127.0.0.1")
server.launch_browser()
"""


def test_the_page_with_the_token_goes_with_the_server(tmp_path: Path) -> None:
    """On 0.3.0 it stayed in the temporary folder."""
    pytest.importorskip("voila")
    done = subprocess.run(
        [sys.executable, "-c", BROWSER],
        env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path)),
        capture_output=True,
        text=True,
    )
    assert "/budgetkit-" in done.stdout, done.stderr
    assert not list(tmp_path.glob("budgetkit-*"))


def test_settings_beside_a_conversation_are_not_taken(served: Served) -> None:
    """On 0.3.0 a voila.json, or a voila.py that was run, in the folder where the app was started was taken."""
    assert served.status("/voila/files/budgetkit.ipynb", Cookie=served.cookie()) == 403


def test_the_address_names_no_template(served: Served) -> None:
    """On 0.3.0 a link to the app could name any folder for a template, which ended in an error of the server."""
    folder = served.home / "evil"
    folder.mkdir()
    code = "{{ cycler.__init__.__globals__.os.mkdir('ran') }}"
    (folder / "index.html.j2").write_text(code)
    status = served.status(f"/?template={folder}", Cookie=served.cookie())
    assert not (served.home / "ran").exists()
    assert status == 200


def test_without_the_token_nothing_is_served(served: Served) -> None:
    """Another user of the machine reaches the port, and gets no page, no file and no kernel."""
    for path in (*PAGES, KERNEL, f"{KERNEL}/channels", "/?token=", "/?token=wrong", "/login"):
        assert served.status(path) == 403, path
    assert served.status("/voila/api/shutdown/x", "POST") == served.status(KERNEL, "DELETE") == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert served.status(f"{KERNEL}/channels", **upgrade, **{"Sec-WebSocket-Key": "x" * 16}) == 403


def test_a_page_that_rebinds_its_name_is_refused_even_with_the_token(served: Served) -> None:
    cookie = served.cookie()
    for host in (
        "attacker.example",
        f"attacker.example:{served.port}",
        "127.0.0.1.attacker.example",
        "10.0.0.1",
    ):
        assert served.status(f"/?token={served.token}", host=host) == 403
        assert served.status("/voila/static/voila.js", host=host, Cookie=cookie) == 403
    for host in (f"localhost:{served.port}", f"[::1]:{served.port}", "127.0.0.1"):
        assert served.status(f"/?token={served.token}", host=host) == 302


def test_a_page_on_another_port_of_this_machine_is_refused(served: Served) -> None:
    """Its browser sends the cookie along, since cookies know no ports."""
    cookie = served.cookie()
    assert (
        served.status("/voila/static/voila.js", Cookie=cookie, Origin="http://127.0.0.1:9") == 403
    )
    assert (
        served.status(
            "/voila/static/voila.js", Cookie=cookie, Origin=f"http://127.0.0.1:{served.port}"
        )
        == 200
    )


PROTOCOL = "v1.kernel.websocket.jupyter.org"
NUMBER = 8  # bytes


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(NUMBER, "little") for number in numbers)


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * NUMBER,
        words(2**40) + b"x" * 100,
        words(13, *([0] * 12)),
        b"",
        b"\x01",
        words(1),
        "{}",
        "[]",
    ],
)
def test_a_message_that_states_more_than_it_holds_closes_only_its_own_page(
    served: Served, message: str | bytes
) -> None:
    """Jupyter reads as many offsets as a message states: eight bytes kept the server busy for ever, for everybody."""
    pages = ({"Cookie": served.cookie()}, served.kernel())

    async def sent() -> Any:
        page = await served.websocket(*pages, PROTOCOL)
        await page.write_message(message, binary=isinstance(message, bytes))
        while answer := await page.read_message():
            pass
        page.close()
        return answer

    assert asyncio.run(asyncio.wait_for(sent(), PATIENCE)) is None
    assert served.status(f"/api/kernels/{pages[1]}", **pages[0]) == 200


@pytest.mark.parametrize(
    ("offsets", "is_read"),
    [
        ([100, 105, 110], True),
        ([100, 100, 200], True),
        ([100, 105, *[1, 20_000] * 1_000], False),
        ([100, 105, 1], False),
    ],
)
def test_a_message_whose_parts_overlap_is_not_read(
    offsets: list[int], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's message of 200 kB took 2.5 GB of the server for all pages."""
    pytest.importorskip("voila")
    from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

    from budgetkit.lab.app.serving import Channels

    events: list[Any] = []
    monkeypatch.setattr(
        VoilaKernelWebsocketHandler, "on_message", lambda page, message: events.append("read")
    )
    page = Channels.__new__(Channels)
    monkeypatch.setattr(page, "close", lambda code, reason: events.append(code), raising=False)
    page.on_message(words(len(offsets), *offsets).ljust(20_000))
    assert events == (["read"] if is_read else [1007])


@pytest.mark.parametrize("protocols", ["", "x" + PROTOCOL, "other, another"])
def test_a_page_that_speaks_another_protocol_is_refused(served: Served, protocols: str) -> None:
    """Voilà reads an answer with the charts' script in another protocol for ever."""
    handshake = {
        "Cookie": served.cookie(),
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": protocols,
    }
    assert served.status(f"/api/kernels/{served.kernel()}/channels", **handshake) == 400


def test_the_token_is_exchanged_for_a_cookie_that_scripts_do_not_see(served: Served) -> None:
    status, headers = served.answer(f"/?token={served.token}")
    assert (status, headers["Location"]) == (302, "/")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
    assert served.token not in cookie
    assert served.status("/voila/static/voila.js", Cookie=cookie.partition(";")[0]) == 200
    assert served.status("/voila/static/voila.js", Cookie=f"budgetkit-{served.port}=wrong") == 403


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a conversation, and beside it a secret to which a link leads."""
    chats = tmp_path / "chats"
    chats.mkdir()
    (chats / "mine.jsonl").write_text(TALK)
    (tmp_path / "secret.jsonl").write_text(TALK)
    (chats / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    return chats


def test_a_path_opens_what_lies_in_the_folder_and_nothing_outside(folder: Path) -> None:
    reach = Reach(folder)
    assert (
        reach.file("mine.jsonl")
        == reach.file(str(folder / "mine.jsonl"))
        == str((folder / "mine.jsonl").resolve())
    )
    for path in (
        "../secret.jsonl",
        str(folder.parent / "secret.jsonl"),
        "link.jsonl",
        "/etc/passwd",
        str(folder),
    ):
        with pytest.raises(PermissionError, match="only"):
            reach.file(path)
    with pytest.raises(PermissionError, match="only"):
        Reach(folder / "mine.jsonl").file("link.jsonl")
    with pytest.raises(PermissionError, match="a path cannot contain a null character"):
        reach.file("mine.jsonl\0")


def test_the_tabs_of_a_served_app_open_no_other_file(folder: Path) -> None:
    """The page may send any command, whether or not its box is shown."""
    app = bk.App(str(folder / "mine.jsonl"), window=8_192, files=folder / "mine.jsonl")
    for number in range(4):
        app.open(number)
        explorer = app.tabs[number]
        assert explorer is not None
        assert "path" not in explorer.panel.controls
        explorer._receive(
            explorer.view, {"kind": "path", "path": str(folder.parent / "secret.jsonl")}, []
        )
        assert "only" in explorer.status
        explorer._receive(
            explorer.view, {"kind": "counter", "name": str(folder.parent / "tokenizer.json")}, []
        )
        assert "tokenizer files cannot be opened by path" in explorer.status


def test_a_folder_leaves_the_box_and_a_notebook_opens_any_file(folder: Path) -> None:
    app = bk.App("support-chat", window=8_192, files=folder)
    assert "path" in app.card.panel.controls
    app.card.open("mine.jsonl")
    assert app.card.config["trace"] == "mine.jsonl"
    free = bk.App("support-chat", window=8_192)
    free.card.open(folder / "link.jsonl")
    assert free.card.config["trace"] == "link.jsonl"
