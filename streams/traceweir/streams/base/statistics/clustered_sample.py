"""Computes weighted means, and how many independent values of equal weight a sample of sessions is worth.

A value that was drawn with the probability p has the weight 1 / p. Results of one session resemble each other, so that
twenty results of one session can be worth as little as one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.intervals import Floats

Numbers = NDArray[np.intp]
"""The number of the session of each value, from 0, without a gap."""

LEAST_UNCOMMON = 10
"""Least number of sessions with another value than the most common one, from which a correlation is estimated."""
MOST_KINDS = 4
"""Most different values for that: labels minus a share of verdicts have four. Of numbers, few sessions can be far from
the others, and a sample without them shows no correlation."""
_Z_95 = 1.959963984540054


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Returns the mean with weights that are divided by their sum (Hajek 1971)."""
    return float(values @ weights / weights.sum())


def weighted_variance(values: Floats, weights: Floats) -> float:
    """Returns the variance of the values; with equal weights, the sample variance. 0 for one value."""
    freedom = kish_size(weights) - 1
    if freedom <= 0:
        return 0.0
    deviations = values - weighted_mean(values, weights)
    return float((deviations**2) @ weights / weights.sum()) * (freedom + 1) / freedom


def kish_size(weights: Floats) -> float:
    """Returns how many values of equal weight are as exact: (sum w)^2 / sum w^2 (Kish 1965, Survey Sampling, 11.7).

    >>> kish_size(np.array([1.0, 1.0, 1.0, 1.0])), kish_size(np.array([4.0, 1.0, 1.0]))
    (4.0, 2.0)
    """
    return float(weights.sum() ** 2 / (weights @ weights))


def session_size(weights: Floats, sessions: Numbers) -> float:
    """Returns how many values are as exact if all of a session are equal: the size of Kish of the sessions' weights.

    >>> session_size(np.ones(4), np.array([0, 0, 1, 1]))
    2.0
    """
    return kish_size(np.bincount(sessions, weights).astype(np.float64))


def influences(values: Floats, weights: Floats, sessions: Numbers, count: int) -> Floats:
    """Returns by how much each session moves the mean: the sum of its weighted deviations, divided by all weights."""
    deviations = weights * (values - weighted_mean(values, weights))
    moved: Floats = np.bincount(sessions, deviations, count) / weights.sum()
    return moved


def clustered_variance(values: Floats, weights: Floats, sessions: Numbers) -> float:
    """Returns the variance of the weighted mean, by linearisation with sums by session, G / (G - 1) sum u_g^2.

    With one value a session and equal weights, it is the sample variance divided by the number of values.
    Source: Binder 1983 (doi:10.2307/1402588). At least two sessions.
    """
    count = int(sessions.max()) + 1
    moved = influences(values, weights, sessions, count)
    return float(moved @ moved) * count / (count - 1)


def effective_size(values: Floats, weights: Floats, sessions: Numbers, *, least: Floats | None = None) -> float:
    """Returns how many independent values of equal weight are as exact as these, for their mean.

    It is the size of Kish, divided by the design effect of the sessions and corrected for their number as Korn and
    Graubard do (1998, Survey Methodology 24(2), 193-201). It is never less than `session_size`. Where `shows_correlation`
    is false, a session counts as one value.

    Args:
        values: At least one.
        weights: 1 / the probability with which each was drawn.
        sessions: The number of the session of each, from 0 without a gap.
        least: Further values, one for each of `values`, that must show a correlation too.

    >>> effective_size(np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4), np.array([0, 0, 1, 1]))
    2.0
    """
    kish = kish_size(weights)
    smallest = min(kish, session_size(weights, sessions))
    count = int(sessions.max()) + 1
    if count == len(values) or count < 2:
        return smallest
    if not all(shows_correlation(each, weights, sessions) for each in (values, least) if each is not None):
        return smallest
    from scipy.special import stdtrit

    alone = weighted_variance(values, weights)
    correction = (_Z_95 / float(stdtrit(count - 1, 0.975))) ** 2
    size = alone / clustered_variance(values, weights, sessions) * correction
    return max(smallest, min(kish, size))


def shows_correlation(values: Floats, weights: Floats, sessions: Numbers) -> bool:
    """Tells whether a sample has enough sessions with uncommon values for their correlation to be estimated.

    It needs `LEAST_UNCOMMON` sessions that have another value than the most common one, and at most `MOST_KINDS` values.
    """
    found, places = np.unique(values, return_inverse=True)
    uncommon = places != np.bincount(places, weights).argmax()
    return len(found) <= MOST_KINDS and len(np.unique(sessions[uncommon])) >= LEAST_UNCOMMON
