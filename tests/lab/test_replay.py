"""A conversation over its turns: what is kept, what is read from the prompt cache, what it costs."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import policies
from budgetkit.lab.replay.cost import Price, Prices, compaction_turns
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache, provider_rules
from budgetkit.lab.sessions.setup import replay_setup
from budgetkit.models import Model
from budgetkit.pruning.policies import Floor, Policy
from tests.slow_replay import ONE_A_CHARACTER, message, slow_replay

ROLES = {
    "system": "system",
    "context": "knowledge",
    "user": "history",
    "assistant": "history",
    "tool": "history",
}
RUNNING = ROLES | {"current": "current", "step": "current"}


def chat(turns: int, question: int, answer: int = 0, system: int = 0) -> bk.Trace:
    """A conversation whose every message has a known number of characters, which count as tokens."""
    said = [message("user", question), *([message("assistant", answer)] if answer else [])] * turns
    return bk.Trace("toy", (*([message("system", system)] if system else []), *said))


def window(size: int, roles: dict[str, str] | None = None, **history: Any) -> bk.Budget:
    required = [bk.Allocation(name, required=True) for name in ("system", "knowledge", "current")]
    lines = [*required, bk.Allocation("history", importance=1, **history)]
    return bk.Budget(size, (), lines, roles=roles or RUNNING, remainder="history")


def replayed(trace: bk.Trace, budget: bk.Budget, policy: Policy, **more: Any) -> Replay:
    return bk.replay(trace, budget, policy, counter=len, framing=ONE_A_CHARACTER, **more)


# Eight turns of 10 + 20 tokens under a system message of 5, in a window of 100: 85 tokens are left for the history.
TOY = chat(8, 10, 20, 5)


@pytest.mark.parametrize(
    ("policy", "size", "history"),
    [
        (policies.OldestFirst(), 100, [0, 30, 60, 80, 80, 80, 80, 80]),
        # No answer may stay without its question.
        (policies.OldestFirst(unit="turn"), 100, [0, 30, 60, 60, 60, 60, 60, 60]),
        # The last turns stay, even where there is room for more.
        (policies.SlidingWindow(2), 1_000, [0, 30, 60, 60, 60, 60, 60, 60]),
        # With 90 tokens for 85 the surplus is 5; a step of 40 removes 40: the first 10 + 20 + 10.
        (policies.Step(40), 100, [0, 30, 60, 50, 80, 60, 50, 80]),
        (policies.TriggerTarget(bk.Share(1), bk.Share(0.5)), 100, [0, 30, 60, 30, 60, 30, 60, 30]),
    ],
    ids=repr,
)
def test_what_each_policy_keeps_of_the_history(
    policy: Policy, size: int, history: list[int]
) -> None:
    frame = replayed(TOY, window(size), policy).frame()
    assert frame["history"].tolist() == history
    if policy == policies.OldestFirst():
        assert frame["dropped"].tolist() == [0, 0, 0, 10, 30, 30, 30, 30]
        assert frame["sent"].tolist() == [15, 45, 75, 95, 95, 95, 95, 95]
    if policy == policies.TriggerTarget(bk.Share(1), bk.Share(0.5)):
        # The next request begins with the last one until something is dropped.
        assert frame["cached"].tolist() == [0, 15, 45, 5, 45, 5, 45, 5]


def test_what_was_dropped_is_stored_as_an_interval_of_turns() -> None:
    outcome = replayed(TOY, window(100), policies.OldestFirst())
    messages = outcome.messages()
    assert messages["gone"].iloc[:5].astype("object").where(
        lambda gone: gone.notna(), None
    ).tolist() == [
        None,
        4,
        5,
        5,
        6,
    ]
    assert messages["first"].iloc[:5].tolist() == [1, 1, 2, 2, 3]
    assert outcome.absent(5) == [1, 2, 3]
    assert outcome.present(5) == [0, 4, 5, 6, 7, 8, 9]
    with pytest.raises(ValueError, match=r"No request 9 in this replay. Choose 1 to 8"):
        outcome.absent(9)


def test_a_summary_takes_the_place_of_the_oldest_share() -> None:
    """Turn 4 has 6 messages of 90 tokens: 30 % of 6 is 1, of 10 tokens; a fifth of that is 2, and 82 are left.

    In turn 5 there are 112: the summary and 2 of 7 messages, 32 tokens, become 6; of the 86 that is one too many,
    so the summary and 1 of 5 messages, 26 tokens, become 5, and 65 are left.
    """
    frame = replayed(TOY, window(100), policies.Summarise(bk.Share(0.3), bk.Share(0.2))).frame()
    assert frame["history"].tolist()[:5] == [0, 30, 60, 82, 65]
    assert frame["summary_calls"].tolist()[:5] == [0, 0, 0, 1, 2]
    assert frame["summary_input"].tolist()[:5] == [0, 0, 0, 10, 32 + 26]
    assert frame["summary_output"].tolist()[:5] == [0, 0, 0, 2, 6 + 5]


def test_a_summary_may_be_written_by_a_callable_and_is_counted_and_summarised_again() -> None:
    read: list[list[str]] = []

    def write(messages: list[bk.Message]) -> str:
        read.append([m.text for m in messages])
        return "so far"

    frame = replayed(TOY, window(100), policies.Summarise(2, text=write)).frame()
    assert frame["summary_output"].tolist()[:4] == [0, 0, 0, 6]
    assert read[0] == ["x" * 10, "x" * 20]
    assert read[1][0] == "so far"


def call(name: str, size: int) -> list[bk.Message]:
    calls = [{"id": name, "type": "function", "function": {"name": "", "arguments": ""}}]
    return [message("assistant", 1, tool_calls=calls), message("tool", size, tool_call_id=name)]


AGENT = bk.Trace(
    "agent",
    (
        message("user", 10),
        *call("a", 50),
        *call("b", 50),
        message("assistant", 10),
        message("user", 10),
    ),
)


def test_tool_results_shrink_to_a_placeholder_and_stay_with_their_call() -> None:
    """The history of turn 2 is 10 + 51 + 51 + 10 in a room of 90: one result shrinks to 5 and 77 are left."""
    outcome = replayed(AGENT, window(100), policies.DropToolResults(5))
    assert outcome.frame()["history"].tolist()[-1] == 77
    assert outcome.messages()["fate"].tolist() == [
        *("kept", "kept", "shrunk", "kept", "kept", "kept", "kept"),
    ]
    newest = policies.DropToolResults(5, intact=2)
    assert replayed(AGENT, window(100), newest).messages()["fate"].tolist()[:3] == [
        "dropped",
        "dropped",
        "dropped",
    ]


def test_a_call_that_was_broken_off_is_in_no_request_and_costs_its_output_all_the_same() -> None:
    """Of two calls one has a result; providers refuse both, so their message and that result are left out."""
    calls = [
        {"id": name, "type": "function", "function": {"name": "", "arguments": ""}}
        for name in ("x", "y")
    ]
    broken = [message("assistant", 70, tool_calls=calls), message("tool", 30, tool_call_id="x")]
    trace = bk.Trace(
        "stopped", (message("user", 10), *broken, message("user", 5), message("assistant", 3))
    )
    outcome = replayed(trace, window(1_000), policies.OldestFirst())
    assert outcome.frame()[["sent", "output"]].to_numpy().tolist() == [[10, 70], [15, 3]]
    assert outcome.present(2) == [0, 3]
    assert outcome.absent(2) == []
    assert outcome.messages()["fate"].tolist() == ["kept", "not sent", "not sent", "kept", "kept"]
    assert outcome.messages()["first"].isna().tolist() == [False, True, True, False, True]


def test_a_result_without_a_call_is_in_no_request() -> None:
    trace = bk.Trace("cut out", (message("tool", 30, tool_call_id="x"), message("user", 5)))
    assert replayed(trace, window(1_000), policies.OldestFirst()).frame()["sent"].tolist() == [5]


def test_by_request_an_agent_sends_one_for_each_answer() -> None:
    """The same trace makes four requests; while the turn runs, its own calls are history where the table says so."""
    frame = replayed(AGENT, window(1_000, ROLES), policies.OldestFirst(), by="request").frame()
    assert frame["turn"].tolist() == [1, 1, 1, 2]
    assert frame["sent"].tolist() == [10, 61, 112, 132]
    assert frame["output"].tolist() == [1, 1, 10, 0]


def test_the_least_important_goes_first() -> None:
    """Questions are shorter than answers, and rank below them: all of them go before the first answer does."""
    ranked = policies.Importance(lambda m: len(m.text))
    gone = replayed(TOY, window(100), ranked).messages().set_index("message")["gone"]
    assert gone.loc[1::2].dropna().tolist() == [4, 5, 5, 5, 6, 7, 8]
    assert gone.loc[2::2].dropna().tolist() == [6, 7, 8]


FLOORS = [Floor(70, "tokens"), Floor(3, "turns"), Floor(5, "messages")]


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: floor.unit)
def test_a_floor_is_kept_and_said_to_exceed_the_budget(floor: Floor) -> None:
    """A room of 35 tokens; 70 tokens, 3 turns or 5 messages are promised."""
    frame = replayed(TOY, window(50), policies.OldestFirst(floor=floor)).frame()
    last = frame.iloc[-1]
    assert last["history"] >= 70
    assert last["over"] == last["history"] - last["limit"] > 0


def test_a_floor_may_raise() -> None:
    floor = Floor(70, "tokens", "raise")
    with pytest.raises(
        ValueError,
        match=r"The history budget of turn 3 is 35 tokens, .* needs 60 \(25 too many\). Lower the",
    ):
        replayed(TOY, window(50), policies.OldestFirst(floor=floor))


def test_a_floor_may_shrink_the_others() -> None:
    trace = bk.Trace(
        "passages",
        (*chat(4, 10, 20).messages, message("user", 10, contexts=["p" * 60])),
        contexts={8: (bk.Message({"role": "user", "contexts": ["p" * 60]}).contexts)},
    )
    lines = [bk.Allocation("knowledge", importance=9), bk.Allocation("current", required=True)]
    budget = bk.Budget(100, (), [*lines, bk.Allocation("history", importance=1)], roles=RUNNING)
    outcome = replayed(trace, budget, policies.OldestFirst(floor=Floor(60, "tokens", "shrink")))
    sections = outcome.sections().query("turn == 5").set_index("section")["tokens"]
    assert sections[["history", "knowledge", "current"]].tolist() == [60, 30, 10]
    assert outcome.frame()["over"].tolist()[-1] == 0


def test_the_newest_message_stays_where_only_its_section_has_no_room() -> None:
    """A cap of 5 is exceeded by the newest message, since the window has room for it; it is said to be over."""
    frame = replayed(chat(3, 10, 20), window(40, cap=5), policies.OldestFirst()).frame()
    assert frame["history"].tolist() == [0, 20, 20]
    assert frame["over"].tolist() == [0, 15, 15]


def test_the_newest_message_goes_where_the_window_has_no_room_unless_a_floor_was_asked_for() -> (
    None
):
    """In 0.2.0 it stayed, and the request was larger than the window."""
    frame = replayed(chat(3, 10, 20), window(10), policies.OldestFirst()).frame()
    assert frame["history"].tolist() == [0, 0, 0]
    assert frame["sent"].tolist() == [10, 10, 10]
    frame = replayed(
        chat(3, 10, 20), window(10), policies.OldestFirst(floor=Floor(1, "turns"))
    ).frame()
    assert frame["over"].tolist() == [0, 20, 20]


# The prompt cache.


@pytest.mark.parametrize(
    ("policy", "share", "relative"),
    [
        (policies.OldestFirst(), 0.154, 1.073),
        (policies.TriggerTarget(bk.Share(1), bk.Share(0.7), of="usable"), 0.903, 0.212),
    ],
    ids=["oldest first", "cut to 70 %"],
)
def test_cutting_rarely_keeps_the_prompt_cache(
    policy: Policy, share: float, relative: float
) -> None:
    """Facts 5.5: 200 turns of 600 tokens, a system message of 1,500, a budget of 20,000, write 1.25, read 0.1."""
    totals = replayed(chat(200, 600, system=1_500), window(20_000), policy).totals()
    assert round(totals["cached_share"], 3) == share
    assert round(totals["relative_cost"], 3) == relative


def test_a_passage_of_the_last_turn_ends_the_equal_prefix() -> None:
    passages = bk.Message({"role": "user", "contexts": ["p" * 7]}).contexts
    trace = bk.Trace("passages", chat(3, 10, 20, 5).messages, contexts={3: passages})
    frame = replayed(trace, window(1_000), policies.OldestFirst()).frame()
    assert frame["sent"].tolist() == [15, 52, 75]
    assert frame["cached"].tolist() == [0, 15, 35]


def test_a_section_that_is_cut_to_another_length_ends_the_equal_prefix() -> None:
    """In turn 2 the system messages are cut from 60 to 40, in turn 3 they are cut in the same way again."""
    growing = bk.Trace(
        "growing",
        (
            message("user", 10),
            message("system", 30),
            message("user", 10),
            message("system", 30),
            message("user", 10),
        ),
    )
    lines = [bk.Allocation("system", 40), bk.Allocation("current"), bk.Allocation("history")]
    frame = replayed(
        growing, bk.Budget(500, (), lines, roles=RUNNING), policies.OldestFirst()
    ).frame()
    assert frame["sent"].tolist() == [40, 60, 70]
    assert frame["cached"].tolist() == [0, 0, 60]


SENT = np.array([2_000, 2_500, 2_600])
HEAD = np.array([1_200, 1_200, 1_200])


def split(cache: PromptCache, equal: list[int], **more: Any) -> list[list[int]]:
    return [part.tolist() for part in cache.split(SENT, HEAD, np.array(equal), **more)]


@pytest.mark.parametrize(
    ("cache", "equal", "more", "read"),
    [
        # An automatic cache measures in steps from a minimum; below it nothing is read nor written.
        ("openai", [0, 2_000, 1_000], {}, [0, 1_920, 0]),
        ("anthropic-4096", [0, 2_000, 2_500], {}, [0, 0, 0]),
        # 2,000 is all of the last request; 1,900 is less, so only the mark after the head counts.
        ("anthropic", [0, 2_000, 1_900], {}, [0, 2_000, 1_200]),
        # A cache looks back over so many blocks only, and forgets after its lifetime.
        ("anthropic", [0, 2_000, 2_500], {"new_blocks": np.array([1, 21, 1])}, [0, 1_200, 2_500]),
        ("anthropic", [0, 2_000, 2_500], {"pauses": np.array([np.nan, 299, 301])}, [0, 2_000, 0]),
    ],
)
def test_what_a_cache_reads_of_an_equal_beginning(
    cache: str, equal: list[int], more: dict[str, Any], read: list[int]
) -> None:
    found = split(CACHES[cache], equal, **more)
    assert found[0] == read
    if cache == "openai":
        assert found[1] == [2_000, 580, 2_600]
    if cache == "anthropic-4096":
        assert found[1] == [0, 0, 0]


def test_a_run_of_calls_and_a_run_of_results_is_one_position_each_that_is_looked_back_over() -> (
    None
):
    """However many an answer calls at once its request stays in reach; 21 texts before one call are too many."""
    reached = []
    for texts, number in ((1, 30), (21, 1)):
        calls = [
            {"id": str(i), "function": {"name": "look", "arguments": "{}"}} for i in range(number)
        ]
        results = [{"role": "tool", "tool_call_id": str(i), "content": "so"} for i in range(number)]
        parts = [{"type": "text", "text": "Let me look."}] * texts
        answer = {"role": "assistant", "content": parts, "tool_calls": calls}
        raw: list[dict[str, Any]] = [{"role": "user", "content": "why " * 2_000}, answer, *results]
        trace = bk.Trace("toy", tuple(map(bk.Message, raw)))
        outcome = bk.replay(
            trace, window(50_000), policies.OldestFirst(), by="request", cache=CACHES["anthropic"]
        )
        reached.append(bool(outcome.cached[1] > 1_500))
    assert reached == [True, False]


def test_the_end_of_any_earlier_request_that_is_still_alive_is_read() -> None:
    """The third request begins with 2,100 tokens of the second, and so with all 2,000 of the first."""
    assert split(CACHES["anthropic"], [0, 2_000, 2_100])[0] == [0, 2_000, 2_000]
    long_ago = np.array([np.nan, 200, 301])
    assert split(CACHES["anthropic"], [0, 2_000, 2_100], pauses=long_ago)[0] == [0, 2_000, 0]
    twice = PromptCache(1024, 1, 1.25, 0.1, 300, ("head", "end"))
    used_again = np.array([np.nan, 200, 200])
    assert split(twice, [0, 2_000, 2_100], pauses=used_again)[0] == [0, 2_000, 2_000], (
        "reading keeps it alive"
    )
    not_read = np.array([np.nan, 200, 200])
    assert split(twice, [0, 1_900, 1_900], pauses=not_read)[0] == [0, 1_200, 1_200], (
        "1,900 end no request"
    )


def test_from_gpt_5_6_on_writing_costs_and_only_marks_are_read_without_a_look_back() -> None:
    cache, blocks = CACHES["openai-5.6"], np.array([1, 50, 50])
    assert split(cache, [0, 2_000, 2_100], new_blocks=blocks) == [
        [0, 2_000, 2_000],
        [2_000, 500, 600],
    ]
    assert (cache.write, cache.lifetime, cache.considered) == (1.25, 1_800, 80)
    assert CACHES["openai"].write == 1.0


def test_claude_models_have_their_own_least_lengths() -> None:
    names = {
        "claude-opus-5": 512,
        "claude-opus-4-7": 2_048,
        "claude-haiku-4-5": 4_096,
        "claude-sonnet-5": 1_024,
    }
    found = {name: CACHES[provider_rules(Model(name, 200_000, provider="Anthropic"))].minimum
             for name in names}  # fmt: skip
    assert found == names


def test_gemini_reads_any_beginning_from_its_minimum_on_and_charges_nothing_for_writing() -> None:
    """Implicit caching: from 2,048 tokens with Gemini 2.5; Gemini 3 asks for 4,096."""
    assert split(CACHES["gemini-2048"], [0, 2_000, 2_300]) == [[0, 0, 2_300], [0, 2_500, 300]]
    assert split(CACHES["gemini"], [0, 2_000, 2_300]) == [[0, 0, 0], [0, 0, 0]]
    assert CACHES["gemini"].relative_cost(cached=900, written=100, fresh=0) == pytest.approx(0.19)


def test_every_cache_says_where_its_numbers_come_from() -> None:
    assert all(cache.source for cache in CACHES.values())


def test_what_reading_costs_is_taken_from_the_prices_where_they_say_it() -> None:
    """gpt-4o reads at half price, gpt-5 at a tenth, by genai-prices."""
    shares = {}
    for name in ("gpt-4o", "gpt-5"):
        known = bk.cost.prices(name, date(2026, 11, 21))
        shares[name] = replayed(
            TOY, window(100), policies.OldestFirst(), cache=CACHES["openai"], prices=known
        ).cache.read
    assert shares == {"gpt-4o": pytest.approx(0.5), "gpt-5": pytest.approx(0.1)}


@pytest.mark.parametrize(
    "times",
    [
        ["2026-11-21T10:00:00Z", None, "2026-11-21T10:04:00Z", None, "2026-11-21T10:10:00Z"],
        # The time of the second request is unknown, but there is an hour from the first to the third.
        ["2026-11-21T10:00:00Z", None, None, None, "2026-11-21T11:00:00Z"],
    ],
    ids=["every time known", "the second unknown"],
)
def test_times_of_messages_are_the_pauses_between_requests(times: list[str | None]) -> None:
    raw = [
        {"role": "assistant" if i % 2 else "user", "content": "x" * 2_000, "timestamp": at}
        for i, at in enumerate(times)
    ]
    trace = bk.Trace("slow", tuple(map(bk.Message, raw)))
    frame = replayed(
        trace, window(100_000), policies.OldestFirst(), cache=CACHES["anthropic"]
    ).frame()
    assert frame["cached"].tolist() == [0, 2_000, 0]


def test_an_unknown_breakpoint_and_a_negative_minimum_are_refused() -> None:
    with pytest.raises(
        ValueError, match="Invalid breakpoint: 'middle'. Choose one of: 'head', 'end"
    ):
        PromptCache(breakpoints=("middle",))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="Invalid minimum -1 or increment 1. Use a minimum of at least 0"
    ):
        PromptCache(-1)


# Money.

CLAUDE = Prices("claude", Price(3.0), Price(15.0), Price(0.3), Price(3.75))


def test_cost_is_the_sum_of_four_kinds_of_tokens() -> None:
    kinds = [np.array([n]) for n in (1_000_000, 2_000_000, 400_000, 100_000)]
    assert CLAUDE.cost(*kinds).tolist() == [pytest.approx(3.0 + 0.6 + 1.5 + 1.5)]


def test_an_unknown_price_stays_unknown() -> None:
    unknown = bk.cost.prices("no such model", date(2026, 11, 21))
    zero, some = np.array([0]), np.array([10])
    assert np.isnan(unknown.cost(some, zero, zero, zero)).all()
    assert unknown.cost(zero, zero, zero, zero).tolist() == [0.0]
    assert "does not list 'no such model'" in unknown.source
    assert np.isnan(replayed(TOY, window(100), policies.OldestFirst()).totals()["cost"])


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-oss:20b", "ollama/gpt-oss:20b", "ollama_chat/mistral:7b"),
        *("deepseek-r1:latest", "ollama/gpt-4o"),
    ],
)
def test_what_ollama_runs_has_no_price_of_a_host(name: str) -> None:
    """By its spelling, gpt-oss:20b is a model that hosts sell; on one's own machine nobody does."""
    local = bk.cost.prices(name, date(2026, 11, 21))
    assert (local.input, local.output) == (None, None)
    assert f"does not list '{name}'" in local.source
    assert bk.cost.prices("gpt-oss-20b", date(2026, 11, 21)).input is not None


