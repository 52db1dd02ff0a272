"""Computes 95 % intervals of rates, and of differences of rates."""

from __future__ import annotations

import math
from statistics import NormalDist

Interval = tuple[float, float]

LEAST_COUNTED = 20
"""Least number of events of each of two counts that are compared."""
_ROUNDING = 1e-12
_Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def rate_interval(passed: float, judged: float, *, tests: int = 1) -> Interval:
    """Returns the 95 % interval of a rate by Wilson's score interval (Wilson 1927, doi:10.2307/2276774).

    Args:
        passed: How many passed. Both numbers can be fractions, as those of an effective size.
        judged: How many there are, more than 0.
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


def exact_interval(passed: float, judged: float) -> Interval:
    """Returns the 95 % interval of a rate by Clopper and Pearson 1934 (doi:10.2307/2331986).

    It is conservative by construction: with few passes or few failures it covers the true rate in up to 100 % of the
    cases. The numbers can be fractions, as those of an effective size (Korn and Graubard 1998, Survey Methodology 24(2)).

    >>> [round(bound, 4) for bound in exact_interval(19, 20)]
    [0.7513, 0.9987]
    """
    return _exact_low(passed, judged, 0.025), 1 - _exact_low(judged - passed, judged, 0.025)


def exact_lower_bound(passed: float, judged: float) -> float:
    """Returns the bound that the true rate exceeds with 95 % confidence, one-sided, by Clopper and Pearson.

    >>> round(exact_lower_bound(28, 30), 4), exact_lower_bound(0, 30)
    (0.8047, 0.0)
    """
    return _exact_low(passed, judged, 0.05)


def _exact_low(passed: float, judged: float, error: float) -> float:
    from scipy.special import betaincinv

    # The difference of a rounded share and 1 is no failure.
    return float(betaincinv(passed, judged - passed + 1, error)) if passed > judged * _ROUNDING else 0.0


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
