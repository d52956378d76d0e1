"""Prices of recorded requests: of their day and moment, by tier and region, with the provider's own tools."""

from datetime import UTC, datetime
from typing import Any

import pytest

import budgetkit as bk

DAY = "2026-11-20T10:00:00Z"


def session(usage: dict[str, Any], model: str, time: str = DAY, **response: Any) -> bk.Session:
    """Load one call whose message says when it was answered."""
    answer = {"role": "assistant", "parts": [{"type": "text", "text": "ok"}], "model": model}
    question = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    trace = bk.load_trace([question, answer | {"usage": usage}])
    rows = [row | {"time": time} for row in trace.fields["usage"]]
    return bk.Session(bk.Trace("s", trace.messages, fields={"usage": rows}))


def cost(*call: Any) -> float:
    return float(session(*call).totals()["cost"])


def test_a_request_costs_what_it_cost_on_its_day() -> None:
    usage = {"input_tokens": 27985, "cached_input_tokens": 27136, "output_tokens": 60}
    before = cost(usage, "gpt-5.6-sol", "2026-07-28T12:00:00Z")
    assert before == pytest.approx(0.019613)
    assert cost(usage, "gpt-5.6-sol", "2026-08-21T12:00:00Z") == pytest.approx(0.0154504)
    both = session(usage, "gpt-5.6-sol", "2026-07-28T12:00:00Z")
    assert both.prices_by_request()[0].date == "2026-07-28"


def test_prices_of_a_moment_follow_the_hours() -> None:
    def listed(hour: int) -> Any:
        return bk.cost.prices("deepseek-reasoner", datetime(2025, 6, 1, hour, tzinfo=UTC)).input

    assert listed(20).base < listed(12).base


@pytest.mark.parametrize(
    ("more", "model", "factor"),
    [
        ({"speed": "fast"}, "claude-opus-5", 2.0),
        ({"speed": "fast"}, "claude-opus-4-8", 2.0),
        ({"speed": "fast"}, "claude-opus-4-6", 1.0),
        ({"speed": "standard", "inference_geo": "not_available"}, "claude-opus-5", 1.0),
        ({"service_tier": "batch"}, "claude-opus-4-8", 0.5),
        ({"inference_geo": "us"}, "claude-opus-4-8", 1.1),
    ],
)
def test_tier_and_region_change_the_price(more: dict[str, str], model: str, factor: float) -> None:
    usage = {"input_tokens": 100_000, "cache_read_input_tokens": 50_000, "output_tokens": 1_000}
    assert cost(usage | more, model) == pytest.approx(factor * cost(usage, model))


def test_a_tier_without_a_price_of_its_own_is_named() -> None:
    usage = {"input_tokens": 100, "output_tokens": 10}
    assert session(usage | {"speed": "fast"}, "claude-opus-5").unpriced == ""
    odd = session(usage | {"service_tier": "priority"}, "claude-opus-5")
    assert odd.unpriced == "Not in the cost: the price of the tier priority."


def test_a_name_that_sells_the_fast_tier() -> None:
    fast = bk.cost.prices("anthropic/claude-opus-4.8-fast", datetime(2026, 11, 20))
    assert fast.input == bk.cost.Price(10.0)
    assert bk.cost.prices("claude-opus-5-fast", datetime(2026, 11, 20)).input == fast.input
    assert bk.cost.prices("anthropic/claude-opus-4.6-fast").input is None
    assert bk.cost.prices("grok-4-fast").input is not None


