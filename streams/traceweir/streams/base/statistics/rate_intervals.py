"""Computes 95 % intervals of rates, and of differences of rates."""

from __future__ import annotations

import math
from statistics import NormalDist

Interval = tuple[float, float]

LEAST_COUNTED = 20
"""Least number of events of each of two counts that are compared."""
_Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def rate_interval(passed: int, judged: int, *, tests: int = 1) -> Interval:
    """Returns the 95 % interval of a rate by Wilson's score interval (Wilson 1927, doi:10.2307/2276774).

    Args:
        passed: How many passed.
        judged: How many there are, at least one.
        tests: Number of intervals that all together have 95 % confidence, by Bonferroni's correction.

    >>> [round(bound, 3) for bound in rate_interval(8, 10)]
    [0.49, 0.943]
    """
    z = _Z_95 if tests == 1 else NormalDist().inv_cdf(1 - 0.025 / tests)
    rate = passed / judged
    spread = z**2 / judged
    middle = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / judged + spread / judged / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate_difference_interval(first: tuple[int, int], second: tuple[int, int], *, tests: int = 1) -> Interval:
    """Returns the 95 % interval of the second rate minus the first one, each as (passed, judged).

    This is method 10 of Newcombe 1998 (doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I), which
    combines the two Wilson intervals, corrected for `tests` as these are. Its first example has 56 of 70 against 48 of 80:

    >>> [round(bound, 4) for bound in rate_difference_interval((48, 80), (56, 70))]
    [0.0524, 0.3339]
    """
    before = first[0] / first[1]
    after = second[0] / second[1]
    (before_low, before_high), (after_low, after_high) = (rate_interval(*rate, tests=tests) for rate in (first, second))
    difference = after - before
    low = difference - math.hypot(after - after_low, before_high - before)
    high = difference + math.hypot(after_high - after, before - before_low)
    return low, high


def count_change(before: int, after: int) -> tuple[float, float, float] | None:
    """Returns the relative change of a count with its 95 % interval; None if one of them is under `LEAST_COUNTED`.

    The counts are those of independent events in two spans of the same length. The interval is that of the logarithm of
    their ratio, whose variance is the sum of their reciprocals.

    >>> [round(number, 3) for number in count_change(400, 500)]
    [0.25, 0.096, 0.426]
    >>> count_change(3, 18_430)
    """
    if min(before, after) < LEAST_COUNTED:
        return None
    ratio = after / before
    factor = math.exp(_Z_95 * math.sqrt(1 / before + 1 / after))
    return ratio - 1, ratio / factor - 1, ratio * factor - 1
