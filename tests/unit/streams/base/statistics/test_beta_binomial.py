"""Compares boundaries with published values, and simulates what a confidence sequence covers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from traceweir.streams.base.statistics.beta_binomial import log_mixture, mean_intervals, tuned_rho


def test_the_boundary_has_the_published_value() -> None:
    rho = tuned_rho(100, 0.05)
    found = brentq(lambda total: log_mixture(total, 100.0, 0.2, 0.8, rho) - np.log(20), 0, 400)
    assert found == pytest.approx(31.4308, abs=1e-5)


def test_the_mixture_has_the_published_value() -> None:
    assert log_mixture(10.0, 100.0, 0.2, 0.8, tuned_rho(100, 0.05)) == pytest.approx(-0.6941012, abs=1e-6)


@pytest.mark.slow
def test_an_interval_contains_the_mean_at_all_times_at_once() -> None:
    random = np.random.default_rng(2)
    missed = 0
    for _ in range(200):
        totals = np.cumsum(random.random(600) < 0.8).astype(float)[::10]
        low, high = mean_intervals(totals, np.arange(1.0, 601)[::10], 0.1)
        missed += bool(((low > 0.8) | (high < 0.8)).any())
    assert missed <= 20


def test_without_values_the_interval_is_everything() -> None:
    low, high = mean_intervals(np.zeros(1), np.zeros(1), 0.05)
    assert (low[0], high[0]) == (pytest.approx(0), pytest.approx(1))
