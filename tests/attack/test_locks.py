"""Every lock three ways: from the event loop, from a callback, and over a fork while another thread holds it."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from tests.messages import assistant, calling, tool_call, tool_result, user

PACKAGE = Path(bk.__file__).parent
PATIENCE = 20  # seconds after which something hangs
LOCK = re.compile(r"(?<![\w.])(?:threading\.)?R?Lock\(")


def test_every_lock_is_one_that_a_fork_opens() -> None:
    """A new lock is made of ForkSafeLock."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if LOCK.search(path.read_text(encoding="utf-8"))
    }
    assert not found


def talk_with(summarise: Any) -> bk.Conversation:
    """A conversation whose next request needs a summary."""
    budget = bk.Budget(120, (), [bk.Allocation("history"), bk.Allocation("current", required=True)])
    talk = bk.Conversation(budget, bk.policies.Summarise(), "o200k_base", summarise=summarise)
    for number in range(8):
        talk.add(user(f"Question {number} about the parcel that is on its way"))
        talk.add(assistant(f"Answer {number}: it has left the house and comes on Friday"))
    talk.add(user("And now?"))
    return talk


def test_a_conversation_is_saved_in_the_loop_while_a_request_waits_for_a_summary() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def summarise(messages: list[Any]) -> str:
        asked.set()
        await answer.wait()
        return "Short."

    async def both() -> tuple[str, str, Any]:
        talk = talk_with(summarise)
        before = talk.to_json()
        request = asyncio.create_task(talk.arequest())
        await asked.wait()
        talk.add(user("One thing more"))
        during = talk.to_json()
        with pytest.raises(RuntimeError, match="waits for a summary"):
            talk.request()
        answer.set()
        return before, during, await request

    before, during, request = asyncio.run(asyncio.wait_for(both(), PATIENCE))
    assert request.summaries
    restored, first = (
        bk.Conversation.from_json(
            saved, bk.policies.Summarise(), "o200k_base", summarise=lambda _: "Short."
        )
        for saved in (during, before)
    )
    assert json.loads(during)["inbox"] == [user("One thing more")]
    assert first.request().messages == request.messages
    assert restored.request().messages[-1]["content"] == "One thing more"


def test_whoever_writes_a_summary_may_save_and_add_and_is_refused_a_request() -> None:
    saved: list[str] = []
    refused: list[str] = []

    def summarise(messages: list[Any]) -> str:
        saved.append(talk.to_json())
        talk.add(user("Said meanwhile"))
        try:
            talk.request()
        except RuntimeError as error:
            refused.append(str(error))
        return "Short."

    talk = talk_with(summarise)
    worker = threading.Thread(target=talk.request, daemon=True)
    worker.start()
    worker.join(PATIENCE)
    assert not worker.is_alive()
    assert saved and all("waits for a summary" in sentence for sentence in refused)
    assert talk.to_json()


def test_an_asynchronous_summariser_is_refused_a_request_too() -> None:
    refused: list[str] = []

    async def summarise(messages: list[Any]) -> str:
        assert talk.to_json()
        try:
            await talk.arequest()
        except RuntimeError as error:
            refused.append(str(error))
        return "Short."

    talk = talk_with(summarise)
    asyncio.run(asyncio.wait_for(talk.arequest(), PATIENCE))
    assert refused


def test_threads_save_while_others_ask_for_requests() -> None:
    talk = talk_with(lambda messages: "Short.")
    texts: list[str] = []
    targets = [talk.request] * 4 + [lambda: texts.append(talk.to_json())] * 8
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert len(texts) == 8


FORKS = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import budgetkit as bk
from budgetkit.counters.speed import accelerated
from budgetkit.counters.memory import CountMemory, Memo
from budgetkit.counters.encodings import ForkSafeLock, _ALL

count = bk.counter("o200k_base")
text = "Words and 12 numbers, told again and again. " * 20_000
faster = accelerated("o200k_base")
memory, memo, own = CountMemory(1_000_000), Memo(9), ForkSafeLock(threading.RLock)
talk = bk.Conversation(bk.Budget(500, (), [bk.Allocation("history"), bk.Allocation("current")]), None, count)
talk.add({"role": "user", "content": "Hello"})
explorer = bk.BudgetExplorer("chat", window=8_192)
stop = threading.Event()

def hold():
    while not stop.is_set():
        for lock in list(_ALL):
            with lock:
                time.sleep(0.0002)

def work():
    number = 0
    while not stop.is_set():
        number += 1
        (faster or count)([text + str(number)] if faster else text + str(number))

threads = [threading.Thread(target=target, daemon=True) for target in (hold, work)]
for thread in threads:
    thread.start()

def child():
    assert count(text + "child") > 1_000 and count("x" + str(os.getpid())) > 0
    assert memory.count("a", len) == 1 and memo.once("k", lambda: 2) == 2
    with own:
        pass
    talk.add({"role": "assistant", "content": "Hello."})
    assert talk.request().messages and talk.to_json()
    explorer._run_command("window", tokens=4_096)

hung = 0
for _ in range(int(sys.argv[1])):
    time.sleep(0.01)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + 20
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            break
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            hung += 1
            break
        time.sleep(0.01)
stop.set()
print(hung)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_counts_asks_and_saves_whatever_other_threads_held_at_the_fork() -> None:
    """Nine of 36 children hung where the fast extra counted in another thread."""
    run = subprocess.run(
        [sys.executable, "-c", FORKS, "12"], capture_output=True, text=True, timeout=300
    )
    assert run.stdout.strip() == "0", run.stderr[-2_000:]


