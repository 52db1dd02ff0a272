"""What `/healthz`, `/readyz` and `/metrics` of `traceweir alerts run` say."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from traceweir.schemas.alert import Alert
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.worker.runtime.health import Health
from traceweir.streams.worker.telemetry import tool_catalogue
from traceweir.streams.worker.telemetry.measured import Point
from traceweir.streams.worker.telemetry.prometheus import exposition

EVENTS = ("read", "late", "unwatched", "unreadable")


class ReportedWatcher(Protocol):
    """What the pages tell of a watcher."""

    readiness: Readiness

    @property
    def counts(self) -> Counter[str]:
        """Scores since the start, by what became of them."""
        ...

    @property
    def raised(self) -> Sequence[Alert]:
        """The alerts that are raised now."""
        ...

    @property
    def lag(self) -> int | None:
        """Number of unread records; None where another process watches."""
        ...


def alerts_health(taken: socket.socket, watcher: ReportedWatcher, stop: asyncio.Event) -> Health:
    """Returns the pages; an `async with` block serves them.

    The process is healthy while a broker answers it, and ready while it watches or waits to take over.

    Args:
        taken: The bound socket.
        watcher: Reads the scores.
        stop: Is set when the process is told to stop.
    """
    readiness = watcher.readiness

    def problems() -> list[str]:
        return [each for each in (readiness.last_answer.problem,) if each is not None]

    def state() -> dict[str, object]:
        phase = "stopping" if stop.is_set() else readiness.phase
        return {"phase": phase, "partitions": readiness.partitions, "raised": len(watcher.raised)}

    def metrics() -> bytes:
        return exposition(_points(watcher, ready=health.ready), tool_catalogue.ALERTS)

    health = Health(taken, problems, state, metrics, obstacles=lambda: readiness.obstacles)
    return health


def _points(watcher: ReportedWatcher, *, ready: bool) -> Iterator[Point]:
    """Yields the points. Counters begin with 0, so that Prometheus sees their first increase."""
    raised = Counter((each.rule, each.stream.metric, each.stream.level) for each in watcher.raised)
    for name, number in sorted(raised.items()):
        yield Point(tool_catalogue.ALERTS_RAISED, name, number)
    counts = watcher.counts
    for event in EVENTS:
        yield Point(tool_catalogue.ALERTS_SCORES, (event,), counts[event])
    if (lag := watcher.lag) is not None:
        yield Point(tool_catalogue.ALERTS_LAG, (), lag)
    yield Point(tool_catalogue.ALERTS_READY, (), int(ready))
