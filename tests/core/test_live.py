"""A conversation while it runs: what the next request holds, and that it is what replay says it is."""

import asyncio
import itertools
import json
import re
import threading
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import policies
from budgetkit.conversation import Request, trimming
from budgetkit.pruning.history import NEVER
from budgetkit.pruning.policies import Policy
from tests.conftest import examples
from tests.lab.test_replay import BY, COMMON, SHARES, SIMPLE, TABLES, window
from tests.messages import assistant, calling, system, tool_call, tool_result, user
from tests.slow_replay import ONE_A_CHARACTER, message


def written(messages: list[Any]) -> str:
    return "s" * (len(messages) + 3)


async def slowly(messages: list[Any]) -> str:
    await asyncio.sleep(0)
    return written(messages)


SUMMARISED = st.builds(policies.Summarise, SHARES, text=st.just(written), **COMMON)
CAPPED = st.builds(policies.CapResults, st.integers(0, 40), **COMMON)
LIVE = st.one_of(SIMPLE.filter(lambda p: not isinstance(p, policies.Summarise)), SUMMARISED, CAPPED)
PRUNING = st.one_of(
    LIVE, st.builds(policies.Chain, st.lists(LIVE, min_size=1, max_size=3), **COMMON)
)


@st.composite
def traces(draw: st.DrawFn) -> bk.Trace:
    """Any conversation whose tool results come before the next request, or never; results without calls among them."""
    said = [message("system", draw(st.integers(0, 9)))] if draw(st.booleans()) else []
    said.append(message("user", draw(st.integers(0, 30))))
    for place in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["user", "user", "answer", "call", "broken", "stray"]))
        size = draw(st.integers(0, 30))
        if kind in ("call", "broken"):
            names = [f"{place}.{n}" for n in range(draw(st.integers(1, 2)))]
            calls = [tool_call(name, "", "") for name in names]
            said.append(message("assistant", size, tool_calls=calls))
            answered = names if kind == "call" else names[1:]
            said += [message("tool", draw(st.integers(0, 30)), tool_call_id=n) for n in answered]
        elif kind == "stray":
            said.append(message("tool", size, tool_call_id="nobody asked"))
        else:
            said.append(message("user" if kind == "user" else "assistant", size))
    passages = ["p" * draw(st.integers(1, 9))]
    with_passages = {i for i, m in enumerate(said) if m.role == "user" and draw(st.booleans())}
    said = [
        bk.Message({**m.raw, "contexts": passages}) if i in with_passages else m
        for i, m in enumerate(said)
    ]
    said = [bk.Message({**m.raw, "name": str(i)}) for i, m in enumerate(said)]
    return bk.Trace("any", tuple(said), contexts={i: said[i].contexts for i in with_passages})


def driven(
    talk: bk.Conversation,
    trace: bk.Trace,
    by: Literal["turn", "request"],
    saved_between: Any = None,
) -> list[Request]:
    """Drive a conversation with what was recorded, a request where replay has one."""
    found, done = [], 0
    outcome = bk.replay(trace, window(100), policies.OldestFirst(), counter=len, by=by)
    for request in outcome.placed.requests:
        talk.add(*trace.messages[done : request.sent])
        done = request.sent
        found.append(talk.request())
        talk = talk if saved_between is None else saved_between(talk)
    return found


@dataclass(frozen=True)
class Case:
    """A recorded conversation and how it is driven."""

    trace: bk.Trace
    policy: Policy
    by: Literal["turn", "request"]
    roles: dict[str, str]
    size: int
    start_on: Literal["any", "user"]

    @property
    def budget(self) -> bk.Budget:
        return window(self.size, self.roles)


START_ON = st.sampled_from(["any", "user"])
CASES = st.builds(Case, traces(), PRUNING, BY, TABLES, st.integers(1, 160), START_ON)


