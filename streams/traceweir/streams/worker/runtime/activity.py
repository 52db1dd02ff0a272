"""Logs what a worker does: once a minute what it has committed since the last line, and that it waits for records.

A line consists of words `key=value`: the counters of each stage that have changed, then the unread records of each
input. Only committed work counts, so the lines of all workers together count each record once.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from mode import Service

from traceweir.streams.base.service_tasks import service_task
from traceweir.streams.base.stages.base import Output

log = logging.getLogger(__name__)

LINE_EVERY_S = 60.0
LOOK_EVERY_S = 1.0


class Activity(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Counts what a worker has committed, and logs the counts."""

    def __init__(
        self,
        inputs: Sequence[str],
        ready_partitions: Callable[[], Sequence[int] | None],
        lag: Callable[[], Mapping[str, int]],
        **kwargs: Any,
    ) -> None:
        """Stores the arguments; the service starts later.

        Args:
            inputs: The topics that the worker reads.
            ready_partitions: Returns the partitions that the worker owns; None while it is not ready.
            lag: Returns the number of unread records of each input.
            kwargs: Arguments of the service.
        """
        super().__init__(**kwargs)
        self._inputs = inputs
        self._ready_partitions = ready_partitions
        self._lag = lag
        self._counts: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        """What the worker has committed since its start, under the keys `stage.counter`."""
        self._window_began: float | None = None
        self._idle_since: float | None = -math.inf
        self._waiting_logged_for: Sequence[int] | None = None

    def committed(self, counts: Mapping[str, int], outputs: Sequence[Output]) -> None:
        """Notes the counts of a committed checkpoint. The outputs do not matter here."""
        self._counts.update(counts)
        self.totals.update(counts)

    def look(self, now: float) -> None:
        """Logs what is due.

        Args:
            now: Seconds of a monotonic clock.
        """
        partitions = self._ready_partitions()
        lag = self._lag()
        if self._counts or any(lag.values()):
            self._window_began = now if self._window_began is None else self._window_began
            self._idle_since = None
            if now - self._window_began >= LINE_EVERY_S:
                self._log_work(now - self._window_began, lag)
                self._window_began = now
            return
        self._window_began = now
        self._idle_since = now if self._idle_since is None else self._idle_since
        idle_for_long = now - self._idle_since >= LINE_EVERY_S
        if idle_for_long and partitions is not None and partitions != self._waiting_logged_for:
            self._log_waiting(partitions)

    def _log_work(self, seconds: float, lag: Mapping[str, int]) -> None:
        self._waiting_logged_for = None
        behind = {f"lag.{topic}": count for topic, count in lag.items()}
        log.info("in the last %.0f s: %s", seconds, in_key_values({**dict(sorted(self._counts.items())), **behind}))
        self._counts.clear()

    def _log_waiting(self, partitions: Sequence[int]) -> None:
        self._waiting_logged_for = partitions
        if partitions:
            log.info(
                "waiting for records on %s, partitions %s", ", ".join(self._inputs), ", ".join(map(str, partitions))
            )
        else:
            log.info("waiting for a partition: other workers of the group own all of them")

    @service_task("logs what the worker does")
    async def _look(self) -> None:
        while not self.should_stop:
            self.look(monotonic())
            await self.sleep(LOOK_EVERY_S)


def in_key_values(counts: Mapping[str, int]) -> str:
    """Returns counts as words `key=value`.

    >>> in_key_values({"score.scored": 12, "lag.traceweir.sessions": 0})
    'score.scored=12 lag.traceweir.sessions=0'
    """
    return " ".join(f"{key}={count}" for key, count in counts.items())
