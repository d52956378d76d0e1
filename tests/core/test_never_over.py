"""A request never exceeds the window less the answer's reserve, unless what must be sent does so by itself."""

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.requests import Framing
from tests.conftest import examples
from tests.messages import assistant, system, tool_call, tool_result, user

ONE_A_CHARACTER = Framing()
SIZES = st.integers(0, 900)


@st.composite
def budgets(draw: st.DrawFn) -> bk.Budget:
    """Any preset in any window, at its defaults or with a smaller answer."""
    size = draw(st.integers(500, 6_000))
    name = draw(st.sampled_from([*bk.presets.PRESETS, "small answer"]))
    if name != "small answer":
        return bk.presets.PRESETS[name](size)
    kinds: tuple[Literal["actual", "fixed", "larger"], ...] = ("actual", "fixed", "larger")
    size = max(size, 600)  # below it the reserves of 500 and the answer fill the window
    return bk.presets.working_memory(size, output=size // 8, current=draw(st.sampled_from(kinds)))


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns with passages, tool calls and long answers, after a system message or without one."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append(system("s" * draw(SIZES)))
    for turn in range(draw(st.integers(1, 9))):
        question: dict[str, Any] = user("q" * draw(SIZES))
        if draw(st.booleans()):
            question["contexts"] = ["p" * draw(SIZES) for _ in range(draw(st.integers(1, 3)))]
        messages.append(question)
        if draw(st.booleans()):
            call = tool_call(str(turn), "look")
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append(tool_result(str(turn), "r" * draw(st.integers(0, 2_000))))
        messages.append(assistant("a" * draw(SIZES)))
    return messages


@given(budgets(), conversations())
@settings(max_examples=examples(200))
def test_a_request_that_exceeds_the_window_holds_only_what_must_be_sent_and_says_so(
    budget: bk.Budget, messages: list[dict[str, Any]]
) -> None:
    talk = bk.Conversation(budget, counter=len, framing=ONE_A_CHARACTER, overrun="tell")
    most = budget.window - budget.sizes.get("output", 0) - budget.sizes.get("safety", 0)
    required = {line.section for line in budget.allocations if line.required}
    for message in messages:
        talk.add(message)
        if message["role"] in ("system", "assistant"):
            continue
        request = talk.request()
        assert ONE_A_CHARACTER.request(request.messages, len) <= request.tokens
        if not request.over:
            assert request.tokens <= most or not request.messages
            continue

        assert request.warnings
        speakers = [message["role"] for message in request.messages]
        last = len(speakers) - 1 - speakers[::-1].index("user")
        assert set(speakers[:last]) <= {"system"}, "no earlier turn is left"
        if "knowledge" not in required:
            assert not any(
                message["content"].startswith("p") for message in request.messages[:last]
            )


@st.composite
def thinking_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns as Anthropic has them, with calls that long thinking led to."""
    messages: list[dict[str, Any]] = []
    for turn in range(draw(st.integers(1, 6))):
        messages.append(user("q" * draw(st.integers(1, 300))))
        for step in range(draw(st.integers(0, 2))):
            id = f"{turn} {step}"
            thinks = {
                "type": "thinking",
                "thinking": "t" * draw(st.integers(1, 3_000)),
                "signature": id,
            }
            call = {"type": "tool_use", "id": id, "name": "look", "input": {}}
            result = {
                "type": "tool_result",
                "tool_use_id": id,
                "content": "r" * draw(st.integers(1, 900)),
            }
            messages.append(assistant([thinks, call]))
            messages.append(user([result]))
        messages.append(assistant("a" * draw(st.integers(1, 300))))
    return messages


def characters_sent(messages: list[dict[str, Any]]) -> int:
    """Count what a request of Anthropic's says, thinks, asks of tools and has from them, read by no rule of the kit."""
    size = 0
    for message in messages:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            size += sum(len(block.get(name, "")) for name in ("text", "thinking", "name"))
            size += len("{}") if "input" in block else 0
            inner = block.get("content", "")
            size += len(
                inner if isinstance(inner, str) else "".join(part["text"] for part in inner)
            )
    return size


@given(budgets(), thinking_conversations())
@settings(max_examples=examples(60))
def test_thinking_counts_in_a_request(budget: bk.Budget, messages: list[dict[str, Any]]) -> None:
    """Thinking before calls went out as it came, and no number held it."""
    talk = bk.Conversation(
        budget, counter=len, framing=ONE_A_CHARACTER, overrun="tell", form="anthropic"
    )
    most = budget.window - budget.sizes.get("output", 0) - budget.sizes.get("safety", 0)
    for message in messages:
        talk.add(message)
        if message["role"] == "assistant":
            continue
        request = talk.request()
        assert characters_sent(request.messages) <= request.tokens
        assert request.over or request.tokens <= most or not request.messages


def turns(
    talk: bk.Conversation, count: int, question: str, answer: str
) -> list[bk.conversation.Request]:
    requests = []
    for turn in range(count):
        talk.add(user(f"{turn} {question}"))
        requests.append(talk.request())
        talk.add(assistant(f"{turn} {answer}"))
    return requests


def test_the_defaults_of_a_small_working_memory_leave_room_for_the_answer() -> None:
    """In 0.2.0 the floor of the history was the whole window: 4,299 tokens were sent where 3,500 fit."""
    budget = bk.presets.working_memory(4_000, output=500)
    requests = turns(bk.Conversation(budget), 30, "word " * 170, "answer " * 170)
    assert max(request.tokens for request in requests) <= 3_500
    assert not any(request.over for request in requests)


def test_an_answer_that_no_longer_fits_beside_the_question_goes() -> None:
    """The floor of one message, which nobody asked for, kept it: the request was refused, though the question fits."""
    requests = turns(bk.Conversation(bk.presets.chat(4_000)), 2, "word " * 3_000, "answer " * 3_000)
    assert [len(request.messages) for request in requests] == [1, 1]
    with pytest.raises(ValueError, match="exceeds the usable window"):
        turns(bk.Conversation(bk.presets.chat(2_000)), 1, "word " * 3_000, "")


def test_a_floor_that_was_asked_for_stands_and_the_overrun_is_said() -> None:
    policy = bk.policies.OldestFirst(floor=bk.policies.Floor(2))
    talk = bk.Conversation(bk.presets.working_memory(1_000, output=100), policy, overrun="tell")
    last = turns(talk, 3, "word " * 300, "answer " * 300)[-1]
    assert [message["role"] for message in last.messages] == ["user", "assistant", "user"]
    assert last.over > 0
    assert last.warnings


@pytest.mark.parametrize("section_cap", [50, 500])
def test_history_gives_way_to_a_text_that_is_sent_whole_above_its_cap(section_cap: int) -> None:
    """A replay says the same; it held the history against what the plan grants the system message."""
    lines = [
        bk.Allocation("system", cap=section_cap),
        bk.Allocation("history"),
        bk.Allocation("current"),
    ]
    roles = {"system": "system", "user": "history", "assistant": "history", "current": "current"}
    budget = bk.Budget(1_000, (), lines, roles=roles)
    messages = [system("s" * 600)]
    messages += [
        {"role": role, "content": role[0] * 100} for _ in range(6) for role in ("user", "assistant")
    ]
    talk = bk.Conversation(budget, counter=len, framing=ONE_A_CHARACTER, start_on="any")
    for message in messages[:-1]:
        talk.add(message)
        if message["role"] == "user":
            request = talk.request()
    outcome = bk.replay(messages, budget, "oldest first", counter=len, framing=ONE_A_CHARACTER)
    assert request.tokens == 1_000
    assert len(request.messages) == len(outcome.present(6))


def test_the_question_of_this_turn_is_never_pruned_though_it_counts_with_the_history() -> None:
    """Beside its own long tool results it left, and the model was asked nothing."""
    call = tool_call("a", "look")
    talk = bk.Conversation(bk.presets.memory_engine(1_000), overrun="tell")
    talk.add(user("Where is it?"), {"role": "assistant", "tool_calls": [call]})
    talk.add(tool_result("a", "a line of a log\n" * 500))
    assert next(message["role"] for message in talk.request().messages) == "user"
