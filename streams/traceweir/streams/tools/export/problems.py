"""Logs what fails in an exporter, and how often: a target that is away for a day does not fill the log."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from traceweir.schemas.text import printable
from traceweir.streams.tools.export.source import FoundRecord

log = logging.getLogger(__name__)

LINE_EVERY_S = 60.0
"""Seconds between two warnings about a target that takes nothing."""
MOST_LOSSES_LOGGED = 20
"""Lost scores within `LINE_EVERY_S` that have a line each; further ones are counted."""


class ProblemLog:
    """Logs troubles and losses.

    Args:
        topic: The topic from which records are read.
        what: What a record is, such as `score`.
        clock: Seconds of a monotonic clock.
    """

    def __init__(self, topic: str, clock: Callable[[], float], what: str = "score") -> None:
        self._what = what
        self._topic = topic
        self._clock = clock
        self._next_trouble_s = self._next_losses_s = self._next_rejection_s = self._next_full_s = -math.inf
        self._unlogged_troubles = self._losses = self._unlogged_rejections = 0

    def trouble(self, reason: str) -> None:
        """Warns that a request failed that is repeated, at most once a minute."""
        if self._clock() < self._next_trouble_s:
            self._unlogged_troubles += 1
            return
        self._next_trouble_s = self._clock() + LINE_EVERY_S
        log.warning(
            "scores are waiting: %s; failed attempts since the last such line: %d", reason, self._unlogged_troubles + 1
        )
        self._unlogged_troubles = 0

    def lost(self, found: FoundRecord, reason: str) -> None:
        """Warns that a score is a dead letter, with its place, under which it is still on the topic of the scores."""
        if self._clock() >= self._next_losses_s:
            if self._losses > MOST_LOSSES_LOGGED:
                log.warning("%d further scores are dead letters", self._losses - MOST_LOSSES_LOGGED)
            self._losses = 0
            self._next_losses_s = self._clock() + LINE_EVERY_S
        self._losses += 1
        if self._losses <= MOST_LOSSES_LOGGED:
            log.warning(
                "the %s %s at %s[%d] offset %d is a dead letter: %s",
                self._what, printable(found.name, 200), self._topic, found.partition, found.offset, reason,
            )  # fmt: skip

    def no_score(self, partition: int, offset: int) -> None:
        """Warns that a record of the topic of what waits is left out."""
        log.warning(
            "what waits under %s[%d] offset %d is no score that this version can read, and is not sent: another program has "
            "written it to the topic of what waits",
            self._topic,
            partition,
            offset,
        )

    def full(self, waiting: int) -> None:
        """Warns that so many scores wait that no further ones are read, at most once a minute."""
        if self._clock() >= self._next_full_s:
            self._next_full_s = self._clock() + LINE_EVERY_S
            log.warning("%d scores wait for the target, so that no further ones are read until it takes some", waiting)

    def rejected(self, number: int, reason: str) -> None:
        """Warns that a target has dropped scores of a request that it accepted, at most once a minute."""
        self._unlogged_rejections += number
        if self._clock() >= self._next_rejection_s:
            log.warning(
                "the target has dropped %d scores, as it says: %s",
                self._unlogged_rejections,
                reason or "it gives no reason",
            )
            self._unlogged_rejections = 0
            self._next_rejection_s = self._clock() + LINE_EVERY_S
