"""Frames: what makers bill beyond the text, where their vocabulary, or a rebuilt one, counts the text.

The numbers of recorded calls are not repeated here; each rule is, on the smallest request that shows it. Texts are
counted by their characters, so that every number can be checked by eye and no extra is needed.
"""

import re
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.files import read_toml
from budgetkit.requests import count_request, framing_for, read_request
from budgetkit.requests.billing import framing as framing_module
from budgetkit.requests.billing.charges import count_charges
from budgetkit.requests.billing.frames import FrameRules, frame_for
from tests.messages import assistant, tool, user

USER = user("Hi")
TOOL = {"name": "ping", "description": "Ask", "input_schema": {"type": "object"}}
SHOWN = '<function>{"description": "Ask", "name": "ping", "parameters": {"type": "object"}}</function>\n'


def rules(model: str, host: str = "") -> FrameRules:
    frame = frame_for(model, host)
    assert frame is not None
    return FrameRules(frame, model)


def billed(model: str, **body: Any) -> int:
    """Count a request by its model's frame, a token a character."""
    return sum(count_charges(rules(model).charges(read_request({"model": model, **body})), len))


def claude(model: str, *messages: dict[str, Any], **body: Any) -> int:
    return billed(
        model, messages=list(messages) or [USER], max_tokens=9, anthropic_version="x", **body
    )


@pytest.mark.parametrize(
    ("model", "request_costs"), [("claude-haiku-4-5", 7), ("claude-opus-4-7", 11)]
)
def test_a_message_to_claude_costs_its_text_and_a_frame(model: str, request_costs: int) -> None:
    assert claude(model) == request_costs + 2


def test_claude_bills_each_change_of_speaker_but_not_to_a_begun_answer() -> None:
    answer = assistant("Oh")
    assert claude("claude-sonnet-4-5", USER, answer, USER) == 7 + 2 + 3 + 2 + 3 + 2
    assert claude("claude-opus-4-8", USER, answer, USER) == 6 + 2 + 2 + 2 + 2 + 2
    assert claude("claude-sonnet-4-5", USER, answer) == 7 + 2 + 2
    assert claude("claude-sonnet-4-5", USER, USER) == 7 + 2 + 1 + 2
    assert claude("claude-sonnet-4-5", answer, USER) == 7 + 12 + 2 + 3 + 2


def test_claudes_blocks_are_one_text_and_a_leading_line_break_of_the_system_text_is_free() -> None:
    blocks = [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]
    request = read_request({"model": "claude-3-opus", "system": "Be", "messages": [user(blocks)]})
    assert ["Hi"] in [[*charge.texts] for charge in rules("claude-3-opus").charges(request)]
    assert claude("claude-sonnet-4-5", system="Be") == 7 + 2 + 2
    assert claude("claude-sonnet-4-5", system="\nBe") == 7 + 3 - 1 + 2
    assert claude("claude-sonnet-4-6", system="Be") == 7 + 2 + 1 + 2


def test_claude_is_shown_all_tools_as_one_text_with_sorted_keys() -> None:
    plain = 7 + 2 + len(SHOWN)
    assert claude("claude-haiku-4-5", tools=[TOOL]) == plain + 497
    assert claude("claude-haiku-4-5", tools=[TOOL, TOOL]) == plain + 497 + len(SHOWN)
    assert claude("claude-haiku-4-5", tools=[TOOL], system="Be") == plain + 497 + 2 + 1
    assert claude("claude-sonnet-4-6", tools=[TOOL]) == plain + 498
    assert claude("claude-haiku-4-5", tools=[TOOL], tool_choice={"type": "any"}) == plain + 589
    named = {"type": "tool", "name": "ping"}
    assert claude("claude-haiku-4-5", tools=[TOOL], tool_choice=named) == plain + 591 + len("ping")


def test_claude_is_shown_an_answer_schema_indented() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    shown = '{\n  "type": "object",\n  "properties": {\n    "a": {\n      "type": "string"\n    }\n  }\n}'
    body = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    assert claude("claude-haiku-4-5", **body) == 7 + 2 + 81 + len(shown)


