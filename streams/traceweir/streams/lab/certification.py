"""Decides whether labels certify a judge. Takes records, and reads no file.

A proof must rest on labels that had no part in the making of the judge. So only labels count that were given after the
first score of this judge with this prompt: whoever chose the prompt did not know them. The bounds hold however often one
looks (`anytime_bound`), so nothing has to be remembered of earlier looks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from traceweir.schemas.certificate import Certificate
from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.metric import sha256
from traceweir.streams.base.statistics.anytime_bound import anytime_lower_bound, is_proven
from traceweir.streams.lab.trust import LabelledMeasure, joined, measure_of

TOO_EARLY = "the session was labelled before the first score of this judge, which can have been made with that label"
SAME_SESSION = "a further segment of a session that is counted already"
_SAME = 1e-9
"""Relative difference of two probabilities that counts as none."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What the labels say about one judge."""

    measured: LabelledMeasure
    certificate: Certificate | None
    """The certificate; also made of a judge that does not reach the bar. None: no label can be used."""
    unused: Mapping[str, int]
    """How many labels are not used, by the reason."""
    problem: str | None = None
    """Why it is not certified; None: it is."""


def examined(
    scores: Iterable[Score], labels: Iterable[Label], criterion: str, bar: float, now: datetime
) -> Sequence[Examined]:
    """Returns what the labels of sessions prove about each judge of a criterion, in the order of versions and judges."""
    about = [each for each in scores if each.metric == criterion and each.level == "session" and each.source != "code"]
    given = [each for each in labels if each.criterion == criterion]
    first: dict[LabelledMeasure, datetime] = {}
    thresholds: dict[LabelledMeasure, set[float]] = defaultdict(set)
    for score in about:
        if score.value is None:
            continue
        measured = measure_of(score)
        first[measured] = min(first.get(measured, score.evaluated_at), score.evaluated_at)
        if score.threshold is not None:
            thresholds[measured].add(score.threshold)
    return [_examined(each, about, given, first[each], thresholds[each], bar, now) for each in sorted(first)]


def _can_be_of(measured: LabelledMeasure, score: Score) -> bool:
    """Returns whether a score is of a judge, or one without a verdict, which names no judge."""
    about = measure_of(score)
    return about == measured or (about.metric_digest == measured.metric_digest and not about.judge)


def _examined(
    measured: LabelledMeasure,
    scores: Sequence[Score],
    labels: Sequence[Label],
    since: datetime,
    thresholds: set[float],
    bar: float,
    now: datetime,
) -> Examined:
    # Also by a label of an invocation: the judge can have been made with it.
    known = {each.subject.session_id for each in labels if each.occurred_at < since}
    of_sessions = [each for each in labels if each.subject.level == "session"]
    later = [each for each in of_sessions if each.subject.session_id not in known]
    found = joined([each for each in scores if _can_be_of(measured, each)], later)
    unused = dict(found.unused)
    if early := len(of_sessions) - len(later):
        unused[TOO_EARLY] = early
    subjects = next((each.subjects for each in found.groups if each.measured == measured), None)
    if not measured.metric_digest:
        return Examined(measured, None, unused, "its scores have no metric_digest; score the sessions again")
    if len(thresholds) != 1:
        named = ", ".join(f"{each:g}" for each in sorted(thresholds)) or "none"
        return Examined(measured, None, unused, f"its scores must have one threshold, and have {named}")
    if subjects is None or subjects.quantity == "mean":
        return Examined(measured, None, unused, "no label is a verdict that can be compared with its verdicts")
    drawn = np.flatnonzero(~np.isnan(subjects.label_chances))
    chances = subjects.chances[drawn] * subjects.label_chances[drawn]
    if len(drawn) and np.ptp(chances) > _SAME * np.max(chances):
        problem = (
            f"its labels were drawn with probabilities from {np.min(chances):.4g} to {np.max(chances):.4g}, and the proof "
            "needs one: label sessions of one draw"
        )
        return Examined(measured, None, unused, problem)
    # Results of one session resemble each other: a session counts once.
    _, places = np.unique(subjects.sessions[drawn], return_index=True)
    if further := len(drawn) - len(places):
        unused[SAME_SESSION] = further
    taken = drawn[places]
    if not len(taken):
        return Examined(measured, None, unused, "no label can be used")
    truth = subjects.truth[taken]
    passed = subjects.verdicts[taken] == 1
    unsure = np.isnan(truth)
    # An unsure label counts as an error, so it never makes a bound higher than its true answer would.
    good_right = int(np.sum((truth == 1) & passed))
    good = int(np.sum(truth == 1) + np.sum(unsure & ~passed))
    bad_right = int(np.sum((truth == 0) & ~passed))
    bad = int(np.sum(truth == 0) + np.sum(unsure & passed))
    usable = sorted(
        each.label_id for each in later if not each.withdrawn and each.kind == "review" and each.drawn == "random"
    )
    certificate = Certificate(
        criterion=measured.criterion,
        metric_digest=measured.metric_digest,
        judge=measured.judge or None,
        threshold=next(iter(thresholds)),
        bar=bar,
        tpr_bound=anytime_lower_bound(good_right, good),
        tnr_bound=anytime_lower_bound(bad_right, bad),
        good=int(np.sum(truth == 1)),
        bad=int(np.sum(truth == 0)),
        unsure=int(np.sum(unsure)),
        labels_digest=sha256("\n".join(usable)),
        certified_at=now,
    )
    short = [
        f"{name} is above {bound:.3f} only"
        for name, bound, right, number in (
            ("TPR", certificate.tpr_bound, good_right, good),
            ("TNR", certificate.tnr_bound, bad_right, bad),
        )
        if not is_proven(right, number, bar)
    ]
    missed = f"{' and '.join(short)}, and the bar is {bar:g}" if short else None
    return Examined(measured, certificate, unused, missed)
