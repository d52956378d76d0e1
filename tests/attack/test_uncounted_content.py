"""Content that a request sends beside its messages: it is counted, or named and the gate stays closed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.requests.reading.tools import has_more_pages
from tests.messages import assistant, calling, tool_result, user

LONG = " ".join(f"word{number}" for number in range(400))
QUESTION: list[Any] = [user("Why?")]
CHAT: dict[str, Any] = {"model": "gpt-4o", "messages": QUESTION}
RESPONSES = {"input": QUESTION}
CLAUDE = {"model": "claude-sonnet-4-5", "messages": QUESTION, "max_tokens": 10}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}
CONVERSE = {"messages": [user([{"text": "Why?"}])], "inferenceConfig": {"maxTokens": 10}}
TYPED = {"type": "text", "text": "Why?"}
TOOL = {"name": "f", "description": "Look", "input_schema": {"type": "object"}}
TEXT = {"type": "string", "description": LONG}
SCHEMA = {"type": "object", "properties": {"a": TEXT}}
OPEN_SCHEMA = {"type": "object", "additionalProperties": TEXT}
CALL = calling({"id": "1", "fn": {"arguments": LONG}})
RESULT = tool_result("1", "So.")
BUDGET = bk.Budget(
    4_000,
    [bk.Reserve("output", 500, serves="output")],
    [bk.Allocation("system", 200, required=True), bk.Allocation("history", keep="newest")],
    remainder="history",
    roles={
        "system": "system",
        "tools": "system",
        "user": "history",
        "assistant": "history",
        "current": "history",
    },
)


def function(**fields: Any) -> list[dict[str, Any]]:
    """Return a list of one tool in OpenAI's format."""
    return [{"type": "function", "function": {"name": "f", **fields}}]


#: Each body with the exit code of the gate and the beginning of a line that it prints.
BODIES: dict[str, tuple[dict[str, Any], int, str]] = {
    "only messages": (CHAT, 0, ""),
    "schema in Ollama's format": ({**CHAT, "format": {"type": "object"}}, 0, ""),
    "previous response": ({**RESPONSES, "previous_response_id": "r"}, 1, "estimate:"),
    "stored conversation": ({**RESPONSES, "conversation": "c"}, 1, "estimate:"),
    "stored cache": ({**GEMINI, "cachedContent": "c"}, 1, "estimate:"),
    "prediction": ({**CHAT, "prediction": {"type": "content", "content": "x"}}, 1, "estimate:"),
    "web search": ({**CHAT, "web_search_options": {}}, 1, "estimate:"),
    "field of a part": ({**CHAT, "messages": [user([{**TYPED, "contnet": "x"}])]}, 1, "estimate:"),
    "field for the model": ({**CONVERSE, "additionalModelRequestFields": {"system": LONG}}, 1, "estimate:"),
    "more pages": ({**CHAT, "has_more": True}, 1, "estimate:"),
    "MCP servers": ({**CLAUDE, "mcp_servers": [{"name": "a"}]}, 1, "estimate:"),
    "examples of a tool": ({**CLAUDE, "tools": [{**TOOL, "input_examples": [{"city": LONG}]}]}, 1, "estimate:"),
    "answer of a function": (
        {
            **GEMINI,
            "tools": [{"functionDeclarations": [{"name": "f", "response": {"description": LONG}}]}],
        },
        1,
        "estimate:",
    ),
    "tools for the model": (
        {**CONVERSE, "additionalModelRequestFields": {"tools": [{**TOOL, "description": LONG}]}},
        1,
        "estimate:",
    ),
    "text beside the properties of a tool": ({**CHAT, "tools": function(parameters=OPEN_SCHEMA)}, 1, "estimate:"),
    "answer schema of Anthropic": ({**CLAUDE, "output_format": {"type": "json_schema", "schema": SCHEMA}}, 1, "cap:"),
    "answer schema of OpenAI": (
        {
            **CHAT,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": SCHEMA},
            },
        },
        1,
        "cap:",
    ),
    "answer schema of Responses": (
        {**RESPONSES, "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
        1,
        "cap:",
    ),
    "variables of a stored prompt": (
        {
            **CONVERSE,
            "modelId": "arn:aws:bedrock:us-east-1:123456789012:prompt/ABC",
            "promptVariables": {"a": {"text": LONG}},
        },
        2,
        "Error: Unknown key 'promptVariables'",
    ),
    "input beside messages": ({**CHAT, "input": LONG}, 2, "Error: Unknown key 'input'"),
    "contents beside messages": ({**CHAT, "contents": LONG}, 2, "Error: Unknown key 'contents'"),
    "body of an SDK": ({**CHAT, "extra_body": {"prompt": LONG}}, 2, "Error: Unknown key 'extra_body'"),
    "misspelt key of a tool": ({**CHAT, "tools": function(Description=LONG)}, 2, "Error: Unknown key 'Description'"),
    "call without a function": (
        {"model": "gpt-4o", "messages": [*QUESTION, CALL, RESULT, *QUESTION]},
        2,
        "Error: A tool call without a function",
    ),
    "unknown key of a message": (
        {**CHAT, "messages": [*QUESTION, {"role": "user", "text_of_it": LONG}], "format": "json"},
        2,
        "Error: No 'content' in message 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code", "line"), BODIES.values(), ids=BODIES)
