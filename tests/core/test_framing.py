"""What a message and a request cost beyond their text: one message, nine answers, and how tools and images count."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetkit.counters import counter
from budgetkit.message import Image, Message
from budgetkit.models import Model, models
from budgetkit.requests import (
    DEFAULT_FRAMING,
    FRAMINGS,
    Framing,
    ToolConstants,
    framing_for,
    patch_tokens,
    square_tokens,
    tile_tokens,
)
from budgetkit.requests.billing.declarations import declaration
from tests.messages import assistant, calling, system, tool, tool_result

HELLO = {"role": "user", "content": "Hello world"}

NINE_ANSWERS = {
    "text": 2,
    "octopus": 6,
    "llama-index": 6,
    "litellm-response": 6,
    "prompt-tsx": 6,
    "langchain": 7,
    "cookbook": 9,
    "cookbook-cl100k": 9,
    "litellm": 9,
    "praisonai": 9,
    "plan-195": 9,
    "memory-engine": 10,
    "openai": 9,
    "openai-cl100k": 9,
    "openai-0613": 9,
    "openai-o": 8,
    "openai-reasoning": 8,
    "openai-0301": 10,
}


def words(text: str) -> int:
    """Count so that anybody can check it: one token a word."""
    return len(text.split())


@pytest.mark.parametrize(("name", "tokens"), NINE_ANSWERS.items())
def test_one_message_has_as_many_sizes_as_there_are_systems(name: str, tokens: int) -> None:
    framing = FRAMINGS[name]
    assert framing.request([HELLO], counter(framing.counter)) == tokens


def test_every_framing_is_in_that_table_and_says_where_its_numbers_come_from() -> None:
    assert set(NINE_ANSWERS) == set(FRAMINGS)
    assert all(framing.source for framing in FRAMINGS.values())


NAMED = {**HELLO, "name": "bob"}


@pytest.mark.parametrize(
    ("name", "messages", "tokens"),
    [
        ("octopus", [], 0),
        ("octopus", [HELLO, HELLO], 12),
        ("memory-engine", [], 3),
        ("litellm", [], 3),
        ("litellm", [NAMED], 11),
        ("litellm-response", [HELLO], 6),
        ("llama-index", [{"role": "tool", "content": "Hello world"}], 4),
    ],
)
def test_each_system_counts_in_its_own_way(name: str, messages: list[Any], tokens: int) -> None:
    framing = FRAMINGS[name]
    assert framing.request(messages, counter(framing.counter)) == tokens


def test_langchain_rounds_once_a_message_role_included() -> None:
    characters = counter("chars/4", rounding="ceil", minimum=0)
    assert FRAMINGS["langchain"].message(HELLO, characters) == -(-(11 + 4) // 4) + 3


def test_each_part_of_the_formula_adds_what_it_says() -> None:
    framing = Framing(per_message=3, count_role=True, count_name=True, per_name=1, priming=3)
    named = {"role": "user", "name": "bob", "content": "Hello big world"}
    assert framing.message(named, words) == 3 + 1 + 3 + (1 + 1)
    assert framing.request([named, HELLO], words) == 3 + 9 + (3 + 1 + 2)


CALL = calling({"id": "c1", "function": {"name": "look up", "arguments": "one two three"}})


@pytest.mark.parametrize(
    ("way", "tokens"), [("nothing", 0), ("arguments", 3), ("call", 5), ("twice", 7)]
)
def test_a_tool_call_counts_nothing_its_arguments_or_its_name_too(way: Any, tokens: int) -> None:
    assert Framing(tool_calls=way).message(CALL, words) == tokens
    assert Framing(tool_calls=way, per_tool_call=10).message(CALL, words) == tokens + 10


def test_the_older_function_call_counts_like_a_tool_call() -> None:
    older = {
        "role": "assistant",
        "function_call": {"name": "look up", "arguments": "one two three"},
    }
    assert Framing().message(older, words) == Framing().message(CALL, words)


def test_a_tool_call_and_its_result_as_one_provider_charged_them() -> None:
    """40 tokens were recorded for a request of this shape; this one has the same lengths in other words."""
    place = {"name": "get_current_weather", "arguments": '{"location": "Paris"}'}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": place}]}
    result = tool_result("1", "The sky over Los Angeles is clear, 21 degrees outside.")
    count = counter("cl100k_base")
    texts = ['{"location":"Paris"}', place["name"], f"functions.{place['name']}", result["content"]]
    assert [count(text) for text in texts] == [5, 3, 4, 13]
    assert (
        FRAMINGS["openai-cl100k"].request([call, result], count)
        == 3 + (4 + 3 + 4 + 3 + 5) + (5 + 13)
        == 40
    )


def test_the_name_of_a_tool_result_is_not_counted() -> None:
    result = tool_result("c1", "Sunny")
    assert DEFAULT_FRAMING.message(
        {**result, "name": "get_weather"}, words
    ) == DEFAULT_FRAMING.message(result, words)


# The shape of the example in OpenAI's cookbook, and the same number of tokens in each text, in other words.
PLACE = {"type": "string", "description": "A town with its state, as in San Diego, CA"}
SCALES = ["celsius", "fahrenheit"]
UNIT = {"type": "string", "description": "The scale of temperatures to use", "enum": SCALES}
WEATHER = tool(
    "get_current_weather",
    description="Get the present weather of one given place",
    parameters={
        "type": "object",
        "properties": {"location": PLACE, "unit": UNIT},
        "required": ["location"],
    },
)
QUESTION = [
    system("You are a friendly guide who can answer to anything about the weather."),
    {"role": "user", "content": "What's it like outside in San Diego?"},
]


@pytest.mark.parametrize(
    ("name", "encoding", "tools", "request_tokens"),
    [
        ("cookbook", "o200k_base", 68, 101),
        ("cookbook-cl100k", "cl100k_base", 71, 105),
        ("openai", "o200k_base", 68, 101),
        ("openai-cl100k", "cl100k_base", 71, 105),
        ("openai-0613", "cl100k_base", 71, 105),
    ],
)
def test_tools_as_constants_and_as_a_declaration_come_to_the_same_on_the_cookbooks_shape(
    name: str, encoding: str, tools: int, request_tokens: int
) -> None:
    count, framing = counter(encoding), FRAMINGS[name]
    assert framing.schemas([WEATHER], count, QUESTION) == tools
    assert framing.request(QUESTION, count, [WEATHER]) == request_tokens


def test_the_constants_are_added_function_by_function() -> None:
    """By hand, one token a word: the function's line has 8, location's 10, unit's 6, each of the two choices 1."""
    function = (7 + 8) + 3 + (3 + 10) + (3 + 6) + (-3 + 2 * (3 + 1))
    assert Framing(tools=ToolConstants()).schemas([WEATHER], words) == function + 12
    assert Framing(tools=ToolConstants()).schemas([WEATHER, WEATHER], words) == 2 * function + 12


