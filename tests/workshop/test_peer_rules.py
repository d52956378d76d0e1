"""Rules beside the packages they are modelled on: the same messages go in, and the same messages stay.

Skipped where a package is not installed.
"""

import asyncio
import re
from dataclasses import replace
from importlib.util import find_spec
from random import Random
from typing import Any, NamedTuple

import pytest

from budgetkit.budget.amounts import Share
from budgetkit.pruning.dropping import Visit, retain
from budgetkit.pruning.history import Slots
from budgetkit.pruning.policies import (
    Chain,
    ClearResults,
    Compact,
    DropToolResults,
    Policy,
    PruningContext,
    Step,
    Trigger,
    TriggerTarget,
    system,
)
from tests.messages import assistant, tool_call, tool_result, user


def with_package(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")


with_langchain = with_package("langchain")
with_agent_framework = with_package("agent_framework")
with_haystack = (
    with_package("haystack.hooks.compaction") if find_spec("haystack") else with_package("haystack")
)
with_prompt_poet = with_package("prompt_poet")
SUMMARY = "short"


class Sent(NamedTuple):
    """One request after a rule: the messages in it, those of them that were cleared, and what all hold together."""

    there: list[int]
    cleared: list[int]
    size: int


def conversation(seed: int, turns: int = 60) -> list[dict[str, Any]]:
    """Questions, answers, and calls with one to three results; every length is a number of characters."""
    generator = Random(seed)
    messages: list[dict[str, Any]] = []
    calls = 0
    for _ in range(turns):
        messages.append(user("u" * generator.randint(5, 60)))
        for _ in range(generator.randint(0, 3)):
            names = [f"c{calls + number}" for number in range(generator.randint(1, 3))]
            calls += len(names)
            asked = [tool_call(name, "f") for name in names]
            messages.append(assistant("a" * generator.randint(5, 20), tool_calls=asked))
            for name in names:
                answer = "r" * generator.randint(20, 300)
                messages.append(tool_result(name, answer))
        messages.append(assistant("a" * generator.randint(5, 80)))
    return messages


def requests(messages: list[dict[str, Any]]) -> list[int]:
    """Return where each request ends: before each answer of the model."""
    return [place for place, message in enumerate(messages) if message["role"] == "assistant"]


def replayed(
    policy: Policy, messages: list[dict[str, Any]], room: PruningContext | None = None
) -> list[Sent]:
    """Send each request through a rule here."""
    room = room or PruningContext(0, limit=10**9, window=10**9, usable=10**9)
    ends = requests(messages)
    roles = [message["role"] for message in messages]
    turns = [roles[: place + 1].count("user") for place in range(len(messages))]
    units: list[int] = []
    for place, message in enumerate(messages):
        after = messages[place - 1]["role"] if place else ""
        goes_along = message["role"] == "tool" and after in ("assistant", "tool")
        units.append(units[-1] if goes_along else place)
    slots = Slots(
        [len(message["content"]) for message in messages],
        units,
        turns,
        [role == "tool" for role in roles],
        [0] * len(messages),
        roles,
    )
    visits = []
    for start, end in zip([0, *ends], ends, strict=False):
        visits.append(Visit(room._replace(turn=turns[end - 1]), range(start, end), end))
    kept = retain(slots, visits, policy)
    outcomes = []
    for number, end in enumerate(ends):
        there = [slot for slot in range(end) if not 0 <= kept.gone[slot] <= number]
        cleared = [slot for slot in there if 0 <= kept.shrunk[slot] <= number]
        outcomes.append(Sent(there, cleared, kept.tokens[number]))
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
            written.append(
                ToolMessage(content, id=name, tool_call_id=message["tool_call_id"], name="f")
            )
        else:
            calls = [
                {"id": call["id"], "name": "f", "args": {}}
                for call in message.get("tool_calls", ())
            ]
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
    assert [sent.there for sent in replayed(rule, messages)] == theirs


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
    rule = ClearResults(
        (Trigger("tokens", 5_000, above=True),), keep_uses=3, placeholder=len(placeholder)
    )
    assert [sent.cleared for sent in replayed(rule, messages)] == theirs
    assert theirs[-1]


#: Agent Framework's counter is told to count these: its labels and ids are no part of the rule.
MARK = "0"
#: So many of them are left where it collapses one long result of a tool named f.
COLLAPSED = 4_062


def with_long_results(seed: int) -> list[dict[str, Any]]:
    """Calls without a text, every text in marks; a result that comes alone may be longer than a collapsed one."""
    generator = Random(seed)
    messages = conversation(seed)
    for place, message in enumerate(messages):
        length = len(message["content"])
        if message.get("tool_calls"):
            length = 0
        alone = message["role"] == "tool" and len(messages[place - 1].get("tool_calls", ())) == 1
        if alone and generator.random() < 0.5:
            length = generator.randint(5_000, 9_000)
        message["content"] = MARK * length
    return messages


def as_agent_framework(messages: list[dict[str, Any]], first: int) -> list[Any]:
    """Write messages as Agent Framework's, each with its place as its id."""
    from agent_framework import Content, Message

    written: list[Any] = []
    for place, message in enumerate(messages, first):
        contents: list[Any] = [message["content"]]
        if message["role"] == "tool":
            contents = [
                Content.from_function_result(message["tool_call_id"], result=message["content"])
            ]
        elif message.get("tool_calls"):
            contents = [
                Content.from_function_call(call["id"], "f", arguments="{}")
                for call in message["tool_calls"]
            ]
        written.append(Message(message["role"], contents, message_id=f"m{place}"))
    return written


@with_agent_framework
@pytest.mark.parametrize("seed", range(20))
def test_agent_framework_collapses_and_drops_the_same_messages(seed: int) -> None:
    import agent_framework

    class Marks:
        def count_tokens(self, text: str) -> int:
            return sum(len(run) for run in re.findall(f"(?<![a-z0-9_-]){MARK}+", text))

    window = 60_000
    strategy = agent_framework.ContextWindowCompactionStrategy(
        max_context_window_tokens=window, max_output_tokens=0, tokenizer=Marks()
    )
    messages = with_long_results(seed)
    written = as_agent_framework(messages, 0)
    state: list[Any] = []
    theirs: list[tuple[list[int], int]] = []
    before = collapsed = 0
    for end in requests(messages):
        state += written[before:end]
        before = end
        asyncio.run(strategy(state))
        there = []
        for message in agent_framework.included_messages(state):
            # A collapsed call names the messages that it stands for.
            note = message.additional_properties[agent_framework.GROUP_ANNOTATION_KEY]
            names = note.get(agent_framework.SUMMARY_OF_MESSAGE_IDS_KEY) or [message.message_id]
            collapsed += len(names) > 1
            there += [int(name.removeprefix("m")) for name in names]
        theirs.append((sorted(there), agent_framework.included_token_count(state)))
    assert collapsed, "it collapsed at least one call"

    results, drop = system("agent-framework").policies
    assert isinstance(results, DropToolResults)
    rule = Chain([replace(results, placeholder=COLLAPSED), drop])
    room = PruningContext(0, limit=10**9, window=window, usable=window)
    assert [(sent.there, sent.size) for sent in replayed(rule, messages, room)] == theirs


@with_haystack
@pytest.mark.filterwarnings("ignore")  # its hook calls itself experimental
@pytest.mark.parametrize("least_results", [1, 40])
@pytest.mark.parametrize("seed", range(20))
def test_haystacks_hook_keeps_the_same_turns_and_steps(seed: int, least_results: int) -> None:
    """Short turns go whole; of a turn with 40 steps or more, alone too long for its window, steps go."""
    from haystack.components.agents.state import State
    from haystack.dataclasses import ChatMessage, ToolCall
    from haystack.hooks.compaction import CompactionHook, SlidingWindowCompactor

    class Characters:
        def count(self, messages: list[Any], tools: Any = None) -> int:
            return sum(length[message.meta["place"]] for message in messages)

    messages = conversation(seed, turns=60)
    if least_results > 1:
        # Most questions go, so that what was answered to them becomes steps of the turns that are left.
        messages = [
            message
            for place, message in enumerate(messages)
            if message["role"] != "user" or place % least_results == 0
        ]
    length = [len(message["content"]) for message in messages]
    written = []
    for place, message in enumerate(messages):
        meta = {"place": place}
        if message["role"] == "user":
            written.append(ChatMessage.from_user(message["content"], meta=meta))
        elif message["role"] == "tool":
            origin = ToolCall("f", {}, id=message["tool_call_id"])
            written.append(ChatMessage.from_tool(message["content"], origin=origin, meta=meta))
        else:
            calls = [ToolCall("f", {}, id=call["id"]) for call in message.get("tool_calls", ())]
            written.append(
                ChatMessage.from_assistant(message["content"], tool_calls=calls, meta=meta)
            )

    window = 5_003
    hook = CompactionHook(
        SlidingWindowCompactor(omission_note=None),
        context_window=window,
        token_counter=Characters(),
    )
    state = State({})
    state.data["messages"] = []
    theirs: list[list[int]] = []
    before = 0
    for end in requests(messages):
        state.data["messages"] = [*state.data["messages"], *written[before:end]]
        before = end
        hook.run(state)
        theirs.append([message.meta["place"] for message in state.data["messages"]])
    assert theirs[-1] != list(range(requests(messages)[-1])), "it removed messages"

    (rule,) = system("haystack").policies
    assert rule == TriggerTarget(
        Share(hook.compact_at), Share(hook.compact_to), of="window", whole_turns=True
    )
    room = PruningContext(0, limit=10**9, window=window, usable=10**9)
    assert [sent.there for sent in replayed(rule, messages, room)] == theirs


def poet(messages: list[dict[str, Any]], places: list[int], limit: int, step: int) -> list[int]:
    """Return which of some messages prompt-poet leaves, each a part of one priority; a character is a token."""
    from prompt_poet import Prompt

    template = "\n".join(
        f"- name: m{place}\n  role: user\n  truncation_priority: 1\n  content: {messages[place]['content']}"
        for place in places
    )
    prompt = Prompt(
        {}, raw_template=template, encode_func=list, token_limit=limit, truncation_step=step
    )
    prompt.tokenize()
    prompt.truncate()
    return [int(part.name.removeprefix("m")) for part in prompt.parts]


@with_prompt_poet
@pytest.mark.parametrize("seed", range(10))
def test_prompt_poet_drops_the_same_blocks(seed: int) -> None:
    """An application that keeps what is left gives it back; parts have no calls, so these are sent as texts."""
    limit = 4_000
    messages = [
        message
        for message in conversation(seed)
        if message["role"] != "tool" and not message.get("tool_calls")
    ]
    theirs: list[list[int]] = []
    left: list[int] = []
    before = 0
    for end in requests(messages):
        left = poet(messages, [*left, *range(before, end)], limit, step=500)
        before = end
        theirs.append(left)
    assert 0 not in theirs[-1], "it cut at least once"

    (rule,) = system("prompt-poet").policies
    assert isinstance(rule, Step)
    room = PruningContext(0, limit=limit, window=10**9, usable=10**9)
    assert [sent.there for sent in replayed(replace(rule, step=500), messages, room)] == theirs
