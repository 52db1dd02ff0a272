"""Estimates a pass rate from a judge's verdicts alone, with the rates of its errors on labels of another time.

The estimate is (q + TNR - 1) / (TPR + TNR - 1) (Rogan and Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510), with the
interval of Lang and Reiczigel 2014 (doi:10.1016/j.prevetmed.2013.09.015), which allows for the sampling of all three
rates. It holds only if the judge errs as it did then: if only the share of good answers has changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from traceweir.streams.base.statistics.people_only import Estimated
from traceweir.streams.base.statistics.rate_intervals import exact_lower_bound

LEAST_YOUDEN = 0.2
"""TPR + TNR - 1 that both lower bounds must reach together: below, the estimate divides by almost nothing."""
_Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class KnownRate:
    """A rate, and the number of independent values on which it rests, which can be a fraction."""

    value: float
    size: float


def youden(passing: float, failing: float) -> float:
    """Returns TPR + TNR - 1: 1 for a judge without errors, 0 for one that guesses (Youden 1950)."""
    return passing + failing - 1


def can_correct(passing: KnownRate, failing: KnownRate) -> bool:
    """Tells whether the judge is known to tell good from bad well enough, for its rate to be corrected alone."""
    low = (exact_lower_bound(each.value * each.size, each.size) for each in (passing, failing))
    return youden(*low) >= LEAST_YOUDEN


def rogan_gladen(judged: float, passing: float, failing: float) -> float:
    """Returns the true rate of passes, from 0 to 1.

    Args:
        judged: The share of verdicts that pass.
        passing: TPR, the share of good answers that pass.
        failing: TNR, the share of bad answers that fail; both together more than 1.

    >>> round(rogan_gladen(0.4, 0.9, 0.7), 6)
    0.166667
    """
    return min(1.0, max(0.0, (judged + failing - 1) / youden(passing, failing)))


def transferred_rate(judged: KnownRate, passing: KnownRate, failing: KnownRate) -> Estimated:
    """Returns the true rate with its 95 % interval, for rates with which `can_correct` is true.

    >>> found = transferred_rate(KnownRate(0.6, 1000), KnownRate(0.9, 200), KnownRate(0.9, 100))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.625, 0.565, 0.682)
    """
    value = rogan_gladen(judged.value, passing.value, failing.value)
    square = _Z_95**2
    size = judged.size + square
    shrunk = (judged.value * judged.size + square / 2) / size
    passing = KnownRate((passing.value * passing.size + 1) / (passing.size + 2), passing.size + 2)
    failing = KnownRate((failing.value * failing.size + 1) / (failing.size + 2), failing.size + 2)
    informed = youden(passing.value, failing.value)
    rate = (shrunk + failing.value - 1) / informed
    of_passing = passing.value * (1 - passing.value) / passing.size
    of_failing = failing.value * (1 - failing.value) / failing.size
    variance = (shrunk * (1 - shrunk) / size + rate**2 * of_passing + (1 - rate) ** 2 * of_failing) / informed**2
    shift = 2 * square * (rate * of_passing - (1 - rate) * of_failing)
    half = _Z_95 * math.sqrt(variance)
    low = min(value, max(0.0, rate + shift - half))
    high = max(value, min(1.0, rate + shift + half))
    as_exact = value * (1 - value) / variance
    return Estimated(value, low, high, "rogan-gladen", as_exact)