def test_a_price_may_be_given_and_says_so() -> None:
    given = bk.cost.prices("gpt-4o", date(2026, 11, 21), input=7)
    assert given.input == Price(7.0)
    assert given.source.endswith("openai/gpt-4o; input given")
    assert given.date == "2026-11-21"
    with pytest.raises(
        TypeError,
        match="Unknown price 'inputs'. Did you mean 'input'",
    ):
        bk.cost.prices("gpt-4o", inputs=7)


def test_a_long_context_costs_more_for_every_token() -> None:
    """Claude Sonnet 4.5 above 200,000 tokens of input: twice the price of input, by genai-prices."""
    sonnet = bk.cost.prices("claude-sonnet-4-5", date(2026, 11, 21))
    sizes, none = np.array([200_000, 200_001]), np.zeros(2, dtype=np.int64)
    assert sonnet.cost(sizes, none, none, none).tolist() == [
        pytest.approx(0.6),
        pytest.approx(1.200006),
    ]


def test_an_hour_in_the_cache_has_a_price_of_its_own() -> None:
    dated = date(2026, 11, 21)
    writes = [
        bk.cost.prices("claude-opus-4-5", dated, hour=hour).cache_write for hour in (False, True)
    ]
    assert writes == [Price(6.25), Price(10.0)]


