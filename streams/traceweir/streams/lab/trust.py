"""Joins labels of people with the scores that they are about. Takes records, and reads no file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.streams.base.statistics.agreement import LabelAgreement, agreement
from traceweir.streams.base.statistics.answer_agreement import (
    AnswerPair,
    CategoryAgreement,
    NumberAgreement,
    category_agreement,
    number_agreement,
)
from traceweir.streams.base.statistics.rate_statement import JudgedSubjects
from traceweir.streams.lab.label_answers import AnswerForm, less_is_better, pair_of, truth_of, verdict_of

Subject = tuple[str, int, str, str]
"""Session, segment, level, and the id of the invocation, of the trace, or of the session."""


NO_SUCH_SESSION = "the results have no such session"
"""Why a label is not used whose session has none of the scores that it was joined with."""


@dataclass(frozen=True, slots=True, order=True)
class LabelledMeasure:
    """What measured a score; scores of different ones are never mixed."""

    criterion: str
    scorer_version: str
    judge: str
    """The model that judged; empty if none did."""
    metric_digest: str
    """Digest of what measured: another prompt or another option is another judge. Empty in records without one."""


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """The scores of one criterion by one judge, with the labels that calibrate."""

    measured: LabelledMeasure
    subjects: JudgedSubjects | None
    """None if no score has a verdict that a label can be compared with."""
    disagreements: Sequence[tuple[str, str]]
    """Session and subject of the scores with another verdict than the label, the newest first."""
    scores: Sequence[Score] = ()
    """The score of each of `subjects`, in their order."""
    missing: Sequence[Score] = ()
    """The further scores that were to be judged and have no verdict."""
    pairs: Sequence[AnswerPair] = ()
    """The answers of people in numbers and categories, each beside that of the judge."""

    @property
    def numbers(self) -> NumberAgreement | None:
        """How far the judge's numbers are from those of people; None without a number of both."""
        return number_agreement(self.pairs)

    @property
    def categories(self) -> CategoryAgreement | None:
        """How far the judge's categories are those of people; None without a category of both."""
        return category_agreement(self.pairs)

    @property
    def agreement(self) -> LabelAgreement | None:
        """How far the judge agrees with the labels; None without a label that passes or fails."""
        if self.subjects is None or self.subjects.quantity == "mean":
            return None
        labelled = self.subjects.labelled(self.subjects.truth)
        return agreement(labelled) if len(labelled.truth) else None

    @property
    def unsure(self) -> int:
        """Number of subjects whose labels are unsure, or differ."""
        if self.subjects is None or self.subjects.quantity == "mean":
            return 0
        return int(self.subjects.unsure.sum())


@dataclass(frozen=True, slots=True)
class Joined:
    """Labels with the scores that they are about."""

    groups: Sequence[LabelledScores]
    unused: Mapping[str, int]
    """How many labels are not used, by the reason."""


def joined(scores: Iterable[Score], labels: Iterable[Label]) -> Joined:
    """Joins each label with the scores of its subject and criterion, in the revision that was seen.

    Only reviews of subjects that were drawn at random are used; other kinds say nothing about a judge. The later label
    of an annotator replaces an earlier one. If two annotators differ, or one is unsure, the label bounds the rate.
    """
    measured = _by_measure(_latest_scores(scores))
    segments: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for found in measured.values():
        for session, number, level, name in found:
            segments[session, level, name].add(number)
    criteria = {each.criterion for each in measured}
    sessions = {session for session, _, _ in segments}
    unused = Counter[str]()
    wanted: dict[tuple[str, Subject], list[Label]] = defaultdict(list)
    latest: dict[tuple[str, ...], tuple[Label, int | None, set[int]]] = {}
    for label in sorted(labels, key=lambda each: each.occurred_at):
        about = label.subject
        where = segments.get((about.session_id, about.level, about.subject_id), set())
        segment = next(iter(where)) if about.segment is None and len(where) == 1 else about.segment
        # A label that names the only segment and one that names none are about the same.
        key = (
            about.session_id,
            str(segment),
            about.level,
            about.subject_id,
            label.criterion,
            label.annotator,
            label.kind,
        )
        unused["the annotator has given a later label"] += key in latest
        latest[key] = label, segment, where
    for label, segment, where in latest.values():
        about = label.subject
        reason = _unusable(label, criteria, sessions)
        if reason is None and segment is None and where:
            reason = "the session has several segments, and the label names none"
        if reason is None and segment not in where:
            reason = "the results have no such segment, invocation or trace of the session"
        if reason is None and segment is not None:
            wanted[label.criterion, (about.session_id, segment, about.level, about.subject_id)].append(label)
        else:
            unused[str(reason)] += 1
    groups = [_group(key, found, wanted, unused) for key, found in sorted(measured.items())]
    return Joined(groups, dict(sorted((+unused).items())))


def _latest_scores(scores: Iterable[Score]) -> list[Score]:
    found: dict[str, Score] = {}
    for score in scores:
        earlier = found.get(score.result_id)
        if earlier is None or (score.revision, score.attempt) >= (earlier.revision, earlier.attempt):
            found[score.result_id] = score
    return list(found.values())