def test_the_full_stop_of_a_description_is_not_counted_by_the_constants() -> None:
    said = [{"name": "f", "description": description} for description in ("Do it", "Do it.")]
    assert (
        len({Framing(tools=ToolConstants()).schemas([tool], counter("gpt-4o")) for tool in said})
        == 1
    )


def test_without_a_system_message_a_declaration_costs_four_tokens_more() -> None:
    framing, count = FRAMINGS["litellm"], counter("gpt-4o")
    assert framing.schemas([WEATHER], count, []) == framing.schemas([WEATHER], count) + 4
    alone = framing.request(QUESTION[1:], count, [WEATHER])
    assert alone == framing.request(QUESTION[1:], count) + framing.schemas([WEATHER], count) + 4


def test_no_tools_cost_nothing() -> None:
    assert [framing.schemas([], counter("gpt-4o")) for framing in FRAMINGS.values()] == [0] * len(
        FRAMINGS
    )


def test_nested_schemas_are_declared_without_the_descriptions_that_the_model_never_sees() -> None:
    leg = {
        "type": "object",
        "properties": {"to": {"type": "string", "description": "unseen"}},
        "required": ["to"],
    }
    parameters = {
        "properties": {
            "legs": {"type": "array", "items": leg},
            "stops": {"type": ["integer", "null"]},
            "class": {"anyOf": [{"enum": ["first", 2]}, {"type": "boolean"}]},
            "odd": "no schema at all",
        }
    }
    assert declaration([{"name": "book", "parameters": parameters}, {"name": "ping"}]).splitlines()[
        2:-1
    ] == [
        *("type book = (_: {", "legs?: {", "  to: string,", "}[],", "stops?: number | null,"),
        *('class?: "first" | 2 | boolean,', "odd?: any,", "}) => any;", ""),
        *("type ping = () => any;", ""),
    ]


