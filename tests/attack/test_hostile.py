"""Hostile input ends in a count, a cut or an error in words; never in a crash, a hang or a full memory."""

import io
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import comm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyter_client.session import json_packer

import budgetkit as bk
from budgetkit import corpora
from budgetkit.counters import counter
from budgetkit.counters.exact import memory
from budgetkit.message import replace_surrogates
from budgetkit.trace import jsonl
from tests.conftest import examples
from tests.hostile import (
    MILLION,
    RUNS,
    SHORT,
    Padding,
    any_text,
    deep_json,
    hostile_text,
    long_text,
    one_line,
)
from tests.messages import assistant, tool_call, tool_result, user

COUNTERS = ("o200k_base", "cl100k_base", "chars/4", "bytes/4", "utf16/4", "estimate:o200k_base")
GIGABYTE = 1_000_000_000


def paired(text: str) -> str:
    """Make a character of the halves that stand beside each other, as JSON does; halves alone stay."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


# Counters


@pytest.mark.parametrize("name", COUNTERS)
@settings(max_examples=examples(150))
@given(texts=st.lists(hostile_text | any_text, max_size=5))
def test_every_counter_counts_every_string_alone_and_in_many(name: str, texts: list[str]) -> None:
    count = counter(name)
    alone = [count(text) for text in texts]
    assert count.many(texts) == alone
    assert all(type(size) is int and size >= 0 for size in alone)


@pytest.mark.parametrize("name", COUNTERS[2:])
@pytest.mark.parametrize("run", RUNS)
def test_rough_counters_count_a_million_of_one_character(name: str, run: str) -> None:
    assert counter(name)(run * MILLION) > 0


def test_no_count_depends_on_what_was_counted_before() -> None:
    exact = counter("o200k_base")
    before = [exact(text) for text in SHORT]
    exact.many([long_text(300_000), *reversed(SHORT)])
    assert [exact(text) for text in SHORT] == before


# Messages and importers


@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@settings(max_examples=examples(200))
@given(st.lists(hostile_text | any_text, min_size=1, max_size=4), hostile_text)
def test_messages_of_any_text_load_count_and_come_back(texts: list[str], name: str) -> None:
    said = [(user, assistant)[i % 2](text, name=name) for i, text in enumerate(texts)]
    trace = bk.load_trace(io.BytesIO(json.dumps({"messages": said}).encode()))
    assert [message.text for message in trace.messages] == [paired(text) for text in texts]
    assert int(trace.demand(counter("o200k_base")).to_numpy().sum()) >= 0


KEYS = [
    *("messages", "role", "content", "tools", "tool_calls", "contexts", "meta", "type", "text"),
    *("id", "usage"),
]
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | hostile_text,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | any_text, inner, max_size=5)
    ),
    max_leaves=12,
)


def refused_or(load: Callable[[], Any]) -> Any:
    """Give what was loaded, or None where it was refused in words."""
    try:
        return load()
    except (
        ValueError,
        LookupError,
        ImportError,
    ) as error:  # the last for a table whose extra is not installed
        assert str(error)
        return None


@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@settings(max_examples=examples(400))
@given(json_like | st.lists(json_like, max_size=3))
def test_any_json_is_a_conversation_or_a_refusal(value: Any) -> None:
    written = json.dumps(value).encode()
    for trace in refused_or(lambda: bk.load_traces(io.BytesIO(written))) or []:
        trace.demand(counter("chars/4"))


@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@settings(max_examples=examples(300))
@given(st.binary(max_size=200))
def test_any_bytes_are_a_conversation_or_a_refusal(written: bytes) -> None:
    refused_or(lambda: bk.load_traces(io.BytesIO(written)))


@pytest.mark.parametrize("number", range(4))
def test_deep_json_is_refused_in_words(number: int) -> None:
    text = [*deep_json(100_000)][number]
    refusal = r"(nested too deeply|not JSON|JSON breaks|no conversation|Expecting)"
    with pytest.raises(ValueError, match=refusal):
        bk.load_traces(io.BytesIO(text.encode()))
    with pytest.raises(ValueError, match="saved state"):
        bk.state.from_json(text)


def test_a_line_of_fifty_megabytes_loads_and_counts() -> None:
    trace = bk.load_trace(io.BytesIO(one_line(50)))
    assert len(trace.messages[0].text) > 50_000_000
    assert counter("chars/4")(trace.messages[0].text) > 12_000_000


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (b" ", "longer than .* MiB. Check"),
        (b"\n", "blank lines in a row. Remove"),
        (b"[", "longer than .* MiB. Check"),
    ],
)
def test_a_gigabyte_of_padding_is_refused_early(fill: bytes, said: str) -> None:
    """Read as far as the refusal and no further, in less memory than a quarter of it would take."""
    start = b'{"messages": [{"role": "user", "content": "hello"}]}\n'
    padding = Padding(2 * GIGABYTE, start, fill)
    with pytest.raises(ValueError, match=f"padding.jsonl, line .*{said}"):
        bk.load_traces(io.BufferedReader(padding))
    assert padding.read_so_far <= 1.2 * jsonl.LONGEST_LINE


def test_padding_after_a_first_line_that_is_no_json_is_refused_early_too() -> None:
    padding = Padding(2 * GIGABYTE, b"[\n", b" ")
    with pytest.raises(ValueError, match="padding.jsonl, line .*longer than"):
        bk.load_traces(io.BufferedReader(padding))
    assert padding.read_so_far <= 1.2 * jsonl.LONGEST_LINE


# Saved states


@settings(max_examples=examples(300))
@given(json_like)
def test_any_json_is_a_saved_state_or_a_refusal(value: Any) -> None:
    for written in (
        json.dumps(value),
        json.dumps({"budgetkit": 1, "budget": value}),
        json.dumps({"budgetkit": 1, "plan": value}),
    ):
        with pytest.raises(ValueError, match="."):
            bk.state.from_json(written)


@settings(max_examples=examples(300))
@given(any_text | hostile_text)
def test_any_text_is_no_saved_state_and_runs_nothing(text: str) -> None:
    for load in (bk.state.from_json, bk.state.from_yaml):
        with pytest.raises(ValueError, match="."):
            load(text)


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['true']",
        "budgetkit: [",
        "&a [*a]",
        "budgetkit: 1\nbudget: !!python/name:os.system",
        "budgetkit: 1\nbudget: {window: !!python/object/new:int ['8']}",
        "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b]",
    ],
)
def test_yaml_that_would_run_or_blow_up_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="saved state"):
        bk.state.from_yaml(text)


@settings(max_examples=examples(100))
@given(hostile_text, hostile_text)
def test_any_names_come_back_from_a_saved_state_in_any_file(section: str, reserve: str) -> None:
    section, reserve = paired(section), paired(reserve)
    try:
        sections = [bk.Allocation(section, 100)]
        budget = bk.Budget(1_000, [bk.Reserve(reserve, 10)], sections, name=section)
    except ValueError:
        return
    json_file, yaml_file = bk.state.to_json(budget).encode(), bk.state.to_yaml(budget).encode()
    assert bk.state.from_json(json_file.decode()) == budget
    assert bk.state.from_yaml(yaml_file.decode()) == budget


# Explorers


@pytest.fixture(scope="module")
def explorer() -> bk.BudgetExplorer:
    return bk.BudgetExplorer(bk.Budget(1_000))


#: A name that can be written to a file.
WHOLE = hostile_text.map(replace_surrogates).filter(bool)


@settings(max_examples=examples(30))
@given(sections=st.lists(WHOLE, min_size=1, max_size=4, unique=True), name=hostile_text)
def test_copied_code_makes_the_same_budget_whatever_its_names_are(
    explorer: bk.BudgetExplorer, sections: list[str], name: str
) -> None:
    lines = [bk.Allocation(section, 10) for section in sections]
    budget = bk.Budget(1_000, (), lines, name=replace_surrogates(name))
    explorer.load(bk.state.to_yaml(budget))
    made: dict[str, Any] = {}
    exec(explorer.texts["python"], made)
    assert made["budget"] == explorer.budget
    assert [line.name for line in explorer.budget] == [line.name for line in budget]


def test_half_an_emoji_keeps_nothing_from_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that was cut by its length in another language may end so."""
    sent: list[bytes] = []
    monkeypatch.setattr(
        comm.DummyComm, "publish_msg", lambda *_, data, **more: sent.append(json_packer(data))
    )
    half, whole = "cut off \ud83d", "cut off \ufffd".encode()
    call = tool_call(half, half, json.dumps({half: half}))
    said: list[dict[str, Any]] = [
        user(half, name=half, contexts=[{"text": half, "source": half}]),
        assistant(half, tool_calls=[call]),
        tool_result(half, half),
    ]
    traces = [bk.Trace(name, tuple(bk.Message(each) for each in said)) for name in (half, "whole")]
    texts = corpora.Corpus(
        tuple(corpora.Document(f"{half} {n}", "prose", "en", half, half) for n in range(3))
    )
    budgets = bk.BudgetExplorer(trace=traces)
    assert whole in b"".join(sent)
    sent.clear()
    conversations = bk.ConversationExplorer(traces)
    assert whole in b"".join(sent)
    sent.clear()
    errors = bk.AccuracyExplorer(corpus=texts)
    for view in (budgets.view, conversations.view, errors.view):
        view.opened = list(view.figures)
    assert whole in b"".join(sent)
    refusal = "Invalid name of a line: .* contains half of a surrogate pair. Remove"
    with pytest.raises(ValueError, match=refusal):
        bk.Allocation(half)


