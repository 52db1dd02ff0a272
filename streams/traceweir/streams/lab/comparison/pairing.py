"""Pairs the scores of two sides: the same session, segment, revision, level, subject and metric."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.lab.comparison.rows import Rows

Indexes = NDArray[np.intp]


class Pairs(NamedTuple):
    """The places of the paired rows in both sides: row `base[i]` belongs to row `challenger[i]`."""

    base: Indexes
    challenger: Indexes
    other_revision: Indexes
    """The places in the base of results that the challenger has in another revision: other data was judged."""


def pair(base: Rows, challenger: Rows) -> Pairs:
    """Returns the pairs of two sides, each of which has a result at most once."""
    high = np.concatenate((base["high"], challenger["high"]))
    low = np.concatenate((base["low"], challenger["low"]))
    # Stable: of two equal results that of the base comes first.
    order = np.lexsort((low, high))
    high = high[order]
    low = low[order]
    first = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
    in_base = order[first]
    in_challenger = order[first + 1] - len(base)
    same = base["revision"][in_base] == challenger["revision"][in_challenger]
    return Pairs(in_base[same], in_challenger[same], in_base[~same])
