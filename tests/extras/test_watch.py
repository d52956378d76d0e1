"""Watching clients: what is recorded, what is not kept, and that everything is as it was afterwards.

The real packages of OpenAI and Anthropic talk to a server on this machine; tests skip where they are not installed.
"""

import asyncio
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.endpoints import answers
from budgetkit.extras.endpoints.magic import clients_in
from budgetkit.extras.endpoints.streams import WatchedStream, watched_stream
from budgetkit.extras.endpoints.watching import Watched
from budgetkit.trace import to_line, unpaired, usage_frame

KEY = "sk-secret-0123456789abcdef"
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def chat_answer(asked: dict[str, Any]) -> dict[str, Any]:
    said = f"answer {len(asked['messages'])}"
    usage = {
        "prompt_tokens": 7 + len(asked["messages"]),
        "completion_tokens": 3,
        "total_tokens": 10,
    }
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": said},
    }
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06"}
    return {**body, "choices": [choice], "usage": usage}


def chat_events(asked: dict[str, Any]) -> list[dict[str, Any]]:
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
    }
    pieces = [{"role": "assistant", "content": "Hel"}, {"content": "lo."}]
    events = [
        {**body, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
        for piece in pieces
    ]
    return [
        *events,
        {
            **body,
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        },
    ]


def response_answer(asked: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Well.", "annotations": []}
    said = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    output = [said]
    if "tool" in str(asked["input"]):
        call = {
            "type": "function_call",
            "id": "f1",
            "call_id": "call-1",
            "name": "weather",
            "arguments": "{}",
        }
        output = [{**call, "status": "completed"}]
    usage: dict[str, Any] = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    usage |= {
        "input_tokens_details": {"cached_tokens": 16},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    body = {
        "id": f"resp-{len(str(asked))}",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4.1",
        "status": "completed",
    }
    more = {
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }
    return {**body, **more, "output": output, "usage": usage}


def message_answer(asked: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 12,
        "output_tokens": 4,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 0,
    }
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}}
    content = [{"type": "text", "text": f"I look. {KEY}"}, call]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": content,
    }
    return {**body, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


def message_events(asked: dict[str, Any]) -> list[dict[str, Any]]:
    start = {**message_answer(asked), "content": [], "stop_reason": None}
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    pieces = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}}
        for t in ("Hel", "lo.")
    ]
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 6},
    }
    stop = {"type": "content_block_stop", "index": 0}
    return [
        {"type": "message_start", "message": start},
        block,
        *pieces,
        stop,
        end,
        {"type": "message_stop"},
    ]


class Provider(BaseHTTPRequestHandler):
    """Answers as the providers do; a request for "fail" fails."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "fail" in str(asked.get("messages")):
            return self._send(
                400, "application/json", json.dumps({"error": {"message": "you asked for it"}})
            )
        if asked.get("stream"):
            events = (message_events if "/messages" in self.path else chat_events)(asked)
            lines = [
                f"event: {e.get('type')}\n" * ("type" in e) + f"data: {json.dumps(e)}\n\n"
                for e in events
            ]
            return self._send(
                200,
                "text/event-stream",
                "".join([*lines, "data: [DONE]\n\n" * ("/chat" in self.path)]),
            )
        answers = {
            "completions": chat_answer,
            "responses": response_answer,
            "messages": message_answer,
        }
        self._send(
            200,
            "application/json",
            json.dumps(answers[self.path.split("?")[0].rpartition("/")[2]](asked)),
        )

    def _send(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *given: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A server that many may call at once."""

    request_queue_size = 200


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def openai_client(address: str, kind: str = "OpenAI") -> Any:
    openai = pytest.importorskip("openai")
    return getattr(openai, kind)(api_key=KEY, base_url=f"{address}/v1", max_retries=0)


