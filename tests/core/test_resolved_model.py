"""One resolved model: what a name decides is looked up once, and a conversation's own model frames its count."""

from typing import Any

import pytest

import budgetkit as bk
from budgetkit.models import UnknownModelWarning, resolve
from budgetkit.models.names import as_listed
from budgetkit.requests import DEFAULT_FRAMING, framing_for
from budgetkit.requests.billing.images import image_price
from budgetkit.trace.provider_usage import readings
from tests.messages import assistant, calling, system, tool_call, tool_result, user

NAMES = [
    *("gpt-4o", "gpt-5-mini", "o3", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro"),
    *("mistral-large-latest", "gtp-9"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_resolved_model_says_what_each_room_says_of_its_name(name: str) -> None:
    """Counter, framing, images and cache by the resolved model are those that the name alone comes to."""
    known = resolve(name)
    assert framing_for(known) == framing_for(name)
    assert bk.cost.provider_rules(known) == known.cache
    assert image_price(known.name, 640, 480) == image_price(name, 640, 480)
    if known.is_known:
        assert bk.counter(known) == bk.counter(name)
        assert known == bk.model(name)


def test_what_was_resolved_is_not_looked_up_again() -> None:
    known = resolve("gpt-4o")
    assert resolve(known) is known
    assert resolve("gpt-4o") is known
    assert resolve(known, window=8_192).window == 8_192


def test_who_asks_for_a_known_window_is_told_what_to_give() -> None:
    """A default of 8,192 tokens is for a notebook, which shows the warning; a gate that opened on it would be wrong."""
    assert resolve("gtp-4o-mini").window == 8_192
    assert "assumed" in resolve("gtp-4o-mini").notice
    refusal = r"'gtp-4o-mini'. Did you mean 'gpt-4o-mini'. .* or pass its window"
    with pytest.raises(ValueError, match=refusal):
        resolve("gtp-4o-mini", must_know=True)
    assert resolve("gtp-4o-mini", window=32_768, must_know=True).window == 32_768
    with (
        pytest.warns(UnknownModelWarning),
        pytest.raises(ValueError, match="or pass its window in tokens"),
    ):
        resolve(bk.model("gtp-4o-mini"), must_know=True)
    with pytest.warns(UnknownModelWarning):
        assert resolve(bk.model("gtp-4o-mini", window=1_000), must_know=True).window == 1_000


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("us.anthropic.claude-sonnet-4-5-v1:0", "bedrock"),
        ("openrouter/openai/gpt-4o", "openrouter"),
        ("gpt-4o", ""),
    ],
)
def test_a_name_says_where_a_model_runs(name: str, host: str) -> None:
    assert resolve(name).host == host


def claude_session() -> bk.Trace:
    """Make a session that says it was held with a Claude model, and what the provider counted."""
    call = tool_call("a", "look", '{"path": "notes.md"}')
    messages: list[dict[str, Any]] = [
        system("You are a careful assistant."),
        user("What do my notes say about the boiler?"),
        calling(call),
        tool_result("a", "The boiler is serviced in March."),
        assistant("It is serviced in March."),
    ]
    usage = [{"message_index": 4, "context_tokens": 700, "model": "claude-sonnet-4-5"}]
    tools = (
        {
            "name": "look",
            "description": "Read a file.",
            "input_schema": {"type": "object", "properties": {}},
        },
    )
    return bk.Trace("session", tuple(map(bk.Message, messages)), tools, fields={"usage": usage})


def test_a_conversations_own_model_frames_its_count() -> None:
    """0.2.0 framed every conversation as OpenAI does, which was 11.9 % off for a recorded Claude session."""
    session, count = claude_session(), bk.counter("claude-sonnet-4-5")
    claude = framing_for("claude-sonnet-4-5")
    assert session.model == "claude-sonnet-4-5"
    assert session.framing == claude != DEFAULT_FRAMING
    assert session.counts(count).tolist() == session.counts(count, claude).tolist()
    assert session.counts(count).tolist() != session.counts(count, DEFAULT_FRAMING).tolist()
    assert readings(session, count).equals(readings(session, count, claude))
    assert session.demand(count).equals(session.demand(count, framing=claude))

    budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    by_itself = bk.replay(session, budget, "oldest first", counter=count)
    assert by_itself.frame().equals(
        bk.replay(session, budget, "oldest first", counter=count, framing=claude).frame()
    )


def test_an_answer_that_a_program_made_up_is_no_model() -> None:
    rows = [
        {"message_index": 1, "context_tokens": 9, "model": name}
        for name in ("claude-opus-4-1", "<synthetic>")
    ]
    spoken = (user("Hello"), assistant("Hello."))
    trace = bk.Trace("session", tuple(map(bk.Message, spoken)), fields={"usage": rows})
    assert trace.model == "claude-opus-4-1"


def test_prices_take_a_resolved_model() -> None:
    assert (
        bk.cost.prices(resolve("gpt-4o"))
        == bk.cost.prices("gpt-4o")
        == bk.cost.prices(bk.model("gpt-4o"))
    )


#: How people write a model, and how it is listed; the last two are in a price list alone, and known to nobody.
SPELLINGS = {
    "gpt4o": "gpt-4o",
    "GPT-4o": "gpt-4o",
    "gpt-4-o": "gpt-4o",
    "gpt_4o": "gpt-4o",
    "gpt4o-mini": "gpt-4o-mini",
    "gpt4o-2024-08-06": "gpt-4o-2024-08-06",
    "gpt-4-1": "gpt-4.1",
    "gpt5": "gpt-5",
    "claude-sonnet-4.5": "claude-sonnet-4-5",
    "claudesonnet45": "claude-sonnet-4-5",
    "gemini2.5pro": "gemini-2.5-pro",
    "claude3.5sonnet": "claude-3-5-sonnet",
}
#: Names that say who makes a model or passes it on, with what they are without.
ROUTED = {
    "anthropic/claude-sonnet-4.5": "anthropic/claude-sonnet-4-5",
    "openrouter/openai/gpt4o": "openrouter/openai/gpt-4o",
    "azure/gpt4o": "azure/gpt-4o",
    "gpt4o:free": "gpt-4o:free",
}
HELLO = "Say hello to the person who asks."


def request_of(name: str) -> dict[str, Any]:
    return {"model": name, "messages": [user(HELLO)]}


def conversation_with(name: str) -> int:
    conversation = bk.Conversation("chat", model=name)
    conversation.add(user(HELLO))
    return conversation.request().plan.used


#: Every way by which a model's name comes to a number or a word.
ENTRIES: dict[str, Any] = {
    "window": lambda name: bk.model(name).window,
    "encoding": lambda name: bk.model(name).encoding,
    "bill": lambda name: bk.count_request(request_of(name)).tokens,
    "bill by model=": lambda name: bk.count_request(request_of("x"), model=name).tokens,
    "word of the bill": lambda name: bk.count_request(request_of(name)).basis,
    "interval of the bill": lambda name: bk.count_request(request_of(name)).interval,
    "words of the interval": lambda name: bk.count_request(request_of(name)).interval_words,
    "answer": lambda name: bk.requests.count_answer(assistant(HELLO), name),
    "counter": lambda name: bk.counter(name)(HELLO),
    "build": lambda name: bk.build("chat", model=name, user=HELLO).plan.used,
    "build by counter": lambda name: bk.build("chat", name, window=8_000, user=HELLO).plan.used,
    "conversation": conversation_with,
    "image": lambda name: image_price(name, 640, 480),
    "thinking": lambda name: bk.limits.thinking(name, "high").tokens,
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("spelling", SPELLINGS | ROUTED)
def test_a_spelling_comes_to_the_same_wherever_a_model_is_named(spelling: str, entry: str) -> None:
    """A spelling that only some tables knew was billed as anybody's model, 7 tokens where gpt-4o bills 11."""
    listed = (SPELLINGS | ROUTED)[spelling]
    assert ENTRIES[entry](spelling) == ENTRIES[entry](listed)


def test_a_spelling_of_a_model_has_its_prices_and_its_cache() -> None:
    for spelling, listed in SPELLINGS.items():
        if listed != "claude-3-5-sonnet":
            assert bk.cost.prices(spelling).input == bk.cost.prices(listed).input, spelling
            assert resolve(spelling).cache == resolve(listed).cache, spelling


@pytest.mark.parametrize(
    ("model", "cache", "minimum"),
    [
        ("deepseek-v4-pro", "deepseek", 64),
        ("xai/grok-4.5", "xai", 0),
        ("kimi-k3", "moonshot", 0),
        ("mistral-large-latest", "mistral", 0),
        ("glm-5.3", "zai", 0),
        ("qwen3.8-max", "qwen", 256),
        ("MiniMax-M3", "minimax", 512),
        ("gemini-4-argon", "gemini-6144", 6_144),
        ("gemini-3.5-flash", "gemini", 4_096),
    ],
)
def test_a_makers_own_cache_is_known(model: str, cache: str, minimum: int) -> None:
    """Seven makers' had the cache that stands in, at Anthropic's price of writing."""
    assert resolve(model).cache == cache
    row = bk.cost.CACHES[cache]
    assert (row.minimum, row.write) == (minimum, 1.0)
    assert row.read < 0.3 and row.lifetime and "read 2026-11-2" in row.source


def test_a_longer_name_that_begins_as_a_listed_one_stays_its_own() -> None:
    """Blanks and dots between letters are left out only where the whole name, or its beginning, is listed so."""
    for name in ("gpt-4-0613", "gpt-4-0125-preview", "grok-4-0709", "claude-3-5-sonnet-20241022"):
        assert as_listed(name) == name


@pytest.mark.parametrize(
    "entry", ["bill", "build", "conversation", "trim", "replay", "solve", "model"]
)
def test_a_model_that_nobody_knows_is_said_so_wherever_it_is_named(entry: str) -> None:
    """The bill says it in its own words, the others warn; with a window none of them refuses."""
    hello = [user(HELLO)]
    named: dict[str, Any] = {"model": "acme-9", "window": 8_000}
    calls: dict[str, Any] = {
        "build": lambda: bk.build("chat", **named, user=HELLO),
        "conversation": lambda: bk.Conversation("chat", **named),
        "trim": lambda: bk.trim(hello, bk.presets.chat(8_000), **named),
        "replay": lambda: bk.replay(hello, "chat", "oldest first", **named),
        "solve": lambda: bk.deciding.solve({"user": 9}, "chat", "window", **named),
        "model": lambda: bk.model("acme-9", window=8_000),
    }
    if entry == "bill":
        assert "unknown model 'acme-9'" in repr(bk.count_request(request_of("acme-9")))
        return
    warning = r"Unknown model 'acme-9': cl100k_base is assumed. Pass encoding="
    with pytest.warns(UnknownModelWarning, match=warning):
        calls[entry]()
