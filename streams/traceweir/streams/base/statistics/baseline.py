"""Learns what a stream's mean was: sums by the hour of the day, and bounds that are inside the promise of an alarm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceweir.streams.base.statistics.intervals import Floats

HOURS = 24
SUMS = 5
"""Number of values, their sum, the sum of their squares, how many are 1, and how many are not 0."""
LEAST_IN_HOUR = 10
_RHYTHM_ERROR = 0.001
"""How often a stream without a daily rhythm is taken for one with a rhythm."""


class BaselineLines(NamedTuple):
    """What a stream must not be below, by the hour of the day in UTC."""

    lowest: Floats
    """The lower confidence bound of the mean of each hour."""
    means: Floats
    """The mean of each hour; that of the whole day without a rhythm."""
    rhythm: bool
    """Whether the hours differ."""


def value_sums(values: Floats) -> Floats:
    """Returns the sums of values from 0 to 1 by which a baseline is kept.

    >>> value_sums(np.array([1.0, 0.5, 0.0])).tolist()
    [3.0, 1.5, 1.25, 1.0, 2.0]
    """
    return np.array(
        [len(values), values.sum(), (values**2).sum(), np.count_nonzero(values == 1), np.count_nonzero(values)], float
    )


def baseline_lines(sums: Floats, error: float) -> BaselineLines:
    """Returns the bounds of a stream.

    Whether hours differ is tested (chi-square, at 0.001). If they do, each hour has a bound of its own, and an hour with
    fewer than `LEAST_IN_HOUR` values has none: 0. The bounds of the day and those of the hours share the error, so that
    the choice between them costs nothing.

    Args:
        sums: The sums of each hour, 24 by 5.
        error: Probability that any bound is above its mean.
    """
    day = sums.sum(axis=0)
    if not _has_rhythm(sums):
        lowest = np.full(HOURS, float(lower_bound(day, error / 2)))
        return BaselineLines(lowest, np.full(HOURS, day[1] / max(day[0], 1)), rhythm=False)
    enough = sums[:, 0] >= LEAST_IN_HOUR
    lowest = np.where(enough, lower_bound(sums, error / 2 / HOURS), 0.0)
    means = np.where(enough, sums[:, 1] / np.maximum(sums[:, 0], 1), day[1] / day[0])
    return BaselineLines(lowest, means, rhythm=True)


def lower_bound(sums: Floats, error: float) -> Floats:
    """Returns what the mean of values from 0 to 1 is not below, with a probability of 1 - `error`.

    The larger of two bounds that share the error: that of Clopper and Pearson 1934 (doi:10.2307/2331986) for the share of
    values that are 1, which is not above the mean; and the empirical Bernstein bound of Maurer and Pontil 2009
    (arXiv:0907.3740, theorem 4), which is better for values between 0 and 1.

    Args:
        sums: Sums as of `value_sums`, in the last axis.
        error: Probability that the bound is too high.

    >>> round(float(lower_bound(value_sums(np.repeat([1.0, 0.0], [900, 100])), 0.05)), 4)
    0.8797
    """
    from scipy.special import betaincinv

    number, total, squares, ones, _ = np.moveaxis(sums, -1, 0)
    exact = np.where(ones > 0, betaincinv(np.maximum(ones, 1), number - ones + 1, error / 2), 0.0)
    several = np.maximum(number, 2)
    mean = total / np.maximum(number, 1)
    variance = np.maximum(squares - total * mean, 0.0) / (several - 1)
    log = np.log(2 / (error / 2))
    bernstein = mean - np.sqrt(2 * variance * log / several) - 7 * log / (3 * (several - 1))
    return np.where(number >= 2, np.maximum(exact, bernstein), np.where(number > 0, exact, 0.0)).clip(0.0, 1.0)


def mean_bounds(sums: Floats, error: float) -> tuple[float, float]:
    """Returns the interval of a mean, two-sided.

    >>> [round(bound, 3) for bound in mean_bounds(value_sums(np.repeat([1.0, 0.0], [900, 100])), 0.05)]
    [0.877, 0.92]
    """
    number, total, squares, ones, nonzero = sums
    mirrored = np.array([number, number - total, number - 2 * total + squares, number - nonzero, number - ones])
    return float(lower_bound(sums, error / 2)), 1 - float(lower_bound(mirrored, error / 2))


def _has_rhythm(sums: Floats) -> bool:
    from scipy.special import chdtrc

    hours = sums[sums[:, 0] >= LEAST_IN_HOUR]
    number, total, squares = hours[:, :3].sum(axis=0)
    if len(hours) < 2 or number <= len(hours):
        return False
    between = float((hours[:, 1] ** 2 / hours[:, 0]).sum() - total**2 / number)
    within = float(squares - (hours[:, 1] ** 2 / hours[:, 0]).sum()) / (number - len(hours))
    if within <= 0:
        return between > 0
    return bool(chdtrc(len(hours) - 1, between / within) < _RHYTHM_ERROR)
