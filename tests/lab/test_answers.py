"""How long answers are by what was counted of them, and how far back later messages refer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import budgetkit as bk
from budgetkit.lab.deciding.space import answer_reserve, recorded_lengths

COUNT = len  # a token a character


def spoken(
    *messages: Mapping[str, Any], usage: Sequence[Mapping[str, Any]] | None = None
) -> bk.Trace:
    fields: dict[str, Any] = {"messages": list(messages)} | (
        {} if usage is None else {"usage": [*usage]}
    )
    return bk.Trace("toy", tuple(bk.Message(dict(message)) for message in messages), fields=fields)


def test_what_a_tool_is_called_with_is_part_of_the_answer() -> None:
    """An answer that only calls counted 0 tokens, and a reserve for calls was one of nothing."""
    call = {"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}
    trace = spoken(
        {"role": "user", "content": "Look."}, {"role": "assistant", "tool_calls": [call]}
    )
    (lengths,) = recorded_lengths([trace], COUNT, "call")
    assert lengths.tolist() == [len("look") + len('{"at": 1}')]
    assert recorded_lengths([trace], COUNT, "text") == []


def test_what_the_provider_counted_of_an_answer_is_its_length() -> None:
    """It holds the thinking too, which nobody sees in the text."""
    usage = [{"message_index": 1, "context_tokens": 50, "input_tokens": 50, "output_tokens": 900}]
    messages = ({"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."})
    (billed,), (counted,) = (
        recorded_lengths([spoken(*messages, usage=of)], COUNT) for of in (usage, None)
    )
    assert (billed.tolist(), counted.tolist()) == ([900], [3])


def test_answers_of_each_kind_have_a_reserve_of_their_own() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "x" * 99}}
    said = {"role": "assistant", "content": "y" * 10}
    traces = [
        spoken(
            {"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}, said
        )
    ] * 19
    assert [
        answer_reserve(traces, COUNT, kind=kind).tokens for kind in ("call", "text", "all")
    ] == [100, 10, 100]


def answering(lengths: Sequence[int]) -> bk.Trace:
    question = {"role": "user", "content": "Go on."}
    return spoken(
        *(m for size in lengths for m in (question, {"role": "assistant", "content": "y" * size}))
    )


@pytest.mark.parametrize("conversations", [19, 40])
def test_a_reserve_of_answers_holds_for_the_next_conversation(conversations: int) -> None:
    """Answers of one conversation are alike: a quantile of all answers was exceeded in 9 to 11 of 100."""
    random = np.random.default_rng(conversations)
    longer = []
    for _ in range(40):
        middles = random.lognormal(5, 0.7, conversations + 10)
        answers = [
            np.maximum(1, random.lognormal(np.log(middle), 0.2, 8)).astype(int)
            for middle in middles
        ]
        reserve = answer_reserve(
            [answering(lengths.tolist()) for lengths in answers[:conversations]], COUNT
        )
        assert reserve.is_promise and reserve.tokens <= reserve.longest
        longer += [float((lengths > reserve.tokens).mean()) for lengths in answers[conversations:]]
    assert np.mean(longer) <= 0.06


def test_of_few_conversations_the_longest_answer_is_reserved_and_nothing_promised() -> None:
    reserve = answer_reserve([answering([10, 90])] * 8, COUNT)
    assert (reserve.tokens, reserve.is_promise) == (90, False)
    assert reserve.sentence.endswith(
        "a promise at 5 % risk needs 19 conversations, but there are 8."
    )
    # Printed it showed risk=0.05 and not that nothing is promised.
    assert str(reserve) == reserve.sentence


def referring(backs: list[int]) -> bk.Trace:
    """Each turn asks for what was said first so many turns before."""
    turns = [f"word{number}" for number in range(60)]
    for number, back in enumerate(backs):
        turns[40 + number] += f" word{40 + number - back}"
    pairs = [
        ({"role": "user", "content": text}, {"role": "assistant", "content": "Yes."})
        for text in turns
    ]
    return spoken(*(message for pair in pairs for message in pair))
