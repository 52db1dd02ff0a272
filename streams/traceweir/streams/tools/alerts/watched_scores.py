"""Sorts scores into the streams of a rule: which count, with what value, and one value a session and day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np

from traceweir.schemas.alert import AlertStream
from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import GATE, reported_status
from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.results.selection import dimension_of

SUSPECTS = ("agent_version", "model", "judge", "scorer_version", "metric_digest", "config_digest", "cause")
"""The fields of a score whose change can be the cause of an alarm, or name it. Labels can too, whatever their names are."""


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
    """As `watched_value` returns it."""
    suspects: tuple[str | None, ...]
    """As `suspects_of` returns them."""


class Minute(NamedTuple):
    """What a stream learns in a minute."""

    number: int
    """Minutes since 1970."""
    sessions: Sequence[str]
    """The sessions that count in it; there can be none."""
    values: Floats
    """A value of each: from 0 to 1, where a drop is bad; or a number, if the rule has a limit."""
    suspects: Collection[tuple[str | None, ...]]
    """What `suspects_of` returns of its scores, also of those whose session does not count."""


class Watchable(Protocol):
    """What is read of a score: a Score, or an outline of it."""

    @property
    def result_id(self) -> str: ...
    @property
    def revision(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def session_id(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def status(self) -> str: ...
    @property
    def not_evaluated_because(self) -> str | None: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def category(self) -> str | None: ...
    @property
    def app_name(self) -> str | None: ...
    @property
    def labels(self) -> Mapping[str, str] | None: ...
    @property
    def occurred_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class SortedScores:
    """The streams of a rule, in the order of their first scores, and the scores that do not count."""

    streams: Mapping[StreamName, Sequence[WatchedScore]]
    unused: Mapping[str, int]
    """How many scores are not used, by the reason."""
    minutes: Sequence[int]
    """The minutes since 1970 that have a score of any stream, used or not, in order."""


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
        self._minutes: set[int] = set()
        self.seen = 0
        """How many scores were added, whether they count or not."""

    def add(self, score: Watchable) -> None:
        """Takes a score."""
        self.seen += 1
        rule = self._rule
        minute = minute_of(score)
        if self._since_minute is not None and minute < self._since_minute:
            return
        self._minutes.add(minute)
        if not fits(score, rule):
            return
        value = watched_value(score, rule)
        if isinstance(value, str):
            self._unused[value] += 1
            return
        order = (score.revision, score.attempt)
        known = self._first.get(score.result_id)
        if known is not None:
            self._unused["an earlier revision or attempt counts"] += 1
            if known[0] <= order:
                return
        watched = WatchedScore(minute, score.session_id, value, suspects_of(score))
        self._first[score.result_id] = order, stream_name(score, rule), watched

    def sorted(self) -> SortedScores:
        """Returns the streams, in the order of their first scores."""
        found: dict[StreamName, list[WatchedScore]] = defaultdict(list)
        for _, name, kept in self._first.values():
            found[name].append(kept)
        for each in found.values():
            each.sort(key=lambda one: (one.minute, one.session, one.value))
        by_appearance = sorted(found, key=lambda name: (found[name][0].minute, name))
        streams = {name: found[name] for name in by_appearance}
        return SortedScores(streams, dict(sorted(self._unused.items())), sorted(self._minutes))


def minutes_of(scores: Sequence[WatchedScore]) -> list[Minute]:
    """Returns each minute that has scores, with the sessions that count in it.

    Results of a session resemble each other, so a session counts once a day, with the mean of its first minute of the day.

    Args:
        scores: The scores of a stream, in the order of their minutes.
    """
    by_minute: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    suspects: dict[int, set[tuple[str | None, ...]]] = defaultdict(set)
    first: dict[str, int] = {}
    day = -1
    for score in scores:
        if score.minute // DAY != day:
            day = score.minute // DAY
            first.clear()
        suspects[score.minute].add(score.suspects)
        if first.setdefault(score.session, score.minute) == score.minute:
            by_minute[score.minute][score.session].append(score.value)
    return [
        Minute(minute, list(sessions), means(sessions.values()), found)
        for minute, found in suspects.items()
        for sessions in (by_minute[minute],)
    ]


def means(values: Iterable[Sequence[float]]) -> Floats:
    """Returns the mean of the values of each session, whatever their order is."""
    return np.array([sum(sorted(each)) / len(each) for each in values])


def minute_of(score: Watchable) -> int:
    """Returns the minute of a score, since 1970."""
    return int(score.occurred_at.timestamp()) // 60


def stream_name(score: Watchable, rule: AlertRule) -> StreamName:
    """Returns the name of the stream that a score belongs to."""
    slices = tuple((each, str(dimension_of(score, each) or "")) for each in rule.by)
    return StreamName(score.metric, score.level, slices)


def suspects_of(score: Watchable) -> tuple[str | None, ...]:
    """Returns the values of the fields `SUSPECTS`, and then the name and the value of each label in turn."""
    found: tuple[str | None, ...] = _suspects(score)
    labels = score.labels
    return found if labels is None else (*found, *(part for label in sorted(labels.items()) for part in label))


_suspects = attrgetter(*SUSPECTS)


def fits(score: Watchable, rule: AlertRule) -> bool:
    """Returns whether a score is of those that a rule is about."""
    if score.app_name == CANARY_APP or (score.metric == GATE and rule.metric != GATE):
        return False
    return rule.metric in {None, score.metric} and rule.level in {None, score.level}


def watched_value(score: Watchable, rule: AlertRule) -> float | str:
    """Returns the value of a score, or why it has none.

    It is from 0 to 1, and turned so that a drop is bad; if the rule has a limit, it is the number that the score has.
    """
    if rule.what == "freshness":
        return 1.0
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
    elif rule.has_limit:
        return score.value
    elif rule.what == "category":
        if score.category is None:
            return "without a category"
        value = float(score.category == rule.category)
    else:
        reported = reported_status(score.metric, score.status, score.threshold)
        if reported not in {"PASSED", "FAILED"}:
            return "without a threshold, so it has no verdict"
        value = float(reported == "PASSED")
    return value if rule.bad_direction == "drop" else 1 - value
