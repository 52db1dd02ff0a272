"""Sorts scores into the streams of a rule: which count, with what value, and one value a session and day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.alert import AlertStream
from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import GATE, Score, reported_status
from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.results.selection import dimension_of

SessionsOfMinute = tuple[int, list[str], Floats]
"""A minute since 1970, the sessions that count in it, and a value of each."""
SUSPECTS = ("agent_version", "model", "judge", "scorer_version", "config_digest")
"""The fields of a score whose change can be the cause of an alarm."""


@dataclass(frozen=True, slots=True, order=True)
class StreamName:
    """What a stream is about."""

    metric: str
    level: str
    slice: tuple[tuple[str, str], ...]
    """Names and values of the dimensions of the rule; the value is empty for scores without the dimension."""

    def of_alert(self) -> AlertStream:
        """Returns it as an alert has it."""
        return AlertStream.trusted(
            metric=self.metric, level=self.level, slice={name: value or None for name, value in self.slice}
        )


@dataclass(frozen=True, slots=True)
class WatchedScore:
    """What counts of a score."""

    minute: int
    """Minutes since 1970 of its `occurred_at`."""
    session: str
    value: float
    """From 0 to 1; a drop of it is bad."""
    suspects: tuple[str | None, ...]
    """Values of the fields `SUSPECTS`."""


@dataclass(frozen=True, slots=True)
class SortedScores:
    """The streams of a rule, in the order of their first scores, and the scores that do not count."""

    streams: Mapping[StreamName, Sequence[WatchedScore]]
    unused: Mapping[str, int]
    """How many scores are not used, by the reason."""


class ScoreSorter:
    """Sorts scores into the streams of a rule, in any order.

    Of the scores with one `result_id`, the first revision and attempt with a value counts. The scores of a canary are left
    out, and those of the gate unless the rule names it.
    """

    def __init__(self, rule: AlertRule, since_minute: int | None = None) -> None:
        """Begins without a score.

        Args:
            rule: The rule.
            since_minute: Scores of sessions that ended before this minute since 1970 are left out.
        """
        self._rule = rule
        self._since_minute = since_minute
        self._first: dict[str, tuple[tuple[int, int], StreamName, WatchedScore]] = {}
        self._unused = Counter[str]()
        self.seen = 0
        """How many scores were added, whether they count or not."""

    def add(self, score: Score) -> None:
        """Takes a score."""
        self.seen += 1
        rule = self._rule
        minute = int(score.occurred_at.timestamp()) // 60
        if not _fits(score, rule) or (self._since_minute is not None and minute < self._since_minute):
            return
        value = _value(score, rule)
        if isinstance(value, str):
            self._unused[value] += 1
            return
        order = (score.revision, score.attempt)
        known = self._first.get(score.result_id)
        if known is not None:
            self._unused["an earlier revision or attempt counts"] += 1
            if known[0] <= order:
                return
        name = StreamName(
            score.metric, score.level, tuple((each, str(dimension_of(score, each) or "")) for each in rule.by)
        )
        fields = tuple(getattr(score, field) for field in SUSPECTS)
        self._first[score.result_id] = order, name, WatchedScore(minute, score.session_id, value, fields)

    def sorted(self) -> SortedScores:
        """Returns the streams, in the order of their first scores."""
        found: dict[StreamName, list[WatchedScore]] = defaultdict(list)
        for _, name, kept in self._first.values():
            found[name].append(kept)
        for each in found.values():
            each.sort(key=lambda one: (one.minute, one.session, one.value))
        by_appearance = sorted(found, key=lambda name: (found[name][0].minute, name))
        return SortedScores({name: found[name] for name in by_appearance}, dict(sorted(self._unused.items())))


def session_values(scores: Sequence[WatchedScore]) -> list[SessionsOfMinute]:
    """Returns each minute with the sessions that count in it, and their values.

    Results of a session resemble each other, so a session counts once a day, with the mean of its first minute of the day.

    Args:
        scores: The scores of a stream, in the order of their minutes.
    """
    by_minute: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    minute_of: dict[str, int] = {}
    day = -1
    for score in scores:
        if score.minute // DAY != day:
            day = score.minute // DAY
            minute_of.clear()
        if minute_of.setdefault(score.session, score.minute) == score.minute:
            by_minute[score.minute][score.session].append(score.value)
    return [
        (minute, list(sessions), np.array([sum(each) / len(each) for each in sessions.values()]))
        for minute, sessions in by_minute.items()
    ]


def _fits(score: Score, rule: AlertRule) -> bool:
    if score.app_name == CANARY_APP or (score.metric == GATE and rule.metric != GATE):
        return False
    return rule.metric in {None, score.metric} and rule.level in {None, score.level}


def _value(score: Score, rule: AlertRule) -> float | str:
    """Returns the value of a score, turned so that a drop is bad, or why it has none."""
    if score.not_evaluated_because == "sampled_out" or score.cause == "settling":
        return "sampled out, or asked later"
    if rule.what == "not_evaluated":
        value = float(score.value is None and rule.cause in {None, score.cause})
    elif score.value is None:
        return "not evaluated"
    elif rule.what == "mean":
        if not 0 <= score.value <= 1:
            return "off the scale: a mean is watched of values from 0 to 1"
        value = score.value
    else:
        reported = reported_status(score.metric, score.status, score.threshold)
        if reported not in {"PASSED", "FAILED"}:
            return "without a threshold, so it has no verdict"
        value = float(reported == "PASSED")
    return value if rule.bad_direction == "drop" else 1 - value