def test_a_cache_of_an_hour_is_billed_at_the_price_of_an_hour() -> None:
    trace, budget = bk.load_trace("support-chat"), bk.presets.working_memory(8_192, history_floor=0)
    named: dict[str, Any] = {"model": "claude-haiku-4-5", "cache": bk.cost.CACHES["anthropic-1h"]}
    long, short = (bk.cost.prices("claude-haiku-4-5", hour=hour) for hour in (True, False))
    by_name, right, wrong = (
        bk.replay(trace, budget, "summarise", prices=prices, **named)
        for prices in ("claude-haiku-4-5", long, short)
    )
    assert by_name.totals() == right.totals()
    assert [bool(outcome.warnings) for outcome in (by_name, right, wrong)] == [False, False, True]
    assert replay_setup(trace, price="claude-haiku-4-5", cache="anthropic-1h").prices == long


def test_compaction_pays_for_itself_after_k_turns() -> None:
    """P15: k* = (2,000 * 15 + 20,000 * (3.75 - .3)) / (100,000 * .3 - 20,000 * .3) = 99,000 / 24,000."""
    assert compaction_turns(100_000, 20_000, 0, 2_000, CLAUDE) == pytest.approx(4.125)
    assert compaction_turns(20_000, 20_000, 0, 2_000, CLAUDE) is None
    assert compaction_turns(100_000, 20_000, 0, 2_000, bk.cost.prices("no such model")) is None