def test_a_schema_nested_without_end_still_counts() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"deeper": {"type": "array", "items": schema}}}
    assert FRAMINGS["openai"].schemas([{"name": "f", "parameters": schema}], words) > 40
    assert declaration([{"name": "f", "parameters": schema}]).count("any,") == 1


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1024, 1024), 765),
        ((2048, 4096), 1105),
        ((512, 512), 255),
        ((1, 1), 255),
        ((3072, 768), 765),
    ],
)
def test_image_tiles(size: tuple[int, int], tokens: int) -> None:
    assert tile_tokens(*size) == tokens
    assert tile_tokens(*size, detail="low") == 85


def test_an_image_as_one_provider_charged_it() -> None:
    """438 tokens were recorded for a question and an image of 800 by 400 (gpt-4-1106-vision-preview)."""
    shown = {**image_part("https://example.org/a.png"), "width": 800, "height": 400}
    asked = [{"type": "text", "text": "What do you see here?"}, shown]
    count = counter("cl100k_base")
    assert count("What do you see here?") == 6
    assert (
        FRAMINGS["openai"].request([{"role": "user", "content": asked}], count)
        == 3 + 3 + 1 + 6 + 425
        == 438
    )


@pytest.mark.parametrize(("cap", "tokens"), [(None, 14_364), (2_500, 2_942), (10_000, 11_868)])
def test_image_patches_of_a_photograph_of_4032_by_3024(cap: int | None, tokens: int) -> None:
    assert patch_tokens(4032, 3024, cap, 1.2) == tokens
    assert patch_tokens(1800, 2400, cap=1536) == 1452, "the documented example"


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((256, 256), 100),
        ((512, 512), 361),
        ((768, 768), 784),
        ((1024, 1024), 1369),
        ((1280, 720), 1196),
        ((1920, 1080), 2691),
    ],
)
def test_image_squares_of_28_pixels(size: tuple[int, int], tokens: int) -> None:
    assert square_tokens(*size) == tokens


def test_an_image_of_unknown_size_is_taken_as_1024_pixels_square() -> None:
    shown = {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            image_part("https://example.org/a.png"),
        ],
    }
    assert Framing().message(shown, words) == 3 + 765
    assert Framing(per_image=85).message(shown, words) == 3 + 85


def test_an_image_that_says_its_size_or_detail_is_priced_by_it() -> None:
    assert Framing().image(Image(512, 512)) == 255
    low = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    assert Framing().message({"role": "user", "content": [low]}, words) == 85


def test_the_bytes_of_an_image_are_no_text() -> None:
    data = image_part("data:image/png;base64," + "A" * 100_000)
    assert (
        FRAMINGS["openai"].message({"role": "user", "content": [data]}, counter("gpt-4o"))
        == 3 + 1 + 765
    )


