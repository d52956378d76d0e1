"""Counts that match the bill: a constant and a slope from readings, and what a session's readings are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.framing import Framing
from budgetkit.framing.fitting import fit_bill
from budgetkit.trace import readings, unpaired

COUNTED = [100, 150, 260, 400, 420]
BILLED = [235, 290, 441, 610, 655]


def test_the_interval_is_that_of_readings_estimated_without_themselves() -> None:
    """Leaving each out and fitting the others again gives the same errors as the closed form."""
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


@given(st.integers(-500, 2_000), st.integers(50, 200), st.lists(st.integers(0, 10_000), min_size=3, unique=True))
def test_readings_on_a_line_are_found_exactly(constant: int, percent: int, counted: list[int]) -> None:
    bill = fit_bill(counted, [constant + percent / 100 * size for size in counted])
    assert bill.constant == pytest.approx(constant, abs=1e-4)
    assert bill.slope == pytest.approx(percent / 100)
    assert bill.high - bill.low == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("counted", [[1, 2], [5, 5, 5]])
def test_too_few_readings_are_refused(counted: list[int]) -> None:
    with pytest.raises(ValueError, match=r"a constant and a slope need three of different sizes; give more readings"):
        fit_bill(counted, counted)


def test_readings_leave_out_what_was_never_sent_again() -> None:
    """The answer of message 1 was broken off in a tool call without a result, so no later request holds it."""
    broken = {"id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}
    raw: list[dict[str, object]] = [
        {"role": "user", "content": "u" * 10},
        {"role": "assistant", "content": "a" * 500, "tool_calls": [broken]},
        {"role": "user", "content": "u" * 20},
        {"role": "assistant", "content": "a" * 30},
    ]
    usage = [{"message_index": 1, "context_tokens": 110}, {"message_index": 3, "context_tokens": 131}]
    trace = bk.Trace("toy", tuple(map(bk.Message, raw)), fields={"usage": usage})
    assert unpaired(trace) == [1]
    assert readings(trace, len, Framing(priming=1)).to_dict("list") == {
        "message_index": [1, 3],
        "counted": [11, 31],
        "billed": [110, 131],
    }
