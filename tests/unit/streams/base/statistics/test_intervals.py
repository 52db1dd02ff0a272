"""Tests the intervals against statsmodels, against the general matrix formula, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.diff_coverage import DESIGNS, Design, paired_coverage, unpaired_coverage

from traceweir.streams.base.statistics.intervals import paired_difference, unpaired_difference

# Each test imports what it compares with, and one process runs these tests: SciPy, pandas and statsmodels take 3 s of CPU.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("statsmodels")]

DRAWS = 1_000
LEAST_SHARE = 0.95 - 4 * (0.95 * 0.05 / DRAWS) ** 0.5
"""Four standard errors below 95 %: a right interval covers less in one of 30,000 seeds."""


def sessions(*sizes: int, first: int = 0) -> np.ndarray:
    return np.repeat(np.arange(first, first + len(sizes), dtype=np.uint64), sizes)


def draw(count: int, seed: int = 1) -> np.ndarray:
    values: np.ndarray = np.random.default_rng(seed).normal(size=count)
    return values


def by_matrices(
    values: np.ndarray, design: np.ndarray, clusters: np.ndarray, contrast: np.ndarray
) -> tuple[float, ...]:
    """Returns estimate and interval by the general CR2 formula: with the matrix (I - H_gg)^(-1/2) of each cluster."""
    from scipy import linalg, stats

    inverse = np.linalg.inv(design.T @ design)
    residuals = values - design @ inverse @ design.T @ values
    complement = np.eye(len(values)) - design @ inverse @ design.T
    parts, rows = [], []
    for cluster in np.unique(clusters):
        of = np.flatnonzero(clusters == cluster)
        root = linalg.fractional_matrix_power(complement[np.ix_(of, of)], -0.5).real
        weights = contrast @ inverse @ design[of].T @ root
        parts.append(weights @ residuals[of])
        rows.append(weights @ complement[of])
    covariance = np.array(rows) @ np.array(rows).T
    freedom = np.trace(covariance) ** 2 / (covariance**2).sum()
    difference = float(contrast @ inverse @ design.T @ values)
    half = stats.t.ppf(0.975, freedom) * np.linalg.norm(parts)
    return difference, difference - half, difference + half


def test_with_sessions_of_one_size_the_interval_is_that_of_a_clustered_regression() -> None:
    import statsmodels.api as sm

    clusters = sessions(*[3] * 9)
    values = draw(27) + np.repeat(draw(9, seed=2), 3)
    fitted = sm.OLS(values, np.ones(27)).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)

    found = paired_difference(np.zeros(27), values, clusters)

    assert (found.low, found.high) == pytest.approx(tuple(fitted.conf_int()[0]))
    assert found.p_value == pytest.approx(fitted.pvalues[0])


def test_with_sessions_of_one_result_the_interval_is_that_of_the_paired_t_test() -> None:
    from scipy import stats

    base, challenger = draw(12), draw(12, seed=2)
    expected = stats.ttest_rel(challenger, base)

    found = paired_difference(base, challenger, sessions(*[1] * 12))

    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p_value == pytest.approx(expected.pvalue)


def test_with_unequal_sessions_the_interval_is_that_of_the_general_formula() -> None:
    clusters = sessions(1, 4, 2, 7, 1, 3)
    values = draw(18)
    found = paired_difference(np.zeros(18), values, clusters)
    expected = by_matrices(values, np.ones((18, 1)), clusters, np.ones(1))
    assert (found.difference, found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("first", [0, 4, 50], ids=["all shared", "some shared", "none shared"])
def test_without_pairs_the_interval_is_that_of_the_general_formula_for_two_groups(first: int) -> None:
    before, after = sessions(1, 4, 2, 7, 1, 3), sessions(2, 1, 3, 3, first=first)
    values = draw(27)
    side = (np.arange(27) >= 18).astype(float)
    expected = by_matrices(
        values, np.column_stack((1 - side, side)), np.concatenate((before, after)), np.array([-1, 1])
    )

    found = unpaired_difference(values[:18], before, values[18:], after)

    assert (found.difference, found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[2]], ids=lambda design: design.name)
def test_95_percent_of_paired_intervals_contain_the_true_difference(design: Design) -> None:
    assert paired_coverage(design, DRAWS).share >= LEAST_SHARE


def test_95_percent_of_unpaired_intervals_contain_the_true_difference() -> None:
    assert unpaired_coverage(DESIGNS[2], DRAWS).share >= LEAST_SHARE


def test_an_interval_without_clusters_would_not_cover() -> None:
    assert paired_coverage(DESIGNS[2], DRAWS, clustered=False).share < 0.7


@pytest.mark.parametrize("sizes", [(1,), (5,)])
def test_one_session_has_a_difference_and_no_interval(sizes: tuple[int, ...]) -> None:
    clusters = sessions(*sizes)
    values = draw(len(clusters))
    found = paired_difference(np.zeros(len(clusters)), values, clusters)
    assert (found.sessions, found.low, found.high, found.p_value) == (1, None, None, None)
    assert found.difference == pytest.approx(values.mean())


def test_equal_sides_have_no_difference_and_an_interval_of_no_width() -> None:
    values = draw(6)
    found = paired_difference(values, values, sessions(2, 2, 2))
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_difference_that_is_the_same_in_all_sessions_has_no_p_value() -> None:
    values = np.array([0.9, 0.8, 0.7])
    found = paired_difference(values, values - 0.1, sessions(1, 1, 1))
    assert found.p_value is None
    assert found.difference == pytest.approx(-0.1)
    assert (found.low, found.high) == (found.difference, found.difference)
