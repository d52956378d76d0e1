"""A request goes out in the form in which its messages came, and its provider accepts it, however much was pruned.

On 0.2.0 whatever came in as Anthropic's, Gemini's, Converse's or OpenAI Responses' messages went out in OpenAI's chat
format, without its thinking and signatures, and a result that was added by itself lost its call.
"""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import policies
from budgetkit.conversation.reading import read_values
from budgetkit.pruning.policies import Policy
from budgetkit.requests import Framing
from budgetkit.requests.reading.writing import write_messages
from tests.conftest import examples
from tests.messages import assistant, calling, tool_call, tool_result, user
from tests.provider_rules import RULES

Raw = dict[str, Any]
FORMS = sorted(RULES)


@dataclass(frozen=True)
class Step:
    """What the assistant does at once: it thinks, says something, calls tools, and has their results."""

    thought: str = ""
    text: str = ""
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A question and the steps to its answer."""

    question: str
    steps: tuple[Step, ...] = field(default=(Step(text="Done."),))


def as_anthropic(turns: list[Turn]) -> list[Raw]:
    messages: list[Raw] = []
    for n, turn in enumerate(turns):
        messages.append(user(turn.question))
        for m, step in enumerate(turn.steps):
            blocks: list[Raw] = []
            if step.thought:
                blocks.append(
                    {"type": "thinking", "thinking": step.thought, "signature": f"signed {n} {m}"}
                )
            if step.text:
                blocks.append({"type": "text", "text": step.text})
            ids = [f"toolu_{n}_{m}_{k}" for k in range(len(step.results))]
            blocks += [
                {"type": "tool_use", "id": id, "name": "search", "input": {"query": id}}
                for id in ids
            ]
            messages.append(assistant(blocks))
            results: list[Raw] = []
            for id, text in zip(ids, step.results, strict=True):
                content = [{"type": "text", "text": text}]
                results.append({"type": "tool_result", "tool_use_id": id, "content": content})
            if results:
                results[-1]["cache_control"] = {"type": "ephemeral"}
                messages.append(user(results))
    return messages


def as_converse(turns: list[Turn]) -> list[Raw]:
    messages: list[Raw] = []
    for n, turn in enumerate(turns):
        messages.append(user([{"text": turn.question}]))
        for m, step in enumerate(turn.steps):
            blocks: list[Raw] = []
            if step.thought:
                thought = {"text": step.thought, "signature": f"signed {n} {m}"}
                blocks.append({"reasoningContent": {"reasoningText": thought}})
            if step.text:
                blocks.append({"text": step.text})
            ids = [f"use_{n}_{m}_{k}" for k in range(len(step.results))]
            blocks += [
                {"toolUse": {"toolUseId": id, "name": "search", "input": {"query": id}}}
                for id in ids
            ]
            messages.append(assistant(blocks))
            results = [
                {"toolResult": {"toolUseId": id, "content": [{"text": text}], "status": "success"}}
                for id, text in zip(ids, step.results, strict=True)
            ]
            if results:
                messages.append(user(results))
    return messages


def as_gemini(turns: list[Turn]) -> list[Raw]:
    contents: list[Raw] = []
    for n, turn in enumerate(turns):
        contents.append({"role": "user", "parts": [{"text": turn.question}]})
        for m, step in enumerate(turn.steps):
            parts: list[Raw] = []
            if step.thought:
                parts.append({"text": step.thought, "thought": True})
            if step.text:
                parts.append({"text": step.text})
            parts += [
                {"functionCall": {"name": f"search_{k}", "args": {"n": n}}}
                for k in range(len(step.results))
            ]
            parts[-1]["thoughtSignature"] = f"signed {n} {m}"
            contents.append({"role": "model", "parts": parts})
            results: list[Raw] = [
                {"functionResponse": {"name": f"search_{k}", "response": {"result": text}}}
                for k, text in enumerate(step.results)
            ]
            if results:
                contents.append({"role": "user", "parts": results})
    return contents


def as_responses(turns: list[Turn]) -> list[Raw]:
    items: list[Raw] = []
    for n, turn in enumerate(turns):
        items.append(user(turn.question))
        for m, step in enumerate(turn.steps):
            if step.thought:
                about = {"type": "reasoning", "id": f"rs_{n}_{m}", "summary": []}
                items.append({**about, "encrypted_content": "sealed"})
            if step.text:
                text = {"type": "output_text", "text": step.text, "annotations": []}
                items.append({"type": "message", "id": f"msg_{n}_{m}", **assistant([text])})
            ids = [f"call_{n}_{m}_{k}" for k in range(len(step.results))]
            items += [
                {"type": "function_call", "call_id": id, "name": "search", "arguments": "{}"}
                for id in ids
            ]
            items += [
                {"type": "function_call_output", "call_id": id, "output": text}
                for id, text in zip(ids, step.results, strict=True)
            ]
    return items


def as_chat(turns: list[Turn]) -> list[Raw]:
    messages: list[Raw] = []
    for n, turn in enumerate(turns):
        messages.append(user(turn.question))
        for m, step in enumerate(turn.steps):
            ids = [f"call_{n}_{m}_{k}" for k in range(len(step.results))]
            calls = [tool_call(id, "search") for id in ids]
            messages.append(assistant(step.text) | ({"tool_calls": calls} if calls else {}))
            messages += [tool_result(id, text) for id, text in zip(ids, step.results, strict=True)]
    return messages


WRITERS = {
    "anthropic": as_anthropic,
    "chat": as_chat,
    "converse": as_converse,
    "gemini": as_gemini,
    "responses": as_responses,
}
LONG = Step(thought="Look it up.", results=("Lisbon " * 300, "Porto"))
TALK = [
    Turn("What is the capital of Portugal?", (LONG, Step(text="Lisbon."))),
    Turn(
        "And of Spain?",
        (Step(thought="Search.", text="I look.", results=("Madrid",)), Step(text="Madrid.")),
    ),
    Turn("Thank you."),
    Turn("And of France?", ()),
]
#: Without the question that waits for its answer: what an application adds before it.
TEXT = st.text("ab ", min_size=1, max_size=40).map(lambda text: f"x{text}x")
THOUGHTS = st.sampled_from(["", "Hm."])
STEPS = st.builds(Step, THOUGHTS, TEXT, st.lists(TEXT, min_size=1, max_size=3).map(tuple))
ANSWERS = st.tuples(STEPS, st.builds(Step, THOUGHTS, TEXT)) | st.just((Step(text="y"),))
TALKS = st.lists(st.builds(Turn, TEXT, ANSWERS), max_size=5).map(
    lambda turns: [*turns, Turn("And now?", ())]
)
POLICIES = st.sampled_from(
    [
        policies.OldestFirst(),
        policies.OldestFirst(unit="turn"),
        policies.SlidingWindow(2),
        policies.TriggerTarget(),
        policies.DropToolResults(),
        policies.Summarise(text=lambda messages: "What was said before."),
    ]
)


def window(tokens: int) -> bk.Budget:
    sections = [bk.Allocation("history"), bk.Allocation("current")]
    return bk.Budget(tokens, (), sections, undeclared="pool")


def conversation(tokens: int, policy: Policy | None = None, **more: Any) -> bk.Conversation:
    return bk.Conversation(
        window(tokens), policy, counter=len, start_on="user", overrun="tell", **more
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_recorded_like_conversations_are_valid_themselves(form: str) -> None:
    assert list(RULES[form](WRITERS[form](TALK))) == []


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_shortened_goes_out_as_it_came(form: str) -> None:
    said = WRITERS[form](TALK)
    by_one = conversation(100_000)
    for message in said:
        by_one.add(message)
    at_once = conversation(100_000)
    at_once.add(said)
    assert by_one.request().messages == at_once.request().messages == said
    assert bk.trim(said, 100_000, len) == said
    built = bk.build(
        bk.presets.working_memory(100_000, output=500), len, history=said[:-1], current=said[-1]
    )
    assert built.messages == said


@pytest.mark.parametrize("form", FORMS)
def test_a_saved_conversation_goes_out_in_its_form_and_pairs_what_comes_after(form: str) -> None:
    said = WRITERS[form](TALK)
    for cut in range(1, len(said)):
        talk = conversation(100_000)
        talk.add(*said[:cut])
        talk.request()
        again = bk.Conversation.from_json(talk.to_json(), counter=len)
        again.add(*said[cut:])
        assert again.request().messages == said


@pytest.mark.parametrize("form", FORMS)
def test_a_long_result_is_cut_inside_its_block(form: str) -> None:
    said = WRITERS[form]([Turn("What is the capital of Portugal?", (LONG,))])
    talk = conversation(1_000)
    talk.add(said)
    cut = talk.request().messages
    whole = json.dumps(said)
    assert list(RULES[form](cut)) == []
    assert "Lisbon Lisbon" in json.dumps(cut)
    assert len(json.dumps(cut)) < len(whole)


@pytest.mark.parametrize("form", FORMS)
@given(turns=TALKS, tokens=st.integers(1, 900), policy=POLICIES, one_by_one=st.booleans())
@settings(max_examples=examples(25))
def test_a_request_is_valid_at_any_budget(
    form: str, turns: list[Turn], tokens: int, policy: Policy, one_by_one: bool
) -> None:
    said = WRITERS[form](turns)
    assert list(RULES[form](said)) == []
    talk = conversation(tokens, policy)
    for message in said:
        talk.add(message)
        # A request is made where it is the model's turn: after a question, and after all results.
        if (
            one_by_one
            and not list(RULES[form](said[: said.index(message) + 1]))
            and _waits(message)
        ):
            assert list(RULES[form](talk.request().messages)) == []
    assert list(RULES[form](talk.request().messages)) == []


def _waits(message: Raw) -> bool:
    return message.get("role") not in ("assistant", "model") and "reasoning" not in str(
        message.get("type")
    )


@pytest.mark.parametrize("form", FORMS)
@given(turns=TALKS, tokens=st.integers(60, 900), policy=POLICIES)
@settings(max_examples=examples(10))
def test_a_built_request_is_valid_at_any_budget(
    form: str, turns: list[Turn], tokens: int, policy: Policy
) -> None:
    said = WRITERS[form](turns)
    budget = bk.presets.working_memory(tokens, output=10, history_floor=0)
    built = bk.build(
        budget,
        len,
        policy=policy,
        history=said[:-1],
        current=said[-1],
        knowledge=["Refunds."],
        form=form,  # type: ignore[arg-type]
    )
    spoken = [message for message in built.messages if message.get("role") != "system"]
    assert list(RULES[form](spoken)) == []


def test_system_text_and_passages_stand_where_the_provider_takes_them() -> None:
    """Anthropic, Gemini and Converse refuse a message of the system; in Responses it is an item."""
    for form, system in (
        ("anthropic", "Be brief."),
        ("gemini", {"parts": [{"text": "Be brief."}]}),
        ("converse", [{"text": "Be brief."}]),
        ("responses", None),
        ("chat", None),
    ):
        talk = conversation(100_000, form=form)
        talk.add({"role": "system", "content": "Be brief."})
        talk.add(user("Where is my refund?", contexts=["Refunds take five days."]))
        request = talk.request()
        assert request.system == system
        assert list(RULES[form](request.messages)) == []
        assert "Refunds take five days." in json.dumps(request.messages)
        assert request.tokens == conversation(100_000).budget.window - request.plan.free


def test_the_form_is_that_of_the_first_answer_on_and_stays_when_that_answer_has_left() -> None:
    talk = conversation(1_000, policies.SlidingWindow(1))
    talk.add({"role": "system", "content": "Be brief."}, *as_anthropic(TALK[1:2]))
    talk.request()
    for turn in range(3):
        talk.add(user(f"Question {turn}"), assistant("Yes."))
        talk.request()
    talk.add(user("And now?"))
    assert talk.request().system == "Be brief."
    with pytest.raises(ValueError, match="form"):
        bk.Conversation(window(100), form="claude")  # type: ignore[arg-type] # on purpose


def test_messages_of_two_providers_go_out_as_chat() -> None:
    talk = conversation(100_000)
    talk.add(as_anthropic(TALK[1:2]), as_gemini(TALK[1:2]), user("And now?"))
    messages = talk.request().messages
    assert [message["role"] for message in messages][:4] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert list(RULES["chat"](messages)) == []


def test_one_form_is_written_as_another() -> None:
    for source in FORMS:
        for form in FORMS:
            said = WRITERS[source](TALK)
            trimmed = bk.trim(said, 100_000, form=form)  # type: ignore[arg-type]
            assert list(RULES[form](trimmed)) == [], (source, form)


def test_the_answers_of_sdks_go_out_as_requests_take_them() -> None:
    """Anthropic refuses an answer with its id and usage, Gemini one with its finish reason."""
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}
    fields["stop_reason"] = "end_turn"
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "signed"}
    text = {"type": "text", "text": "Lisbon."}
    blocks = [SimpleNamespace(model_dump=lambda mode=None, exclude_none=None: {**text})]
    content = {"role": "model", "parts": [{"text": "Lisbon.", "thoughtSignature": "signed"}]}
    item = {"type": "message", **assistant([{"type": "output_text", "text": "Lisbon."}])}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    message = assistant([{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "L."}])
    question = user("What is the capital of Portugal?")
    for answer, sent in (
        ({**fields, "content": [thinking, text], "usage": {}}, [assistant([thinking, text])]),
        (assistant([thinking, *blocks]), [assistant([thinking, text])]),
        ({"candidates": [{"content": content, "finishReason": "STOP"}]}, [content]),
        ({"id": "resp_1", "object": "response", "output": [reasoning, item]}, [reasoning, item]),
        ({"output": {"message": message}, "stopReason": "end_turn"}, [message]),
    ):
        talk = conversation(100_000)
        talk.add(question, answer)
        assert talk.request().messages[1:] == sent


def test_what_the_provider_ran_itself_leaves_with_its_answer() -> None:
    """Server tools stand inside one answer: half of it would be refused."""
    text = {"type": "text", "text": "L" * 50}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [text]}
    asked = {"name": "web_search", "input": {"query": "capital"}}
    use = {"type": "server_tool_use", "id": "srv_1", **asked}
    answer = assistant([use, found, {"type": "text", "text": "Lisbon."}])
    said = [user("Capital?"), answer, user("Thank you.")]
    for tokens in range(1, 300, 3):
        talk = conversation(tokens, shorten=False)
        talk.add(said)
        messages = talk.request().messages
        assert answer in messages or len(messages) == 1


def test_an_answer_that_paused_is_sent_back_before_the_result_of_its_server_tool() -> None:
    """It was withheld as a call without a result, and the result that came was never sent."""
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    said = [user("Capital?"), assistant([use])]
    rest = assistant([found, {"type": "text", "text": "Lisbon."}])
    talk = conversation(1_000)
    talk.add(*said)
    assert talk.request().messages == bk.trim(said, 1_000, len) == said
    talk.add(rest)
    request = talk.request()
    assert (request.messages, request.left) == ([*said, rest], ())


@pytest.mark.parametrize("tool", ["web_search_call", "mcp_call", "function_call"])
def test_an_answer_with_reasoning_leaves_whole(tool: str) -> None:
    """OpenAI refuses reasoning without the items that followed it, and these without their reasoning."""
    call = {"type": tool, "id": "i", "name": "look", "arguments": "{}"}
    text = [{"type": "output_text", "text": "Lisbon. " * 9}]
    answer = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {**call, "output": "Seen."} if tool == "mcp_call" else call,
        {"type": "message", "id": "msg_1", "role": "assistant", "content": text},
    ]
    said = [user("Capital?"), *answer, user("Thank you.")]
    if tool == "function_call":
        call["call_id"] = "c"
        said.insert(4, {"type": "function_call_output", "call_id": "c", "output": "Seen."})
    for tokens in range(10, 300, 10):
        talk = conversation(
            tokens, policies.Summarise(text=lambda messages: "In short."), form="responses"
        )
        for item in said:
            talk.add(item)
        trimmed = bk.trim(said, tokens, len) if tokens > 20 else []
        built = bk.build(window(tokens), len, history=said[:-1], current=said[-1]).messages
        for sent in (talk.request().messages, trimmed, built):
            assert [item for item in answer if item in sent] in ([], answer)


def test_cache_breakpoints_alone_are_no_anthropic_messages() -> None:
    """OpenRouter and LiteLLM take them in the texts of a chat message."""
    text = {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}
    said = [user("Be brief.") | {"role": "system"}, user([text])]
    talk = conversation(1_000)
    talk.add(said)
    request = talk.request()
    assert (request.messages, request.system) == (said, None)
    talk.add(assistant([{"type": "tool_use", "id": "1", "name": "look", "input": {}}]))
    assert talk.request().messages == said[1:]


def test_tools_go_out_in_the_wrapping_of_their_provider() -> None:
    declarations = [
        {"functionDeclarations": [{"name": "search", "parameters": {"type": "object"}}]}
    ]
    specs = [{"toolSpec": {"name": "search", "inputSchema": {"json": {"type": "object"}}}}]
    for tools in (declarations, specs):
        assert conversation(100_000, tools=tools).request().tools == tools
    answer = {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}
    (function,) = conversation(100_000, tools=answer).request().tools
    assert function["function"]["name"] == "search"


@pytest.mark.parametrize("is_saved", [False, True])
def test_items_added_one_by_one_are_one_message_of_calls(is_saved: bool) -> None:
    """Two messages of calls in a row, and a message of thinking alone, were sent, which OpenAI and others reject."""
    calls = [
        {"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"} for id in "ab"
    ]
    outputs = [{"type": "function_call_output", "call_id": id, "output": "Lisbon"} for id in "ab"]
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    }
    form: Any = "responses" if is_saved else "chat"
    talk = bk.Conversation(bk.presets.chat(4_000), model="gpt-4o", form=form)
    for item in (user("Where?"), *calls, *outputs, thought, user("And now?")):
        talk.add(item)
        talk.request()  # the two calls arrive at different requests
    if is_saved:
        with pytest.warns(UserWarning, match="The form of the saved conversation changes"):
            talk = bk.Conversation.from_json(talk.to_json(), form="chat")
    request = talk.request()
    assert [call["id"] for call in request.messages[1]["tool_calls"]] == ["a", "b"]
    assert request.messages[2:] == [tool_result(id, "Lisbon") for id in "ab"] + [user("And now?")]
    body = {"model": "gpt-4o", "messages": request.messages}
    assert request.tokens == bk.count_request(body).tokens


def failed_call(form: str) -> list[Raw]:
    """Write a call of a tool that failed, in Anthropic's or Converse's format."""
    call: Raw = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    result: Raw = {"type": "tool_result", "tool_use_id": "a", "content": "No.", "is_error": True}
    if form == "converse":
        call = {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}
        fields = {"toolUseId": "a", "content": [{"text": "No."}], "status": "error"}
        result = {"toolResult": fields}
    return [assistant([call]), user([result])]


@pytest.mark.parametrize("source", ["anthropic", "converse"])
def test_a_failed_call_is_marked_as_the_format_marks_it(source: str) -> None:
    """OpenAI's chat format has no mark, and Converse's and Anthropic's were lost."""
    read = read_values([failed_call(source)])
    for form in ("anthropic", "converse"):
        assert write_messages([m.raw for m in read], form).messages[1:] == failed_call(form)[1:]
    assert write_messages([m.raw for m in read], "chat").messages[1] == tool_result("a", "No.")


SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
#: The same tool in each format.
TOOLS: dict[str, Raw] = {
    "chat": {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False},
    "anthropic": {"name": "look", "input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA}]},
    "converse": {"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", [*FORMS, "mcp"])
def test_tools_are_sent_in_the_format_of_the_request(source: str, form: Any) -> None:
    """An MCP server's tools were OpenAI's chat tools in every format, and other tools kept the format they had."""
    tools: Any = {"tools": [{"name": "look", "inputSchema": SCHEMA}]}
    if source != "mcp":
        tools = [TOOLS[source]]
    talk = conversation(100_000, tools=tools, form=form)
    talk.add(user("Where?"))
    request = talk.request()
    (tool,) = request.tools
    tool.get("function", {}).pop("strict", None)  # as in the source
    assert (tool, request.warnings) == (TOOLS[form], ())


@pytest.mark.parametrize("form", ["chat", "anthropic", "converse"])
def test_a_built_in_tool_of_another_format_is_named(form: Any) -> None:
    tools = [{"google_search": {}}, {"functionDeclarations": [{"name": "ping"}]}]
    request = conversation(100_000, tools=tools, form=form).request()
    assert request.tools[0] == tools[0]
    assert sum("built-in tool google_search. Leave them out" in w for w in request.warnings) == 1


def thinking_before_a_call(thought: str) -> list[Raw]:
    thinks = {"type": "thinking", "thinking": thought, "signature": "signed"}
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "the sea"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "Lisbon"}
    return [user("Where?"), assistant([thinks, call]), user([result])]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-3-5-sonnet"])
def test_thinking_that_goes_out_counts_as_a_request_counts_it(model: str) -> None:
    """3,000 words went out with a call, and the request said 69 tokens."""
    said = thinking_before_a_call("word " * 3_000)
    talk = bk.Conversation(bk.presets.chat(200_000), model=model)
    talk.add(said)
    request = talk.request()
    body = {"model": model, "messages": request.messages}
    assert request.messages == said
    assert abs(request.tokens - bk.count_request(body).tokens) <= 10
    assert request.tokens > 3_000
    assert "Only the provider can count thinking in the history" in request.warnings[0]


@pytest.mark.parametrize("framing", [Framing(), None])
def test_thinking_that_exceeds_the_window_is_over_or_leaves(framing: Framing | None) -> None:
    said = thinking_before_a_call("t" * 5_000)
    talk = bk.Conversation(window(1_000), counter=len, framing=framing, overrun="tell")
    talk.add(said)
    request = talk.request()
    assert request.over > 0 or "t" * 5_000 not in json.dumps(request.messages)
    assert request.over > 0 or request.left

    talk.add(assistant("In Lisbon."), user("Thanks."))
    later = talk.request()
    assert not later.over
    assert "t" * 5_000 not in json.dumps(later.messages)
    assert not any("thinking" in warning for warning in later.warnings)
    assert "t" * 5_000 not in json.dumps(bk.trim([*said, user("Thanks.")], 1_000, len))


@pytest.mark.parametrize("form", ["anthropic", "gemini", "responses"])
def test_thinking_that_nobody_can_count_is_named(form: str) -> None:
    said = WRITERS[form]([Turn("Where?", (Step(thought="Hm.", results=("Lisbon",)),))])
    talk = conversation(100_000)
    talk.add(said)
    built = bk.build(bk.presets.working_memory(100_000, output=500), len, question=said)
    assert any("Only the provider can count" in warning for warning in talk.request().warnings)
    assert talk.request().warnings == built.warnings


#: A picture as each form has it in a tool's result.
PICTURES: dict[str, Raw] = {
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
    },
    "converse": {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
    "responses": {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
}


def with_a_picture(text: str) -> list[Raw]:
    """A question, a call without a text, and its result with a picture, in the chat format."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    call = tool_call("a", "look")
    result = tool_result("a", [{"type": "text", "text": text}, picture])
    return [user("Where?"), assistant("", tool_calls=[call]), result]


def result_parts(message: Raw, form: str) -> list[Raw]:
    """List what stands in the result that a message of a form begins with."""
    if form == "responses":
        return list(message["output"])
    if form == "gemini":
        return list(message["parts"][0]["functionResponse"].get("parts", []))
    result = message["content"][0]
    return list(result["content"] if form == "anthropic" else result["toolResult"]["content"])


@pytest.mark.parametrize("form", sorted(PICTURES))
def test_an_empty_text_beside_calls_is_no_block(form: str) -> None:
    """Anthropic and Converse refuse an empty text, which chat answers with calls often have."""
    request = conversation(100_000, form=form)
    request.add(with_a_picture("Lisbon"))
    sent = request.request().messages
    assert list(RULES[form](sent)) == []
    assert '"text": ""' not in json.dumps(sent)
    assert '"content": ""' not in json.dumps(sent)


@pytest.mark.parametrize("form", sorted(PICTURES))
def test_the_picture_of_a_result_stays_in_any_form_and_when_cut(form: str) -> None:
    """It was left out in silence, though its tokens were counted."""
    whole = conversation(100_000, form=form)
    whole.add(with_a_picture("Lisbon " * 600))
    written = whole.request().messages
    assert PICTURES[form] in result_parts(written[-1], form)

    cut = conversation(3_000, framing=Framing(per_image=100))
    cut.add(written)
    shorter = cut.request().messages
    assert len(json.dumps(shorter)) < len(json.dumps(written))
    assert PICTURES[form] in result_parts(shorter[-1], form)


@pytest.mark.parametrize("form", ["anthropic", "converse", "gemini"])
def test_a_picture_goes_from_one_form_to_another_with_its_media_type(form: str) -> None:
    """Gemini's beside a result was lost and not counted; Converse's went out as "image", which providers refuse."""
    talk = conversation(100_000, form=form)
    talk.add(with_a_picture("Lisbon"))
    said = talk.request().messages

    (image,) = (
        image for message in bk.load_trace({"messages": said}).messages for image in message.images
    )
    assert image.url == "data:image/png;base64,QUJD"
    for other in sorted(PICTURES):
        sent = bk.trim(said, 100_000, form=other)  # type: ignore[arg-type]
        assert PICTURES[other] in result_parts(sent[-1], other)


PDF = {"mime": "application/pdf", "data": "JVBERi0="}
FILE = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
FILES: dict[str, Raw] = {
    "anthropic": {
        "type": "document",
        "source": {"type": "base64", "media_type": PDF["mime"], "data": PDF["data"]},
    },
    "chat": {"type": "file", "file": FILE},
    "converse": {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF["data"]}}},
    "gemini": {"inlineData": {"mimeType": PDF["mime"], "data": PDF["data"]}},
    "responses": {"type": "input_file", **FILE},
}
RECORDINGS: dict[str, Raw] = {
    "chat": {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    "gemini": {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
}


def parts_sent(part: Raw, came: str, form: str) -> tuple[list[Raw], bool]:
    """Return the parts of a message in another form, and whether a loss is named."""
    talk = conversation(10_000, form=form)
    talk.add({"role": "user", "parts" if came == "gemini" else "content": [part]})
    request = talk.request()
    (message,) = request.messages
    lost = any("cannot hold it" in warning for warning in request.warnings)
    return message["parts" if form == "gemini" else "content"], lost


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("came", FORMS)
def test_files_and_recordings_go_from_one_form_to_another_or_are_named(
    came: str, form: str
) -> None:
    """A PDF in Anthropic's shape was sent to Gemini as it was."""
    ((part,), lost) = parts_sent(FILES[came], came, form)
    names = ("filename", "name")
    assert not lost
    assert [*part] == [*FILES[form]]
    assert [value for name, value in sorted(leaves(part)) if name not in names] == [
        value for name, value in sorted(leaves(FILES[form])) if name not in names
    ]
    if came in RECORDINGS:
        ((part,), lost) = parts_sent(RECORDINGS[came], came, form)
        assert lost is (form not in RECORDINGS)
        assert lost or part == RECORDINGS[form]


def leaves(value: Raw) -> list[tuple[str, str]]:
    return [
        leaf
        for name, inner in value.items()
        for leaf in (leaves(inner) if isinstance(inner, dict) else [(name, inner)])
    ]


@pytest.mark.parametrize("form", FORMS)
def test_the_images_of_ollama_go_out_as_the_form_has_them(form: str) -> None:
    talk = conversation(10_000, form=form)
    talk.add({**user("Look."), "images": ["iVBORw0KGgo="]})
    (message,) = talk.request().messages
    assert ("images" in message) is (form == "chat")
    assert "iVBORw0KGgo=" in json.dumps(message)


def test_a_picture_beside_a_result_of_gemini_is_counted() -> None:
    look = {"functionCall": {"name": "look", "args": {}}}
    result = {"name": "look", "response": {"result": "Lisbon"}}

    def tokens(result: Raw) -> int:
        contents = [
            {"role": "user", "parts": [{"text": "Where?"}]},
            {"role": "model", "parts": [look]},
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
        return bk.count_request({"model": "gemini-2.5-flash", "contents": contents}).tokens

    assert tokens({**result, "parts": [PICTURES["gemini"]]}) > tokens(result) + 200


def test_bytes_go_out_as_bytes_and_can_be_saved() -> None:
    """boto3 takes pictures as bytes; they went out as {"type": "file", "bytes": 3}, which Bedrock refuses."""
    picture = {"image": {"format": "png", "source": {"bytes": b"ABC"}}}
    said = [user([{"text": "What is it?"}, picture])]
    talk = conversation(100_000)
    talk.add(said)
    again = bk.Conversation.from_json(talk.to_json(), counter=len)
    assert (
        talk.request().messages == again.request().messages == bk.trim(said, 100_000, len) == said
    )
    assert bk.trim(said, 100_000, form="anthropic")[0]["content"][1] == PICTURES["anthropic"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("results", [("Lisbon",), ()], ids=["before a call", "before a text"])
def test_thinking_is_counted_or_named_in_every_form(form: str, results: tuple[str, ...]) -> None:
    """Converse's before a text, and that of the chat format, was neither."""
    said = WRITERS[form]([Turn("Where?", (Step(thought="Hm.", text="I look.", results=results),))])
    if form == "chat":
        said[1]["reasoning_content"] = "Hm."
    talk = bk.Conversation(bk.presets.chat(100_000), counter=len, overrun="tell")
    talk.add(said)
    warned = any("Only the provider can count" in warning for warning in talk.request().warnings)
    free = form in ("chat", "responses") and not results  # OpenAI bills nothing for it
    assert warned or free


@pytest.mark.parametrize(
    ("model", "call", "named"),
    [
        ("gpt-5.2", True, True),
        ("gpt-5.2", False, False),
        ("mistral-small-latest", False, True),
        ("deepseek-v4-flash", False, False),
        ("anthropic/claude-haiku-4.5", False, True),
    ],
)
def test_thinking_in_chat_goes_by_the_model(model: str, call: bool, named: bool) -> None:
    """Two recorded calls of gpt-5.2 cost nothing more for 48 and 231 tokens before a text, and 18 before a call."""
    calls = [tool_call("a", "look")]
    answer: Raw = assistant("I look.", reasoning_content="Hm.")
    if call:
        answer["tool_calls"] = calls
    body = {"model": model, "messages": [user("Where?"), answer]}
    assert ("thinking in the history" in bk.count_request(body).uncounted) == named


def test_gemini_bills_what_was_thought_as_text() -> None:
    """Eleven recorded calls with 95 to 652 tokens of it came out 90 to 720 too low; now 11 too high to 124 too low."""
    thought = "First I look where the sea is, then which city lies on it. " * 10

    def counted(*parts: Raw) -> Any:
        contents = [
            {"role": "user", "parts": [{"text": "Where?"}]},
            {"role": "model", "parts": list(parts)},
        ]
        return bk.count_request({"model": "gemini-2.5-flash", "contents": contents})

    plain = counted({"text": "Lisbon."})
    thinking = counted({"text": thought, "thought": True}, {"text": "Lisbon."})
    assert thinking.tokens == plain.tokens + bk.counter("gemini-2.5-flash")(thought)
    assert thinking.uncounted == ("thinking in the history",)


@pytest.mark.parametrize(
    "policy", [None, policies.OldestFirst(unit="turn"), policies.SlidingWindow(1)]
)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_the_user_may_speak_between_call_and_result(form: str, policy: Policy | None) -> None:
    """A recorded call: the user speaks while a tool runs; with a small budget the result went out without its call."""
    first, call, result = WRITERS[form]([Turn("Where?", (Step(results=("Lisbon",)),))])
    asked = user("Go on, please.")
    for tokens in range(len("Go on, please."), 120, 5):
        talk = conversation(tokens, policy)
        for message in (first, call, asked, result):
            talk.add(message)
        sent = talk.request().messages
        assert asked in sent
        assert (call in sent) == (result in sent)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("tokens", "why", "became"), [(20, "dropped", "omitted"), (900, "shortened", "shortened")]
)
def test_trim_tells_what_it_left_out(form: str, tokens: int, why: str, became: str) -> None:
    """It returned a list, and a result that was gone or cut could not be told from one that was never there."""
    said = WRITERS[form]([Turn("Where?", (Step(results=("by the sea " * 400,)),))])
    trimmed = bk.trim(said, tokens, len, framing=Framing())
    assert [left.why for left in trimmed.left][-1] == why
    assert trimmed.left[-1].message == said[-1]
    (warning,) = [text for text in trimmed.warnings if "Only the provider" not in text]
    assert f"does not fit and is {became}" in warning

    whole = bk.trim(said, 100_000, len)
    signed = ("Only the provider can count reasoning before a call. Leave tokens free for it.",)
    assert (whole, whole.left) == (said, ())
    assert whole.warnings == (signed if form == "gemini" else ())


def test_of_equal_messages_trim_leaves_the_oldest() -> None:
    said = [{"role": role, "content": "Hello."} for role in ("user", "assistant") * 3] + [
        user("So?")
    ]
    trimmed = bk.trim(said, 28, len, framing=Framing(), start_on="any")
    assert len(trimmed) + len(trimmed.left) == len(said)
    assert trimmed.warnings == ()
    assert [left.message for left in trimmed.left] == said[: len(trimmed.left)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_message_is_not_sent_where_it_is_refused(form: str, blank: str) -> None:
    """Anthropic, Gemini and Converse refuse a blank text; chat clients write one where a stream broke off."""
    said = [
        user("Where?"),
        assistant(blank),
        user([{"type": "text", "text": blank}, {"type": "text", "text": "I ask again."}]),
        assistant("Lisbon."),
        user("And the river?"),
    ]
    talk = conversation(100_000, form=form)
    talk.add(*said)
    request = talk.request()
    assert list(RULES[form](request.messages)) == []
    assert "I ask again." in json.dumps(request.messages)
    assert len(request.messages) == (
        5 if form in ("chat", "responses") else 3 if form == "converse" else 4
    )
    assert talk.request().stable == len(request.messages)


@pytest.mark.parametrize("form", ["anthropic", "converse"])
def test_ids_of_calls_are_written_as_the_provider_accepts_them(form: Any) -> None:
    call = tool_call("functions.x:0", "x")
    messages: list[Raw] = [user("Why?"), calling(call), tool_result("functions.x:0", "So.")]
    written = json.dumps([*write_messages(messages, form).messages], default=str)
    assert "functions.x:0" not in written
    assert written.count("functions_x_0") == 2


COMPACTED: list[Raw] = [
    user("word " * 5_000),
    assistant(
        [{"type": "compaction", "content": "About words."}, {"type": "text", "text": "Go on."}]
    ),
    user("And now?"),
]


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("window", [100_000, 600])
def test_messages_before_a_summary_of_anthropic_are_not_counted(
    is_running: bool, window: int
) -> None:
    """The provider reads nothing before it; they were counted, and the summary was dropped in their place."""
    body = {"model": "claude-opus-4-6", "messages": COMPACTED}
    tokens = bk.count_request(body).tokens
    assert tokens == bk.count_request({**body, "messages": COMPACTED[1:]}).tokens < 50
    budget = bk.presets.working_memory(window, output=100)
    talk = bk.Conversation(budget, model="claude-opus-4-6", overrun="tell")
    for message in COMPACTED:
        talk.add(message)
        if is_running:
            talk.request()
    request = talk.request()
    assert (request.messages[-2:], request.tokens) == (COMPACTED[1:], tokens)
    assert (request.over, request.warnings) == (0, ())
    talk = bk.Conversation.from_json(talk.to_json())
    talk.add(assistant("Yes."), user("So?"))
    assert talk.request().messages == [*COMPACTED, assistant("Yes."), user("So?")]
    trimmed = bk.trim(COMPACTED, window, model="claude-opus-4-6")
    assert (trimmed[-2:], trimmed.warnings) == (COMPACTED[1:], ())


def test_steps_of_a_long_answer_go_on_after_a_summary_of_anthropic() -> None:
    step = {"type": "tool_result", "content": "word " * 100}
    budget = bk.presets.working_memory(4_000, output=500)
    talk = bk.Conversation(budget, model="claude-opus-4-6", overrun="tell")
    talk.add(user("Look."))
    for number in range(30):
        call = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
        summary = [{"type": "compaction", "content": "Looked."}] if number == 15 else []
        talk.add(assistant([*summary, call]), user([step | {"tool_use_id": call["id"]}]))
        request = talk.request()
        body = {"model": "claude-opus-4-6", "messages": request.messages}
        assert bk.count_request(body).tokens == request.tokens
        assert request.over == 0
        assert len(request.messages) == 2 * number + 3


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
@pytest.mark.parametrize("form", FORMS)
def test_an_encrypted_summary_is_sent_only_in_its_format(kind: str, form: Any) -> None:
    """A request had to start with a user message, so the summary before it was dropped."""
    said = [{"type": kind, "id": "c_1", "encrypted_content": "abcd" * 40}, user("And now?")]
    talk = conversation(100_000, form=form)
    for item in said:
        talk.add(item)
    sent = talk.request()
    if form == "responses":
        assert sent.messages == bk.trim(said, 100_000, len) == said
    else:
        assert "abcd" not in json.dumps([sent.messages])
        assert list(RULES[form](sent.messages)) == []


def test_each_summary_is_sent_or_named() -> None:
    """A summary that was too large was summarised again for the same request, and named nowhere."""
    written: list[str] = []

    def write(messages: Any) -> str:
        written.append(f"Summary {len(written)}: " + "fact " * 10)
        return written[-1]

    talk = conversation(900, policies.Summarise(2, text=write))
    notices = ""
    for number in range(40):
        talk.add(user(f"Question {number}"), assistant("Yes. " * 3 * (1 + number % 7)))
        before = len(written)
        request = talk.request()
        named = [left.message["content"] for left in request.left]
        sent = [message["content"] for message in request.messages]
        assert all(text in [*named, *sent] for text in written[before:])
        if len(written) - before > 1:
            assert request.warnings
        notices += " ".join(request.warnings)
    assert "summarised again" in notices
    assert "was not sent" in notices


@pytest.mark.parametrize("form", FORMS)
def test_a_message_that_changes_twice_is_left_once_and_as_it_came(form: str) -> None:
    """It was left a second time, or only, as the placeholder or the shortened text, in OpenAI's chat format."""
    turns = [
        Turn(
            f"Where? {n}",
            (Step(results=("word " * 60,)), Step(results=("sea " * 60,)), Step(text=f"Done {n}.")),
        )
        for n in range(4)
    ]
    said = [*map(json.loads, dict.fromkeys(map(json.dumps, WRITERS[form](turns))))]
    chain = policies.Chain(
        [policies.DropToolResults(), policies.Summarise(text=lambda messages: "So.")]
    )
    for policy in (None, chain):
        for tokens in range(300, 2_000, 100):
            talk = conversation(tokens, policy)
            talk.add(said)
            removed = [left.message for left in talk.request().left if "So." not in str(left)]
            assert [message for message in removed if message not in said] == []
            assert len({json.dumps(message) for message in removed}) == len(removed)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4"])
def test_tools_after_the_text_about_the_budget_are_counted_as_sent(model: str) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    talk = bk.Conversation("chat", model=model, tools=tools, tell=True)
    talk.add(user("Where?"))
    request = talk.request()
    assert request.messages[-1]["role"] == "system"
    body = {"model": model, "messages": request.messages, "tools": tools}
    assert request.tokens == bk.count_request(body).tokens


@pytest.mark.parametrize("is_one_by_one", [True, False])
def test_what_has_left_of_responses_is_listed_as_it_came(is_one_by_one: bool) -> None:
    """Reasoning with its encrypted text was listed as a chat message without it."""
    items: list[Raw] = [
        user("word " * 300),
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "abcd" * 20},
        {"type": "function_call", "call_id": "a", "name": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        assistant("word " * 300),
        user("And now?"),
    ]
    talk = conversation(600, form="responses")
    for added in [[item] for item in items] if is_one_by_one else [items]:
        talk.add(*added)
    assert [left.message for left in talk.request().left] == items[:-1]


@pytest.mark.parametrize("is_one_by_one", [True, False])
def test_parallel_results_of_responses_are_pruned_by_their_own_size(is_one_by_one: bool) -> None:
    """They were sized as in chat, which escapes letters beyond ASCII, and dropped though they fit."""
    calls = [
        {"type": "function_call", "call_id": id, "name": "n", "arguments": "{}"} for id in "ab"
    ]
    text = "您好世界我们今天讨论预算问题 " * 100
    results = [{"type": "function_call_output", "call_id": id, "output": text} for id in "ab"]
    items: list[Raw] = [user("Go."), *calls, *results, assistant("Fine."), user("Next?")]
    tokens = bk.count_request({"model": "gpt-5.4", "input": items}).tokens
    budget = bk.presets.working_memory(tokens + 200, output=100, history_floor=0)
    talk = bk.Conversation(budget, model="gpt-5.4", form="responses")
    for added in [[item] for item in items] if is_one_by_one else [items]:
        talk.add(*added)
    assert (talk.request().messages, talk.request().tokens) == (items, tokens)
    assert bk.trim(items, tokens + 10, model="gpt-5.4") == items


def test_a_built_request_keeps_its_providers_summary() -> None:
    """The summary was dropped, because a request had to start with a user message."""
    summary = {"type": "compaction", "id": "c_1", "encrypted_content": "abcd" * 40}
    history: list[Raw] = [summary, user("Go."), assistant("Fine.")]
    budget = bk.presets.working_memory(4_000, output=50)
    built = bk.build(budget, model="gpt-5.4", history=history, current="Next?")
    assert built.messages == [*history, user("Next?")]
    claude = [*COMPACTED, assistant("Fine.")]
    budget = bk.presets.working_memory(1_000, output=50, history_floor=0)
    built = bk.build(
        budget, model="claude-opus-4-6", policy="oldest first", history=claude, current="Next?"
    )
    assert COMPACTED[1] in built.messages