def test_the_tier_beside_the_usage_is_read() -> None:
    request = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
    choice = {"message": {"role": "assistant", "content": "ok"}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    response = {"model": "gpt-5", "choices": [choice], "usage": usage}

    def told(**more: str) -> bk.Session:
        return bk.Session(bk.load_trace({"request": request, "response": response | more}))

    whole = told(service_tier="default").totals()["cost"]
    assert told(service_tier="flex").totals()["cost"] == pytest.approx(whole / 2)
    batched = {"custom_id": "a", "response": {"body": response}, "error": None}
    asked = {"request": {"custom_id": "a", "body": request}, "response": {"body": response}}
    for record in (batched, asked):
        trace = bk.load_trace(record)
        assert bk.Session(trace).totals()["cost"] == pytest.approx(whole / 2)


@pytest.mark.parametrize(
    ("asked", "answered", "factor", "unpriced"),
    [
        ({"service_tier": "flex"}, {}, 0.5, ""),
        ({"service_tier": "priority"}, {}, 2.0, ""),
        ({"service_tier": "flex"}, {"service_tier": None}, 0.5, ""),
        ({"service_tier": "flex"}, {"service_tier": "default"}, 1.0, ""),
        ({"service_tier": "auto"}, {}, 1.0, ""),
        ({"service_tier": "turbo"}, {}, 1.0, "Not in the cost: the price of the tier turbo."),
    ],
)
def test_a_tier_that_only_the_request_names_is_read(
    asked: dict[str, str], answered: dict[str, str], factor: float, unpriced: str
) -> None:
    """What was asked for counts where neither the answer nor its usage names what was served."""
    body: dict[str, object] = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
    answer: dict[str, object] = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
    answer["usage"] = {"prompt_tokens": 1000, "completion_tokens": 10}

    def told(request: dict[str, object], response: dict[str, object]) -> bk.Session:
        return bk.Session(bk.load_trace({"request": request, "response": response}))

    usual = told(body, answer).totals()["cost"]
    priced = told(body | asked, answer | answered)
    assert priced.totals()["cost"] == pytest.approx(factor * usual)
    assert priced.unpriced == unpriced


@pytest.mark.parametrize(
    ("asked", "counted", "factor"),
    [
        ({"speed": "fast"}, {}, 2.0),
        ({"speed": "fast"}, {"speed": "standard"}, 1.0),
        ({"inference_geo": "us"}, {}, 1.1),
        ({"service_tier": "standard_only"}, {}, 1.0),
    ],
)
def test_a_speed_or_region_that_only_the_request_names_is_read(
    asked: dict[str, str], counted: dict[str, str], factor: float
) -> None:
    body: dict[str, object] = {
        "model": "claude-opus-4-8",
        "messages": [{"role": "user", "content": "hi"}],
    }
    usage: dict[str, object] = {"input_tokens": 1000, "output_tokens": 10}

    def told(request: dict[str, object], usage: dict[str, object]) -> float:
        content = [{"type": "text", "text": "ok"}]
        answer = {"role": "assistant", "content": content, "usage": usage}
        trace = bk.load_trace({"request": request, "response": answer})
        return float(bk.Session(trace).totals()["cost"])

    assert told(body | asked, usage | counted) == pytest.approx(factor * told(body, usage))


def test_web_searches_are_in_the_cost_and_other_tools_are_named() -> None:
    usage = {"input_tokens": 100, "output_tokens": 10}
    searched = session(usage | {"server_tool_use": {"web_search_requests": 3}}, "claude-opus-5")
    assert searched.totals()["cost"] == pytest.approx(cost(usage, "claude-opus-5") + 0.03)
    kinds = searched.cost_by_kind()
    assert sum(kinds.values()) == pytest.approx(searched.totals()["cost"])
    assert kinds["searches"] == pytest.approx(0.03)
    assert searched.unpriced == ""
    calls = {"server_side_tool_usage_details": {"x_search_calls": 2, "mcp_calls": 1}}
    other = session(usage | calls, "grok-4.20")
    assert other.unpriced == "Not in the cost: 2 calls of paid tools."
    executed = session(usage | {"server_tool_use": {"code_execution_requests": 2}}, "claude-opus-5")
    assert executed.unpriced == other.unpriced

    executor = {"type": "message", "input_tokens": 100, "output_tokens": 10}
    advisor = {"type": "advisor_message", "model": "claude-opus-5", "input_tokens": 9_000}
    advised = session(usage | {"iterations": [executor, advisor]}, "claude-sonnet-4-6")
    assert advised.unpriced == "Not in the cost: 1 call of paid tools."


def test_cohere_is_priced_by_its_billed_units() -> None:
    """All 556 tokens of the prompt were priced, and none of those that were read has a price."""
    usage = {"billed_units": {"input_tokens": 27, "output_tokens": 68}, "cached_tokens": 480}
    called = session(
        usage | {"tokens": {"input_tokens": 556, "output_tokens": 71}}, "command-r-08-2024"
    )
    assert called.totals()["prompt"] == 556
    assert called.totals()["cost"] == pytest.approx((27 * 0.15 + 68 * 0.60) / 1e6)


def test_own_prices_hold_for_all_requests() -> None:
    prices = bk.cost.Prices("mine", bk.cost.Price(1.0), bk.cost.Price(2.0))
    trace = session(
        {"input_tokens": 1_000_000, "output_tokens": 0, "speed": "fast"}, "claude-opus-5"
    ).trace
    own = bk.Session(trace, prices=prices)
    assert own.totals()["cost"] == pytest.approx(1.0)
    assert own.unpriced == ""


def test_prices_by_name_know_the_hour() -> None:
    writes = {"ephemeral_1h_input_tokens": 10**6, "ephemeral_5m_input_tokens": 0}
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 10**6}
    of_hour = session(usage | {"cache_creation": writes}, "claude-haiku-4-5")
    named = bk.Session(of_hour.trace, prices="claude-haiku-4-5")
    assert of_hour.cost.tolist() == named.cost.tolist() == [2.0]


