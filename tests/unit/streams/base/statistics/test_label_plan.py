"""Tests that plans agree with the estimates that they plan for."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.anytime_bound import is_proven
from traceweir.streams.base.statistics.label_plan import (
    Assumed,
    expected_half_width,
    labels_for_bar,
    labels_for_certificate,
    labels_for_people,
    labels_for_rate,
)
from traceweir.streams.base.statistics.prediction_powered import JudgedSample, LabelledSample, corrected_rate
from traceweir.streams.base.statistics.rate_intervals import rate_interval


def test_the_expected_half_width_is_that_of_labels_with_the_assumed_frequencies() -> None:
    truth = np.repeat([1.0, 1.0, 0.0, 0.0], [72, 8, 6, 14])
    verdicts = np.repeat([1.0, 0.0, 1.0, 0.0], [72, 8, 6, 14])
    others = JudgedSample(np.repeat([1.0, 0.0], [780, 220]), np.ones(1000), np.arange(100, 1100))
    found = corrected_rate(LabelledSample(truth, verdicts, np.ones(100), np.arange(100)), others)
    planned = expected_half_width(Assumed(rate=0.8, passing=0.9, failing=0.7), 100, 1000)
    assert planned == pytest.approx((found.high - found.low) / 2, rel=0.005)


def test_the_planned_number_is_the_least_that_is_enough() -> None:
    assumed = Assumed(rate=0.9, passing=0.9, failing=0.9)
    number = labels_for_rate(assumed, 0.05)
    assert number is not None
    assert expected_half_width(assumed, number) <= 0.05 < expected_half_width(assumed, number - 1)
    alone = labels_for_people(0.9, 0.05)
    assert alone is not None
    low, high = rate_interval(0.9 * alone, alone)
    assert high - low <= 0.1


def test_a_judge_that_guesses_saves_no_label() -> None:
    powered = labels_for_rate(Assumed(rate=0.7, passing=0.5, failing=0.5), 0.05)
    alone = labels_for_people(0.7, 0.05)
    assert powered is not None
    assert alone is not None
    assert abs(powered - alone) <= 6


def test_a_plan_for_the_bar_succeeds_as_often_as_it_says() -> None:
    number = labels_for_bar(0.95)
    assert number == 58
    right = np.random.default_rng(1).binomial(number, 0.95, 4_000)
    succeeded = np.mean([is_proven(each, number, 0.8) for each in right])
    assert succeeded >= 0.8 - 0.02


@pytest.mark.parametrize(("rate", "passing", "failing"), [(0.5, 0.95, 0.95), (0.8, 0.95, 0.9), (0.3, 0.9, 0.95)])
@pytest.mark.slow
def test_a_plan_for_a_certificate_succeeds_as_often_as_it_says(rate: float, passing: float, failing: float) -> None:
    number = labels_for_certificate(Assumed(rate, passing, failing))
    assert number is not None
    random = np.random.default_rng(1)
    good = random.binomial(number, rate, 4_000)
    pairs = ((good, random.binomial(good, passing)), (number - good, random.binomial(number - good, failing)))
    reached = [
        [is_proven(right, size, 0.8) for size, right in zip(*map(np.ndarray.tolist, pair), strict=True)]
        for pair in pairs
    ]
    assert np.mean(np.all(reached, axis=0)) == pytest.approx(0.81, abs=0.03)
