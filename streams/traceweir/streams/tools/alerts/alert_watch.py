"""Watches the scores of a log by rules: takes them in any order of partitions, and says which alerts they raise.

The object uses no Kafka client, clock or file. Its rows, the alerts and the positions of a `cut` belong together: whoever
loads the rows and goes on at the positions raises and resolves each alert once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE, AlertRule
from traceweir.schemas.text import printable
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.arrivals import DueStreams
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence
from traceweir.streams.tools.alerts.open_minutes import OpenMinutes, OpenScore
from traceweir.streams.tools.alerts.rule_stream import RuleStream, StreamReport
from traceweir.streams.tools.alerts.seen_sessions import SeenSessions, session_digest
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
from traceweir.streams.tools.alerts.watched_scores import (
    Minute,
    StreamName,
    Watchable,
    fits,
    means,
    minute_of,
    stream_name,
    suspects_of,
    watched_value,
)

MOST_STREAMS = 20_000
"""Streams of a rule at most; scores of later ones are counted, and not watched."""


class AlertCut(NamedTuple):
    """What has changed since the last cut."""

    rows: Rows
    alerts: Sequence[Alert]
    """Those that were raised or resolved, in order."""
    attributed: Sequence[tuple[Alert, str]]
    """Those raised before that have another verdict now, each with the reason."""


class _StreamMinute:
    """The scores of a stream in one minute."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, tuple[tuple[int, int], float]]] = defaultdict(dict)
        """By session and result, the first revision and attempt, and its value."""
        self.suspects: set[tuple[str | None, ...]] = set()

    def add(self, score: OpenScore) -> None:
        results = self.results[score.session]
        known = results.get(score.result)
        if known is None or score.order < known[0]:
            results[score.result] = score.order, score.value
        self.suspects.add(score.suspects)

    def is_revised(self, session: str) -> bool:
        """Whether no result of a session was its first: it can have counted yesterday."""
        return all(order != (0, 0) for order, _ in self.results[session].values())


class _WatchedRule:
    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.streams: dict[StreamName, RuleStream] = {}
        self.due = DueStreams[RuleStream]()
        self._next = 1
        self._salts: dict[StreamName, bytes] = {}
        self.version = blake2b(rule.model_dump_json().encode(), digest_size=8).hexdigest()

    def stream(self, name: StreamName) -> RuleStream | None:
        """Returns a stream, a new one if there is none; None if there are too many."""
        found = self.streams.get(name)
        if found is None and len(self.streams) < MOST_STREAMS:
            found = self.put(RuleStream(self._next, self.rule, name))
        return found

    def put(self, stream: RuleStream) -> RuleStream:
        """Watches a stream, and gives the next one a higher number."""
        self.streams[stream.name] = stream
        self.due.put(stream)
        self._next = max(self._next, stream.number + 1)
        return stream

    def salt(self, name: StreamName) -> bytes:
        if name not in self._salts:
            # With another rule of the id the sessions count again.
            text = msgspec.json.encode((self.rule.model_dump(mode="json"), name.metric, name.level, name.slice))
            self._salts[name] = blake2b(text, digest_size=16).digest()
        return self._salts[name]


