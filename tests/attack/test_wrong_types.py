"""Whatever is given to a public call, it is taken or refused in words: what was given, what is known, what to do."""

import json
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from tests.messages import assistant, user

SECTIONS = [bk.Allocation("a", granularity="token"), bk.Allocation("b", 30)]
BUDGET = bk.Budget(100, [bk.Reserve("output", 10)], SECTIONS)
untyped: Any = bk  # for values of wrong types
POOL = bk.Budget(100, (), [bk.Allocation("a", keep="best")], undeclared="pool")
ITEMS = [bk.Item("a", 60), bk.Item("a", 60), bk.Item("b", 4)]

PLAIN: tuple[Any, ...] = (None, True, 3.5, -1, "x", "0.5", b"x", (), [], [1], {}, {"a": 1}, 3j)
NUMPY = (np.bool_(True), np.float64(3), np.str_("a"), np.array([1]), np.array([]))
PANDAS = (pd.Series([1]), pd.NA)
NUMBERS = (
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("0.1"),
    Fraction(1, 3),
    float("nan"),
    float("inf"),
)
OTHERS = ({1}, object(), type, bk.Budget(9), bk.Share(0.1))
VALUES = (*PLAIN, *NUMPY, *PANDAS, *NUMBERS, *OTHERS)
STRANGE: dict[str, Any] = {f"{type(value).__name__} {value!r}"[:40]: value for value in VALUES}
STRANGE["10**400"] = 10**400

FIELDS: dict[str, tuple[str, ...]] = {
    "Allocation": (
        *("section", "cap", "floor", "weight", "importance", "required", "overflow"),
        *("when_full", "keep", "fill", "granularity", "limit_items"),
    ),
    "Budget": (
        *("window", "reserves", "allocations", "kind", "deficit", "undeclared", "rounding"),
        *("remainder", "name", "constrained_below", "roles"),
    ),
    "Item": ("section", "tokens", "score", "importance", "group"),
}


# A problem, then how to mend it.
PROBLEM_AND_FIX = re.compile(
    r".+; .+|[A-Z].+\. (Choose|Use|Expected|Pass|Add|Give|Lower|Put|Rename|Remove|Check|Or) .+\.",
    re.DOTALL,
)


def column(value: Any) -> pd.DataFrame:
    """Give a column of it; older pandas hold no number beyond a float, so their largest stands for it."""
    try:
        return pd.DataFrame({"a": [value]})
    except OverflowError:
        return pd.DataFrame({"a": [2**62]})


def allocated(**fields: Any) -> bk.Budget:
    return bk.Budget(9, (), [bk.Allocation(**fields)])


def fitted(**fields: Any) -> bk.Plan:
    return bk.fit(POOL, [bk.Item(**fields), bk.Item("a", 3)])


def in_field(make: Callable[..., object], field: str, **others: Any) -> Callable[[Any], object]:
    """Make it with a value in one field, and look at all of it."""
    return lambda value: repr(make(**{**others, field: value}))