def test_a_compacted_prompt_is_priced_below_the_step_that_the_long_one_is_above() -> None:
    """k* = (300k * .5 + 2k * 9 + 20k * (2.5 - .25)) / (300k * .5 - 20k * .25) = 213 / 145."""
    doubled = Price(1, ((272_000, 2.0),))
    new, answer, read, write = (doubled.times(price) for price in (2.5, 4.5, 0.25, 2.5))
    tiered = Prices("steps", new, answer, read, write)
    turns = compaction_turns(300_000, 20_000, 300_000, 2_000, tiered)
    assert turns == pytest.approx(213 / 145)


def test_the_cost_of_a_replay_is_that_of_its_requests_answers_and_summaries() -> None:
    outcome = replayed(TOY, window(100), policies.Summarise(2, 5), prices=CLAUDE)
    totals = outcome.totals()
    frame = outcome.frame()
    read = (
        0.3 * totals["cached"]
        + 3.75 * totals["written"]
        + 3.0 * (totals["fresh"] + totals["summary_input"])
    )
    answered = 15.0 * (totals["output"] + frame["summary_output"].sum())
    assert totals["summary_calls"] > 0
    assert totals["cost"] == pytest.approx((read + answered) / 1e6)


def test_policies_are_ranked_by_what_they_cost() -> None:
    trace = chat(200, 600, system=1_500)
    by_name = {"oldest": policies.OldestFirst(), "low mark": policies.TriggerTarget()}
    table = bk.deciding.rank_policies(
        {n: replayed(trace, window(20_000), p, prices=CLAUDE) for n, p in by_name.items()}
    )
    assert table["policy"].tolist() == ["low mark", "oldest"]
    assert table["cost"].is_monotonic_increasing