@pytest.mark.filterwarnings("ignore")
def test_the_gate_reads_everything_in_a_recorded_request(
    body: dict[str, Any], code: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps(body), encoding="utf-8")
    budget = tmp_path / "budget.json"
    budget.write_text(bk.state.to_json(BUDGET))
    options = ["--model", "gpt-4o", "--counter", "o200k_base"]
    assert run(["check", "-b", str(budget), str(request), *options]) == code
    shown = capsys.readouterr()
    assert re.search(f"^{re.escape(line)}", shown.out + shown.err, re.MULTILINE)


@pytest.mark.parametrize("key", ["body", "contents", "input", "message"])
def test_a_message_without_content_is_refused(key: str) -> None:
    """Its text, under another key, counted nothing."""
    trace = bk.Trace("odd", (bk.Message({"role": "user", key: "word " * 5_000}),))
    with pytest.raises(ValueError, match="No 'content' in message 1 of odd"):
        check(BUDGET, traces=[trace], counter="o200k_base")


def test_what_google_genai_sends_is_counted() -> None:
    """Tools under "config", and a cache in snake case, counted nothing."""
    body = {"model": "gemini-2.5-flash", **GEMINI}
    tools = [{"function_declarations": [{"name": "ping", "description": "Look. " * 500}]}]
    inside = bk.count_request({**body, "config": {"tools": tools}})
    assert inside.tokens == bk.count_request({**body, "tools": tools}).tokens > 500
    for state in ({"cached_content": "c"}, {"config": {"cached_content": "c"}}):
        assert bk.count_request({**body, **state}).uncounted == ("server state (cachedContent)",)


def test_a_cursor_beside_the_result_means_more_pages() -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "ping"}]}}
    assert has_more_pages({**answer, "nextCursor": "x"})
    assert not has_more_pages(answer)


@pytest.mark.parametrize(
    "part",
    [
        {"document": {"format": "txt", "name": "n", "context": LONG, "source": {"text": "So."}}},
        {"searchResult": {"source": LONG, "title": "t", "content": [{"text": "So."}]}},
        {"type": "search_result", "source": LONG, "title": "t", "content": [{"type": "text", "text": "So."}]},
    ],
    ids=["document", "searchResult", "search_result"],
)  # fmt: skip
def test_the_context_and_the_source_of_a_document_are_counted(part: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 10}
    if "type" not in part:
        body = {"modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0", "inferenceConfig": {}}
    why = {"type": "text", "text": "Why?"} if "type" in part else {"text": "Why?"}

    def tokens(part: Any) -> int:
        messages = [user([part, why])]
        return bk.count_request({**body, "messages": messages}).tokens

    assert tokens(part) > 500 + tokens(json.loads(json.dumps(part).replace(LONG, "x")))


