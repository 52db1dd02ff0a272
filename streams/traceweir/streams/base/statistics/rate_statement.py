"""Decides which rate can be stated about judged subjects, and says it in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceweir.schemas.figures import counted
from traceweir.streams.base.statistics.agreement import agreement
from traceweir.streams.base.statistics.clustered_sample import Numbers, weighted_mean
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.label_plan import Assumed, labels_for_people, labels_for_rate
from traceweir.streams.base.statistics.people_only import Estimated, Method, people_rate
from traceweir.streams.base.statistics.prediction_powered import (
    JudgedSample,
    LabelledSample,
    corrected_rate,
    mean_of_people,
    numbered,
)
from traceweir.streams.base.statistics.rate_intervals import exact_interval
from traceweir.streams.base.statistics.rogan_gladen import KnownRate, can_correct, transferred_rate

LEAST_LABELS = 20
"""Labels from which the verdicts of the judge correct a rate; with fewer, people alone are counted."""
LEAST_SESSIONS = 10
"""Labelled sessions for the same."""
LEAST_OTHERS = 20
"""Judged subjects without a label for the same."""
FULL_COVERAGE = 0.95
"""Share of the subjects with a verdict below which the best and the worst rate of all subjects are said, too."""
HALF_WIDTH = 0.1
"""The half width of an interval from which a rate is taken as known, unless another is wanted."""

Quantity = Literal["rate", "mean"]


@dataclass(frozen=True, slots=True)
class JudgedSubjects:
    """Subjects with a verdict of one judge; the arrays have one place for each, and there is at least one."""

    verdicts: Floats
    """1 for a pass and 0 for a failure, or numbers on a scale from 0 to 1."""
    chances: Floats
    """The probability with which the subject was judged."""
    sessions: Numbers
    """The number of its session."""
    truth: Floats
    """The label on the same scale; not a number without a label, or if the annotator is unsure."""
    label_chances: Floats
    """The probability with which the subject was drawn for a label; not a number if it has none."""
    not_evaluated: int = 0
    """How many further subjects were to be judged and have no verdict."""

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Which subjects have a label that says `unsure`."""
        return np.isnan(self.truth) & ~np.isnan(self.label_chances)

    @property
    def quantity(self) -> Quantity:
        """Whether the verdicts and labels are passes and failures, or numbers."""
        known = np.concatenate((self.verdicts, self.truth[~np.isnan(self.truth)]))
        return "rate" if np.isin(known, (0.0, 1.0)).all() else "mean"

    def labelled(self, truth: Floats) -> LabelledSample:
        """Returns the subjects whose label is a number in `truth`."""
        has = ~np.isnan(truth)
        weights = 1 / (self.chances[has] * self.label_chances[has])
        return LabelledSample(truth[has], self.verdicts[has], weights, self.sessions[has])

    def others(self) -> JudgedSample:
        """Returns the subjects without a label; if the probability of a label differs, all, because the rest is no random
        part of them."""
        chances = self.label_chances[~np.isnan(self.label_chances)]
        taken = np.isnan(self.label_chances) if len(set(chances.tolist())) < 2 else np.full(len(self.verdicts), True)
        return JudgedSample(self.verdicts[taken], 1 / self.chances[taken], self.sessions[taken])


@dataclass(frozen=True, slots=True)
class Calibration:
    """The rates of a judge's errors on labels of another time."""

    passing: KnownRate
    """TPR."""
    failing: KnownRate
    """TNR."""