@given(case=CASES)
@settings(max_examples=examples(200))
def test_live_and_replay_are_one_engine(case: Case) -> None:
    """Request by request: the same messages of the recorded ones, the same size, section by section."""
    trace = case.trace
    options: dict[str, Any] = {"framing": ONE_A_CHARACTER, "start_on": case.start_on}
    options["counter"] = len
    outcome = bk.replay(trace, case.budget, case.policy, by=case.by, **options)
    talk = bk.Conversation(case.budget, case.policy, shorten=False, overrun="tell", **options)
    frame = outcome.frame()
    sections = outcome.sections()
    for number, request in enumerate(driven(talk, trace, case.by), start=1):
        said = {int(each["name"]): each["content"] for each in request.messages if "name" in each}
        assert list(said) == list(outcome.present(number))
        for slot, content in said.items():
            shrunk = NEVER < outcome.kept.shrunk[slot] < number
            text = trace.messages[slot].text
            cap = case.policy.arriving(len(text), trace.messages[slot].role == "tool")
            is_capped = len(content) <= cap < len(text)
            assert content == text or is_capped or (shrunk and len(content) < len(text))
        granted = sections[sections["request"] == number].set_index("section")["tokens"]
        planned = {grant.section: grant.granted for grant in request.plan.grants}
        assert {**planned, "history": 0} == {**granted, "history": 0}
        assert request.plan["history"].demand == frame["history"][number - 1]
        assert len(request.summaries) == frame["summary_calls"][number - 1]


@given(traces(), PRUNING, BY, st.integers(1, 160))
@settings(max_examples=examples(100))
def test_a_request_that_has_to_begins_with_the_user_or_with_a_summary_in_that_role(
    trace: bk.Trace, policy: Policy, by: Literal["turn", "request"], size: int
) -> None:
    """Some providers refuse any other; a history of one section is meant, and a conversation in which a user speaks."""
    roles = dict.fromkeys(("user", "assistant", "tool"), "history")
    roles |= {"system": "system", "context": "knowledge", "current": "current", "step": "current"}
    more: dict[str, Any] = {"framing": ONE_A_CHARACTER, "shorten": False, "overrun": "tell"}
    more["start_on"] = "user"
    for request in driven(bk.Conversation(window(size, roles), policy, len, **more), trace, by):
        speakers = [message["role"] for message in request.messages if message["role"] != "system"]
        assert speakers[:1] == ["user"]


@given(case=CASES)
@settings(max_examples=examples(60))
def test_saved_and_loaded_between_any_two_requests_it_goes_on_as_if_nothing_was(case: Case) -> None:
    options: dict[str, Any] = {"framing": ONE_A_CHARACTER, "overrun": "tell"}
    options["start_on"] = case.start_on

    def new() -> bk.Conversation:
        return bk.Conversation(case.budget, case.policy, len, **options)

    def again(talk: bk.Conversation) -> bk.Conversation:
        json.loads(talk.to_json())
        return bk.Conversation.from_json(talk.to_json(), case.policy, len, **options)

    whole = driven(new(), case.trace, case.by)
    assert whole == driven(new(), case.trace, case.by, again)


def test_an_unknown_role_is_refused_before_the_conversation_holds_it() -> None:
    """Every later request raised before, whatever was added."""
    talk = bk.Conversation(bk.presets.working_memory(400, output=50), counter=len)
    talk.add(user("hello"))
    with pytest.raises(ValueError, match="Unknown role 'usr'. .* or name its section in roles="):
        talk.add(assistant("hi"), {"role": "usr", "content": "x"})
    assert [message["content"] for message in talk.request().messages] == ["hello"]


def test_a_saved_conversation_whose_roles_name_no_section_is_refused_as_none() -> None:
    """A raw LookupError before, found by changing one thing in what was saved."""
    talk = bk.Conversation(bk.presets.working_memory(400, output=50), counter=len)
    saved = json.loads(talk.to_json())
    del saved["budget"]["roles"]["user"]
    refusal = "Not a saved conversation: LookupError .*'user'.* Pass the whole"
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(json.dumps(saved), counter=len)


@given(traces(), PRUNING, BY, TABLES, st.integers(1, 160))
@settings(max_examples=examples(60))
def test_no_request_holds_a_call_without_its_results_or_is_larger_than_it_says(
    trace: bk.Trace,
    policy: Policy,
    by: Literal["turn", "request"],
    roles: dict[str, str],
    size: int,
) -> None:
    talk = conversation(window(size, roles), policy, overrun="tell")
    for request in driven(talk, trace, by):
        said = [bk.Message(each) for each in request.messages]
        called = [call.id for each in said for call in each.tool_calls]
        assert called == [each.tool_call_id for each in said if each.role == "tool"]
        assert ONE_A_CHARACTER.request(said, len) <= request.tokens
        assert request.tokens <= size + request.over


