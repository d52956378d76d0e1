"""Serve the app as a local web page with Voilà."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import tempfile
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from budgetkit.budget.html import DOCTYPE, element
from budgetkit.files import extra, one_cell_notebook
from budgetkit.trace import load_traces, shipped_traces

with extra("app", "the app as a page of its own"):
    from jupyter_core.paths import jupyter_config_path
    from tornado.httputil import HTTPServerRequest, split_host_and_port
    from tornado.routing import Matcher, PathMatches, Rule
    from tornado.web import HTTPError, RequestHandler
    from traitlets import default
    from voila.app import Voila
    from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
FOREIGN_HOST: Final = (
    "This page does not exist. Open the address that the app printed when it started."
)
NO_TOKEN: Final = "Only the person who started the app can open it. Use the address that it printed, with its token."
WEBSOCKET_PROTOCOL: Final = "v1.kernel.websocket.jupyter.org"


@dataclass(frozen=True)
class Gate:
    """The access check of the app.

    Parameters
    ----------
    address : str
        Address that the server listens on.
    token, session : str
        Secrets in the URL of the first visit, and in the cookie afterwards.

    Examples
    --------
    >>> gate = Gate("127.0.0.1")
    >>> gate.is_own_host("localhost:8866"), gate.is_own_host("attacker.example:8866")
    (True, False)
    """

    address: str
    token: str = field(default_factory=secrets.token_urlsafe, repr=False)
    session: str = field(default_factory=secrets.token_urlsafe, repr=False)

    def is_own_host(self, host: str) -> bool:
        """Return True if a Host header names this server."""
        name, _ = split_host_and_port(host.lower())
        return name in (*LOCAL_HOSTS, self.address.lower(), f"[{self.address.lower()}]")

    def refusal(self, request: HTTPServerRequest) -> str:
        """Return the reason for rejecting a request, or "" to accept it."""
        if not self.is_own_host(request.host):
            return FOREIGN_HOST

        # A script on another port of this machine sends the cookie, too, but cannot hide its origin.
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin.lower()).netloc != request.host.lower():
            return FOREIGN_HOST

        cookie = request.cookies.get(cookie_name(request))
        if cookie is None or not _same(cookie.value.encode("utf-8", "replace"), self.session):
            return NO_TOKEN
        return ""

    def is_first_visit(self, request: HTTPServerRequest) -> bool:
        """Return True for a GET request to this server with the token."""
        tokens = request.query_arguments.get("token", [b""])
        return (
            request.method == "GET"
            and self.is_own_host(request.host)
            and _same(tokens[-1], self.token)
        )


def cookie_name(request: HTTPServerRequest) -> str:
    """Return the name of the cookie, which depends on the port."""
    _, port = split_host_and_port(request.host)
    return f"budgetkit-{port or 80}"


def _same(offered: bytes, secret: str) -> bool:
    """Compare two texts in constant time."""
    return compare_digest(offered, secret.encode())


class Condition(Matcher):
    """A matcher of requests for which a function returns true."""

    def __init__(self, holds: Callable[[HTTPServerRequest], object]) -> None:
        self.holds = holds

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return {} if the request matches, or else None."""
        return {} if self.holds(request) else None


class Guarded(RequestHandler):
    """A handler with the access check of the server."""

    def initialize(self, gate: Gate, home: str = "") -> None:
        """Store the server's access check and the app's address."""
        self.gate = gate
        self.home = home


class Welcome(Guarded):
    """A handler that sets the cookie and redirects to the app."""

    def get(self) -> None:
        """Answer the first visit with the cookie and a redirect."""
        # "Strict" would not be sent on the way from the file that opens the browser.
        self.set_cookie(cookie_name(self.request), self.gate.session, httponly=True, samesite="Lax")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.redirect(self.home)