def test_bedrock_writes_the_lifetime_of_each_part() -> None:
    usage = {"inputTokens": 10, "outputTokens": 5, "cacheWriteInputTokens": 2000}
    short, long = (
        usage | {"cacheDetails": [{"inputTokens": 2000, "ttl": t}]} for t in ("5m", "1h")
    )
    model = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert cost(short, model) == pytest.approx(0.007605)
    assert cost(long, model) == pytest.approx(0.012105)


def test_a_region_of_bedrock_costs_a_tenth_more() -> None:
    usage = {"input_tokens": 10_000, "output_tokens": 1_000}
    name = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert cost(usage, f"global.{name}") == pytest.approx(0.045)
    assert cost(usage, f"us.{name}") == cost(usage, f"bedrock/eu.{name}") == pytest.approx(0.0495)


def test_a_model_that_a_router_gives_away_has_no_price_of_another() -> None:
    assert bk.cost.prices("deepseek/deepseek-chat-v3.1:free").input is None


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9000, "prompt_tokens_details": {"audio_tokens": 800}},
        {
            "promptTokenCount": 9000,
            "promptTokensDetails": [
                {"modality": "AUDIO", "tokenCount": 800},
                {"modality": "IMAGE", "tokenCount": 258},
            ],
        },
        {
            "promptTokenCount": 9,
            "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 800}],
        },
    ],
    ids=["sound", "sound of Gemini", "a drawn picture"],
)
def test_sound_and_drawn_pictures_are_named_as_priced_like_text(usage: dict[str, Any]) -> None:
    told = session(usage, "gemini-2.5-flash").unpriced
    assert told == (
        "Not in the cost: the price of 800 tokens of audio or generated images, counted as text."
    )


def call(model: str, answer: dict[str, Any], **asked: Any) -> float:
    """Return what a recorded call with its request cost."""
    request = {"model": model, **asked}
    trace = bk.load_trace({"request": request, "response": answer | {"model": model}})
    rows = [row | {"time": DAY} for row in trace.fields["usage"]]
    session = bk.Session(bk.Trace("s", trace.messages, fields={"usage": rows}))
    return float(session.totals()["cost"])


def test_searches_in_an_answer_are_in_the_cost() -> None:
    """OpenAI bills what was searched, not a page that was opened; Gemini 2.5 the answer, Gemini 3 each query."""
    actions = ["search", "open_page", "search"]
    calls = [{"type": "web_search_call", "action": {"type": kind}} for kind in actions]
    usage = {"input_tokens": 10_000, "output_tokens": 1_000}
    assert call("gpt-5", {"output": calls, "usage": usage}, input="hi") == pytest.approx(0.0425)

    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    grounded = {
        "content": {"role": "model", "parts": [{"text": "ok"}]},
        "groundingMetadata": {"webSearchQueries": ["a", "b"]},
    }
    counted = {"promptTokenCount": 10_000, "candidatesTokenCount": 1_000}
    answer = {"candidates": [grounded], "usageMetadata": counted}
    assert call("gemini-2.5-flash", answer, contents=contents) == pytest.approx(0.0405)
    assert call("gemini-3.5-flash", answer, contents=contents) == pytest.approx(0.052)


def test_the_model_of_a_recorded_call_to_bedrock_is_read() -> None:
    usage = {"inputTokens": 10_000, "outputTokens": 1_000}
    answer = {"message": {"role": "assistant", "content": [{"text": "ok"}]}}
    request = {"modelId": "amazon.nova-lite-v1:0", "messages": [{"role": "user", "content": []}]}
    trace = bk.load_trace({"request": request, "response": {"output": answer, "usage": usage}})
    assert trace.fields["usage"][0]["model"] == "amazon.nova-lite-v1:0"


