"""Runs a rule of alerts over stored scores, and returns what it would have said."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Literal

from traceweir.schemas.alert import (
    MOST_SESSIONS,
    MOST_SUSPECTS,
    Alert,
    AlertEffect,
    AlertOnset,
    AlertSuspect,
    alert_id,
)
from traceweir.schemas.alert_rule import AlertRule
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
                alerts.append(_alert(said, stream, rule, name, minutes, first_seen))
            else:
                alerts[-1] = _resolved(alerts[-1], said.at)
        reports.append(_report(stream, rule, name, minutes))
    return Replayed(sorted(alerts, key=lambda each: each.since), reports)


def _alert(
    said: StreamAlarm,
    watched: WatchedStream,
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
    worst = sorted(behind, key=lambda each: (each[2], -each[0], each[1]))[:MOST_SESSIONS]
    return Alert(
        alert_id=alert_id(rule.id, name.of_alert(), change.at),
        rule=rule.id,
        what=rule.what,
        stream=name.of_alert(),
        state="raised",
        since=_moment(said.at),
        onset=AlertOnset(at=_moment(change.at), earliest=_moment(change.earliest), latest=_moment(change.latest)),
        baseline=_shown_mean(watched, rule) or 0.0,
        effect=AlertEffect(estimate=effect[0], low=effect[1], high=effect[2]),
        sessions_since=len(behind),
        sessions=tuple(session for _, session, _ in worst),
        suspects=_suspects(first_seen, change),
        occurred_at=_moment(said.at),
    )


def _resolved(alert: Alert, minute: int) -> Alert:
    return alert.model_copy(update={"state": "resolved", "occurred_at": _moment(minute)})


def _shown_mean(stream: WatchedStream, rule: AlertRule) -> float | None:
    """Returns the mean of the baseline as people know it: a rise is watched as a drop of 1 less the value."""
    _, mean = stream.baseline
    return 1 - mean if mean is not None and rule.bad_direction == "rise" else mean


def _first_seen(watched: Sequence[WatchedScore]) -> dict[tuple[str, str], int]:
    """Returns the minute of the first score with each value of each field that can be a suspect."""
    first: dict[tuple[str, str], int] = {}
    for score in watched:
        for field, value in zip(SUSPECTS, score.suspects, strict=True):
            if value is not None:
                first.setdefault((field, value), score.minute)
    return first


def _suspects(first_seen: Mapping[tuple[str, str], int], change: Changed) -> tuple[AlertSuspect, ...]:
    near = sorted(
        (abs(minute - change.at), key, minute)
        for key, minute in first_seen.items()
        if change.earliest <= minute <= change.latest
    )
    return tuple(
        AlertSuspect(field=field, value=value, first_seen=_moment(minute))
        for _, (field, value), minute in near[:MOST_SUSPECTS]
    )


def _report(
    stream: WatchedStream, rule: AlertRule, name: StreamName, minutes: Sequence[SessionsOfMinute]
) -> StreamReport:
    days = max((minutes[-1][0] - minutes[0][0]) / DAY, 1.0)
    a_day = sum(len(sessions) for _, sessions, _ in minutes) / days
    state: Literal["learning", "watched", "raised"] = "raised" if stream.is_raised else "watched"
    return StreamReport(
        name,
        "learning" if stream.lines is None else state,
        a_day,
        _shown_mean(stream, rule),
        stream.lines is not None and stream.lines.rhythm,
        stream.findable_drop(a_day),
    )


def _moment(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)