def anthropic_client(address: str, kind: str = "Anthropic") -> Any:
    anthropic = pytest.importorskip("anthropic")
    return getattr(anthropic, kind)(api_key=KEY, base_url=address, max_retries=0)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_chat_that_goes_on_is_one_conversation_with_what_was_counted(address: str) -> None:
    client = openai_client(address)
    said: list[Any] = [{"role": "system", "content": "Be brief."}, user("Hello")]
    with bk.watch(client) as watched:
        for question in ("And now?", "And then?", None):
            answer = client.chat.completions.create(model="gpt-4o", messages=said, tools=[WEATHER])
            said.append(answer.choices[0].message)  # the package's own object
            said += [user(question)] if question else []
    trace = watched.trace
    assert [message.role for message in trace.messages] == ["system"] + ["user", "assistant"] * 3
    assert [message.text for message in trace.messages[1:]] == [
        *("Hello", "answer 2", "And now?", "answer 4", "And then?", "answer 6")
    ]
    counted = usage_frame(trace)
    assert counted["message_index"].tolist() == [2, 4, 6]
    assert counted["context_tokens"].tolist() == [9, 11, 13]
    assert set(counted["model"]) == {"gpt-4o-2024-08-06"}
    assert trace.tools == (WEATHER,)
    assert repr(watched) == "Watched(3 calls, 1 conversation, 33 tokens in, 9 out)"
    assert watched.refused == []
    assert len(bk.replay(trace, bk.presets.chat(8_192), "oldest first").sent) == 3


def test_streams_are_passed_on_and_recorded_when_they_end(address: str) -> None:
    client = openai_client(address)
    ask = {"model": "gpt-4o", "messages": [user("Hello")], "stream": True}
    with bk.watch(client) as watched:
        stream = client.chat.completions.create(**ask)
        assert stream.response.status_code == 200, "what else the stream has is reached"
        assert watched.calls == 0
        assert (
            "".join(event.choices[0].delta.content for event in stream if event.choices) == "Hello."
        )
        assert [message.text for message in watched.trace.messages] == ["Hello", "Hello."]
        assert usage_frame(watched.trace)["context_tokens"].tolist() == [9]
        with client.chat.completions.create(**ask) as stream:
            next(stream)
        assert watched.traces[-1].messages[-1].text == "Hel", (
            "what has come of one that is left early"
        )
        for _ in client.chat.completions.create(**ask):
            break
        gc.collect()
        assert watched.calls == 3


