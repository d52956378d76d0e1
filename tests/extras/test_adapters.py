"""Agent frameworks, each as it is installed: what their models are given fits, and is what the engine would send.

No network: the models are the frameworks' own stand-ins for tests, which note what they are given.
"""

import asyncio
from base64 import b64encode
from dataclasses import make_dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import policies
from budgetkit.extras.adapters import langchain, openai_agents, pydantic_ai
from budgetkit.extras.adapters.keeper import NATIVE, Keeper
from budgetkit.message import Message
from tests.messages import assistant, calling, system, tool, tool_call, tool_result, user

COUNT = bk.counter("o200k_base")
FRAMING = bk.requests.FRAMINGS["openai"]
MOST = 400
LOOK = tool_call("a", "look", '{"at": "it"}')


def chat(turns: int) -> list[dict[str, Any]]:
    said = [system("Be brief.")]
    for turn in range(turns):
        said += [user(f"Question {turn}: " + "why " * 20)]
        said += [assistant(f"Answer {turn}: " + "so " * 20)]
    return [*said, user("And now?")]


def run(asked: Any) -> Any:
    """Run to the end, and close the loop: the frameworks' own helpers leave one behind."""
    with asyncio.Runner() as runner:
        return runner.run(asked)


# What all share


def by_keeper(keeper: Keeper, said: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Ask where each question was asked, as a framework does: with everything that was said so far."""
    ends = [i + 1 for i, each in enumerate(said) if each["role"] == "user"]
    return [keeper.fit([*map(bk.Message, said[:end])]) for end in ends]


def by_hand(talk: bk.Conversation, said: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found = []
    for each in said:
        talk.add(each)
        if each["role"] == "user":
            found.append(talk.request().messages)
    return found


SMALL = bk.presets.working_memory(1_000, output=200, history_floor=0)
IN_BLOCKS = policies.TriggerTarget()


def test_a_keeper_sends_what_a_conversation_would() -> None:
    sent = by_keeper(Keeper(SMALL, IN_BLOCKS), chat(30))
    assert sent == by_hand(bk.Conversation(SMALL, IN_BLOCKS), chat(30))


def test_conversations_of_a_keeper_do_not_mix_and_what_is_forgotten_begins_anew() -> None:
    one, other = chat(20), [{**each, "content": each["content"].upper()} for each in chat(20)]
    keeper = Keeper(SMALL, IN_BLOCKS, conversations=1)
    alone = by_keeper(Keeper(SMALL, IN_BLOCKS), one), by_keeper(Keeper(SMALL, IN_BLOCKS), other)
    assert (by_keeper(keeper, one), by_keeper(keeper, other)) == alone
    assert len(keeper._talks) <= 2
    again = keeper.fit([*map(bk.Message, one)])
    assert again[-1] == one[-1]
    assert FRAMING.request(again, COUNT) <= 800


def test_a_branch_never_sees_what_another_said() -> None:
    """Also where the framework went on with what it was given: the whole list, sent again, begins anew."""
    keeper, said = Keeper(SMALL, IN_BLOCKS), [*map(bk.Message, chat(20))]
    first = keeper.fit(said)
    assert len(first) < len(said)
    secret, question = (assistant("secret"), user("And then?"))
    assert secret in keeper.fit([*map(bk.Message, [*first, secret, question])])
    for again in (said, [*map(bk.Message, first)]):
        assert secret not in keeper.fit([*again, bk.Message(question)])
    assert keeper.fit(said) == first


def test_an_empty_conversation_is_nobodys_beginning() -> None:
    """A call without its result waits, so that the request is empty: the next conversation knows nothing of it."""
    keeper = Keeper(1_000, policies.SlidingWindow(3))
    assert keeper.fit([bk.Message(calling(LOOK))]) == []
    seen = tool_result("a", "seen")
    assert keeper.fit([bk.Message(user("Hello")), bk.Message(seen)]) == [user("Hello")]


def test_tools_that_come_later_are_counted_in() -> None:
    said = chat(7)
    ends = [i + 1 for i, each in enumerate(said) if each["role"] == "user"]
    parameters = {"type": "object", "properties": {}}
    about: dict[str, Any] = {"description": "Look at something. " * 4, "parameters": parameters}
    tools = [tool(f"look_{n}", **about) for n in range(6)]
    keeper = Keeper(500, policies.OldestFirst())
    before = [keeper.fit([*map(bk.Message, said[:end])], tools[:1]) for end in ends[:-1]][-1]
    after = keeper.fit([*map(bk.Message, said)], tools)
    assert FRAMING.request(after, COUNT, tools) <= 500 < FRAMING.request(before, COUNT, tools)
    assert after[-1] == said[-1]


LONG = "word " * 2_000
DATA = b64encode(bytes(range(256)) * 40).decode()


# LangChain and LangGraph


def heard_by_langchain() -> tuple[Any, list[list[Any]]]:
    core = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    from langchain_core.messages import AIMessage

    heard: list[list[Any]] = []

    class Noting(core.GenericFakeChatModel):  # type: ignore[misc,name-defined]
        def _generate(self, messages: list[Any], *more: Any, **named: Any) -> Any:
            heard.append(messages)
            return super()._generate(messages, *more, **named)

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    calls = AIMessage("", tool_calls=[{"id": "a", "name": "look", "args": {"at": "it"}}])
    return Noting(messages=iter([calls, *(AIMessage(f"Answer {n}") for n in range(9))])), heard


def lang(said: list[dict[str, Any]]) -> list[Any]:
    from langchain_core.messages import convert_to_messages

    return list(convert_to_messages(said))


def unlang(messages: list[Any]) -> list[dict[str, Any]]:
    from langchain_core.messages import convert_to_openai_messages

    return [*map(dict, convert_to_openai_messages(messages))]


def test_langchain_a_runnable_stands_before_a_model() -> None:
    model, heard = heard_by_langchain()
    said = lang(chat(20))
    (langchain.runnable(MOST) | model).invoke(said)
    run((langchain.runnable(MOST) | model).ainvoke(said))
    assert unlang(heard[0]) == bk.trim(chat(20), MOST)
    assert heard[0] == heard[1]
    assert heard[0][0] is said[0]
    assert heard[0][-1] is said[-1]


def test_langgraph_a_hook_before_the_model_leaves_the_state_whole() -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    model, heard = heard_by_langchain()
    said = lang(chat(20))

    def look(at: str) -> str:
        """Look at something."""
        return "seen\n" * 500

    hook = langchain.pre_model_hook(MOST)
    with pytest.warns(DeprecationWarning, match="create_react_agent"):
        agent = prebuilt.create_react_agent(model, [look], pre_model_hook=hook)
    state = agent.invoke({"messages": said})
    assert len(state["messages"]) == len(said) + 3
    first, second = map(unlang, heard)
    assert first == bk.trim(chat(20), MOST)
    assert [each["role"] for each in second] == ["system", "user", "assistant", "tool"]
    assert FRAMING.request(second, COUNT) <= MOST
    assert second[-1]["content"].startswith("seen\nseen")


def test_langchain_a_middleware_counts_system_message_and_tools_in() -> None:
    agents = pytest.importorskip("langchain.agents")
    model, heard = heard_by_langchain()

    def look(at: str) -> str:
        """Look at something."""
        return "seen"

    look.__doc__ = "Look at something. " * 20
    kept = langchain.middleware(MOST)
    agent = agents.create_agent(model, [look], system_prompt="Be brief.", middleware=[kept])
    agent.invoke({"messages": lang(chat(20)[1:])})
    model, awaited = heard_by_langchain()
    agent = agents.create_agent(model, [look], system_prompt="Be brief.", middleware=[kept])
    run(agent.ainvoke({"messages": lang(chat(20)[1:])}))
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = [convert_to_openai_tool(look)]
    assert unlang(heard[0]) == bk.trim(chat(20), MOST, tools=tools) != bk.trim(chat(20), MOST)
    assert [each["role"] for each in unlang(heard[1])][-3:] == ["user", "assistant", "tool"]
    assert [*map(unlang, heard)] == [*map(unlang, awaited)]


def test_langchain_a_policy_goes_on_and_its_summaries_are_sent() -> None:
    pytest.importorskip("langchain_core")
    policy = policies.Summarise(bk.Share(0.5))
    budget = bk.presets.working_memory(1_000, output=200, history_floor=0)

    async def written(messages: list[Any]) -> str:
        return f"{len(messages)} messages"

    fitting = langchain.runnable(budget, policy, summarise=written)
    talk = bk.Conversation(budget, policy, summarise=lambda messages: f"{len(messages)} messages")
    said = lang(chat(20))
    ends = [i + 1 for i, each in enumerate(said) if each.type == "human"]
    found = [unlang(run(fitting.ainvoke(said[:end]))) for end in ends]
    assert found == by_hand(talk, chat(20))
    assert any(each["content"].endswith("messages") for each in found[-1])


def test_langchain_one_picture_is_never_sent_for_another() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    fitting = langchain.runnable(8_000, policies.SlidingWindow(3))
    for name in ("ada", "bob", "ada"):
        shown = {"type": "image_url", "image_url": {"url": f"https://one.example/{name}.png"}}
        said = messages.HumanMessage([{"type": "text", "text": "What is in this picture?"}, shown])
        (sent,) = fitting.invoke([said])
        assert sent is said
    for name in ("ada", "bob"):
        said = messages.HumanMessage("Who am I?", name=name)
        assert fitting.invoke([said])[0] is said


def test_langchain_what_is_said_again_is_sent_as_it_is_now() -> None:
    """Where all that is counted is the same, so is what leaves; the objects are the caller's own."""
    pytest.importorskip("langchain_core")
    fitting = langchain.runnable(8_000, policies.SlidingWindow(3))
    first, again = lang(chat(9)), lang(chat(9))
    fitting.invoke(first)
    sent = fitting.invoke(again)
    assert len(sent) < len(again)
    assert all(any(each is own for own in again) for each in sent)


BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": LONG, "signature": DATA},
    {"type": "reasoning", "reasoning": LONG},
    {"type": "server_tool_use", "id": "s", "name": "code", "input": {"code": LONG}},
    {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": LONG}},
    {"type": "non_standard", "value": {"text": LONG}},
    {"type": "text-plain", "text": LONG, "mime_type": "text/plain"},
    {"type": "document", "source": {"type": "text", "data": LONG}},
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block["type"]))
def test_langchain_every_block_is_counted(block: dict[str, Any]) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    answer = messages.AIMessage([block, {"type": "text", "text": "Thus."}])
    question = messages.HumanMessage("And now?")
    said = [messages.HumanMessage("Why?"), answer, question]
    assert langchain.runnable(MOST).invoke(said) == [question]
    assert langchain.runnable(MOST * 9).invoke(said) == said