CALLS: dict[str, Callable[[Any], object]] = {
    "Share": bk.Share,
    "Share.at_least": lambda value: bk.Share(0.5, value),
    "Share.at_most": lambda value: bk.Share(0.5, 0, value),
    "Share.of": lambda value: bk.Share(0.5).of(value),
    "Share.of.rounding": lambda value: bk.Share(0.5).of(9, value),
    "Reserve.name": lambda value: bk.Reserve(value, 1),
    "Reserve.size": lambda value: bk.Reserve("a", value),
    "Reserve.serves": lambda value: bk.Budget(9, [bk.Reserve("a", 1, value)]),
    **{f"Allocation.{name}": in_field(allocated, section="a", field=name) for name in FIELDS["Allocation"]},
    **{f"Budget.{name}": in_field(bk.Budget, window=9, field=name) for name in FIELDS["Budget"]},
    **{f"Item.{name}": in_field(fitted, section="a", tokens=2, field=name) for name in FIELDS["Item"]},
    "Budget.cap": BUDGET.cap,
    "Budget.assign": lambda value: BUDGET.assign(b=value),
    "Budget.assign.window": lambda value: BUDGET.assign(window=value),
    "Plan[]": bk.allocate(BUDGET, {}).__getitem__,
    "allocate.budget": lambda value: bk.allocate(value, {"a": 3}),
    "allocate.demand": lambda value: bk.allocate(BUDGET, value),
    "allocate.demand.tokens": lambda value: bk.allocate(BUDGET, {"a": value}),
    "allocate_many.budget": lambda value: bk.plan.allocate_many(value, pd.DataFrame({"a": [1]})),
    "allocate_many.demands": lambda value: bk.plan.allocate_many(BUDGET, value),
    "allocate_many.demands.tokens": lambda value: bk.plan.allocate_many(BUDGET, column(value)),
    "fit.budget": lambda value: bk.fit(value, ITEMS),
    "fit.items": lambda value: bk.fit(BUDGET, value),
    "fit.items.item": lambda value: bk.fit(BUDGET, [value]),
    "fit.cut": lambda value: bk.fit(BUDGET, ITEMS, None if value is type else value),
    "fit.cut returns": lambda value: bk.fit(BUDGET, ITEMS, lambda item, limit, allocation: value),
}  # fmt: skip


HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


def made_up() -> bk.Session:
    return bk.Session(bk.load_trace("made-up-session"))