def test_responses_go_on_after_the_answer_that_they_name(address: str) -> None:
    client = openai_client(address)
    with bk.watch(client) as watched:
        first = client.responses.create(
            model="gpt-4.1", instructions="Be brief.", input="call the tool"
        )
        result = {"type": "function_call_output", "call_id": "call-1", "output": "sunny"}
        client.responses.create(
            model="gpt-4.1", instructions="Be brief.", input=[result], previous_response_id=first.id
        )
    trace = watched.trace
    assert [message.role for message in trace.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert unpaired(trace) == []
    assert usage_frame(trace)["cache_read_tokens"].tolist() == [16, 16]


def test_anthropic_messages_with_tools_and_streams(address: str) -> None:
    client = anthropic_client(address)
    said: list[Any] = [user("What is the weather?")]
    ask = {"model": "claude-haiku-4-5", "max_tokens": 50, "system": "Be brief."}
    with bk.watch(client) as watched:
        answer = client.messages.create(messages=said, **ask)
        said.append({"role": "assistant", "content": answer.content})
        said.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}],
            }
        )
        for _ in client.messages.create(messages=said, stream=True, **ask):
            pass
    trace = watched.trace
    assert len(watched.traces) == 1, watched.refused
    assert [message.role for message in trace.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert trace.messages[2].tool_calls[0].name == "weather"
    assert trace.messages[-1].text == "Hello."
    counted = usage_frame(trace)
    assert counted["context_tokens"].tolist() == [912, 912]
    assert counted["output_tokens"].tolist() == [4, 6]


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_asynchronous_clients_many_at_once(address: str, make: Callable[..., Any]) -> None:
    async def talk() -> Watched:
        client = make(address, f"Async{'OpenAI' if make is openai_client else 'Anthropic'}")
        create = "chat.completions" if make is openai_client else "messages"
        with bk.watch(client) as watched:
            owner = client
            for step in create.split("."):
                owner = getattr(owner, step)
            ask: dict[str, Any] = {"model": "gpt-4o"} | (
                {} if make is openai_client else {"max_tokens": 9}
            )
            await asyncio.gather(
                *(owner.create(messages=[user(f"Question {i}")], **ask) for i in range(20))
            )
            async for _ in await owner.create(messages=[user("stream")], stream=True, **ask):
                pass
        await client.close()
        return watched

    watched = asyncio.run(talk())
    assert watched.calls == 21 and len(watched.traces) == 21
    assert {trace.messages[0].text for trace in watched.traces} == {
        *(f"Question {i}" for i in range(20)),
        "stream",
    }
    assert watched.refused == []


def test_threads_lose_nothing(address: str) -> None:
    client = openai_client(address)
    with bk.watch(client) as watched, ThreadPoolExecutor(8) as pool:
        create = client.chat.completions.create
        questions = ([user(f"Question {i}")] for i in range(60))
        [*pool.map(lambda messages: create(model="gpt-4o", messages=messages), questions)]
    assert watched.calls == 60
    assert {trace.messages[0].text for trace in watched.traces} == {
        f"Question {i}" for i in range(60)
    }


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_a_key_is_nowhere_in_what_is_kept(address: str, make: Callable[..., Any]) -> None:
    client = make(address)
    other = "Bearer another-secret-key"
    with bk.watch(client) as watched:
        asked = [user(f"My key is {KEY}, {other}, do not keep it")]
        if make is openai_client:
            client.chat.completions.create(
                model="gpt-4o", messages=asked, extra_headers={"authorization": other}
            )
        else:
            client.messages.create(
                model="x", max_tokens=9, messages=asked, extra_headers={"authorization": other}
            )
    trace = watched.trace
    explorer = bk.ConversationExplorer(trace)
    kept = [
        to_line(trace),
        repr(watched),
        repr(trace),
        str(trace.fields),
        str(watched.refused),
        *explorer.texts.values(),
    ]
    kept += [
        str(explorer.view.reader),
        str(explorer._requests(explorer._results)),
        str(vars(watched)),
    ]
    kept.append(pickle.dumps([trace.messages, trace.fields]).decode("latin-1"))
    for text in kept:
        assert KEY not in text and "another-secret-key" not in text
    assert "My key is [key], [key]" in trace.messages[0].text.replace("Bearer", "").replace(
        "[key] [key]", "[key]"
    )


def test_all_is_as_it_was_after_the_block_and_after_an_error(address: str) -> None:
    openai = pytest.importorskip("openai")
    client = openai_client(address)
    before = dict(vars(client.chat.completions))
    with pytest.raises(openai.BadRequestError), bk.watch(client) as watched:
        client.chat.completions.create(model="gpt-4o", messages=[user("fail")])
    assert vars(client.chat.completions) == before
    assert watched.calls == 0
    with pytest.raises(ZeroDivisionError), bk.watch(client):
        1 / 0  # noqa: B018
    assert vars(client.chat.completions) == before
    client.chat.completions.create(model="gpt-4o", messages=[user("Hello")])
    assert watched.calls == 0
    with pytest.raises(LookupError, match="no answer has come"):
        _ = watched.trace


def made_up(answer: Any = None) -> Any:
    said = {
        "choices": [{"message": {"role": "assistant", "content": "Yes."}}],
        "usage": {"prompt_tokens": 5},
    }
    return SimpleNamespace(
        chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **asked: answer or said))
    )


def recorded(client: Any, text: str, **asked: Any) -> str:
    """What is kept of a question."""
    with bk.watch(client) as watched:
        client.chat.completions.create(model="m", messages=[user(text)], **asked)
    return watched.trace.messages[0].text


