"""What may be passed, for each public parameter and each form: every cell of the table is tried.

A call is written with X for what is passed, and comes to a value that can be compared; each form has to give what the
plainest form gives. A frame, a path or an object of another library was once sent as its `repr`, or answered with a raw
error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.inputs import settings_at
from budgetkit.inputs.budgets import budget_of
from budgetkit.requests import framing_for, read_tools
from budgetkit.requests.billing.images import image_price

SPOKEN: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is my parcel?"},
    {"role": "assistant", "content": "On its way, since Monday."},
    {"role": "user", "content": "And the refund?"},
]
TRACE = bk.Trace("t", tuple(map(bk.Message, SPOKEN)))
TEXT = "One two three four five, and then some more of it."
TEXTS = [
    "Where is my parcel? It was sent on Monday.",
    "Die Rückerstattung dauert fünf Tage.",
    "print('hi')",
]
KINDS = ["prose", "prose", "code"]
PASSAGE = "Refunds take five days."
WINDOW = 2_000


@dataclass
class Document:
    """Stands for LangChain's: a text and what is known about it."""

    page_content: str
    metadata: dict[str, Any]


@dataclass
class Node:
    """Stands for LlamaIndex's node with a score."""

    text: str
    score: float


def talked(budget: Any, messages: Any = SPOKEN, **more: Any) -> Any:
    talk = bk.Conversation(budget, **more)
    talk.add(messages)
    return talk.request().plan.budget, talk.request().tokens