class Refused(Guarded):
    """A handler that rejects any request, with the reason."""

    def prepare(self) -> None:
        """Reject the request, with the reason, before any handler runs."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(self.gate.refusal(self.request))


class Channels(VoilaKernelWebsocketHandler):  # type: ignore[misc]
    """A page's websocket that accepts only readable messages.

    Jupyter and Voilà read as many offsets as a message states: a message of eight bytes could keep the server busy
    forever, and so could an answer to a page that does not speak version 1 of the protocol. They also copy each part,
    so 100 kB of overlapping parts would take 600 MB of memory.
    """

    async def pre_get(self) -> None:
        """Refuse a page that speaks another protocol."""
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "")
        if WEBSOCKET_PROTOCOL not in offered.replace(" ", "").split(","):
            raise HTTPError(400, f"The app speaks only {WEBSOCKET_PROTOCOL}.")
        await super().pre_get()

    def on_message(self, ws_message: str | bytes) -> None:
        """Close the connection if a message has missing or overlapping parts."""
        offsets: list[int] = []
        if isinstance(ws_message, bytes):
            number = int.from_bytes(ws_message[:8], "little")
            if 1 < number < len(ws_message) // 8:
                offsets = [*memoryview(ws_message)[8 : 8 * number + 8].cast("Q")]
        if offsets and offsets == sorted(offsets):
            super().on_message(ws_message)
        else:
            self.close(1007, "Unreadable message.")


class GuardedVoila(Voila):  # type: ignore[misc]
    """Voilà behind the access check."""

    @default("config_file_paths")
    def _user_folders(self) -> list[str]:
        """Exclude the current folder, from which a stranger's voila.py could be run."""
        return jupyter_config_path()

    def init_handlers(self) -> list[Any]:
        """Put the access check before all handlers of Voilà."""
        self.gate = Gate(self.ip)
        return [
            Rule(
                Condition(self.gate.is_first_visit),
                Welcome,
                {"gate": self.gate, "home": self.base_url},
            ),
            Rule(Condition(self.gate.refusal), Refused, {"gate": self.gate}),
            Rule(PathMatches(rf"{self.server_url}api/kernels/([\w-]+)/channels"), Channels),
            *super().init_handlers(),
        ]

    @property
    def display_url(self) -> str:
        """The address to print, with the token."""
        return f"{super().display_url}?token={self.gate.token}"

    def launch_browser(self) -> None:
        """Open the address in a browser by way of a private file."""
        handle, name = tempfile.mkstemp(prefix="budgetkit-", suffix=".html")
        atexit.register(Path(name).unlink, missing_ok=True)  # it holds the token
        target = f"{self.connection_url}?token={self.gate.token}"
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            refresh = element("meta", http_equiv="refresh", content=f"0; url={target}")
            file.write(f"{DOCTYPE}{refresh}{element('title', 'budgetkit')}")
        try:
            webbrowser.get(self.browser or None).open(
                Path(name).as_uri(), new=self.webbrowser_open_new
            )
        except webbrowser.Error as error:
            self.log.warning("Could not open a browser (%s). Open the address yourself.", error)


#: The conversation to show if none, or a whole folder, is given.
FIRST: Final = "support-chat"
#: Voilà's own template would request icons from another machine, which the app does not need; this one requests
#: nothing. It also has a landmark for screen readers.
TEMPLATE: Final = {
    "conf.json": '{"base_template": "lab"}',
    "index.html.j2": """{%- extends 'voila/templates/lab/index.html.j2' -%}
{%- block notebook_css -%}
{{ super() | replace('<link rel="stylesheet" href="https:', '<meta content="not asked: ') }}
{%- endblock notebook_css -%}
{%- block body_header -%}
{{ super() | replace('<div id="rendered_cells"', '<div id="rendered_cells" role="main"') }}
{%- endblock body_header -%}
""",
}


def serve(source: str = "support-chat", *options: str) -> None:
    """Serve the app, and open it in a browser.

    The server runs until it is stopped.

    Parameters
    ----------
    source : str, default "support-chat"
        The conversations: the name of a shipped conversation, a file, or a folder of files. The "File" box opens only
        this file or files in this folder. For a shipped conversation, the box is hidden.
    *options : str
        Options of Voilà, such as "--no-browser" or "--port=9999".

    Raises
    ------
    ValueError, OSError
        If the file cannot be read. The error is raised before the server starts.

    Notes
    -----
    The address can only be opened with its token.
    """
    # Report a missing or unreadable file now, not in the page.
    trace = FIRST
    files = ""
    if source in shipped_traces():
        trace = source
    else:
        files = str(Path(source).expanduser().resolve())
    if files and not Path(files).is_dir():
        load_traces(source)
        trace = files

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "budgetkit.ipynb")
        page.write_text(json.dumps(notebook(trace, files)), encoding="utf-8")
        template = Path(folder, "voila", "templates", "budgetkit")
        template.mkdir(parents=True)
        for name, text in TEMPLATE.items():
            (template / name).write_text(text, encoding="utf-8")
        os.environ["JUPYTER_PATH"] = os.pathsep.join(
            [folder, *filter(None, [os.environ.get("JUPYTER_PATH")])]
        )
        GuardedVoila.launch_instance(
            [
                str(page),
                "--Voila.ip=127.0.0.1",
                "--template=budgetkit",
                # An address may not name another template.
                "--VoilaConfiguration.allow_template_override=NO",
                # A kernel whose page is gone ends after ten minutes.
                "--MappingKernelManager.cull_idle_timeout=600",
                "--MappingKernelManager.cull_interval=60",
                *options,
            ]
        )


def notebook(trace: str, files: str = "") -> dict[str, Any]:
    """Return the notebook that Voilà runs for each visitor.

    Examples
    --------
    >>> print(notebook("support-chat")["cells"][0]["source"])
    import budgetkit as bk
    bk.App('support-chat', window=16_384, files='')
    """
    # A short conversation leaves a whole window empty.
    window = ", window=16_384" if trace in shipped_traces() else ""
    code = f"import budgetkit as bk\nbk.App({trace!r}{window}, files={files!r})"
    return one_cell_notebook("app", code)