@pytest.mark.parametrize(
    "beside",
    [
        {"additional_kwargs": {"reasoning_content": LONG}},
        {"invalid_tool_calls": [{"name": "look", "args": LONG, "id": "a", "error": "No JSON"}]},
    ],
    ids=["reasoning", "invalid call"],
)
def test_langchain_what_stands_beside_the_content_is_counted(beside: dict[str, Any]) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    question = messages.HumanMessage("And now?")
    said = [messages.HumanMessage("Why?"), messages.AIMessage("Thus.", **beside), question]
    assert langchain.runnable(MOST).invoke(said) == [question]


def test_langchain_a_search_result_is_counted_and_shortened() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    found: dict[str, Any] = {"type": "search_result", "source": "s", "title": "t"}
    found["content"] = [{"type": "text", "text": LONG}]
    calls = messages.AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "a"}])
    said = [messages.HumanMessage("Why?"), calls, messages.ToolMessage([found], tool_call_id="a")]
    *_, cut = langchain.runnable(MOST).invoke(said)
    assert cut.content[0]["text"].startswith("t\ns\nword word")
    (sent,) = langchain.runnable(MOST).invoke([*said, messages.HumanMessage("And now?")])
    assert sent.content == "And now?"


@pytest.mark.parametrize(
    "file",
    [
        {"type": "media", "data": "AAAA", "mime_type": "video/mp4"},
        {"type": "video", "base64": DATA, "mime_type": "video/mp4"},
        {"type": "video", "url": "https://one.example/ada.mp4"},
        {"type": "document", "source": {"type": "base64", "data": DATA}},
    ],
    ids=["media", "video", "link to a video", "document"],
)
def test_langchain_a_file_is_sent_with_a_warning(file: dict[str, Any]) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    said = [messages.HumanMessage([file]), messages.HumanMessage("And now?")]
    with pytest.warns(UserWarning, match=f"count {file['type']}. Leave"):
        assert langchain.runnable(MOST).invoke(said) == said


