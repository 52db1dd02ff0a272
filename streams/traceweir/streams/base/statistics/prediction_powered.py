"""Estimates a pass rate, or a mean, from some labels of people and the verdicts of a judge on all others.

This is PPI++ (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453) with known probabilities of inclusion and with
sessions as clusters. The estimate is the mean of the people's labels Y, plus lambda times what the judge's verdicts f say
about the others: lambda mean(f of the others) + mean(Y - lambda f).

Its normal interval does not hold for rates near 0 or 1, or with few errors of the judge: with 20 labels, a rate of 0.95,
and a judge that passes 0.97 of the good and 0.5 of the bad answers, it covers the rate in 0.65 of the cases. Two changes
mend this for rates. The spread of Y - lambda f is that of the labels and four imagined ones, one of each kind (the
judge right and wrong about a pass and about a failure), as Agresti and Coull do for a rate (1998, doi:10.2307/2685469).
And the interval is Wilson's, on the number of labels without a judge that would be as exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traceweir.streams.base.statistics.clustered_sample import (
    Numbers,
    effective_size,
    influences,
    kish_size,
    weighted_mean,
    weighted_variance,
)
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.people_only import Estimated
from traceweir.streams.base.statistics.rate_intervals import rate_interval

_IMAGINED_TRUTH = np.array([1.0, 1.0, 0.0, 0.0])
_IMAGINED_VERDICTS = np.array([1.0, 0.0, 1.0, 0.0])
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Labels of people and the judge's verdicts on the same subjects; the arrays have one place for each."""

    truth: Floats
    verdicts: Floats
    weights: Floats
    """1 / the probability with which the subject was judged and labelled."""
    sessions: Numbers
    """The number of the session; those of the labelled and the other subjects are counted together."""


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The judge's verdicts on subjects without a label."""

    verdicts: Floats
    weights: Floats
    sessions: Numbers


def tuned(truth: Floats, verdicts: Floats, weights: Floats, others: JudgedSample) -> float:
    """Returns the share lambda of the judge, from 0 to 1, that makes the variance least; 0 if all verdicts are equal.

    It is Cov(Y, f) / ((1 + n / N) Var(f)), with the variance of all verdicts.
    """
    labels = kish_size(weights)
    rest = kish_size(others.weights)
    if labels <= 1:
        return 0.0
    # Each part counts by its size, whatever the scale of its weights.
    whole = np.concatenate((weights * (labels / weights.sum()), others.weights * (rest / others.weights.sum())))
    spread = weighted_variance(np.concatenate((verdicts, others.verdicts)), whole)
    if spread <= _NO_VARIANCE:
        return 0.0
    products = (truth - weighted_mean(truth, weights)) * (verdicts - weighted_mean(verdicts, weights))
    together = weighted_mean(products, weights) * labels / (labels - 1)
    return min(1.0, max(0.0, together / ((1 + labels / rest) * spread)))


@dataclass(frozen=True, slots=True)
class Powered:
    """The estimate of PPI++, and what its exactness rests on."""

    value: float
    variance: float
    share: float
    """lambda: the share of the judge in the estimate, from 0 to 1."""
    size: float
    """How many independent labels of equal weight are as exact as the labels."""


def powered(labelled: LabelledSample, others: JudgedSample, *, imagined: int) -> Powered:
    """Returns the estimate with the best share of the judge.

    Args:
        labelled: Labels and verdicts from 0 to 1, at least two.
        others: Verdicts from 0 to 1, at least two.
        imagined: How often each of the four imagined labels is added, for lambda and the spread of the labels. 0 is the
            published method.
    """
    start = effective_size(labelled.truth, labelled.weights, numbered(labelled.sessions))
    share = tuned(*_with_imagined(labelled, imagined, start), others)
    return powered_at(share, labelled, others, imagined=imagined)


