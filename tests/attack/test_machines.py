"""Whatever is done to an explorer or to a running conversation, in whatever order: its state is the last good one.

A page shows what follows from that state, and nothing is raised.

`BUDGETKIT_EFFORT=40` tries forty times as much (see conftest).
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from jupyter_client.session import json_packer

import budgetkit as bk
from budgetkit import policies
from budgetkit.lab.accuracy.corpora import Corpus, Document
from budgetkit.lab.app.card import DesignCard
from budgetkit.lab.explorers.accuracy import AccuracyExplorer
from budgetkit.lab.explorers.budget import BudgetExplorer
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.state import to_json, to_yaml
from tests.conftest import examples
from tests.lab.test_replay import window
from tests.messages import assistant, system, tool_call, tool_result, user
from tests.provider_rules import RULES
from tests.slow_replay import ONE_A_CHARACTER

pytestmark = pytest.mark.filterwarnings("ignore::budgetkit.models.RetiredModelWarning")

SAID = [
    {"role": role, "content": f"{word} " * size}
    for role, word, size in (("user", "why", 40), ("assistant", "so", 90))
]
TOY = bk.Trace("toy", tuple(bk.Message(each) for each in [system("Be brief."), *SAID * 4]))
TEXTS = Corpus(
    tuple(
        Document(f"d{n}", ("prose", "code")[n % 2], "en", "toy", "some words " * n)
        for n in range(1, 7)
    )
)
FILES = [
    *(bk.trace.to_line(TOY).encode(), b"", b"\xff\xfe", b"[" * 3_000, b'{"messages": 5}'),
    *(to_json(bk.presets.chat(8_192)).encode(), to_yaml(bk.presets.rag(9_000)).encode()),
    *(b"word " * 50, b"a: &a [*a]"),
]
TYPED = [file.decode() for file in FILES if b"\xff" not in file]
STRANGE: list[Any] = [
    None, True, -1, 0, 1, 7, 10**30, 0.5, 1e308, float("nan"), "", "x", "\ud83d", "9" * 5_000, [],
    {}, ["x"],
]  # fmt: skip
SIZES = [0, 1, 300, 4_096, 100_000]
LINES = ["window", "output", "conversation", "retrieval", "system", "safety"]
SHARES = [bk.Share(0.2), bk.Share(0.5, 10, 900), None, *SIZES]
NAMES = ["toy.jsonl", "set.yaml", "<b>", "", "..", "\ud83d", "words.csv.gz"]
MODELS = ["gpt-4o", "gpt-4.1", "claude-haiku-4-5", " gpt-5.1 "]
#: For each command what it takes; a command that is not here is sent strange values alone.
BUDGET: dict[str, dict[str, list[Any]]] = {
    "model": {"name": MODELS},
    "preset": {"name": [*bk.presets.PRESETS]},
    "size": {"line": LINES, "size": SHARES},
    "limits": {"line": LINES, "at_least": SIZES, "at_most": SIZES},
    "lock": {"line": LINES, "on": [True, False]},
    "switch": {"line": LINES, "on": [True, False]},
    "counter": {"name": ["", "chars/4", "cl100k_base"]},
    "trace": {"name": [None, "toy", "support-chat"]},
    "path": {"path": ["support-chat", "no such file"]},
    "conversation": {"number": [0, 1]},
    "turn": {"turn": [1, 2, 4, 5]},
    "demand": {"section": LINES, "tokens": SIZES},
    "pin": {},
    "load": {"text": TYPED},
    "reset": {},
}
REPLAY: dict[str, dict[str, list[Any]]] = {
    **{
        name: BUDGET[name]
        for name in ("model", "preset", "size", "counter", "load", "trace", "reset")
    },
    "policies": {"names": [["oldest first"], ["last turns", "octopus"], []]},
    "main": {"name": ["oldest first", "sliding window", "step"]},
    "number": {"policy": ["sliding window"], "number": ["turns"], "value": [1, 3]},
    "floor": {"part": ["least", "unit"], "value": [0, 2, 500, "tokens", "turns", "messages"]},
    "by": {"by": ["turn", "request"]},
    "within": {"on": [True, False]},
    "rules": {"name": ["", "anthropic", "openai"]},
    "lifetime": {"name": ["", "1 hour"]},
    "day": {"text": ["", "2026-01-01"]},
    "price": {"of": ["input", "output"], "text": ["", "3", "0.5"]},
    "request": {"request": [1, 2, 4, 5]},
    "horizon": {"turns": [1, 30]},
    "money": {"money": [0, 2.5]},
}
ACCURACY: dict[str, dict[str, list[Any]]] = {
    **{name: BUDGET[name] for name in ("model", "preset", "load", "reset")},
    "counter": {"name": ["chars/4", "bytes/4", "estimate:o200k_base"]},
    "exact": {"name": ["", "cl100k_base"]},
    "corpus": {"name": ["mini"]},
    "classes": {"names": [["prose"], ["prose", "code"], []]},
    "risk": {"chance": [0.01, 0.1]},
    "window_mix": {"column": [None, "mixed", "class", "language"]},
    "document": {"document": [None, 0, 3]},
    **{name: BUDGET[name] for name in ("size", "limits", "lock", "switch")},
}


def shown(explorer: Any) -> dict[str, Any]:
    """Give what stands on the page, but for what differs in each picture: its number, its answer, what was said."""
    return {
        name: value
        for name, value in explorer.view.state.items()
        if name not in ("serial", "ack", "status")
    }


class ExplorerMachine(RuleBasedStateMachine):
    """A hand, a page and a line of code, in any order."""

    make: Callable[[], Any]
    known: dict[str, dict[str, list[Any]]]

    def __init__(self) -> None:
        super().__init__()
        self.explorer = type(self).make()
        self.seen = [self.explorer.settings]

    def send(self, content: dict[str, Any], *buffers: bytes) -> None:
        """Do what a page does; afterwards either settings are as before and it is told why, or they are new."""
        before, told = self.explorer.settings, self.explorer.view.state["serial"]
        self.explorer._receive(self.explorer.view, content, list(buffers))
        state = self.explorer.view.state
        if state["status"]["level"] == "error" and state["serial"] != told:
            assert self.explorer.settings == before, "what could not be is not kept"
            assert state["status"]["text"] and "\n" not in state["status"]["text"]
        self.seen.append(self.explorer.settings)

    @rule(data=st.data())
    def command(self, data: st.DataObject) -> None:
        self.send(self.drawn(data))

    def drawn(self, data: st.DataObject) -> dict[str, Any]:
        kind = data.draw(st.sampled_from([*type(self).known]))
        takes = type(self).known[kind]
        values = {
            name: data.draw(st.sampled_from([*good * 2, *STRANGE])) for name, good in takes.items()
        }
        gesture = data.draw(st.sampled_from(["", "", "drag a", "slide b"]))
        return {"kind": kind, "id": "page 1", "gesture": gesture, **values}

    @rule(
        kind=st.sampled_from(["", "no command", "refused", "file", "fold", *BUDGET]),
        value=st.sampled_from(STRANGE),
    )
    def nonsense(self, kind: str, value: Any) -> None:
        self.send({"kind": kind, "text": value, "line": value, "name": value, "other": value})

    @rule(kind=st.sampled_from(["undo", "undo", "redo", "grab", "release"]))
    def button(self, kind: str) -> None:
        self.send({"kind": kind})
        assert self.explorer.settings in self.seen, "what comes back has been there"

    @rule(
        content=st.sampled_from(FILES),
        purpose=st.sampled_from(["file", "setup", "x"]),
        pieces=st.integers(1, 3),
        name=st.sampled_from(NAMES),
    )
    def upload(self, content: bytes, purpose: str, pieces: int, name: str) -> None:
        if not content:
            return
        size = max(1, len(content) // pieces)
        told = {"kind": "file", "serial": "1", "name": name, "purpose": purpose, "size": len(content)}  # fmt: skip
        for offset in range(0, len(content), size):
            self.send({**told, "offset": offset}, content[offset : offset + size])

    @rule(data=st.data())
    def tables(self, data: st.DataObject) -> None:
        view = self.explorer.view
        view.opened = data.draw(
            st.lists(
                st.sampled_from([*view.figures, *self.explorer.kind.folds, "x"]),
                unique=True,
                max_size=2,
            )
        )

    @rule(data=st.data(), step=st.sampled_from(["plan", "scene", "charts", "status", "entry"]))
    def interrupted(self, data: st.DataObject, step: str) -> None:
        """An interrupt at any step of a command leaves what was there, and the next command is heard."""
        before, page = self.explorer.settings, shown(self.explorer)
        content = self.drawn(data)
        interrupt = mock.Mock(side_effect=KeyboardInterrupt)
        if step == "plan":
            broken: Any = mock.patch.object(BudgetStage, "plan", property(interrupt))
        else:
            kind = replace(self.explorer.kind, **{step: interrupt})
            broken = mock.patch.object(self.explorer, "kind", kind)
        with broken:
            try:
                self.explorer._receive(self.explorer.view, content, [])
            except KeyboardInterrupt:
                assert self.explorer.settings == before
                assert shown(self.explorer) == page

    @invariant()
    def what_is_shown_follows_from_the_settings_alone(self) -> None:
        explorer = self.explorer
        stage = explorer.kind.stage(explorer.settings, explorer.library)
        scene = explorer.kind.scene(stage)
        state = explorer.view.state
        assert {name: state[name] for name in scene if name != "actions"} == {
            n: v for n, v in scene.items() if n != "actions"
        }
        assert state["actions"]["undo"] == bool(explorer._history.past)
        assert state["actions"]["redo"] == bool(explorer._history.future)
        json_packer(explorer.view.get_state())
        json.dumps(explorer.texts)

    def teardown(self) -> None:
        self.explorer.view.close()


def machine(name: str, make: Callable[[], Any], known: dict[str, dict[str, list[Any]]]) -> Any:
    made: Any = type(name, (ExplorerMachine,), {"make": staticmethod(make), "known": known})
    case = made.TestCase
    case.settings = settings(
        max_examples=examples(6), stateful_step_count=12, suppress_health_check=list(HealthCheck)
    )
    return case


TestBudgetExplorer = machine("Budget", lambda: BudgetExplorer("chat", [TOY], window=2_000), BUDGET)
TestDesignCard = machine("Card", lambda: DesignCard("chat", [TOY], window=2_000), BUDGET)
TestConversationExplorer = machine("Conversation", lambda: ConversationExplorer([TOY]), REPLAY)
TestAccuracyExplorer = machine("Accuracy", lambda: AccuracyExplorer(corpus=TEXTS), ACCURACY)


# --- the conversation that runs -----------------------------------------------------------------------------------


POLICIES = (
    policies.Summarise(bk.Share(0.5)),
    policies.Chain([policies.DropToolResults(1), policies.Summarise(bk.Share(0.6))]),
    policies.SlidingWindow(2),
)
REFUSED: list[Any] = [None, 5, {}, {"role": 5}, {"content": "nobody"}, [user("x"), 5], b"x"]


class ConversationMachine(RuleBasedStateMachine):
    """One conversation suffers errors, interrupts and restarts; its twin hears only what went well."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self.number = 0

    @initialize(policy=st.sampled_from(POLICIES), size=st.integers(40, 160))
    def begin(self, policy: policies.Policy, size: int) -> None:
        self.policy = policy
        self.more: dict[str, Any] = {
            "framing": ONE_A_CHARACTER,
            "overrun": "tell",
            "summarise": self.summary,
        }
        self.talk, self.twin = (
            bk.Conversation(window(size), policy, len, **self.more) for _ in range(2)
        )

    def summary(self, messages: list[Any]) -> str:
        if self.failure is not None:
            raise self.failure
        return "s" * (len(messages) + 3)

    @rule(role=st.sampled_from(["user", "user", "assistant", "system"]), size=st.integers(0, 30))
    def say(self, role: str, size: int) -> None:
        for talk in (self.talk, self.twin):
            talk.add({"role": role, "content": "w" * size})

    @rule(size=st.integers(0, 30), results=st.booleans())
    def call(self, size: int, results: bool) -> None:
        self.number += 1
        name = f"call {self.number}"
        calls = [tool_call(name, "f", "")]
        said: list[dict[str, Any]] = [assistant("", tool_calls=calls)]
        said += [tool_result(name, "r" * size)] * results
        for talk in (self.talk, self.twin):
            talk.add(*said)

    @rule(message=st.sampled_from(REFUSED))
    def say_nonsense(self, message: Any) -> None:
        before = self.talk.to_json()
        with pytest.raises((TypeError, ValueError), match=r"\. [A-Z]"):
            self.talk.add(message)
        assert self.talk.to_json() == before

    @rule()
    def ask(self) -> None:
        request, same = self.talk.request(), self.twin.request()
        assert request == same
        assert (
            ONE_A_CHARACTER.request([bk.Message(each) for each in request.messages], len)
            <= request.tokens
        )

    @rule(failure=st.sampled_from([RuntimeError("the model is out"), KeyboardInterrupt()]))
    def ask_while_nobody_summarises(self, failure: BaseException) -> None:
        """Where a summary was due, the request fails and all is as before it; elsewhere it is one like any other."""
        self.failure = failure
        try:
            assert self.talk.request() is not None
        except type(failure):
            pass
        else:
            self.failure = None
            self.twin.request()
        finally:
            self.failure = None

    @rule()
    def restart(self) -> None:
        saved = self.talk.to_json()
        self.talk = bk.Conversation.from_json(saved, self.policy, len, **self.more)
        assert self.talk.to_json() == saved

    @invariant()
    def what_is_saved_can_be_loaded(self) -> None:
        if hasattr(self, "talk"):
            bk.Conversation.from_json(self.talk.to_json(), self.policy, len, **self.more)


