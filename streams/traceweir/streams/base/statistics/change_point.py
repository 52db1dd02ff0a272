"""Says since when a mean has been below its line, and what it has been since: intervals that hold after the search.

A step is no candidate for the change if values before it speak against "until then the mean was not below the baseline's
bound", looking back from it, or if values from it on speak against "since then the mean is not above the line". Each is
tested by an average of bets, which reaches a threshold with a probability of its reciprocal at most at any of all times,
so that it does not matter when the alarm came (Ville 1939; Saha and Ramdas 2025, arXiv:2502.06096, invert such tests).
Values of different sessions are independent here, which the look back needs.

Steps are kept in at most `MOST_BLOCKS` blocks. Of two neighbours, those are made one that are the smallest beside what
came after them, so that a block is the longer the longer ago it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.beta_binomial import mean_intervals
from traceweir.streams.base.statistics.betting import BETS, log_drop_growth, log_rise_growth
from traceweir.streams.base.statistics.intervals import Floats

MOST_BLOCKS = 64
_KEPT_BLOCKS = 48
ONSET_ERROR = 0.02
"""How often the interval misses the change, apart from lines that are too high."""
MEAN_ERROR = 0.015
"""How often the mean after the change is outside its interval, at any of all times."""
_LARGEST = 700
_FROM, _UNTIL, _NUMBER, _TOTAL, _EXPECTED = range(5)
_BACK = slice(5, 5 + BETS)
_ON = slice(5 + BETS, 5 + 2 * BETS)
COLUMNS = 5 + 2 * BETS


class Changed(NamedTuple):
    """When a mean has dropped, and what it has been since."""

    at: int
    """The step that the values speak for most."""
    earliest: int
    """The change is not before this step, with a confidence of 95 %."""
    latest: int
    """The change is not after this step; one that falls between two steps with values is counted to the later one."""
    values: int
    """How many values there are from `at` on."""
    mean: float
    """Their mean."""
    low: float
    """What the mean since the change, whenever it was, is not below."""
    high: float
    expected: float
    """What the mean of these values would be without a change."""


def no_blocks() -> Floats:
    """Returns the history of a stream at its beginning."""
    return np.empty((0, COLUMNS))


def with_step(blocks: Floats, step: int, values: Floats, expected: float, lowest: float, line: float) -> Floats:
    """Returns the history with another step.

    Args:
        blocks: The history.
        step: The number of the step, larger than all before.
        values: The values of the step, one or more from 0 to 1.
        expected: The mean of the baseline at this hour.
        lowest: The bound of the baseline at this hour.
        line: What the mean is compared with: the bound less the tolerated drop.
    """
    row = np.empty(COLUMNS)
    row[:5] = step, step + 1, len(values), values.sum(), expected * len(values)
    row[_BACK] = log_drop_growth(values, lowest).sum(axis=0)
    row[_ON] = log_rise_growth(values, line).sum(axis=0)
    blocks = np.vstack((blocks, row))
    if len(blocks) < MOST_BLOCKS:
        return blocks
    # A step that was excluded stays so, whatever comes.
    blocks = blocks[int(np.argmin(_rejected_on(blocks))) :]
    while len(blocks) > _KEPT_BLOCKS:
        blocks = _merged(blocks)
    return blocks


def changed(blocks: Floats) -> Changed | None:
    """Returns the change that the history shows; None if it has no values."""
    if not len(blocks):
        return None
    kept = ~(_rejected_on(blocks) | _rejected_back(blocks))
    back = np.cumsum(blocks[::-1, _BACK], axis=0)[::-1]
    place = int(np.argmax(np.exp(np.minimum(back, _LARGEST)).mean(axis=1)))
    places = np.flatnonzero(kept) if kept.any() else np.array([place])
    # The change can be inside of a block of several steps, so that only the blocks behind it are after the change.
    later = places + _several(blocks)[places]
    sums = np.vstack((np.cumsum(blocks[::-1, _NUMBER : _EXPECTED + 1], axis=0)[::-1], np.zeros(3)))
    low, high = mean_intervals(sums[later, 1], sums[later, 0], MEAN_ERROR)
    place = int(np.clip(place, places[0], places[-1]))
    number, total, expected = sums[place]
    return Changed(
        int(blocks[place, _FROM]),
        int(blocks[places[0], _FROM]),
        int(blocks[places[-1], _UNTIL]) - 1,
        int(number),
        float(total / number),
        float(low.min()),
        float(high.max()),
        float(expected / number),
    )


def _rejected_on(blocks: Floats) -> NDArray[np.bool_]:
    """Returns which blocks the change is not in, because the mean behind them was above the line for some time."""
    evidence = np.triu(_evidence_between(blocks[:, _ON])).max(axis=1)
    reached = np.append(evidence >= 2 / ONSET_ERROR, False)
    # The change can be inside of a block of several steps, so that only what is behind it is after the change.
    return reached[np.arange(len(blocks)) + _several(blocks)]


def _rejected_back(blocks: Floats) -> NDArray[np.bool_]:
    """Returns which blocks the change is not in, because the mean was below the baseline for some time before them."""
    evidence = np.triu(_evidence_between(blocks[:, _BACK])).max(axis=0)
    return np.append(False, evidence[:-1] >= 2 / ONSET_ERROR)


def _evidence_between(log_growth: Floats) -> Floats:
    """Returns the evidence from the beginning of the block of each row to the end of that of each column."""
    ends = np.cumsum(log_growth, axis=0)
    begins = ends - log_growth
    evidence: Floats = np.exp(np.minimum(ends[np.newaxis] - begins[:, np.newaxis], _LARGEST)).mean(axis=2)
    return evidence


def _several(blocks: Floats) -> NDArray[np.bool_]:
    return blocks[:, _UNTIL] - blocks[:, _FROM] > 1


def _merged(blocks: Floats) -> Floats:
    numbers = blocks[:, _NUMBER]
    after = numbers.sum() - np.cumsum(numbers)[1:]
    place = int(np.argmin((numbers[:-1] + numbers[1:]) / (after + 1)))
    both = blocks[place] + blocks[place + 1]
    both[_FROM] = blocks[place, _FROM]
    both[_UNTIL] = blocks[place + 1, _UNTIL]
    return np.vstack((blocks[:place], both, blocks[place + 2 :]))
