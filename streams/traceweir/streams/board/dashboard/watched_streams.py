"""Knows which streams are watched for alerts, as the state on Kafka had it some minutes ago. No request waits for Kafka."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from traceweir.schemas.alert import AlertStream
from traceweir.schemas.alert_rule import Watched
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.repeated_look import LookPace, RepeatedLook
from traceweir.streams.worker.kafka.request_thread import in_request_thread

if TYPE_CHECKING:
    from traceweir.streams.tools.alerts.state_reports import ReportedStream

LOOK_EVERY_S = 300.0
"""Least seconds between two looks."""
StreamState = Literal["learning", "sparse", "watched", "raised"]
_FIRST: tuple[StreamState, ...] = ("raised", "sparse", "learning", "watched")


class ShownStream(BaseModel):
    """A stream that is watched for alerts, or learns to be."""

    rule: str
    """The `id` of its rule."""
    what: Watched
    """What the rule watches."""
    category: str | None
    """With `category`: which one."""
    stream: AlertStream
    """The scores that the stream is about."""
    state: StreamState
    """`learning`; `sparse` if it learns and has too few sessions so far for an interval of freshness; `watched`; or `raised`
    while it has an alert."""
    baseline: float | None
    """The rate, share or mean that is usual; null without a session."""
    rhythm: str | None
    """By what it has a baseline of its own, such as `weekend and hour`; null: by nothing."""
    limit: float | None
    """The value that sessions are compared with, in the unit of the metric; null without one, or while it is learnt."""
    interval_minutes: int | None
    """The length of the intervals of freshness; null for other rules, or while it is learnt."""
    sessions_a_day: float
    """Mean number of sessions a day."""
    findable_in_a_day: float | None
    """The smallest change that the sessions of a day show, about; null if none is, or while the stream learns."""


class ShownStreams(BaseModel):
    """A part of the list of streams that are watched for alerts, as the state had them."""

    read_at: datetime | None
    """When the state was read; null: not yet."""
    problem: str | None
    """Why the last look at the state failed; the streams are then those of an earlier one."""
    total: int
    """Number of streams of the whole list."""
    streams: list[ShownStream]
    """Those with an alert first, then those that can find the least."""


@dataclass(frozen=True)
class KnownStreams:
    """All streams that are watched, as they were last read."""

    read_at: datetime | None
    """When the state was read; None: not yet."""
    problem: str | None
    """Why the last look at the state failed."""
    streams: Sequence[ShownStream]
    """Those with an alert first, then those that can find the least."""

    def part(
        self,
        *,
        metric: str | None = None,
        rule: str | None = None,
        state: StreamState | None = None,
        offset: int = 0,
        limit: int,
    ) -> ShownStreams:
        """Returns a part of the list.

        Args:
            metric: Only streams of this metric.
            rule: Only streams of the rule with this `id`.
            state: Only streams in this state.
            offset: How many of them come before the part.
            limit: How many the part has at most.
        """
        found = [
            each
            for each in self.streams
            if metric in (None, each.stream.metric) and rule in (None, each.rule) and state in (None, each.state)
        ]
        part = found[offset : offset + limit]
        return ShownStreams.model_construct(read_at=self.read_at, problem=self.problem, total=len(found), streams=part)


NOT_READ = KnownStreams(None, None, ())
"""What is known before the first look."""


def streams_look(
    settings: Settings, is_watched: Callable[[], bool], now: Callable[[], datetime]
) -> RepeatedLook[KnownStreams]:
    """Returns what reads the state on Kafka now and then while somebody looks at the dashboard."""

    async def read(at: datetime) -> KnownStreams:
        return await in_request_thread(read_streams, settings, at)

    pace = LookPace(LOOK_EVERY_S, is_watched=is_watched)
    return RepeatedLook("the streams of the alerts", read, NOT_READ, with_problem, pace, now)


def with_problem(known: KnownStreams, problem: str) -> KnownStreams:
    """Returns the streams with the reason why the state cannot be read now."""
    return replace(known, problem=problem)


def known_streams(reported: Sequence[ReportedStream], read_at: datetime) -> KnownStreams:
    """Returns the streams in the order of the list."""
    streams = [
        ShownStream(
            rule=rule.id,
            what=rule.what,
            category=rule.category,
            stream=report.stream.of_alert(),
            state=report.state,
            baseline=report.baseline,
            rhythm=report.rhythm,
            limit=report.limit,
            interval_minutes=report.interval_minutes,
            sessions_a_day=report.sessions_a_day,
            findable_in_a_day=None if report.state in ("learning", "sparse") else report.findable_in_a_day,
        )
        for rule, report in sorted(reported, key=lambda each: (each.rule.id, each.report.stream))
    ]
    streams.sort(key=_finds)
    return KnownStreams(read_at, None, streams)


def _finds(stream: ShownStream) -> tuple[int, float]:
    finds = stream.findable_in_a_day
    return _FIRST.index(stream.state), -math.inf if finds is None else -finds


def read_streams(settings: Settings, now: datetime) -> KnownStreams:
    """Returns the streams, as the state on Kafka has them.

    Raises:
        AlertsError: The topic is missing, or this user may not read it.
        KafkaUnreachableError: No broker answers.
    """
    # NumPy is imported where it is needed, and not in the thread that answers requests.
    from traceweir.streams.tools.alerts.state_reports import read_reports

    return known_streams(asyncio.run(read_reports(settings)), now)
