"""Tests what keeps and what breaks a bound."""

from __future__ import annotations

import pytest
from tests.support.comparing import compared
from tests.support.results import make_score

from traceweir.schemas.score import Score
from traceweir.streams.lab.comparison.bounds import Bound, UnknownMetricError, checked
from traceweir.streams.lab.comparison.document import BoundCheck, BoundKind, BoundOn, Diff

# Importing SciPy takes most of the time of these tests; the group keeps it to one process.
pytestmark = pytest.mark.xdist_group("scipy")

METRIC = "response_match_score"


def comparison(*differences: float | None) -> Diff:
    """Returns the comparison of sessions whose values differ by these numbers; None for a value that is lost."""
    base = [make_score(f"s{number}", value=0.8) for number in range(len(differences))]
    values = [None if each is None else 0.8 + each for each in differences]
    return compared(base, [make_score(f"s{number}", value=value) for number, value in enumerate(values)])


def outcome(found: Diff, kind: BoundKind, limit: float, on: BoundOn = "mean", metric: str = METRIC) -> BoundCheck:
    (check,) = checked(found, [Bound(kind, metric, limit)], on).bounds
    return check


@pytest.mark.parametrize(
    ("kind", "limit", "kept"),
    [("max_drop", 0.021, True), ("max_drop", 0.019, False), ("max_rise", 0.0, True), ("max_flips", 0, True)],
)
def test_the_difference_of_the_means_is_bounded(kind: BoundKind, limit: float, kept: bool) -> None:
    assert outcome(comparison(-0.01, -0.03, -0.02), kind, limit).kept is kept


def test_a_rise_is_the_opposite_of_a_drop() -> None:
    found = comparison(0.01, 0.03, 0.02)
    assert outcome(found, "max_drop", 0).kept
    assert not outcome(found, "max_rise", 0.01).kept
    assert outcome(found, "max_drop", 0).measured == pytest.approx(-0.02)


def test_a_bound_on_the_interval_is_kept_only_if_the_data_excludes_more() -> None:
    found = comparison(-0.01, -0.03, -0.02)
    difference = found.metrics[0].value
    assert difference is not None
    assert difference.low is not None
    assert not outcome(found, "max_drop", 0.021, "interval").kept
    assert outcome(found, "max_drop", 1e-9 - difference.low, "interval").kept


def test_the_number_of_flips_to_failed_is_bounded() -> None:
    found = comparison(-0.5, -0.5, 0.1)
    assert outcome(found, "max_flips", 2).kept
    assert not outcome(found, "max_flips", 1).kept


@pytest.mark.parametrize(
    ("differences", "kind", "on", "reason"),
    [
        ((None, None), "max_drop", "mean", "a side has no value"),
        ((None, None), "max_flips", "mean", "no pair has a verdict on both sides"),
        ((0.0,), "max_drop", "interval", "there is no interval, because a side has one session only"),
    ],
)
def test_a_bound_that_cannot_be_checked_is_not_kept(
    differences: tuple[float | None, ...], kind: BoundKind, on: BoundOn, reason: str
) -> None:
    check = outcome(comparison(*differences), kind, 1, on)
    assert (check.kept, check.reason) == (False, reason)


def test_a_metric_that_neither_side_has_is_refused_with_a_near_name() -> None:
    with pytest.raises(UnknownMetricError, match="did you mean 'response_match_score'"):
        outcome(comparison(0.0), "max_drop", 1, metric="response_match")


def test_a_metric_that_one_side_has_keeps_no_bound() -> None:
    found = compared([make_score()], [make_score(), make_score(metric="completeness")])
    assert outcome(found, "max_drop", 1, metric="completeness").reason == "only one side has results of this metric"


def test_a_bound_holds_at_every_level_of_its_metric() -> None:
    def side(invocation: float) -> list[Score]:
        return [make_score(value=0.8), make_score(value=invocation, level="invocation", invocation_id="i")]

    checks = checked(compared(side(0.8), side(0.2)), [Bound("max_drop", METRIC, 0.1)], "mean")
    assert [(check.level, check.kept) for check in checks.bounds] == [("invocation", False), ("session", True)]
    assert not checks.keeps_bounds


def test_a_bound_takes_the_short_name_of_a_metric() -> None:
    full = "retrieval/ground_truth/document_recall"
    found = compared([make_score(metric=full)], [make_score(metric=full)])
    assert outcome(found, "max_drop", 0, metric="document_recall").metric == full