# OpenAI's Agents SDK


def by_items(items: list[dict[str, Any]], most: int = MOST) -> list[Any]:
    """Filter items as the SDK does, without the SDK."""
    given = make_dataclass("Given", ["input", "instructions"])(items, None)
    data = SimpleNamespace(model_data=given, agent=SimpleNamespace(tools=[]))
    return list(run(openai_agents.input_filter(most)(data)).input)


ITEMS: list[list[dict[str, Any]]] = [
    [
        {"type": "custom_tool_call", "call_id": "a", "name": "edit", "input": LONG},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "Done."},
    ],
    [
        {"type": "apply_patch_call", "call_id": "a", "operation": {"diff": LONG}},
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
    ],
    [
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": LONG}]},
    ],
    [
        {"type": "tool_search_call", "call_id": None, "arguments": {}},
        {"type": "tool_search_output", "call_id": None, "tools": [{"description": LONG}]},
    ],
    [{"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "output": LONG}],
    [{"type": "code_interpreter_call", "id": "c", "outputs": [{"logs": LONG}]}],
    [{"type": "file_search_call", "id": "f", "results": [{"text": LONG}]}],
    [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": LONG}]}],
]


@pytest.mark.parametrize("items", ITEMS, ids=lambda items: str(items[-1]["type"]))
def test_openai_agents_every_item_is_counted(items: list[dict[str, Any]]) -> None:
    said = [user("Why?"), *items, user("And now?")]
    assert by_items(said) == said[-1:]
    assert by_items(said, MOST * 9) == said
    assert {each.get("type") for each in by_items(said[:-1])} <= {None}  # never half an output


@pytest.mark.parametrize(
    "item",
    [
        user([{"type": "input_file", "file_data": f"data:application/pdf;base64,{DATA}"}]),
        user([{"type": "input_file", "file_url": "https://one.example/ada.pdf"}]),
        {"type": "image_generation_call", "id": "i", "result": DATA},
        {"type": "item_reference", "id": "m"},
    ],
    ids=["data", "link", "generated image", "reference"],
)
def test_openai_agents_a_file_is_sent_with_a_warning(item: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="Only the provider can count"):
        said = [user("Why?"), item, user("And now?")]
        assert by_items(said) == said


def heard_by_agents(answers: list[Any]) -> tuple[Any, list[Any]]:
    interface = pytest.importorskip("agents.models.interface")
    from agents import ModelResponse, Usage

    heard: list[Any] = []
    given = iter(answers)

    class Noting(interface.Model):  # type: ignore[misc,name-defined]
        async def get_response(self, *_: Any, **named: Any) -> Any:
            heard.append((named["system_instructions"], named["input"]))
            return ModelResponse(output=next(given), usage=Usage(), response_id=None)

        def stream_response(self, *more: Any, **named: Any) -> Any:
            raise NotImplementedError

    return Noting(), heard


def test_openai_agents_a_filter_gives_the_model_what_fits() -> None:
    agents = pytest.importorskip("agents")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
        ResponseReasoningItem,
    )

    reasoning = ResponseReasoningItem(id="r", summary=[], type="reasoning")
    call = ResponseFunctionToolCall(
        arguments='{"at": "it"}', call_id="a", name="look", type="function_call"
    )
    text = ResponseOutputText(annotations=[], text="Done.", type="output_text")
    done = ResponseOutputMessage(
        id="m", content=[text], role="assistant", status="completed", type="message"
    )
    model, heard = heard_by_agents([[reasoning, call], [done]])

    @agents.function_tool  # type: ignore[untyped-decorator,unused-ignore]
    def look(at: str) -> str:
        """Look at something."""
        return "seen\n" * 500

    agent = agents.Agent(name="a", instructions="Be brief.", model=model, tools=[look])
    config = agents.RunConfig(
        call_model_input_filter=openai_agents.input_filter(MOST), tracing_disabled=True
    )
    said = chat(20)[1:]
    result = run(agents.Runner.run(agent, said, run_config=config))
    schema = {
        "name": "look",
        "description": "Look at something.",
        "parameters": look.params_json_schema,
    }
    tools = [{"type": "function", "function": schema}]
    (instructions, first), (_, second) = heard
    assert instructions == "Be brief."
    assert [system(instructions), *first] == bk.trim(chat(20), MOST, tools=tools)
    assert [each.get("type", each.get("role")) for each in second] == [
        *("user", "reasoning", "function_call", "function_call_output")
    ]
    assert second[0] == said[-1]
    seen = tool_result("a", second[-1]["output"])
    sent = [system(instructions), second[0], {"role": "assistant", "tool_calls": [LOOK]}, seen]
    assert second[-1]["output"].startswith("seen\nseen")
    assert MOST - 20 < FRAMING.request(sent, COUNT, tools) <= MOST
    assert len(result.to_input_list()) == len(said) + 4


def test_openai_agents_reasoning_that_can_be_read_is_counted() -> None:
    agents = pytest.importorskip("agents")
    from agents.run import CallModelData, ModelInputData

    def sent(words: int) -> list[Any]:
        thought = [{"type": "summary_text", "text": "so " * words}]
        said: list[Any] = [user("Why?"), {"type": "reasoning", "id": "r", "summary": thought}]
        said += [assistant("Thus."), user("And now?")]
        data = CallModelData(ModelInputData(said, None), agents.Agent(name="a"), None)
        return list(run(openai_agents.input_filter(MOST)(data)).input)

    assert [each.get("type") for each in sent(300)] == [None, "reasoning", None, None]
    assert [each["content"] for each in sent(500)] == ["And now?"]


def test_openai_agents_images_are_counted() -> None:
    agents = pytest.importorskip("agents")
    from agents.run import CallModelData, ModelInputData

    picture = {"type": "input_image", "image_url": "https://one.example/ada.png", "detail": "high"}
    asked = user([{"type": "input_text", "text": "What is this?"}, picture])
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    text = {"type": "input_text", "text": "seen\n" * 500}
    seen = {"type": "function_call_output", "call_id": "a", "output": [text, picture]}

    def sent(said: list[Any], most: int) -> Any:
        given = ModelInputData(input=said, instructions=None)
        data = CallModelData(model_data=given, agent=agents.Agent(name="a"), context=None)
        return run(openai_agents.input_filter(most)(data)).input

    assert sent([asked, asked], 1_600) == [asked, asked]
    assert sent([asked, asked], 1_500) == [asked]
    *before, cut = sent([asked, call, seen], 1_800)
    assert before == [asked, call]
    assert [part["type"] for part in cut["output"]] == ["input_text", "input_image"]
    assert cut["output"][0]["text"].startswith("seen\nseen")
    assert cut["output"][0] != text
    assert cut["output"][1] == picture


# pydantic-ai


def test_pydantic_ai_a_processor_leaves_in_the_history_what_fits() -> None:
    ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        UserPromptPart,
    )
    from pydantic_ai.models.function import FunctionModel

    heard: list[list[Any]] = []

    def answer(messages: list[Any], _: Any) -> Any:
        heard.append(messages)
        return ModelResponse(
            [TextPart("Done.") if len(heard) > 1 else ToolCallPart("look", {"at": "it"}, "a")]
        )

    said = chat(20)[1:-1]
    history = [
        ModelRequest([UserPromptPart(each["content"])])
        if each["role"] == "user"
        else ModelResponse([TextPart(each["content"])])
        for each in said
    ]
    kept = pydantic_ai.history_processor(MOST)
    agent = agent_of(ai, FunctionModel(answer), kept, instructions="Be brief.")

    @agent.tool_plain  # type: ignore[untyped-decorator,unused-ignore]
    def look(at: str) -> str:
        """Look at something."""
        return "seen\n" * 500

    assert run(agent.run("And now?", message_history=history)).output == "Done."
    first, second = heard
    fitting = bk.trim(chat(20), MOST)
    texts = [part.content for message in first for part in message.parts]
    assert texts == [each["content"] for each in fitting[1:]]
    assert first[0] is history[-len(first) + 1]
    assert [message.kind for message in second] == ["request", "response", "request"]
    assert second[0].parts[0].content == "And now?"
    assert second[-1].parts[0].content.startswith("seen\nseen")
    seen = tool_result("a", second[-1].parts[0].content)
    sent = [fitting[0], fitting[-1], {"role": "assistant", "tool_calls": [LOOK]}, seen]
    assert MOST - 20 < FRAMING.request(sent, COUNT) <= MOST