@pytest.mark.parametrize("preset", ["agent", "working_memory"])
def test_results_leave_with_their_calls_from_a_section_of_their_own(preset: str) -> None:
    """0.1.0's engine of replay left the results of calls that had gone, which providers refuse."""
    talk = conversation(bk.presets.PRESETS[preset](4_000), overrun="tell")
    for turn in range(30):
        call = {"id": str(turn), "function": {"name": "look", "arguments": "{}"}}
        talk.add(user("why " * 20), {"role": "assistant", "tool_calls": [call]})
        talk.add(tool_result(str(turn), "seen " * 9))
        said = [*map(bk.Message, talk.request().messages)]
        talk.add(assistant("so " * 40))
        results = [message.tool_call_id for message in said if message.role == "tool"]
        assert [call.id for message in said for call in message.tool_calls] == results
    assert len(said) < 100  # of 119


def conversation(budget: bk.Budget, policy: Any = None, **more: Any) -> bk.Conversation:
    """Begin a conversation in which a character is a token."""
    return bk.Conversation(budget, policy, len, framing=ONE_A_CHARACTER, **more)


def chat(talk: bk.Conversation, turns: int, size: int = 30) -> list[Request]:
    found = []
    for turn in range(turns):
        talk.add(user(f"{turn:04} " + "q" * size))
        found.append(talk.request())
        talk.add(assistant(f"{turn:04} " + "a" * size))
    return found


def test_what_was_sent_stays_a_prefix_until_the_policy_cuts() -> None:
    low_mark = policies.TriggerTarget(bk.Share(1), bk.Share(0.5))
    requests = chat(conversation(window(400), low_mark, start_on="any"), 20)
    cut = [i for i, request in enumerate(requests) if request.left]
    # From half of 365 tokens up to all of them it is three turns of 70.
    assert cut == [6, 9, 12, 15, 18]
    for i, (before, now) in enumerate(itertools.pairwise(requests), start=1):
        kept = now.messages[: len(before.messages)] == before.messages
        assert kept == (i not in cut)
        assert (now.stable == len(before.messages)) == kept


def test_what_has_left_takes_no_memory() -> None:
    talk = conversation(window(400), policies.OldestFirst())
    chat(talk, 300)
    small = len(talk.to_json())
    chat(talk, 3_000)
    assert len(talk.to_json()) < 1.2 * small
    assert len(talk._engine.tally.history.slots) < 600


def test_a_summary_is_written_by_whom_the_user_names_now_or_awaited() -> None:
    policy = policies.Summarise(bk.Share(0.5))
    missing = r"needs a function that summarises messages.* text= .* summarise="
    with pytest.raises(ValueError, match=missing):
        bk.Conversation(window(200), policy, len)
    now = conversation(window(200), policy, summarise=written)
    later = conversation(window(200), policy, summarise=slowly)
    for turn in range(8):
        for talk in (now, later):
            talk.add(user(f"{turn} " + "q" * 30))
        assert now.request() == asyncio.run(later.arequest())
    assert any(each["content"].startswith("sss") for each in now.request().messages)
    awaited = r"Invalid summary: a value of type coroutine. .* await arequest\(\)"
    with pytest.raises(TypeError, match=awaited):
        chat(conversation(window(200), policy, summarise=slowly), 9)


async def no_text(_: list[Any]) -> None:
    """Return None, as a function does that forgets its return."""