def image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
PARSED = {"function": {"name": "f", "arguments": {"a": 1}}}
NEVER_RAISE: dict[str, dict[str, Any]] = {
    "null content": assistant(None),
    "no content": {"role": "assistant"},
    "list content": {"role": "user", "content": [{"type": "text", "text": "Hello"}, "world"]},
    "empty list": {"role": "user", "content": []},
    "special token": {"role": "user", "content": "<|endoftext|><|im_start|>"},
    "lone surrogate": {"role": "user", "content": "\ud83d"},
    "sound": {"role": "user", "content": [SOUND]},
    "file": {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
    "refusal": assistant([{"type": "refusal", "refusal": "I cannot."}]),
    "parsed arguments": {"role": "assistant", "tool_calls": [PARSED]},
    "unknown role": {"role": "critic", "content": "Hm."},
}


@pytest.mark.parametrize("shape", NEVER_RAISE)
@pytest.mark.parametrize("name", FRAMINGS)
def test_no_shape_of_message_raises(name: str, shape: str) -> None:
    framing = FRAMINGS[name]
    assert framing.message(NEVER_RAISE[shape], counter(framing.counter)) >= 0


def test_what_nobody_can_count_is_named() -> None:
    assert Message(NEVER_RAISE["sound"]).uncounted == ("input_audio",)
    assert Message(NEVER_RAISE["file"]).uncounted == ("file",)
    assert Message(NEVER_RAISE["list content"]).uncounted == Message(HELLO).uncounted == ()


def test_many_messages_ask_the_counter_once() -> None:
    class RequestBatch:
        calls = 0

        def __call__(self, text: str) -> int:
            raise AssertionError("asked one by one")

        def many(self, texts: list[str]) -> list[int]:
            self.calls += 1
            return [words(text) for text in texts]

    batch = RequestBatch()
    assert Framing(per_message=3).messages([HELLO, CALL, HELLO], batch) == [5, 3 + 5, 5]
    assert batch.calls == 1


def test_every_model_has_a_framing_and_an_unknown_one_an_estimate() -> None:
    assert all(framing_for(known).rules is not None for known in models())
    assert framing_for("gpt-4o").source == FRAMINGS["openai"].source
    assert framing_for("gpt-5-mini").source == FRAMINGS["openai-reasoning"].source
    assert framing_for("claude-sonnet-4-5").source.startswith("claude-4.5: ")
    assert framing_for("no such model").source.startswith("any other: ")
    assert framing_for(Model("mine", 8_192, framing="octopus")) == FRAMINGS["octopus"]


texts = st.text(st.characters(), max_size=30)
contents = (
    st.none()
    | texts
    | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=3)
)
raw_messages = st.builds(
    lambda role, content, name: {"role": role, "content": content, "name": name},
    st.sampled_from(["system", "user", "assistant", "tool"]),
    contents,
    st.none() | st.just("bob"),
)


@given(st.lists(raw_messages, max_size=6), st.sampled_from(sorted(FRAMINGS)))
def test_a_request_is_priming_and_messages(messages: list[dict[str, Any]], name: str) -> None:
    framing = FRAMINGS[name]
    count: Callable[[str], int] = counter(framing.counter)
    one_by_one = [framing.message(message, count) for message in messages]
    assert framing.messages(messages, count) == one_by_one
    assert framing.request(messages, count) == framing.priming + sum(one_by_one)


def test_the_default_is_that_of_openai_though_it_is_made_without_its_table() -> None:
    assert FRAMINGS["openai"] == DEFAULT_FRAMING


def test_a_request_without_a_system_message_pays_for_the_templates_own() -> None:
    """In 0.3.0 a framing without a provider's rules left it out."""
    framing = Framing(priming=3, without_system=21)
    user = {"role": "user", "content": "Hi"}
    assert framing.request([user], len) == len("Hi") + 3 + 21
    assert framing.request([system("."), user], len) == len(".Hi") + 3
