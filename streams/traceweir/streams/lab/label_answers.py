"""Compares what labels say about a subject with its score: as verdicts, as numbers, or as categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.streams.base.statistics.answer_agreement import AnswerPair


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How the labels of a criterion are compared with its scores."""

    in_numbers: bool
    """Whether numbers from 0 to 1 are compared, and not verdicts."""
    by_threshold: bool
    """Whether a number is a verdict by the threshold, because the scale is another one."""
    less_is_better: bool
    """Whether values below the threshold pass."""


def less_is_better(scores: Iterable[Score]) -> bool:
    """Returns whether values below the threshold pass, as the verdicts of the scores say."""
    return any(
        (score.value < score.threshold) == (score.status == "PASSED")
        for score in scores
        if score.value is not None and score.threshold is not None and score.value != score.threshold
    )


def pair_of(labels: Sequence[Label], score: Score) -> AnswerPair | None:
    """Returns what people and judge say in numbers, or in categories on which people agree; None if one of them does not."""
    seen = [each for each in labels if _not_of_revision(each.subject.revision, score.revision) is None]
    chance = 1.0 if score.inclusion_probability is None else score.inclusion_probability
    drawn = next((each.inclusion_probability for each in seen if each.inclusion_probability is not None), None)
    if chance == 0:
        # Chosen, and not drawn: it says nothing about the others.
        return None
    weight = 1 / (chance * (drawn or 1.0))
    categories = {each.category for each in seen if each.category is not None}
    if len(categories) == 1 and score.category is not None:
        return AnswerPair(str(categories.pop()), score.category, score.session_id, weight)
    numbers = [each.value for each in seen if each.value is not None]
    if numbers and score.value is not None and score.category is None:
        return AnswerPair(float(np.mean(numbers)), score.value, score.session_id, weight)
    return None


def verdict_of(score: Score, in_numbers: bool) -> float | None:
    """Returns what a label is compared with: the number, or whether the score passed; None if there is nothing."""
    chance = 1.0 if score.inclusion_probability is None else score.inclusion_probability
    if chance == 0 or score.value is None:
        return None
    if in_numbers:
        return score.value if 0 <= score.value <= 1 else None
    return None if score.threshold is None else float(score.status == "PASSED")


def truth_of(
    labels: Sequence[Label],
    score: Score,
    numbers: Mapping[str, float | None],
    unused: Counter[str],
    form: AnswerForm,
) -> tuple[float, float]:
    """Returns what people say about a subject, and the probability with which it was drawn; not a number if unknown."""
    said = []
    drawn = np.nan
    for label in labels:
        if (stale := _not_of_revision(label.subject.revision, score.revision)) is not None:
            unused[stale] += 1
            continue
        answer = _answer(label, score, numbers, form)
        if isinstance(answer, str):
            unused[answer] += 1
            continue
        said.append(answer)
        drawn = label.inclusion_probability if label.inclusion_probability is not None else np.nan
    if form.in_numbers and said:
        return float(np.mean(said)), drawn
    return (said[0] if len(set(said)) == 1 else np.nan), drawn


def _not_of_revision(seen: int | None, scored: int) -> str | None:
    """Returns why a label is not about the revision that was scored; None if it is."""
    if seen is None:
        return "the session has several revisions, and the label names none" if scored else None
    if seen > scored:
        return "the results do not have the revision that was seen yet"
    return "a later revision has replaced the one that was seen" if seen < scored else None


def _answer(label: Label, score: Score, numbers: Mapping[str, float | None], form: AnswerForm) -> float | str:
    """Returns the number of a label, not a number for `unsure`, or why it is not used."""
    if label.verdict == "unsure":
        return np.nan
    if form.in_numbers:
        if label.value is None:
            return "a verdict, where most labels of the criterion are numbers"
        return label.value if 0 <= label.value <= 1 else "off the scale: a value is from 0 to 1"
    if label.value is not None and not form.by_threshold:
        return "a number, where most labels of the criterion are verdicts"
    if label.verdict is not None:
        return float(label.verdict == "pass")
    number = label.value if label.category is None else numbers.get(label.category)
    if number is None or score.threshold is None:
        return "off the scale: the results have no such category"
    return float(number <= score.threshold if form.less_is_better else number >= score.threshold)
