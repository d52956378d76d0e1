"""Usage fields: each row reads its example, and the types of installed SDKs have no field without a row."""

import json
import tomllib
import typing
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.files import data_path

ROWS = tomllib.loads(data_path("formats.toml").read_text("utf-8"))["usage"]
NAMES = ["context_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"]


def loaded(usage: dict[str, Any], model: str = "gpt-4o") -> bk.Trace:
    """Load a recorded call with a usage record."""
    choice = {"message": {"role": "assistant", "content": "ok"}}
    request = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return bk.load_trace({"request": request, "response": {"choices": [choice], "usage": usage}})


def unread(trace: bk.Trace) -> list[str]:
    return [note for note in trace.warnings if "not read" in note]


@pytest.mark.parametrize("row", ROWS, ids=[row["by"][:30] for row in ROWS])
def test_a_row_reads_its_example(row: dict[str, Any]) -> None:
    trace = loaded(json.loads(row["example"]))
    assert bk.trace.usage_frame(trace)[NAMES].values.tolist() == [row["right"]]
    assert not unread(trace)


@pytest.mark.parametrize(
    ("usage", "right"),
    [
        # Vercel 5 tells Anthropic's cache beside the input; an old Grok does, too.
        ({"inputTokens": 5, "outputTokens": 9, "cachedInputTokens": 40000}, [40005, 40000, 0, 9]),
        (
            {
                "prompt_tokens": 7,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 163},
            },
            [170, 163, 0, 1],
        ),
        # The total says that the thoughts stand inside.
        ({"input": 9, "output": 12, "reasoning": 7, "total": 21}, [9, 0, 0, 12]),
        # Gemini CLI tells the prompt of a tool beside the input.
        (
            {"input": 75, "output": 414, "cached": 0, "thoughts": 117, "tool": 573, "total": 1179},
            [648, 0, 0, 531],
        ),
        # What was written is told by its lives alone.
        (
            {
                "input_tokens": 350,
                "output_tokens": 2,
                "input_token_details": {"ephemeral_1h_input_tokens": 200, "cache_read": 100},
            },
            [350, 100, 200, 2],
        ),
    ],
)
def test_usage_beside_and_inside_the_prompt(usage: dict[str, Any], right: list[int]) -> None:
    assert bk.trace.usage_frame(loaded(usage))[NAMES].values.tolist() == [right]


def test_costs_follow_the_fields() -> None:
    def cost(usage: dict[str, Any], model: str) -> float:
        return float(bk.Session(loaded(usage, model)).totals()["cost"])

    thinking: dict[str, Any] = {
        "prompt_tokens": 10120,
        "completion_tokens": 1499,
        "total_tokens": 14428,
    }
    thinking |= {"prompt_tokens_details": {"cached_tokens": 128}}
    thinking |= {"completion_tokens_details": {"reasoning_tokens": 2809}}
    assert cost(thinking, "grok-4.20") == pytest.approx(0.0232856)
    compacted = next(json.loads(row["example"]) for row in ROWS if "iterations" in row["example"])
    assert cost(compacted, "claude-opus-4-8") == pytest.approx(1.1275)


def test_unknown_fields_are_named_once() -> None:
    strange = {"prompt_tokens": 9, "quantum_tokens": 5, "details": {"flux": {"tokens": 0}}}
    answer = {"role": "assistant", "parts": [{"type": "text", "text": "ok"}], "usage": strange}
    question = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    trace = bk.load_trace([question, answer, question, answer])
    assert len(bk.trace.usage_frame(trace)) == 2
    assert unread(trace) == [
        "The usage has fields that are not read: quantum_tokens; the token sums may be incomplete."
    ]
    assert len(unread(loaded({"sent_tokens": 9}))) == 1
    assert not unread(loaded({"prompt_tokens": 9, "quantum_tokens": 0}))


#: The types in which SDKs publish usage, of the modules that may be installed.
TYPES = [
    "openai.types:CompletionUsage",
    "openai.types.responses:ResponseUsage",
    "openai.types.realtime:RealtimeResponseUsage",
    "openai.types:BatchUsage",
    "anthropic.types:Usage",
    "anthropic.types.beta:BetaUsage",
    "anthropic.types.beta:BetaMessageDeltaUsage",
    "anthropic.types.beta:BetaManagedAgentsSessionUsage",
    "google.genai.types:GenerateContentResponseUsageMetadata",
    "google.genai.types:UsageMetadata",
    "mistralai.client.models:UsageInfo",
    "mistralai.client.models:ConversationUsageInfo",
    "cohere.types:Usage",
    "langchain_core.messages.ai:UsageMetadata",
    "litellm.types.utils:Usage",
    "litellm.types.llms.openai:ResponseAPIUsage",
]


def made(hint: Any) -> Any:
    """Return a value of a published type in which every field is filled."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    origin = typing.get_origin(hint)
    if origin in (list, typing.Sequence):
        return [made(kinds[0])]
    if origin is dict or hint is dict:
        return {"any": 5}
    if origin is typing.Literal:
        return str(kinds[0])
    if kinds:
        return made(kinds[0])
    if isinstance(hint, type) and getattr(hint, "__annotations__", None):
        fields = getattr(hint, "model_fields", None)
        if fields is None:
            hints = typing.get_type_hints(hint)
        else:
            hints = {field: info.annotation for field, info in fields.items()}
        return {field: made(hints[field]) for field in hints if not field.startswith("_")}
    return 5 if hint in (int, float, typing.Any) else "x"


@pytest.mark.parametrize("place", TYPES)
def test_published_types_have_no_unknown_field(place: str) -> None:
    module, _, name = place.partition(":")
    usage = made(getattr(pytest.importorskip(module), name))
    assert len(usage) > 1
    assert not unread(loaded(usage))


def test_attributes_of_opentelemetry_have_no_unknown_field() -> None:
    attributes = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes"
    )
    names = [text for text in vars(attributes).values() if str(text).startswith("gen_ai.usage.")]
    message = '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
    span = {name: 5 for name in names} | {"gen_ai.input.messages": message}
    assert not unread(bk.load_trace({"attributes": span}))
