"""Whatever a provider's messages hold, known or not, comes back as it went in, or is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import policies
from tests.provider_rules import RULES

Raw = dict[str, Any]
MODELS = {
    "chat": "gpt-5.4",
    "responses": "gpt-5.4",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "converse": "claude-sonnet-4-5",
}
PIXEL = "iVBORw0KGgo="
ASKED: Raw = {"role": "user", "content": "hello"}
SAID: Raw = {"role": "assistant", "content": "ok"}
SCHEMA: Raw = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


def items() -> dict[str, list[Raw]]:
    """List items of OpenAI Responses by type, each with the item that belongs to it."""
    pairs: dict[str, tuple[Raw, Raw]] = {
        "function_call": ({"name": "f", "arguments": "{}"}, {"output": "x"}),
        "custom_tool_call": ({"name": "f", "input": "hi"}, {"output": "x"}),
        "computer_call": (
            {"action": {"type": "wait"}},
            {"output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,"}},
        ),
        "shell_call": (
            {"action": {"commands": ["ls"]}},
            {"output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit"}}]},
        ),
        "local_shell_call": ({"action": {"type": "exec", "command": ["ls"]}}, {"output": "{}"}),
        "apply_patch_call": (
            {"status": "completed", "operation": {"type": "create_file", "path": "a"}},
            {"status": "completed"},
        ),
        "unknown_call": ({"anything": 1}, {"something": {"else": 2}}),
    }
    listed: dict[str, list[Raw]] = {}
    for kind, (call, result) in pairs.items():
        asked = {"type": kind, "call_id": "c1", **call}
        listed[kind] = [asked, {"type": f"{kind}_output", "call_id": "c1", **result}]
    for where, call_id in (("client", "c1"), ("server", None)):
        search = {"type": "tool_search_call", "call_id": call_id, "execution": where}
        found = {"type": "tool_search_output", "call_id": call_id, "execution": where}
        listed[f"tool search of the {where}"] = [
            {**search, "arguments": {"query": "x"}},
            {**found, "tools": [{**SCHEMA, "defer_loading": True}]},
        ]
    request = {"type": "mcp_approval_request", "id": "q", "name": "n", "arguments": "{}"}
    response = {"type": "mcp_approval_response", "approval_request_id": "q", "approve": True}
    listed["approval"] = [request, response]
    alone: list[Raw] = [
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}},
        {"type": "file_search_call", "id": "w", "queries": ["x"], "results": None},
        {"type": "image_generation_call", "id": "w", "result": PIXEL},
        {"type": "code_interpreter_call", "id": "w", "code": "1", "outputs": None},
        {"type": "mcp_call", "id": "w", "name": "n", "arguments": "{}", "output": "x"},
        {"type": "mcp_list_tools", "id": "w", "server_label": "s", "tools": []},
        {"type": "compaction", "id": "w", "encrypted_content": "x"},
        {"type": "item_reference", "id": "w"},
        {"type": "additional_tools", "role": "developer", "tools": [SCHEMA]},
        {"type": "message", "role": "user", "content": [{"type": "unknown", "x": 1}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "content": "I look.", "phase": "commentary"},
        {"type": "unknown", "id": "w", "value": {"content": "x"}},
    ]
    return listed | {str(item.get("type", item)): [item] for item in alone}


BLOCKS: list[Raw] = [
    {"type": "compaction", "content": "summary"},
    {"type": "compaction", "content": None},
    {"type": "container_upload", "file_id": "f"},
    {
        "type": "search_result",
        "source": "u",
        "title": "t",
        "content": [{"type": "text", "text": "x"}],
    },
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    {"type": "unknown", "content": "hello", "x": {"y": 1}},
    {"type": "unknown", "content": [{"type": "text", "text": "a"}]},
    {"type": "unknown", "value": {"a": 1}},
]
PARTS: list[Raw] = [
    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
    {"text": "x", "thought": True},
    {"thoughtSignature": "s"},
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"toolCall": {"id": "z", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
    {"unknown": {"text": "x"}},
]
CONVERSE: list[Raw] = [
    {"document": {"format": "txt", "name": "d", "source": {"content": [{"text": "x"}]}}},
    {"guardContent": {"text": {"text": "x"}}},
    {"cachePoint": {"type": "default", "ttl": "1h"}},
    {"reasoningContent": {"redactedContent": "QUJD"}},
    {"citationsContent": {"content": [{"text": "x"}], "citations": []}},
    {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
    {"unknown": {"text": "x"}},
]
OLLAMA: list[Raw] = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": name, "arguments": {"a": 1}}} for name in ("f", "g")],
    },
    {"role": "tool", "tool_name": "f", "content": "x"},
    {"role": "tool", "tool_name": "g", "content": "y"},
]
# Thinking of Mistral and of Cohere, which looks like Anthropic's.
CALLS = [{"id": "aB0000007", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
RESULT: Raw = {"role": "tool", "tool_call_id": "aB0000007", "content": "x"}
DOCUMENT = {"type": "document", "document": {"id": "d", "data": '{"a": 1}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
THINKING: list[list[Raw]] = []
for _thinking in ("hm", [{"type": "text", "text": "hm"}]):
    _thought: Raw = {"type": "thinking", "thinking": _thinking}
    for _content in ([_thought], [_thought, {"type": "text", "text": "ok"}]):
        _answer: Raw = {"role": "assistant", "content": _content}
        _cited: Raw = {**_answer, "citations": [{"start": 0, "end": 1, "text": "o"}]}
        _planned: Raw = {"role": "assistant", "tool_plan": "I look.", "tool_calls": CALLS}
        THINKING += [
            [_answer],
            [_cited, ASKED, _answer],
            [{**_answer, "tool_calls": CALLS}, RESULT, _cited],
            [{**_answer, **_planned}, {**RESULT, "content": [DOCUMENT]}, _answer],
            [_planned, RESULT, _answer, {"role": "user", "content": [IMAGE]}, _cited],
            [{"role": "system", "content": "Be brief."}, ASKED, _planned, RESULT, _answer],
        ]
CHAT: list[list[Raw]] = [
    *THINKING,
    [{"role": "user", "content": [{"type": "unknown", "content": "x", "z": 1}]}],
    [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "u"}}]}],
    [{"role": "user", "content": [{"type": "unknown", "z": [1]}, {"type": "text", "text": "a"}]}],
    OLLAMA,
]


def chats() -> list[Any]:
    """List conversations by form, each with something special between two questions."""
    cases: list[Any] = [
        pytest.param("responses", [ASKED, *special, ASKED], id=name)
        for name, special in items().items()
    ]
    for role in ("user", "assistant"):
        for block in BLOCKS:
            content = [block, {"type": "text", "text": "a"}]
            cases.append(("anthropic", [ASKED, {"role": role, "content": content}, ASKED]))
            cases.append(("anthropic", [ASKED, {"role": role, "content": [block]}, SAID, ASKED]))
        for form, field, blocks in (("gemini", "parts", PARTS), ("converse", "content", CONVERSE)):
            name = "model" if (form, role) == ("gemini", "assistant") else role
            user, other = ({"role": who, field: [{"text": "hi"}]} for who in ("user", name))
            between = [user] if role == "assistant" else []
            for block in blocks:
                special = {**other, field: [block, {"text": "a"}]}
                cases.append((form, [*between, special, *between]))
    return [*cases, *(("chat", [ASKED, *special, ASKED]) for special in CHAT)]


@pytest.mark.parametrize(("form", "messages"), chats())
def test_a_budget_that_cuts_nothing_changes_nothing(form: Any, messages: list[Raw]) -> None:
    before = json.dumps(messages)
    model = MODELS[form]
    assert bk.trim(messages, 100_000, model, form=form) == messages
    for added in ([messages], [[message] for message in messages]):
        talk = bk.Conversation(bk.presets.working_memory(100_000), model=model, form=form)
        for part in added:
            talk.add(*part)
        assert talk.request().messages == messages
        assert bk.Conversation.from_json(talk.to_json()).request().messages == messages
    assert json.dumps(messages) == before


@pytest.mark.parametrize(
    ("form", "messages"), [case for case in chats() if getattr(case, "id", "") != "unknown"]
)
def test_the_form_of_a_special_block_needs_no_hint(form: str, messages: list[Raw]) -> None:
    model = MODELS[form]
    assert bk.trim(messages, 100_000, model) == messages
    talk = bk.Conversation(bk.presets.working_memory(100_000), model=model)
    for message in messages:
        talk.add(message)
    assert talk.request().messages == messages
    sections: dict[str, Any] = {"history": messages[:-1], "user": messages[-1:]}
    built = bk.build(bk.presets.working_memory(100_000), model=model, **sections)
    assert built.messages == messages


def test_an_unknown_item_without_a_form_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'brand_new'.*form="):
        bk.trim([ASKED, {"type": "brand_new", "id": "1"}], 1_000)


@pytest.mark.parametrize("policy", [policies.DropToolResults(50), policies.CapResults(60)])
def test_a_result_that_has_no_shorter_form_is_sent_whole_or_not_at_all(policy: Any) -> None:
    """An output of a shell became a string, and an output of a tool search an empty function's."""
    long = {**SCHEMA, "description": "words " * 500}
    search: list[Raw] = [
        {"type": "tool_search_call", "call_id": "c1", "arguments": {}},
        {"type": "tool_search_output", "call_id": "c1", "tools": [long]},
    ]
    shell: list[Raw] = [
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "x " * 900}]},
    ]
    messages: list[Raw] = [ASKED, *search, *shell, ASKED, SAID, ASKED]
    talk = bk.Conversation(bk.presets.working_memory(100_000), policy, model="gpt-5.4")
    talk.add(*messages)
    assert talk.request().messages == messages
    for limit in (3_000, 1_500, 1_000, 100):
        fitting = bk.trim(messages, limit, "gpt-5.4")
        assert all(message in messages for message in fitting)
        assert [*RULES["responses"](fitting)] == []
        for first, second in (search, shell):
            assert (first in fitting) == (second in fitting)