class AlertWatch:
    """Rules over the scores of a log. Without a pushed rule, `DEFAULT_ALERT_RULE` is watched."""

    def __init__(self) -> None:
        self._pushed: dict[str, AlertRule] = {}
        self._rules = {DEFAULT_ALERT_RULE.id: _WatchedRule(DEFAULT_ALERT_RULE)}
        self._minutes = OpenMinutes()
        self._seen = SeenSessions()
        self._alerts: list[Alert] = []
        self._attributed: dict[str, tuple[Alert, str]] = {}
        self._changed: dict[bytes, RuleStream | None] = {}
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

    def reports(self) -> dict[str, list[StreamReport]]:
        """Returns what is known of the streams of each rule, by the id of the rule."""
        return {name: [each.report() for each in rule.streams.values()] for name, rule in self._rules.items()}

    def load(self, rows: Mapping[bytes, bytes]) -> LogPlace:
        """Restores the state from the rows of all cuts; returns the place of the last one.

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
        self._rules = {name: _WatchedRule(rule) for name, rule in self._wanted().items()}
        for name, state in found.streams:
            if (watched := self._rules.get(name)) is not None:
                watched.put(RuleStream.from_bytes(state, watched.rule))
        self._minutes.load(found.head.times, found.head.closed, found.head.unused, found.open)
        self._seen.load(found.seen)
        return found.head.place

    def add(self, partition: int, score: Watchable) -> None:
        """Takes the next score of a partition."""
        self.counts["read"] += 1
        minute = minute_of(score)
        self._minutes.note_time(partition, minute)
        counted = self._minutes.minute_for(minute)
        was_used = False
        for name, watched in self._rules.items():
            rule = watched.rule
            if not fits(score, rule):
                continue
            value = watched_value(score, rule)
            if isinstance(value, str):
                self.counts[value] += 1
                continue
            stream = stream_name(score, rule)
            was_used = True
            self._minutes.add(
                OpenScore(
                    counted, name, watched.version, (stream.metric, stream.level, stream.slice), score.result_id,
                    (score.revision, score.attempt), score.session_id, value, suspects_of(score),
                )
            )  # fmt: skip
        if was_used and counted != minute:
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
                self._rules[name] = _WatchedRule(each)

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
        for minute, scores in self._minutes.over(now_s, behind):
            self._close(minute, scores)

    def too_far_ahead(self, behind: Collection[int]) -> set[int]:
        """Returns the partitions to read no further for now, because others are far behind them."""
        return self._minutes.too_far_ahead(behind)

    def cut(self, place: LogPlace) -> AlertCut:
        """Returns all changes since the last cut.

        Args:
            place: Up to where the topics were read.
        """
        rows: Rows = [
            (key, None if stream is None else stream.to_bytes()) for key, stream in sorted(self._changed.items())
        ]
        rows += ((open_key(number), row) for number, row in self._minutes.changes())
        rows += ((seen_key(number), row) for number, row in self._seen.changes())
        pushed = {name: rule.model_dump_json() for name, rule in self._pushed.items()}
        rows.append(Head(place, pushed, dict(self._minutes.times), self._minutes.closed, self._minutes.unused).row())
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

    def _close(self, minute: int, scores: Sequence[OpenScore]) -> None:
        for name, of_rule in self._rules.items():
            for passing in of_rule.due.until(minute):
                self._add_alert(passing.pass_time(minute))
                self._changed[stream_key(name, passing.number)] = passing
                of_rule.due.put(passing)
        by_rule: dict[str, dict[StreamName, _StreamMinute]] = defaultdict(lambda: defaultdict(_StreamMinute))
        for each in scores:
            watched = self._rules.get(each.rule)
            # A row can have scores of a rule that has ended, or changed, since it was written.
            if watched is not None and watched.version == each.version:
                by_rule[each.rule][each.stream].add(each)
        places: list[tuple[str, StreamName, RuleStream]] = []
        for name in sorted(by_rule):
            # New streams get their numbers in the order of their names, whatever the order of partitions was.
            for of_stream in sorted(by_rule[name]):
                if (stream := self._rules[name].stream(of_stream)) is not None:
                    places.append((name, of_stream, stream))
                else:
                    self.counts["unwatched"] += len(by_rule[name][of_stream].results)
        counting = self._counting(
            minute // DAY, [(self._rules[name].salt(each), by_rule[name][each]) for name, each, _ in places]
        )
        for (name, of_stream, stream), sessions in zip(places, counting, strict=True):
            found = by_rule[name][of_stream]
            values = means([value for _, value in found.results[each].values()] for each in sessions)
            due = stream.due
            self._add_alert(stream.step(Minute(minute, sessions, values, found.suspects)))
            if stream.due != due:
                self._rules[name].due.put(stream)
            self._changed[stream_key(name, stream.number)] = stream

    def _counting(self, day: int, streams: Sequence[tuple[bytes, _StreamMinute]]) -> list[list[str]]:
        """Returns the sessions of each stream that have not counted today, sorted, and remembers them.

        A session whose results are all revised, or attempted again, counts only if it has not counted yesterday either.

        Args:
            day: Days since 1970.
            streams: The salt of each stream, and its scores.
        """
        sessions = [(salt, each, found) for salt, found in streams for each in sorted(found.results)]
        today = _digests(session_digest(salt, day, each) for salt, each, _ in sessions)
        before = _digests(session_digest(salt, day - 1, each) for salt, each, _ in sessions)
        revised = np.array([found.is_revised(each) for _, each, found in sessions], bool)
        counts = ~self._seen.contains(today) & ~(revised & self._seen.contains(before))
        if counts.any():
            self._seen.add(day, today[counts])
        rest = zip(sessions, counts.tolist(), strict=True)
        return [[each for (_, each, _), counted in islice(rest, len(found.results)) if counted] for _, found in streams]


def _digests(found: Iterator[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.fromiter(found, np.uint64)