def test_only_what_stands_under_the_name_of_a_secret_is_a_key() -> None:
    text = "What is the weather application for Berlin? Reply as application/json"
    headers = {
        "X-Title": "weather application",
        "Accept": "application/json",
        "X-Max-Tokens": "Berlin?",
    }
    assert recorded(made_up(), text, extra_headers=headers, prompt_cache_key="application") == text
    secrets = {
        "X-Goog-Api-Key": "goog-123",
        "Cookie": "session=abc-4567; theme=dark",
        "X-Client-Secret": "hush-hush",
    }
    assert (
        recorded(made_up(), "goog-123 abc-4567 hush-hush", extra_headers=secrets)
        == "[key] [key] [key]"
    )


def test_a_key_that_changes_inside_the_block_is_taken_out_too() -> None:
    """By the one who calls, or by the client itself, which may fetch a new one for each call."""
    told = "old-key-11111, new-key-22222, own-key-33333"

    def create(**asked: Any) -> Any:
        client.api_key = "own-key-33333"
        return {
            "choices": [{"message": {"role": "assistant", "content": told}}],
            "usage": {"prompt_tokens": 5},
        }

    completions = SimpleNamespace(create=create)
    client = SimpleNamespace(chat=SimpleNamespace(completions=completions), api_key="old-key-11111")
    with bk.watch(client) as watched:
        client.api_key = "new-key-22222"
        client.chat.completions.create(model="m", messages=[user(told)])
        client.api_key = "four-key-4444"
        client.chat.completions.create(model="m", messages=[user(told + ", four-key-4444")])
    for trace, more in zip(watched.traces, ("", ", [key]"), strict=True):
        assert [message.text for message in trace.messages] == [
            "[key], [key], [key]" + more,
            "[key], [key], [key]",
        ]
    assert not [key for key in ("11111", "22222", "33333", "4444") if key in str(vars(watched))]


def test_of_two_keys_one_in_the_other_the_longer_one_is_taken_out_first() -> None:
    keys = [f"secret-{'x' * length}" for length in range(9)]
    headers = {f"X-{number}-Key": key for number, key in enumerate(keys)}
    assert recorded(made_up(), " ".join(keys), extra_headers=headers) == " ".join(
        ["[key]"] * len(keys)
    )


def test_keys_that_clients_hold_elsewhere_are_taken_out_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openai = pytest.importorskip("openai")
    answer = made_up().chat.completions.create()
    text = "gateway-secret-9, ad-token-77777, sk-litellm-24680"
    gateway = openai.OpenAI(api_key=KEY, default_headers={"X-Gateway-Key": "gateway-secret-9"})
    azure = openai.AzureOpenAI(
        azure_ad_token="ad-token-77777", azure_endpoint="http://localhost", api_version="1"
    )
    litellm = SimpleNamespace(openai_key="sk-litellm-24680", completion=lambda **asked: answer)
    with bk.watch(litellm) as watched:
        litellm.completion(model="m", messages=[user(text)])
    assert watched.trace.messages[0].text == "gateway-secret-9, ad-token-77777, [key]"
    for client, kept in ((gateway, "[key], ad-token-77777"), (azure, "gateway-secret-9, [key]")):
        monkeypatch.setattr(client.chat.completions, "create", lambda **asked: answer)
        assert recorded(client, text) == f"{kept}, sk-litellm-24680"


def test_two_that_watch_one_client_each_see_it_and_may_end_in_any_order() -> None:
    client = made_up()
    own = client.chat.completions.create
    first, second = bk.watch(client), bk.watch(client)
    first.__enter__()
    second.__enter__()
    client.chat.completions.create(model="m", messages=[user("1")])
    first.__exit__()
    client.chat.completions.create(model="m", messages=[user("2")])
    second.__exit__()
    assert (first.calls, second.calls) == (1, 2)
    assert client.chat.completions.create is own


def test_of_two_calls_one_in_the_other_the_outer_one_counts() -> None:
    inner, outer = made_up(), made_up()
    own = outer.chat.completions
    own.create = lambda **asked: inner.chat.completions.create(**asked)
    with bk.watch(inner, outer) as watched:
        own.create(model="m", messages=[user("1")])
        inner.chat.completions.create(model="m", messages=[user("2")])
    assert watched.calls == 2