@pytest.mark.parametrize("write", [written, slowly, no_text, lambda _: None, lambda _: 3])
@pytest.mark.parametrize("by_policy", [True, False])
@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_summary_is_a_text_or_changes_nothing(
    write: Any, by_policy: bool, is_awaited: bool
) -> None:
    """Until 0.4.0 a policy's function could send "<coroutine object>" in place of the messages."""
    if by_policy:
        talk = conversation(window(200), policies.Summarise(text=write))
    else:
        talk = conversation(window(200), policies.Summarise(), summarise=write)
    talk.add(*(user(f"{turn} " + "q" * 30) for turn in range(8)))
    ask: Any = (lambda: asyncio.run(talk.arequest())) if is_awaited else talk.request
    if write is written or (is_awaited and write is slowly):
        assert any(each["content"].startswith("sss") for each in ask().messages)
    else:
        saved = []
        for _ in range(2):
            with pytest.raises(TypeError, match="Invalid summary: a value of type"):
                ask()
            saved.append(talk.to_json())
        assert saved[0] == saved[1]


@pytest.mark.parametrize(
    ("policy", "name"),
    [(policies.DropToolResults(2), "placeholder: 2"), (policies.CapResults(1), "tool result: 1")],
    ids=["placeholder", "cap"],
)
def test_a_result_may_not_be_smaller_than_an_empty_one(policy: Policy, name: str) -> None:
    least = rf"Invalid {name}. Use at least the \d tokens of an empty result"
    with pytest.raises(ValueError, match=least):
        bk.Conversation(window(200), policy)


def test_a_long_tool_result_is_cut_when_the_history_takes_it_in() -> None:
    """In 0.2.0 only replays cut it: the running conversation sent it whole."""
    count = bk.counter("o200k_base")
    budget = bk.presets.working_memory(9_000, output=500)
    talk = bk.Conversation(budget, policies.CapResults(100), count)
    talk.add(user("Look."), calling(tool_call("a", "look")))
    talk.add(tool_result("a", "line of a log\n" * 500))
    assert not talk.request().left, "while its turn lasts, the model reads it whole"
    talk.add(assistant("It is a log."), user("And now?"))
    request = talk.request()
    result = next(message for message in request.messages if message["role"] == "tool")
    assert count(result["content"]) <= 100
    assert [left.why for left in request.left] == ["shortened"]
    assert talk.request().stable == len(request.messages)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("part", "changed", "said"),
    [
        (
            "not_entered",
            [-1],
            "its history waits for message -1, which is missing elsewhere in the file or contradicted there",
        ),
        ("not_entered", [2, 2], "its history waits for message 2"),
        ("entries", {}, "its history holds message 0"),
        ("unsent", [2, 3], "its unanswered messages include message 3"),
        ("calling_slots", {"a": 99}, "its parts refer to message 99"),
        ("early_results", {"0": [1]}, "its calls wait for message 1"),
        (
            "start",
            99,
            "the current turn starts at message 99, but the conversation has only 3 messages",
        ),
        ("past", {"nowhere": 5}, "LookupError Unknown section 'nowhere'"),
        ("turn", 10**13, "Invalid tally.turn: 10000000000000. Expected"),
        ("is_text", "often", "Invalid tally.is_text: 'often'. Expected"),
        (
            "entries",
            {"0": {"message": {}, "tokens": 1, "past": "", "present": "", "stamp": 1}},
            "tally.entries.0.message: Message without a role: it has nothing",
        ),
        ("summaries", {"1": 1}, "its summaries include message 1"),
        (
            "slots",
            [[4, 1, 0, 4, 0, 1, False, 0, "user"]] * 2 + [[0, 0, -1, 9, 2, 2, False, 0, "user"]],
            "its history dropped message 0",
        ),
    ],
)
def test_a_saved_conversation_whose_parts_do_not_fit_together_is_refused(
    part: str, changed: Any, said: str
) -> None:
    """When it is loaded, in a sentence; the next request would fail on it, or never end."""
    talk = conversation(window(200))
    chat(talk, 1)
    talk.add(user("And then?"))
    talk.request()
    saved = json.loads(talk.to_json())
    assert len(saved["history"]["slots"]) == 3
    place = "history" if part in ("slots", "summaries") else "tally"
    saved[place][part] = changed
    refusal = f"Not a saved conversation: {said}.* Pass the whole text of to_json"
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(json.dumps(saved), None, len, framing=ONE_A_CHARACTER)


