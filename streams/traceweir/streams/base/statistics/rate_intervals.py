"""Computes 95 % intervals of rates, of differences of rates, and of differences of means."""

from __future__ import annotations

import math

Interval = tuple[float, float]

_Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def rate_interval(passed: int, judged: int) -> Interval:
    """Returns the 95 % interval of a rate by Wilson's score interval (Wilson 1927, doi:10.2307/2276774).

    >>> [round(bound, 3) for bound in rate_interval(8, 10)]
    [0.49, 0.943]
    """
    rate = passed / judged
    spread = _Z_95**2 / judged
    middle = (rate + spread / 2) / (1 + spread)
    half = _Z_95 / (1 + spread) * math.sqrt(rate * (1 - rate) / judged + spread / judged / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate_difference_interval(first: tuple[int, int], second: tuple[int, int]) -> Interval:
    """Returns the 95 % interval of the second rate minus the first one, each as (passed, judged).

    This is method 10 of Newcombe 1998 (doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I), which
    combines the two Wilson intervals. Its first example has 56 of 70 against 48 of 80:

    >>> [round(bound, 4) for bound in rate_difference_interval((48, 80), (56, 70))]
    [0.0524, 0.3339]
    """
    before = first[0] / first[1]
    after = second[0] / second[1]
    (before_low, before_high), (after_low, after_high) = rate_interval(*first), rate_interval(*second)
    difference = after - before
    low = difference - math.hypot(after - after_low, before_high - before)
    high = difference + math.hypot(after_high - after, before - before_low)
    return low, high


def mean_difference_interval(first: tuple[int, float, float], second: tuple[int, float, float]) -> Interval | None:
    """Returns the 95 % interval of the second mean minus the first one; None if a side has fewer than two values, or no side has a spread.

    Each side is (number of values, their sum, the sum of their squares). The variances can differ (Welch 1947,
    doi:10.2307/2332510): the quantile is that of Student's t with the degrees of freedom by Satterthwaite (1946,
    doi:10.2307/3002019). Values are taken as independent.

    >>> [round(bound, 4) for bound in mean_difference_interval((100, 50.0, 30.0), (100, 60.0, 40.0))]
    [0.0405, 0.1595]
    >>> mean_difference_interval((1, 0.5, 0.25), (100, 60.0, 40.0))
    """
    if min(first[0], second[0]) < 2:
        return None
    (first_mean, first_error), (second_mean, second_error) = (_mean_and_error(*side) for side in (first, second))
    difference = second_mean - first_mean
    error = first_error + second_error
    if not error:
        # Equal values do not say how much others spread.
        return None
    # SciPy takes a third of a second to import, and only pages with means need it.
    from scipy.stats import t

    freedom = error**2 / (first_error**2 / (first[0] - 1) + second_error**2 / (second[0] - 1))
    half = float(t.ppf(0.975, freedom)) * math.sqrt(error)
    return difference - half, difference + half


def _mean_and_error(number: int, total: float, squares: float) -> tuple[float, float]:
    """Returns the mean of a side, and the square of its standard error."""
    mean = total / number
    # The sum of squares can be less than the exact one by rounding.
    return mean, max(0.0, squares - number * mean * mean) / (number - 1) / number