# Python's own words came out of these: "object of type ... is not iterable".
CALLS |= {
    "sweep": lambda value: untyped.sweep(BUDGET, {"a": 30}, b=value),
    "cut_share": lambda value: untyped.plan.cut_share(value, "window"),
    "what_if": lambda value: untyped.what_if(value, threshold=[100_000]),
    **{
        f"what_if.{name}": lambda value, name=name: untyped.what_if(made_up(), **{name: value})  # type: ignore[misc]
        for name in ("threshold", "keep", "cache_life", "model")
    },
    "count_request.host": lambda value: untyped.count_request(
        {"messages": HELLO}, "gpt-4o", host=value
    ),
    "Conversation.roles": lambda value: untyped.Conversation(bk.presets.chat(4_000), roles=value),
    "demand.roles": lambda value: untyped.load_trace("support-chat").demand("chars/4", value),
    "items.turn": lambda value: untyped.load_trace("support-chat").items(value, "chars/4"),
    "working_memory": lambda value: untyped.presets.working_memory(history_floor=value),
    "truncate": lambda value: untyped.truncation.truncate(value, 9, "chars/4"),
    "from_json": bk.state.from_json,
    "from_yaml": bk.state.from_yaml,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_strange_is_taken_or_refused_in_a_sentence(call: Callable[[Any], object]) -> None:
    for name, value in STRANGE.items():
        try:
            call(value)
        except (ValueError, TypeError, LookupError) as refusal:
            assert not isinstance(refusal, KeyError), name
            assert PROBLEM_AND_FIX.fullmatch(str(refusal)), (name, refusal)
            assert len(str(refusal)) < 600, (name, refusal)


@pytest.mark.parametrize(
    "call",
    [
        lambda: untyped.compare("support-chat"),
        lambda: untyped.compare(untyped.load_trace("support-chat"), cache="x"),
        lambda: untyped.policies.Chain(None),
        lambda: bk.load_trace("a" * 5_000),
        lambda: bk.load_trace("~nobody-of-this-name/x"),
        lambda: untyped.trim([user("Hello")], 100, framing=5),
        lambda: untyped.trim([user("Hello")], 100, start_on="usr"),
        lambda: bk.what_if(bk.Session(bk.load_trace("made-up-session")), threshold=-1),
        lambda: bk.what_if(bk.Session(bk.load_trace("made-up-session")), keep=[True]),
    ],
    ids=[
        "compare",
        "cache",
        "chain",
        "long path",
        "unknown user",
        "framing",
        "start_on",
        "threshold",
        "keep",
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(call: Callable[[], object]) -> None:
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as refused:
        call()
    assert PROBLEM_AND_FIX.fullmatch(str(refused.value))


def test_whole_numbers_of_numpy_are_taken() -> None:
    """They come out of frames, and are saved and compared as Python's."""
    window, tokens = np.int64(100), np.int32(30)
    reserve, share = bk.Reserve("output", np.uint8(10)), bk.Share(0.5, np.int16(1), np.int64(40))  # type: ignore[arg-type]
    line = bk.Allocation("a", share, floor=tokens, weight=np.int8(1), limit_items=np.int64(3))  # type: ignore[arg-type]
    budget = bk.Budget(window, [reserve], [line], constrained_below=tokens)  # type: ignore[arg-type]
    same = bk.Allocation("a", bk.Share(0.5, 1, 40), floor=30, weight=1, limit_items=3)
    assert budget == bk.Budget(100, [bk.Reserve("output", 10)], [same], constrained_below=30)
    assert bk.fit(budget, [bk.Item("a", tokens)]) == bk.fit(budget, [bk.Item("a", 30)])  # type: ignore[arg-type]
    assert type(bk.Item("a", tokens).tokens) is int  # type: ignore[arg-type]
    assert bk.allocate(budget, {"a": tokens}) == bk.allocate(budget, {"a": 30})  # type: ignore[dict-item]
    assert bk.Share(0.5).of(window) == 50  # type: ignore[arg-type]


def test_a_section_has_one_column() -> None:
    """Of two with one name, as a merge of frames leaves them, neither is lost silently."""
    for names in (["a", "a"], ["1", 1]):
        refusal = "Two columns of demands have the same name. Add them up, or rename one"
        with pytest.raises(ValueError, match=refusal):
            bk.plan.allocate_many(
                POOL, pd.DataFrame([[1, 2]], columns=pd.Index(names, dtype=object))
            )


def test_importance_of_a_line_may_be_a_number_of_numpy() -> None:
    line = bk.Allocation("a", importance=np.int64(7))  # type: ignore[arg-type]
    assert line == bk.Allocation("a", importance=7)
    assert type(line.importance) is int


BODY: dict[str, Any] = {"model": "gpt-4o", "messages": [user("Why is it so?")]}


def conversed(conversation: bk.Conversation) -> object:
    conversation.add(BODY["messages"][0])
    return conversation.request()


COUNTING: dict[str, Callable[[Any], object]] = {
    "counter": lambda count: bk.counter(count)("Why?"),
    "demand": lambda count: bk.load_trace("support-chat").demand(count),
    "truncate": lambda count: bk.truncation.truncate("Why is it so? " * 9, 20, count),
    "trim": lambda count: bk.trim(BODY["messages"], 1_000, counter=count),
    "framing": lambda count: bk.requests.Framing().messages(BODY["messages"], count),
    "Conversation": lambda count: conversed(bk.Conversation(bk.presets.chat(1_000), counter=count)),
}


@pytest.mark.parametrize(
    "number",
    [None, float("nan"), float("inf"), -1, 10**400, "x", 1.5, True],
    ids=lambda value: repr(value)[:9],
)
@pytest.mark.parametrize("call", COUNTING.values(), ids=COUNTING)
def test_a_counter_of_no_numbers_is_refused(call: Callable[[Any], object], number: Any) -> None:
    """In 0.2.0 None and NaN ended in Python's own words, and -1 was counted."""

    def mine(text: str) -> Any:
        return number

    refusal = r"Invalid count of mine \(a function, line \d+\): .*\. (Expected|Use) "
    with pytest.raises((TypeError, ValueError), match=refusal):
        call(mine)


def test_a_wrong_name_of_a_budget_is_refused_as_a_name() -> None:
    with pytest.raises(TypeError, match=r"^Invalid name: a value of type int\. Expected str\.$"):
        bk.Budget(9, name=3)  # type: ignore[arg-type]


def test_a_limit_beyond_all_tokens_is_refused_in_words() -> None:
    refusal = r"^Invalid limit: a whole number of about 400 digits\. Use a whole number from 0 to [\d,]+\.$"
    with pytest.raises(ValueError, match=refusal):
        bk.truncation.truncate("Why?", 10**400, "o200k_base")


def test_tool_calls_of_a_wrong_type_are_an_error_in_words() -> None:
    talk = bk.Conversation(bk.presets.chat(2_000, output=200), model="gpt-5.4")
    with pytest.raises(ValueError, match="tool_calls of an assistant message"):
        talk.add(assistant("So.", tool_calls=5))


SECRET = "zqmark"
#: Shapes in place of messages, of one message or of one part of its content, and each around a text.
SHAPES: tuple[Any, ...] = (
    *([SECRET], [[SECRET]], (SECRET,), {SECRET}, SECRET.encode(), {"x": SECRET}, [{"x": SECRET}]),
    *([None, SECRET], [{"type": [SECRET], "text": SECRET}], [{"type": "text", "txet": SECRET}]),
    *({"role": [SECRET]}, {"content": SECRET}, [user({"text": SECRET})], [user([[SECRET]])]),
)
TAKING_MESSAGES: dict[str, Callable[[Any], object]] = {
    "count_request": untyped.count_request,
    "count_request.messages": lambda value: bk.count_request({"messages": value}),
    "count_request.system": lambda value: bk.count_request({"messages": HELLO, "system": value}),
    "count_request.input": lambda value: bk.count_request({"input": value}),
    "count_request.contents": lambda value: bk.count_request({"contents": value}),
    "count_request.converse": lambda value: bk.count_request({"messages": value, "toolConfig": {}}),
    "trim": lambda value: untyped.trim(value, 100, model="gpt-4o"),
    "build": lambda value: untyped.build(bk.presets.chat(4_000), history=value, user="So?"),
    "Conversation": lambda value: bk.Conversation(bk.presets.chat(4_000)).add(value),
    "Trace": lambda value: untyped.Trace("a", value),
    "Trace.id": lambda value: untyped.Trace(value, HELLO),
    "Message": untyped.Message,
    "load_trace": untyped.load_trace,
    "replay": lambda value: untyped.replay(value, BUDGET),
    "redact": lambda value: untyped.redaction.redact(value, len),
    "Session": untyped.Session,
    "what_if": lambda value: untyped.what_if(value, threshold=[100_000]),
    "fit": lambda value: untyped.fit(BUDGET, value),
    "check.traces": lambda value: check(BUDGET, traces=value),
    "check.trace": lambda value: check(BUDGET, traces=[value]),
    "check.prompts": lambda value: check(BUDGET, prompts={"a": value}),
    "check.tools": lambda value: check(BUDGET, tools=value),
    "counter": lambda value: untyped.counter("gpt-4o")(value),
    "counter.many": lambda value: untyped.counter("gpt-4o").many(value),
    "truncate": lambda value: untyped.truncation.truncate(value, 9, "chars/4"),
    "from_json": bk.state.from_json,
}  # fmt: skip


@pytest.mark.parametrize("call", TAKING_MESSAGES.values(), ids=TAKING_MESSAGES)
def test_no_error_or_warning_quotes_the_text_of_a_message(
    call: Callable[[Any], object], caplog: pytest.LogCaptureFixture
) -> None:
    """`count_request` quoted a list of messages that it was given in place of a body."""
    for shape in SHAPES:
        for value in (shape, [shape], [user(shape)], [user([shape])]):
            with warnings.catch_warnings(record=True) as shown:
                warnings.simplefilter("always")
                try:
                    call(value)
                except (ValueError, TypeError, LookupError) as refusal:
                    assert SECRET not in str(refusal), value
            assert SECRET not in "".join(str(warning.message) for warning in shown), value
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "command",
    [
        "fit support-chat -b chat.json",
        "check support-chat --baseline chat.json",
        "check support-chat --tools chat.json",
        "count --as servers chat.json",
    ],
)
def test_no_error_quotes_a_conversation_in_place_of_another_file(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two of them quoted its first message, and the last listed its messages as tools of 0 tokens."""
    monkeypatch.chdir(tmp_path)
    for value in ([user(SECRET)], {"messages": [user(SECRET)]}, {"budget": [user(SECRET)]}):
        Path("chat.json").write_text(json.dumps(value), encoding="utf-8")
        assert run(command.split()) == 2
        shown = capsys.readouterr()
        assert "chat.json" in shown.err and SECRET not in shown.err
