"""The stores compare two selections of results as `traceweir diff` compares files of the same scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.comparing import compared
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import scores_batch

from traceweir.schemas.score import Cost
from traceweir.streams.board.store import diff as diff_module
from traceweir.streams.board.store.diff import TooManyResultsError, diff
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.lab.comparison.compare import NoOverlapError

# Importing SciPy takes most of the time of these tests; the group keeps it to one process.
pytestmark = pytest.mark.xdist_group("scipy")

DAY = Selection(NOW - timedelta(days=1), NOW + timedelta(minutes=1))
EARLIER = Selection(NOW - timedelta(days=3), NOW - timedelta(days=1))
FIRST, SECOND = (replace(DAY, dimensions={"agent_version": version}) for version in "12")


def test_a_diff_of_the_store_is_that_of_the_scores(store: Store) -> None:
    base = [
        make_score(f"a{n % 3}", value=n / 9, level="invocation", invocation_id=f"{n}", agent_version="1")
        for n in range(9)
    ]
    challenger = [
        make_score(f"b{n}", value=n / 4 if n else None, agent_version="2", level="invocation", cost=Cost(usd=0.25))
        for n in range(4)
    ]
    gates = [make_score("a0", "gate", 1.0, agent_version="1"), make_score("b1", "gate", 0.0, agent_version="2")]
    distinct = [
        score.model_copy(update={"result_id": f"{place}"}) for place, score in enumerate([*base, *challenger, *gates])
    ]
    store.write(scores_batch(*distinct))

    found = diff(store, FIRST, SECOND)

    expected = compared([*base, gates[0]], [*challenger, gates[1]])
    assert (found.metrics, found.gate) == (expected.metrics, expected.gate)


def test_results_of_one_subject_on_both_sides_are_pairs_with_flips(store: Store) -> None:
    old = [make_score(f"s{n}", value=0.8, occurred_at=NOW - timedelta(days=2), rationale="was so") for n in range(3)]
    new = [make_score(f"s{n}", value=0.1, result_id=f"judge b {n}", rationale="is so") for n in range(3)]
    store.write(scores_batch(*old, *new))

    (metric,) = diff(store, EARLIER, DAY).metrics

    assert (metric.pairing, metric.pairs) == ("paired", 3)
    assert metric.verdicts is not None
    assert {(flip.base.rationale, flip.challenger.rationale) for flip in metric.verdicts.flips} == {("was so", "is so")}


def test_a_value_that_cannot_be_compared_costs_no_other_result(store: Store) -> None:
    store.write(scores_batch(make_score("huge", value=1e200, agent_version="1"), make_score("a", agent_version="1")))
    found = diff(store, FIRST, FIRST)
    assert (found.base.unusable, found.base.results) == (1, 1)


def test_selections_without_a_common_metric_are_refused(store: Store) -> None:
    store.write(scores_batch(make_score("a", agent_version="1")))
    with pytest.raises(NoOverlapError, match="second: has no results"):
        diff(store, FIRST, SECOND)


def test_a_selection_with_too_many_results_is_refused_with_what_to_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_module, "MAX_RESULTS", 9)
    store.write(scores_batch(*(make_score(f"{number}") for number in range(10))))
    with pytest.raises(TooManyResultsError, match="select a shorter time range"):
        diff(store, DAY, EARLIER)


def test_values_without_a_threshold_are_compared_and_no_verdicts(store: Store) -> None:
    scores = [
        make_score(f"{version}{n}", "token_usage_v1", 900.0 + n, threshold=None, status="PASSED", agent_version=version)
        for version in "12"
        for n in range(3)
    ]
    store.write(scores_batch(*scores))

    found = diff(store, FIRST, SECOND)

    assert found.metrics == compared(scores[:3], scores[3:]).metrics
    assert [(each.base.results, each.base.passed, each.verdicts) for each in found.metrics] == [(3, 0, None)]
