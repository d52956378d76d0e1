"""What may be passed, for each public parameter and each form: every cell of the table is tried.

0.2.0 took a preset's name in explorers, shell and gate, and answered it with a raw AttributeError in `build`,
`Conversation`, `replay` and `solve`; a policy's name worked in `replay` alone; an object of another library was sent as
its `repr`. The table says which forms are one thing: each cell has to give what the plainest form gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.models.resolved import resolve
from budgetkit.requests import framing_for, read_tools
from budgetkit.requests.billing.images import image_price

ROOT = Path(__file__).parents[2]
SPOKEN: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is my parcel?"},
    {"role": "assistant", "content": "On its way, since Monday."},
    {"role": "user", "content": "And the refund?"},
]
TRACE = bk.Trace("t", tuple(map(bk.Message, SPOKEN)))
WINDOW = 2_000


def working_memory() -> bk.Budget:
    return bk.presets.working_memory(WINDOW, output=200)


def saved_at(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


BUDGET_FORMS: dict[str, Callable[[Path], tuple[Any, dict[str, Any]]]] = {
    "Budget": lambda folder: (bk.presets.chat(WINDOW), {}),
    "preset's name and window": lambda folder: ("chat", {"window": WINDOW}),
    "preset": lambda folder: (bk.presets.preset("chat"), {"window": WINDOW}),
    "function": lambda folder: (bk.presets.chat, {"window": WINDOW}),
    "saved JSON": lambda folder: (bk.state.to_json(bk.presets.chat(WINDOW)), {}),
    "saved YAML": lambda folder: (bk.state.to_yaml(bk.presets.chat(WINDOW)), {}),
    "plain data": lambda folder: (bk.state.to_dict(bk.presets.chat(WINDOW)), {}),
    "path": lambda folder: (
        saved_at(folder / "mine.yaml", bk.state.to_yaml(bk.presets.chat(WINDOW))),
        {},
    ),
}


def talked(budget: Any, **more: Any) -> Any:
    talk = bk.Conversation(budget, **more)
    talk.add(SPOKEN)
    return talk.request().plan.budget, talk.request().tokens


DEMAND = {"system": 20, "conversation": 9_000}

#: Public functions that take a budget: what each comes to, as a value that can be compared.
TAKES_BUDGET: dict[str, Callable[..., Any]] = {
    "build": lambda budget, **more: bk.build(budget, user="Where is it?", **more).plan.budget,
    "Conversation": talked,
    "trim": lambda budget, **more: bk.trim(SPOKEN, budget, **more),
    "replay": lambda budget, **more: bk.replay(SPOKEN, budget, "oldest first", **more).totals()[
        "sent"
    ],
    "solve": lambda budget, **more: bk.solve(DEMAND, budget, "output", **more),
    "tune": lambda budget, **more: (
        bk.tune(
            bk.load_traces("made-up-chats")[:4],
            budget,
            {"output": [200, 300]},
            risk=None,
            counter="chars/4",
            **more,
        ).budget
    ),
    "evidence_shares": lambda budget, **more: bk.evidence_shares(
        "mixed-language", budget, "oldest first", [500], counter="chars/4", **more
    )["share"].tolist(),
    "gate": lambda budget, **more: check(budget, prompts={"system": "Be brief."}, **more).failures,
    "sensitivity": lambda budget, **more: repr(
        bk.deciding.sensitivity(
            bk.load_traces("made-up-chats")[:4],
            budget,
            {"output": [200, 300]},
            counter="chars/4",
            **more,
        )
    ),
}
#: Explorers take a budget in any form, too; a preset's window they do not ask for, but show that of the model.
SHOWS_BUDGET: dict[str, Callable[..., Any]] = {
    "BudgetExplorer": lambda budget, **more: bk.BudgetExplorer(budget, TRACE, **more).budget,
    "ConversationExplorer": lambda budget, **more: (
        bk.ConversationExplorer(TRACE, budget, **more).budget
    ),
    "AccuracyExplorer": lambda budget, **more: (
        bk.AccuracyExplorer("chars/4", [TEXT], budget=budget, window=WINDOW).budget
    ),
    "DesignCard": lambda budget, **more: bk.DesignCard(budget, **more).budget,
    "App": lambda budget, **more: bk.App(budget=budget, **more).card.budget,
}


@pytest.mark.parametrize("form", [form for form in BUDGET_FORMS if form != "Budget"])
@pytest.mark.parametrize("function", SHOWS_BUDGET)
def test_an_explorer_shows_a_budget_in_any_form(function: str, form: str, tmp_path: Path) -> None:
    """One of conversations lost the window of a budget that was saved; one of counters knew presets by name alone."""
    call = SHOWS_BUDGET[function]
    plain, _ = BUDGET_FORMS["Budget"](tmp_path)
    budget, more = BUDGET_FORMS[form](tmp_path)
    assert repr(call(budget, **more)) == repr(call(plain))


@pytest.mark.parametrize("form", [form for form in BUDGET_FORMS if form != "Budget"])
@pytest.mark.parametrize("function", TAKES_BUDGET)
def test_a_budget_in_any_form_is_that_budget(function: str, form: str, tmp_path: Path) -> None:
    call = TAKES_BUDGET[function]
    plain, _ = BUDGET_FORMS["Budget"](tmp_path)
    budget, more = BUDGET_FORMS[form](tmp_path)
    assert call(budget, **more) == call(plain)


@pytest.mark.parametrize("function", TAKES_BUDGET)
def test_a_preset_without_a_window_asks_for_one(function: str) -> None:
    """A default would open the gate, or fill a request, by a window that nobody chose."""
    with pytest.raises(
        ValueError,
        match=r"preset 'chat' without a window.*give window= in tokens, or model='gpt-4o'",
    ):
        TAKES_BUDGET[function]("chat")
    with pytest.raises(
        ValueError, match=r"no model 'gtp-9' is known, so its window is not.*or window= in tokens"
    ):
        TAKES_BUDGET[function]("chat", model="gtp-9")


@pytest.mark.parametrize("function", TAKES_BUDGET)
@pytest.mark.parametrize(
    "wrong", ["chatt", 8.5, ["chat"], object()], ids=["unknown name", "float", "list", "object"]
)
def test_what_is_no_budget_is_refused_in_a_sentence(function: str, wrong: Any) -> None:
    with pytest.raises(
        (LookupError, TypeError, ValueError),
        match=r"Invalid budget: .* Expected|Unknown preset .* Choose one of",
    ):
        TAKES_BUDGET[function](wrong)


def test_a_name_is_a_preset_whatever_lies_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 0.2.0 a file that is called "chat" took the preset's place in the shell."""
    monkeypatch.chdir(tmp_path)
    saved_at(tmp_path / "chat", bk.state.to_yaml(bk.Budget(77)))
    assert bk.build("chat", window=WINDOW, user="q").plan.budget == bk.presets.chat(WINDOW)
    from budgetkit.extras.shell.inputs import budget_of, settings_at

    assert budget_of(settings_at("chat"), WINDOW, None) == bk.presets.chat(WINDOW)
    assert budget_of(settings_at("./chat"), None, None) == bk.Budget(77)


