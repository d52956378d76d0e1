"""Usage fields: each row reads its example, and unknown fields are named."""

import json
import tomllib
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
    return [note for note in trace.warnings if "Not read" in note]


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
        "Not read: usage fields quantum_tokens. The token sums may be incomplete."
    ]
    assert len(unread(loaded({"sent_tokens": 9}))) == 1
    assert not unread(loaded({"prompt_tokens": 9, "quantum_tokens": 0}))