def test_replays_in_a_list_are_called_by_their_policies_and_what_is_none_is_refused() -> None:
    """A list was a raw AttributeError, and no replay at all a KeyError."""
    replay = replayed(chat(20, 600), window(4_000), policies.SlidingWindow(5))
    for forms in ([replay], replay):
        assert bk.deciding.rank_policies(forms)["policy"].tolist() == ["SlidingWindow(5)"]
    for strange in ({"mine": 3}, ["oldest first"], 5):
        with pytest.raises(TypeError, match="Expected results of bk.replay"):
            bk.deciding.rank_policies(strange)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="No replays to rank"):
        bk.deciding.rank_policies({})


# Held against the slow, obvious twin.


@st.composite
def traces(draw: st.DrawFn) -> bk.Trace:
    """Any conversation of users, answers, tool calls with their results, late results and passages."""
    said: list[bk.Message] = (
        [message("system", draw(st.integers(0, 9)))] if draw(st.booleans()) else []
    )
    open_calls: list[str] = []
    for place in range(draw(st.integers(1, 22))):
        kind = draw(st.sampled_from(["user", "answer", "call", "result"]))
        size = draw(st.integers(0, 30))
        if kind == "call":
            names = [f"{place}.{n}" for n in range(draw(st.integers(1, 2)))]
            open_calls += names
            calls = [
                {"id": name, "type": "function", "function": {"name": "", "arguments": ""}}
                for name in names
            ]
            said.append(message("assistant", size, tool_calls=calls))
        elif kind == "result" and open_calls:
            said.append(
                message(
                    "tool",
                    size,
                    tool_call_id=open_calls.pop(draw(st.integers(0, len(open_calls) - 1))),
                )
            )
        else:
            said.append(message("user" if kind == "user" else "assistant", size))
    passages = bk.Message({"role": "user", "contexts": ["p" * draw(st.integers(1, 9))]}).contexts
    users = [i for i, m in enumerate(said) if m.role == "user"]
    return bk.Trace(
        "any", tuple(said), contexts={i: passages for i in users if draw(st.booleans())}
    )