CHATS = bk.load_traces("made-up-chats")[:4]
POLICY_FORMS: dict[str, Any] = {"name": "last turns", "name with a hyphen": "last-turns"}

TAKES_POLICY: dict[str, Callable[..., Any]] = {
    "build": lambda policy: (
        bk.build(
            working_memory(), policy=policy, history=[*SPOKEN, *SPOKEN], current="And now?"
        ).messages
    ),
    "Conversation": lambda policy: talked(working_memory(), policy=policy),
    "trim": lambda policy: bk.trim(SPOKEN, 30, policy=policy),
    "replay": lambda policy: bk.replay(SPOKEN, working_memory(), policy).policy,
    "tune": lambda policy: (
        bk.tune(
            bk.load_traces("made-up-chats")[:4],
            working_memory(),
            {"output": [200, 300]},
            policy=policy,
            risk=None,
            counter="chars/4",
        ).policy
    ),
    "compare_models": lambda policy: repr(
        bk.deciding.compare_models(CHATS, "gpt-4o", "working_memory", policy)
    ),
    "sensitivity": lambda policy: repr(
        bk.deciding.sensitivity(
            CHATS, working_memory(), {"output": [200, 300]}, policy=policy, counter="chars/4"
        )
    ),
    "ConversationExplorer": lambda policy: (
        bk.ConversationExplorer(TRACE, working_memory(), policies=[policy]).replay.policy
    ),
    "gate": lambda policy: (
        check(working_memory(), traces=bk.load_traces("mixed-language"), policy=policy).cut
    ),
}