def native(messages: Any, name: str) -> Any:
    """Return the class of a provider's own tools, as the version that is installed calls it."""
    return getattr(messages, f"Native{name}", None) or getattr(messages, f"Builtin{name}")


def test_pydantic_ai_every_part_is_counted() -> None:
    messages = pytest.importorskip("pydantic_ai.messages")
    binary = messages.BinaryContent(LONG.encode(), media_type="text/plain")
    asked = [messages.ModelRequest([messages.UserPromptPart(text)]) for text in ("Why?", "Now?")]
    for part in (
        messages.ThinkingPart(LONG, signature=DATA),
        native(messages, "ToolCallPart")("code", {"code": LONG}, "a"),
        native(messages, "ToolReturnPart")("search", {"found": LONG}, "a"),
    ):
        answer = messages.ModelResponse([part, messages.TextPart("Thus.")])
        said = [asked[0], answer, asked[1]]
        assert run(pydantic_ai.history_processor(MOST)(said)) == [asked[1]]
        assert run(pydantic_ai.history_processor(MOST * 9)(said)) == said
    read = messages.ModelRequest([messages.UserPromptPart(["Read.", binary])])
    assert run(pydantic_ai.history_processor(MOST)([read, asked[1]])) == [asked[1]]


def test_pydantic_ai_a_file_is_sent_with_a_warning() -> None:
    messages = pytest.importorskip("pydantic_ai.messages")
    pdf = messages.BinaryContent(b"%PDF" * 99, media_type="application/pdf")
    link = messages.DocumentUrl("https://one.example/ada")  # of an unknown type
    call = messages.ModelResponse([messages.ToolCallPart("look", {}, "a")])
    result = messages.ModelRequest([messages.ToolReturnPart("look", ["seen", pdf], "a")])
    asked = messages.ModelRequest([messages.UserPromptPart("And now?")])
    for said in (
        [messages.ModelRequest([messages.UserPromptPart(["Read.", pdf])]), asked],
        [messages.ModelRequest([messages.UserPromptPart(["Read.", link])]), asked],
        [asked, call, result],
    ):
        with pytest.warns(UserWarning, match="Only the provider can count"):
            assert run(pydantic_ai.history_processor(MOST)(said)) == said