def test_answers_of_geminis_batch_cost_half() -> None:
    """Until 0.4.0 they were priced as any other, in silence."""
    answer = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}}],
        "usageMetadata": {"promptTokenCount": 60_000, "candidatesTokenCount": 500},
        "modelVersion": "gemini-2.5-flash",
    }
    request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    call = {"request": request, "response": answer}
    whole, half = (bk.Session(bk.load_trace(one)) for one in (call, call | {"key": "r1"}))
    assert float(half.cost.sum()) == pytest.approx(float(whole.cost.sum()) / 2)
    assert float(half.cost.sum()) > 0


@pytest.mark.parametrize(
    ("name", "listed", "note"),
    [
        ("anthropic/claude-4.6-sonnet-20260217", "claude-sonnet-4-6", "is a spelling"),
        ("x-ai/grok-4.1-fast", "grok-4-1-fast", "is a spelling"),
        ("databricks-claude-sonnet-4-5", "claude-sonnet-4-5", "is a spelling"),
        ("mistral-large-latest", "mistral-large-2512", "is a spelling"),
        ("mistral/mistral-medium", "mistral-medium-latest", "is a spelling"),
        ("ministral-3b-latest", "ministral-3b-2512", "is a spelling"),
        ("deepseek-chat-v3.1", "deepseek-chat", "is priced as deepseek-chat"),
        ("mistral-medium-3", "mistral-medium-3-5", "is priced as mistral-medium-3-5"),
    ],
)
def test_a_name_that_is_not_listed_has_the_price_of_its_model(
    name: str, listed: str, note: str
) -> None:
    found = bk.cost.prices(name)
    assert found.input == bk.cost.prices(listed).input is not None
    assert note in found.source


def test_a_fine_tuned_model_has_a_price_of_its_own() -> None:
    assert bk.cost.prices("ft:gpt-4o-2024-08-06:org::id").input == bk.cost.Price(3.75)
    assert bk.cost.prices("ft:no-such-model:org::id").input is None


@pytest.mark.parametrize(
    ("name", "seller"),
    [
        ("groq/openai/gpt-oss-120b", "groq"),
        ("cerebras/gpt-oss-120b", "cerebras"),
        ("together_ai/openai/gpt-oss-120b", "together"),
        ("fireworks_ai/accounts/fireworks/models/deepseek-v4-pro", "fireworks"),
        ("zai/glm-5", "zai"),
        ("z-ai/glm-5", "zai"),
        ("glm-5", "zai"),
        ("openrouter/z-ai/glm-5", "openrouter"),
        ("openrouter/deepseek/deepseek-chat-v3.1", "openrouter"),
        ("azure/gpt-4o", "azure"),
        ("vertex_ai/claude-sonnet-4-5", "google"),
    ],
)
def test_the_seller_in_a_models_name_sets_the_price(name: str, seller: str) -> None:
    """Until 0.4.0 the first seller in the list was taken: Cerebras' price was nine times too low, in silence."""
    found = bk.cost.prices(name)
    assert f", {seller}/" in found.source and found.lacking == ()
    model = name.partition("/")[2] or name
    assert found.input == bk.cost.prices(model, provider=seller).input is not None


@pytest.mark.parametrize(
    ("name", "place"),
    [("bedrock/us-east-1/deepseek.v3.2", "bedrock"), ("deepinfra/deepseek-v3.2", "deepinfra")],
)
def test_a_seller_without_a_listed_price_is_named(name: str, place: str) -> None:
    assert bk.cost.prices(name).lacking == (f"the price of {place} itself",)


@pytest.mark.parametrize(
    "name", ["openrouter/anthropic/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5-v1:0"]
)
def test_claudes_one_hour_writes_cost_twice_its_input_wherever_it_is_sold(name: str) -> None:
    known = bk.cost.prices(name, hour=True)
    assert known.input and known.cache_write
    assert known.cache_write.base == pytest.approx(2 * known.input.base)


def test_a_fee_of_each_request_is_named() -> None:
    """Perplexity lists its models under two names, with different prices."""
    sonar = bk.cost.prices("perplexity/sonar")
    assert (sonar.input, sonar.lacking) == (bk.cost.Price(1.0), ("the fee of each request",))