TestRunning = ConversationMachine.TestCase
TestRunning.settings = settings(max_examples=examples(60), stateful_step_count=20)


PIXEL = "iVBORw0KGgo="
#: The model whose rules count a conversation in each form.
COUNTED_BY = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "converse": "claude-haiku-4-5",
}
MARK = re.compile(r"<[ms]\d+>")
GENERAL: dict[str, bk.policies.Policy | str] = {
    **{name: name for name in sorted({*policies.NAMED} - {*policies.SYSTEMS})},
    "capped results": policies.CapResults(60),
    "importance": policies.Importance(),
    "whole turns": policies.OldestFirst(unit="turn"),
    "results, then summaries": policies.Chain(
        [policies.CapResults(200), policies.DropToolResults(20, 1), policies.Summarise()]
    ),
}


def said_by(form: str, role: str, text: str) -> Any:
    """Write a message of the user's or the assistant's in a form."""
    if form == "gemini":
        return {"role": "user" if role == "user" else "model", "parts": [{"text": text}]}
    if form == "converse":
        return {"role": role, "content": [{"text": text}]}
    if form == "responses":
        kind = "input_text" if role == "user" else "output_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    if form == "anthropic":
        return {"role": role, "content": [{"type": "text", "text": text}]}
    return {"role": role, "content": text}


