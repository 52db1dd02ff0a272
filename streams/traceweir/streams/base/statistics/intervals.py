"""Estimates a difference of means with a 95 % interval that allows for several results of one session.

Results of one session resemble each other, so an interval that takes them as independent is too narrow. The variance is
the cluster-robust one in its form CR2, and the quantile is that of Student's t with degrees of freedom by Satterthwaite
(Bell and McCaffrey 2002, Survey Methodology 28(2), 169-181; formulas in Pustejovsky and Tipton 2018,
doi:10.1080/07350015.2016.1247004). In contrast to the usual CR1, this also covers with few or unequal sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

CONFIDENCE = 0.95
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Estimate(NamedTuple):
    """A difference of means, and what the data says about its accuracy."""

    base_mean: float
    challenger_mean: float
    difference: float
    """Challenger minus base."""
    sessions: int
    """Number of sessions on which the estimate rests."""
    low: float | None
    """Lower end of the interval; None if a side has one session only."""
    high: float | None
    p_value: float | None
    """Probability of such a difference, or of a larger one, without any effect. None without an interval, and if all
    sessions differ by exactly the same amount: then the data has no spread from which an error could be estimated."""


def paired_difference(base: Floats, challenger: Floats, sessions: Ids) -> Estimate:
    """Returns the mean of the differences of pairs.

    With n pairs, n_g of them in session g, h_g = n_g / n, and the sum e_g of the deviations of the session's differences
    from their mean, the variance of the mean is the sum of e_g^2 / (1 - h_g), divided by n^2.

    Args:
        base: The value of each pair in the base, at least one.
        challenger: The value of each pair in the challenger.
        sessions: The session of each pair.

    >>> values = np.array([0.5, 0.5, 0.5, 0.5])
    >>> found = paired_difference(values, values - [0.1, 0.3, 0.1, 0.3], np.array([1, 2, 3, 4], np.uint64))
    >>> round(found.difference, 3), round(found.low, 3), round(found.high, 3)
    (-0.2, -0.384, -0.016)
    """
    numbers, count = _numbered(sessions)
    means = float(base.mean()), float(challenger.mean())
    size = float(max(np.abs(base).max(), np.abs(challenger).max()))
    return _estimate(*means, [_clustered(challenger - base, numbers, count)], size)


def unpaired_difference(base: Floats, base_sessions: Ids, challenger: Floats, challenger_sessions: Ids) -> Estimate:
    """Returns the difference of the means of two sides without pairs.

    This is the regression of the value on the side, clustered by session. A session can be on both sides: its
    deviations e_g / (n sqrt(1 - h_g)), with those of the base negative, are added before they are squared.

    Args:
        base: The values of the base, at least one.
        base_sessions: The session of each of these values.
        challenger: The values of the challenger, at least one.
        challenger_sessions: The session of each of these values.

    >>> ones, twos = np.array([1, 2, 3], np.uint64), np.array([4, 5, 6], np.uint64)
    >>> found = unpaired_difference(np.array([1.0, 2.0, 3.0]), ones, np.array([2.0, 3.0, 4.0]), twos)
    >>> round(found.difference, 3), round(found.low, 3), round(found.high, 3)
    (1.0, -1.267, 3.267)
    """
    numbers, count = _numbered(np.concatenate((base_sessions, challenger_sessions)))
    before = _clustered(-base, numbers[: len(base)], count)
    after = _clustered(challenger, numbers[len(base) :], count)
    size = float(max(np.abs(base).max(), np.abs(challenger).max()))
    return _estimate(float(base.mean()), float(challenger.mean()), [before, after], size)


class _Clustered(NamedTuple):
    """What a sample contributes to the variance of the estimate; each array has a place for every session."""

    mean: float
    number: int
    shares: Floats
    """h_g: the share of each session in the sample."""
    deviations: Floats
    """e_g / (n sqrt(1 - h_g))."""
    weights: Floats
    """h_g / sqrt(1 - h_g)."""


def _numbered(sessions: Ids) -> tuple[NDArray[np.intp], int]:
    """Returns a number from 0 for the session of each value, and how many sessions there are."""
    known, numbers = np.unique(sessions, return_inverse=True)
    return numbers, len(known)


def _clustered(sample: Floats, numbers: NDArray[np.intp], count: int) -> _Clustered:
    mean = float(sample.mean())
    number = len(sample)
    shares = np.bincount(numbers, minlength=count) / number
    sums = np.bincount(numbers, sample - mean, count)
    with np.errstate(
        divide="ignore",
        invalid="ignore",
        # A sample of one session has no estimate, as `_estimate` checks.
    ):
        root = np.sqrt(1 - shares)
        return _Clustered(mean, number, shares, sums / (number * root), shares / root)


def _estimate(base_mean: float, challenger_mean: float, samples: Sequence[_Clustered], size: float) -> Estimate:
    from scipy.stats import t as student

    difference = sum(sample.mean for sample in samples)
    sessions = int(np.count_nonzero(_total(sample.shares for sample in samples)))
    found = Estimate(base_mean, challenger_mean, difference, sessions, None, None, None)
    if any(sample.shares.max() == 1 for sample in samples):
        return found
    error = math.sqrt(float((_total(sample.deviations for sample in samples) ** 2).sum()))
    # The sessions differ by rounding only.
    if error <= _ROUNDING * size:
        p_value = 1.0 if abs(difference) <= _ROUNDING * size else None
        return found._replace(low=difference, high=difference, p_value=p_value)
    freedom = _degrees_of_freedom(samples)
    half = error * float(student.ppf((1 + CONFIDENCE) / 2, freedom))
    p_value = 2 * float(student.sf(abs(difference) / error, freedom))
    return found._replace(low=difference - half, high=difference + half, p_value=p_value)


def _degrees_of_freedom(samples: Sequence[_Clustered]) -> float:
    """Returns the degrees of freedom by Satterthwaite, as for values that are independent with equal variance.

    The contributions of the sessions then have the covariance matrix B with h_g / n on its diagonal and
    -h_g h_k / (n sqrt((1 - h_g) (1 - h_k))) beside it, summed over the samples; the result is trace(B)^2 / trace(B^2).
    """
    diagonal = _total(sample.shares / sample.number for sample in samples)
    beside = 0.0
    for one in samples:
        for other in samples:
            products = one.weights * other.weights
            beside += (products.sum() ** 2 - (products**2).sum()) / (one.number * other.number)
    return float(diagonal.sum() ** 2 / ((diagonal**2).sum() + beside))


def _total(arrays: Iterable[Floats]) -> Floats:
    total: Floats = np.sum(list(arrays), axis=0)
    return total
