"""Computes how many labels a wanted exactness needs, for a judge with known rates of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.anytime_bound import is_proven, most_errors
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.prediction_powered import on_scale
from traceweir.streams.base.statistics.rate_intervals import rate_interval

BAR = 0.8
"""What the one-sided 95 % lower bounds of TPR and TNR must reach, for a judge to be certified, unless one says another."""
POWER = 0.8
"""The probability with which a plan for that must succeed."""
MOST_LABELS = 1_000_000
_MOST_ERRORS = 5_000
_RARE = 1e-9
"""Probability of numbers of good answers that a plan leaves out."""
_MANY = 1e12
"""Stands for so many judged subjects that their sampling adds nothing."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """The rates on which a plan rests, each above 0 and below 1."""

    rate: float
    """The share of answers that are good."""
    passing: float
    """TPR: the share of the good answers that the judge passes."""
    failing: float
    """TNR: the share of the bad answers that the judge fails."""


def labels_for_people(rate: float, half_width: float) -> int | None:
    """Returns how many labels of people alone give an interval of this half width; None if more than `MOST_LABELS`.

    >>> labels_for_people(0.9, 0.05)
    141
    """
    return _least(lambda number: _half(*rate_interval(rate * number, number)) <= half_width)


def labels_for_rate(assumed: Assumed, half_width: float) -> int | None:
    """Returns how many labels give an interval of PPI++ of this half width; None if more than `MOST_LABELS`.

    Many more subjects are judged than labelled.

    >>> labels_for_rate(Assumed(rate=0.9, passing=0.9, failing=0.9), 0.05)
    94
    """
    return _least(lambda number: expected_half_width(assumed, number) <= half_width)


def labels_for_difference(assumed: Assumed, half_width: float) -> int | None:
    """Returns how many labels of each of two versions give their difference an interval of this half width.

    The two are independent and have about the same rates. None if more than `MOST_LABELS`.
    """
    return labels_for_rate(assumed, half_width / 2**0.5)


def expected_half_width(assumed: Assumed, labels: int, judged: float = _MANY) -> float:
    """Returns the half width of `corrected_rate` if labels and verdicts have the assumed frequencies.

    Args:
        assumed: The rates.
        labels: Number of labels, at least 1, each of a session of its own.
        judged: Number of judged subjects without a label.
    """
    number = labels + 4
    both = (assumed.rate * assumed.passing * labels + 1) / number
    truth = (assumed.rate * labels + 2) / number
    passed = assumed.rate * assumed.passing + (1 - assumed.rate) * (1 - assumed.failing)
    verdict = (passed * labels + 2) / number
    correction = number / (number - 1)
    together = (both - truth * verdict) * correction
    pooled = (verdict * number + passed * judged) / (number + judged)
    share = min(1.0, max(0.0, together / ((1 + number / judged) * pooled * (1 - pooled))))
    spread = truth * (1 - truth) * correction - 2 * share * together + share**2 * verdict * (1 - verdict) * correction
    variance = spread / labels + share**2 * passed * (1 - passed) / judged
    found = on_scale(assumed.rate, variance, labels)
    return _half(found.low, found.high)


def labels_for_bar(rate: float, bar: float = BAR, power: float = POWER) -> int | None:
    """Returns how many labels of one kind, good or bad, prove that a judge's rate is at the bar or above.

    After so many labels the proof has succeeded with the given probability. None if the rate is not above the bar, or so
    near to it that no plan is found.

    >>> labels_for_bar(0.95), labels_for_bar(0.9), labels_for_bar(0.8)
    (58, 171, None)
    """
    if rate <= bar:
        return None
    from scipy.stats import binom

    number = 1
    for errors in range(_MOST_ERRORS):
        while not is_proven(number - errors, number, bar):
            number += 1
        # The least number with so many errors also has the best chance to have no more.
        if binom.cdf(errors, number, 1 - rate) >= power:
            return number
    return None


def labels_for_certificate(assumed: Assumed, bar: float = BAR, power: float = POWER) -> int | None:
    """Returns how many labels of subjects that are drawn at random prove that TPR and TNR are at the bar or above.

    Both proofs succeed with the given probability together, also where the draw has fewer good or bad answers than expected. None if
    TPR or TNR is not above the bar, or if more than `MOST_LABELS` are needed.

    >>> labels_for_certificate(Assumed(rate=0.8, passing=0.8, failing=0.95))
    """
    if min(assumed.passing, assumed.failing) <= bar:
        return None
    return _least(lambda number: _chance_of_certificate(assumed, number, bar) >= power)


def _chance_of_certificate(assumed: Assumed, labels: int, bar: float) -> float:
    """Returns the probability that both proofs succeed, over the number of good answers among the labels."""
    from scipy.stats import binom

    first, last = binom.ppf((_RARE, 1 - _RARE), labels, assumed.rate)
    good = np.arange(int(first), int(last) + 1)

    def reached(number: NDArray[np.intp], rate: float) -> Floats:
        return np.asarray(binom.cdf(most_errors(number, bar), number, 1 - rate), float)

    together = reached(good, assumed.passing) * reached(labels - good, assumed.failing)
    return float(binom.pmf(good, labels, assumed.rate) @ together)


def _half(low: float, high: float) -> float:
    return (high - low) / 2


def _least(is_enough: Callable[[int], bool]) -> int | None:
    """Returns the least number from 1 from which it is enough, for what does not get worse with more."""
    if not is_enough(MOST_LABELS):
        return None
    low = 0
    high = MOST_LABELS
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high
