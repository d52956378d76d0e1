"""Counts that match the bill: a constant and a slope from readings, and what a session's readings are."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.lab.accuracy.bills import fit_bill
from budgetkit.requests import Framing
from budgetkit.trace import readings, unpaired
from tests.messages import assistant, tool_call, user

COUNTED = [100.0, 150.0, 260.0, 400.0, 420.0]
BILLED = [235.0, 290.0, 441.0, 610.0, 655.0]

DOCUMENT = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Ruby is from 1993."},
    "citations": {"enabled": True},
}
FOUND = {
    "type": "search_result",
    "source": "https://example.com/ruby",
    "title": "Ruby",
    "content": [{"type": "text", "text": "Ruby is from 1993."}],
    "citations": {"enabled": True},
}


def test_the_interval_is_that_of_readings_estimated_without_themselves() -> None:
    """Where no reading is wrong it is least squares, each reading left out in turn."""
    errors = []
    for i in range(len(COUNTED)):
        x, y = np.delete(COUNTED, i), np.delete(BILLED, i)
        slope, constant = np.polyfit(x, y, 1)
        errors.append(BILLED[i] - constant - slope * COUNTED[i])
    bill = fit_bill(COUNTED, BILLED)
    assert [bill.low, bill.high] == pytest.approx(np.quantile(errors, [0.05, 0.95]))
    assert [bill.slope, bill.constant] == pytest.approx(np.polyfit(COUNTED, BILLED, 1))
    low, high = bill.interval(300)
    assert low < bill.of(300) < high


def test_one_wrong_reading_does_not_drag_the_slope() -> None:
    """Least squares, which 0.1.0 took, makes 0.6 of a slope of 1.15 here; a request of 8,000 was billed 1,000."""
    counted = [*range(100, 2_000, 100), 8_000]
    billed = [*(7 + 1.15 * size for size in counted[:-1]), 1_000]
    assert np.polyfit(counted, billed, 1)[0] < 0.6
    bill = bk.accuracy.fit_bill(counted, billed)
    assert bill.slope == pytest.approx(1.15)
    assert bill.constant == pytest.approx(7)
    low, high = bill.interval(1_000)
    assert low < 1_157 == high, "the wrong one lies below, where it belongs"


def test_an_interval_of_projects_left_out_is_wider_than_one_of_readings_left_out() -> None:
    """Three projects whose constants differ: each is estimated by the other two."""
    counted = [size for size in (100, 200, 300, 400) for _ in range(3)]
    billed = [size + offset for size in (100, 200, 300, 400) for offset in (0, 50, 100)]
    own, others = (
        bk.accuracy.fit_bill(counted, billed),
        bk.accuracy.fit_bill(counted, billed, ["a", "b", "c"] * 4),
    )
    assert (others.constant, others.slope) == (own.constant, own.slope) == (50, 1)
    assert (others.low, others.high) == (-75, 75)
    assert own.high < others.high


@given(
    st.integers(-500, 2_000),
    st.integers(50, 200),
    st.lists(st.integers(0, 10_000), min_size=3, unique=True),
)
def test_readings_on_a_line_are_exact(constant: int, percent: int, counted: list[int]) -> None:
    bill = fit_bill(counted, [constant + percent / 100 * size for size in counted])
    assert bill.constant == pytest.approx(constant, abs=1e-4)
    assert bill.slope == pytest.approx(percent / 100)
    assert bill.high - bill.low == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("counted", [[1, 2], [5, 5, 5]])
def test_too_few_readings_are_refused(counted: list[int]) -> None:
    with pytest.raises(ValueError, match="Pass at least three counts, not all equal"):
        fit_bill(counted, counted)


def test_readings_leave_out_what_was_never_sent_again() -> None:
    """The answer of message 1 was broken off in a tool call without a result, so no later request holds it."""
    broken = tool_call("x", "f", "")
    raw: list[dict[str, object]] = [
        user("u" * 10),
        assistant("a" * 500, tool_calls=[broken]),
        user("u" * 20),
        assistant("a" * 30),
    ]
    usage = [
        {"message_index": 1, "context_tokens": 110},
        {"message_index": 3, "context_tokens": 131},
    ]
    trace = bk.Trace("toy", tuple(map(bk.Message, raw)), fields={"usage": usage})
    assert unpaired(trace) == [1]
    expected = {"message_index": [1, 3], "counted": [11, 31], "billed": [110, 131]}
    assert readings(trace, len, Framing(priming=1)).to_dict("list") == expected


@pytest.mark.parametrize(
    ("content", "model", "extra"),
    [
        ([DOCUMENT], "claude-haiku-4-5", 550),
        ([DOCUMENT, DOCUMENT], "claude-sonnet-4-6", 550),
        ([{"type": "tool_result", "tool_use_id": "1", "content": [FOUND]}], "claude-opus-4-1", 550),
        ([{**DOCUMENT, "citations": {"enabled": False}}], "claude-haiku-4-5", 0),
        ([DOCUMENT], "claude-3-haiku-20240307", 0),
    ],
)
def test_cited_documents_bring_a_hidden_prompt(content: list[Any], model: str, extra: int) -> None:
    """Eight recorded calls were billed 566 to 598 tokens more than their text, 40 of them for each document."""
    cited = {"model": model, "max_tokens": 9, "messages": [user(content)]}
    plain = json.loads(json.dumps(cited).replace('"enabled": true', '"enabled": false'))
    counted = bk.count_request(cited)
    assert counted.tokens - bk.count_request(plain).tokens == extra
    assert not extra or counted.ledger[-1].part == "citations"


def test_a_document_costs_claude_more_than_its_text() -> None:
    """Two recorded calls were billed 38 and 42 tokens more."""
    plain = {**DOCUMENT, "citations": None}
    tokens = [
        bk.count_request({"model": "claude-sonnet-4-6", "messages": [user(content)]}).tokens
        for content in ([plain], [{"type": "text", "text": "Ruby is from 1993."}])
    ]
    assert tokens[0] - tokens[1] == 40


def test_the_prompt_that_cohere_adds_is_counted_and_documents_beside_messages_named() -> None:
    """`usage.tokens` of recorded calls holds it; `billed_units` does not."""
    request = {"model": "command-a-03-2025", "messages": [user("Hello")]}
    plain = bk.count_request(request)
    assert plain.tokens == 496 and not plain.exact and not plain.uncounted
    known = bk.count_request({**request, "documents": [{"data": {"text": "A flurbo is green."}}]})
    assert known.uncounted == ("documents outside the messages",)
    assert known.interval[1] is None
