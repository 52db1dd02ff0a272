"""Tests the promise of the e-detector by simulation, and that the shares of streams have the sum 1."""

from __future__ import annotations

import numpy as np
import pytest

from traceweir.streams.base.statistics.betting import (
    BETS,
    averaged,
    evidence_after,
    log_drop_growth,
    log_rise_growth,
    stream_weight,
)

PROMISED = 400
RUNS = 600


@pytest.mark.slow
@pytest.mark.parametrize(("line", "values"), [(0.9, 1), (0.5, 4), (0.1, 3)])
def test_the_mean_run_without_a_drop_is_as_long_as_promised(line: float, values: int) -> None:
    random = np.random.default_rng(1)
    growth = log_drop_growth(np.array([0.0, 1.0]), line)
    evidence = np.zeros((RUNS, BETS))
    lengths = []
    for step in range(1, 20 * PROMISED):
        passed = random.binomial(values, line, len(evidence))
        evidence = evidence_after(evidence, np.outer(values - passed, growth[0]) + np.outer(passed, growth[1]))
        over = averaged(evidence) >= PROMISED
        lengths += [step] * int(over.sum())
        evidence = evidence[~over]
    lengths += [20 * PROMISED] * len(evidence)
    error = np.std(lengths) / RUNS**0.5
    assert np.mean(lengths) - 2 * error > 0.95 * PROMISED
    # The promise is not met by silence.
    assert np.mean(lengths) < 2 * PROMISED


def test_a_factor_has_the_mean_one_on_the_line() -> None:
    for line in (0.05, 0.5, 0.98):
        mean = line * np.exp(log_drop_growth(np.array(1.0), line)) + (1 - line) * np.exp(
            log_drop_growth(np.array(0.0), line)
        )
        assert mean == pytest.approx(np.ones(BETS))


def test_evidence_of_a_rise_is_that_of_a_drop_of_the_failures() -> None:
    assert log_rise_growth(np.array([0.25]), 0.4) == pytest.approx(log_drop_growth(np.array([0.75]), 0.6))


def test_nothing_is_bet_against_a_line_at_or_below_zero() -> None:
    assert not log_drop_growth(np.array([0.0, 1.0]), -0.01).any()
    assert not log_rise_growth(np.array([0.0, 1.0]), -0.01).any()


def test_the_shares_of_all_streams_have_the_sum_one() -> None:
    shares = [stream_weight(number) for number in range(1, 100_001)]
    assert sum(shares) < 1
    # The rest of the sum is known: log(2) / log(100,002).
    assert sum(shares) + np.log(2) / np.log(100_002) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
