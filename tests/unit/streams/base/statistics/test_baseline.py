"""Tests bounds of baselines by simulation, and that a rhythm is seen where there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from traceweir.streams.base.statistics.baseline import HOURS, baseline_lines, lower_bound, mean_bounds, value_sums
from traceweir.streams.base.statistics.intervals import Floats

RUNS = 2_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mean", "values"),
    [
        (0.9, lambda random: (random.random(200) < 0.9).astype(float)),
        (0.99, lambda random: (random.random(60) < 0.99).astype(float)),
        (0.8, lambda random: random.beta(8, 2, 100)),
        (0.9, lambda random: random.binomial(5, 0.9, 300) / 5),
    ],
)
def test_a_bound_is_above_the_mean_as_seldom_as_stated(
    mean: float, values: Callable[[np.random.Generator], Floats]
) -> None:
    random = np.random.default_rng(1)
    sums = np.array([value_sums(values(random)) for _ in range(RUNS)])
    assert (lower_bound(sums, 0.05) > mean).mean() <= 0.05
    low, high = mean_bounds(sums[0], 0.05)
    assert low < mean < high


def test_hours_have_bounds_of_their_own_if_they_differ() -> None:
    random = np.random.default_rng(2)
    even = np.array([value_sums((random.random(400) < 0.8).astype(float)) for _ in range(HOURS)])
    assert not baseline_lines(even, 0.02).rhythm
    even[3] = value_sums((random.random(400) < 0.6).astype(float))
    lines = baseline_lines(even, 0.02)
    assert lines.rhythm
    assert lines.lowest[3] < 0.6 < lines.lowest[4]
    # The hours share half of the error.
    assert lines.lowest == pytest.approx(lower_bound(even, 0.02 / 48))


def test_an_hour_without_values_has_no_bound() -> None:
    random = np.random.default_rng(3)
    sums = np.array([value_sums((random.random(400) < 0.5 + hour / 60).astype(float)) for hour in range(HOURS)])
    sums[5] = 0
    lines = baseline_lines(sums, 0.02)
    assert lines.rhythm
    assert lines.lowest[5] == 0


def test_values_that_are_all_equal_have_no_rhythm() -> None:
    sums = np.array([value_sums(np.ones(20)) for _ in range(HOURS)])
    lines = baseline_lines(sums, 0.02)
    assert not lines.rhythm
    assert 0.97 < lines.lowest[0] < 1
