"""What must hold for every comparison: the order of lines does not matter, and the sides are symmetric."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.comparing import compared
from tests.support.results import make_score

from traceweir.schemas.score import Score
from traceweir.streams.lab.comparison.document import Diff, MetricComparison

values = st.one_of(st.none(), st.floats(-5, 5).map(lambda value: round(value, 3)))
subjects = st.tuples(st.sampled_from("abcd"), st.sampled_from(["i1", "i2"]), st.sampled_from(["one", "two", "gate"]))
sides = st.dictionaries(subjects, st.tuples(values, st.integers(0, 1)), max_size=16).map(
    lambda found: [
        make_score(
            session,
            metric,
            (None if value is None else float(value >= 0.75)) if metric == "gate" else value,
            invocation_id=invocation,
            level="invocation",
            revision=revision,
        )
        for (session, invocation, metric), (value, revision) in found.items()
    ]
)
ALWAYS = [make_score("always", "always", 0.5), make_score("both", "always", 0.9)]


def every(comparison: Diff) -> list[MetricComparison]:
    return [*comparison.metrics, *([comparison.gate] if comparison.gate else [])]


@given(sides, sides, st.randoms(use_true_random=False))
def test_the_order_of_scores_changes_nothing(base: list[Score], challenger: list[Score], order: random.Random) -> None:
    shuffled = [order.sample(side, len(side)) for side in ([*base, *ALWAYS], [*challenger, *ALWAYS])]
    assert compared(*shuffled) == compared([*base, *ALWAYS], [*challenger, *ALWAYS])


@given(sides, sides)
def test_exchanged_sides_have_the_opposite_difference(base: list[Score], challenger: list[Score]) -> None:
    there = every(compared([*base, *ALWAYS], [*challenger, *ALWAYS]))
    back = every(compared([*challenger, *ALWAYS], [*base, *ALWAYS]))
    for one, other in zip(there, back, strict=True):
        assert (one.metric, one.pairing, one.pairs) == (other.metric, other.pairing, other.pairs)
        assert (one.value is None) == (other.value is None)
        if one.value and other.value:
            assert one.value.difference == pytest.approx(-other.value.difference, abs=1e-12)
            assert one.value.low == pytest.approx(other.value.high and -other.value.high, abs=1e-9)
        if one.verdicts and other.verdicts:
            assert (one.verdicts.to_failed, one.verdicts.to_passed) == (
                other.verdicts.to_passed,
                other.verdicts.to_failed,
            )
            assert one.verdicts.p_value == pytest.approx(other.verdicts.p_value)


@given(sides, sides)
def test_every_result_is_counted_once_with_its_status(base: list[Score], challenger: list[Score]) -> None:
    found = compared([*base, *ALWAYS], [*challenger, *ALWAYS])
    for each in every(found):
        for figures, scores in ((each.base, [*base, *ALWAYS]), (each.challenger, [*challenger, *ALWAYS])):
            own = [score for score in scores if score.metric == each.metric]
            assert figures.results == len(own)
            assert figures.passed + figures.failed + sum(figures.not_evaluated.values()) == len(own)
        assert each.pairs + each.other_revision <= min(each.base.results, each.challenger.results)
        if each.value and each.value.low is not None and each.value.high is not None:
            assert each.value.low <= each.value.difference <= each.value.high
        if each.verdicts:
            counts = each.verdicts
            assert counts.both_passed + counts.both_failed + counts.to_failed + counts.to_passed <= each.pairs
            assert len(counts.flips) + counts.flips_left_out == counts.to_failed + counts.to_passed


@given(sides)
def test_a_side_does_not_differ_from_itself(base: list[Score]) -> None:
    for each in every(compared([*base, *ALWAYS], [*base, *ALWAYS])):
        assert each.pairing == "paired" or each.value is None
        assert each.value is None or each.value.difference == 0
        assert each.verdicts is None or (each.verdicts.to_failed, each.verdicts.to_passed) == (0, 0)
