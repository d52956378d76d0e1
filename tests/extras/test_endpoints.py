"""Counting by asking the provider, against a local server that answers in the three documented shapes."""

import asyncio
import base64
import gc
import gzip
import hashlib
import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import budgetkit
from budgetkit.counters import Counter
from budgetkit.extras.endpoints import (
    ENDPOINTS,
    EndpointError,
    ProviderCounter,
    answers,
    provider_counter,
)

FRAMING = 7  # tokens that this server's requests cost beyond the words of their text


class Provider(ThreadingHTTPServer):
    """A provider that counts words, and remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.refuse: tuple[int, dict[str, str], Any] | None = None
        self.delay = 0.0

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet about clients that did not wait."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        time.sleep(self.server.delay)
        status, headers, answer = self.server.refuse or (200, {}, self.count(body))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(data)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def count(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.path.endswith("/responses/input_tokens"):
            tokens = FRAMING + len(body["input"].split())
            return {"object": "response.input_tokens", "input_tokens": tokens}
        if self.path.endswith("/messages/count_tokens"):
            texts = [message["content"] for message in body["messages"]]
            return {"input_tokens": FRAMING + len(" ".join(texts).split())}
        texts = [part["text"] for content in body["contents"] for part in content["parts"]]
        return {"totalTokens": FRAMING + len(" ".join(texts).split()), "promptTokensDetails": []}

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def ask(provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(name: str = "openai", **more: Any) -> ProviderCounter:
        known = ENDPOINTS[name]
        monkeypatch.setenv(known.key, "secret-key")
        path = known.url.partition("//")[2].partition("/")[2]
        return ProviderCounter(
            "m-1", replace(known, url=f"{provider.url}/{path}"), tmp_path / "counts.sqlite", **more
        )

    return make


SHAPES = [
    ("openai", "/v1/responses/input_tokens", "authorization", "Bearer secret-key"),
    ("anthropic", "/v1/messages/count_tokens", "x-api-key", "secret-key"),
    ("gemini", "/v1beta/models/m-1:countTokens", "x-goog-api-key", "secret-key"),
]


@pytest.mark.parametrize(
    ("name", "path", "header", "key"), SHAPES, ids=[shape[0] for shape in SHAPES]
)
def test_each_provider_is_asked_in_its_own_shape(
    provider: Provider, ask: Any, name: str, path: str, header: str, key: str
) -> None:
    count = ask(name)
    assert isinstance(count, Counter)
    assert count("Hello big world") == 3
    assert {asked[0] for asked in provider.asked} == {path}
    assert all(asked[1][header] == key for asked in provider.asked)


def test_anthropic_is_told_the_version_of_its_interface(provider: Provider, ask: Any) -> None:
    ask("anthropic")("Hello")
    assert provider.asked[0][1]["anthropic-version"] == "2023-06-01"


def test_a_text_is_asked_about_once_even_by_another_counter(provider: Provider, ask: Any) -> None:
    """Three different texts and the lone letter are four requests; then nobody is asked again."""
    texts = ["one", "one two", "", "one", "one two three"]
    assert ask().many(texts) == [1, 2, 0, 1, 3]
    assert len(provider.asked) == 4
    assert ask().many(texts) == [1, 2, 0, 1, 3]
    assert len(provider.asked) == 4


def test_an_empty_text_asks_nobody(provider: Provider, ask: Any) -> None:
    assert ask().many(["", ""]) == [0, 0]
    assert provider.asked == []


def test_a_whole_request_is_counted_as_it_is_billed(provider: Provider, ask: Any) -> None:
    body = {"model": "m-1", "input": "one two", "tools": [{"type": "function", "name": "f"}]}
    assert ask().request(body) == FRAMING + 2
    assert provider.asked[0][2] == body


def test_what_was_answered_stays_when_a_later_answer_fails(provider: Provider, ask: Any) -> None:
    count = ask()
    assert count("one") == 1
    provider.refuse = (500, {}, {"error": {"message": "overloaded"}})
    assert count("one") == 1
    refusal = r"the status is 500 \(overloaded\)\. Correct the request, or try again later\."
    with pytest.raises(EndpointError, match=refusal):
        count("two")


REFUSALS = [
    (401, {}, {"error": {"message": "bad key"}},
     r"the key was rejected \(bad key\)\. Set OPENAI_API_KEY to a valid key\."),
    (403, {}, {"error": "forbidden"}, r"the key was rejected \(forbidden\)\. Set"),
    (429, {"retry-after": "20"}, {"error": {"message": "slow down"}},
     r"rate limit is reached \(slow down\)\. Wait 20 seconds"),
    (429, {}, {}, r"the rate limit is reached \(Too Many Requests\)\. Wait a while and try again\."),
    (404, {}, {"error": {"message": "no m-1"}}, r"unknown model \(no m-1\)\. Use the name listed by 127.0.0.1\."),
    (200, {}, {"object": "?"}, r"the answer lacks 'input_tokens' .*\. Check the address\."),
]  # fmt: skip


@pytest.mark.parametrize(("status", "headers", "answer", "sentence"), REFUSALS)
def test_a_refusal_says_what_was_asked_what_is_known_and_what_to_do(
    provider: Provider, ask: Any, status: int, headers: dict[str, str], answer: Any, sentence: str
) -> None:
    provider.refuse = (status, headers, answer)
    refusal = f"OpenAI did not count for m-1: .*{sentence}"
    with pytest.raises(EndpointError, match=refusal) as raised:
        ask()("one")
    assert "secret-key" not in str(raised.value)


def test_a_slow_answer_is_not_waited_for(provider: Provider, ask: Any) -> None:
    provider.delay = 0.5
    refusal = r"no answer within 0.05 seconds\. Try again, or pass a longer timeout=\."
    with pytest.raises(EndpointError, match=refusal):
        ask(timeout=0.05)("one")
    refusal = "Invalid timeout: -1. Use a number of seconds above 0, such as 30"
    with pytest.raises(ValueError, match=refusal):
        ask(timeout=-1)


def test_an_endless_look_up_is_not_waited_for(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it when the program ends: the thread that waits for the system's answer keeps nothing alive."""
    gone_on = threading.Event()
    counter = ask(timeout=0.2)
    counter = replace(counter, endpoint=replace(counter.endpoint, url="http://provider.invalid/v1"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: gone_on.wait(60) and [])
    started = time.perf_counter()
    refusal = r"no answer within 0.2 seconds\. Try again, or pass a longer timeout=\."
    with pytest.raises(EndpointError, match=refusal):
        counter("one")
    assert time.perf_counter() - started < 30, "the look-up alone takes 60"
    waiting = [thread for thread in threading.enumerate() if "look_up" in thread.name]
    assert waiting and all(thread.daemon for thread in waiting)
    gone_on.set()
    for thread in waiting:
        thread.join()


STARTED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x-more: 1\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nx-long: ", b"x"),
    "hints that the answer is to come": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "body": (STARTED + b"content-length: 100000\r\n\r\n", b" "),
    "chunks": (STARTED + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "nothing after the headers": (STARTED + b"content-length: 100\r\n\r\n", b""),
}


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers as it likes, byte by byte, until the client has gone."""

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client, suppress(OSError):
                answer(client)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("begin", "drop"), DRIPS.values(), ids=DRIPS)
def test_an_answer_in_drops_is_not_waited_for(ask: Any, begin: bytes, drop: bytes) -> None:
    """Each drop comes in time; all of them would take for ever."""

    def answer(client: socket.socket) -> None:
        client.recv(1 << 16)
        client.sendall(begin)
        for _ in range(2_000):
            client.sendall(drop)
            time.sleep(0.05)

    count = ask(timeout=0.4)
    with answering(answer) as url:
        started = time.perf_counter()
        with pytest.raises(EndpointError, match=r"no answer within 0.4 seconds"):
            replace(count, endpoint=replace(count.endpoint, url=url))("one")
        assert time.perf_counter() - started < 50, "the drops take 100 seconds"


HUGE = {
    "that says so": STARTED + b"content-length: 600000000\r\n\r\n",
    "that does not": STARTED + b"\r\n",
    "packed": STARTED + b"content-encoding: gzip\r\n\r\n",
}


@pytest.mark.parametrize("begin", HUGE.values(), ids=HUGE)
def test_an_answer_that_is_huge_is_not_read(ask: Any, begin: bytes) -> None:
    sent: list[int] = []
    packed = b"gzip" in begin
    piece = gzip.compress(bytes(1 << 26)) if packed else b" " * (1 << 16)  # 64 MiB in 64 KiB

    def answer(client: socket.socket) -> None:
        client.recv(1 << 16)
        client.sendall(begin)
        for _ in range(9_000):
            client.sendall(piece)
            sent.append(len(piece))

    count = ask()
    with answering(answer) as url:
        tracemalloc.start()
        refusal = r"the answer is longer than 64 KiB\. Check the address"
        with pytest.raises(EndpointError, match=refusal):
            replace(count, endpoint=replace(count.endpoint, url=url))("one")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20e6 and sum(sent) < 50e6


NO_COUNTS = [-1, 10**9 + 1, 10**400, 2.0, 2.5, True, "12", None, [12], {"tokens": 12}]


@pytest.mark.parametrize("tokens", NO_COUNTS, ids=lambda tokens: str(tokens)[:20])
def test_a_wrong_count_is_refused_and_not_kept(
    provider: Provider, ask: Any, tokens: object
) -> None:
    provider.refuse = (200, {}, {"input_tokens": tokens})
    refusal = "input_tokens' .*(whole number from 0 to 1,000,000,000|Check)"
    with pytest.raises(EndpointError, match=refusal) as raised:
        ask().request({"input": "one"})
    assert len(str(raised.value)) < 500
    provider.refuse = None
    assert ask().request({"input": "one"}) == FRAMING + 1


def test_a_text_that_costs_less_than_nothing_is_refused(provider: Provider, ask: Any) -> None:
    assert ask()("one") == 1  # so that what the letter alone costs is known
    provider.refuse = (200, {}, {"input_tokens": 0})
    refusal = r"it counted fewer tokens for a text than for 'a' \(8\)\. Use another counter\."
    with pytest.raises(EndpointError, match=refusal):
        ask()("two")


@pytest.mark.parametrize("depth", [50, 20_000])
def test_an_answer_nested_deep_is_none(provider: Provider, ask: Any, depth: int) -> None:
    provider.refuse = (200, {}, b"[" * depth + b"]" * depth)
    with pytest.raises(EndpointError, match="lacks 'input_tokens'"):
        ask()("one")


def test_half_a_character_is_sent_as_a_replacement(provider: Provider, ask: Any) -> None:
    """UTF-8 cannot write it; tiktoken counts it so, too. Two halves that belong together are joined."""
    assert ask().many(["one \ud83d", "\ud83d\ude00 two three"]) == [2, 3]
    assert {asked[2]["input"] for asked in provider.asked} == {"a", "one \ufffd", "😀 two three"}


def test_a_counter_is_called_within_a_running_loop(ask: Any) -> None:
    """As Jupyter's cells are."""

    async def cell() -> int:
        counted: int = ask()("one two")
        return counted

    assert asyncio.run(cell()) == 2


def test_an_interrupt_ends_what_is_under_way(provider: Provider, ask: Any) -> None:
    """It is sent once the provider has been asked; a shell that starts tests in the background has them ignore it."""
    provider.delay = 30
    asking = threading.main_thread().ident
    assert asking

    def interrupt() -> None:
        while not provider.asked:
            time.sleep(0.01)
        time.sleep(0.2)  # on a slow machine the caller is only now on its way to wait
        signal.pthread_kill(asking, signal.SIGINT)

    started, before = time.perf_counter(), signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # Hypothesis is told of every collection, and what is raised there is lost
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt, daemon=True).start()
            ask()("one")
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - started < 25


