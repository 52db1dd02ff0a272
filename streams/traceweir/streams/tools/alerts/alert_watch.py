"""Watches the scores of a log by rules: takes them in any order of partitions, and says which alerts they raise.

The object uses no Kafka client, clock or file. The rows and the alerts of a `cut` belong together: whoever loads the rows
and goes on at the place that they name raises and resolves each alert once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.text import printable
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence
from traceweir.streams.tools.alerts.open_minutes import OpenMinutes, OpenScore, OpenStreams
from traceweir.streams.tools.alerts.rule_stream import RuleStream, StreamReport, resolved_alert
from traceweir.streams.tools.alerts.seen_sessions import SeenSessions, session_digests
from traceweir.streams.tools.alerts.state_rows import (
    Head,
    LogPlace,
    StateFormatError,
    StateRows,
    open_key,
    seen_key,
    stream_key,
    unreadable_state,
)
from traceweir.streams.tools.alerts.stream_scores import StreamScores
from traceweir.streams.tools.alerts.watched_rule import WatchedRule
from traceweir.streams.tools.alerts.watched_scores import Minute, StreamName, Watchable, minute_of, watched_value

_SHARED_VALUES = {0.0: 0.0, 1.0: 1.0}
"""Open minutes have many scores with these values, which share an object each."""

STREAMS_A_PART = 500
"""Streams whose minute is closed at once, in about a tenth of a second."""


class AlertCut(NamedTuple):
    """What has changed since the last cut."""

    rows: Rows
    alerts: Sequence[Alert]
    """Those that were raised or resolved, in order."""
    attributed: Sequence[tuple[Alert, str]]
    """Those raised before that have another verdict now, each with the reason."""


class AlertWatch:
    """Rules over the scores of a log. Without a pushed rule, `DEFAULT_ALERT_RULE` is watched."""

    def __init__(self) -> None:
        self._pushed: dict[str, AlertRule] = {}
        self._rules = {DEFAULT_ALERT_RULE.id: WatchedRule(DEFAULT_ALERT_RULE)}
        self._minutes = OpenMinutes()
        self._seen = SeenSessions()
        self._alerts: list[Alert] = []
        self._attributed: dict[str, tuple[Alert, str]] = {}
        self._changed: dict[bytes, RuleStream | None] = {}
        self._session = ""
        """The session of the last score: the scores of a session follow each other, and share one object."""
        self.counts = Counter[str]()
        """Since the start: `read`; `late`, whose minute was over; `unwatched`, of streams beyond `MOST_STREAMS`; and how
        many do not count, by the reason."""

    @property
    def rules(self) -> Mapping[str, AlertRule]:
        """The rules that are watched, by id."""
        return {name: each.rule for name, each in self._rules.items()}

    @property
    def raised(self) -> list[Alert]:
        """The alerts that are raised now."""
        return [found for stream in self._streams() if (found := stream.alert) is not None]

    @property
    def has_alerts(self) -> bool:
        """Whether the next cut has alerts."""
        return bool(self._alerts or self._attributed)

    @property
    def changed_streams(self) -> int:
        """Number of streams that the next cut writes."""
        return len(self._changed)

    def reports(self) -> dict[str, list[StreamReport]]:
        """Returns what is known of the streams of each rule, by the id of the rule."""
        return {name: [each.report() for each in rule.streams.values()] for name, rule in self._rules.items()}

    def load(self, rows: Mapping[bytes, bytes]) -> LogPlace:
        """Restores the state from the rows of all cuts; returns from where the topics are to be read.

        Raises:
            StateFormatError: another version of Traceweir has written them.
        """
        try:
            return self._load(rows)
        except StateFormatError:
            raise
        except (ValueError, msgspec.MsgspecError) as error:
            raise StateFormatError(unreadable_state(f"cannot be read ({printable(str(error), 200)})")) from error

    def _load(self, rows: Mapping[bytes, bytes]) -> LogPlace:
        found = StateRows.of(rows)
        if found.head is None:
            return LogPlace()
        self._pushed = {name: AlertRule.model_validate_json(text) for name, text in found.head.pushed.items()}
        self._rules = {name: WatchedRule(rule) for name, rule in self._wanted().items()}
        for name, state in found.streams:
            if (watched := self._rules.get(name)) is not None:
                watched.put(RuleStream.from_bytes(state, watched.rule))
        rules = {each.version for each in self._rules.values()}
        head = found.head
        self._minutes.load(head.times, head.closed, head.unused, head.far, head.read, found.open, rules)
        self._seen.load(found.seen)
        return found.head.place

    def resolve_lost(self, raised: Iterable[Alert], at: datetime) -> None:
        """Resolves alerts that were raised by a process whose state is lost: no stream knows them, so that none could.

        What the scores still show is raised again when they have been read from the beginning.

        Args:
            raised: The alerts whose last record is a raised one.
            at: The present time.
        """
        for alert in raised:
            self._add_alert(resolved_alert(alert, at, "state_lost"))

    def reads_again(self, read: Mapping[int, int]) -> bool:
        """Returns whether records are read again that the state that was loaded has.

        A state of then would not say which of the records after it have counted.

        Args:
            read: The offset of the next record, by partition.
        """
        return self._minutes.reads_again(read)

    def forget_offsets(self, partition: int) -> None:
        """Notes that a partition was deleted and created again."""
        self._minutes.forget_offsets(partition)

    def add(self, partition: int, offset: int, score: Watchable) -> None:
        """Takes the next score of a partition, at an offset."""
        self.counts["read"] += 1
        minute = minute_of(score)
        self._minutes.note_time(partition, minute)
        if self._minutes.has_counted(partition, offset, minute):
            return
        is_late = False
        if score.session_id != self._session:
            self._session = score.session_id
        for watched in self._rules.values():
            stream = watched.name_for(score)
            if stream is None:
                continue
            value = watched_value(score, watched.rule)
            if isinstance(value, str):
                self.counts[value] += 1
                continue
            value = _SHARED_VALUES.get(value, value)
            kept = OpenScore(
                self._session, score.result_id, score.revision, score.attempt, value, watched.suspects(score)
            )
            is_late = self._minutes.add(partition, offset, minute, watched.version, stream, kept)
        if is_late:
            self.counts["late"] += 1

    def put_rule(self, rule_id: str, rule: AlertRule | None) -> None:
        """Watches a pushed rule, in place of one with this id; None ends it. A rule that changes begins to learn."""
        if rule is None:
            self._pushed.pop(rule_id, None)
        else:
            self._pushed[rule_id] = rule
        wanted = self._wanted()
        for name in [name for name, each in self._rules.items() if wanted.get(name) != each.rule]:
            self._end(name)
        for name, each in wanted.items():
            if name not in self._rules:
                self._rules[name] = WatchedRule(each)

    def accept(self, alert_id: str) -> bool:
        """Takes the changed level as the new normal: the stream learns it. Returns whether the alert is raised now."""
        for name, watched in self._rules.items():
            for stream in watched.streams.values():
                if stream.alert is not None and stream.alert.alert_id == alert_id:
                    self._add_alert(stream.accept(self._minutes.closed or 0))
                    self._changed[stream_key(name, stream.number)] = stream
                    return True
        return False

    @property
    def waits_for_anchors(self) -> bool:
        """Whether an alert is raised whose verdict anchors can change."""
        return any(each.waits_for_anchors(self._minutes.closed or 0) for each in self._streams())

    def attribute(self, anchors: Mapping[str, AnchorEvidence]) -> None:
        """Says of each raised alert whose change it shows.

        Args:
            anchors: The evidence of the anchors of each metric that has some.
        """
        for name, watched in self._rules.items():
            for stream in watched.streams.values():
                found = stream.attribute(anchors.get(stream.name.metric), self._minutes.closed or 0)
                if found is not None:
                    self._attributed[found[0].alert_id] = found
                    self._changed[stream_key(name, stream.number)] = stream

    def tick(self, now_s: float, behind: Collection[int]) -> None:
        """Closes the minutes that are over.

        Args:
            now_s: Seconds of any clock that goes on.
            behind: The partitions that have unread records.
        """
        for _ in self.ticking(now_s, behind):
            pass

    def ticking(self, now_s: float, behind: Collection[int]) -> Iterator[None]:
        """Does the same in parts, so that the caller can do other work between them. There must be no cut before the end.

        Args:
            now_s: Seconds of any clock that goes on.
            behind: The partitions that have unread records.
        """
        for minute, scores in self._minutes.over(now_s, behind):
            yield from self._close(minute, scores)

    def too_far_ahead(self, behind: Collection[int]) -> set[int]:
        """Returns the partitions to read no further for now, because others are far behind them."""
        return self._minutes.too_far_ahead(behind)

    def cut(self, place: LogPlace) -> AlertCut:
        """Returns all changes since the last cut. There must be none while the watch `reads_again`.

        Args:
            place: Up to where the topics were read. The rows name where to go on, before this: at the first score of a
                minute that is not over.
        """
        rows: Rows = [
            (key, None if stream is None else stream.to_bytes()) for key, stream in sorted(self._changed.items())
        ]
        rows += ((open_key(number), row) for number, row in self._minutes.changes())
        rows += ((seen_key(number), row) for number, row in self._seen.changes())
        pushed = {name: rule.model_dump_json() for name, rule in self._pushed.items()}
        again = msgspec.structs.replace(place, results=self._minutes.begins(place.results))
        minutes = self._minutes
        times = dict(minutes.times)
        head = Head(again, place.results, pushed, times, minutes.closed, minutes.unused, minutes.far)
        rows.append(head.row())
        cut = AlertCut(rows, self._alerts, [*self._attributed.values()])
        self._alerts = []
        self._attributed = {}
        self._changed = {}
        return cut

    def _wanted(self) -> dict[str, AlertRule]:
        return dict(sorted(self._pushed.items())) or {DEFAULT_ALERT_RULE.id: DEFAULT_ALERT_RULE}

    def _streams(self) -> Iterator[RuleStream]:
        for watched in self._rules.values():
            yield from watched.streams.values()

    def _end(self, name: str) -> None:
        for stream in self._rules.pop(name).streams.values():
            self._add_alert(stream.end(self._minutes.closed or 0))
            self._changed[stream_key(name, stream.number)] = None
        self._minutes.remove_rule(name)

    def _add_alert(self, alert: Alert | None) -> None:
        if alert is not None:
            # A record of the raised alert after this one would raise it again.
            self._attributed.pop(alert.alert_id, None)
            self._alerts.append(alert)

    def _close(self, minute: int, scores: OpenStreams) -> Iterator[None]:
        for of_rule in self._rules.values():
            for passing in of_rule.due.until(minute):
                self._add_alert(passing.pass_time(minute))
                self._changed[stream_key(of_rule.rule.id, passing.number)] = passing
                of_rule.due.put(passing)
        places: list[tuple[WatchedRule, RuleStream, StreamScores]] = []
        # New streams get their numbers in the order of their names, whatever the order of partitions was.
        streams = (
            (each.rule, found) for each in sorted(scores) for found in sorted(scores[each].items(), key=_by_name)
        )
        for number, (rule_id, (name, of_stream)) in enumerate(streams):
            watched = self._rules[rule_id]
            if (stream := watched.stream(name)) is not None:
                places.append((watched, stream, StreamScores.of(of_stream)))
            else:
                self.counts["unwatched"] += len({each.session for each in of_stream})
            if number % STREAMS_A_PART == 0:
                yield
        counting = self._counting(minute // DAY, [(rule.salt(stream.name), found) for rule, stream, found in places])
        for number, ((rule, stream, found), counts) in enumerate(zip(places, counting, strict=True)):
            if number % STREAMS_A_PART == 0:
                yield
            sessions, values = found.counting(counts)
            due = stream.due
            self._add_alert(stream.step(Minute(minute, sessions, values, found.suspects)))
            if stream.due != due:
                rule.due.put(stream)
            self._changed[stream_key(rule.rule.id, stream.number)] = stream

    def _counting(self, day: int, streams: Sequence[tuple[bytes, StreamScores]]) -> list[NDArray[np.bool_]]:
        """Returns which sessions of each stream have not counted today, and remembers them.

        A session whose results are all revised, or attempted again, counts only if it has not counted yesterday either.

        Args:
            day: Days since 1970.
            streams: The salt of each stream, and its scores.
        """
        if not streams:
            return []
        today = np.concatenate([session_digests(salt, day, found.sessions) for salt, found in streams])
        counts = ~self._seen.contains(today)
        revised = np.array([each for _, found in streams for each in found.revised], bool)
        if revised.any():
            before = [
                session_digests(
                    salt, day - 1, (each for each, late in zip(found.sessions, found.revised, strict=True) if late)
                )
                for salt, found in streams
            ]
            counts[revised] &= ~self._seen.contains(np.concatenate(before))
        if counts.any():
            self._seen.add(day, today[counts])
        return np.split(counts, np.cumsum([len(found.sessions) for _, found in streams])[:-1])


def _by_name(found: tuple[StreamName, object]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    name = found[0]
    return name.metric, name.level, name.slice
