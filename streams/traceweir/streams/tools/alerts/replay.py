"""Runs a rule of alerts over stored scores, and returns what it would have said."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import AlertRule
from traceweir.streams.tools.alerts.rule_stream import RuleStream, StreamReport
from traceweir.streams.tools.alerts.watched_scores import SortedScores, minutes_of


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a rule would have said."""

    alerts: Sequence[Alert]
    """Each in its last state, in the order in which they were raised."""
    streams: Sequence[StreamReport]


def replay(scores: SortedScores, rule: AlertRule) -> Replayed:
    """Runs a rule over the streams that a `ScoreSorter` has made for it."""
    alerts: dict[str, Alert] = {}
    reports: list[StreamReport] = []
    for number, (name, watched) in enumerate(scores.streams.items(), 1):
        stream = RuleStream(number, rule, name)
        for minute in minutes_of(watched):
            for said in (*_passed(stream, scores.minutes, minute.number), stream.step(minute)):
                if said is not None:
                    alerts[said.alert_id] = said
        for said in _passed(stream, scores.minutes, scores.minutes[-1]):
            alerts[said.alert_id] = said
        reports.append(stream.report())
    return Replayed(sorted(alerts.values(), key=lambda each: each.since), reports)


def _passed(stream: RuleStream, minutes: Sequence[int], last: int) -> Iterator[Alert]:
    """Yields what a stream says at the ends of its intervals up to a minute."""
    while stream.due is not None:
        place = bisect_left(minutes, stream.due)
        if place == len(minutes) or minutes[place] > last:
            return
        if (said := stream.pass_time(minutes[place])) is not None:
            yield said
