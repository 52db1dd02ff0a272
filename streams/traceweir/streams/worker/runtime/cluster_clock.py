"""Compares the clock of a worker with the clocks of the brokers, because sessions close by the clock of a worker.

A worker whose clock is ahead moves the watermark of its partitions ahead. All records are then `late`, also for the
workers that own these partitions later.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from traceweir.streams.base.clock import iso, seconds_now
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.stages.watermark import MOST_AHEAD_MS
from traceweir.streams.worker.kafka.transaction_markers import by_leader, next_marker

log = logging.getLogger(__name__)

MAX_APART_S = 60.0
"""Difference of the clocks above which a worker does not work, in seconds."""
EVERY_S = 60.0
"""Interval of the comparisons, in seconds."""
WITHIN_S = 5.0
"""Time limit of a comparison, in seconds."""


class ClocksApartError(WorkerError):
    """The clock of this worker and those of the brokers are too far apart."""


class ClockWentBackError(WorkerError):
    """The clock of this worker has gone back so far that it was wrong before, or is wrong now."""


def require_no_step_back(watermarks: Mapping[int, int], now: float) -> None:
    """Checks that the clock of this worker has not gone back far behind a watermark that followed it.

    Args:
        watermarks: The highest watermark of each partition, in milliseconds since 1970.
        now: Seconds since 1970, by this worker.

    Raises:
        ClockWentBackError: a watermark is more than `MOST_AHEAD_MS` ahead of the time.
    """
    number = max(watermarks, key=lambda each: watermarks[each], default=None)
    if number is None or (ahead_ms := watermarks[number] - now * 1000) <= MOST_AHEAD_MS:
        return
    raise ClockWentBackError(
        f"the clock of this worker has gone back: partition {number} has reached {iso(watermarks[number])}, which is "
        f"{ahead_ms / 1000:.0f} s ahead of {iso(int(now * 1000))}. Either the clock was wrong then, or it is wrong now; the "
        "next takeover compares it with the cluster's. Keep the clock right (NTP). No data is lost"
    )


class ClusterClock:
    """The difference between the clock of this worker and those of the brokers.

    Args:
        clock: Returns the seconds since 1970, by this worker.
        elapsed: Returns the seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = seconds_now, elapsed: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._compared_at = -math.inf
        self.ahead_s: float | None = None
        """Seconds by which this worker was ahead of the brokers at the last comparison; None before the first one.

        Negative: it was behind. The time that the comparison took is subtracted, so it is 0 for equal clocks.
        """

    def now(self) -> float:
        """Returns the seconds since 1970, by this worker."""
        return self._clock()

    async def compare_each_minute(self, client: Any, ends: Mapping[TopicPartition, int], since: float) -> None:
        """Compares the clocks as `compare` does, if the last comparison is `EVERY_S` ago."""
        if self._elapsed() - self._compared_at >= EVERY_S:
            await self.compare(client, ends, since)

    async def compare(self, client: Any, ends: Mapping[TopicPartition, int], since: float) -> None:
        """Compares the clocks by the markers of a transaction that this worker has just committed.

        The marker of each partition has the time of its leader. Of several leaders, the one counts whose clock differs
        least: a single broker with a wrong clock stops no worker. A comparison that fails is left out.

        Args:
            client: A connected client of aiokafka.
            ends: The offset of the last record of the transaction in some partitions.
            since: A time before the commit of the transaction, by the clock of this worker. A clock that is ahead can be
                ahead by as much more as this is earlier, unnoticed.

        Raises:
            ClocksApartError: the clocks are more than `MAX_APART_S` apart.
        """
        self._compared_at = self._elapsed()
        found: list[tuple[float, TopicPartition, int]] = []
        try:
            async with asyncio.timeout(WITHIN_S):
                for place in (await by_leader(client, ends)).values():
                    while (marker := await next_marker(client, place, ends[place] + 1)) is None:
                        # The broker has waited for it.
                        pass
                    found.append((ahead_s(marker.at_ms, since, self._clock()), place, marker.at_ms))
        except (KafkaError, TimeoutError) as error:
            log.warning("the clock was not compared with that of every broker: %s", str(error) or type(error).__name__)
        if not found:
            return
        self.ahead_s, place, at_ms = min(found, key=lambda each: abs(each[0]))
        if abs(self.ahead_s) > MAX_APART_S:
            raise ClocksApartError(_words(self.ahead_s, place, at_ms, since))


def ahead_s(at_ms: int, since: float, until: float) -> float:
    """Returns by how many seconds a machine is ahead of a broker at least; negative: behind.

    Args:
        at_ms: A time by the clock of the broker, in milliseconds since 1970.
        since: A time before that moment by the clock of the machine, in seconds since 1970.
        until: A time after it by the clock of the machine.
    """
    least = since - at_ms / 1000
    most = until - at_ms / 1000
    return max(0.0, least) + min(0.0, most)


def _words(ahead_s: float, place: TopicPartition, at_ms: int, since: float) -> str:
    return (
        f"the clock of this worker is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the cluster's, and "
        f"at most {MAX_APART_S:g} s are allowed, because sessions close by it: when it was {iso(int(since * 1000))} here, "
        f"the leader of {place.topic}, partition {place.partition}, ended a transaction at {iso(at_ms)} by its own clock. "
        "The worker takes no partition over. Set the wrong clock (NTP), and start the worker again. No data is lost"
    )