@pytest.mark.parametrize("form", POLICY_FORMS)
@pytest.mark.parametrize("function", TAKES_POLICY)
def test_a_policy_by_its_name_is_that_policy(function: str, form: str) -> None:
    call = TAKES_POLICY[function]
    assert call(POLICY_FORMS[form]) == call(bk.policies.SlidingWindow())
    with pytest.raises(
        LookupError, match="no policy 'lasst turns'; known by name are 'oldest first'"
    ):
        call("lasst turns")


COUNTER_FORMS: dict[str, Any] = {
    "name of a model": "gpt-4o",
    "Model": bk.model("gpt-4o"),
    "resolved model": resolve("gpt-4o"),
    "encoding": "o200k_base",
    "counter": bk.counter("gpt-4o"),
    "function": bk.counter("gpt-4o").__call__,
}
TEXT = "One two three four five, and then some more of it."

TAKES_COUNTER: dict[str, Callable[..., Any]] = {
    "build": lambda counter: bk.build(working_memory(), counter=counter, current=TEXT).plan.used,
    "Conversation": lambda counter: talked(working_memory(), counter=counter),
    "trim": lambda counter: bk.trim(SPOKEN, 30, counter=counter),
    "replay": lambda counter: bk.replay(
        SPOKEN, working_memory(), "oldest first", counter=counter
    ).totals()["sent"],
    "Trace.counts": lambda counter: TRACE.counts(counter=counter).tolist(),
    "Trace.demand": lambda counter: TRACE.demand(counter=counter).to_numpy().tolist(),
    "Trace.items": lambda counter: [item.tokens for item in TRACE.items(2, counter=counter)],
    "truncate": lambda counter: bk.truncate(TEXT, 6, counter=counter),
    "redact": lambda counter: bk.redact(TRACE, counter=counter),
    "describe": lambda counter: bk.assembly.describe(
        bk.allocate(working_memory(), {"system": 9}), counter=counter
    ),
    "solve": lambda counter: bk.solve(TRACE, working_memory(), "window", counter=counter).value,
    "gate": lambda counter: (
        check(working_memory(), prompts={"system": TEXT}, counter=counter).sections
    ),
    "calibrate": lambda counter: bk.calibrate(counter, [TEXT], [20]).slope,
    "compare": lambda counter: bk.accuracy.compare(counter, [TEXT])["estimate"].tolist(),
    "answer_lengths": lambda counter: bk.deciding.answer_lengths(CHATS, counter),
    "answer_reserve": lambda counter: bk.deciding.answer_reserve(CHATS, counter),
    "candidates": lambda counter: bk.deciding.candidates(working_memory(), CHATS, counter),
    "Session": lambda counter: bk.Session("made-up-session", counter).totals(),
}


@pytest.mark.parametrize("form", COUNTER_FORMS)
@pytest.mark.parametrize("function", TAKES_COUNTER)
def test_a_counter_in_any_form_counts_the_same(function: str, form: str) -> None:
    if function == "redact" and form == "function":
        pytest.skip("filler is found for a counter's name; a function has none")
    call = TAKES_COUNTER[function]
    assert call(COUNTER_FORMS[form]) == call("gpt-4o")


TYPES = {"user": "human", "assistant": "ai"}  # LangChain's words for who speaks
TRACE_FORMS = [
    "list of dict",
    "list of Message",
    "tuple",
    "path",
    "path as a string",
    "request's body",
    "LangChain's form",
]


def trace_forms(folder: Path) -> dict[str, Any]:
    line = json.dumps({"id": "t", "messages": SPOKEN})
    path = saved_at(folder / "talk.jsonl", line)
    return {
        "Trace": TRACE,
        "list of dict": SPOKEN,
        "list of Message": [bk.Message(message) for message in SPOKEN],
        "tuple": tuple(SPOKEN),
        "path": path,
        "path as a string": str(path),
        "request's body": {"messages": SPOKEN},
        "LangChain's form": [
            {"type": "human" if m["role"] == "user" else "ai", "content": m["content"]}
            for m in SPOKEN
        ],
    }