def powered_at(share: float, labelled: LabelledSample, others: JudgedSample, *, imagined: int) -> Powered:
    """Returns the estimate with this share of the judge, and its variance."""
    residuals = labelled.truth - share * labelled.verdicts
    value = share * weighted_mean(others.verdicts, others.weights) + weighted_mean(residuals, labelled.weights)
    size = effective_size(residuals, labelled.weights, numbered(labelled.sessions), least=labelled.truth)
    truth, verdicts, weights = _with_imagined(labelled, imagined, size)
    rest = effective_size(others.verdicts, others.weights, numbered(others.sessions))
    variance = weighted_variance(truth - share * verdicts, weights) / size
    variance += share**2 * weighted_variance(others.verdicts, others.weights) / rest
    return Powered(value, variance + _of_both(labelled, others, residuals, share), share, size)


def corrected_rate(labelled: LabelledSample, others: JudgedSample) -> Estimated:
    """Returns the rate of passes, or the mean of numbers on a scale from 0 to 1, with its 95 % interval.

    A session of numbers counts as one number. At least two labels and two others.

    >>> truth = np.array([1.0] * 70 + [0.0] * 30)
    >>> verdicts = np.array([1.0] * 66 + [0.0] * 4 + [1.0] * 12 + [0.0] * 18)
    >>> labelled = LabelledSample(truth, verdicts, np.ones(100), np.arange(100))
    >>> others = JudgedSample(np.array([1.0] * 800 + [0.0] * 200), np.ones(1000), np.arange(100, 1100))
    >>> found = corrected_rate(labelled, others)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3), round(found.size)
    (0.713, 0.632, 0.781, 138)
    """
    found = powered(labelled, others, imagined=1)
    return on_scale(found.value, found.variance, found.size)


def mean_of_people(values: Floats, weights: Floats, sessions: Numbers) -> Estimated:
    """Returns the mean of numbers on a scale from 0 to 1 that people gave, at least two, as `corrected_rate` without a judge."""
    size = effective_size(values, weights, sessions)
    labelled = LabelledSample(values, np.zeros_like(values), weights, sessions)
    truth, _, shares = _with_imagined(labelled, 1, size)
    return replace(
        on_scale(weighted_mean(values, weights), weighted_variance(truth, shares) / size, size), method="wilson"
    )


def on_scale(value: float, variance: float, size: float) -> Estimated:
    """Returns a mean on a scale from 0 to 1 with Wilson's interval on the number of passes and failures as exact as it."""
    held = min(1.0, max(0.0, value))
    # As if two passes and two failures had been drawn too: a rate of 0 or 1 leaves no number.
    drawn = (held * size + 2) / (size + 4)
    as_exact = drawn * (1 - drawn) / variance
    low, high = rate_interval(held * as_exact, as_exact)
    return Estimated(held, low, high, "ppi++", as_exact)


def _with_imagined(labelled: LabelledSample, times: int, size: float) -> tuple[Floats, Floats, Floats]:
    """Returns labels, verdicts and weights with imagined labels, each worth one of `size` labels."""
    weights = np.full(4 * times, labelled.weights.sum() / size)
    return (
        np.concatenate((labelled.truth, np.tile(_IMAGINED_TRUTH, times))),
        np.concatenate((labelled.verdicts, np.tile(_IMAGINED_VERDICTS, times))),
        np.concatenate((labelled.weights, weights)),
    )


def _of_both(labelled: LabelledSample, others: JudgedSample, residuals: Floats, share: float) -> float:
    """Returns what sessions with labelled and other subjects add to the variance, at least 0."""
    count = int(max(labelled.sessions.max(), others.sessions.max())) + 1
    first = influences(residuals, labelled.weights, labelled.sessions, count)
    second = influences(others.verdicts, others.weights, others.sessions, count)
    return max(0.0, 2 * share * float(first @ second))


def numbered(sessions: Numbers) -> Numbers:
    """Returns the numbers of the sessions of a part, from 0 without a gap."""
    return np.unique(sessions, return_inverse=True)[1]
