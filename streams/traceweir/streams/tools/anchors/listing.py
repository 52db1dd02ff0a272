"""Says what anchors tell about the judge of each criterion, for `traceweir anchors list` and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from traceweir.schemas.anchor import Anchor, AnchorLabel
from traceweir.schemas.figures import counted
from traceweir.schemas.labels import Drawn
from traceweir.schemas.text import printable
from traceweir.streams.base.statistics.watched_judge import SIDES, JudgeChange, Side
from traceweir.streams.tools.anchors.watch import AnchorWatch, CriterionWatch

SHOWN_DAYS = 7
"""Number of the last days, in UTC, whose verdicts are counted one by one."""


@dataclass(frozen=True, slots=True)
class KnownAnchor:
    """An anchor without its frozen session."""

    anchor_id: str
    criterion: str
    label: AnchorLabel
    drawn: Drawn
    subject_id: str

    @classmethod
    def of(cls, anchor: Anchor) -> KnownAnchor:
        """Returns what is shown of an anchor."""
        return cls(anchor.anchor_id, anchor.criterion, anchor.label, anchor.drawn, anchor.subject.subject_id)


class AnchorAgreement(BaseModel):
    """On how many anchors of its set a judge says now what people said."""

    agree: int
    """Number of anchors whose latest verdict is the label."""
    anchors: int
    """Number of anchors with a verdict."""
    low: float
    """Lower end of the exact 95 % interval of their share."""
    high: float
    """Upper end."""


class MovedShare(BaseModel):
    """By how much a share rose, from 0 to 1, with its 95 % interval, which supposes that it did."""

    estimate: float
    low: float
    high: float


class AnchoredChange(BaseModel):
    """A change of a judge that its anchors have shown."""

    model_config = ConfigDict(populate_by_name=True)

    side: Side
    """`stricter`: verdicts that passed fail now; `milder`: verdicts that failed pass now."""
    found_at: datetime
    """When it was found."""
    at: datetime
    """Since when, most likely."""
    earliest: datetime = Field(alias="from")
    """The beginning of the interval in which it came."""
    latest: datetime = Field(alias="to")
    """The end of this interval."""
    moved: MovedShare
    """By how much the share of such verdicts rose."""
    sentence: str
    """The same in words."""


class DayOfVerdicts(BaseModel):
    """The verdicts that were due on a day in UTC."""

    day: date
    verdicts: int
    missing: int
    """How often the judge gave none."""


class AnchoredCriterion(BaseModel):
    """What is known of the judge of a criterion by its anchors."""

    model_config = ConfigDict(populate_by_name=True)

    criterion: str
    """The metric."""
    passing: int = Field(alias="pass")
    """Number of anchors that people passed."""
    failing: int = Field(alias="fail")
    """Number of anchors that people failed."""
    random: int
    """Number of anchors whose subjects were drawn at random."""
    verdicts: int
    """Number of verdicts on the present set of anchors."""
    days: list[DayOfVerdicts]
    """Those of the last 7 days, today first; empty without a verdict."""
    last_at: datetime | None
    """When the last verdict was due, also if the judge gave none."""
    missing: dict[str, int]
    """How often the judge gave no verdict, by the cause."""
    agreement: AnchorAgreement | None
    """How far the judge agrees with people now; null without a verdict."""
    watched: list[Side]
    """The sides to which a change can be found: what is usual is learnt."""
    changes: list[AnchoredChange]
    """The changes that were found, the oldest first."""
    judges: list[str]
    """The models that gave the latest verdicts."""
    metric_digest: str | None
    """Digest of what measures the criterion; null without a verdict."""

    @property
    def state(self) -> str:
        """Whether a change of the judge can be found, in words."""
        if self.last_at is None:
            return "not judged"
        if len(self.watched) == len(SIDES):
            return "watched"
        return f"watched for {self.watched[0]}, else learning" if self.watched else "learning"


@dataclass(frozen=True, slots=True)
class ListedCriterion:
    """What is known of the judge of a criterion, with its anchors one by one."""

    known: AnchoredCriterion
    anchors: tuple[KnownAnchor, ...]
    watch: CriterionWatch | None
    """None without a verdict."""


def listed_criteria(anchors: Iterable[KnownAnchor], watch: AnchorWatch, now: datetime) -> list[ListedCriterion]:
    """Returns what is known of each criterion that has an anchor or a verdict, by name."""
    of: dict[str, list[KnownAnchor]] = {name: [] for name in watch.criteria}
    for each in anchors:
        of.setdefault(each.criterion, []).append(each)
    return [
        ListedCriterion(_known(name, found, watch.criteria.get(name), now), tuple(found), watch.criteria.get(name))
        for name, found in sorted(of.items())
    ]


def change_in_words(criterion: str, change: JudgeChange) -> str:
    """Returns what has changed, as a sentence for people."""
    estimate, low, high = change.moved
    before, now = ("passed", "fail") if change.side == "stricter" else ("failed", "pass")
    return (
        f"the judge of {printable(criterion, 100)} is {change.side}: of the anchors that {before}, {estimate:.0%} more "
        f"({low:.0%} to {high:.0%}) {now} now, in {counted(change.change.values, 'verdict')}. The anchors have not changed"
    )


def _known(
    criterion: str, anchors: list[KnownAnchor], watch: CriterionWatch | None, now: datetime
) -> AnchoredCriterion:
    labels = [each.label for each in anchors]
    return AnchoredCriterion(
        criterion=criterion,
        passing=labels.count("pass"),
        failing=labels.count("fail"),
        random=sum(each.drawn == "random" for each in anchors),
        verdicts=0 if watch is None else watch.verdicts,
        days=[] if watch is None else _days(watch, now),
        last_at=None if watch is None else watch.last_at,
        missing={} if watch is None else dict(sorted(watch.missing.items())),
        agreement=_agreement(watch),
        watched=[] if watch is None else [side for side in SIDES if watch.judge.is_watched(side)],
        changes=[] if watch is None else [_change(criterion, each) for each in watch.changes],
        judges=[] if watch is None else sorted({each.judge for each in watch.latest.values() if each.judge}),
        metric_digest=None if watch is None else watch.metric_digest,
    )


def _days(watch: CriterionWatch, now: datetime) -> list[DayOfVerdicts]:
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=number) for number in range(SHOWN_DAYS)]
    return [DayOfVerdicts(day=day, verdicts=watch.of_day[day], missing=watch.missing_of_day[day]) for day in days]


def _agreement(watch: CriterionWatch | None) -> AnchorAgreement | None:
    if watch is None or watch.agreement_interval is None:
        return None
    agree, number = watch.agreement
    low, high = watch.agreement_interval
    return AnchorAgreement(agree=agree, anchors=number, low=low, high=high)


def _change(criterion: str, change: JudgeChange) -> AnchoredChange:
    estimate, low, high = change.moved
    return AnchoredChange(
        side=change.side,
        found_at=_time(change.found_at),
        at=_time(change.change.at),
        earliest=_time(change.change.earliest),
        latest=_time(change.change.latest),
        moved=MovedShare(estimate=estimate, low=low, high=high),
        sentence=change_in_words(criterion, change),
    )


def _time(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)
