"""A saved conversation keeps what it was set to; what is not as it was is refused, or named."""

import json
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import policies

BUDGET = bk.presets.working_memory(9_000, output=500)


def talked(budget: bk.Budget = BUDGET, *arguments: Any, **more: Any) -> bk.Conversation:
    """A conversation of ten turns, of which each request said something."""
    talk = bk.Conversation(budget, *arguments, **more)
    for turn in range(10):
        talk.add({"role": "user", "content": f"Question {turn}: " + "what about this? " * 5})
        talk.request()
        talk.add({"role": "assistant", "content": f"Answer {turn}: " + "it is like that. " * 5})
    talk.add({"role": "user", "content": "And now?"})
    return talk


def written(replaced: list[Any]) -> str:
    return f"{len(replaced)} messages."


@pytest.mark.parametrize("name", sorted({*policies.NAMED} - {*policies.SYSTEMS}))
def test_every_policy_with_a_name_is_saved_and_made_again(name: str) -> None:
    policy = policies.NAMED[name]()
    talk = talked(BUDGET, policy, "gpt-4o", summarise=written)
    again = bk.Conversation.from_json(talk.to_json(), summarise=written)
    assert again.policy == policy
    assert again.request() == talk.request()


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": policies.SlidingWindow(2), "counter": "gpt-4o"},
        {"policy": policies.Chain([policies.DropToolResults(intact=1), policies.Step(200)], unit="turn")},
        {"policy": policies.OldestFirst(floor=policies.Floor(2, "turns", "raise"))},
        {"counter": "chars/4"},
        {"model": "claude-sonnet-4-5"},
        {"counter": "gpt-4o", "framing": bk.requests.FRAMINGS["octopus"]},
        {"framing": bk.requests.Framing(per_message=2, priming=1)},
        {"shorten": False, "tell": True, "overrun": "tell", "start_on": "any"},
        {"roles": {"user": "history", "assistant": "history", "current": "current"}, "section": "history"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_conversation_that_is_loaded_goes_on_as_it_was_set(settings: dict[str, Any]) -> None:
    """In 0.2.0 policy and counter were those of whoever loaded it: 154 tokens became 300 without a word."""
    talk = talked(BUDGET, **settings)
    again = bk.Conversation.from_json(talk.to_json())
    assert again.to_json() == talk.to_json()
    assert again.request() == talk.request()


@pytest.mark.parametrize(
    ("other", "notice"),
    [
        ({"policy": "in blocks"}, r"policy .* changes from SlidingWindow\(turns=2\) to Step\(step=2000\)"),
        ({"budget": bk.presets.working_memory(700, output=100)}, "budget .* changes from Budget.* to Budget"),
        ({"window": 8_000}, "budget .* changes from Budget.* to Budget"),
        ({"shorten": False}, "shorten .* changes from True to False"),
        ({"start_on": "any"}, "start_on .* changes from 'user' to 'any'"),
        ({"counter": len}, "counter .* changes from 'gpt-4o' to 'len'"),
    ],
    ids=str,
)  # fmt: skip
def test_another_setting_is_named(other: dict[str, Any], notice: str) -> None:
    saved = talked(BUDGET, policies.SlidingWindow(2), "gpt-4o", start_on="user").to_json()
    with pytest.warns(UserWarning, match=notice):
        bk.Conversation.from_json(saved, **other)


@pytest.mark.parametrize(
    "other",
    [
        {"counter": "chars/4"},
        {"model": "claude-sonnet-4-5"},
        {"framing": bk.requests.FRAMINGS["text"]},
    ],
    ids=str,
)
def test_another_measure_is_refused_since_the_sizes_are_saved(other: dict[str, Any]) -> None:
    saved = talked(BUDGET, None, "gpt-4o").to_json()
    refusal = "The sizes were saved with the .* Leave .*= out, or add the messages"
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(saved, **other)


def test_the_same_setting_may_be_passed_again() -> None:
    saved = talked(BUDGET, policies.SlidingWindow(2), "gpt-4o").to_json()
    same: dict[str, Any] = {
        "policy": policies.SlidingWindow(2),
        "counter": "gpt-4o",
        "budget": BUDGET,
    }
    assert bk.Conversation.from_json(saved, **same).to_json() == saved


def tokens(text: str) -> int:
    return len(text) // 3


def rank(message: Any) -> int:
    return len(message.text)


def test_code_is_passed_again_and_asked_for_by_its_name() -> None:
    saved = talked(BUDGET, policies.Importance(rank), tokens).to_json()
    refusal = "The saved conversation used .* as its policy, .* Pass the same policy= again."
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(saved, counter=tokens)
    refusal = "The saved conversation used .* as its counter, .* Pass the same counter="
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(saved, policies.Importance(rank))
    assert bk.Conversation.from_json(saved, policies.Importance(rank), tokens).to_json() == saved


def test_a_counter_that_would_open_a_file_is_not_made_from_a_saved_text() -> None:
    saved = json.loads(talked().to_json())
    saved["settings"]["counter"] = {"name": "of-somebody-else.json"}
    refusal = "Not a saved conversation: Invalid counter: 'of-somebody-else.json'"
    with pytest.raises(ValueError, match=refusal):
        bk.Conversation.from_json(json.dumps(saved))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("policy", {"class": "Popen"}, "Unknown class 'Popen'"),
        ("policy", {"class": "SlidingWindow", "turns": "many"}, "turns of the sliding window"),
        ("policy", {"class": "Share", "ratio": "0.5"}, "Invalid policy: Share"),
        ("policy", {"class": "Chain", "policies": [3]}, "Invalid policies: a value of type int"),
        ("counter", {"name": "nobody's"}, "Unknown counter"),
        ("framing", {"name": "nobody's"}, "KeyError"),
        ("roles", {"table": {"user": 3}}, "Invalid roles"),
        ("shorten", "yes", "Invalid settings.shorten: 'yes'. Expected true or false"),
        ("start_on", "assistant", "start_on"),
    ],
)
def test_settings_that_are_none_are_refused(name: str, value: Any, reason: str) -> None:
    saved = json.loads(talked().to_json())
    saved["settings"][name] = value
    with pytest.raises(ValueError, match=reason):
        bk.Conversation.from_json(json.dumps(saved))
