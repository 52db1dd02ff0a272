"""Says how far the judges of a criterion can be believed, and what the rate really is, by the labels of the store.

The functions are those of `traceweir trust`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel

from traceweir.schemas.labels import Label
from traceweir.streams.board.dashboard.trust_slices import dimensions_of, slices
from traceweir.streams.board.dashboard.uneven_labels import UnevenLabels, uneven_labels
from traceweir.streams.board.store.judged import judged_scores
from traceweir.streams.board.store.labels import count_given_labels, given_labels
from traceweir.streams.board.store.selection import Readable, Selection

if TYPE_CHECKING:
    from traceweir.streams.base.statistics.people_only import Estimated
    from traceweir.streams.lab.trust import LabelledScores

MAX_DISAGREEMENTS = 50
"""The most disagreements that an answer names for each judge."""


class RateWithInterval(BaseModel):
    """A rate by labels."""

    value: float
    """The rate, from 0 to 1."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the interval."""


class Disagreement(BaseModel):
    """A subject on which people and judge differ."""

    session_id: str
    """The session."""
    subject: str
    """Id of the invocation or the trace, or of the session."""


class PeopleAgreement(BaseModel):
    """How far a judge agrees with people. The counts are of labels; the rates weigh each by 1 / its probability."""

    labels: int
    """Number of labels that pass or fail."""
    unsure: int
    """Number of subjects whose labels are unsure, or differ."""
    both_pass: int
    """Number of labels that pass what the judge passes."""
    both_fail: int
    """Number of labels that fail what the judge fails."""
    only_judge_passes: int
    """Number of labels that fail what the judge passes."""
    only_people_pass: int
    """Number of labels that pass what the judge fails."""
    tpr: RateWithInterval | None
    """The share of what people passed that the judge passes; null without such a label."""
    tnr: RateWithInterval | None
    """The share of what people failed that the judge fails; null without such a label."""
    kappa: float | None
    """Cohen's kappa; null without labels of both kinds."""
    kappa_low: float | None
    """Lower end of its 95 % interval; null with too few labels or sessions, or several probabilities."""
    kappa_high: float | None
    """Upper end of the interval."""
    disagreements: list[Disagreement]
    """The subjects on which they differ, the newest first, 50 at most."""


class NumbersOfPeople(BaseModel):
    """A judge's numbers against those of people, on whatever scale."""

    labels: int
    """Number of subjects with both numbers."""
    sessions: int
    """Number of their sessions."""
    people_mean: float
    """The mean of people's numbers."""
    judge_mean: float
    """The mean of the judge's numbers on the same subjects."""
    difference: float
    """The judge's mean minus that of people: above 0, the judge gives more."""
    low: float | None
    """Lower end of its 95 % interval; null with fewer than ten sessions, or if all differ by the same."""
    high: float | None
    """Upper end of the interval."""


class CategoryPair(BaseModel):
    """How often people named one category and the judge another, or the same."""

    people: str
    """The category of people."""
    judge: str
    """The category of the judge."""
    labels: int
    """Number of subjects."""


class CategoriesOfPeople(BaseModel):
    """A judge's categories against those of people."""

    labels: int
    """Number of subjects with both categories."""
    agreed: RateWithInterval
    """The share on which both are the same."""
    kappa: float | None
    """Cohen's kappa of all categories; null if people and judge only name one and the same."""
    kappa_low: float | None
    """Lower end of its 95 % interval; null with too few labels or sessions, or several probabilities."""
    kappa_high: float | None
    """Upper end of the interval."""
    table: list[CategoryPair]
    """The pairs that occur, by name."""


class CorrectedRate(BaseModel):
    """The rate of a judge, and the one that people would give."""

    quantity: str
    """`rate` of passes, or `mean` of numbers."""
    raw: float
    """The rate as the judge gives it."""
    value: float | None
    """The rate that people would give; null if it cannot be said."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end of the interval."""
    method: str | None
    """How the interval was computed: `exact`, `wilson` or `ppi++`."""
    labels: int
    """Number of labels that were used, without those that are unsure."""
    sessions: int
    """Number of labelled sessions."""
    unsure: int
    """Number of subjects whose labels are unsure, or differ."""
    judged: int
    """Number of subjects with a verdict."""
    coverage: float
    """Share of the subjects that were to be judged and have a verdict, from 0 to 1."""
    worst: float | None
    """The least rate of all subjects, if all without a verdict had failed; null with a coverage of 95 % and more."""
    best: float | None
    """The greatest rate of all subjects, if all without a verdict had passed."""
    more_labels: int | None
    """About how many more labels the wanted half width needs; 0 if it is reached, null if no number of labels does, or if this
    cannot be said yet."""
    sentence: str
    """What this means."""


class JudgeTrust(BaseModel):
    """What labels say about one judge of a criterion, in all or in a slice."""

    scorer_version: str
    """Version of the scorer."""
    judge: str | None
    """The model that judged; null if none did."""
    metric_digest: str | None
    """Digest of what measured; null if the scores do not name it."""
    dimension: str | None
    """The dimension of the slice, or `label NAME` for a label of the events; null for all subjects."""
    slice: str | None
    """The value of the dimension."""
    agreement: PeopleAgreement | None
    """Judge against people; null without a label that passes or fails."""
    numbers: NumbersOfPeople | None = None
    """The judge's numbers against those of people; null without a label with a number, and for a slice."""
    categories: CategoriesOfPeople | None = None
    """The judge's categories against those of people; null without a label with a category, and for a slice."""
    rate: CorrectedRate | None
    """The rate of the judge, and the corrected one; null if its scores have no threshold and are not from 0 to 1."""
    uneven: list[UnevenLabels]
    """Parts of the subjects that the labels do not stand for; empty for a slice."""


