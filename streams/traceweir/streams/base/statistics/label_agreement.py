"""Measures how far verdicts agree with labels: the bias to yes, and 95 % intervals of the bias and of Cohen's kappa.

The number of cases with each label is fixed, so that only two rates are random: the share of the good cases that pass,
and that of the bad ones. Kappa and the bias are functions of the two. Their intervals combine the Wilson intervals of
the rates as method 10 of Newcombe 1998 does for a difference (Zou and Donner 2008, doi:10.1002/sim.3095): with as many
good as bad cases, kappa is the difference of the two rates, and its interval is Newcombe's.

The usual interval of kappa (Fleiss, Cohen and Everitt 1969, doi:10.1037/h0028106) takes the labels as sampled too, and
has no width where all verdicts agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from traceweir.streams.base.statistics.rate_intervals import Interval, rate_interval
from traceweir.streams.base.statistics.significance import cohens_kappa

LEAST_OF_A_LABEL = 5
"""LabelledVerdicts on cases of each label below which an interval does not hold."""


class LabelledVerdicts(NamedTuple):
    """Counts verdicts by the label of their case."""

    good: int
    """Number of verdicts on cases that must pass."""
    good_passed: int
    """How many of these passed."""
    bad: int
    """Number of verdicts on cases that must fail."""
    bad_passed: int
    """How many of these passed."""

    @property
    def agreed(self) -> int:
        """Number of verdicts that agree with the label."""
        return self.good_passed + self.bad - self.bad_passed


def kappa(verdicts: LabelledVerdicts) -> float | None:
    """Returns Cohen's kappa of verdicts and labels, at most 1; None if there are no cases of one label.

    >>> kappa(LabelledVerdicts(24, 24, 24, 0)), kappa(LabelledVerdicts(24, 24, 24, 24)), kappa(LabelledVerdicts(24, 20, 0, 0))
    (1.0, 0.0, None)
    """
    if not verdicts.good or not verdicts.bad:
        return None
    return cohens_kappa(
        verdicts.good_passed,
        verdicts.bad - verdicts.bad_passed,
        verdicts.good - verdicts.good_passed,
        verdicts.bad_passed,
    )


def bias_to_yes(verdicts: LabelledVerdicts) -> float | None:
    """Returns the share of verdicts that pass minus the share of labels that must, from -1 to 1; None without verdicts.

    >>> bias_to_yes(LabelledVerdicts(24, 24, 24, 24)), bias_to_yes(LabelledVerdicts(0, 0, 0, 0))
    (0.5, None)
    """
    total = verdicts.good + verdicts.bad
    return (verdicts.good_passed + verdicts.bad_passed - verdicts.good) / total if total else None


def kappa_interval(verdicts: LabelledVerdicts) -> Interval | None:
    """Returns the interval of kappa; None with fewer than `LEAST_OF_A_LABEL` verdicts on cases of a label.

    >>> [round(bound, 3) for bound in kappa_interval(LabelledVerdicts(24, 24, 24, 0))]
    [0.805, 1.0]
    """
    good = _share_of_good(verdicts)

    def kappa_at(good_rate: float, bad_rate: float) -> float:
        passed = good * good_rate + (1 - good) * bad_rate
        apart = good * (1 - passed) + (1 - good) * passed
        return 2 * good * (1 - good) * (good_rate - bad_rate) / apart

    return _combined(verdicts, kappa_at, falls_with_bad=True)


def bias_interval(verdicts: LabelledVerdicts) -> Interval | None:
    """Returns the interval of the bias to yes; None with fewer than `LEAST_OF_A_LABEL` verdicts on cases of a label.

    >>> [round(bound, 3) for bound in bias_interval(LabelledVerdicts(24, 24, 24, 0))]
    [-0.069, 0.069]
    """
    good = _share_of_good(verdicts)
    return _combined(verdicts, lambda good_rate, bad_rate: good * (good_rate - 1) + (1 - good) * bad_rate)


def _share_of_good(verdicts: LabelledVerdicts) -> float:
    return verdicts.good / max(1, verdicts.good + verdicts.bad)


def _combined(
    verdicts: LabelledVerdicts, value_at: Callable[[float, float], float], *, falls_with_bad: bool = False
) -> Interval | None:
    """Returns the interval of a function of the two rates that rises with the first, and rises or falls with the second."""
    if min(verdicts.good, verdicts.bad) < LEAST_OF_A_LABEL:
        return None
    good_rate = verdicts.good_passed / verdicts.good
    bad_rate = verdicts.bad_passed / verdicts.bad
    good_low, good_high = rate_interval(verdicts.good_passed, verdicts.good)
    bad_low, bad_high = rate_interval(verdicts.bad_passed, verdicts.bad)
    if falls_with_bad:
        bad_low, bad_high = bad_high, bad_low
    value = value_at(good_rate, bad_rate)
    low = value - math.hypot(value - value_at(good_low, bad_rate), value - value_at(good_rate, bad_low))
    high = value + math.hypot(value_at(good_high, bad_rate) - value, value_at(good_rate, bad_high) - value)
    return low, high