def calls_of(form: str, ids: list[str]) -> list[Any]:
    """Write parallel calls in a form."""
    if form == "gemini":
        return [
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "look", "args": {}}} for _ in ids],
            }
        ]
    if form == "converse":
        uses: list[Any] = [{"toolUse": {"toolUseId": i, "name": "look", "input": {}}} for i in ids]
        return [assistant(uses)]
    if form == "responses":
        call = {"type": "function_call", "name": "look", "arguments": "{}"}
        thought = {"type": "reasoning", "id": f"rs_{ids[0]}", "summary": []}
        return [thought, *({**call, "call_id": i} for i in ids)]
    if form == "anthropic":
        uses = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]
        return [assistant(uses)]
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": i, "type": "function", "function": function} for i in ids]
    return [assistant(None, tool_calls=calls)]


def results_of(form: str, results: dict[str, str], picture: bool) -> list[Any]:
    """Write what tools answer in a form; the last shows a picture where the form takes one."""
    blocks: list[Any] = []
    for id, text in results.items():
        if form == "gemini":
            answer = {"name": "look", "response": {"result": text}}
            blocks.append({"functionResponse": answer})
        elif form == "converse":
            content = [{"text": text}]
            blocks.append({"toolResult": {"toolUseId": id, "content": content}})
        elif form == "responses":
            blocks.append({"type": "function_call_output", "call_id": id, "output": text})
        elif form == "anthropic":
            parts: list[Any] = [{"type": "text", "text": text}]
            blocks.append({"type": "tool_result", "tool_use_id": id, "content": parts})
        else:
            blocks.append(tool_result(id, text))
    if picture and form == "responses":
        url = f"data:image/png;base64,{PIXEL}"
        words = {"type": "input_text", "text": blocks[-1]["output"]}
        blocks[-1]["output"] = [words, {"type": "input_image", "image_url": url}]
    if picture and form == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        blocks[-1]["content"].append({"type": "image", "source": source})
    if form == "gemini":
        return [{"role": "user", "parts": blocks}]
    if form in ("anthropic", "converse"):
        return [user(blocks)]
    return blocks