def saved_at(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


NAMES = {
    **{
        name: getattr(module, name)
        for module in (bk.conversation, bk.deciding, bk.requests, bk.truncation)
        for name in module.__all__
    },
    **{name: getattr(bk, name) for name in dir(bk)},
    "assembly": bk.conversation.assembly,
    "calibrate": bk.accuracy.calibrate,
    "claims": bk.accuracy.claims,
    "provider_counter": bk.endpoints.provider_counter,
    "redact": bk.redaction.redact,
    "thinking": bk.limits.thinking,
    "check": check,
    "image_price": image_price,
    "framing_for": framing_for,
    "talked": talked,
    "SPOKEN": SPOKEN,
    "TRACE": TRACE,
    "TEXT": TEXT,
    "WINDOW": WINDOW,
    "W": {"window": WINDOW},
    "MEMORY": bk.presets.working_memory(WINDOW, output=200),
    "CHATS": bk.load_traces("made-up-chats")[:4],
    "VALUES": {"output": [200, 300]},
    "FAST": {"risk": None, "counter": "chars/4"},
    "DEMAND": {"system": 20, "conversation": 9_000},
}


def value(call: str, passed: Any, more: dict[str, Any] | None = None) -> Any:
    """Return what a call of the table comes to."""
    result = eval(call, NAMES | {"X": passed, "MORE": more or {}})
    return repr(result) if isinstance(result, bk.Budget | bk.Plan) else result


#: Public functions by what they take: a budget, a policy, a counter, a conversation, texts, messages, a model.
CALLS = {
    "budget": """
        build(X, user="Where is it?", **MORE).plan.budget
        talked(X, **MORE)
        trim(SPOKEN, X, **MORE)
        replay(SPOKEN, X, "oldest first", **MORE).totals()["sent"]
        solve(DEMAND, X, "output", **MORE)
        tune(CHATS, X, VALUES, **FAST, **MORE).budget
        check(X, prompts={"system": "Be brief."}, **MORE).failures
        repr(deciding.sensitivity(CHATS, X, VALUES, counter="chars/4", **MORE))
        BudgetExplorer(X, TRACE, **MORE).budget
        ConversationExplorer(TRACE, X, **MORE).budget
        AccuracyExplorer("chars/4", [TEXT], budget=X, window=WINDOW).budget
        DesignCard(X, **MORE).budget
        App(budget=X, **MORE).card.budget""",
    "policy": """
        build(MEMORY, policy=X, history=SPOKEN * 2, current="And now?").messages
        talked(MEMORY, policy=X)
        trim(SPOKEN, 30, policy=X)
        replay(SPOKEN, MEMORY, X).policy
        tune(CHATS, MEMORY, VALUES, policy=X, **FAST).policy
        repr(deciding.compare_models(CHATS, "gpt-4o", "working_memory", X))
        repr(deciding.sensitivity(CHATS, MEMORY, VALUES, policy=X, counter="chars/4"))
        ConversationExplorer(TRACE, MEMORY, policies=[X]).replay.policy
        check(MEMORY, traces=load_traces("mixed-language"), policy=X).cut""",
    "counter": """
        build(MEMORY, counter=X, current=TEXT).plan.used
        talked(MEMORY, counter=X)
        trim(SPOKEN, 30, counter=X)
        replay(SPOKEN, MEMORY, "oldest first", counter=X).totals()["sent"]
        TRACE.counts(counter=X).tolist()
        TRACE.demand(counter=X).to_numpy().tolist()
        [item.tokens for item in TRACE.items(2, counter=X)]
        truncate(TEXT, 6, counter=X)
        redact(TRACE, counter=X)
        assembly.describe(allocate(MEMORY, {"system": 9}), counter=X)
        solve(TRACE, MEMORY, "window", counter=X).value
        check(MEMORY, prompts={"system": TEXT}, counter=X).sections
        calibrate(X, [TEXT], [20]).slope
        accuracy.compare(X, [TEXT])["estimate"].tolist()
        deciding.answer_reserve(CHATS, X)
        deciding.candidates(MEMORY, CHATS, X)
        Session("made-up-session", X).totals()""",
    "conversation": """
        replay(X, MEMORY, "oldest first").totals()["sent"]
        evidence(X).to_numpy().tolist()
        outlook(X, ["gpt-4o"], "working_memory", turns=5, samples=5)["limit"].tolist()
        BudgetExplorer("chat", X, window=WINDOW).plan.used
        solve(X, MEMORY, "window").value
        redact(X, "chars/4").messages
        repr(deciding.compare_models(X, "gpt-4o", "working_memory"))
        deciding.answer_reserve(X, "chars/4")
        deciding.candidates(MEMORY, X, "chars/4")""",
    "messages": """
        [[message["role"], message["content"]] for message in trim(X, 30)]
        talked(MEMORY, X)
        build(MEMORY, history=X, current="q").plan.used
        memory_tokens("gpt-4o", X).messages_tokens""",
    "texts": """
        accuracy.compare(["chars/4"], X)["estimate"].tolist()
        claims(X).set_index("claim").loc["largest overcount", "measured"]
        AccuracyExplorer("chars/4", X).errors["estimate"].tolist()
        accuracy.ways(X, "chars/4")["tokens"].tolist()
        accuracy.kinds_of(X)""",
    "model": """
        cost.prices(X)
        ConversationExplorer(TRACE, MEMORY, prices=X).replay.cost.tolist()
        Session("made-up-session", prices=X).totals()
        replay(SPOKEN, MEMORY, "oldest first", prices=X).cost.tolist()
        repr(count_request({"messages": SPOKEN}, X))
        count_answer({"role": "assistant", "content": TEXT}, X)
        build("chat", model=X, user=TEXT).plan
        talked("chat", model=X)
        trim(SPOKEN, 30, model=X)
        replay(SPOKEN, "chat", "oldest first", model=X).totals()["sent"]
        solve(TRACE, "working_memory", "window", model=X).value
        tune(CHATS, MEMORY, VALUES, risk=None, model=X).budget
        check("chat", prompts={"system": TEXT}, model=X).sections
        outlook(TRACE, X, "working_memory", turns=5, samples=5)["limit"].tolist()
        deciding.compare_models([TRACE], [X], presets.working_memory)["largest"].tolist()
        memory_tokens(X, SPOKEN)
        thinking(X, "none")
        provider_counter("openai", X).model
        counter(X)(TEXT)
        calibrate(counter("gpt-4o"), [TEXT], [12], X)
        image_price(X, 640, 480)
        presets.chat(X)
        repr(deciding.solve_models([TRACE], [X], "working_memory", "window"))
        framing_for(X)
        BudgetExplorer("chat", model=X).budget
        ConversationExplorer(TRACE, "chat", model=X).budget
        AccuracyExplorer("chars/4", [TEXT], model=X).errors["estimate"].tolist()
        DesignCard("chat", model=X).budget
        App(budget="chat", model=X).card.budget""",
}
LINES = {
    kind: [line.strip() for line in calls.strip().splitlines()] for kind, calls in CALLS.items()
}
CHAT = bk.presets.chat(WINDOW)
GPT = bk.counter("gpt-4o")
WITH_WINDOW = {"window": WINDOW}
FORMS: dict[str, list[Any]] = {  # the plainest first; a path is made where a test needs it
    "budget": [
        *(CHAT, ("chat", WITH_WINDOW), (bk.presets.preset("chat"), WITH_WINDOW)),
        *((bk.presets.chat, WITH_WINDOW), bk.state.to_json(CHAT), bk.state.to_yaml(CHAT)),
        *(bk.state.to_dict(CHAT), ("mine.yaml", bk.state.to_yaml(CHAT), Path)),
    ],
    "policy": [bk.policies.SlidingWindow(), "last turns", "last-turns"],
    "counter": ["gpt-4o", bk.model("gpt-4o"), "o200k_base", GPT, GPT.__call__],
    "conversation": [
        *(TRACE, SPOKEN, list(TRACE.messages), tuple(SPOKEN), {"messages": SPOKEN}),
        [
            {"type": "human" if m["role"] == "user" else "ai", "content": m["content"]}
            for m in SPOKEN
        ],
        *(("t.jsonl", json.dumps({"id": "t", "messages": SPOKEN}), kind) for kind in (Path, str)),
    ],
    "messages": [SPOKEN, TRACE, list(TRACE.messages)],
    "texts": [
        *(TEXTS, tuple(TEXTS), [{"role": "user", "content": text} for text in TEXTS]),
        [
            bk.corpora.Document(t, kind, "text", "mine")
            for t, kind in zip(TEXTS, KINDS, strict=True)
        ],
        *([Document(text, {}) for text in TEXTS], pd.DataFrame({"text": TEXTS, "class": KINDS})),
        *(("folder", kind) for kind in (Path, str)),
    ],
    "model": ["gpt-4o", bk.model("gpt-4o")],
}


def cells() -> Iterator[Any]:
    """Give every call with every form but the plainest."""
    for kind, lines in LINES.items():
        for call in lines:
            for place, _ in enumerate(FORMS[kind][1:], 1):
                yield pytest.param(kind, call, place, id=f"{kind}-{call}-{place}")


def made(form: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return what is passed, and the other arguments: files are written where a form is one."""
    match form:
        case ("folder", kind):
            for number, text in enumerate(TEXTS):
                saved_at(folder / f"{number}.txt", text)
            return kind(folder), {}
        case (str() as name, str() as text, kind) if kind in (Path, str):
            return kind(saved_at(folder / name, text)), {}
        case (bare, {"window": int()} as others):
            return bare, others
    return form, {}


@pytest.mark.parametrize(("kind", "call", "place"), [*cells()])
def test_each_form_gives_what_the_plainest_gives(
    kind: str, call: str, place: int, tmp_path: Path
) -> None:
    form = FORMS[kind][place]
    if "redact" in call and form == GPT.__call__:
        pytest.skip("filler is found for a counter's name; a function has none")
    if "kinds_of" in call and isinstance(form, tuple) and form == ("folder", str):
        pytest.skip("where one text is meant, a string is that text")
    assert value(call, *made(form, tmp_path)) == value(call, FORMS[kind][0])


def test_generators_and_corpora_are_texts_too() -> None:
    for call in LINES["texts"]:
        plain = value(call, TEXTS)
        assert value(call, iter(TEXTS)) == plain
        assert value(call, bk.corpora.Corpus(tuple(FORMS["texts"][3]))) == plain


_BUDGET = r"Invalid budget: .* Expected|Unknown preset .* Choose one of"
_TRACE = r"Invalid conversation: .* Expected|^Invalid demands .*\. Pass "
_TEXTS = (
    r"Invalid texts of type .*\. Pass a Corpus, |Invalid value for text 1: .* Expected a string, "
)
_PRESET = r"Preset 'chat' needs a window. Add window= in tokens or a model, for example"
_POLICY = "Unknown policy 'lasst turns'. Did you mean 'last turns'"
_MODEL = "Expected a name, such as 'gpt-5.4', or a Model"
#: What is refused: the kind, what is passed, the sentence, how many of its calls ask.
REFUSED: list[tuple[str, list[Any], str, Any]] = [
    ("budget", ["chatt", 8.5, ["chat"], object()], _BUDGET, slice(8)),
    ("budget", ["chat"], _PRESET, slice(8)),
    ("policy", ["lasst turns"], _POLICY, slice(None)),
    ("conversation", [None, 7, b"hello"], _TRACE, slice(None)),
    ("texts", [7, b"hello", None, {"text": "hello"}, [7]], _TEXTS, slice(None)),
    (
        "messages",
        [pd.DataFrame(SPOKEN), Path("talk.jsonl")],
        "Expected a list of messages|Invalid value for section 'history': .* Expected a string, ",
        slice(None),
    ),
    ("messages", ["talk.json", "support-chat"], ".", slice(2)),
    ("model", [None, 7, b"gpt-4o", {"x": 1}], _MODEL, [0, 16, 17, 20]),
]


@pytest.mark.parametrize(("kind", "wrong", "sentence", "asked"), REFUSED)
def test_what_is_of_no_form_is_refused_in_a_sentence(
    kind: str, wrong: list[Any], sentence: str, asked: Any
) -> None:
    calls = [LINES[kind][n] for n in asked] if isinstance(asked, list) else LINES[kind][asked]
    for call in calls:
        for passed in wrong:
            if passed is None and "BudgetExplorer" in call:
                continue  # without a conversation its sections ask for sizes that are typed in
            with pytest.raises((LookupError, TypeError, ValueError), match=sentence):
                value(call, passed)


def test_an_unknown_model_is_no_window() -> None:
    for call in LINES["budget"][:8]:
        with pytest.raises(
            ValueError,
            match=r"Unknown model 'gtp-9'.*or pass its window in tokens",
        ):
            value(call, "chat", {"model": "gtp-9"})


def test_a_name_is_a_preset_whatever_lies_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 0.2.0 a file that is called "chat" took the preset's place in the shell."""
    monkeypatch.chdir(tmp_path)
    saved_at(tmp_path / "chat", bk.state.to_yaml(bk.Budget(77)))
    assert bk.build("chat", window=WINDOW, user="q").plan.budget == bk.presets.chat(WINDOW)
    assert budget_of(settings_at("chat"), window=WINDOW) == bk.presets.chat(WINDOW)
    assert budget_of(settings_at("./chat")) == bk.Budget(77)


def test_one_text_is_not_counted_letter_by_letter() -> None:
    """`many` of a string gave a count for each letter, and of a table one for the name of its column."""
    counters = ("chars/4", "o200k_base", "claude-sonnet-4-5", lambda text: len(text))
    for way in counters:
        counter = bk.counter(way)
        for wrong in ("Hello", Path("texts"), pd.DataFrame({"text": ["Hello"]})):
            with pytest.raises(TypeError, match="Invalid texts for .* Expected a list of texts"):
                counter.many(wrong)  # type: ignore[arg-type]


def test_a_frame_says_what_is_known_of_its_texts() -> None:
    frame = pd.DataFrame({"body": TEXTS, "class": KINDS, "language": ["en", "de", "python"]})
    errors = bk.accuracy.compare("chars/4", frame)
    assert errors["class"].tolist() == KINDS
    assert errors["language"].tolist() == ["en", "de", "python"]
    with pytest.raises(
        ValueError, match=r"No text column among \['n'\]. Pass a table with at least one."
    ):
        bk.accuracy.compare("chars/4", pd.DataFrame({"n": [1, 2]}))


def test_a_model_that_is_looked_up_again_stays_what_it_is() -> None:
    mine = bk.model("gpt-4o", window=32_768)
    assert bk.model(mine) == mine
    assert bk.model(mine, max_output=1_000).window == 32_768


IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
}
PICTURE: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}
]


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o", "gpt-4o-2024-08-06"])
def test_images_are_counted_by_the_name_of_a_model_wherever_it_stands(model: str) -> None:
    """Low detail is 85 tokens on gpt-4o, whether the request names its model or the caller does."""
    text_alone = bk.count_request(
        {"model": "gpt-4o", "messages": [{"role": "user", "content": "What is it?"}]}
    )
    for request in (
        bk.count_request({"messages": PICTURE}, model),
        bk.count_request({"model": model, "messages": PICTURE}),
    ):
        assert request.tokens == text_alone.tokens + 85


