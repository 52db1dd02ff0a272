"""Tests the estimates from labels and a judge's verdicts against recorded outputs of two packages."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from traceweir.streams.base.statistics.clustered_sample import (
    clustered_variance,
    effective_size,
    kish_size,
    session_size,
    shows_correlation,
    weighted_mean,
)
from traceweir.streams.base.statistics.prediction_powered import (
    JudgedSample,
    LabelledSample,
    corrected_rate,
    mean_of_people,
    powered,
    powered_at,
)

RECORDED = json.loads((Path(__file__).parents[4] / "parity" / "data" / "label_statistics.json").read_text())
NEAR = 1e-9
Z_95 = 1.959963984540054


def parts(case: dict[str, Any]) -> tuple[LabelledSample, JudgedSample]:
    """Returns the samples of a recorded case, each result of a session of its own."""
    truth = np.array(case["truth"], float)
    verdicts = np.array(case["verdicts"], float)
    number = len(truth)
    others = np.arange(len(verdicts) - number)
    return (
        LabelledSample(truth, verdicts[:number], np.ones(number), np.arange(number)),
        JudgedSample(verdicts[number:], np.ones(len(others)), number + others),
    )


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_without_imagined_labels_the_estimate_is_that_of_glide(case: dict[str, Any]) -> None:
    found = powered(*parts(case), imagined=0)
    assert found.value == pytest.approx(case["glide"]["mean"], rel=0, abs=NEAR)
    assert math.sqrt(found.variance) == pytest.approx(case["glide"]["std"], rel=0, abs=NEAR)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_with_its_share_of_the_judge_the_estimate_is_that_of_ppi_python(case: dict[str, Any]) -> None:
    """ppi-python divides by n where a sample variance divides by n - 1."""
    labelled, others = parts(case)
    number = len(labelled.truth)
    rest = len(others.verdicts)
    share = powered(labelled, others, imagined=0).share * (number - 1) / number
    found = powered_at(share, labelled, others, imagined=0)
    assert found.value == pytest.approx(case["ppi"]["mean"], rel=0, abs=NEAR)
    of_others = share**2 * float(np.var(others.verdicts)) / rest
    of_labels = (found.variance - of_others * rest / (rest - 1)) * (number - 1) / number
    half = Z_95 * math.sqrt(of_labels + of_others)
    assert [found.value - half, found.value + half] == pytest.approx(case["ppi"]["interval"], rel=0, abs=NEAR)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_mean_and_variance_of_sessions_are_those_of_glide(case: dict[str, Any]) -> None:
    truth = np.array(case["truth"], float)
    sessions = np.arange(len(truth)) // 5
    weights = np.ones(len(truth))
    assert weighted_mean(truth, weights) == pytest.approx(case["glide_clustered"]["mean"], rel=0, abs=NEAR)
    deviation = math.sqrt(clustered_variance(truth, weights, sessions))
    assert deviation == pytest.approx(case["glide_clustered"]["std"], rel=0, abs=NEAR)


def clustered(case: dict[str, Any]) -> tuple[LabelledSample, JudgedSample, float]:
    """Returns the samples of a recorded case, five labels or eight others of a session, and glide's share of the judge."""
    labelled, others = parts(case)
    labelled = replace(labelled, sessions=np.arange(len(labelled.truth)) // 5)
    others = replace(others, sessions=1_000 + np.arange(len(others.verdicts)) // 8)
    moved = case["glide_clustered_ppi"]["mean"] - labelled.truth.mean()
    return labelled, others, moved / (others.verdicts.mean() - labelled.verdicts.mean())


def of_sessions(values: Any, size: int) -> Any:
    return values.reshape(-1, size).mean(axis=1)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_the_estimate_from_means_of_sessions_is_that_of_glide(case: dict[str, Any]) -> None:
    """glide takes a session's mean as one value. It does not hold its share of the judge to 1, so one of the cases has 1.2."""
    labelled, others, share = clustered(case)
    means = LabelledSample(
        of_sessions(labelled.truth, 5), of_sessions(labelled.verdicts, 5), np.ones(20), np.arange(20)
    )
    rest = JudgedSample(of_sessions(others.verdicts, 8), np.ones(50), 20 + np.arange(50))
    found = powered(means, rest, imagined=0)
    assert found.share == pytest.approx(min(1, share), rel=0, abs=NEAR)
    found = powered_at(share, means, rest, imagined=0)
    assert found.value == pytest.approx(case["glide_clustered_ppi"]["mean"], rel=0, abs=NEAR)
    assert math.sqrt(found.variance) == pytest.approx(case["glide_clustered_ppi"]["std"], rel=0, abs=NEAR)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_the_estimate_from_all_labels_of_sessions_is_that_of_glide_with_a_wider_interval(case: dict[str, Any]) -> None:
    """With glide's share of the judge the estimate is equal, and so is the variance by sums of sessions.

    The variance of `powered_at` is that one times (t / z)^2, with Student's t for the number of sessions; it is held
    between those of independent labels and of one label a session, which is also taken for sessions with few failures.
    """
    labelled, others, share = clustered(case)
    found = powered_at(share, labelled, others, imagined=0)
    assert found.value == pytest.approx(case["glide_clustered_ppi"]["mean"], rel=0, abs=NEAR)
    expected = 0.0
    summed = 0.0
    samples = (
        (labelled.truth - share * labelled.verdicts, labelled.truth, labelled.sessions, 20),
        (share * others.verdicts, others.verdicts, others.sessions - 1_000, 50),
    )
    for values, shown, sessions, count in samples:
        weights = np.ones(len(values))
        by_sums = clustered_variance(values, weights, sessions)
        summed += by_sums
        alone = float(np.var(values, ddof=1))
        widened = by_sums * (float(student.ppf(0.975, count - 1)) / Z_95) ** 2
        bounds = alone / len(values), alone / count
        known = all(shows_correlation(each, weights, sessions) for each in (values, shown))
        expected += min(bounds[1], max(bounds[0], widened)) if known else bounds[1]
    assert math.sqrt(summed) == pytest.approx(case["glide_clustered_ppi"]["std"], rel=0, abs=NEAR)
    assert found.variance == pytest.approx(expected, rel=0, abs=NEAR)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_known_probabilities_weigh_as_in_glide(case: dict[str, Any]) -> None:
    """glide divides by the number of subjects (Horvitz and Thompson), and this by the sum of the weights (Hajek)."""
    truth = np.array(case["truth"], float)
    weights = np.where(np.arange(len(truth)) % 4 == 0, 2.0, 4.0)
    expected = case["glide_weighted"]["mean"] * len(truth) / weights.sum()
    assert weighted_mean(truth, weights) == pytest.approx(expected, rel=0, abs=NEAR)


def test_the_scale_of_weights_changes_nothing() -> None:
    labelled, others = parts(RECORDED[0])
    scaled = LabelledSample(labelled.truth, labelled.verdicts, labelled.weights * 7, labelled.sessions)
    found = corrected_rate(scaled, JudgedSample(others.verdicts, others.weights * 3, others.sessions))
    expected = corrected_rate(labelled, others)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_imagined_labels_widen_the_interval_of_a_judge_that_has_not_erred() -> None:
    truth = np.array([1.0] * 18 + [0.0] * 2)
    labelled = LabelledSample(truth, truth, np.ones(20), np.arange(20))
    others = JudgedSample(np.tile([1.0] * 9 + [0.0], 100), np.ones(1000), np.arange(20, 1020))
    found = corrected_rate(labelled, others)
    assert found.high - found.low > 0.15
    assert powered(labelled, others, imagined=0).variance < 0.001


def test_a_judge_that_passes_everything_adds_nothing() -> None:
    truth = np.array([1.0] * 60 + [0.0] * 40)
    labelled = LabelledSample(truth, np.ones(100), np.ones(100), np.arange(100))
    others = JudgedSample(np.ones(500), np.ones(500), np.arange(100, 600))
    assert powered(labelled, others, imagined=0).share == 0
    assert corrected_rate(labelled, others).value == pytest.approx(0.6)


def test_few_uncommon_sessions_count_a_session_once() -> None:
    values = np.array([1.0] * 90 + [0.0] * 10)
    sessions = np.arange(100) // 10
    assert effective_size(values, np.ones(100), sessions) == 10


def test_results_that_do_not_resemble_each_other_keep_most_of_their_size() -> None:
    values = (np.random.default_rng(1).random(400) < 0.5).astype(float)
    size = effective_size(values, np.ones(400), np.arange(400) // 4)
    assert 250 < size <= 400


def test_results_of_a_session_that_are_equal_count_once() -> None:
    values = np.repeat((np.random.default_rng(1).random(100) < 0.5).astype(float), 4)
    assert effective_size(values, np.ones(400), np.arange(400) // 4) == pytest.approx(100, abs=4)


def test_numbers_of_a_session_count_as_one() -> None:
    values = np.random.default_rng(1).random(60)
    assert effective_size(values, np.ones(60), np.arange(60) // 3) == pytest.approx(20)
    found = mean_of_people(values, np.ones(60), np.arange(60) // 3)
    assert found.low < weighted_mean(values, np.ones(60)) < found.high


def test_the_size_of_kish_is_that_of_equal_weights_or_less() -> None:
    assert kish_size(np.full(7, 3.0)) == pytest.approx(7)
    assert kish_size(np.array([1.0, 1.0, 8.0])) < 2
    assert session_size(np.ones(6), np.array([0, 0, 0, 0, 1, 2])) == 2


def test_a_session_on_both_sides_adds_to_the_variance() -> None:
    case = RECORDED[0]
    labelled, others = parts(case)
    shared = JudgedSample(others.verdicts, others.weights, np.arange(len(others.verdicts)) % 100)
    assert powered(labelled, shared, imagined=0).variance >= powered(labelled, others, imagined=0).variance * 0.9
