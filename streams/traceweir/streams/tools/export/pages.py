"""What `/healthz`, `/readyz` and `/metrics` of an exporter say."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.undelivered import STAGE
from traceweir.streams.worker.runtime.health import Health
from traceweir.streams.worker.telemetry import catalogue, tool_catalogue
from traceweir.streams.worker.telemetry.measured import Point
from traceweir.streams.worker.telemetry.prometheus import exposition

EVENTS = ("read", "sent", "waited", "left_out", "rejected", "unreadable", "removed")
"""What an exporter counts beside its dead letters."""
DEAD_LETTERS = ("refused", "given_up")
"""The reasons of its dead letters."""


class ReportedRelay(Protocol):
    """What the pages tell of a relay."""

    readiness: Readiness

    @property
    def counts(self) -> Counter[str]:
        """Numbers since the start, by name."""
        ...

    @property
    def waiting(self) -> int:
        """Number of scores that wait."""
        ...

    @property
    def waiting_in_memory(self) -> int:
        """Number of those in memory."""
        ...

    @property
    def next_attempt(self) -> datetime | None:
        """When one of them is sent again; None if none waits."""
        ...


class ReportedTarget(Protocol):
    """What the pages tell of a target."""

    @property
    def counts(self) -> Counter[str]:
        """Numbers since the start, by name."""
        ...

    @property
    def acceptance(self) -> Acceptance:
        """Whether the target takes what it is sent."""
        ...


def exporter_health(
    taken: socket.socket, group: str, relay: ReportedRelay, target: ReportedTarget, stop: asyncio.Event
) -> Health:
    """Returns the pages of an exporter; an `async with` block serves them.

    It is healthy while a broker answers it, and ready while it reads its partitions and the target takes what it is sent.

    Args:
        taken: The bound socket.
        group: The consumer group.
        relay: Reads the scores.
        target: Where they go.
        stop: Is set when the exporter is told to stop.
    """
    readiness = relay.readiness

    def problems() -> list[str]:
        return [each for each in (readiness.last_answer.problem,) if each is not None]

    def obstacles() -> list[str]:
        target_problem = _target_problem(target.acceptance, relay.next_attempt)
        return [*([] if target_problem is None else [target_problem]), *readiness.obstacles]

    def state() -> dict[str, object]:
        phase = "stopping" if stop.is_set() else readiness.phase
        return {"phase": phase, "partitions": readiness.partitions, "waiting": relay.waiting}

    def metrics() -> bytes:
        return exposition(_points(group, relay, target, ready=health.ready), tool_catalogue.EXPORT_PAGE)

    health = Health(taken, problems, state, metrics, obstacles=obstacles)
    return health


def _target_problem(acceptance: Acceptance, next_attempt: datetime | None) -> str | None:
    if acceptance.problem is None or acceptance.ended or next_attempt is None:
        return acceptance.problem
    return f"{acceptance.problem}; the next score that waits is sent again at {next_attempt:%Y-%m-%d %H:%M:%S} UTC"


def _points(group: str, relay: ReportedRelay, target: ReportedTarget, *, ready: bool) -> Iterator[Point]:
    """Yields the points. Counters begin with 0, so that Prometheus sees their first increase."""
    counts = relay.counts + target.counts
    for event in EVENTS:
        yield Point(tool_catalogue.EXPORT_SCORES, (group, event), counts[event])
    for reason in DEAD_LETTERS:
        yield Point(catalogue.DEAD_LETTERS, (STAGE, reason), counts[reason])
    yield Point(tool_catalogue.EXPORT_WAITING, (group, "memory"), relay.waiting_in_memory)
    yield Point(tool_catalogue.EXPORT_WAITING, (group, "topic"), relay.waiting - relay.waiting_in_memory)
    yield Point(tool_catalogue.EXPORT_READY, (group,), int(ready))
