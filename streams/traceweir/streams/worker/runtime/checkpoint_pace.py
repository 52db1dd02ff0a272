"""Decides when the next checkpoint of a worker is due: soon if somebody waits for it, and at a bounded rate."""

from __future__ import annotations

BURST = 3
"""Number of checkpoints that can come before their interval is over, after a time with fewer.

Without a hand-over, a session needs three checkpoints on its way: its close, its scores and its decision.
"""
PATIENCE = 8
"""Factor of the interval while the partition is far behind: larger batches."""
QUIET_FACTOR, QUIET_S = 50, 1.0
"""Factor of the interval while nobody waits for outputs, and the limit of that wait, in seconds."""
MIN_GAP_S = 0.01
"""Minimum time between two checkpoints, which collects what belongs together; a shorter interval shortens it."""


class CheckpointPace:
    """Spaces the checkpoints of a worker: one per interval on average, with a burst after a pause.

    This is the generic cell rate algorithm (ITU-T I.371): `_due` is the time at which the next checkpoint would come at
    the average rate.

    >>> pace = CheckpointPace(interval_s=1.0)
    >>> pace.begin(0.0)
    >>> pace.wait_s(0.0, 0.0, urgent=True, behind=False), pace.wait_s(0.0, 0.0, urgent=False, behind=False)
    (0.01, 8.0)
    >>> pace = CheckpointPace(interval_s=0.02)
    >>> pace.begin(0.0)
    >>> pace.wait_s(0.0, 0.0, urgent=False, behind=False), pace.wait_s(0.0, 0.0, urgent=False, behind=True)
    (1.0, 0.16)
    """

    def __init__(self, interval_s: float) -> None:
        """Stores the average time between two checkpoints, in seconds."""
        self._interval_s = interval_s
        self._behind_s = PATIENCE * interval_s
        self._quiet_s = max(self._behind_s, min(QUIET_FACTOR * interval_s, QUIET_S))
        self._last = self._due = float("-inf")

    def wait_s(self, now: float, last: float, *, urgent: bool, behind: bool) -> float:
        """Returns the time until a partition's next checkpoint can begin, in seconds; 0 or less: at once.

        Args:
            now: Seconds of a monotonic clock.
            last: When the last checkpoint with this partition began.
            urgent: Whether the partition has outputs, for which another stage or a reader waits.
            behind: Whether the partition is far behind: then throughput counts, and not the time of one session.
        """
        if behind:
            return last + self._behind_s - now
        if not urgent:
            return last + self._quiet_s - now
        return max(self._last + min(MIN_GAP_S, self._interval_s), self._due - BURST * self._interval_s) - now

    def early_s(self, *, behind: bool) -> float:
        """Returns how long before its time a partition comes along with the checkpoint of another, in seconds.

        Partitions that are far behind come into step, whatever their differences.
        """
        return self._behind_s / 2 if behind else self._interval_s

    def begin(self, now: float) -> None:
        """Notes that a checkpoint begins."""
        self._last = now
        self._due = max(now, self._due) + self._interval_s
