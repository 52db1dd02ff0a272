"""Divides the labelled subjects of a judge by the dimensions of their scores, and by the labels of their events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from traceweir.schemas.score import Score

if TYPE_CHECKING:
    from traceweir.streams.lab.trust import LabelledScores

SLICED_BY = ("app_name", "agent_name", "agent_version", "environment", "model", "config_digest")
"""The dimensions by which rates are divided, before the labels."""
MOST_LABEL_NAMES = 20
"""By how many labels rates are divided at most: those that most scores have."""
_LABEL = "label "


def dimensions_of(scores: Sequence[Score]) -> list[str]:
    """Returns what scores are divided by: the dimensions, and `label NAME` for each name of a label that they have."""
    names = Counter(name for each in scores for name in each.labels or ())
    frequent = sorted(names.items(), key=lambda item: (-item[1], item[0]))[:MOST_LABEL_NAMES]
    return [*SLICED_BY, *sorted(_LABEL + name for name, _ in frequent)]


def value_of(score: Score, dimension: str) -> str | None:
    """Returns the value of a dimension of `dimensions_of`; None if the score has none."""
    if dimension.startswith(_LABEL):
        return (score.labels or {}).get(dimension.removeprefix(_LABEL))
    value: str | None = getattr(score, dimension)
    return value


def slices(group: LabelledScores) -> Iterator[tuple[str, str, LabelledScores]]:
    """Yields the parts of a group that have enough labels, each with its dimension and value, by their names."""
    if group.subjects is None:
        return
    import numpy as np

    from traceweir.streams.base.statistics.prediction_powered import numbered
    from traceweir.streams.base.statistics.rate_statement import LEAST_LABELS

    subjects = group.subjects
    for dimension in dimensions_of(group.scores):
        values = [value_of(each, dimension) for each in group.scores]
        labelled = Counter(
            value
            for value, truth in zip(values, subjects.truth.tolist(), strict=True)
            if not math.isnan(truth) and value
        )
        if len(set(values)) < 2:
            continue
        for value in sorted(each for each, number in labelled.items() if number >= LEAST_LABELS):
            part = np.array([each == value for each in values])
            missing = [each for each in group.missing if value_of(each, dimension) == value]
            of_slice = replace(
                subjects,
                verdicts=subjects.verdicts[part],
                chances=subjects.chances[part],
                sessions=numbered(subjects.sessions[part]),
                truth=subjects.truth[part],
                label_chances=subjects.label_chances[part],
                not_evaluated=len(missing),
            )
            yield (
                dimension,
                value,
                replace(group, subjects=of_slice, disagreements=(), scores=(), missing=missing, pairs=()),
            )
