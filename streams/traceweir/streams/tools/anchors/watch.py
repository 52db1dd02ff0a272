"""Watches the judges of all criteria by the verdicts on their anchors, as the topic has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from sys import intern

from traceweir.schemas.anchor import AnchorLabel, AnchorVerdict
from traceweir.streams.base.statistics.rate_intervals import Interval, exact_interval
from traceweir.streams.base.statistics.watched_judge import HOUR, JUDGE_PROMISE, JudgeChange, WatchedJudge
from traceweir.streams.base.statistics.watched_stream import Promise


@dataclass(frozen=True, slots=True)
class SeenVerdict:
    """What is needed of an AnchorVerdict to watch its judge. A topic has a year of them, which are in memory at once."""

    anchor_id: str
    criterion: str
    metric_digest: str
    set_id: str
    label: AnchorLabel
    passed: bool | None
    missing_because: str
    """The cause, or else the reason, of a verdict that is missing."""
    judge: str | None
    due_at: datetime
    judged_at: datetime

    @classmethod
    def of(cls, verdict: AnchorVerdict) -> SeenVerdict:
        """Returns what is needed of a verdict."""
        return cls(
            intern(verdict.anchor_id),
            intern(verdict.criterion),
            intern(verdict.metric_digest),
            intern(verdict.set_id),
            verdict.label,
            verdict.passed,
            verdict.cause or verdict.not_evaluated_because or "error",
            None if verdict.judge is None else intern(verdict.judge),
            verdict.due_at,
            verdict.judged_at,
        )

    @property
    def place(self) -> tuple[datetime, datetime]:
        """Where it is in the order in which verdicts were due."""
        return self.due_at, self.judged_at

    @property
    def day(self) -> date:
        """The day in UTC on which it was due."""
        return self.due_at.astimezone(UTC).date()


@dataclass(slots=True)
class CriterionWatch:
    """What is known of the judge of a criterion."""

    number: int
    """From 1, by first appearance."""
    set_id: str
    """The set of anchors, and the config, that are compared now."""
    metric_digest: str
    judge: WatchedJudge
    changes: list[JudgeChange] = field(default_factory=list)
    """The changes that were found, the oldest first."""
    verdicts: int = 0
    """Number of verdicts of the set."""
    missing: Counter[str] = field(default_factory=Counter)
    """How often the judge gave no verdict, by the reason."""
    of_day: Counter[date] = field(default_factory=Counter)
    """Number of verdicts of the set by the day in UTC on which they were due."""
    missing_of_day: Counter[date] = field(default_factory=Counter)
    """Number of missing verdicts of the set by day."""
    latest: dict[str, SeenVerdict] = field(default_factory=dict)
    """The latest verdict on each anchor of the set."""
    last_at: datetime | None = None
    """When the last verdict was due."""

    @property
    def agreement(self) -> tuple[int, int]:
        """On how many anchors the judge's latest verdict is that of people, and of how many."""
        return _agreeing(self.latest.values())

    @property
    def agreement_interval(self) -> Interval | None:
        """The exact 95 % interval of the share of anchors on which they agree; None without a verdict."""
        right, number = self.agreement
        return exact_interval(right, number) if number else None


class AnchorWatch:
    """The judges of all criteria. Verdicts are added in the order in which they were due."""

    def __init__(self, promise: Promise = JUDGE_PROMISE) -> None:
        """Begins without a verdict.

        Args:
            promise: The promise over the judges of all criteria.
        """
        self._promise = promise
        self._hour: int | None = None
        self._of_hour: dict[str, list[SeenVerdict]] = {}
        self._seen: set[tuple[str, datetime]] = set()
        self.criteria: dict[str, CriterionWatch] = {}
        """The watch of each criterion."""

    def add(self, verdict: SeenVerdict) -> list[tuple[str, JudgeChange]]:
        """Takes a verdict; returns the changes of judges that are found with it, each with its criterion.

        A verdict counts at the end of its hour. Another set of anchors, or another config, begins anew.
        """
        found = self.pass_time(verdict.due_at)
        if (verdict.set_id, verdict.due_at) in self._seen:
            return found
        self._seen.add((verdict.set_id, verdict.due_at))
        watch = self.criteria.get(verdict.criterion)
        if watch is None or watch.set_id != verdict.set_id:
            self.criteria[verdict.criterion] = watch = self._begun(verdict, watch)
            self._of_hour.pop(verdict.criterion, None)
        watch.last_at = verdict.due_at
        if verdict.passed is None:
            watch.missing[verdict.missing_because] += 1
            watch.missing_of_day[verdict.day] += 1
            return found
        watch.verdicts += 1
        watch.of_day[verdict.day] += 1
        watch.latest[verdict.anchor_id] = verdict
        self._of_hour.setdefault(verdict.criterion, []).append(verdict)
        return found

    def pass_time(self, now: datetime) -> list[tuple[str, JudgeChange]]:
        """Lets the hours before a time end; returns the changes of judges that are found with them."""
        hour = int(now.timestamp()) // 60 // HOUR
        found: list[tuple[str, JudgeChange]] = []
        if self._hour is not None and hour > self._hour:
            for criterion, verdicts in sorted(self._of_hour.items()):
                change = self._step(criterion, self._hour, verdicts)
                if change is not None:
                    found.append((criterion, change))
            self._of_hour.clear()
            self._seen.clear()
        if self._hour is None or hour > self._hour:
            self._hour = hour
        return found

    def _step(self, criterion: str, hour: int, verdicts: Sequence[SeenVerdict]) -> JudgeChange | None:
        watch = self.criteria[criterion]
        change = watch.judge.step(hour, [(each.anchor_id, bool(each.passed)) for each in verdicts])
        if change is not None:
            watch.changes.append(change)
        return change

    def _begun(self, verdict: SeenVerdict, former: CriterionWatch | None) -> CriterionWatch:
        number = len(self.criteria) + 1 if former is None else former.number
        changes = [] if former is None else former.changes
        judge = WatchedJudge(number, self._promise)
        return CriterionWatch(number, verdict.set_id, verdict.metric_digest, judge, changes)


def _agreeing(verdicts: Iterable[SeenVerdict]) -> tuple[int, int]:
    compared = [each.passed == (each.label == "pass") for each in verdicts]
    return sum(compared), len(compared)