def test_an_unreachable_provider_is_said_to_be(ask: Any) -> None:
    count = ask()
    nowhere = replace(count, endpoint=replace(count.endpoint, url="http://127.0.0.1:9/v1"))
    refusal = r"the connection failed \(.*\)\. Check the network, or use another counter\."
    with pytest.raises(EndpointError, match=refusal):
        nowhere("one")


def test_a_missing_key_is_named(
    ask: Any, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    count = ask()
    monkeypatch.delenv("OPENAI_API_KEY")
    refusal = "the environment variable OPENAI_API_KEY is not set. Set it to your key"
    with pytest.raises(EndpointError, match=refusal):
        count("one")
    assert provider.asked == []


KEY = "sk-live-9fB2xQ7mT4vL8kZw"  # made up

ECHOES = {
    "as it is": KEY,
    "in a header": f"Authorization: Bearer {KEY}",
    "masked, but for its ends": f"Incorrect API key provided: {KEY[:8]}**********{KEY[-4:]}.",
    "without its case": KEY.upper(),
    "in a URL": "".join(f"%{ord(sign):02x}" for sign in KEY),
    "in base64": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "spelled out": " ".join(KEY),
    "with characters of no width": "\u200b".join(KEY),
    "after much else": "no such key " * 1_000 + KEY,
}


def everything_shown(error: BaseException) -> str:
    """Print an error as a debugger would: its causes, and the local variables of every frame but the test's."""
    below = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    return "".join(traceback.TracebackException.from_exception(below, capture_locals=True).format())


def parts_of(key: str) -> set[str]:
    return {key[at : at + 6].casefold() for at in range(len(key) - 5)}


@pytest.mark.parametrize("status", [200, 400, 401, 429])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_an_answer_that_repeats_the_key_does_not_show_it(
    provider: Provider, ask: Any, monkeypatch: pytest.MonkeyPatch, status: int, echo: str
) -> None:
    count = ask()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for answer in ({"error": {"message": echo}}, {"error": echo}, echo.encode()):
        provider.refuse = (status, {"retry-after": KEY}, answer)
        with pytest.raises(EndpointError) as raised:
            count("one")
        shown = everything_shown(raised.value) + repr(raised.value) + repr(count)
        letters = re.sub(r"[\W_]", "", shown)
        assert not [part for part in parts_of(KEY) if part in shown.casefold()]
        assert "9fB2xQ7mT4vL8kZw" not in letters
        assert len(str(raised.value)) < 500 and "\n" not in str(raised.value)


@pytest.mark.parametrize("around", ["{}\n", "\r\n{}", " \t{} "])
def test_a_key_is_sent_without_the_blanks_around_it(
    provider: Provider, ask: Any, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    """An editor ends a file with a line end, and `export KEY="$(cat file)"` is not everybody's habit."""
    count = ask()
    monkeypatch.setenv("OPENAI_API_KEY", around.format(KEY))
    assert count("one two") == 2
    assert provider.asked[0][1]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "wrong", ["sk-9fB2xQ\n7mT4vL8kZw", "sk-9fB2xQ 7mT4vL8kZw", "sk-9fB2xQ7mT4vL8k\xe9", "9fB2x"]
)
def test_what_is_no_key_is_refused_before_it_is_sent_and_not_shown(
    provider: Provider,
    ask: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wrong: str,
) -> None:
    count = ask()
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    with (
        caplog.at_level("DEBUG"),
        pytest.raises(
            EndpointError, match=r"Invalid key in OPENAI_API_KEY \(characters: .* copy it again"
        ) as raised,
    ):
        count("one")
    assert provider.asked == []
    assert "9fB2x" not in everything_shown(raised.value) + caplog.text


def test_the_key_is_in_no_log(
    provider: Provider, ask: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    count = ask()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with caplog.at_level("DEBUG"):
        count("one")
        provider.server_close()
        with pytest.raises(EndpointError):
            replace(count, endpoint=replace(count.endpoint, url="http://127.0.0.1:9/v1"))("two")
    assert caplog.text
    assert not [part for part in parts_of(KEY) if part in caplog.text.casefold()]


def test_the_key_is_not_kept_on_disk(ask: Any, tmp_path: Path) -> None:
    ask()("a text nobody should find")
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret-key" not in kept
    assert b"nobody should find" not in kept


# What is kept on disk


def test_kept_counts_are_private_and_cannot_be_guessed(ask: Any, tmp_path: Path) -> None:
    """A plain checksum would let whoever has the file try texts."""
    path = tmp_path / "counts.sqlite"
    body = {"model": "m-1", "input": "one"}
    guess = hashlib.sha256(
        json.dumps([ask().endpoint.url, "m-1", body], sort_keys=True).encode()
    ).hexdigest()
    path.touch(0o644)
    assert ask().request(body) == FRAMING + 1
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as kept:
        names = [name for (name,) in kept.execute("SELECT name FROM kept")]
    assert len(names) == 1 and names[0].hex() != guess
    assert guess.encode() not in path.read_bytes()


def with_table(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as opened, opened:
        for statement in statements:
            opened.execute(statement)


BROKEN: dict[str, Callable[[Path], object]] = {
    "of bytes": lambda path: path.write_bytes(b"no database" * 500),
    "of somebody else's table": lambda path: with_table(path, "CREATE TABLE kept (other TEXT)"),
    "without its secret": lambda path: with_table(path, "UPDATE salt SET value = 'text'"),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "with damage in its middle": lambda path: path.write_bytes(
        path.read_bytes()[:4_096] + b"\xff" * (path.stat().st_size - 4_096)
    ),
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_moved_aside_and_begun_anew(
    provider: Provider,
    ask: Any,
    tmp_path: Path,
    breaks: Callable[[Path], object],
    request: pytest.FixtureRequest,
) -> None:
    path = tmp_path / "counts.sqlite"
    if "somebody" not in request.node.name:
        assert ask().many([f"word {number}" for number in range(60)]) == [2] * 60
    breaks(path)
    warning = r"Cannot read the counts in .*counts.sqlite \(.*\)\. The file was renamed to counts.sqlite.broken"
    with pytest.warns(RuntimeWarning, match=warning):
        assert ask()("word 1") == 2
    assert path.with_name("counts.sqlite.broken").exists()
    asked = len(provider.asked)
    assert ask()("word 1") == 2
    assert len(provider.asked) == asked


def test_a_kept_number_that_can_be_no_count_is_asked_for_anew(ask: Any, tmp_path: Path) -> None:
    assert ask()("one two") == 2
    with_table(tmp_path / "counts.sqlite", "UPDATE kept SET tokens = -5")
    assert ask()("one two") == 2
    with_table(tmp_path / "counts.sqlite", "UPDATE kept SET tokens = 'many'")
    assert ask()("one two") == 2


def in_no_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file where a folder should be")


UNWRITABLE: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "in no folder": in_no_folder,
}


@pytest.mark.parametrize("spoils", UNWRITABLE.values(), ids=UNWRITABLE)
def test_where_nothing_can_be_kept_counting_goes_on_and_says_so(
    provider: Provider, ask: Any, tmp_path: Path, spoils: Callable[[Path], object]
) -> None:
    count = replace(ask(), cache=tmp_path / "sub" / "counts.sqlite")
    count.cache.parent.mkdir()
    spoils(count.cache)
    for _ in range(2):
        warning = r"Cannot cache counts in .*, so they will be requested again\. .*make"
        with pytest.warns(RuntimeWarning, match=warning):
            assert count.many(["one", "one two"]) == [1, 2]
    assert len(provider.asked) == 6


@pytest.mark.usefixtures("provider")
def test_a_read_only_folder_is_said(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", mock.Mock(side_effect=PermissionError(13, "Permission denied")))
    warning = r"Cannot cache counts in .* \(\[Errno 13\] Permission denied\), so they"
    with pytest.warns(RuntimeWarning, match=warning):
        assert ask()("one two") == 2


@pytest.mark.usefixtures("provider")
def test_a_full_disk_keeps_no_count_back(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself refuses, from some page on."""
    assert ask()("before") == 1
    opened = answers._opened

    def full(path: Path, salt: bytes | None = None) -> sqlite3.Connection:
        made = opened(path, salt)
        made.execute("PRAGMA max_page_count = 1")
        return made

    monkeypatch.setattr(answers, "_opened", full)
    texts = [f"word {number}" for number in range(200)]
    warning = r"Cannot cache counts in .* \(database or disk is full\), so they"
    with pytest.warns(RuntimeWarning, match=warning):
        assert ask().many(texts) == [2] * 200
    monkeypatch.undo()


def test_eight_threads_share_a_new_file(provider: Provider, ask: Any, tmp_path: Path) -> None:
    texts = [f"{number} words" for number in range(6)]
    count = ask()
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: count.many(texts), range(16))]
    assert found == [[2] * 6] * 16
    asked = len(provider.asked)
    assert count.many(texts) == [2] * 6 and len(provider.asked) == asked
    assert [path.name for path in tmp_path.iterdir()] == ["counts.sqlite"]


def test_eight_threads_that_meet_a_broken_file_move_it_aside_once(ask: Any, tmp_path: Path) -> None:
    path = tmp_path / "counts.sqlite"
    path.write_bytes(b"no database" * 500)
    count = ask()
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(8) as pool:
        warnings.simplefilter("always")
        assert [*pool.map(lambda number: count(f"word {number}"), range(16))] == [2] * 16
    assert path.with_name("counts.sqlite.broken").read_bytes() == b"no database" * 500
    assert len(caught) == 1


@pytest.mark.usefixtures("no_network")
def test_making_a_counter_asks_nobody(tmp_path: Path) -> None:
    assert provider_counter("gemini", "gemini-3-pro", cache=tmp_path / "kept").exact
    assert not (tmp_path / "kept").exists()


def test_only_what_asks_a_provider_by_name_imports_the_door_to_the_network() -> None:
    """The package itself imports it when one of its names is first used; `count --ask` asks by name."""
    package = Path(str(budgetkit.__file__)).parent
    others = (path for path in package.rglob("*/*.py") if path.parent.name != "endpoints")
    importers = [
        path.name for path in others if "budgetkit.extras.endpoints" in path.read_text("utf-8")
    ]
    assert importers == ["counting.py"]


def test_an_unknown_provider_is_refused() -> None:
    refusal = "Unknown provider 'acme'. Choose one of: 'openai', 'anthropic', 'gemini'"
    with pytest.raises(ValueError, match=refusal):
        provider_counter("acme", "m-1")
