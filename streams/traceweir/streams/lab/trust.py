"""Joins labels of people with the scores that they are about. Takes records, and reads no file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.streams.base.statistics.agreement import LabelAgreement, agreement
from traceweir.streams.base.statistics.rate_statement import JudgedSubjects

Subject = tuple[str, int, str, str]
"""Session, segment, level, and the id of the invocation, of the trace, or of the session."""


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
    return None if label.subject.session_id in sessions else "the results have no such session"


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
    # The more frequent form counts: one label in another form must not cost all others.
    in_numbers = 2 * sum(label.value is not None for label in given) > sum(label.verdict != "unsure" for label in given)
    verdicts = {
        subject: number for subject, score in valued.items() if (number := _verdict(score, in_numbers)) is not None
    }
    numbers = {score.category: score.value for score in valued.values() if score.category is not None}
    rows = []
    measured = []
    places: dict[str, int] = {}
    differing = []
    for subject, verdict in verdicts.items():
        score = valued[subject]
        chance = 1.0 if score.inclusion_probability is None else score.inclusion_probability
        truth, drawn = _truth(labelled.get(subject, ()), score, numbers, unused, in_numbers)
        rows.append((verdict, chance, places.setdefault(subject[0], len(places)), truth, drawn))
        measured.append(score)
        if not np.isnan(truth) and truth != verdict:
            differing.append((score.occurred_at, subject))
    for subject in (labelled.keys() & valued.keys()) - verdicts.keys():
        chosen = valued[subject].inclusion_probability == 0
        reason = "has the probability 0" if chosen else "has no threshold or is off the scale from 0 to 1"
        unused[f"the score {reason}"] += len(labelled[subject])
    if not rows:
        return LabelledScores(key, None, ())
    columns = np.array(rows, float).T
    subjects = JudgedSubjects(
        columns[0], columns[1], columns[2].astype(np.intp), columns[3], columns[4], not_evaluated=len(missing)
    )
    newest = [(subject[0], subject[3]) for _, subject in sorted(differing, reverse=True)]
    return LabelledScores(key, subjects, newest if subjects.quantity == "rate" else (), measured, missing)


def _verdict(score: Score, in_numbers: bool) -> float | None:
    """Returns what a label is compared with: the number, or whether the score passed; None if there is nothing."""
    chance = 1.0 if score.inclusion_probability is None else score.inclusion_probability
    if chance == 0 or score.value is None:
        return None
    if in_numbers:
        return score.value if 0 <= score.value <= 1 else None
    return None if score.threshold is None else float(score.status == "PASSED")


def _truth(
    labels: Sequence[Label],
    score: Score,
    numbers: Mapping[str, float | None],
    unused: Counter[str],
    in_numbers: bool,
) -> tuple[float, float]:
    """Returns what people say about a subject, and the probability with which it was drawn; not a number if unknown."""
    said = []
    drawn = np.nan
    for label in labels:
        if (stale := _not_of_revision(label.subject.revision, score.revision)) is not None:
            unused[stale] += 1
            continue
        answer = _answer(label, score, numbers, in_numbers)
        if isinstance(answer, str):
            unused[answer] += 1
            continue
        said.append(answer)
        drawn = label.inclusion_probability if label.inclusion_probability is not None else np.nan
    if in_numbers and said:
        return float(np.mean(said)), drawn
    return (said[0] if len(set(said)) == 1 else np.nan), drawn


def _not_of_revision(seen: int | None, scored: int) -> str | None:
    """Returns why a label is not about the revision that was scored; None if it is."""
    if seen is None:
        return "the session has several revisions, and the label names none" if scored else None
    if seen > scored:
        return "the results do not have the revision that was seen yet"
    return "a later revision has replaced the one that was seen" if seen < scored else None


def _answer(label: Label, score: Score, numbers: Mapping[str, float | None], in_numbers: bool) -> float | str:
    """Returns the number of a label, not a number for `unsure`, or why it is not used."""
    if label.verdict == "unsure":
        return np.nan
    if in_numbers:
        if label.value is None:
            return "a verdict, where most labels of the criterion are numbers"
        return label.value if 0 <= label.value <= 1 else "off the scale: a value is from 0 to 1"
    if label.value is not None:
        return "a number, where most labels of the criterion are verdicts"
    if label.category is not None:
        number = numbers.get(label.category)
        if number is None or score.threshold is None:
            return "off the scale: the results have no such category"
        return float(number >= score.threshold)
    return float(label.verdict == "pass")
