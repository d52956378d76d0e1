"""What other libraries answer to the same question, where the extra ``peers`` is installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import budgetkit as bk
from benchmarks import conformance

installed = pytest.mark.skipif(find_spec("anchor") is None, reason="astro-anchor (extra: peers) is not installed")


def test_the_cases_cover_every_set_of_allocated_sources_both_strategies_and_ties() -> None:
    cases = conformance.cases()
    assert len(cases) == 2_000
    assert len({frozenset(case.caps) for case in cases}) == 2 ** len(conformance.SOURCES)
    assert {strategy for case in cases for strategy in case.overflow.values()} == {"truncate", "drop"}
    ranks = [[(item.importance, item.score) for item in case.items] for case in cases]
    assert sum(len(set(each)) < len(each) for each in ranks) > 1_500


def test_what_is_kept_fits_the_window() -> None:
    """Without the peer: no window is overrun, but by a required system prompt."""
    for case in conformance.cases(300):
        plan = bk.fit(conformance.budget(case), case.items)
        assert plan.free >= 0 or plan["system"].granted > case.caps["system"]


@installed
def test_anchor_keeps_the_same_items_but_for_two_named_kinds_of_cases() -> None:
    tally = conformance.compare()
    assert tally.unexplained == []
    assert tally.same > 1_600
    for reason in tally.different:
        assert set(reason.split(" and ")) <= {conformance.POOL, conformance.SYSTEM}