# Time and memory


def test_a_text_of_ten_megabytes_is_counted_in_little_more_memory_than_it_takes() -> None:
    text = long_text(1_000_000) * 10
    counter("cl100k_base")("the encoding is loaded before it is measured")
    tracemalloc.start()
    counter("cl100k_base")(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(text)


@pytest.mark.parametrize("unit", ["a", "的", " \t", "\u0301", "<|endoftext|>", "👩‍👩‍👧‍👦"])
def test_ten_times_the_text_takes_at_most_some_ten_times_as_long(unit: str) -> None:
    exact = counter("o200k_base")

    def seconds(characters: int) -> float:
        text = unit * (characters // len(unit))
        memory("o200k_base").forget()
        start = time.process_time()
        exact(text)
        return time.process_time() - start

    bound = 40 * min(seconds(30_000) for _ in range(3)) + 0.1
    assert any(seconds(300_000) < bound for _ in range(2))


@pytest.mark.parametrize(
    "number", [10**400, -(10**400), 10**4_000], ids=["large", "negative", "huge"]
)
def test_a_number_of_hundreds_of_digits_is_none_or_is_refused(number: int) -> None:
    """JSON has no largest number: no score, time or picture is that large, and no provider counts so many tokens."""
    picture = {"type": "image_url", "image_url": {"url": "x", "width": number, "height": 9}}
    passages = [{"text": "a", "score": number}]
    said = [user([picture], timestamp=number, contexts=passages), {"role": "assistant"}]
    trace = bk.load_trace(io.BytesIO(json.dumps({"messages": said}).encode()))
    assert trace.messages[0].images[0].width is None
    assert trace.messages[0].contexts[0].score is None
    assert trace.demand(counter("chars/4")).shape[0] == 1
    budget = bk.presets.working_memory(8_000)
    replayed = bk.replay(trace, budget, bk.policies.OldestFirst(), by="request")
    assert replayed.frame() is not None
    usage = {"usage": {"input_tokens": number}}
    call = {"request": {"model": "m", "messages": said}, "response": usage}
    refusal = r"Invalid input_tokens of a provider's usage: .{9,120}\. Use .{9,120}$"
    with pytest.raises(ValueError, match=refusal):
        bk.load_trace(io.BytesIO(json.dumps(call).encode()))
