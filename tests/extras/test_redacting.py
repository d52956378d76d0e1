"""A conversation to share: filler that counts like the words, and every figure as it was."""

import json
import re
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.lab.replay.prompt_cache import CACHES
from budgetkit.requests import FRAMINGS
from budgetkit.trace import to_line, usage_frame
from budgetkit.trace.filler import Filler
from tests.conftest import examples
from tests.messages import assistant, calling, system, tool, tool_call, tool_result, user

EXACT = bk.counter("o200k_base")
COUNTERS = ("o200k_base", "cl100k_base", "chars/4", "utf16/4", "words/0.75", "claude-haiku-4-5")
SAMPLES = [
    *("user's refund", "getWeatherNow(x_1)", "Grüße 🎉\n\tan Zoë", "今日は天気", "नमस्ते"),
    *("C:\\new", ""),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9_999, 9_999) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.sampled_from(SAMPLES), JSON.map(json.dumps))
WRITTEN = (
    st.booleans() | st.integers(0, 9_999) | st.from_regex(r"[A-Za-z ,.]{0,40}", fullmatch=True)
)
PROPERTIES = {
    "booking_code": {"type": "string", "enum": ["first", "premium"]},
    "nights": {"type": "integer"},
}
TOOL = tool(
    "find_reservation",
    description="Look up what Ms. Okafor has booked.",
    parameters={"type": "object", "properties": PROPERTIES, "required": ["booking_code"]},
)
SECRETS = (
    *("Okafor", "A-1734", "reservation", "booking", "premium", "nights", "Lagos", "ada"),
    *("call_77", "invoice"),
)


def call(id: str, **arguments: Any) -> dict[str, Any]:
    return tool_call(id, "find_reservation", json.dumps(arguments))


SAID: list[dict[str, Any]] = [
    system("Help the guests of the Lagos house."),
    user("I am Okafor; find A-1734.", name="ada", timestamp=1_700_000_000, secret="invoice"),
    calling(call("call_77", booking_code="A-1734"), call("call_78", nights=12)),
    tool_result("call_77", '{"nights": 3, "guest": "Okafor", "invoice": null}'),
    tool_result("call_78", "none for 12 nights in Lagos"),
    assistant("Three nights.", id="D1"),
    user([{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "invoice"}}]),
    user("Where was I?", evidence=["D1"], timestamp=1_700_000_060),
]  # fmt: skip
TRACE = bk.Trace(
    "ada's", tuple(map(bk.Message, SAID)), (TOOL,), {}, {"owner": "ada"}, "invoice.jsonl"
)


def test_nothing_that_names_anybody_is_left() -> None:
    shown = to_line(bk.redaction.redact(TRACE, EXACT))
    assert [secret for secret in SECRETS if secret.casefold() in shown.casefold()] == []


