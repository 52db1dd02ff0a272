"""Runs a rule of alerts over stored scores, and returns what it would have said."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Literal

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import uuid5
from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_stream import DAY, Promise, StreamAlarm, WatchedStream
from traceweir.streams.tools.alerts.watched_scores import (
    SUSPECTS,
    SessionsOfMinute,
    SortedScores,
    StreamName,
    WatchedScore,
    session_values,
)

MOST_SESSIONS = 10
MOST_SUSPECTS = 5


@dataclass(frozen=True, slots=True)
class Suspect:
    """A value that came into a stream near the onset of an alarm."""

    field: str
    """A field of scores, such as `agent_version`."""
    value: str
    first_seen: datetime


@dataclass(frozen=True, slots=True)
class Onset:
    """Since when the change is."""

    at: datetime
    """The minute that the scores speak for most."""
    earliest: datetime
    """Beginning of an interval that contains the change with 95 % confidence."""
    latest: datetime


@dataclass(frozen=True, slots=True)
class Effect:
    """The rate, share or mean since the change, less that of the baseline."""

    estimate: float
    low: float
    """Lower end of the 95 % interval."""
    high: float


@dataclass(frozen=True, slots=True)
class Alert:
    """An alarm of a stream."""

    alert_id: str
    """Equal for an equal rule, stream and onset."""
    rule: str
    stream: StreamName
    state: Literal["raised", "resolved"]
    raised_at: datetime
    resolved_at: datetime | None
    onset: Onset
    effect: Effect
    sessions_since: int
    """How many sessions there were from the onset to the alarm."""
    sessions: Sequence[str]
    """The worst of them, at most ten."""
    suspects: Sequence[Suspect]
    """Those nearest to the onset first, at most five."""


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What is known about a stream at the end."""

    stream: StreamName
    state: Literal["learning", "watched", "raised"]
    sessions_a_day: float
    baseline: float | None
    """Rate, share or mean of the baseline; None without a session."""
    rhythm: bool
    """Whether the hours of a day differ, so that each has a baseline of its own."""
    findable_in_a_day: float | None
    """The smallest change that the sessions of a day show, about; None if none is, or while the stream learns."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a rule would have said."""

    alerts: Sequence[Alert]
    """In the order in which they were raised."""
    streams: Sequence[StreamReport]


def replay(scores: SortedScores, rule: AlertRule) -> Replayed:
    """Runs a rule over the streams that a `ScoreSorter` has made for it."""
    promise = Promise(rule.tolerated_change, rule.days_between_false_alarms, rule.baseline_days)
    alerts: list[Alert] = []
    reports: list[StreamReport] = []
    for number, (name, watched) in enumerate(scores.streams.items(), 1):
        stream = WatchedStream(number, promise)
        minutes = session_values(watched)
        first_seen = _first_seen(watched)
        for minute, _, values in minutes:
            said = stream.step(minute, values)
            if said is None:
                continue
            if said.state == "raised":
                alerts.append(_alert(said, rule, name, minutes, first_seen))
            else:
                alerts[-1] = _resolved(alerts[-1], said.at)
        reports.append(_report(stream, rule, name, minutes))
    return Replayed(sorted(alerts, key=lambda each: each.raised_at), reports)


def _alert(
    said: StreamAlarm,
    rule: AlertRule,
    name: StreamName,
    minutes: Sequence[SessionsOfMinute],
    first_seen: Mapping[tuple[str, str], int],
) -> Alert:
    change = said.change
    effect = said.effect
    assert change is not None  # noqa: S101  # an alarm has both
    assert effect is not None  # noqa: S101
    if rule.bad_direction == "rise":
        effect = (-effect[0], -effect[2], -effect[1])
    begin = bisect_left(minutes, change.at, key=itemgetter(0))
    end = bisect_right(minutes, said.at, key=itemgetter(0))
    behind = [
        (minute, session, value)
        for minute, sessions, values in minutes[begin:end]
        for session, value in zip(sessions, values.tolist(), strict=True)
    ]
    worst = sorted(behind, key=lambda each: (each[2], each[0], each[1]))[:MOST_SESSIONS]
    return Alert(
        uuid5(
            "alert", rule.id, name.metric, name.level, *(part for pair in name.slice for part in pair), str(change.at)
        ),
        rule.id,
        name,
        "raised",
        _moment(said.at),
        None,
        Onset(_moment(change.at), _moment(change.earliest), _moment(change.latest)),
        Effect(*effect),
        len(behind),
        [session for _, session, _ in worst],
        _suspects(first_seen, change),
    )


def _resolved(alert: Alert, minute: int) -> Alert:
    return replace(alert, state="resolved", resolved_at=_moment(minute))


def _first_seen(watched: Sequence[WatchedScore]) -> dict[tuple[str, str], int]:
    """Returns the minute of the first score with each value of each field that can be a suspect."""
    first: dict[tuple[str, str], int] = {}
    for score in watched:
        for field, value in zip(SUSPECTS, score.suspects, strict=True):
            if value is not None:
                first.setdefault((field, value), score.minute)
    return first


def _suspects(first_seen: Mapping[tuple[str, str], int], change: Changed) -> list[Suspect]:
    near = sorted(
        (abs(minute - change.at), key, minute)
        for key, minute in first_seen.items()
        if change.earliest <= minute <= change.latest
    )
    return [Suspect(*key, _moment(minute)) for _, key, minute in near[:MOST_SUSPECTS]]


def _report(
    stream: WatchedStream, rule: AlertRule, name: StreamName, minutes: Sequence[SessionsOfMinute]
) -> StreamReport:
    days = max((minutes[-1][0] - minutes[0][0]) / DAY, 1.0)
    a_day = sum(len(sessions) for _, sessions, _ in minutes) / days
    _, mean = stream.baseline
    if mean is not None and rule.bad_direction == "rise":
        mean = 1 - mean
    state: Literal["learning", "watched", "raised"] = "raised" if stream.is_raised else "watched"
    return StreamReport(
        name,
        "learning" if stream.lines is None else state,
        a_day,
        mean,
        stream.lines is not None and stream.lines.rhythm,
        stream.findable_drop(a_day),
    )


def _moment(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)