def test_what_cannot_be_read_is_said_and_never_stops_the_caller() -> None:
    client = made_up(answer=SimpleNamespace(nothing=object()))
    with bk.watch(client) as watched:
        client.chat.completions.create(model="m", messages=[user("1")])
        client.chat.completions.create(model="m", messages=(object() for _ in range(2)))
    assert watched.calls == 2 and len(watched.refused) == 2 and watched.traces == []
    assert repr(watched) == "Watched(2 calls, 0 conversations, 0 tokens in, 0 out, 2 not read)"
    with (
        pytest.raises(TypeError, match="it has none of chat.completions.create"),
        bk.watch(object()),
    ):
        pass


def test_a_conversation_that_its_program_cuts_goes_on_and_another_one_begins() -> None:
    client = made_up()
    said = [{"role": "system", "content": "s"}, user("one")]
    with bk.watch(client) as watched:
        for question in ("two", "three"):
            client.chat.completions.create(model="m", messages=said)
            said += [{"role": "assistant", "content": "Yes."}, user(question)]
        # What was first is cut away.
        client.chat.completions.create(model="m", messages=[said[0], *said[-3:]])
        client.chat.completions.create(model="m", messages=[user("something else")])
    texts = [[message.text for message in trace.messages] for trace in watched.traces]
    assert texts == [
        ["s", "one", "Yes.", "two", "Yes.", "three", "Yes."],
        ["something else", "Yes."],
    ]


def test_a_call_goes_on_the_conversation_of_which_it_repeats_the_most_from_the_beginning() -> None:
    client = made_up()
    yes, ok = user("yes"), {"role": "assistant", "content": "Yes."}
    first, second = [yes], [user("My name is B"), {"role": "assistant", "content": "hi"}, yes]
    with bk.watch(client) as watched:
        for said in (
            first,
            second,
            [*first, ok, user("A goes on")],
            [*second, ok, user("B goes on")],
        ):
            client.chat.completions.create(model="m", messages=said)
        client.chat.completions.create(
            model="m", messages=[user("twice"), ok, user("twice"), ok, user("C goes on")]
        )
    texts = [[message.text for message in trace.messages] for trace in watched.traces]
    assert texts[0] == ["yes", "Yes.", "A goes on", "Yes."]
    assert texts[1] == ["My name is B", "hi", "yes", "Yes.", "B goes on", "Yes."]
    assert texts[2] == ["twice", "Yes.", "twice", "Yes.", "C goes on", "Yes."]


def test_a_request_that_says_the_same_twice_loses_nothing() -> None:
    client, said = made_up(), [user("more")]
    with bk.watch(client) as watched:
        client.chat.completions.create(model="m", messages=said)
        said += [
            {"role": "assistant", "content": "Yes."},
            *said,
            {"role": "assistant", "content": "Yes."},
            user("end"),
        ]
        client.chat.completions.create(model="m", messages=said)
    assert [message.text for message in watched.trace.messages] == [
        "more",
        "Yes.",
        "more",
        "Yes.",
        "end",
        "Yes.",
    ]


def test_messages_are_compared_only_where_a_conversation_may_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []
    own = answers._key
    monkeypatch.setattr(answers, "_key", lambda message: (made.append(message), own(message))[1])  # type: ignore[func-returns-value]
    client = made_up()
    with bk.watch(client) as watched:
        for number in range(60):
            client.chat.completions.create(model="m", messages=[user(f"Question {number}")])
    assert len(watched.traces) == 60
    assert len(made) <= 3 * 60, "each message once, and once as a request's"