class RulesMachine(RuleBasedStateMachine):
    """A conversation under a general rule, in the form of a provider, that is saved and loaded between its steps.

    Every message says a mark of its own, so that what is sent, left and summarised is read from the texts alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.marks = 0
        self.broken = False
        self.inside: dict[str, set[str]] = {}  # of each summary, the marks that it stands for
        self.answers: list[list[str]] = []  # the ids of the calls of each answer

    @initialize(
        rule=st.sampled_from([*sorted(GENERAL), *["summarise"] * 4]),
        form=st.sampled_from(sorted(RULES)),
        window=st.sampled_from([1_500, 6_000, 24_000]),
        start_on=st.sampled_from(["user", "any"]),
        words=st.sampled_from([2, 60]),
    )
    def begin(self, rule: str, form: str, window: int, start_on: Any, words: int) -> None:
        self.form = form
        self.window = window
        self.words = words
        self.more: dict[str, Any] = {"summarise": self.summary}
        self.talk = bk.Conversation(
            bk.presets.working_memory(window, output=300, history_floor=0),
            GENERAL[rule],
            model=COUNTED_BY[form],
            overrun="tell",
            start_on=start_on,
            form=form,  # type: ignore[arg-type]
            **self.more,
        )
        self.live: set[str] = set()  # marks of the messages that a request may hold

    def mark(self, kind: str) -> str:
        self.marks += 1
        return f"<{kind}{self.marks}>"

    def text(self, share: float) -> str:
        mark = self.mark("m")
        self.live.add(mark)
        return f"{mark} " + "some words " * max(1, int(self.window * share / 2)) + "."

    def summary(self, messages: list[Any]) -> str:
        if self.broken:
            raise RuntimeError("the model is out")
        mark = self.mark("s")
        texts = " ".join(message.text for message in messages)
        self.inside[mark] = {*MARK.findall(texts)}
        return f"{mark} " + "in short " * self.words + "."

    def covered(self, mark: str) -> set[str]:
        """Return the marks for which a summary stands, those of the summaries in it too."""
        inside = self.inside[mark]
        return inside.union(*(self.covered(other) for other in inside if other in self.inside))

    def add(self, *messages: Any) -> None:
        self.talk.add(*messages)

    @rule(
        share=st.sampled_from([0.0, 0.02, 0.1, 0.45]),
        steps=st.lists(
            st.tuples(
                st.integers(1, 3),
                st.sampled_from([0.0, 0.05, 0.2, 0.8]),
                st.booleans(),
                st.sampled_from(["at once", "at once", "late", "never"]),
            ),
            max_size=3,
        ),
        saves=st.booleans(),
        turns=st.integers(1, 4),
    )
    def turn(
        self, share: float, steps: list[tuple[int, float, bool, str]], saves: bool, turns: int
    ) -> None:
        """Calls are answered at once, late or never. Gemini's have no ids, so they are never late."""
        for _ in range(turns):
            self.add(said_by(self.form, "user", self.text(share)))
            self.ask()
            late: list[Any] = []
            for number, size, picture, when in steps:
                ids = [self.mark("call")[1:-1] for _ in range(number)]
                for message in calls_of(self.form, ids):
                    self.add(message)
                self.answers += [ids]
                if saves:
                    self.restart()
                if when == "never":
                    self.add(said_by(self.form, "user", self.text(share)))
                    self.ask()
                    continue
                results = results_of(self.form, {id: self.text(size) for id in ids}, picture)
                if when == "late" and self.form != "gemini":
                    late += results
                    self.live -= {*MARK.findall(json.dumps(results))}
                    self.ask()  # the next answer comes from another request
                    continue
                self.add(*results)
                self.ask()
            self.add(said_by(self.form, "assistant", self.text(share)))
            if late:
                self.add(said_by(self.form, "user", self.text(share)), *late)
                self.live |= {*MARK.findall(json.dumps(late))}
                self.ask()
                self.add(said_by(self.form, "assistant", self.text(share)))
            if saves:
                self.restart()

    @rule(share=st.sampled_from([0.02, 0.3]))
    def turn_without_summaries(self, share: float) -> None:
        """Where a summary was due, the request fails, and the next one is as if it had not been asked for."""
        self.add(said_by(self.form, "user", self.text(share)))
        twin = bk.Conversation.from_json(self.talk.to_json(), **self.more)
        self.broken = True
        marks = self.marks
        try:
            request = self.talk.request()
        except RuntimeError:
            self.broken = False
            request = self.talk.request()
            self.marks = marks
        self.broken = False
        assert request == twin.request()
        self.check(request)
        self.add(said_by(self.form, "assistant", self.text(share)))

    @rule()
    def restart(self) -> None:
        saved = self.talk.to_json()
        self.talk = bk.Conversation.from_json(saved, **self.more)
        assert self.talk.to_json() == saved

    def ask(self) -> None:
        self.check(self.talk.request())
        self.restart()

    def check(self, request: Any) -> None:
        assert [*RULES[self.form](request.messages)] == []
        if self.form == "responses":  # an answer's calls leave with its reasoning
            there = {item.get("call_id", item.get("id")) for item in request.messages}
            for ids in self.answers:
                assert len({id in there for id in [*ids, f"rs_{ids[0]}"]}) == 1
        assert request.over or request.tokens <= self.talk.budget.usable
        body = {"model": COUNTED_BY[self.form], **in_body(self.form, request)}
        assert request.tokens == bk.count_request(body).tokens
        assert request.tokens == sum(grant.demand for grant in request.plan.grants)

        sent = {*MARK.findall(json.dumps(request.messages))}
        summaries = sent & self.inside.keys()
        covered = set().union(*map(self.covered, summaries))
        left: dict[str, set[str]] = {}
        for entry in request.left:
            for mark in MARK.findall(json.dumps(entry.message)):
                left.setdefault(entry.why, set()).add(mark)
        gone = left.get("dropped", set()) | left.get("summarised", set())
        assert not gone & sent
        lost = left.get("dropped", set()) & self.inside.keys()
        merged = self.inside.keys() & covered.union(*map(self.covered, lost))
        assert self.live - sent - merged <= gone | left.get("shrunk", set()) | left.get(
            "shortened", set()
        )
        # A summary may be summarised again, into one that is sent or named as lost.
        assert left.get("summarised", set()) <= covered | merged
        for text in request.summaries:
            (mark,) = MARK.findall(text)
            assert mark in sent | merged | lost
        self.live = sent | {mark for mark in self.live if mark in sent}