TAKES_TRACE: dict[str, Callable[..., Any]] = {
    "replay": lambda trace: bk.replay(trace, working_memory(), "oldest first").totals()["sent"],
    "evidence": lambda trace: bk.evidence(trace).to_numpy().tolist(),
    "outlook": lambda trace: bk.outlook(trace, ["gpt-4o"], "working_memory", turns=5, samples=5)[
        "limit"
    ].tolist(),
    "BudgetExplorer": lambda trace: bk.BudgetExplorer("chat", trace, window=WINDOW).plan.used,
    "solve": lambda trace: bk.solve(trace, working_memory(), "window").value,
    "redact": lambda trace: bk.redact(trace, "chars/4").messages,
    "compare_models": lambda trace: repr(
        bk.deciding.compare_models(trace, "gpt-4o", "working_memory")
    ),
    "answer_lengths": lambda trace: bk.deciding.answer_lengths(trace, "chars/4"),
    "answer_reserve": lambda trace: bk.deciding.answer_reserve(trace, "chars/4"),
    "candidates": lambda trace: bk.deciding.candidates(working_memory(), trace, "chars/4"),
}
#: Functions that run in an application take a conversation that was loaded, and its messages.
TAKES_MESSAGES: dict[str, Callable[..., Any]] = {
    "trim": lambda messages: [
        [message["role"], message["content"]] for message in bk.trim(messages, 30)
    ],
    "Conversation.add": lambda messages: talked_of(messages),
    "build": lambda messages: bk.build(working_memory(), history=messages, current="q").plan.used,
    "memory_tokens": lambda messages: bk.memory_tokens("gpt-4o", messages).messages_tokens,
}


def talked_of(messages: Any) -> int:
    talk = bk.Conversation(working_memory())
    talk.add(messages)
    return talk.request().tokens


@pytest.mark.parametrize("function", TAKES_MESSAGES)
def test_messages_are_a_list_or_a_conversation_that_was_loaded(
    function: str, tmp_path: Path
) -> None:
    """A path was read as a message of Gemini's, since it has parts too, and a table as the names of its columns."""
    call = TAKES_MESSAGES[function]
    assert call(TRACE) == call(SPOKEN) == call([bk.Message(message) for message in SPOKEN])
    for wrong in (saved_at(tmp_path / "talk.jsonl", "{}"), pd.DataFrame(SPOKEN)):
        with pytest.raises((TypeError, ValueError), match="known are"):
            call(wrong)


@pytest.mark.parametrize("form", TRACE_FORMS)
@pytest.mark.parametrize("function", TAKES_TRACE)
def test_a_conversation_in_any_form_is_that_conversation(
    function: str, form: str, tmp_path: Path
) -> None:
    forms, call = trace_forms(tmp_path), TAKES_TRACE[function]
    assert call(forms[form]) == call(forms["Trace"])


@pytest.mark.parametrize("function", TAKES_TRACE)
@pytest.mark.parametrize("wrong", [None, 7, b"hello"], ids=repr)
def test_what_is_no_conversation_is_refused_in_a_sentence(function: str, wrong: Any) -> None:
    if function == "BudgetExplorer" and wrong is None:
        return  # without a conversation its sections ask for sizes that are typed in
    sentence = r"; known are .*; give one of these|Invalid conversation: .* Expected"
    with pytest.raises((TypeError, ValueError), match=sentence):
        TAKES_TRACE[function](wrong)


MY_TEXTS = [
    "Where is my parcel? It was sent on Monday.",
    "Die Rückerstattung dauert fünf Tage.",
    "print('hello')",
]
KINDS = ["prose", "prose", "code"]
TEXT_FORMS = [
    "list",
    "tuple",
    "generator",
    "Corpus",
    "list of Document",
    "messages",
    "passages",
    "frame",
    "folder",
]
NO_TEXTS = {
    "number": 7,
    "bytes": b"hello",
    "none": None,
    "dictionary": {"text": "hello"},
    "list of numbers": [7],
}


def text_forms(folder: Path) -> dict[str, Any]:
    for number, text in enumerate(MY_TEXTS):
        saved_at(folder / f"{number}.txt", text)
    documents = [
        bk.corpora.Document(text, kind, "text", "mine")
        for text, kind in zip(MY_TEXTS, KINDS, strict=True)
    ]
    return {
        "list": MY_TEXTS,
        "tuple": tuple(MY_TEXTS),
        "generator": iter(MY_TEXTS),
        "Corpus": bk.corpora.Corpus(tuple(documents)),
        "list of Document": documents,
        "messages": [{"role": "user", "content": text} for text in MY_TEXTS],
        "passages": [Document(text, {}) for text in MY_TEXTS],
        "frame": pd.DataFrame({"text": MY_TEXTS, "class": KINDS}),
        "folder": folder,
        "folder as a string": str(folder),
    }


