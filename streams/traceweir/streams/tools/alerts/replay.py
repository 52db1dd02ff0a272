"""Runs a rule of alerts over stored scores, and returns what it would have said."""

from __future__ import annotations

from collections.abc import Sequence
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
            if (said := stream.step(minute)) is not None:
                alerts[said.alert_id] = said
        reports.append(stream.report())
    return Replayed(sorted(alerts.values(), key=lambda each: each.since), reports)
