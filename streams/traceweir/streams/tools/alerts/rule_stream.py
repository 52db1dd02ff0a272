"""Watches one stream of a rule: says what an alert says when the detector does, and keeps what that needs, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
import numpy as np

from traceweir.schemas.alert import (
    MOST_SUSPECTS,
    Alert,
    AlertEffect,
    AlertOnset,
    AlertResolution,
    AlertSuspect,
    alert_id,
)
from traceweir.schemas.alert_rule import AlertRule
from traceweir.streams.base.statistics.baseline import Rhythm
from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.watched_stream import DAY, Promise, StreamAlarm, WatchedStream
from traceweir.streams.tools.alerts.arrivals import Arrivals
from traceweir.streams.tools.alerts.judge_or_agent import GUARD_MINUTES, AnchorEvidence, Attribution
from traceweir.streams.tools.alerts.suspect_values import SuspectRow, SuspectValues
from traceweir.streams.tools.alerts.usual_limit import UsualLimit, beyond
from traceweir.streams.tools.alerts.verdict import attribution_of, with_verdict
from traceweir.streams.tools.alerts.watched_scores import Minute, StreamName
from traceweir.streams.tools.alerts.worst_sessions import WorstSession, with_minute, worst_since

BACK_ODDS = 20.0
"""An alert of freshness is resolved when the usual share of intervals is so many times as likely as that since the onset:
with a session in each interval, as much evidence as raised it would need days."""


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What is known about a stream."""

    stream: StreamName
    state: Literal["learning", "sparse", "watched", "raised"]
    """`sparse`: it learns, and has too few sessions so far for an interval in which one comes."""
    sessions_a_day: float
    baseline: float | None
    """Rate, share or mean of the baseline; None without a session."""
    rhythm: Rhythm | None
    """What differs, so that each has a baseline of its own: hours of the day, days of the week, or weekends; or None."""
    findable_in_a_day: float | None
    """The smallest change that the sessions of a day show, about; None if none is, or while the stream learns."""
    limit: float | None
    """The value that sessions are compared with; None if the rule has no limit, or while the stream learns it."""
    interval_minutes: int | None
    """The length of the intervals of `freshness`; None for other rules, or while the stream learns it."""


class _Row(msgspec.Struct, array_like=True):
    name: tuple[str, str, tuple[tuple[str, str], ...]]
    detector: bytes
    limit: UsualLimit
    arrivals: Arrivals
    first: int | None
    last: int
    sessions: int
    suspects: SuspectRow
    worst: list[WorstSession]
    alert: bytes | None
    came: list[str]
    is_judged: bool