@pytest.mark.parametrize("version", [0, 2, True, "1"])
def test_a_conversation_saved_by_another_version_is_refused(version: object) -> None:
    saved = json.loads(bk.Conversation(window(200), None, len).to_json())
    assert saved["budgetkit"] == 1
    saved["budgetkit"] = version
    refusal = "^Unknown version .* of saved conversation. .* version 1; save"
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(json.dumps(saved), None, len)


def test_where_the_summary_fails_nothing_is_lost_and_the_next_request_tries_again() -> None:
    fails = [True]

    def sometimes(messages: list[Any]) -> str:
        if fails[0]:
            raise ConnectionError("nobody there")
        return written(messages)

    policy = policies.Summarise(bk.Share(0.5))
    talk = conversation(window(200), policy, summarise=sometimes)
    other = conversation(window(200), policy, summarise=written)
    for turn in range(5):
        for one in (talk, other):
            one.add(user(f"{turn} " + "q" * 40))
        expected = other.request()
        if expected.summaries:
            with pytest.raises(ConnectionError):
                talk.request()
            fails[0] = False
        assert talk.request() == expected
        fails[0] = True


def test_threads_and_tasks_share_a_conversation() -> None:
    talk = conversation(window(10_000_000), policies.OldestFirst())

    def speak(name: str) -> None:
        for i in range(100):
            talk.add(user(f"{name} {i}"))
            assert talk.request().messages

    threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [each["content"] for each in talk.request().messages]
    assert len(said) == 400
    for name in "abcd":
        assert [text for text in said if text[0] == name] == [f"{name} {i}" for i in range(100)]

    async def together() -> list[Request]:
        return list(await asyncio.gather(*(talk.arequest() for _ in range(5))))

    assert {len(request.messages) for request in asyncio.run(together())} == {400}


def test_messages_come_in_any_format_and_a_call_waits_for_its_result() -> None:
    talk = bk.Conversation(bk.presets.working_memory(4_000, output=500))
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "it"}}
    talk.add(user("Look."), [assistant([use])])
    waiting = talk.request()
    assert [each["role"] for each in waiting.messages] == ["user"]
    assert [left.why for left in waiting.left] == ["unanswered"]
    talk.add(user([{"type": "tool_result", "tool_use_id": "a", "content": "seen"}]))
    # They go out in the form in which they came, Anthropic's, where a result is a user's block.
    assert [each["role"] for each in talk.request().messages] == ["user", "assistant", "user"]


def test_a_result_too_large_for_the_window_is_cut_inside_and_stays_so() -> None:
    count = bk.counter("o200k_base")
    budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    talk = bk.Conversation(budget, counter=count)
    result = tool_result("a", "line of a log\n" * 5_000)
    talk.add(user("Look."), calling(tool_call("a", "look")), result)
    first = talk.request()
    assert [left.why for left in first.left] == ["shortened"]
    assert first.over == 0
    assert bk.requests.FRAMINGS["openai"].request(first.messages, count) == first.tokens <= 3_500
    assert talk.request().stable == 3


def test_what_nothing_can_mend_is_told() -> None:
    required = [bk.Allocation("history"), bk.Allocation("current", required=True)]
    over = "exceeds the usable window by 100"
    loose = conversation(window(200), overrun="raise")
    strict = conversation(bk.Budget(200, (), required))
    signed = conversation(bk.Budget(200, deficit="signed", undeclared="pool"))
    for talk in (loose, strict, signed):
        talk.add(user("q" * 300))
    with pytest.raises(ValueError, match=f"The request of 300 tokens {over}"):
        loose.request()
    with pytest.raises(ValueError, match=over):
        strict.request()
    with pytest.warns(UserWarning, match="Shorten the question"):
        assert signed.request().over == 100


def test_the_budget_is_told_at_the_end_where_it_breaks_no_prefix() -> None:
    talk = bk.Conversation(bk.presets.working_memory(4_000, output=500), tell=True)
    first, second = chat(talk, 2)
    assert first.messages[-1]["content"].startswith("## Context budget")
    count = bk.counter("o200k_base")
    assert bk.requests.FRAMINGS["openai"].request(second.messages, count) == second.tokens
    assert second.messages[: second.stable] == first.messages[:-1]