@pytest.mark.parametrize(
    "message",
    [
        user("half an emoji \ud83d"),
        calling(),
        user([{"type": "text", "text": "\udc00"}], contexts=[{"text": "\ud800"}]),
        user("x", extra=10**400),
        user("x", extra=(1, {2: None, None: (3,)})),
    ],
)
def test_what_is_taken_works_in_all_that_comes_after(message: dict[str, Any]) -> None:
    talk = bk.Conversation(bk.presets.working_memory(8_000, output=500), None, "o200k_base")
    talk.add(message)
    unsent = bk.Conversation.from_json(talk.to_json())
    first = talk.request()
    again = bk.Conversation.from_json(talk.to_json())
    again.add(user("And?"))
    talk.add(user("And?"))
    assert unsent.request().messages == first.messages
    assert again.request().messages == talk.request().messages


@pytest.mark.parametrize(
    "message",
    [
        user("x", contexts=[{"text": None}]),
        bk.Message(user("x", extra={1, 2})),
        user("x", extra=object()),
        user("x", contexts=5),
        user("x", contexts="a text"),
    ],
)
def test_what_would_fail_later_is_refused_at_once_and_nothing_changes(message: Any) -> None:
    talk = bk.Conversation(bk.presets.working_memory(8_000, output=500), None, "o200k_base")
    talk.add(user("Hello"))
    before = talk.to_json()
    with pytest.raises((ValueError, TypeError)):
        talk.add(user("fine"), message)
    assert talk.to_json() == before
    assert len(talk.request().messages) == 1


HALF = "cut off \ud83d"
DOORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Conversation": lambda message: _request_of(message).messages,
    "trim": lambda message: list(bk.trim([message], 1_000, "gpt-4o")),
    "trim with a policy": lambda message: list(
        bk.trim([message], 1_000, "gpt-4o", policy="in blocks")
    ),
    "build": lambda message: bk.build("chat", model="gpt-4o", question=message).messages,
}


def _request_of(message: dict[str, Any]) -> Any:
    talk = bk.Conversation("chat", model="gpt-4o")
    talk.add(message)
    return talk.request()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "content", [HALF, [{"type": "text", "text": HALF}], [{"type": "text", "text": "x", HALF: HALF}]]
)
def test_half_an_emoji_goes_out_as_it_is_counted(door: str, content: Any) -> None:
    """It has no bytes in UTF-8: a client of a provider failed on it, after all that was counted and planned."""
    messages = DOORS[door](user(content))
    assert "\ufffd" in json.dumps(messages, ensure_ascii=False).encode().decode()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused_before_it_is_sent(door: str, number: float) -> None:
    refusal = "Cannot save a message of role 'user': .* Use only JSON values"
    with pytest.raises(ValueError, match=refusal):
        DOORS[door](user("Hello", metadata={"score": number}))


def test_what_leaves_is_known_again_where_a_character_was_mended() -> None:
    said = [user(f"{HALF} {number}") for number in range(3)]
    fitting = bk.trim(said, 20, "gpt-4o")
    assert [message["content"][-1] for message in fitting] == ["2"]
    expected = [("dropped", "0"), ("dropped", "1")]
    assert [(left.why, left.message["content"][-1]) for left in fitting.left] == expected


def test_a_summary_that_was_cut_inside_a_character_is_mended() -> None:
    budget = bk.Budget(60, (), [bk.Allocation("history")], undeclared="pool")
    policy = bk.policies.Summarise()
    talk = bk.Conversation(budget, policy, "gpt-4o", summarise=lambda messages: HALF)
    for number in range(9):
        talk.add(user(f"Question {number}"), assistant("No."))
    talk.add(user("And?"))
    messages = talk.request().messages
    assert any(message["content"] == "cut off \ufffd" for message in messages)


PIXEL = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("form", "is_said"), [("chat", True), ("responses", False), ("anthropic", False)]
)
def test_a_picture_in_a_result_is_said_where_none_is_taken(form: Any, is_said: bool) -> None:
    """OpenAI's chat format takes only texts in a tool's message (API reference, read 2026-11-23)."""
    talk = bk.Conversation("chat", model="gpt-4o", form=form)
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    talk.add(user("Look."), calling(tool_call("a", "look")), tool_result("a", [picture]))
    told = "accepts images only from users"
    assert any(told in warning for warning in talk.request().warnings) == is_said


@pytest.mark.parametrize(
    ("roles", "is_said"), [(["assistant"], True), (["assistant", "user"], False)]
)
def test_a_request_that_begins_with_the_assistants_message_is_said_where_it_may_be_refused(
    roles: list[str], is_said: bool
) -> None:
    talk = bk.Conversation("chat", model="claude-sonnet-4-5", form="anthropic", start_on="any")
    talk.add([{"role": role, "content": "Hello."} for role in roles])
    told = "starts with a message of role 'assistant'"
    assert any(told in warning for warning in talk.request().warnings) == is_said


def test_a_summary_that_asks_for_a_request_in_another_thread_is_refused() -> None:
    """It waited for itself without end."""

    async def asking(messages: list[Any]) -> str:
        with pytest.raises(RuntimeError, match="waits for a summary"):
            await asyncio.to_thread(talk.request)
        return "Short."

    talk = talk_with(asking)
    request = asyncio.run(asyncio.wait_for(talk.arequest(), PATIENCE))
    assert request.summaries


def test_an_empty_summary_is_refused_and_changes_nothing() -> None:
    empty = ["", " "]
    talk = talk_with(lambda _: empty.pop() if empty else "Short.")
    for _ in range(2):
        with pytest.raises(ValueError, match="The summary is empty"):
            talk.request()
    sent = talk.request()
    assert sent.messages == talk_with(lambda _: "Short.").request().messages
    assert "Short." in json.dumps(sent.messages)