def test_a_record_with_an_unanswered_call_is_sent_whole_or_not_at_all() -> None:
    """A search of the provider in the answer was answered, so the answer went out with its open call."""
    search: list[Raw] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]
    answer = {"role": "assistant", "content": search}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    talk = bk.Conversation(bk.presets.working_memory(100_000), model=MODELS["anthropic"])
    talk.add(ASKED, answer, ASKED)
    assert talk.request().messages == [ASKED, ASKED]
    talk.add({"role": "user", "content": [result]})
    assert talk.request().messages == [ASKED, answer, {"role": "user", "content": [result]}, ASKED]


def test_a_result_of_gemini_answers_the_newest_call() -> None:
    """A call that nobody answered took the result of the next one, and every later pair was shifted by one."""
    user = {"role": "user", "parts": [{"text": "hi"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    answer = {"role": "model", "parts": [{"text": "so"}]}
    talk = bk.Conversation(bk.presets.working_memory(100_000), model=MODELS["gemini"])
    talk.add(user, call, user)
    assert talk.request().messages == [user, user]
    talk.add(call, result)
    assert talk.request().messages == [user, user, call, result]
    talk.add(answer, user, call, result)
    later = [user, user, call, result, answer, user, call, result]
    assert talk.request().messages == later
    assert bk.trim([user, call, *later[1:]], 100_000, MODELS["gemini"]) == later


def test_a_late_result_is_sent_after_its_call_and_a_second_one_is_not_sent() -> None:
    function = {"name": "f", "arguments": "{}"}
    call = {"role": "assistant", "content": None}
    call["tool_calls"] = [{"id": "1", "type": "function", "function": function}]  # type: ignore[assignment]
    result = {"role": "tool", "tool_call_id": "1", "content": "late"}
    talk = bk.Conversation(bk.presets.working_memory(100_000), model="gpt-5.4")
    talk.add(ASKED, call, {"role": "user", "content": "and?"}, result, result)
    request = talk.request()
    assert request.messages == [ASKED, call, result, {"role": "user", "content": "and?"}]
    assert [left.why for left in request.left] == ["unanswered"]


def test_a_trimmed_list_leaves_only_what_is_not_sent_when_a_result_is_late() -> None:
    """Every message before the late result was listed as dropped, though it was sent."""
    first, second, last = ({"role": "user", "content": text} for text in ("one", "two", "three"))
    call: Raw = {"role": "assistant", "content": None, "tool_calls": CALLS}
    messages = [first, call, second, RESULT, SAID, last]
    assert bk.trim(messages, 1_000) == [first, call, RESULT, second, SAID, last]
    assert bk.trim(messages, 1_000).left == ()
    fitting = bk.trim(messages, 20)
    assert [*fitting] == [second, SAID, last]
    assert [left.message for left in fitting.left] == [first, call, RESULT]

    long = {**RESULT, "content": "word " * 500}
    messages = [first, call, second, long, SAID, last]
    fitting = bk.trim(messages, 1_000, policy=policies.CapResults(60))
    assert [message["role"] for message in fitting][1:4] == ["assistant", "tool", "user"]
    assert len(fitting) == len(messages)
    assert [(left.why, left.message) for left in fitting.left] == [("shortened", long)]


def test_a_conversation_with_summaries_can_be_loaded() -> None:
    talk = bk.Conversation("chat", "summarise", "gpt-5.4", window=3_000, summarise=lambda _: "so")
    for turn in range(20):
        talk.add({"role": "user", "content": f"{turn} " + "word " * 100})
        talk.request()
        talk.add({"role": "assistant", "content": "word " * 60})
        talk = bk.Conversation.from_json(talk.to_json(), summarise=lambda _: "so")


PICTURE = f"data:image/png;base64,{PIXEL}"
ITEMS: list[Raw] = [
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": PICTURE},
        ],
    },
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [{"type": "input_image", "image_url": PICTURE}],
    },
    {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}],
    },
    {"type": "computer_call", "call_id": "c2", "action": {"type": "wait"}},
    {
        "type": "computer_call_output",
        "call_id": "c2",
        "output": {"type": "computer_screenshot", "image_url": PICTURE},
    },
    ASKED,
]
SHOWN: list[Raw] = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {**IMAGE, "image_url": {"url": PICTURE}}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
    {"role": "assistant", "content": None, "refusal": "I refuse."},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I refuse."}]},
    ASKED,
    {"role": "assistant", "tool_plan": "I look.", "tool_calls": CALLS},
    {**RESULT, "content": [{**IMAGE, "image_url": {"url": PICTURE}}]},
    ASKED,
]


@pytest.mark.parametrize("form", ["chat", "anthropic", "gemini", "converse"])
def test_the_texts_and_images_of_items_are_converted(form: Any) -> None:
    """Their types went out to other providers, a screenshot lost its bytes, and an empty text stood by an image."""
    fitting = bk.trim(ITEMS, 100_000, "gpt-5.4", form=form)
    written = json.dumps(fitting)
    assert not any(name in written for name in ("input_", "output_", "annotations", '"text": ""'))
    assert written.count(PIXEL) == 3
    assert "hi" in written and "ok" in written
    assert fitting.left == ()


@pytest.mark.parametrize("form", ["responses", "anthropic", "gemini", "converse"])
def test_refusals_plans_and_images_of_a_chat_are_converted(form: Any) -> None:
    written = json.dumps(bk.trim(SHOWN, 100_000, "gpt-5.4", form=form))
    assert written.count("I refuse.") == 2
    assert not any(name in written for name in ('"refusal": null', 'image_url": {', '"text": ""'))
    assert written.count("I look.") == 1
    assert written.count(PIXEL) == 2
    if form == "responses":
        assert '"type": "text"' not in written
