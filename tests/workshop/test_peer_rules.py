"""Rules beside the packages they are modelled on: the same messages go in, and the same messages stay.

Skipped where a package is not installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from random import Random
from typing import Any

import pytest

from budgetkit.pruning.dropping import Visit, retain
from budgetkit.pruning.history import Slots
from budgetkit.pruning.policies import ClearResults, Compact, Policy, PruningContext, Trigger, system

with_langchain = pytest.mark.skipif(find_spec("langchain") is None, reason="langchain is not installed")
SUMMARY = "short"


def conversation(seed: int, turns: int = 60) -> list[dict[str, Any]]:
    """Questions, answers, and calls with one to three results; every length is a number of characters."""
    generator = Random(seed)
    messages: list[dict[str, Any]] = []
    calls = 0
    for _ in range(turns):
        messages.append({"role": "user", "content": "u" * generator.randint(5, 60)})
        for _ in range(generator.randint(0, 3)):
            names = [f"c{calls + number}" for number in range(generator.randint(1, 3))]
            calls += len(names)
            asked = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
            messages.append({"role": "assistant", "content": "a" * generator.randint(5, 20), "tool_calls": asked})
            for name in names:
                answer = "r" * generator.randint(20, 300)
                messages.append({"role": "tool", "tool_call_id": name, "content": answer})
        messages.append({"role": "assistant", "content": "a" * generator.randint(5, 80)})
    return messages


def requests(messages: list[dict[str, Any]]) -> list[int]:
    """Return where each request ends: before each answer of the model."""
    return [place for place, message in enumerate(messages) if message["role"] == "assistant"]


def replayed(policy: Policy, messages: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
    """Send each request through a rule here; return for each the messages that stay, and which of them are cleared."""
    ends = requests(messages)
    units: list[int] = []
    for place, message in enumerate(messages):
        unit = (
            place
            if message["role"] != "tool" or messages[place - 1]["role"] not in ("assistant", "tool")
            else units[-1]
        )
        units.append(unit)
    slots = Slots(
        [len(message["content"]) for message in messages],
        units,
        [1] * len(messages),
        [message["role"] == "tool" for message in messages],
        [0] * len(messages),
    )
    visits = []
    for start, end in zip([0, *ends], ends, strict=False):
        visits.append(Visit(PruningContext(0, limit=10**9, window=10**9, usable=10**9), range(start, end), end))
    kept = retain(slots, visits, policy)
    outcomes = []
    for number, end in enumerate(ends):
        there = [slot for slot in range(end) if not 0 <= kept.gone[slot] <= number]
        outcomes.append((there, [slot for slot in there if 0 <= kept.shrunk[slot] <= number]))
    return outcomes


def as_langchain(messages: list[dict[str, Any]]) -> list[Any]:
    """Write messages as LangChain's, each with its place as its id."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    written: list[Any] = []
    for place, message in enumerate(messages):
        content, name = message["content"], str(place)
        if message["role"] == "user":
            written.append(HumanMessage(content, id=name))
        elif message["role"] == "tool":
            written.append(ToolMessage(content, id=name, tool_call_id=message["tool_call_id"], name="f"))
        else:
            calls = [{"id": call["id"], "name": "f", "args": {}} for call in message.get("tool_calls", ())]
            written.append(AIMessage(content, id=name, tool_calls=calls))
    return written


def characters(messages: Any) -> int:
    return sum(len(message.content) for message in messages)


@with_langchain
@pytest.mark.parametrize("seed", range(20))
def test_langchains_summariser_keeps_the_same_messages(seed: int) -> None:
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    messages = conversation(seed)
    middleware: Any = SummarizationMiddleware(
        model=FakeListChatModel(responses=[SUMMARY]),
        trigger=("tokens", 5_000),
        keep=("messages", 20),
        token_counter=characters,
    )
    written = as_langchain(messages)
    state: list[Any] = []
    theirs: list[list[int]] = []
    length = 0
    before = 0
    for end in requests(messages):
        state = [*state, *written[before:end]]
        before = end
        update = middleware.before_model({"messages": state}, None)
        if update is not None:
            state = [message for message in update["messages"] if message.type != "remove"]
            length = len(state[0].content)
        theirs.append([int(message.id) for message in state if (message.id or "").isdecimal()])
    assert length, "it summarised at least once"

    row = system("langchain").policies[0]
    assert isinstance(row, Compact) and row.keep_messages == 20
    rule = Compact((Trigger("tokens", 5_000),), keep_messages=row.keep_messages, size=length)
    ours = [there for there, _ in replayed(rule, messages)]
    assert ours == theirs


@with_langchain
@pytest.mark.parametrize("seed", range(10))
def test_langchains_edit_clears_the_same_results_as_anthropics_rule(seed: int) -> None:
    from langchain.agents.middleware import ClearToolUsesEdit

    messages = conversation(seed)
    placeholder = "[cleared]"
    edit = ClearToolUsesEdit(trigger=5_000, keep=3, placeholder=placeholder)
    state: list[Any] = []
    theirs: list[list[int]] = []
    before = 0
    written = as_langchain(messages)
    for end in requests(messages):
        state = [*state, *written[before:end]]
        before = end
        edit.apply(state, count_tokens=characters)
        theirs.append([int(message.id) for message in state if message.content == placeholder])

    row = system("anthropic-context-editing").policies[0]
    assert isinstance(row, ClearResults) and row.keep_uses == edit.keep
    assert row.triggers[0].value == ClearToolUsesEdit().trigger
    rule = ClearResults((Trigger("tokens", 5_000, above=True),), keep_uses=3, placeholder=len(placeholder))
    assert [cleared for _, cleared in replayed(rule, messages)] == theirs
    assert theirs[-1]