def _by_measure(scores: Iterable[Score]) -> dict[LabelledMeasure, dict[Subject, Score]]:
    """Returns the scores of each criterion and judge by their subject.

    A score without a verdict names no judge: it belongs to the judge with the most verdicts among those with its digest.
    """
    found: dict[LabelledMeasure, dict[Subject, Score]] = defaultdict(dict)
    nameless: list[Score] = []
    for score in scores:
        if score.value is None:
            nameless.append(score)
            continue
        found[measure_of(score)][_subject(score)] = score
    usual = {(each.criterion, each.metric_digest): each for each in sorted(found, key=lambda each: len(found[each]))}
    for score in nameless:
        key = usual.get((score.metric, score.metric_digest or ""), measure_of(score))
        found[key].setdefault(_subject(score), score)
    return dict(found)


def measure_of(score: Score) -> LabelledMeasure:
    """Returns what has measured a score."""
    return LabelledMeasure(score.metric, score.scorer_version, score.judge or "", score.metric_digest or "")


def _subject(score: Score) -> Subject:
    return score.session_id, score.segment, score.level, score.invocation_id or score.trace_id or score.session_id


def _unusable(label: Label, criteria: set[str], sessions: set[str]) -> str | None:
    if label.withdrawn:
        return "withdrawn"
    if label.kind != "review":
        return f"kind {label.kind}: chosen by those who gave it, so it says nothing about a judge"
    if label.drawn != "random":
        return "not drawn at random"
    if label.criterion not in criteria:
        return "the results have no such criterion"
    return None if label.subject.session_id in sessions else NO_SUCH_SESSION


def _on_unit(scores: Iterable[Score], labels: Iterable[Label]) -> bool:
    """Returns whether the scale is that from 0 to 1, as values, thresholds and most numbers of people say.

    A judge can have given only 0 or 1 so far, on a scale from 1 to 5 too. One number of people beyond 1 can be a mistake.
    """
    sure = [number for score in scores for number in (score.value, score.threshold) if number is not None]
    said = [label.value for label in labels if label.value is not None]
    beyond = sum(not 0 <= number <= 1 for number in said)
    return all(0 <= number <= 1 for number in sure) and 2 * beyond <= len(said)


def _group(
    key: LabelledMeasure,
    scores: Mapping[Subject, Score],
    wanted: Mapping[tuple[str, Subject], Sequence[Label]],
    unused: Counter[str],
) -> LabelledScores:
    valued = {subject: score for subject, score in scores.items() if score.value is not None}
    missing = [each for each in scores.values() if each.value is None and each.not_evaluated_because != "sampled_out"]
    labelled = {subject: wanted[key.criterion, subject] for subject in scores if (key.criterion, subject) in wanted}
    for subject in labelled.keys() - valued.keys():
        unused["the judge gave no verdict"] += len(labelled[subject])
    given = [label for subject in labelled.keys() & valued.keys() for label in labelled[subject]]
    on_unit = _on_unit(valued.values(), given)
    # The more frequent form counts: one label in another form must not cost all others. On another scale than that from
    # 0 to 1, a number counts by the threshold.
    in_numbers = on_unit and 2 * sum(label.value is not None for label in given) > sum(
        label.verdict != "unsure" for label in given
    )
    form = AnswerForm(in_numbers, not on_unit, less_is_better(valued.values()))
    verdicts = {
        subject: number for subject, score in valued.items() if (number := verdict_of(score, in_numbers)) is not None
    }
    numbers = {score.category: score.value for score in valued.values() if score.category is not None}
    pairs = {
        subject: pair
        for subject in valued
        if subject in labelled and (pair := pair_of(labelled[subject], valued[subject])) is not None
    }
    rows = []
    measured = []
    places: dict[str, int] = {}
    differing = []
    for subject, verdict in verdicts.items():
        score = valued[subject]
        chance = 1.0 if score.inclusion_probability is None else score.inclusion_probability
        truth, drawn = truth_of(labelled.get(subject, ()), score, numbers, unused, form)
        rows.append((verdict, chance, places.setdefault(subject[0], len(places)), truth, drawn))
        measured.append(score)
        if not np.isnan(truth) and truth != verdict:
            differing.append((score.occurred_at, subject))
    for subject in (labelled.keys() & valued.keys()) - verdicts.keys() - pairs.keys():
        chosen = valued[subject].inclusion_probability == 0
        reason = "has the probability 0" if chosen else "has no threshold or is off the scale from 0 to 1"
        unused[f"the score {reason}"] += len(labelled[subject])
    if not rows:
        return LabelledScores(key, None, (), pairs=[*pairs.values()])
    columns = np.array(rows, float).T
    subjects = JudgedSubjects(
        columns[0], columns[1], columns[2].astype(np.intp), columns[3], columns[4], not_evaluated=len(missing)
    )
    newest = [(subject[0], subject[3]) for _, subject in sorted(differing, reverse=True)]
    disagreements = newest if subjects.quantity == "rate" else ()
    return LabelledScores(key, subjects, disagreements, measured, missing, [*pairs.values()])