class CriterionTrust(BaseModel):
    """What labels say about the judges of a criterion in a time range."""

    criterion: str
    """The criterion."""
    since: datetime
    """Begin of the time range, in UTC."""
    until: datetime
    """End of the time range, in UTC; not part of it."""
    judges: list[JudgeTrust]
    """Each judge and version of the scorer, those with the most subjects first."""
    slices: list[JudgeTrust]
    """The same for each value of a dimension with 20 labels and more, if it has several values."""
    scores: int
    """Number of scores of the criterion in the time range."""
    compared: int
    """How many of these were compared with labels: all, or a random part of about 20,000."""
    unused: dict[str, int]
    """How many labels are not used, by the reason."""


def criterion_trust(store: Readable, selection: Selection, half_width: float) -> CriterionTrust:
    """Returns what labels say about the judges of the selected criterion.

    Args:
        store: The store.
        selection: The time range, the dimensions and the criterion.
        half_width: Half the width of the interval that is wanted, above 0.

    Raises:
        StoreError: the store cannot answer.
    """
    # NumPy and SciPy are imported where they are needed: the other pages do without.
    from traceweir.streams.lab.trust import NO_SUCH_SESSION, joined

    criterion = selection.metric or ""
    # A label is given after its session has ended.
    labels: Sequence[Label] = given_labels(store, criterion, selection.since)
    scores, number = judged_scores(store, selection)
    found = joined(scores, labels)
    groups = sorted(found.groups, key=lambda each: -len(each.scores))
    unused = dict(found.unused)
    if (outside := unused.pop(NO_SUCH_SESSION, 0)) > 0:
        # Here the results are those that were selected, and of many a random part.
        unused["the session is not among the scores compared here"] = outside
    if (unread := count_given_labels(store, criterion, selection.since) - len(labels)) > 0:
        unused[f"not read: only the latest {len(labels):,} labels are, reviews first"] = unread
    return CriterionTrust(
        criterion=criterion,
        since=selection.since,
        until=selection.until,
        judges=[
            made
            for each in groups
            if (
                made := _trust(
                    each,
                    half_width,
                    uneven=uneven_labels(each, dimensions_of(each.scores), selection.since, selection.until),
                )
            )
            is not None
        ],
        slices=[
            made
            for each in groups
            for dimension, value, part in slices(each)
            if (made := _trust(part, half_width, dimension, value)) is not None
        ],
        scores=number,
        compared=len(scores),
        unused=unused,
    )


def _trust(
    group: LabelledScores,
    half_width: float,
    dimension: str | None = None,
    value: str | None = None,
    uneven: Sequence[UnevenLabels] = (),
) -> JudgeTrust | None:
    if group.subjects is None and not group.pairs:
        return None
    from traceweir.streams.base.statistics.rate_statement import state_rate

    stated = None if group.subjects is None else asdict(state_rate(group.subjects, half_width=half_width))
    return JudgeTrust(
        scorer_version=group.measured.scorer_version,
        judge=group.measured.judge or None,
        metric_digest=group.measured.metric_digest or None,
        dimension=dimension,
        slice=value,
        agreement=_agreement(group),
        numbers=_numbers(group),
        categories=_categories(group),
        rate=None if stated is None else CorrectedRate(**stated),
        uneven=list(uneven),
    )


def _agreement(group: LabelledScores) -> PeopleAgreement | None:
    made = group.agreement
    if made is None:
        return None
    counts = made.table
    low, high = made.kappa_interval or (None, None)
    return PeopleAgreement(
        labels=counts.good + counts.bad,
        unsure=group.unsure,
        both_pass=counts.good_passed,
        both_fail=counts.bad - counts.bad_passed,
        only_judge_passes=counts.bad_passed,
        only_people_pass=counts.good - counts.good_passed,
        tpr=_rate(made.passing),
        tnr=_rate(made.failing),
        kappa=made.kappa,
        kappa_low=low,
        kappa_high=high,
        disagreements=[
            Disagreement(session_id=session_id, subject=subject)
            for session_id, subject in group.disagreements[:MAX_DISAGREEMENTS]
        ],
    )


def _numbers(group: LabelledScores) -> NumbersOfPeople | None:
    made = group.numbers
    return None if made is None else NumbersOfPeople(**asdict(made))


def _categories(group: LabelledScores) -> CategoriesOfPeople | None:
    made = group.categories
    if made is None:
        return None
    agreed = RateWithInterval(value=made.agreed.value, low=made.agreed.low, high=made.agreed.high)
    table = [
        CategoryPair(people=people, judge=judge, labels=number)
        for (people, judge), number in sorted(made.table.items())
    ]
    low, high = made.kappa_interval or (None, None)
    return CategoriesOfPeople(
        labels=made.labels, agreed=agreed, kappa=made.kappa, kappa_low=low, kappa_high=high, table=table
    )


def _rate(found: Estimated | None) -> RateWithInterval | None:
    return None if found is None else RateWithInterval(value=found.value, low=found.low, high=found.high)