SHARES = st.integers(1, 100).map(lambda percent: bk.Share(percent / 100))
COMMON = {
    "unit": st.sampled_from(["message", "turn"]),
    "floor": st.builds(Floor, st.integers(1, 40), st.sampled_from(["tokens", "turns", "messages"])),
}
SIMPLE: st.SearchStrategy[Policy] = st.one_of(
    st.builds(policies.OldestFirst, **COMMON),
    st.builds(policies.SlidingWindow, st.integers(1, 5), **COMMON),
    st.builds(policies.Step, st.integers(1, 60), **COMMON),
    st.builds(
        lambda marks, **more: policies.TriggerTarget(max(marks), min(marks), **more),
        st.tuples(st.integers(1, 120), st.integers(1, 120)),
        of=st.sampled_from(["limit", "usable", "window"]),
        **COMMON,
    ),
    st.builds(policies.DropToolResults, st.integers(0, 15), st.integers(0, 2), SHARES, **COMMON),
    st.builds(policies.Summarise, SHARES, st.one_of(SHARES, st.integers(0, 20)), **COMMON),
    st.builds(policies.Importance, st.just(lambda m: len(m.text) % 3), **COMMON),
)
ANY_POLICY = st.one_of(
    SIMPLE, st.builds(policies.Chain, st.lists(SIMPLE, min_size=1, max_size=3), **COMMON)
)
BY: st.SearchStrategy[Literal["turn", "request"]] = st.sampled_from(["turn", "request"])
TABLES = st.sampled_from(
    [
        ROLES,
        RUNNING,
        ROLES | {"current": "current"},
        RUNNING | {"tool": "system", "step": "history"},
    ]
)


