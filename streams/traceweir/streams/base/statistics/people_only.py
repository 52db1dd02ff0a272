"""Estimates a pass rate from the labels of people alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from traceweir.streams.base.statistics.clustered_sample import Numbers, effective_size, weighted_mean
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.rate_intervals import exact_interval, rate_interval

LEAST_FOR_WILSON = 15
"""Effective number of passes, and of failures, below which the exact interval is taken instead of Wilson's.

With fewer, Wilson's covers the true rate in 0.92 of the cases at some rates, with 15 in 0.934 at least (all rates from
0.0005 to 0.5, 10 to 1,000 values).
"""

Method = Literal["exact", "wilson", "ppi++", "rogan-gladen"]
"""How an interval was computed.

- `exact`: labels of people only, by Clopper and Pearson. Conservative by construction.
- `wilson`: labels of people only, by Wilson.
- `ppi++`: labels, and the verdicts of the judge on all others. Conservative by construction where the judge errs seldom.
- `rogan-gladen`: verdicts of the judge only, corrected by the rates of its errors on labels of another time.
  Conservative by construction where few answers are bad or the judge errs seldom.
"""


@dataclass(frozen=True, slots=True)
class Estimated:
    """A rate or a mean with its 95 % interval."""

    value: float
    low: float
    high: float
    method: Method
    size: float
    """How many independent labels are as exact as those that were used."""


def people_rate(passed: Floats, weights: Floats, sessions: Numbers) -> Estimated:
    """Returns the rate of passes with its interval on the effective number of labels.

    Args:
        passed: 1 for a pass and 0 for a failure, at least one.
        weights: 1 / the probability with which each was drawn.
        sessions: The number of the session of each, from 0.

    >>> import numpy as np
    >>> found = people_rate(np.array([1.0] * 18 + [0.0] * 2), np.ones(20), np.arange(20))
    >>> round(found.value, 2), round(found.low, 3), round(found.high, 3), found.method
    (0.9, 0.683, 0.988, 'exact')
    """
    size = effective_size(passed, weights, sessions)
    value = weighted_mean(passed, weights)
    few = min(value, 1 - value) * size < LEAST_FOR_WILSON
    low, high = (exact_interval if few else rate_interval)(value * size, size)
    return Estimated(value, low, high, "exact" if few else "wilson", size)