@dataclass(frozen=True, slots=True)
class RateStatement:
    """What is known about a pass rate, or about the mean of a metric with a number, from 0 to 1."""

    quantity: Quantity
    raw: float
    """The rate as the judge gives it."""
    value: float | None
    """The rate that people would give; None if it cannot be said."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    method: Method | None
    labels: int
    """Number of labels that were used, without those that are unsure."""
    sessions: int
    """Number of labelled sessions."""
    unsure: int
    judged: int
    coverage: float
    """Share of the subjects that were to be judged and have a verdict, from 0 to 1."""
    worst: float | None
    """The least rate of all subjects, if all without a verdict were failures; None with a coverage of 95 % and more."""
    best: float | None
    more_labels: int | None
    """About how many more labels the wanted half width needs; 0 if it is reached, None if no number of labels does, or if
    this cannot be said yet."""
    sentence: str


def state_rate(
    subjects: JudgedSubjects, *, half_width: float = HALF_WIDTH, calibration: Calibration | None = None
) -> RateStatement:
    """Returns what can be stated about the rate of all judged subjects.

    People alone are counted with fewer than `LEAST_LABELS` labels, `LEAST_SESSIONS` sessions or `LEAST_OTHERS` others,
    and PPI++ from there. Whether labels passed or failed does not choose the method: a choice by the outcome would make
    the interval too narrow. Without any label, a calibration of another time is used, if there is one.

    Args:
        subjects: The subjects, with their labels.
        half_width: The wanted half width of the interval, above 0.
        calibration: The judge's errors on labels of another time, with the same judge and metric.
    """
    raw = weighted_mean(subjects.verdicts, 1 / subjects.chances)
    known = subjects.labelled(subjects.truth)
    unsure = subjects.unsure
    found = _estimated(subjects, calibration, raw)
    coverage = len(subjects.verdicts) / (len(subjects.verdicts) + subjects.not_evaluated)
    partly = found is not None and coverage < FULL_COVERAGE
    stated = RateStatement(
        quantity=subjects.quantity,
        raw=raw,
        value=found.value if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        method=found.method if found else None,
        labels=len(known.truth),
        sessions=len(np.unique(known.sessions)),
        unsure=int(unsure.sum()),
        judged=len(subjects.verdicts),
        coverage=coverage,
        worst=found.low * coverage if found and partly else None,
        best=found.high * coverage + 1 - coverage if found and partly else None,
        more_labels=_more(subjects, known, found, raw, half_width),
        sentence="",
    )
    return replace(stated, sentence=_sentence(stated, half_width))


def _estimated(subjects: JudgedSubjects, calibration: Calibration | None, raw: float) -> Estimated | None:
    """Returns the estimate of the labels that are sure; its interval also holds if all unsure ones pass, or all fail."""
    if np.isnan(subjects.truth).all():
        usable = calibration is not None and can_correct(calibration.passing, calibration.failing)
        if not usable or calibration is None or subjects.quantity == "mean":
            return None
        judged = people_rate(subjects.verdicts, 1 / subjects.chances, numbered(subjects.sessions))
        return transferred_rate(KnownRate(raw, judged.size), calibration.passing, calibration.failing)
    others = subjects.others()
    found = _of_labels(subjects.labelled(subjects.truth), others, subjects.quantity)
    if not subjects.unsure.any():
        return found
    bounds = [
        _of_labels(subjects.labelled(np.where(subjects.unsure, taken_as, subjects.truth)), others, subjects.quantity)
        for taken_as in (0.0, 1.0)
    ]
    return replace(
        found, low=min(found.low, *(each.low for each in bounds)), high=max(found.high, *(each.high for each in bounds))
    )


def _of_labels(labelled: LabelledSample, others: JudgedSample, quantity: Quantity) -> Estimated:
    sessions = numbered(labelled.sessions)
    is_enough = (
        len(labelled.truth) >= LEAST_LABELS
        and int(sessions.max()) + 1 >= LEAST_SESSIONS
        and len(others.verdicts) >= LEAST_OTHERS
    )
    if is_enough:
        return corrected_rate(labelled, others)
    estimate = people_rate if quantity == "rate" else mean_of_people
    return estimate(labelled.truth, labelled.weights, sessions)


def _more(
    subjects: JudgedSubjects, known: LabelledSample, found: Estimated | None, raw: float, half_width: float
) -> int | None:
    number = len(known.truth)
    if found is not None and (found.high - found.low) / 2 <= half_width:
        return 0
    # The interval allows for unsure labels: it is wider by their share, however many labels there are.
    unsure = int(subjects.unsure.sum())
    open_share = unsure / (number + unsure) if unsure else 0.0
    left = half_width - open_share / 2
    if left <= 0:
        return None
    given = number + unsure
    if subjects.quantity == "mean" or not number:
        needed = labels_for_people(_inside(raw), left)
        return None if needed is None else max(1, math.ceil(needed / (1 - open_share)) - given)
    table = agreement(known).table
    assumed = Assumed(
        rate=(table.good + 1) / (number + 2),
        passing=(table.good_passed + 1) / (table.good + 2),
        failing=(table.bad - table.bad_passed + 1) / (table.bad + 2),
    )
    needed = labels_for_rate(assumed, left)
    if needed is None:
        return None
    # Results of one session are worth less than as many of different ones.
    alike = number / min(number, people_rate(known.truth, known.weights, numbered(known.sessions)).size)
    return max(1, math.ceil(needed * alike / (1 - open_share)) - given)


def _inside(rate: float) -> float:
    return min(0.99, max(0.01, rate))


def _said_of_more(stated: RateStatement, half_width: float) -> str:
    if stated.more_labels is not None:
        return f"about {stated.more_labels:,} more label{'' if stated.more_labels == 1 else 's'}"
    if not stated.unsure:
        return "no number of labels is enough"
    # The interval stays at least as wide as the share of unsure labels, which few labels do not tell.
    if exact_interval(stated.unsure, stated.labels + stated.unsure)[0] > 2 * half_width:
        return "no number of labels is enough with so many unsure"
    return "with so many unsure, it cannot be said yet how many more labels are enough"


def _sentence(stated: RateStatement, half_width: float) -> str:
    noun = "pass rate" if stated.quantity == "rate" else "mean"
    more = _said_of_more(stated, half_width)
    if stated.value is None or stated.low is None or stated.high is None:
        text = f"The true {noun} cannot be said yet: {more} for +/- {half_width:g}. The judge says {stated.raw:.3f}."
        return text + (f" {counted(stated.unsure, 'label')} unsure." if stated.unsure else "")
    text = f"People would give a {noun} of {stated.value:.3f}, between {stated.low:.3f} and {stated.high:.3f} (95 %)"
    if stated.low <= stated.raw <= stated.high:
        text += f"; the judge's {stated.raw:.3f} is within this."
    else:
        kind = "lenient" if stated.raw > stated.high else "strict"
        text += f"; the judge's {stated.raw:.3f} is not: it is too {kind}."
    if stated.method == "rogan-gladen":
        text += " This assumes that the judge errs as it did on the labels of the other time."
    if stated.unsure:
        # The other time has its own labels: an interval from there contains nothing of these.
        held = "does not count" if stated.method == "rogan-gladen" else "allows for"
        text += f" The interval {held} {counted(stated.unsure, 'unsure label')}."
    if stated.worst is not None and stated.best is not None:
        text += f" Only {stated.coverage:.1%} have a verdict; over all, the {noun} can be {stated.worst:.3f} to {stated.best:.3f}."
    if stated.more_labels != 0:
        text += f" That is not known to +/- {half_width:g} yet: {more}."
    return text