TAKES_TEXTS: dict[str, Callable[..., Any]] = {
    "compare": lambda texts: bk.accuracy.compare(["chars/4"], texts)["estimate"].tolist(),
    "claims": lambda texts: (
        bk.claims(texts).set_index("claim").loc["too many by up to", "measured"]
    ),
    "AccuracyExplorer": lambda texts: (
        bk.AccuracyExplorer("chars/4", texts).errors["estimate"].tolist()
    ),
    "ways": lambda texts: bk.accuracy.ways(texts, "chars/4")["tokens"].tolist(),
    "kinds_of": lambda texts: bk.accuracy.kinds_of(texts),
}


def test_one_text_is_not_counted_letter_by_letter() -> None:
    """`many` of a string gave a count for each letter, and of a table one for the name of its column."""
    counters = ("chars/4", "o200k_base", "claude-sonnet-4-5", lambda text: len(text))
    for way in counters:
        counter = bk.counter(way)
        for wrong in ("Hello", Path("texts"), pd.DataFrame({"text": ["Hello"]})):
            with pytest.raises(TypeError, match="many counts several texts; give a list of them"):
                counter.many(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [*TEXT_FORMS, "folder as a string"])
@pytest.mark.parametrize("function", TAKES_TEXTS)
def test_texts_in_any_form_are_those_texts(function: str, form: str, tmp_path: Path) -> None:
    """In 0.2.0 `compare`, `claims` and the explorer answered a list of texts with a raw AttributeError."""
    if (function, form) == ("kinds_of", "folder as a string"):
        pytest.skip("where one text is meant, a string is that text")
    forms, call = text_forms(tmp_path), TAKES_TEXTS[function]
    assert call(forms[form]) == call(forms["list"])


@pytest.mark.parametrize("function", TAKES_TEXTS)
@pytest.mark.parametrize("wrong", NO_TEXTS)
def test_what_is_no_texts_is_refused_in_a_sentence(function: str, wrong: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"; known are .*; give one of these"):
        TAKES_TEXTS[function](NO_TEXTS[wrong])


def test_a_frame_says_what_is_known_of_its_texts() -> None:
    frame = pd.DataFrame({"body": MY_TEXTS, "class": KINDS, "language": ["en", "de", "python"]})
    errors = bk.accuracy.compare("chars/4", frame)
    assert errors["class"].tolist() == KINDS
    assert errors["language"].tolist() == ["en", "de", "python"]
    with pytest.raises(
        ValueError, match="a frame without a column of texts; it has 'n'; name a column 'text'"
    ):
        bk.accuracy.compare("chars/4", pd.DataFrame({"n": [1, 2]}))


MODEL_FORMS: dict[str, Any] = {
    "name": "gpt-4o",
    "Model": bk.model("gpt-4o"),
    "resolved model": resolve("gpt-4o"),
}
IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
}
PICTURE: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}
]

#: What a model's prices are taken by.
TAKES_MODEL: dict[str, Callable[..., Any]] = {
    "prices": lambda model: bk.cost.prices(model),
    "explorer's prices": lambda model: bk.ConversationExplorer(
        TRACE, working_memory(), prices=model
    ).replay.cost.tolist(),
    "session's prices": lambda model: bk.Session("made-up-session", prices=model).totals(),
    "replay's prices": lambda model: bk.replay(
        SPOKEN, working_memory(), "oldest first", prices=model
    ).cost.tolist(),
}


