"""Rules side by side: one price list, a window that the record allows, no ranking far off the bill."""

from typing import Any

import pytest

import budgetkit as bk
from budgetkit.lab.sessions.sentences import finding, in_short, notices
from budgetkit.lab.sessions.setup import ReplaySetup


def session(prompts: list[int], model: str = "claude-sonnet-4-5") -> bk.Session:
    """Return a session whose prompts grow by results of a tool, each read from the cache by the next request."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go on"}]
    rows = []
    read = 0
    for number, prompt in enumerate(prompts):
        call = {"id": f"t{number}", "function": {"name": "read", "arguments": "{}"}}
        row = {"message_index": len(messages), "model": model, "context_tokens": prompt}
        row |= {"cache_read_tokens": read, "cache_write_tokens": prompt - read}
        rows.append(row | {"input_tokens": 0, "output_tokens": 200, "time": 1.76e9 + 60 * number})
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"t{number}", "content": "word " * 24_000})
        read = prompt
    trace = bk.Trace("toy", tuple(map(bk.Message, messages)), fields={"usage": rows})
    return bk.Session(trace)


def test_a_recorded_prompt_disproves_a_smaller_window() -> None:
    large = session([30_000 * number for number in range(1, 13)])
    table = bk.compare(large, ["claude-code", "pi"])
    assert table["compactions"].sum() == 0
    assert table.attrs["disproved"] == 200_000
    assert "larger than the model's window of 200,000 tokens" in notices(table)[0]
    smaller = bk.compare(large, ["claude-code"], window=200_000)
    assert smaller["compactions"].sum() > 0
    usual = bk.compare(session([30_000, 60_000]), ["claude-code"])
    assert usual.attrs["disproved"] == 0


def test_all_rows_are_at_one_price_list() -> None:
    recorded = session([30_000, 60_000, 90_000])
    table = bk.compare(recorded, ["pi"], prices="gpt-5-nano").set_index("system")["least"]
    assert table["as recorded"] == pytest.approx(table["no pruning"], rel=0.01)
    own = bk.compare(recorded, ["pi"]).set_index("system")["least"]
    assert own["as recorded"] == pytest.approx(recorded.totals()["cost"])
    assert table["as recorded"] < own["as recorded"] / 10
    priced = bk.Session(recorded.trace, prices="gpt-5-nano")
    assert bk.compare(priced, ["pi"]).set_index("system")["least"].equals(table)


def test_a_cache_is_refused_for_a_session_and_obeyed_for_its_messages() -> None:
    recorded = session([30_000, 60_000, 90_000])
    dear = bk.cost.PromptCache(write=1.0, read=0.9)
    with pytest.raises(
        ValueError, match="cache= does not apply to a recorded session, whose cache reads are known"
    ):
        bk.compare(recorded, ["pi"], cache=dear)

    def cost(cache: bk.cost.PromptCache) -> tuple[float, float]:
        rows = bk.compare(recorded.trace, ["pi"], cache=cache).set_index("system")
        return tuple(rows.loc["no pruning", ["least", "relative"]])

    cheap = bk.cost.PromptCache(write=1.0, read=0.1)
    assert cost(dear)[0] > cost(cheap)[0]
    assert cost(dear)[1] > cost(cheap)[1]


def test_rules_are_not_ranked_far_off_the_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = session([30_000, 150_000, 190_000])
    named = ["pi", "claude-code", "langchain"]
    monkeypatch.setattr(ReplaySetup, "costs", lambda setup, outcome: (99.0, 0.0))
    table = bk.compare(recorded, named)
    assert table["system"].tolist() == ["no pruning", *named, "as recorded"]
    told = finding(table)
    assert told == (
        "A replay of the record is more than 5 % off the bill, so the rules are not ranked by cost."
    )
    assert in_short(recorded, table)[-1] == f"What would another rule have cost? {told}"