def test_what_no_chat_format_knows_is_sent_as_system_text() -> None:
    talk = bk.Conversation(bk.presets.working_memory(4_000, output=500))
    talk.add({"role": "procedure", "content": "Ask first."}, user("Hi", contexts=["A fact."]))
    request = talk.request()
    assert request.messages == [system("Ask first."), system("A fact."), user("Hi")]
    assert request.plan["procedure"].granted > 0
    assert request.plan["knowledge"].granted > 0


# trim


def test_trim_keeps_system_question_and_whole_pairs_and_is_never_over() -> None:
    count = bk.counter("o200k_base")
    said = [m.raw for m in bk.load_trace("coding-agent").messages]
    whole = bk.requests.FRAMINGS["openai"].request(said, count)
    question = [each for each in said if each["role"] == "user"][-1]
    opening = [each for each in said if each["role"] == "system"]
    for limit in (whole, whole // 2, whole // 4, whole // 8):
        kept = bk.trim(said, limit)
        assert bk.requests.FRAMINGS["openai"].request(kept, count) <= limit
        assert question["content"] in [each["content"] for each in kept]
        assert [each for each in kept if each["role"] == "system"] == opening
        messages = [bk.Message(each) for each in kept]
        results = [message.tool_call_id for message in messages if message.tool_call_id]
        assert [call.id for message in messages for call in message.tool_calls] == results
    assert len(bk.trim(said, whole)) == len(said)


def test_trim_says_what_cannot_be_trimmed() -> None:
    with pytest.raises(ValueError, match=r"exceed the usable window \(.*\) by \d+. Shorten them"):
        bk.trim([user("one two three four five six")], 5)


@pytest.mark.parametrize("calls", [0, 2])
def test_a_result_without_its_call_or_its_siblings_does_not_lack_room(calls: int) -> None:
    """It was said not to fit, with most of the budget free."""
    call = {"role": "assistant", "tool_calls": [tool_call(str(n), "look") for n in range(calls)]}
    said = [user("go"), *[call][:calls], tool_result("0", "one")]
    made = bk.trim(said, 1_000, model="gpt-4o")
    assert {left.why for left in made.left} == {"unanswered"}
    assert made.warnings == (
        "The newest message, with role tool, is omitted, because a call has no result or a result has no call. "
        "Add the missing message.",
    )


def test_trim_reads_any_format_and_leaves_no_message_unread() -> None:
    hello = user("Hello world")
    forms: list[Any] = [
        hello,
        [hello],
        (hello,),
        bk.Message(hello),
        [{"type": "human", "content": "Hello world"}],
    ]
    for form in forms:
        assert bk.trim(form, 20) == [hello]
    with pytest.raises(ValueError, match="Message without a role"):
        bk.trim([{"content": "long ago"}, *[hello] * 99], 20)
    with pytest.raises(TypeError, match="generator"):
        bk.trim((each for each in [hello]), 20)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [100, 300, 1_000])
def test_trim_cuts_a_result_inside_rather_than_drop_what_was_just_found(most: int) -> None:
    """The call and its result left once the floor of one message gave way, though the result can be cut."""
    count = bk.counter("o200k_base")
    call = tool_call("a", "read")
    question = user("What is in the file?")
    result = tool_result("a", "line of text " * 400)
    kept = bk.trim([question, calling(call), result], most)
    assert [message["role"] for message in kept] == ["user", "assistant", "tool"]
    assert kept[-1]["content"].startswith("line of text")
    assert 0.7 * most <= bk.requests.FRAMINGS["openai"].request(kept, count) <= most


def test_trim_drops_what_cannot_be_cut_inside() -> None:
    question = user("And?")
    assert bk.trim([user("x " * 900), assistant("y " * 900), question], 60) == [question]


def again(raw: Any, number: int) -> dict[str, Any]:
    """Return a recorded message with the ids of its calls of its own round."""
    said = dict(raw)
    if "tool_call_id" in said:
        said["tool_call_id"] += f" {number}"
    if said.get("tool_calls"):
        said["tool_calls"] = [
            {**call, "id": f"{call['id']} {number}"} for call in said["tool_calls"]
        ]
    return said