def test_claudes_thinking_and_calls_cost_constants() -> None:
    enabled = {"type": "enabled", "budget_tokens": 1024}
    assert claude("claude-haiku-4-5", thinking=enabled) == 7 + 2 + 29
    assert claude("claude-haiku-4-5", thinking={"type": "adaptive"}) == 7 + 2
    call = assistant([{"type": "tool_use", "id": "1", "name": "ping", "input": {"to": "me"}}])
    result = user([{"type": "tool_result", "tool_use_id": "1", "content": "up"}])
    used = 38 + 13 + 4 + 2 + 3
    assert claude("claude-haiku-4-5", USER, call, result) == 7 + 2 + 3 + used + 3 + 3


def test_gemini_bills_a_token_for_each_content_since_2_5() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": "Oh"}]},
    ]
    system = {"parts": [{"text": "Be"}]}
    assert billed("gemini-2.5-flash", contents=contents, systemInstruction=system) == 6 + 3
    assert billed("gemini-2.0-flash", contents=contents, systemInstruction=system) == 6


def test_chat_templates_bill_each_message_by_its_role() -> None:
    messages = [{"role": "system", "content": "Be"}, USER, assistant("Oh"), USER]
    assert billed("deepseek-v4-flash", messages=messages) == 8 + 1 + 2 * 1 + 3 + 2
    assert billed("Qwen3-4B", messages=messages) == 8 + 3 + 4 * 5
    assert billed("Qwen/Qwen3.5-9B", messages=messages) == 8 + 5 + 4 * 5


def test_every_frame_has_a_number_of_recorded_calls_and_a_model() -> None:
    rows = read_toml("frames.toml")["frame"]
    calls = r"(text|tools) \d+ of \d+ calls of \d+ projects?.*"
    assert all(re.fullmatch(calls, row["rows"]) for row in rows)
    names = [
        *("claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-6", "claude-sonnet-4-6"),
        *("claude-4.5-haiku", "claude-sonnet-4", "claude-3-7-sonnet", "claude-3-5-sonnet"),
        *("claude-3-haiku", "claude-3-opus", "claude-3-sonnet", "gemini-2.0-flash"),
        *("vertex/gemini-2.5-pro", "gemini-2.5-pro", "vertex/gemini-3-pro", "gemini-3-pro"),
        *("deepseek-r1", "deepseek-chat", "gpt-oss-20b", "qwen3.5", "ollama/qwen3:4b"),
        *("qwen2.5-72b-instruct", "Qwen/Qwen3-4B"),
    ]
    frames = [frame_for(name, name.partition("/")[0]) for name in names]
    assert [frame.name for frame in frames if frame is not None] == [row["name"] for row in rows]


def test_without_a_vocabulary_the_estimate_of_the_family_counts() -> None:
    counted = count_request({"model": "claude-2.1", "messages": [USER], "system": "Be"})
    assert "rules of claude-2" in counted.counted_by
    assert counted.basis == "estimate"


def test_a_host_in_a_models_name_bills_as_the_host_that_is_named_beside_it() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Is it up?"}]}]}
    by_name = count_request(body, model="vertex_ai/gemini-2.5-pro")
    assert by_name.tokens == count_request(body, model="gemini-2.5-pro", host="vertex").tokens


def test_claudes_result_stands_on_a_line_of_its_own_and_a_value_before_a_tag() -> None:
    """Counted so, 44 of 54 recorded calls with one result are exact, 21 where each text was counted by itself."""
    call = {"type": "tool_use", "id": "1", "name": "add", "input": {"x": 15}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "42"}
    messages = [USER, assistant([call]), user([result])]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Be", "messages": messages}
    charges = rules("claude-sonnet-4-5").charges(read_request(body))
    texts = [text for charge in charges for text in charge.texts]
    assert {"\n42", "15<"} <= set(texts)


def test_claudes_next_call_costs_a_token_less_and_a_text_after_a_result_five_more() -> None:
    def round_of(number: str) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": number, "name": "ping", "input": {}}
        result = {"type": "tool_result", "tool_use_id": number, "content": "up"}
        return [assistant([call]), user([result])]

    once = claude("claude-sonnet-4-5", USER, *round_of("1"))
    twice = claude("claude-sonnet-4-5", USER, *round_of("1"), *round_of("2"))
    assert twice - once == 3 + 38 + 4 + 3 + 3 - 1
    asked = user("So?")
    assert claude("claude-sonnet-4-5", USER, *round_of("1"), asked) == once + 3 + 5


