"""What other libraries answer to the same question, where the extra ``peers`` is installed."""

from importlib.util import find_spec

import pytest

import budgetkit as bk
from benchmarks import conformance
from tests.conftest import EFFORT

installed = pytest.mark.skipif(
    find_spec("anchor") is None, reason="astro-anchor (extra: peers) is not installed"
)


def test_the_cases_cover_every_set_of_allocated_sources_both_strategies_and_ties() -> None:
    cases = conformance.cases()
    assert len(cases) == 2_000
    assert len({frozenset(case.caps) for case in cases}) == 2 ** len(conformance.SOURCES)
    expected = {"truncate", "drop"}
    assert {strategy for case in cases for strategy in case.overflow.values()} == expected
    ranks = [[(item.importance, item.score) for item in case.items] for case in cases]
    assert sum(len(set(each)) < len(each) for each in ranks) > 1_500


def test_what_is_kept_fits_the_window() -> None:
    """Without the peer: no window overflows, except by a required system prompt."""
    for case in conformance.cases(300):
        plan = bk.fit(conformance.budget(case), case.items)
        assert plan.free >= 0 or plan["system"].granted > case.caps["system"]


@installed
def test_anchor_keeps_the_same_items_but_for_three_named_kinds_of_cases() -> None:
    """2,000 cases; with `BUDGETKIT_EFFORT=10`, 20,000 (see conftest), of which docs/differences.md tells."""
    number = round(2_000 * min(EFFORT, 10))
    tally = conformance.compare(number)
    assert tally.unexplained == []
    assert tally.same > 0.7 * number
    for reason in tally.different:
        assert set(reason.split(" and ")) <= {
            conformance.POOL,
            conformance.SYSTEM,
            conformance.TIES,
        }


@installed
def test_anchors_pipeline_never_reads_the_total_of_its_budget() -> None:
    """100,000 in a window of 1,000 and less are accepted there; here there is one window."""
    for case in conformance.cases(60):
        assert conformance.kept_by_anchor(case, total=100_000) == conformance.kept_by_anchor(case)


@installed
@pytest.mark.parametrize(("caps", "theirs"), [({}, {0, 1}), ({"system": 5}, {0, 2})])
def test_anchors_equals_stand_source_by_source(caps: dict[str, int], theirs: set[int]) -> None:
    items = [bk.Item(section, 40, importance=6) for section in ("retrieval", "memory", "retrieval")]
    case = conformance.Case(100, 0, caps, dict.fromkeys(caps, "drop"), items)
    assert conformance.kept_by_anchor(case)[0] == theirs
    assert conformance.kept_by_budgetkit(case, as_given=True) == {0, 1}


@installed
def test_anchors_own_object_is_read_as_its_fields() -> None:
    from anchor import default_rag_budget

    theirs = default_rag_budget(max_tokens=8_192)
    read = bk.presets.translate(theirs, "anchor").budget
    caps = {allocation.source.value: allocation.max_tokens for allocation in theirs.allocations}
    assert {section: read.caps[section] for section in caps} == caps
    assert read.shared_pool == theirs.shared_pool