PASSAGE_FORMS: dict[str, Any] = {
    "text": PASSAGE,
    "dictionary": {"text": PASSAGE},
    "LangChain's dictionary": {"page_content": PASSAGE, "metadata": {}},
    "pair": (PASSAGE, 0.5),
    "Document": Document(PASSAGE, {"source": "faq"}),
    "node": Node(PASSAGE, 0.5),
    "Item": bk.Item("retrieval", 5, payload=PASSAGE),
    "Message": bk.Message({"role": "context", "content": PASSAGE}),
}


@pytest.mark.parametrize("form", PASSAGE_FORMS)
def test_a_passage_in_any_form_is_sent_as_its_text(form: str) -> None:
    """0.2.0 sent a Document, an Item and bytes as their `repr`."""
    for given in (PASSAGE_FORMS[form], [PASSAGE_FORMS[form]]):
        built = bk.build(bk.presets.rag(WINDOW), "gpt-4o", retrieval=given, user="How long?")
        assert [message["content"] for message in built.messages] == [PASSAGE, "How long?"]


@pytest.mark.parametrize(
    "wrong",
    [object(), 5, b"bytes", {"no": "text"}, [["nested"]]],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_passage_is_refused_and_never_sent(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match="section 'retrieval': .* Expected a string, a message, a passage"
    ):
        bk.build(bk.presets.rag(WINDOW), "gpt-4o", retrieval=wrong, user="How long?")


def test_a_model_brings_its_window_its_counter_and_its_framing() -> None:
    talk = bk.Conversation("working_memory", model="claude-sonnet-4-5")
    talk.add(SPOKEN)
    request = talk.request()
    claude = framing_for("claude-sonnet-4-5")
    assert request.plan.budget.window == 200_000
    assert request.tokens == claude.request(SPOKEN, bk.counter("claude-sonnet-4-5"))


class OfAnSDK:
    """Stands for a tool, or the answer of a server, as the SDK of MCP has them."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, **options: Any) -> dict[str, Any]:
        assert options == {"by_alias": True, "exclude_none": True}
        return self.fields


def test_tools_as_the_sdk_of_mcp_has_them() -> None:
    """What `list_tools` returns is passed on as it is: the answer, its list, or one tool of it."""
    tool = {"name": "ping", "inputSchema": {"type": "object"}}
    plain = read_tools([tool]).functions
    answer = OfAnSDK(tools=[OfAnSDK(**tool)])
    for form in (answer, [OfAnSDK(**tool)], OfAnSDK(**tool)):
        assert read_tools(form).functions == plain
