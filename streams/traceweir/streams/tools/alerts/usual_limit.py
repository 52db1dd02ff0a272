"""Learns a limit beyond which few sessions of a stream are, from a sample of its first sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest

import msgspec
import numpy as np

from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.watched_stream import DAY, LEAST_BASELINE
from traceweir.streams.tools.alerts.seen_sessions import session_digests

USUALLY_BEYOND = 0.1
"""Share of the sessions that are beyond a learnt limit, at most."""
SAMPLE = 500
"""Sessions at most that are kept to learn a limit: the share beyond it is 0.1 +/- 0.03 then."""


class UsualLimit(msgspec.Struct, array_like=True):
    """The limit of a stream, or what is known to learn it.

    It is learnt from the first half of the days of the baseline, and how many sessions are beyond it from the second half:
    by the same sessions the share would seem smaller than it is.

    The sample has the sessions with the smallest digests, so that it does not depend on their order.
    """

    limit: float | None = None
    """None while it is learnt."""
    first: int | None = None
    """The minute since 1970 of the first session."""
    sessions: int = 0
    """How many sessions it was learnt from so far."""
    sample: list[tuple[int, float]] = []
    """Digests and values."""

    def take(self, minute: int, sessions: Sequence[str], values: Floats, days: float, *, is_upper: bool) -> None:
        """Learns from the sessions of a minute, until the limit is known.

        Args:
            minute: Minutes since 1970.
            sessions: The sessions.
            values: The value of each.
            days: From how many days the limit is learnt.
            is_upper: Whether a value above the limit is beyond it; else one below it is.
        """
        if self.limit is not None:
            return
        if self.first is None:
            self.first = minute
        if minute - self.first >= days * DAY and self.sessions >= LEAST_BASELINE:
            self.limit = usual_limit([value for _, value in self.sample], is_upper=is_upper)
            self.sample = []
            return
        self.sessions += len(sessions)
        digests = session_digests(b"", minute // DAY, sessions).tolist()
        self.sample = nsmallest(SAMPLE, [*self.sample, *zip(digests, values.tolist(), strict=True)])


def usual_limit(values: Sequence[float], *, is_upper: bool) -> float:
    """Returns the value beyond which at most `USUALLY_BEYOND` of these are.

    Args:
        values: Values of sessions, one or more.
        is_upper: Whether a value above the limit is beyond it; else one below it is.

    >>> [usual_limit(range(100), is_upper=each) for each in (True, False)]
    [89, 10]
    """
    ordered = sorted(values, reverse=is_upper)
    return ordered[math.floor(USUALLY_BEYOND * len(ordered))]


def beyond(values: Floats, limit: float, *, is_upper: bool) -> Floats:
    """Returns 1 for each value that is beyond the limit, and 0 for the others.

    >>> beyond(np.array([1.0, 2.0, 3.0]), 2.0, is_upper=True).tolist()
    [0.0, 0.0, 1.0]
    """
    found: Floats = (np.greater(values, limit) if is_upper else np.less(values, limit)).astype(float)
    return found