CALLED: dict[str, Any] = {"id": "1", "type": "function"}
CALLED["function"] = {"name": "f", "arguments": "{}"}
REASONING = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text"}]}
REASONING["content"][0]["text"] = LONG  # type: ignore[index]
SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}]}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
SAID = assistant("So.")


def answer(**fields: Any) -> list[dict[str, Any]]:
    """Return a conversation in OpenAI's chat format with one answer."""
    return [*QUESTION, {**SAID, **fields}, *QUESTION]


#: Each body with thinking, and the words that close the gate; none where the provider is known to drop it: OpenAI reads
#: no reasoning again before a text (recorded calls, billing.md of the reference, rule 5).
THINKING: dict[str, tuple[dict[str, Any], str]] = {
    "chat before a text": ({**CHAT, "messages": answer(reasoning_content=LONG)}, ""),
    "chat before a call": (
        {**CHAT, "messages": answer(reasoning=LONG, tool_calls=[CALLED])},
        "thinking in the history",
    ),
    "chat of another program": (
        {**CHAT, "messages": answer(thinking_blocks=[{"thinking": LONG}])},
        "thinking in the history",
    ),
    "chat of an unknown model": (
        {**CHAT, "model": "mine", "messages": answer(reasoning_content=LONG)},
        "thinking in the history",
    ),
    "responses, summary": (
        {**RESPONSES, "model": "gpt-5", "input": [*QUESTION, SUMMARY, SAID]},
        "",
    ),
    "responses, text": (
        {**RESPONSES, "model": "gpt-5", "input": [*QUESTION, REASONING, SAID, *QUESTION]},
        "thinking in the history",
    ),
    "responses, sealed": (
        {**RESPONSES, "model": "gpt-5", "input": [*QUESTION, SEALED, SAID, *QUESTION]},
        "encrypted reasoning",
    ),
    "anthropic": (
        {
            **CLAUDE,
            "messages": answer(content=[{"type": "thinking", "thinking": LONG, "signature": "x"}]),
        },
        "thinking in the history",
    ),
    "gemini": (
        {
            "model": "gemini-2.5-flash",
            "contents": [
                *GEMINI["contents"],
                {"role": "model", "parts": [{"text": LONG, "thought": True}, {"text": "So."}]},
                *GEMINI["contents"],
            ],
        },
        "thinking in the history",
    ),
    "gemini, sealed": (
        {
            "model": "gemini-2.5-flash",
            "contents": [
                *GEMINI["contents"],
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "x"}],
                },
            ],
        },
        "reasoning before a call",
    ),
    "converse": (
        {
            **CONVERSE,
            "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "messages": [
                *CONVERSE["messages"],
                assistant([{"reasoningContent": {"reasoningText": {"text": LONG}}}]),
            ],
        },
        "thinking in the history",
    ),
}


@pytest.mark.parametrize(("body", "words"), THINKING.values(), ids=THINKING)
@pytest.mark.parametrize("model", ["its own", None])
@pytest.mark.filterwarnings("ignore")
def test_thinking_that_is_not_counted_closes_the_gate(
    body: dict[str, Any], words: str, model: str | None
) -> None:
    """It counted nothing in a conversation, and the gate was open."""
    assert bk.count_request(body).uncounted[-1:] == ((words,) if words else ())
    found = check(
        BUDGET,
        traces=[bk.load_trace(body)],
        model=model and str(body.get("model") or body.get("modelId")),
        window=4_000,
        counter="o200k_base",
    )
    said = " ".join(str(failure) for failure in found.failures)
    assert ("cannot be counted" in said, words in said) == (bool(words), True)


