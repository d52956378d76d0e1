"""Tools in any form are read by one function, and whoever counts them comes to the same number.

On 0.2.0 forty tools were 9,345 tokens by the bill and 4,743 by the gate, and an MCP server's answer was 7, exact.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.lab.explorers.reading import schemas
from budgetkit.requests import framing_of, read_tools
from budgetkit.requests.reading.tools import write_tools
from tests.conftest import examples

SCHEMA = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "description": "Town and country"},
        "days": {"type": "integer", "description": "How many days to look ahead"},
    },
    "required": ["place"],
}
NAMED = {"name": "forecast", "description": "Look up the weather"}
MCP = {**NAMED, "title": "Forecast", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
FORMS: dict[str, Any] = {
    "OpenAI chat": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}],
    "OpenAI Responses": [{"type": "function", **NAMED, "parameters": SCHEMA}],
    "OpenAI functions": [{**NAMED, "parameters": SCHEMA}],
    "Anthropic": [{**NAMED, "input_schema": SCHEMA}],
    "Anthropic, its type written out": [{"type": "custom", **NAMED, "input_schema": SCHEMA}],
    "Gemini": [{"functionDeclarations": [{**NAMED, "parameters": SCHEMA}]}],
    "Gemini's package": [{"function_declarations": [{**NAMED, "parameters_json_schema": SCHEMA}]}],
    "Converse": [{"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}}, {"cachePoint": {"type": "default"}}],
    "Converse's configuration": {"tools": [{"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}}]},
    "MCP": [MCP],
    "MCP, tools/list": {"tools": [MCP]},
    "MCP, tools/list over JSON-RPC": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
    "a body": {"model": "gpt-4o", "tools": [{**NAMED, "input_schema": SCHEMA}]},
    "one tool": {**NAMED, "input_schema": SCHEMA},
}  # fmt: skip
MODELS = [
    *("gpt-4o", "gpt-5-mini", "gpt-4-0613", "claude-opus-4-8"),
    *("gemini-2.5-flash", "mistral-large-latest"),
]
SYSTEM = {"role": "system", "content": "Be brief."}
QUESTION = {"role": "user", "content": "Will it rain in Lisbon?"}


def billed(tools: Any, model: str, messages: Any = (SYSTEM, QUESTION)) -> bk.requests.RequestCount:
    body: dict[str, Any] = {"model": model, "messages": list(messages), "parallel_tool_calls": True}
    return bk.count_request({**body, "tools": tools} if tools else body)


def numbers(tools: Any, model: str) -> dict[str, int]:
    """Count the same tools in every place that counts tools."""
    known = bk.model(model)
    budget = bk.presets.working_memory(200_000, output=1_000)
    without = billed(None, model).tokens
    talk = bk.Conversation(budget, counter=model, tools=tools)
    talk.add(SYSTEM, QUESTION)
    request = talk.request()
    trace = bk.Trace("toy", (bk.Message(SYSTEM), bk.Message(QUESTION)), tools)
    section = (budget.roles or {}).get("tools", "tools")
    demand = trace.demand(model)
    others = bk.Trace("toy", trace.messages).demand(model)
    checked = check(budget, prompts={"system": "Be brief."}, tools=tools, model=known)
    alone = check(budget, prompts={"system": "Be brief."}, model=known)
    found = {
        "bill": billed(tools, model).tokens - without,
        "plan": int(demand.to_numpy().sum() - others.to_numpy().sum()),
        "gate": checked.sections[section] - alone.sections.get(section, 0),
        "Conversation": request.tokens - without,
        "explorer": schemas(trace, bk.counter(model), known),
        "framing": framing_of(model).schemas(tools, model, [SYSTEM]),
    }
    whole = without + found["bill"]
    assert bk.trim([SYSTEM, QUESTION], whole, model, tools=tools) == [SYSTEM, QUESTION]
    with pytest.raises(ValueError, match=r"exceed the usable window \(.*\) by 1\. Shorten"):
        bk.trim([SYSTEM, QUESTION], whole - 1, model, tools=tools)
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_a_tool_counts_the_same_in_every_form_and_every_place(form: str, model: str) -> None:
    plain = numbers(FORMS["OpenAI chat"], model)
    assert numbers(FORMS[form], model) == plain
    assert len(set(plain.values())) == 1 and plain["bill"] > 20


def test_forty_tools_on_claude_are_one_number() -> None:
    tools = [{**NAMED, "name": f"forecast_{n}", "input_schema": SCHEMA} for n in range(40)]
    assert len(set(numbers(tools, "claude-opus-4-8").values())) == 1


NAMES = st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True)
TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
TYPED = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "object"])},
    optional={"description": TEXTS, "enum": st.lists(NAMES, min_size=1, max_size=3)},
)
SCHEMAS = st.builds(
    lambda members, needed: {
        "type": "object",
        "properties": members,
        "required": sorted(members)[:needed],
    },
    st.dictionaries(NAMES, TYPED, max_size=4),
    st.integers(0, 2),
)
TOOLS = st.lists(
    st.fixed_dictionaries({"name": NAMES, "description": TEXTS, "inputSchema": SCHEMAS}),
    min_size=1,
    max_size=5,
)


@settings(max_examples=examples(15), deadline=None)
@given(tools=TOOLS, model=st.sampled_from(MODELS))
def test_any_tools_of_a_server_are_one_number(tools: list[dict[str, Any]], model: str) -> None:
    found = numbers({"tools": tools}, model)
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("tools", ["oops", 5, ["oops"], [5], [None]])
def test_what_is_no_list_of_tools_is_refused_wherever_it_is_given(tools: Any) -> None:
    """It was 7 tokens, exact."""
    body = {"model": "gpt-4o", "messages": [QUESTION], "tools": tools}
    for read in (
        lambda: bk.count_request(body),
        lambda: bk.load_trace(body),
        lambda: bk.Conversation(bk.Budget(100), counter=len, tools=tools),
        lambda: bk.trim([QUESTION], 100, tools=tools),
        lambda: check(bk.presets.chat(1_000), tools=tools),
        lambda: bk.Trace("toy", (bk.Message(QUESTION),), tools),
    ):
        with pytest.raises(ValueError, match=r"Invalid tools?: .* Expected a list of schemas"):
            read()


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "web_search"}, "built-in tool web_search"),
        ({"googleSearch": {}}, "built-in tool googleSearch"),
        ({"type": "function"}, "a tool without a name"),
        ({"name": "f", "parameters": "x"}, "parameters of tool f"),
    ],
)
def test_what_cannot_be_counted_is_named(tool: dict[str, Any], name: str) -> None:
    counted = billed([tool], "gpt-4o")
    assert counted.uncounted == (name,) and not counted.exact
    assert bk.Trace("toy", (bk.Message(QUESTION),), (tool,)).uncounted == (name,)


def test_the_error_of_a_server_is_no_list_without_tools() -> None:
    refusal = "The MCP server returned an error: .*no such method.* Send the request again"
    with pytest.raises(ValueError, match=refusal):
        read_tools(
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}
        )


def test_the_first_page_of_several_says_that_there_are_more() -> None:
    assert read_tools({"tools": [MCP], "nextCursor": "2"}).uncounted == ("further pages of tools",)


WRAPPED = {"type": "function", "function": {**NAMED, "parameters": SCHEMA}}
FLAT = {"type": "function", **NAMED, "parameters": SCHEMA}
CLAUDES = {**NAMED, "input_schema": SCHEMA}


BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
SEARCH = {"type": "tool_search", "execution": "client", "parameters": SCHEMA}
NAMESPACE = {"type": "namespace", "name": "crm", "description": "All customers", "tools": [FLAT]}


@pytest.mark.parametrize(
    ("model", "tools", "others"),
    [
        ("claude-sonnet-4-5", [BM25, CLAUDES], [f"built-in tool {BM25['type']}"]),
        ("claude-opus-4-8", [CLAUDES], []),
        ("gpt-5.4", [{"type": "tool_search"}, FLAT], ["built-in tool tool_search"]),
        ("gpt-5.4", [SEARCH, FLAT], ["built-in tool tool_search"]),
        ("gpt-5.4", [WRAPPED], []),
        ("gpt-5.4", [{"type": "function", "function": FLAT}], []),
        ("gpt-5.4", [NAMESPACE], ["built-in tool namespace"]),
    ],
)
def test_deferred_tools_are_not_in_the_prompt(model: str, tools: Any, others: list[str]) -> None:
    """1,346 tokens were counted, and no interval held the bill, which begins near 7."""

    def deferred(tool: dict[str, Any]) -> dict[str, Any]:
        if "tools" in tool:
            return {**tool, "tools": [*map(deferred, tool["tools"])]}
        if tool.get("function") == FLAT:  # where some routers write it
            return {**tool, "function": {**FLAT, "defer_loading": True}}
        is_search = str(tool.get("type")).startswith("tool_search")
        return tool if is_search else {**tool, "defer_loading": True}

    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    counted = bk.count_request({**body, "tools": [*map(deferred, tools)]})
    assert counted.tokens == bk.count_request(body).tokens < 20
    assert counted.interval[1] is None
    assert sorted(counted.uncounted) == sorted([*others, "deferred tools"])


def test_tools_of_a_namespace_count_and_are_sent_as_they_came() -> None:
    space = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [FLAT]}
    body = {"model": "gpt-5.4", "input": "Hello"}
    counted = bk.count_request({**body, "tools": [space]})
    assert counted.tokens == bk.count_request({**body, "tools": [FLAT]}).tokens
    assert counted.uncounted == ("built-in tool namespace",)
    assert write_tools([space], "responses") == write_tools([space], "any") == ([space], [])


ITEM = {"type": "object", "description": "An item", "properties": {"name": {"type": "string"}}}
LISTED = {"type": "array", "description": "All items", "items": {"$ref": "#/$defs/Item"}}


@pytest.mark.parametrize(
    "items",
    [
        LISTED,
        {"description": "All items", "anyOf": [{"type": "array", "items": ITEM}, {"type": "null"}]},
        {"description": "All items", "any_of": [{"type": "array", "items": ITEM}]},
    ],
    ids=["$ref", "anyOf", "any_of"],
)
def test_gemini_bills_the_parts_that_a_schema_is_composed_of(items: dict[str, Any]) -> None:
    """A reference was nothing: 95 tokens of 219 in a recorded call with two levels of them."""

    def billed(items: dict[str, Any]) -> int:
        schema = {"type": "object", "properties": {"items": items}, "$defs": {"Item": ITEM}}
        declared = {"functionDeclarations": [{**NAMED, "parametersJsonSchema": schema}]}
        body = {"contents": [{"parts": [{"text": "Hello"}]}], "tools": [declared]}
        return bk.count_request(body, "gemini-2.5-flash").tokens

    in_place = {"type": "array", "description": "All items", "items": ITEM}
    alone = {"type": "array", "description": "All items"}
    assert billed(items) >= billed(in_place) > billed(alone) + 10


@pytest.mark.parametrize("model", ["gpt-4o", "gemini-2.5-flash", "claude-sonnet-4-5"])
def test_definitions_that_double_at_every_step_are_counted_at_once(model: str) -> None:
    """Thirty definitions that each refer twice to the next were a thousand million."""
    twice = [
        {"properties": {side: {"$ref": f"#/$defs/D{n + 1}"} for side in ("left", "right")}}
        for n in range(30)
    ]
    definitions = {f"D{n}": schema for n, schema in enumerate(twice)} | {"D30": SCHEMA}
    schema = {"properties": {"top": {"$ref": "#/$defs/D0"}}, "$defs": definitions}
    message = {"role": "user", "content": "Hello"}
    body = {"messages": [message], "tools": [{"name": "tree", "parameters": schema}]}
    counted = bk.count_request(body, model)
    assert 100 < counted.tokens < 100_000
    assert counted.uncounted == ("a part of the schema of tool tree",)
    assert counted.interval[1] is None


def test_one_definition_for_ten_thousand_references_is_not_copied_for_each() -> None:
    """Half a megabyte took an hour: the copies are bounded, and what is not counted is named."""
    fields = {f"p{n}": {"type": "string", "description": "A word"} for n in range(2_000)}
    schema = {
        "properties": {f"x{n}": {"$ref": "#/$defs/B"} for n in range(10_000)},
        "$defs": {"B": {"type": "object", "properties": fields}},
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "Hello"}], "tools": [tool]}
    counted = bk.count_request(body)
    trimmed = bk.trim(body["messages"], 10_000_000, "gpt-5.4", tools=[tool])
    assert counted.uncounted == ("a part of the schema of tool f",)
    assert any("a part of the schema of tool f" in warning for warning in trimmed.warnings)


def test_deepseek_on_responses_thinks_unless_it_is_told_how_much() -> None:
    body = {"model": "deepseek-v4-flash", "input": "Hello"}
    asked = bk.count_request({**body, "reasoning": {"effort": "low"}})
    assert bk.count_request(body).tokens == asked.tokens + 79


@pytest.mark.parametrize("tool", [CLAUDES, {"type": "computer_20250124", "name": "computer"}])
def test_converse_has_further_tools_among_the_fields_of_a_model(tool: dict[str, Any]) -> None:
    body: dict[str, Any] = {"modelId": "anthropic.claude-opus-4-8-v1:0"}
    body["messages"] = [{"role": "user", "content": [{"text": "Hello"}]}]
    counted = bk.count_request({**body, "additionalModelRequestFields": {"tools": [tool]}})
    if tool is CLAUDES:
        config = {"tools": FORMS["Converse"]}
        assert counted.tokens == bk.count_request({**body, "toolConfig": config}).tokens
    else:
        assert counted.uncounted == ("built-in tool computer_20250124",)