#: Public functions that take a model, and what each comes to. `count_request` took a name alone, `provider_counter`
#: sent a Model's `repr` to the provider, and `thinking` and the accuracy explorer answered it with a raw error.
ANSWERS_FOR_MODEL: dict[str, Callable[[Any], Any]] = {
    "count_request": lambda model: bk.count_request({"messages": SPOKEN}, model),
    "count_answer": lambda model: bk.count_answer({"role": "assistant", "content": TEXT}, model),
    "build": lambda model: bk.build("chat", model=model, user=TEXT).plan,
    "Conversation": lambda model: talked("chat", model=model),
    "trim": lambda model: bk.trim(SPOKEN, 30, model=model),
    "replay": lambda model: bk.replay(SPOKEN, "chat", "oldest first", model=model).totals()["sent"],
    "solve": lambda model: bk.solve(TRACE, "working_memory", "window", model=model).value,
    "tune": lambda model: (
        bk.tune(
            bk.load_traces("made-up-chats")[:4],
            working_memory(),
            {"output": [200, 300]},
            risk=None,
            model=model,
        ).budget
    ),
    "gate": lambda model: check("chat", prompts={"system": TEXT}, model=model).sections,
    "outlook": lambda model: bk.outlook(TRACE, model, "working_memory", turns=5, samples=5)[
        "limit"
    ].tolist(),
    "compare_models": lambda model: bk.deciding.compare_models(
        [TRACE], [model], bk.presets.working_memory
    )["largest"].tolist(),
    "memory_tokens": lambda model: bk.memory_tokens(model, SPOKEN),
    "thinking": lambda model: bk.thinking(model, "none"),
    "provider_counter": lambda model: bk.provider_counter("openai", model).model,
    "counter": lambda model: bk.counter(model)(TEXT),
    "calibrate": lambda model: bk.calibrate(bk.counter("gpt-4o"), [TEXT], [12], model),
    "image_price": lambda model: image_price(model, 640, 480),
    "preset": lambda model: bk.presets.chat(model),
    "solve_models": lambda model: repr(
        bk.deciding.solve_models([TRACE], [model], "working_memory", "window")
    ),
    "framing_for": lambda model: framing_for(model),
    "BudgetExplorer": lambda model: bk.BudgetExplorer("chat", model=model).budget,
    "ConversationExplorer": lambda model: (
        bk.ConversationExplorer(TRACE, "chat", model=model).budget
    ),
    "AccuracyExplorer": lambda model: (
        bk.AccuracyExplorer("chars/4", [TEXT], model=model).errors["estimate"].tolist()
    ),
    "DesignCard": lambda model: bk.DesignCard("chat", model=model).budget,
    "App": lambda model: bk.App(budget="chat", model=model).card.budget,
}


@pytest.mark.parametrize("form", [form for form in MODEL_FORMS if form != "name"])
@pytest.mark.parametrize("function", ANSWERS_FOR_MODEL)
def test_a_model_in_any_form_is_that_model(function: str, form: str) -> None:
    call = ANSWERS_FOR_MODEL[function]
    assert repr(call(MODEL_FORMS[form])) == repr(call("gpt-4o"))


def test_a_model_that_is_looked_up_again_stays_what_it_is() -> None:
    mine = bk.model("gpt-4o", window=32_768)
    assert bk.model(mine) == mine
    assert bk.model(mine, max_output=1_000).window == 32_768


@pytest.mark.parametrize("form", MODEL_FORMS)
@pytest.mark.parametrize("function", TAKES_MODEL)
def test_prices_go_by_a_model_in_any_form(function: str, form: str) -> None:
    assert TAKES_MODEL[function](MODEL_FORMS[form]) == TAKES_MODEL[function]("gpt-4o")


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


PASSAGE = "Refunds take five days."
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
        ValueError, match="section 'retrieval' was given .*; known are a text, a message, a passage"
    ):
        bk.build(bk.presets.rag(WINDOW), "gpt-4o", retrieval=wrong, user="How long?")


MESSAGES_ONLY: dict[str, Callable[..., Any]] = {
    "trim": lambda text: bk.trim(text, 100),
    "Conversation.add": lambda text: bk.Conversation(working_memory()).add(text),
    "count_request": lambda text: bk.count_request(text, "gpt-4o"),
}


@pytest.mark.parametrize("function", MESSAGES_ONLY)
def test_where_messages_are_meant_a_string_opens_no_file(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_at(tmp_path / "talk.json", json.dumps({"messages": SPOKEN}))
    for text in ("talk.json", "support-chat"):
        with pytest.raises((ValueError, TypeError)):
            MESSAGES_ONLY[function](text)


def test_a_model_brings_its_window_its_counter_and_its_framing() -> None:
    talk = bk.Conversation("working_memory", model="claude-sonnet-4-5")
    talk.add(SPOKEN)
    request = talk.request()
    claude = framing_for("claude-sonnet-4-5")
    assert request.plan.budget.window == 200_000
    assert request.tokens == claude.request(SPOKEN, bk.counter("claude-sonnet-4-5"))


@pytest.mark.parametrize("wrong", [None, 7, b"gpt-4o", {"x": 1}], ids=repr)
@pytest.mark.parametrize("function", ["prices", "thinking", "provider_counter", "image_price"])
def test_what_is_no_model_is_refused_in_a_sentence(function: str, wrong: Any) -> None:
    calls = TAKES_MODEL | ANSWERS_FOR_MODEL
    with pytest.raises(TypeError, match="known are its name and a Model; give one of these"):
        calls[function](wrong)


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
