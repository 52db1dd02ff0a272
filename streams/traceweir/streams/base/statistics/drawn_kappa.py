"""Computes Cohen's kappa of two answers to subjects that were drawn, with a 95 % interval that holds for sessions.

Kappa is 1 - d / c: d is the share of subjects on which the answers differ, and c the share on which they would differ by
chance, 1 - sum p_k q_k (Cohen 1960, doi:10.1177/001316446002000104). The interval is that of the ratio of two estimates
by Fieller 1954 (doi:10.1111/j.2517-6161.1954.tb00159.x). In place of the variance of d, it takes the distance to each
end of the interval of `people_rate`, which allows for sessions and for few differences, as Zou and Donner 2008 do
(doi:10.1002/sim.3095). It leaves out the covariance of d and c. Who differs names uncommon answers, so that the
covariance is positive, and leaving it out makes the interval conservative by construction.

The usual interval (Fleiss, Cohen and Everitt 1969, doi:10.1037/h0028106) has no width where all answers are the same, and
knows no sessions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from traceweir.streams.base.statistics.clustered_sample import (
    Numbers,
    clustered_variance,
    session_size,
    shows_correlation,
    weighted_variance,
)
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.people_only import people_rate
from traceweir.streams.base.statistics.rate_intervals import Interval

LEAST_ANSWERS = 20
"""Subjects from which kappa has an interval. With fewer it was not shown to hold, nor with fewer of the next two."""
LEAST_SESSIONS = 10
"""Sessions from which it has one."""
LEAST_OTHERS = 5
"""Sessions with another first answer than the most common one from which it has one."""
WHEN = (
    f"Kappa has an interval from {LEAST_ANSWERS} subjects of {LEAST_SESSIONS} sessions on, if {LEAST_OTHERS} of the "
    "sessions have another answer than the most common one, all were drawn with the same probability, and these are "
    "enough to say how often answers agree by chance."
)
"""The same as a sentence for people."""


class DrawnKappa(NamedTuple):
    """Cohen's kappa with its interval."""

    value: float | None
    """From -1 to 1; None if there is only one and the same answer, or none."""
    interval: Interval | None
    """The 95 % interval; None with too few subjects or sessions."""


def drawn_kappa(first: Numbers, second: Numbers, weights: Floats, sessions: Numbers) -> DrawnKappa:
    """Returns kappa of the first and the second answers, without weights.

    Args:
        first: The number of the first answer to each subject, from 0. With labels, that of people.
        second: The number of the second one.
        weights: 1 / the probability with which each was drawn. With several, there is no interval.
        sessions: The number of the session of each, from 0 without a gap.

    >>> answers = np.array([0, 1, 2, 0, 1, 2] * 10)
    >>> found = drawn_kappa(answers, answers, np.ones(60), np.arange(60))
    >>> found.value, [round(bound, 2) for bound in found.interval]
    (1.0, [0.91, 1.0])
    """
    if not len(first):
        return DrawnKappa(None, None)
    kinds = int(max(first.max(), second.max())) + 1
    first_shares = np.bincount(first, minlength=kinds) / len(first)
    second_shares = np.bincount(second, minlength=kinds) / len(second)
    by_chance = 1 - float(first_shares @ second_shares)
    if by_chance <= 0:
        return DrawnKappa(None, None)
    differ = (first != second).astype(np.float64)
    value = 1 - float(differ.mean()) / by_chance
    others = first != first_shares.argmax()
    if (
        len(first) < LEAST_ANSWERS
        or int(sessions.max()) + 1 < LEAST_SESSIONS
        or len(np.unique(sessions[others])) < LEAST_OTHERS
        or weights.min() < weights.max()
    ):
        return DrawnKappa(value, None)
    # By how much each subject moves the share of differences by chance.
    moves = 2 - second_shares[first] - first_shares[second]
    return DrawnKappa(value, _interval(differ, by_chance, _variance(moves, others, sessions), sessions))


def _variance(moves: Floats, others: Floats, sessions: Numbers) -> float:
    """Returns the variance of the share of differences by chance."""
    ones = np.ones(len(moves))
    alone = weighted_variance(moves, ones)
    variances = [alone / len(moves), clustered_variance(moves, ones, sessions)]
    if not shows_correlation(others.astype(np.float64), ones, sessions):
        # As in `effective_size`, a session counts as one subject where its correlation cannot be estimated.
        variances.append(alone / session_size(ones, sessions))
    return max(variances)


def _interval(differ: Floats, by_chance: float, variance: float, sessions: Numbers) -> Interval | None:
    from scipy.special import stdtrit

    spread = float(stdtrit(int(sessions.max()), 0.975)) ** 2 * variance
    known = by_chance**2 - spread
    if known <= 0:
        # The share of differences by chance may be 0, and kappa anything.
        return None
    rate = people_rate(differ, np.ones(len(differ)), sessions)

    def ratio_at(bound: float, sign: int) -> float:
        apart = rate.value**2 - (bound - rate.value) ** 2
        root = math.sqrt(max(0.0, (rate.value * by_chance) ** 2 - known * apart))
        return (rate.value * by_chance + sign * root) / known

    return max(-1.0, 1 - ratio_at(rate.high, 1)), min(1.0, 1 - ratio_at(rate.low, -1))
