"""Tests bounds of baselines by simulation, and that a rhythm is seen where there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from traceweir.streams.base.statistics.baseline import (
    HOURS,
    SUMS,
    WEEK,
    Rhythm,
    baseline_lines,
    lower_bound,
    mean_bounds,
    value_sums,
)
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
    assert baseline_lines(even, 0.02).rhythm is None
    even[3] = value_sums((random.random(400) < 0.6).astype(float))
    lines = baseline_lines(even, 0.02)
    assert lines.rhythm == "hour"
    assert lines.lowest[3] < 0.6 < lines.lowest[4]
    # The hours share half of the error.
    assert lines.lowest == pytest.approx(lower_bound(even, 0.02 / 48))


def test_an_hour_without_values_has_no_bound() -> None:
    random = np.random.default_rng(3)
    sums = np.array([value_sums((random.random(400) < 0.5 + hour / 60).astype(float)) for hour in range(HOURS)])
    sums[5] = 0
    lines = baseline_lines(sums, 0.02)
    assert lines.rhythm == "hour"
    assert lines.lowest[5] == 0


def test_values_that_are_all_equal_have_no_rhythm() -> None:
    sums = np.array([value_sums(np.ones(20)) for _ in range(HOURS)])
    lines = baseline_lines(sums, 0.02)
    assert lines.rhythm is None
    assert 0.97 < lines.lowest[0] < 1


def week(rates: Floats, seed: int, sessions: int = 100) -> Floats:
    """Returns the sums of a stream with a pass rate at each hour of the week."""
    random = np.random.default_rng(seed)
    numbers = random.poisson(sessions, WEEK)
    passed = random.binomial(numbers, rates)
    sums = np.repeat(passed[:, np.newaxis], SUMS, axis=1).astype(float)
    sums[:, 0] = numbers
    return sums


HOUR = np.arange(WEEK)
WAVE = 0.1 * np.sin(2 * np.pi * HOUR / HOURS)
WEEKEND = HOUR >= 5 * HOURS


@pytest.mark.parametrize(
    ("rates", "rhythm"),
    [
        (np.full(WEEK, 0.9), None),
        (0.8 + WAVE, "hour"),
        (0.9 - 0.1 * WEEKEND, "weekend"),
        (0.8 - 0.1 * WEEKEND + WAVE, "weekend and hour"),
        (0.9 - 0.1 * (HOUR < HOURS), "day"),
        (0.8 - 0.1 * (HOUR < HOURS) + WAVE, "day and hour"),
    ],
)
def test_each_part_of_the_week_that_differs_has_a_bound_of_its_own(rates: Floats, rhythm: Rhythm | None) -> None:
    lines = baseline_lines(week(rates, 1), 0.007)
    assert lines.rhythm == rhythm
    assert (lines.lowest < rates).all()
    assert (lines.lowest > rates - 0.35).all()
    # Where days differ, their bounds do.
    assert (lines.lowest[:24].mean() == pytest.approx(lines.lowest[24:48].mean())) == ("day" not in (rhythm or ""))
    assert (lines.lowest[96:120].mean() == pytest.approx(lines.lowest[120:144].mean())) == (rhythm in {None, "hour"})


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_a_week_without_a_rhythm_is_seldom_taken_for_one_with_a_rhythm(rate: float) -> None:
    found = [baseline_lines(week(np.full(WEEK, rate), seed), 0.007).rhythm for seed in range(500)]
    assert sum(each is not None for each in found) <= 5


def test_hours_of_a_week_without_values_have_no_bound_and_break_nothing() -> None:
    sums = week(0.8 - 0.3 * WEEKEND + WAVE, 2)
    sums[WEEKEND & (HOUR % HOURS < 12)] = 0
    lines = baseline_lines(sums, 0.007)
    assert lines.rhythm == "weekend and hour"
    assert (lines.lowest[WEEKEND & (HOUR % HOURS < 12)] == 0).all()
    assert (lines.lowest[HOUR < 5 * HOURS] > 0).all()
    empty = baseline_lines(np.zeros((WEEK, SUMS)), 0.007)
    assert empty.rhythm is None
    assert (empty.lowest == 0).all()
