"""Rules of OpenAI's bill that recorded calls have shown since 0.2.0, each on the smallest request that shows it.

On 0.2.0 every one of these numbers is another.
"""

from typing import Any

import pytest

import budgetkit as bk
from budgetkit.requests import count_answer, count_request, read_request
from budgetkit.requests.billing.openai import namespace, schema_block
from tests.messages import assistant, tool_result, user

USER = user("Is it up?")


def tool(description: str = "Look", **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": "ping", "description": description, "parameters": parameters},
    }


def chat(model: str = "gpt-4o", **body: Any) -> int:
    return count_request({"model": model, "messages": [USER], **body}).tokens


def responses(model: str = "gpt-4o", **body: Any) -> int:
    body.setdefault("input", [user("Is it up?")])
    return count_request({"model": model, **body}).tokens


def test_a_description_is_stripped_at_both_ends() -> None:
    lines = namespace([tool("\n  Look\n\n  twice\n\n")]).splitlines()
    assert lines[2:5] == ["// Look", "//", "// twice"]
    assert namespace([tool(" Look\n")]) == namespace([tool("Look")])


def test_a_format_is_shown_only_of_a_text() -> None:
    number = {"type": "integer", "format": "uint8"}
    text = {"type": "string", "format": "date"}
    assert "format" not in namespace([tool(age=number)])
    assert "// format: date" in namespace([tool(day=text)])
    block = schema_block(
        {"name": "R", "schema": {"properties": {"age": number, "day": text, "format": number}}}
    )
    assert block.count('"format":') == 2, "that of the text, and the property of that name"


def test_types_with_nothing_beside_them_stand_on_one_line() -> None:
    assert "name?: string | null }" in namespace([tool(name={"type": ["string", "null"]})])
    choices = [{"type": "string"}, {"type": "null"}]
    assert "name?: string | null }" in namespace([tool(name={"anyOf": choices})])
    assert "\n | string\n | null" in namespace(
        [tool(name={"anyOf": choices, "description": "Who"})]
    )
    assert " | integer" not in namespace(
        [tool(age={"type": ["integer", "null"], "format": "uint8"})]
    )
    assert "\n | number // format: uint8\n" in namespace(
        [tool(age={"type": ["integer", "null"], "format": "uint8"})]
    )


def test_on_responses_some_tool_costs_what_a_forced_one_costs_where_there_is_only_one() -> None:
    one = [{"type": "function", **tool()["function"]}]
    forced = {"type": "function", "name": "ping"}
    free = responses(tools=one)
    assert (
        responses(tools=one, tool_choice="required")
        == responses(tools=one, tool_choice=forced)
        > free
    )
    two = [*one, {**one[0], "name": "pong"}]
    assert responses(tools=two, tool_choice="required") == responses(tools=two)


@pytest.mark.parametrize(
    ("model", "more"), [("gpt-4o", 1), ("gpt-3.5-turbo", 1), ("gpt-5-mini", 0), ("o3-mini", 0)]
)
def test_that_no_tool_may_be_called_costs_a_token_on_older_models(model: str, more: int) -> None:
    assert chat(model, tools=[tool()], tool_choice="none") == chat(model, tools=[tool()]) + more


def test_on_responses_an_answer_in_the_history_carries_no_schema_name() -> None:
    schema = {
        "type": "json_schema",
        "name": "Reply",
        "schema": {"type": "object", "properties": {}},
    }
    said = [user("Is it up?"), assistant("Yes")]
    plain = responses(input=said) - responses()
    assert (
        responses(input=said, text={"format": schema}) - responses(text={"format": schema}) == plain
    )


def test_o4_mini_is_billed_by_itself() -> None:
    assert chat("o4-mini", tools=[tool()]) == chat("o3-mini", tools=[tool()]) + 3
    call = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "ping", "arguments": "{}"}}],
    }
    result = tool_result("1", "up")
    calls = {"messages": [USER, call, result]}
    assert chat("o4-mini", **calls) == chat("o3-mini", **calls) + 6


def test_on_gpt_5_a_first_tool_without_a_description_costs_a_token_less() -> None:
    bare, said = tool(""), tool("Look")
    other = {**tool("Look"), "function": {**tool("Look")["function"], "name": "pong"}}
    first = chat("gpt-5", tools=[bare, other]) - chat("gpt-5", tools=[said, other])
    second = chat("gpt-5", tools=[other, bare]) - chat("gpt-5", tools=[other, said])
    assert first == second - 1


def test_a_router_bills_newer_models_as_on_responses_and_older_ones_as_in_chat() -> None:
    newer = chat("openai/gpt-5.2", tools=[tool()])
    assert newer == responses("gpt-5.2", tools=[{"type": "function", **tool()["function"]}])
    assert chat("openai/gpt-4o", tools=[tool()]) == chat("gpt-4o", tools=[tool()])
    assert chat("gpt-5.2", tools=[tool()]) > newer


def test_a_field_that_is_null_says_nothing() -> None:
    declared = {
        "codeExecution": None,
        "functionDeclarations": [{"name": "ping", "description": "Look"}],
    }
    body = {
        "model": "gemini-2.5-flash",
        "contents": [{"parts": [{"text": "Is it up?"}]}],
        "tools": [declared],
    }
    counted = read_request(body)
    assert counted.uncounted == ()
    assert [row["name"] for row in counted.tools] == ["ping"]


def test_what_only_the_provider_can_count_goes_by_its_name() -> None:
    pro = count_request({"model": "gpt-5.6-sol", "input": "Hi", "reasoning": {"mode": "pro"}})
    assert (pro.uncounted, pro.exact, pro.interval[1]) == (("the prompt of pro mode",), False, None)
    deferred = {"name": "ping", "input_schema": {"type": "object"}, "defer_loading": True}
    claude = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [USER]}
    assert count_request({**claude, "tools": [deferred]}).uncounted == ("deferred tools",)
    thought = assistant([{"type": "thinking", "thinking": "Hm", "signature": "x"}])
    assert count_request({**claude, "messages": [USER, thought, USER]}).uncounted == (
        "thinking in the history",
    )


def test_an_answer_behind_reasoning_costs_nine_more() -> None:
    answer = assistant("Hello world")
    assert count_answer({**answer, "reasoning": "Hm"}, "gpt-5") == count_answer(answer, "gpt-5") + 9
    assert bk.counter("gpt-5")("Hello world") == count_answer(answer, "gpt-5")
