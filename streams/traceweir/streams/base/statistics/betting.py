"""Bets against the mean of values from 0 to 1: the evidence that it has dropped under a line, or risen over it.

A factor 1 + bet (line - value) has a mean of at most 1 as long as the mean of the values is not below the line, whatever
else their distribution is (Waudby-Smith and Ramdas 2023, doi:10.1093/jrsssb/qkad009). The bets are fixed, so evidence
does not depend on the order of values. A product of factors is evidence from one start; their sums over all starts are
the e-detector of Shiryaev-Roberts form (Shin, Ramdas and Rinaldo 2024, doi:10.51387/23-NEJSDS51): the mean number of
steps to the first of at least `A`, without a drop, is at least `A`.
"""

from __future__ import annotations

import math

import numpy as np

from traceweir.streams.base.statistics.intervals import Floats

RELATIVE_DROPS = 0.64 / 2.0 ** np.arange(8)
"""For which drops of a rate the bets are best, as shares of the line: 0.64 of it, half as much, and so on."""
BETS = len(RELATIVE_DROPS)
_MOST = 1e200
"""Evidence is not counted further than this, far above every threshold."""


def log_drop_growth(values: Floats, line: float | Floats) -> Floats:
    """Returns the logarithm of the factor of each bet by each value; the bets are the last axis.

    Args:
        values: Numbers from 0 to 1.
        line: What the mean is not below if nothing has changed. At 0 or less nothing can be found, and nothing is bet.

    >>> np.exp(log_drop_growth(np.array([1.0, 0.0]), 0.9))[:, 2].round(2).tolist()
    [0.84, 2.44]
    """
    values = np.asarray(values, float)[..., np.newaxis]
    line = np.clip(np.asarray(line, float), 0.0, 1 - 1e-9)[..., np.newaxis]
    found: Floats = np.log1p(RELATIVE_DROPS / (1 - line) * (line - values)) * (line > 0)
    return found


def log_rise_growth(values: Floats, line: float | Floats) -> Floats:
    """Returns the logarithms of the factors against "the mean is not above the line", as `log_drop_growth`.

    At a line of 0 or less nothing is bet: every value over 0 would be evidence without a bound.
    """
    line = np.asarray(line, float)
    found: Floats = log_drop_growth(1 - np.asarray(values, float), 1 - line) * (line > 0)[..., np.newaxis]
    return found


def evidence_after(evidence: Floats, log_growth: Floats) -> Floats:
    """Returns the evidence of each bet after a step with values, in Shiryaev-Roberts form.

    The step begins another start. A step without values is left out: it neither begins a start nor changes anything, so
    that silence is no evidence, and the mean number of steps to a false alarm is only larger.

    Args:
        evidence: That after the step before, 0 at first; the bets are the last axis.
        log_growth: The sum of the logarithms over the values of the step.
    """
    return np.minimum(np.exp(np.minimum(log_growth, math.log(_MOST))) * (evidence + 1), _MOST)


def averaged(evidence: Floats) -> Floats:
    """Returns the evidence of all bets together: their average, which has the promise of each of them."""
    found: Floats = evidence.mean(axis=-1)
    return found


def stream_weight(number: int) -> float:
    """Returns the share of a stream in the false alarms of all streams that may ever come; the shares have the sum 1.

    Args:
        number: From 1, by first appearance.

    >>> [round(stream_weight(number), 6) for number in (1, 2, 10, 1000)]
    [0.36907, 0.13093, 0.010122, 1.4e-05]
    """
    # log(2) (1 / log(number + 1) - 1 / log(number + 2)), without the loss of digits.
    first = math.log(number + 1)
    return math.log(2) * math.log1p(1 / (number + 1)) / (first * (first + math.log1p(1 / (number + 1))))


def alarm_threshold(number: int, steps: float, line_error: float) -> float:
    """Returns the evidence at which a stream raises an alarm.

    With all streams at thresholds of this form, the mean number of steps to the first false alarm of any is at least
    `steps`: the weighted evidence of all streams together is at least the threshold of a whole when one reaches its own.

    Args:
        number: Number of the stream, from 1.
        steps: How many steps are promised.
        line_error: Probability that the line of any of the streams is too high, in which case nothing is promised.
    """
    return steps / (1 - line_error) / stream_weight(number)


def findable_mean(line: float, values: float, threshold: float) -> float | None:
    """Returns the highest mean under the line that so many values show, about; None if not even a mean of 0.

    The evidence of a bet grows by the relative entropy of the two rates a value; the average over the bets costs their
    number.

    >>> round(findable_mean(0.88, 2400, 86_400), 3), findable_mean(0.88, 1, 86_400)
    (0.844, None)
    """
    if line <= 0 or values <= 0:
        return None
    wanted = math.log(threshold * BETS) / values
    if _entropy(0.0, line) < wanted:
        return None
    low = 0.0
    high = line
    for _ in range(50):
        middle = (low + high) / 2
        if _entropy(middle, line) >= wanted:
            low = middle
        else:
            high = middle
    return low


def values_needed(mean: float, line: float, threshold: float) -> float:
    """Returns how many values show this mean under the line, about, as `findable_mean`; infinite if it is not under it.

    >>> round(values_needed(0.844, 0.88, 86_400), -2), values_needed(0.9, 0.88, 86_400)
    (2400.0, inf)
    """
    return math.log(threshold * BETS) / _entropy(max(mean, 0.0), line) if mean < line else math.inf


def _entropy(mean: float, line: float) -> float:
    parts = ((mean, line), (1 - mean, 1 - line))
    return sum(share * math.log(share / other) for share, other in parts if share > 0)