@given(traces(), ANY_POLICY, BY, TABLES, st.integers(1, 160))
def test_the_fast_replay_is_the_slow_one(
    trace: bk.Trace,
    policy: Policy,
    by: Literal["turn", "request"],
    roles: dict[str, str],
    size: int,
) -> None:
    budget = window(size, roles)
    twin = slow_replay(trace, budget, policy, "history", by)
    fast = replayed(trace, budget, policy, by=by)
    frame = fast.frame()
    assert frame["sent"].tolist() == twin.sent
    assert frame["history"].tolist() == twin.history
    assert frame["over"].tolist() == twin.over
    assert frame["summary_calls"].tolist() == twin.summaries
    assert [set(fast.present(i + 1)) for i in range(len(frame))] == twin.present
    assert fast.equal.tolist() == twin.equal


@given(traces(), ANY_POLICY, BY, TABLES, st.integers(1, 160))
def test_pairs_are_never_parted_and_the_history_is_emptied_only_where_nothing_of_it_fits(
    trace: bk.Trace,
    policy: Policy,
    by: Literal["turn", "request"],
    roles: dict[str, str],
    size: int,
) -> None:
    outcome = replayed(trace, window(size, roles), policy, by=by)
    callers = {call.id: i for i, m in enumerate(trace.messages) for call in m.tool_calls}
    for request in range(1, len(outcome.over) + 1):
        present = set(outcome.present(request))
        sent = outcome.placed.requests[request - 1].sent
        for i, m in enumerate(trace.messages[:sent]):
            both = outcome.placed.entry[[i, callers.get(str(m.tool_call_id), i)]] < request
            if m.tool_call_id is not None and both.all():
                assert (i in present) == (callers[m.tool_call_id] in present)
        held = outcome.placed.prunable & (outcome.placed.entry < request)
        if held.any() and not held[sorted(present)].any():
            assert policy.floor == Floor()
            assert outcome.sent[request - 1] + outcome.placed.tokens[held].sum() > size