@given(traces(), st.integers(1, 300), START_ON)
@settings(max_examples=examples(60))
def test_trim_is_a_conversation_that_begins_and_ends_here(
    trace: bk.Trace, size: int, start_on: Literal["any", "user"]
) -> None:
    """What is too old to fit is not even counted, which changes nothing."""
    said = [
        {name: field for name, field in m.raw.items() if name != "contexts"} for m in trace.messages
    ] * 4
    more: dict[str, Any] = {"framing": ONE_A_CHARACTER, "start_on": start_on}
    try:
        kept = bk.trim(said, size, len, **more)
    except ValueError:
        return
    assert kept == bk.trim(said, size, len, policy=policies.OldestFirst(), **more)
    speakers = [each["role"] for each in kept if each["role"] != "system"]
    assert start_on == "any" or speakers[:1] == ["user"]
    assert ONE_A_CHARACTER.request(kept, len) <= size


@given(
    traces(),
    st.booleans(),
    st.sampled_from(sorted(bk.requests.FRAMINGS)),
    st.integers(0, 1_500),
    st.booleans(),
    st.integers(0, 6),
    START_ON,
)
@settings(max_examples=examples(300))
def test_what_trim_reads_off_is_what_the_engine_keeps(
    trace: bk.Trace,
    named: bool,
    framing: str,
    size: int,
    schemas: bool,
    missing: int,
    start_on: Literal["any", "user"],
) -> None:
    """Over every framing, and where the first messages are missing, a call among them; re-counted it is never over."""
    left_out = {"contexts"} if named else {"contexts", "name"}
    rounds = [again(m.raw, number) for number in range(3) for m in trace.messages][missing:]
    said = [{name: field for name, field in raw.items() if name not in left_out} for raw in rounds]
    tools = bk.load_trace("coding-agent").tools[:1] * schemas
    framed = bk.requests.FRAMINGS[framing]
    more: dict[str, Any] = {"framing": framed, "tools": tools, "start_on": start_on}
    try:
        kept = bk.trim(said, size, len, **more)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            bk.trim(said, size, len, policy=policies.OldestFirst(), **more)
        return
    assert kept == bk.trim(said, size, len, policy=policies.OldestFirst(), **more)
    if not said:
        assert kept == []  # nothing is sent
        return
    assert framed.request(kept, len, tools) <= size


@pytest.mark.parametrize("name", ["support-chat", "coding-agent"])
def test_the_usual_case_needs_no_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives back copies, in the order in which they came."""
    messages = bk.load_trace(name).messages
    said = [{key: field for key, field in m.raw.items() if key != "contexts"} for m in messages]
    while said[-1]["role"] == "tool" or said[-1].get("tool_calls"):
        said.pop()
    whole = bk.requests.FRAMINGS["openai"].request(said, bk.counter("o200k_base"))
    monkeypatch.setattr(trimming, "first_request", None)
    stray = tool_result("of a call that is not here", "late")
    assert bk.trim([stray, *said, stray], whole) == said, "results without calls are never sent"
    for limit in (whole, whole // 2, whole // 4):
        kept = bk.trim(said, limit)
        places = [said.index(each) for each in kept]
        assert places == sorted(places)
        assert all(each is not said[place] for each, place in zip(kept, places, strict=True))


def test_a_policy_that_summarises_asks_who_writes_its_summaries() -> None:
    """Without a writer the word None went out in place of all that was said before."""
    with pytest.raises(ValueError, match=r"needs a function that summarises messages.* summarise="):
        bk.Conversation(bk.presets.working_memory(4_000, output=0), "summarise", "chars/4")


def test_the_text_beside_a_picture_is_cut_before_its_call_leaves() -> None:
    """The picture cannot be cut; the call and its result left instead of the text beside it."""
    picture = {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}
    text = {"type": "text", "text": "seen\n" * 500}
    result = tool_result("a", [text, picture])
    looks = {"role": "assistant", "tool_calls": [tool_call("a", "look")]}
    sent = bk.trim([user("What is this?"), looks, result], 600, model="gpt-4o")
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    cut, kept = sent[-1]["content"]
    assert kept == picture
    assert cut["text"].startswith("seen\nseen")
