"""Counting by asking the provider, against a local server that answers in the three documented shapes."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import budgetkit
from budgetkit.counters import Counter
from budgetkit.endpoints import ENDPOINTS, EndpointError, ProviderCounter, provider_counter

FRAMING = 7  # tokens that this server's requests cost beyond the words of their text


class Provider(ThreadingHTTPServer):
    """A provider that counts words, and remembers what it was asked."""

    daemon_threads = True

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
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def count(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.path.endswith("/responses/input_tokens"):
            return {"object": "response.input_tokens", "input_tokens": FRAMING + len(body["input"].split())}
        if self.path.endswith("/messages/count_tokens"):
            words = [word for message in body["messages"] for word in message["content"].split()]
            return {"input_tokens": FRAMING + len(words)}
        words = [word for content in body["contents"] for part in content["parts"] for word in part["text"].split()]
        return {"totalTokens": FRAMING + len(words), "promptTokensDetails": []}

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
        return ProviderCounter("m-1", replace(known, url=f"{provider.url}/{path}"), tmp_path / "counts.sqlite", **more)

    return make


SHAPES = [
    ("openai", "/v1/responses/input_tokens", "authorization", "Bearer secret-key"),
    ("anthropic", "/v1/messages/count_tokens", "x-api-key", "secret-key"),
    ("gemini", "/v1beta/models/m-1:countTokens", "x-goog-api-key", "secret-key"),
]


@pytest.mark.parametrize(("name", "path", "header", "key"), SHAPES, ids=[shape[0] for shape in SHAPES])
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
    with pytest.raises(EndpointError, match=r"it answered 500 \(overloaded\); correct the request, or try again later"):
        count("two")


REFUSALS = [
    (
        401,
        {},
        {"error": {"message": "bad key"}},
        r"it refused the key \(bad key\); look whether OPENAI_API_KEY holds a",
    ),
    (403, {}, {"error": "forbidden"}, r"it refused the key \(forbidden\); look"),
    (
        429,
        {"retry-after": "20"},
        {"error": {"message": "slow down"}},
        r"rate limit is reached \(slow down\); wait 20 sec",
    ),
    (429, {}, {}, r"its rate limit is reached \(Too Many Requests\); wait a while and try again"),
    (404, {}, {"error": {"message": "no m-1"}}, r"it knows no such model \(no m-1\); write the name as 127.0.0.1 does"),
    (200, {}, {"object": "?"}, r"the answer holds no 'input_tokens' .*; is the address right\?"),
]


@pytest.mark.parametrize(("status", "headers", "answer", "sentence"), REFUSALS)
def test_a_refusal_says_what_was_asked_what_is_known_and_what_to_do(
    provider: Provider, ask: Any, status: int, headers: dict[str, str], answer: Any, sentence: str
) -> None:
    provider.refuse = (status, headers, answer)
    with pytest.raises(EndpointError, match=f"OpenAI was asked to count for m-1; .*{sentence}") as raised:
        ask()("one")
    assert "secret-key" not in str(raised.value)


def test_a_slow_answer_is_not_waited_for(provider: Provider, ask: Any) -> None:
    provider.delay = 0.5
    with pytest.raises(EndpointError, match=r"no answer within 0.05 seconds; try again, or give a longer timeout="):
        ask(timeout=0.05)("one")


def test_an_unreachable_provider_is_said_to_be(ask: Any) -> None:
    count = ask()
    nowhere = replace(count, endpoint=replace(count.endpoint, url="http://127.0.0.1:9/v1"))
    with pytest.raises(EndpointError, match=r"it cannot be reached \(.*\); look at the network, or count without it"):
        nowhere("one")


def test_a_missing_key_is_named(ask: Any, monkeypatch: pytest.MonkeyPatch, provider: Provider) -> None:
    count = ask()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set; put your key into that environment variable"):
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


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
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


@pytest.mark.parametrize("wrong", ["sk-9fB2xQ\n7mT4vL8kZw", "sk-9fB2xQ 7mT4vL8kZw", "sk-9fB2xQ7mT4vL8k\xe9", "9fB2x"])
def test_what_is_no_key_is_refused_before_it_is_sent_and_not_shown(
    provider: Provider, ask: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    count = ask()
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    with (
        caplog.at_level("DEBUG"),
        pytest.raises(EndpointError, match="OPENAI_API_KEY holds .* copy your key") as raised,
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


@pytest.mark.usefixtures("no_network")
def test_making_a_counter_asks_nobody(tmp_path: Path) -> None:
    assert provider_counter("gemini", "gemini-3-pro", cache=tmp_path / "kept").exact
    assert not (tmp_path / "kept").exists()


def test_nothing_else_imports_the_door_to_the_network() -> None:
    package = Path(str(budgetkit.__file__)).parent
    others = (path for path in package.rglob("*.py") if path.parent.name != "endpoints")
    importers = [path.name for path in others if "budgetkit.endpoints" in path.read_text("utf-8")]
    assert importers == []


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="no count endpoint of 'acme'; known are openai, anthropic, gemini; use one"):
        provider_counter("acme", "m-1")