def test_an_explorer_grows_with_the_conversation() -> None:
    client, explorer = made_up(), bk.BudgetExplorer("chat", window=8_192)
    said = [user("Hello")]
    with bk.watch(client, explorer=explorer) as watched:
        for turn in range(25):
            client.chat.completions.create(model="m", messages=said)
            said += [{"role": "assistant", "content": "Yes."}, user(f"Question {turn}")]
            assert explorer.config["turn"] == turn + 1
    assert watched.refused == []
    assert explorer.config["trace"] == "watched-1, 50 messages"
    explorer.undo()
    assert explorer.config["trace"] is None, "all of its growth is one step"
    assert (
        len([name for name in explorer.library.conversations.names if name.startswith("watched-1")])
        <= 21
    )


def test_what_an_explorer_does_not_show_is_recorded_and_told_as_that() -> None:
    class Broken:
        def follow(self, trace: Any) -> None:
            raise ValueError("no window is open")

    client = made_up()
    with bk.watch(client, explorer=Broken()) as watched:
        client.chat.completions.create(model="m", messages=[user("1")])
    assert watched.refused == [] and watched.unshown == ["ValueError: no window is open"]
    assert (
        repr(watched)
        == "Watched(1 call, 1 conversation, 5 tokens in, 0 out, 1 not shown in the explorer)"
    )


async def waited_for() -> AsyncIterator[str]:
    yield "a"


class Either(list[str]):
    __next__ = __anext__ = __aiter__ = lambda self: self


@pytest.mark.parametrize("inner", [iter("a"), waited_for(), Either()])
def test_a_watched_stream_is_of_the_kind_that_its_client_made(inner: Any) -> None:
    stream = watched_stream(inner, lambda events: None)
    for name in ("__iter__", "__next__", "__aiter__", "__anext__"):
        assert hasattr(stream, name) == hasattr(inner, name), name
    assert not hasattr(WatchedStream(iter([]), print), "__aiter__")


LITELLM = f"""
import asyncio, json, litellm, budgetkit as bk
from budgetkit.trace import to_line
own = litellm.completion, litellm.acompletion
with bk.watch(litellm) as watched:
    litellm.completion("gpt-4o", [{{"role": "user", "content": "Hello"}}], mock_response="Hi.", api_key="{KEY}")
    said = [{{"role": "user", "content": "Hello again"}}]
    asyncio.run(litellm.acompletion(model="gpt-4o", messages=said, mock_response="Hi."))
    said = [{{"role": "user", "content": "In events"}}]
    stream = litellm.completion(model="gpt-4o", messages=said, mock_response="Hi.", stream=True)
    assert "".join(event.choices[0].delta.content or "" for event in stream) == "Hi."
assert (litellm.completion, litellm.acompletion) == own
assert "{KEY}" not in str(vars(watched)) + "".join(map(to_line, watched.traces))
print(json.dumps([[m.text for m in trace.messages] for trace in watched.traces] + [watched.refused]))
"""


def test_litellm_is_watched_as_a_module() -> None:
    if find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    # It would ask another machine for prices.
    alone = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LITELLM], capture_output=True, text=True, env=alone
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["Hello", "Hi."],
        ["Hello again", "Hi."],
        ["In events", "Hi."],
        [],
    ]


def test_the_cell_magic_runs_the_cell_and_shows_what_was_recorded(address: str) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_line_magic("load_ext", "budgetkit")
    client = openai_client(address)
    shell.user_ns["client"] = client
    cell = 'x = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])'
    for line in ("", "client"):
        found = shell.run_cell_magic("budget", line, cell)
        assert repr(found) == "Watched(1 call, 1 conversation, 8 tokens in, 3 out)"
        assert shell.user_ns["watched"] is found
        assert shell.user_ns["x"].choices[0].message.content == "answer 1"
    assert "create" not in vars(client.chat.completions)
    with pytest.raises(ValueError, match=r"a cell that awaits; write `with bk\.watch"):
        shell.run_cell_magic("budget", "client", "await nothing()")
    with pytest.raises(ValueError, match="no nobody in this notebook"):
        shell.run_cell_magic("budget", "nobody", cell)
    with pytest.raises(ValueError, match="no client of openai, anthropic or litellm"):
        clients_in({"number": 3})