class RuleStream:
    """A stream of a rule.

    Args:
        number: From 1, by first appearance among the streams of the rule.
        rule: The rule.
        name: What the stream is about.
    """

    def __init__(self, number: int, rule: AlertRule, name: StreamName) -> None:
        self.name = name
        self._rule = rule
        self._detector = WatchedStream(number, _promise(rule, None))
        self._limit = UsualLimit(rule.limit)
        self._arrivals = Arrivals()
        self._first: int | None = None
        self._last = 0
        self._sessions = 0
        self._suspects = SuspectValues()
        self._worst: list[WorstSession] = []
        self._alert: Alert | None = None
        # What was so when the alert was raised: a value that comes later has not caused it.
        self._came: list[str] = []
        self._is_judged = False

    @property
    def number(self) -> int:
        """The number of the stream, which it keeps."""
        return self._detector.number

    @property
    def alert(self) -> Alert | None:
        """The alert that is raised now; None if none is."""
        return self._alert

    @property
    def due(self) -> int | None:
        """The minute since 1970 from which on `pass_time` has to be called; None if it has not."""
        return self._arrivals.due

    def pass_time(self, minute: int) -> Alert | None:
        """Takes an interval that is over, if one is; returns the alert that is raised or resolved by it.

        Args:
            minute: The minute since 1970 that has come, in which some stream of the topic has a score.
        """
        over = self._arrivals.passed(minute)
        if over is None:
            return None
        said = self._detector.step(over.start, np.array([float(over.came)]))
        return None if said is None else self._said(said)

    def step(self, minute: Minute) -> Alert | None:
        """Takes a minute, later than all before; returns the alert that is raised or resolved by it."""
        self._suspects.note(minute.number, minute.suspects, self._last)
        if not len(minute.values):
            return None
        if self._first is None:
            self._first = minute.number
        self._last = minute.number
        self._sessions += len(minute.sessions)
        if self._rule.what == "freshness":
            found = self.pass_time(minute.number)
            self._note_arrival(minute.number)
            return found
        is_raised = self._alert is not None
        values = self._compared(minute)
        if values is None:
            return None
        said = self._detector.step(minute.number, values)
        if self._detector.lines is not None and not is_raised:
            self._worst = with_minute(self._worst, minute.number, minute.sessions, self._goodness(minute.values))
        return None if said is None else self._said(said)

    def accept(self, minute: int) -> Alert | None:
        """Learns anew what is usual, from the next minute on; returns the alert that this resolves."""
        self._detector.learn_anew()
        self._limit = UsualLimit(self._rule.limit)
        self._arrivals = Arrivals()
        self._worst = []
        return None if self._alert is None else self._resolved(minute, "accepted")

    def end(self, minute: int) -> Alert | None:
        """Resolves the alert of a stream that nobody watches any more; returns it, or None if none is raised."""
        return None if self._alert is None else self._resolved(minute, "rule_ended")

    def waits_for_anchors(self, minute: int) -> bool:
        """Whether an alert is raised whose verdict anchors can change, at this minute since 1970."""
        alert = self._alert
        return alert is not None and moment_of(minute) <= alert.since + timedelta(minutes=GUARD_MINUTES)

    def attribute(self, anchors: AnchorEvidence | None, minute: int) -> tuple[Alert, str] | None:
        """Says whose change the raised alert shows; returns it, and why, if this is another verdict than before.

        After `GUARD_MINUTES` the verdict stays: what anchors show later is about something else.

        Args:
            anchors: The evidence of the anchors of its metric; None: there are none.
            minute: The minute since 1970.
        """
        alert = self._alert
        if alert is None or not self.waits_for_anchors(minute):
            return None
        found = self._attribution(alert, anchors)
        if found.verdict == alert.verdict:
            return None
        self._alert = with_verdict(alert, found.verdict)
        return self._alert, found.reason

    def report(self) -> StreamReport:
        """Returns what is known about the stream."""
        days = max((self._last - (self._first or self._last)) / DAY, 1.0)
        a_day = self._sessions / days
        lines = self._detector.lines
        interval = self._arrivals.interval
        state: Literal["watched", "raised"] = "watched" if self._alert is None else "raised"
        return StreamReport(
            self.name,
            state if lines is not None else "sparse" if self._arrivals.is_sparse else "learning",
            a_day,
            self._shown_mean(),
            None if lines is None else lines.rhythm,
            self._detector.findable_drop(a_day if interval is None else DAY / interval),
            self._limit.limit,
            interval,
        )

    def to_bytes(self) -> bytes:
        """Returns the state."""
        return msgspec.msgpack.encode(
            _Row(
                (self.name.metric, self.name.level, self.name.slice),
                self._detector.to_bytes(),
                self._limit,
                self._arrivals,
                self._first,
                self._last,
                self._sessions,
                self._suspects.row(),
                self._worst,
                None if self._alert is None else self._alert.wire(),
                self._came,
                self._is_judged,
            )
        )

    @classmethod
    def from_bytes(cls, state: bytes, rule: AlertRule) -> RuleStream:
        """Returns the stream whose state `to_bytes` returned.

        Raises:
            msgspec.MsgspecError: the state has another form.
        """
        row = _read_row(state)
        stream = cls(1, rule, StreamName(*row.name))
        stream._detector = WatchedStream.from_bytes(row.detector, _promise(rule, row.arrivals.interval))
        stream._limit = row.limit
        stream._arrivals = row.arrivals
        stream._first = row.first
        stream._last = row.last
        stream._sessions = row.sessions
        stream._suspects = SuspectValues(row.suspects)
        stream._worst = row.worst
        stream._alert = None if row.alert is None else Alert.model_validate_json(row.alert)
        stream._came = row.came
        stream._is_judged = row.is_judged
        return stream

    def _compared(self, minute: Minute) -> Floats | None:
        """Returns the values of a minute from 0 to 1, of which a drop is bad; None while the limit is learnt."""
        rule = self._rule
        if not rule.has_limit:
            return minute.values
        # The mean of huge numbers is not finite.
        values = np.nan_to_num(minute.values)
        is_upper = rule.what == "above_limit"
        if rule.learns_limit:
            self._limit.take(minute.number, minute.sessions, values, rule.baseline_days / 2, is_upper=is_upper)
        if self._limit.limit is None:
            return None
        found = beyond(values, self._limit.limit, is_upper=is_upper)
        return found if rule.bad_direction == "drop" else 1 - found

    def _goodness(self, values: Floats) -> Floats:
        """Returns values of sessions, of which the smallest are the worst."""
        rule = self._rule
        is_high_bad = rule.has_limit and (rule.what == "above_limit") == (rule.bad_direction == "rise")
        return -values if is_high_bad else values

    def _said(self, said: StreamAlarm) -> Alert:
        if said.state == "resolved":
            return self._resolved(said.at + self._rest, "recovered")
        self._alert = self._raised(said)
        self._worst = []
        return self._alert

    def _note_arrival(self, minute: int) -> None:
        known = self._arrivals.interval
        self._arrivals.note(minute, self._rule.baseline_days / 2)
        if self._arrivals.interval != known:
            # The promise is in days, so its steps depend on their length.
            promise = _promise(self._rule, self._arrivals.interval)
            self._detector = WatchedStream.from_bytes(self._detector.to_bytes(), promise)

    @property
    def _rest(self) -> int:
        """Minutes from the first minute of a step to its last one."""
        return (self._arrivals.interval or 1) - 1

    def _attribution(self, alert: Alert, anchors: AnchorEvidence | None) -> Attribution:
        return attribution_of(alert, anchors, self._came, is_judged=self._is_judged)

    def _raised(self, said: StreamAlarm) -> Alert:
        change = said.change
        effect = said.effect
        assert change is not None  # noqa: S101  # an alarm has both
        assert effect is not None  # noqa: S101
        change = change._replace(latest=change.latest + self._rest)
        raised_at = said.at + self._rest
        rule = self._rule
        if rule.bad_direction == "rise":
            effect = (-effect[0], -effect[2], -effect[1])
        stream = self.name.of_alert()
        alert = Alert(
            alert_id=alert_id(rule.id, stream, change.at),
            rule=rule.id,
            what=rule.what,
            limit=self._limit.limit,
            category=rule.category,
            interval_minutes=self._arrivals.interval,
            stream=stream,
            state="raised",
            since=moment_of(raised_at),
            onset=AlertOnset(
                at=moment_of(change.at), earliest=moment_of(change.earliest), latest=moment_of(change.latest)
            ),
            baseline=self._shown_mean() or 0.0,
            effect=AlertEffect(estimate=effect[0], low=effect[1], high=effect[2]),
            sessions_since=change.values,
            sessions=tuple(each.session for each in worst_since(self._worst, change.at)),
            suspects=self._nearest(change),
            occurred_at=moment_of(raised_at),
        )
        came = {each.field for each in self._suspects.within(change.earliest, change.latest)}
        self._came = sorted(came.union(self._suspects.unknown))
        # None: there were too many judges to keep.
        self._is_judged = self._suspects.has("judge")
        # Anchors need hours; what they show comes later.
        return with_verdict(alert, self._attribution(alert, None).verdict)

    def _resolved(self, minute: int, resolution: AlertResolution) -> Alert:
        alert = self._alert
        assert alert is not None  # noqa: S101  # only an alert that is raised is resolved
        self._alert = None
        return resolved_alert(alert, moment_of(minute), resolution)

    def _nearest(self, change: Changed) -> tuple[AlertSuspect, ...]:
        came = self._suspects.within(change.earliest, change.latest)
        came.sort(key=lambda each: (abs(each.minute - change.at), each.field, each.value))
        return tuple(
            AlertSuspect(field=each.field, value=each.value, first_seen=moment_of(each.minute))
            for each in came[:MOST_SUSPECTS]
        )

    def _shown_mean(self) -> float | None:
        """Returns the mean of the baseline as people know it: a rise is watched as a drop of 1 less the value."""
        _, mean = self._detector.baseline
        return 1 - mean if mean is not None and self._rule.bad_direction == "rise" else mean


def resolved_alert(alert: Alert, at: datetime, resolution: AlertResolution) -> Alert:
    """Returns an alert that was raised as one that was resolved, and why; never before it was raised."""
    ended = max(at, alert.since)
    return alert.model_copy(update={"state": "resolved", "resolution": resolution, "occurred_at": ended})


def moment_of(minute: int) -> datetime:
    """Returns the time of a minute since 1970."""
    return datetime.fromtimestamp(minute * 60, UTC)


def _promise(rule: AlertRule, interval: int | None) -> Promise:
    # From the first half a stream learns its limit, or the length of its intervals.
    days = rule.baseline_days / 2 if rule.learns_limit or rule.what == "freshness" else rule.baseline_days
    odds = BACK_ODDS if rule.what == "freshness" else None
    return Promise(rule.tolerated_change, rule.days_between_false_alarms, days, interval or 1, odds)


_read_row = msgspec.msgpack.Decoder(_Row).decode