KEYS = st.sampled_from(["type", "name", "zqmark"])
ODD = st.recursive(
    st.sampled_from([None, True, 7, "zqmark"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=examples(60))
@given(ODD)
def test_no_word_is_left_whatever_the_types(odd: Any) -> None:
    """Fields of a type that they should not have came out as they were."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": odd, "format": [odd]}}}  # fmt: skip
    odd_call = {"id": odd, "type": odd, "function": {"name": odd, "arguments": odd}}
    said = [user("Hi", name=odd, refusal=odd), calling(odd_call), tool_result(odd, "So")]
    trace = bk.Trace("mine", tuple(map(bk.Message, said)), (tool,))
    shown = bk.redaction.redact(trace, EXACT)
    assert "zqmark" not in repr((shown.messages, shown.tools))


WRONG: tuple[Any, ...] = (
    *("zqmark", ["zqmark"], {"zqmark": 1}, {"text": "zqmark"}, [["zqmark"]], [{"id": "zqmark"}]),
    *(["zqmark", 7], {"role": "zqmark"}, [{"function": "zqmark"}], [{"type": ["zqmark"]}]),
)
FIELDS = ("role", "content", "tool_calls", "tool_call_id", "function_call", "contexts", "name")


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_no_refusal_quotes_what_was_said(wrong: Any) -> None:
    """Of fields of a wrong type the value was quoted, in an error that is posted with the redacted file."""
    said: list[Any] = [wrong, *({"role": "user", "content": "Hi", name: wrong} for name in FIELDS)]
    # an id is quoted, to find its message
    named = [name for name in FIELDS if name != "tool_call_id" or not isinstance(wrong, str)]
    said += [{"role": "tool", "content": "So", name: wrong} for name in named]
    sources: list[Any] = [[message] for message in said]
    tables = ("tools", "functions", "contexts", "meta", "usage", "compactions")
    hello = user("Hi")
    sources += [{"messages": [hello], name: wrong} for name in tables]
    place = {"contexts_apply_to_message": wrong}
    sources.append({"messages": [hello], "contexts": ["Text"], "meta": place})
    for source in sources:
        stream = BytesIO(json.dumps(source).encode())
        for load in (partial(bk.redaction.redact, source, EXACT), partial(bk.load_traces, stream)):
            with catch_warnings(action="ignore"):
                try:
                    load()
                except (ValueError, TypeError) as error:
                    # names of fields say which format a file is closest to
                    refusal = re.sub("(an object with|the fields) .*?[.;]", "", str(error))
                    assert "zqmark" not in refusal, source


@pytest.mark.parametrize("sign", ["🎉", "👩🏽‍⚕️", "🇳🇬", "☪", "\ud83c"])
def test_a_sign_that_shows_something_is_filler(sign: str) -> None:
    """In 0.3.0 emoji stayed, and halves of characters."""
    trace = bk.Trace("mine", (bk.Message(user(f"a {sign} b")),))
    shown = bk.redaction.redact(trace, EXACT).messages[0].text
    assert not set(sign) & set(shown) - {"\u200d", "\ufe0f"}


def test_an_images_detail_is_a_word_of_the_format_or_none() -> None:
    """In 0.2.0 whatever stood there was passed on."""

    def shown(detail: str) -> Any:
        part = {"type": "image_url", "image_url": {"url": "invoice", "detail": detail}}
        trace = bk.Trace("mine", (bk.Message(user([part])),))
        return bk.redaction.redact(trace, EXACT).messages[0].raw["content"][0]

    assert shown("the invoice of Ms. Okafor") == {"type": "image_url", "detail": "auto"}
    assert shown("low")["detail"] == "low", "it has its own price"


def test_a_call_keeps_its_result_and_names_agree_wherever_they_stand() -> None:
    shown = bk.redaction.redact(TRACE, EXACT)
    calls, results = shown.messages[2].tool_calls, shown.messages[3:5]
    assert [result.tool_call_id for result in results] == ["call_1", "call_2"]
    assert [each.id for each in calls] == ["call_1", "call_2"]
    function = shown.tools[0]["function"]
    assert {each.name for each in calls} == {function["name"]}
    fields = list(function["parameters"]["properties"])
    assert [*json.loads(calls[0].arguments), *json.loads(calls[1].arguments)] == fields
    assert function["parameters"]["required"] == fields[:1]
    assert json.loads(results[0].text).keys() >= {fields[1]}
    assert len(json.loads(results[0].text)) == 3


@pytest.mark.parametrize("name", COUNTERS)
def test_every_figure_by_that_counter_is_the_same(name: str) -> None:
    count = bk.counter(name)
    shown = bk.redaction.redact(TRACE, count)
    assert shown.demand(count).equals(TRACE.demand(count))
    budget = bk.presets.working_memory(200, output=40, history_floor=0)
    traces = (TRACE, shown)
    settings: dict[str, Any] = {"counter": count, "by": "request", "cache": CACHES["anthropic"]}
    for policy in ("oldest first", "octopus"):
        one, other = (bk.replay(each, budget, policy, **settings).frame() for each in traces)
        assert one.equals(other)
    cut = bk.truncation.cutter(count)
    first, second = (bk.fit(budget, each.items(2, count, budget.roles), cut=cut) for each in traces)
    assert first.grants == second.grants
    kept, kept_again = ([(d.kept, d.tokens) for d in plan.decisions] for plan in (first, second))
    assert kept == kept_again
    said, again = ([text for m in each.messages for text in m.texts] for each in traces)
    assert count.many(said) == count.many(again)  # what its accuracy is measured from


@settings(max_examples=examples(30))
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(COUNTERS))
def test_any_text_keeps_its_size_and_gives_the_same_again(texts: list[str], name: str) -> None:
    trace = bk.Trace("mine", tuple(bk.Message(user(text)) for text in texts))
    shown = bk.redaction.redact(trace, name)
    assert shown.counts(name).tolist() == trace.counts(name).tolist()
    assert shown.messages == bk.redaction.redact(trace, name).messages


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{2,9}(_[a-z]{2,9})?", fullmatch=True), WRITTEN, min_size=1, max_size=5
    )
)
def test_json_stays_json_with_as_many_fields(value: dict[str, Any]) -> None:
    said = bk.Message(user(json.dumps(value)))
    shown = bk.redaction.redact(bk.Trace("mine", (said,)), EXACT).messages[0].text
    assert len(json.loads(shown)) == len(value)
    assert EXACT(shown) == EXACT(json.dumps(value))


def test_shipped_conversations_bill_the_same_by_the_rules_of_openai() -> None:
    for name in bk.trace.shipped_traces():
        trace = bk.load_trace(name)
        shown = bk.redaction.redact(trace, EXACT)
        for framing in ("openai", "openai-reasoning", "text", "llama-index"):
            rules = FRAMINGS[framing]
            size = rules.request(shown.messages, EXACT, shown.tools)
            assert size == rules.request(trace.messages, EXACT, trace.tools)
        words, left = (
            set(regex.findall(r"\p{L}{5,}", " ".join(m.text for m in each.messages)))
            for each in (trace, shown)
        )
        assert words & left <= {"false"}


def test_times_marks_usage_and_compactions_are_kept_as_numbers() -> None:
    usage = [{"message_index": 5, "model": "gpt-4o", "context_tokens": 90, "user": "ada"}]
    compaction = {"at": 5, "first_kept": 4, "summary": "Okafor"}
    fields = {"usage": usage, "compactions": [compaction], "owner": "ada"}
    shown = bk.redaction.redact(bk.Trace("x", TRACE.messages, fields=fields), EXACT)
    assert bk.deciding.evidence(shown)[["message", "needs"]].values.tolist() == [[7, 5]]
    assert [
        message.raw.get("timestamp") for message in shown.messages if "timestamp" in message.raw
    ] == [1_700_000_000, 1_700_000_060]
    assert usage_frame(shown)["context_tokens"].tolist() == [90]
    assert shown.fields["compactions"] == [{"at": 5, "first_kept": 4}]
    assert "ada" not in to_line(shown)


def test_no_field_lets_a_name_through() -> None:
    said: list[dict[str, Any]] = [
        {"role": "Okafor", "name": "Okafor", "content": [{"type": "okafor", "text": "Hello"}]},
        user("And?", timestamp="met Okafor at 5", evidence=["Okafor said this", 0, 77]),
        assistant("So.", timestamp="2026-01-05T09:00:00", evidence="Okafor"),
        {"role": "assistant", "tool_calls": [{**call("c", nights=1), "type": "okafor"}]},
    ]
    inner: dict[str, Any] = {"type": "okafor", "$ref": "okafor.example/a/b", "name": "okafor/b"}
    inner["x-owner-okafor"] = {"x": 1}
    usage = {"model": "okafor/gpt-4o:ft-okafor", "context_tokens": 9, "input_tokens": "Okafor"}
    fields = {
        "model": "ft:gpt-4o:okafor-corp:proj:1",
        "format": "okafor",
        "usage": [{"message_index": 2, **usage}],
        "compactions": [{"at": 2, "first_kept": "Okafor", "kept": ["Okafor text", 1]}],
    }
    tools = ({"name": "f", "parameters": inner},)
    trace = bk.Trace("x", tuple(map(bk.Message, said)), tools, fields=fields)
    shown = bk.redaction.redact(trace, EXACT)
    assert "okafor" not in to_line(shown).casefold()
    assert shown.messages[1].raw["evidence"] == [0]
    expected = [None, None, "2026-01-05T09:00:00", None]
    assert [message.raw.get("timestamp") for message in shown.messages] == expected
    assert shown.fields["compactions"] == [{"at": 2, "first_kept": None, "kept": [1]}]
    assert [shown.fields["model"], *usage_frame(shown)["model"]] == ["gpt-4o", "gpt-4o"]
    assert shown.counts(EXACT).tolist() == trace.counts(EXACT).tolist()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("C:\\Users\\Okafor\\new", "X:\\Xxxxx\\Xxxxxx\\xxx"),
        ('{"path": "C:\\\\Users\\\\Okafor\\nbob"}', '{"xxxx": "X:\\\\Xxxxx\\\\Xxxxxx\\nxxx"}'),
        ('broken {"path": "\\\\nora', 'xxxxxx {"xxxx": "\\\\xxxx'),
    ],
)
def test_a_letter_behind_a_backslash_stays_only_in_json_escapes(text: str, shown: str) -> None:
    """A path may name people."""
    trace = bk.Trace("mine", (bk.Message(user(text)),))
    assert bk.redaction.redact(trace, "chars/4").messages[0].text == shown


class Asked:
    """A counter that counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, text: str) -> int:
        self.times += 1
        return EXACT(text)


def test_many_fields_take_a_step_each() -> None:
    """The names that were tried for one are not tried again for the next."""
    few, many = Asked(), Asked()
    for asked, fields in ((few, 400), (many, 800)):
        Filler(asked).text(json.dumps({f"f{i}": i for i in range(fields)}))
    assert many.times < 2.5 * few.times


def test_an_estimate_is_refused_with_what_to_use() -> None:
    refusal = r"estimate:o200k_base', which is an estimate. Redact and count with an exact counter"
    with pytest.raises(ValueError, match=refusal):
        bk.redaction.redact(TRACE, "estimate:o200k_base")


def test_the_command_prints_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(to_line(TRACE), encoding="utf-8")
    assert run(["redact", str(path), "-c", "gpt-4o"]) == 0
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert bk.load_trace(path).demand("gpt-4o").equals(TRACE.demand("gpt-4o"))


def test_letters_that_are_signs_models_and_limits_of_schemas_are_replaced_too() -> None:
    canary = "ⓐ🄰🅐🅰⠁\ue000\U000e0041🇦⒜"
    limits = {"type": "integer", "minimum": 4711, "maxLength": 815}
    parameters = {"type": "object", "properties": {"a": limits}}
    tool = {"type": "function", "function": {"name": "look", "parameters": parameters}}
    usage = [
        {"model": name, "input_tokens": 9}
        for name in ("acme-merger-bot", "gpt-4o-acme", "\x1b[31m")
    ]
    said = bk.Message(user(f"a {canary} b"))
    answer = bk.Message(assistant("ok"))
    trace = bk.Trace("mine", (said, answer), (tool,), fields={"model": "acme-bot", "usage": usage})
    line = bk.trace.to_line(bk.redaction.redact(trace, "o200k_base"))
    read = json.dumps(json.loads(line), ensure_ascii=False)
    assert not set(canary) & set(read)
    assert not [word for word in ("acme", "4711", "815", "[31m") if word in read]