@pytest.mark.parametrize("nothing", [None, ""])
def test_pydantic_ai_an_empty_result_is_a_result(nothing: Any) -> None:
    ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.test import TestModel

    agent = agent_of(ai, TestModel(custom_output_text="Done."), pydantic_ai.history_processor(MOST))

    @agent.tool_plain  # type: ignore[untyped-decorator,unused-ignore]
    def note() -> Any:
        """Note it."""
        return nothing

    result = run(agent.run("Note it."))
    assert result.output == "Done."
    assert [message.kind for message in result.all_messages()] == [
        *("request", "response", "request", "response")
    ]


def test_pydantic_ai_one_picture_is_never_sent_for_another() -> None:
    messages = pytest.importorskip("pydantic_ai.messages")
    kept = pydantic_ai.history_processor(8_000, policies.SlidingWindow(3))
    links = [messages.ImageUrl(f"https://one.example/{name}.png") for name in ("ada", "bob")]
    for shown in (
        *links,
        *(messages.BinaryContent(data, media_type="image/png") for data in (b"ada", b"bob")),
    ):
        (sent,) = run(
            kept(
                [
                    messages.ModelRequest(
                        [messages.UserPromptPart(["What is in this picture?", shown])]
                    )
                ]
            )
        )
        assert sent.parts[0].content[1] is shown