def in_body(form: str, request: Any) -> dict[str, Any]:
    """Return the messages of a request under the names of its form."""
    name = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    return {name: request.messages}


TestRules = RulesMachine.TestCase
TestRules.settings = settings(
    max_examples=examples(25), stateful_step_count=6, suppress_health_check=list(HealthCheck)
)


def test_a_picture_in_a_result_is_left_whole_and_said() -> None:
    """The request failed, and the next one told 130 tokens for the 800 that it sent."""
    for policy in (policies.CapResults(100), policies.DropToolResults(trigger=50)):
        talk = bk.Conversation(
            bk.presets.working_memory(8_000, output=500),
            policy,
            model="claude-haiku-4-5",
            form="anthropic",
        )
        talk.add(said_by("anthropic", "user", "look"), *calls_of("anthropic", ["a"]))
        talk.add(*results_of("anthropic", {"a": "seen"}, picture=True))
        first = talk.request()
        talk.add(said_by("anthropic", "assistant", "ok"), said_by("anthropic", "user", "next"))
        second = talk.request()
        assert second.tokens > first.tokens > 700
        assert sum("which cannot be cut" in warning for warning in second.warnings) == 1


def test_a_request_that_fails_changes_nothing() -> None:
    """What had left was told by the request that failed, and by no other."""
    talk = bk.Conversation(
        bk.presets.working_memory(1_000, output=100), counter="o200k_base", overrun="raise"
    )
    for size in (300, 500, 2_000):
        talk.add(user("one " * size))
        before = talk.to_json()
        if size < 2_000:
            talk.request()
    failed = bk.Conversation.from_json(before)
    for _ in range(2):
        with pytest.raises(ValueError, match="exceeds the usable window"):
            failed.request()
    with pytest.warns(UserWarning, match="changes from .* to 'tell'"):
        again = bk.Conversation.from_json(failed.to_json(), overrun="tell").request()
    with pytest.warns(UserWarning, match="changes from .* to 'tell'"):
        assert again == bk.Conversation.from_json(before, overrun="tell").request()
    assert again.left


def test_a_summary_that_is_lost_is_named() -> None:
    """It was paid for, and what it stood for was said to be summarised."""
    talk = bk.Conversation(
        bk.presets.working_memory(1_000, output=100, history_floor=0),
        "summarise",
        "o200k_base",
        summarise=lambda messages: "long " * 900,
    )
    for size in (400, 400, 400):
        talk.add(user("one " * size))
        request = talk.request()
    assert {left.why for left in request.left} == {"dropped"}
    assert any("A summary of 9" in warning for warning in request.warnings)


@pytest.mark.parametrize("form", ["anthropic", "gemini", "converse"])
def test_a_form_whose_provider_wants_the_users_message_first_has_it_first(form: Any) -> None:
    talk = bk.Conversation(
        bk.presets.working_memory(1_000, output=100), counter=len, form=form, start_on="any"
    )
    for turn in range(8):
        talk.add(user("q" * 100))
        assert [*RULES[form](talk.request().messages)] == []
        talk.add(assistant("a" * (60 + turn)))
