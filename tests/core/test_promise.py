"""A promise is about the next one: n + 1 in the arithmetic, and a sentence where n cannot carry it."""

import numpy as np
import pytest

from budgetkit import promise


@pytest.mark.parametrize(("risk", "units"), [(0.05, 19), (0.01, 99), (0.1, 9), (0.2, 4), (0.5, 1)])
def test_a_promise_needs_so_many_units_and_not_one_less(risk: float, units: int) -> None:
    assert promise.needed(risk) == units
    assert promise.lacking(units, risk) == ""
    assert promise.upper(range(units), risk) is not None
    assert promise.upper(range(units - 1), risk) is None
    assert f"a promise at {100 * risk:g} % risk needs {units} sources" in promise.lacking(
        units - 1, risk, "sources"
    )


@pytest.mark.parametrize("units", [19, 20, 30, 60])
def test_the_next_one_keeps_to_the_bound_as_often_as_was_promised(units: int) -> None:
    """An empirical 95th percentile of 20 is passed by 9 in 100; the bound is passed by 5 at most."""
    random = np.random.default_rng(units)
    numbers = random.lognormal(0, 1, (4_000, units + 1))
    passed = [row[-1] > (promise.upper(row[:-1].tolist(), 0.05) or 0) for row in numbers]
    assert np.mean(passed) <= 0.058


@pytest.mark.parametrize("units", [19, 40])
def test_the_next_loss_is_at_most_the_risk_in_the_mean(units: int) -> None:
    """Of answers in conversations, the smallest reserve that is controlled cuts one in twenty short at most."""
    random = np.random.default_rng(units)
    lost = []
    for _ in range(300):
        middle = random.lognormal(4, 0.5, units + 1)
        answers = [random.lognormal(np.log(each), 0.6, 12) for each in middle]
        sizes = np.sort(np.concatenate(answers[:-1]))[::-1]
        enough = float(sizes[0])
        for size in sizes:
            if not promise.is_controlled([float((of > size).mean()) for of in answers[:-1]], 0.05):
                break
            enough = float(size)
        lost.append(float((answers[-1] > enough).mean()))
    assert np.mean(lost) <= 0.06


@pytest.mark.parametrize("risk", [0, 1, -0.1, 2, "much", True])
def test_what_is_no_risk_is_refused(risk: float) -> None:
    with pytest.raises(ValueError, match="Pass a probability between 0 and 1, such as 0.05"):
        promise.needed(risk)