def test_thinking_for_an_unknown_provider_closes_the_gate() -> None:
    """Without a model, nobody knows whether it is dropped."""
    trace = bk.load_trace({"messages": answer(reasoning_content=LONG)})
    found = check(BUDGET, traces=[trace], counter="o200k_base")
    assert "thinking in the history cannot be counted" in str(found)


def in_anthropic(part: dict[str, Any]) -> dict[str, Any]:
    return {**CLAUDE, "messages": [user([part])]}


def in_responses(*items: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "input": [*items]}


def in_gemini(part: dict[str, Any]) -> dict[str, Any]:
    return {**GEMINI, "contents": [{"role": "user", "parts": [part]}]}


def in_converse(part: dict[str, Any]) -> dict[str, Any]:
    return {**CONVERSE, "messages": [user([part])]}


CALLED = {"type": "tool_use", "id": "1", "name": "f", "input": {"contnet": "x"}}
ANSWERED = {"type": "tool_result", "tool_use_id": "1", "content": [TYPED]}
ITEM = {"type": "function_call_output", "call_id": "1", "output": "So."}
FUNCTION = {"name": "f", "args": {"contnet": "x"}}
RETURNED = {"toolUseId": "1", "content": [{"text": "So."}]}
ODD = {"contnet": LONG}
#: Each pair: a body whose parts have only known fields, and the same body with a further one.
PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "chat": (
        {**CHAT, "messages": [user([{**TYPED, "cache_control": {"type": "ephemeral"}}])]},
        {**CHAT, "messages": [user([{**TYPED, **ODD}])]},
    ),
    "Anthropic": (in_anthropic({**TYPED, "citations": [{"cited_text": "x"}]}), in_anthropic({**TYPED, **ODD})),
    "system": ({**CLAUDE, "system": [TYPED]}, {**CLAUDE, "system": [{**TYPED, **ODD}]}),
    "call": (in_anthropic(CALLED), in_anthropic({**CALLED, **ODD})),
    "result": (in_anthropic(ANSWERED), in_anthropic({**ANSWERED, "content": [{**TYPED, **ODD}]})),
    "Responses": (
        in_responses(user([{"type": "input_text", "text": "Why?"}])),
        in_responses(user([{"type": "input_text", "text": "Why?", **ODD}])),
    ),
    "item": (in_responses({**ITEM, "status": "completed"}), in_responses({**ITEM, **ODD})),
    "Gemini": (in_gemini({"text": "Why?", "thought": False}), in_gemini({"text": "Why?", **ODD})),
    "function": (in_gemini({"functionCall": FUNCTION}), in_gemini({"functionCall": {**FUNCTION, **ODD}})),
    "instruction": (
        {**GEMINI, "systemInstruction": {"parts": [{"text": "Be brief."}]}},
        {**GEMINI, "systemInstruction": {"parts": [{"text": "Be brief.", **ODD}]}},
    ),
    "Converse": (in_converse({"text": "Why?"}), in_converse({"text": "Why?", **ODD})),
    "Converse result": (
        in_converse({"toolResult": {**RETURNED, "status": "success"}}),
        in_converse({"toolResult": {**RETURNED, **ODD}}),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("known", "odd"), PARTS.values(), ids=PARTS)
def test_an_unknown_field_of_a_part_is_named(known: dict[str, Any], odd: dict[str, Any]) -> None:
    """In 0.3.0 its text counted nothing."""
    assert not bk.count_request(known).uncounted
    assert bk.count_request(odd).uncounted == ("part field contnet",)


def test_settings_of_a_model_in_converse_are_named_unless_known() -> None:
    settings = {"top_k": 5, "reasoning_config": {"type": "enabled", "budget_tokens": 1_024}}
    body = {**CONVERSE, "modelId": "anthropic.claude-sonnet-4-5"}
    assert not bk.count_request({**body, "additionalModelRequestFields": settings}).uncounted
    counted = bk.count_request({**body, "additionalModelRequestFields": {"system": LONG}})
    assert counted.uncounted == ("model field system",)
