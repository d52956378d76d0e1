"""What people pass: messages as they have them, names for counters, models and policies, shares as numbers."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import presets
from budgetkit.conversation import assembly
from budgetkit.lab.explorers.conversation.settings import CHOICES, ConversationSettings
from budgetkit.pruning.policies.systems import NAMED, policy_of
from budgetkit.trace import messages_of
from tests.messages import calling, tool_call, user

ASKED = user("Where is my parcel?")
CALL = tool_call("1", "find", '{"parcel": 7}')


@dataclass
class Said:
    """A message of LangChain, as far as anybody looks at it."""

    type: str
    content: Any
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str | None = None


@dataclass
class Spoken:
    """A message of the memory engine: a role and a content."""

    role: str
    content: str


def words(text: str) -> int:
    return len(text.split())


def test_a_trace_takes_dictionaries_and_objects_of_other_libraries() -> None:
    """A list of them, in any mixture, is the trace that the messages of this kit make."""
    called = Said(
        "ai", "", [{"id": "1", "name": "find", "args": {"parcel": 7}, "type": "tool_call"}]
    )
    given = [
        Said("system", "Be brief."),
        ASKED,
        called,
        Said("tool", "On its way.", tool_call_id="1"),
    ]
    given += [Said("human", "Thanks."), bk.Message(ASKED), Spoken("user", "Bye.")]
    trace = bk.Trace("mixed", given)  # type: ignore[arg-type]
    assert [m.role for m in trace.messages] == [
        *("system", "user", "assistant", "tool", "user", "user", "user")
    ]
    assert isinstance(trace.messages, tuple)
    explorer = bk.BudgetExplorer("chat", [ASKED, ASKED])
    assert explorer.plan["user"].demand == explorer.plan["conversation"].demand + 2, (
        "the last asks, with the priming"
    )
    assert len(bk.replay([ASKED, ASKED], presets.working_memory(), "octopus").over) == 2
    assert trace.messages[2].tool_calls[0].arguments == CALL["function"]["arguments"]
    assert trace.messages[3].tool_call_id == "1"


@pytest.mark.skipif(find_spec("openai") is None, reason="OpenAI's SDK is not installed")
def test_messages_of_openais_sdk() -> None:
    from openai.types.chat import ChatCompletionMessage

    answer = ChatCompletionMessage.model_validate(calling(CALL))
    assert messages_of([answer])[0].tool_calls[0].name == "find"


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: bk.Trace("x", [7]), "Message without a role: it is of type int"),  # type: ignore[arg-type]
        (lambda: bk.Trace("x", "hello"), "Expected a list of messages"),  # type: ignore[arg-type]
        (lambda: bk.Trace("x", ASKED), "Expected a list of messages"),  # type: ignore[arg-type]
        (
            lambda: bk.Trace([ASKED]),  # type: ignore[arg-type]
            "Expected a string: the id comes first, Trace('mine', messages)",
        ),
        (lambda: bk.counter(3), "Expected a model, a function or a name"),  # type: ignore[arg-type]
        (
            lambda: bk.Trace("x", (bk.Message(ASKED),)).items(1, 3),  # type: ignore[arg-type]
            "Expected a model, a function or a name",
        ),
        (
            lambda: bk.accuracy.calibrate(7, ["a"], [1]),  # type: ignore[arg-type]
            "Expected a model, a function or a name",
        ),
        (lambda: bk.Budget(100).assign(window=0.5), "Invalid window: 0.5. Expected a whole number"),
        (
            lambda: bk.Reserve("output", 1.5),  # type: ignore[arg-type]
            "Invalid reserve 'output': 1.5. Expected a whole number",
        ),
        (
            lambda: bk.Allocation("a", weight=0.5),  # type: ignore[arg-type]
            "Invalid weight of 'a': 0.5. Expected a whole number",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(made: Any, sentence: str) -> None:
    """And never by an error from inside."""
    with pytest.raises(
        (TypeError, ValueError), match=sentence.replace("(", r"\(").replace(")", r"\)")
    ):
        made()


def test_a_models_name_is_a_window() -> None:
    """In every preset, with what the window holds."""
    for name, make in presets.PRESETS.items():
        assert make("gpt-5") == make(bk.model("gpt-5")), name
    assert presets.memory_engine("gpt-4o").window == 128_000


def test_a_number_with_a_point_is_a_share() -> None:
    """In `assign` and in every preset as in three of them before."""
    budget = presets.chat(8_192).assign(output=0.25, system={"cap": 0.05, "required": False})
    assert (budget.sizes["output"], budget.cap("system")) == (2_048, 409)
    assert budget == presets.chat(8_192, output=0.25).assign(
        system={"cap": bk.Share(0.05), "required": False}
    )
    assert presets.memory_engine(1_000, output=0.1, safety=0.2).reserved == 300
    assert presets.working_memory(1_000, output=0.1, knowledge=0.2, episodes=0.3).capped == 500


def test_a_counters_name_counts_wherever_a_counter_does() -> None:
    """A trace, a cut, a text about the budget, a replay."""
    count, trace = bk.counter("chars/4"), bk.load_trace("support-chat")
    budget = presets.working_memory(4_000, output=500)
    assert trace.items(5, "chars/4") == trace.items(5, count)
    assert trace.demand("chars/4").equals(trace.demand(count))
    assert (trace.counts("gpt-4o") == trace.counts(bk.counter("gpt-4o"))).all()
    text = "one two three four five six"
    assert bk.truncation.truncate(text, 4, "o200k_base") == bk.truncation.truncate(
        text, 4, bk.counter("o200k_base")
    )
    plan = bk.fit(budget, trace.items(9, "chars/4", budget.roles), bk.truncation.cutter("chars/4"))
    assert assembly.describe(plan, "chars/4") == assembly.describe(plan, count)
    assert bk.requests.FRAMINGS["openai"].request([ASKED], "chars/4") == bk.requests.FRAMINGS[
        "openai"
    ].request([ASKED], count)
    by_name = bk.replay(trace, budget, "oldest first", counter="chars/4")
    assert by_name.frame().equals(
        bk.replay(trace, budget, bk.policies.OldestFirst(), counter=count).frame()
    )


def test_a_counter_to_be_calibrated_is_passed_as_any_other() -> None:
    """By the name of an encoding, a rule or a model, as a model, a counter or a function."""
    forms = ("o200k_base", "chars/4", "gpt-4o", bk.model("gpt-4o"), bk.counter("o200k_base"), words)
    for form in forms:
        base = bk.counter(form)
        texts = ["one two three four five six", "seven eight nine ten"]
        mine = bk.accuracy.calibrate(form, texts, [2 * tokens for tokens in base.many(texts)])
        assert (mine.counter, mine.slope) == (base, 2.0)


def test_a_policys_name() -> None:
    """Those of this kit, at the numbers that the explorer begins with, and those of systems."""
    assert set(NAMED) == set(CHOICES)
    settings = ConversationSettings()
    for name in CHOICES:
        assert policy_of(name) == settings.policy(name)
    assert policy_of("octopus") == bk.policies.system("octopus")
    refusal = "Unknown policy 'oldest'.* Choose one of: 'oldest first'"
    with pytest.raises(LookupError, match=refusal):
        bk.replay(bk.load_trace("support-chat"), presets.working_memory(), "oldest")


CORPUS = bk.corpora.Corpus(
    (bk.corpora.Document("Hello world of words", "prose", "en", "mine", "first"),)
)


def test_one_counter_in_compare_and_a_plain_function() -> None:
    """As a name, as a counter, as a function; two of one name would be one row."""
    for one in ("chars/4", bk.counter("chars/4"), words):
        assert len(bk.accuracy.compare(one, CORPUS)) == 1
    assert bk.accuracy.compare([words, "chars/4"], CORPUS)["estimate"].tolist() == [4, 5]
    assert (
        bk.accuracy.compare(words, CORPUS)["counter"]
        .str.startswith("words (a function, line ")
        .all()
    )
    with pytest.raises(ValueError, match="Duplicate counters 'chars/4'"):
        bk.accuracy.compare(["chars/4", "chars/4"], CORPUS)
    with pytest.raises(TypeError, match=r"Invalid count of half .*: 1.5. Expected a whole number"):
        bk.accuracy.compare(half, CORPUS)


def half(text: str) -> Any:
    return 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [words, bk.accuracy.calibrate(bk.counter("cl100k_base"), ["Hello world"], [3], model="mine")],
)
def test_every_explorer_takes_a_function_and_a_calibrated_counter(given: Any) -> None:
    """What it counts is what is planned, replayed and measured with."""
    name = bk.counter(given).name
    trace = bk.load_trace("support-chat")
    budget = bk.BudgetExplorer("working_memory", trace, counter=given)
    framing = bk.requests.framing_for(bk.model(budget.config["model"]))
    assert budget.config["counter"] == name
    assert (
        budget.plan["current"].demand
        == trace.demand(given, budget.budget.roles, framing)["current"].iloc[-1]
    )
    replayed = bk.ConversationExplorer(trace, policies={"mine": "octopus"}, counter=given)
    assert replayed.replay.policy == bk.policies.system("octopus")
    assert replayed.budget.remainder == "history"
    measured = bk.AccuracyExplorer(given, CORPUS)
    assert measured.errors["counter"].tolist() == [name]
    assert bk.AccuracyExplorer("chars/4", CORPUS, exact=given).errors["exact"].tolist() == [
        bk.counter(given)(CORPUS.texts[0])
    ]


def test_a_counter_that_has_no_hash_counts_everywhere() -> None:
    """A dataclass that can be changed has none; what is kept of other counters is made each time for it."""

    @dataclass
    class Halves:
        def __call__(self, text: str) -> int:
            return len(text) // 2

    trace, budget = bk.load_trace("support-chat"), presets.chat(8_192)
    plain = Halves().__call__
    assert trace.demand(Halves()).equals(trace.demand(plain))
    sent = [
        bk.replay(trace, budget, "oldest first", counter=each).frame()["sent"]
        for each in (Halves(), plain)
    ]
    assert sent[0].equals(sent[1])
    assert bk.BudgetExplorer("chat", trace, counter=Halves()).status