def agent_of(ai: Any, model: Any, processor: Any, **more: Any) -> Any:
    """Make an agent, as the version that is installed wants its processors."""
    try:
        from pydantic_ai.capabilities import ProcessHistory
    except ImportError:
        return ai.Agent(model, history_processors=[processor], **more)
    return ai.Agent(model, capabilities=[ProcessHistory(processor)], **more)


def test_pydantic_ai_goes_on_where_the_processor_left_the_history() -> None:
    """What a processor returns is the history of the next request: the conversation is known by that too."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    budget, policy = (
        bk.presets.working_memory(1_000, output=200, history_floor=0),
        policies.TriggerTarget(),
    )
    kept = pydantic_ai.history_processor(budget, policy)
    said, history, found = chat(30)[1:], list[Any](), []
    for each in said:
        if each["role"] == "assistant":
            history.append(ModelResponse([TextPart(each["content"])]))
            continue
        history = run(kept([*history, ModelRequest([UserPromptPart(each["content"])])]))
        found.append([part.content for message in history for part in message.parts])
    wanted = by_hand(bk.Conversation(budget, policy), said)
    assert found == [[each["content"] for each in request] for request in wanted]


@pytest.mark.parametrize("counter", ["gpt-4o", "chars/4"])
def test_a_frameworks_own_objects_come_back_as_they_are_without_a_policy(counter: str) -> None:
    """No JSON holds them: a conversation that checks what can be saved never sees them."""
    natives = [object() for _ in chat(20)]
    messages = [
        Message({**raw, NATIVE: native}) for raw, native in zip(chat(20), natives, strict=True)
    ]
    sent = Keeper(MOST, counter=counter).fit(messages)
    assert 1 < len(sent) < len(messages)
    by_native = {id(native): raw for raw, native in zip(chat(20), natives, strict=True)}
    for raw in sent:
        assert raw["content"] == by_native[id(raw[NATIVE])]["content"]
    assert len(Keeper("working_memory", counter=counter, window=20_000).fit(messages)) == len(
        messages
    )