@given(traces(), ANY_POLICY, BY, st.integers(1, 160))
def test_the_budget_is_exceeded_by_what_the_floor_says_and_no_more(
    trace: bk.Trace, policy: Policy, by: Literal["turn", "request"], size: int
) -> None:
    frame = replayed(trace, window(size), policy, by=by).frame()
    within = frame[frame["over"] == 0]
    assert (within["history"] <= within["limit"].clip(lower=0)).all()
    assert (frame["history"] - frame["over"] <= frame["limit"].clip(lower=0)).all()


@given(traces(), ANY_POLICY, BY, st.sampled_from(sorted(CACHES)), st.integers(1, 160))
def test_sums_add_up(
    trace: bk.Trace, policy: Policy, by: Literal["turn", "request"], cache: str, size: int
) -> None:
    outcome = replayed(trace, window(size), policy, by=by, cache=CACHES[cache])
    frame = outcome.frame()
    assert (frame["cached"] + frame["written"] + frame["fresh"] == frame["sent"]).all()
    assert (frame["history"] + frame["others"] == frame["sent"]).all()
    assert (frame[["cached", "written", "fresh", "dropped"]] >= 0).all(axis=None)
    assert (frame["cached"] <= outcome.equal).all()
    by_request = outcome.sections().groupby("request")["tokens"].sum()
    assert by_request.tolist() == frame["sent"].tolist()


def test_the_same_replay_has_the_same_bytes() -> None:
    first, second = (
        replayed(AGENT, window(90), policies.OldestFirst()).frame().to_csv() for _ in range(2)
    )
    assert first == second


def test_a_trace_is_counted_once_for_all_policies() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    for policy in (policies.OldestFirst(), policies.SlidingWindow(2), policies.Step(10)):
        bk.replay(TOY, window(100), policy, counter=count, framing=ONE_A_CHARACTER)
    assert len(asked) == len(TOY.messages)


def test_a_conversation_that_only_grows_is_read_again_whole_whatever_begins_the_answer() -> None:
    """The priming stands at the end of every request and is no part of the next one: a mark is found before it."""
    trace = bk.load_trace("coding-agent")
    budget = bk.presets.working_memory(128_000)
    found = bk.replay(
        trace, budget, policies.OldestFirst(), cache=PromptCache(breakpoints=("end",))
    ).frame()
    priming = bk.requests.FRAMINGS["openai"].priming
    assert priming > 0
    assert found["cached"].tolist()[1:] == (found["sent"] - priming).tolist()[:-1]
    assert found["fresh"].tolist() == [priming] * len(found)


def test_a_conversation_that_starts_with_a_stray_result_is_replayed() -> None:
    """No request holds the result; what begins the answer counts with the first message that is there."""
    stray = {"role": "tool", "tool_call_id": "x", "content": "the rest of an earlier session"}
    trace = bk.Trace(
        "cut",
        (bk.Message(stray), bk.Message({"role": "assistant", "content": "a" * 10}), *TOY.messages),
    )
    framing = bk.requests.Framing(priming=3)
    for messages in (trace.messages, trace.messages[:2], trace.messages[:1]):
        cut = bk.Trace("cut", messages)
        found = bk.replay(
            cut,
            bk.presets.working_memory(8_000),
            policies.OldestFirst(),
            counter=len,
            framing=framing,
        )
        assert found.messages()["fate"].iloc[0] == "not sent"
        assert found.frame()["sent"].iloc[0] == (10 + 5 + 10 + 3 if len(messages) > 2 else 0)


@pytest.mark.parametrize("by", ["turn", "request"])
@given(
    st.lists(
        st.sampled_from(["system", "user", "assistant", "tool", "function", "call"]),
        min_size=1,
        max_size=8,
    )
)
def test_any_order_of_roles_is_replayed(by: Literal["turn", "request"], order: list[str]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    caller, result = {"role": "assistant", "tool_calls": [call]}, {"tool_call_id": "c"}
    more: dict[str, dict[str, Any]] = {"call": caller, "tool": result}
    trace = bk.Trace(
        "any",
        tuple(bk.Message({"role": role, "content": "word"} | more.get(role, {})) for role in order),
    )
    for policy in (policies.OldestFirst(), policies.SlidingWindow(2), policies.Step(3)):
        found = bk.replay(trace, bk.presets.working_memory(8_000), policy, counter=len, by=by)
        assert len(found.messages()) == len(order)
        assert (found.frame()["sent"] >= 0).all()