def test_gemini_on_vertex_pays_less_for_tools_than_on_googles_own_interface() -> None:
    place = {"type": "string", "description": "Town"}
    parameters = {"type": "object", "properties": {"at": place}}
    tool = {"name": "find", "description": "Look", "parameters": parameters}
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    request = read_request({"contents": contents, "tools": [{"functionDeclarations": [tool]}]})
    words = len("Hi" + "find" + "Look" + "at" + "Town")
    for host, frame_tokens in (("", 1 + 18 + 9), ("vertex", 0 + 1 + 2)):
        charges = rules("gemini-2.5-pro", host).charges(request)
        assert sum(count_charges(charges, len)) == words + frame_tokens


def test_vertex_bills_the_answer_schema_of_gemini_3() -> None:
    """Recorded calls of one project: 77 and 70 tokens, where Google itself billed 13 and 6."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    answer = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    for text, by_google, by_vertex in (
        ("Generate a person named John who is 30 years old", 13, 77),
        ("Generate a person named Bob", 6, 70),
    ):
        contents = [{"role": "user", "parts": [{"text": text}]}]
        body = {"contents": contents, "generationConfig": answer}
        own = count_request(body, "gemini-3-flash-preview")
        vertex = count_request(body, "gemini-3-flash-preview", host="vertex")
        assert abs(own.tokens - by_google) <= 2 and abs(vertex.tokens - by_vertex) <= 4
        low, high = vertex.interval
        assert high is not None and low <= by_vertex <= high


def test_a_template_writes_tools_as_json_and_leaves_out_those_that_may_not_be_called() -> None:
    ping, pong = tool("ping", parameters={}), tool("pong", parameters={})
    written = len('{"name": "ping", "parameters": {}}')

    def deepseek(*tools: Any, **choice: Any) -> int:
        return billed("deepseek-chat", messages=[USER], tools=[*tools], **choice)

    bare = billed("deepseek-chat", messages=[USER])
    assert deepseek(ping) == bare + 221 + written
    assert deepseek(ping, pong) == bare + 221 + 2 * written
    assert deepseek(ping, tool_choice="required") == bare + 228 + written
    assert deepseek(ping, tool_choice="none") == bare
    forced = {"type": "function", "function": {"name": "pong"}}
    assert deepseek(ping, pong, tool_choice=forced) == bare + 228 + written
    wrapped = len('{"type": "function", "function": {"name": "ping", "parameters": {}}}')
    plain = billed("Qwen/Qwen3-4B", messages=[USER])
    armed = billed("Qwen/Qwen3-4B", messages=[USER], tools=[ping])
    assert armed == plain + 77 + 5 + 1 + wrapped


def test_qwen_2_5_begins_with_a_system_text_of_its_own_where_none_is_sent() -> None:
    system = {"role": "system", "content": ""}
    expected = billed("qwen2.5-7b", messages=[system, USER]) - 5 + 21
    assert billed("qwen2.5-7b", messages=[USER]) == expected


def test_deepseek_adds_a_prompt_where_the_answer_must_be_json() -> None:
    asked = {"response_format": {"type": "json_object"}}
    expected = billed("deepseek-chat", messages=[USER]) + 20
    assert billed("deepseek-chat", messages=[USER], **asked) == expected


def test_claudes_tools_are_shown_as_they_are_written_whatever_the_script() -> None:
    dash = {**TOOL, "description": "Ask — twice"}
    plain = claude("claude-haiku-4-5", tools=[TOOL])
    assert claude("claude-haiku-4-5", tools=[dash]) == plain + len(" — twice")


def test_the_line_that_claude_code_puts_before_its_system_text_is_not_billed() -> None:
    header = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=0;"}
    rest = {"type": "text", "text": "Be"}
    alone = claude("claude-sonnet-4-6", system=[rest])
    assert claude("claude-sonnet-4-6", system=[header, rest]) == alone
    assert claude("claude-sonnet-4-6", system=[header]) == claude("claude-sonnet-4-6")


def test_claudes_thinking_costs_a_token_more_beside_tools_to_4_5_and_the_same_since() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    for model, tokens in (("claude-haiku-4-5", 30), ("claude-sonnet-4-6", 29)):
        assert claude(model, tools=[TOOL], **thinking) == claude(model, tools=[TOOL]) + tokens


def gemini_tool(**parameters: Any) -> int:
    """Count what one tool, find, costs Gemini 3, a token a character."""
    tool = {"name": "find", "description": "Look", "parameters": parameters}
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    armed = billed("gemini-3.5-flash", contents=contents, tools=[{"functionDeclarations": [tool]}])
    return armed - billed("gemini-3.5-flash", contents=contents)


def test_gemini_3_is_shown_each_tool_in_braces_and_every_text_between_two_marks() -> None:
    place = {"type": "string", "description": "Town"}
    # a mark (`) is one token here as it is there; a declaration begins and ends with one more
    shown = (
        "declaration:find{description:`Look`,parameters:{properties:{at:{description:`Town`,type:`STRING`}},"
        "required:[`at`],type:`OBJECT`}}"
    )
    assert gemini_tool(type="object", properties={"at": place}, required=["at"]) == len(shown) + 2
    empty = "declaration:find{description:`Look`,parameters:{type:`OBJECT`}}"
    assert gemini_tool(type="object", properties={}, required=[]) == len(empty) + 2


def test_gemini_3_is_shown_what_is_inside_of_objects_and_lists_their_titles_and_choices() -> None:
    bare = gemini_tool(type="object", properties={"at": {"type": "object"}})
    inside = {"type": "object", "properties": {"zip": {"type": "string", "title": "Zip"}}}
    more = len("properties:{zip:{title:`Zip`,type:`STRING`}},")
    assert gemini_tool(type="object", properties={"at": inside}) == bare + more

    text = gemini_tool(type="object", properties={"at": {"type": "string"}})
    unit = {"type": "string", "enum": ["C", "F"]}
    assert gemini_tool(type="object", properties={"at": unit}) == text + len("enum:[`C`,`F`],")

    several = gemini_tool(type="object", properties={"at": {"type": "array"}})
    texts = {"type": "array", "items": {"type": "string"}}
    assert gemini_tool(type="object", properties={"at": texts}) == several + len(
        "items:{type:`STRING`},"
    )


def test_a_schema_that_is_no_schema_still_counts_for_gemini_3() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(500):
        deep = {"type": "object", "properties": {"a": deep}}
    assert gemini_tool(**deep) > 0
    odd = {"type": 3, "enum": "x", "required": None, "items": [1], "properties": {"a": None}}
    assert gemini_tool(**odd) > 0


@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "Be"}]])
def test_a_templates_system_text_counts_in_a_conversation(system: list[dict[str, str]]) -> None:
    """Where none was sent, a conversation with Qwen 2.5 was 21 tokens short of what its request bills."""
    frame = frame_for("qwen2.5-7b")
    assert frame is not None
    framing = bk.requests.Framing(
        priming=frame.request, without_system=frame.no_system, rules=FrameRules(frame, "qwen2.5-7b")
    )
    answer = assistant("Oh")
    messages = [*system, USER, answer, USER]
    tokens = billed("qwen2.5-7b", messages=messages)
    budget = bk.presets.chat(4_000)

    conversation = bk.Conversation(budget, counter=len, framing=framing)
    conversation.add(messages)
    assert conversation.request().tokens == tokens

    trace = bk.load_trace(messages)
    outcome = bk.replay(trace, budget, "oldest first", counter=len, framing=framing)
    assert int(outcome.frame()["sent"].iloc[-1]) == tokens

    sections: dict[str, Any] = {"system": system, "conversation": [USER, answer], "user": USER}
    built = bk.build(budget, len, framing=framing, **sections)
    assert built.plan.used == tokens


def test_the_framing_knows_the_templates_system_text(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = frame_for("qwen2.5-7b")
    assert frame is not None
    monkeypatch.setattr(framing_module, "rules_for", lambda model: FrameRules(frame, model.name))
    framing_module._by_rules.cache_clear()
    framing = framing_for("qwen2.5-7b")
    framing_module._by_rules.cache_clear()
    assert framing.primed(has_system=False) - framing.primed(has_system=True) == 21
