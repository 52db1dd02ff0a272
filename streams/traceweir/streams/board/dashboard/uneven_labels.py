"""Finds parts of the judged subjects that the labels do not stand for, because a review looked at other ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel

from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard.trust_slices import value_of

if TYPE_CHECKING:
    from traceweir.streams.lab.trust import LabelledScores

SIGNIFICANT = 0.05
PARTS_OF_TIME = 4
"""The number of parts of a time range that are compared."""
MOST_VALUES = 50
"""A dimension with more values is not compared."""


class UnevenLabels(BaseModel):
    """A part of the subjects of which another share was labelled than of the others, beyond chance."""

    dimension: str
    """Name of the dimension, `label NAME` for a label of the events, or `time`: a quarter of the time range."""
    value: str
    """Value of the dimension, or the begin of the quarter."""
    labelled: int
    """Number of labelled subjects of the part."""
    subjects: int
    """Number of judged subjects of the part."""
    others_labelled: int
    """Number of labelled subjects of the others."""
    others: int
    """Number of judged subjects of the others."""


def uneven_labels(
    group: LabelledScores, dimensions: Sequence[str], since: datetime, until: datetime
) -> list[UnevenLabels]:
    """Returns the parts whose share of labels differs from that of the others, the surest first.

    Fisher's exact test, corrected by Holm for all parts. Nothing is compared if labels were drawn with several
    probabilities: the weights account for what such labels have more or less of.

    Args:
        group: The scores of a judge, with their labels.
        dimensions: The dimensions of a score by which its subjects are divided.
        since: Begin of the time range.
        until: End of the time range.
    """
    if group.subjects is None:
        return []
    import numpy as np

    from traceweir.streams.base.statistics.significance import exact_rates, holm

    has_label = ~np.isnan(group.subjects.label_chances)
    if len(np.unique(group.subjects.label_chances[has_label])) != 1:
        return []
    labelled = has_label.tolist()
    found: list[UnevenLabels] = []
    for dimension, values in _divisions(group.scores, dimensions, since, until):
        subjects = Counter(values)
        if not 1 < len(subjects) <= MOST_VALUES:
            continue
        # Of two parts, one is the others of the other: both would be the same finding.
        parts = subjects.items() if len(subjects) > 2 else [min(subjects.items(), key=lambda part: (part[1], part[0]))]
        of_labelled = Counter(value for value, has in zip(values, labelled, strict=True) if has)
        found.extend(
            UnevenLabels(
                dimension=dimension,
                value=value,
                labelled=of_labelled[value],
                subjects=number,
                others_labelled=of_labelled.total() - of_labelled[value],
                others=len(values) - number,
            )
            for value, number in parts
        )
    tested = holm([exact_rates((each.labelled, each.subjects), (each.others_labelled, each.others)) for each in found])
    sure = [
        (p_value, each)
        for p_value, each in zip(tested, found, strict=True)
        if p_value is not None and p_value <= SIGNIFICANT
    ]
    return [each for _, each in sorted(sure, key=lambda one: (one[0], one[1].dimension, one[1].value))]


def _divisions(
    scores: Sequence[Score], dimensions: Sequence[str], since: datetime, until: datetime
) -> Iterator[tuple[str, list[str]]]:
    for dimension in dimensions:
        yield dimension, [str(value_of(each, dimension) or "none") for each in scores]
    length = (until - since) / PARTS_OF_TIME
    begins = [f"{since + number * length:%Y-%m-%d %H:%M}" for number in range(PARTS_OF_TIME)]
    yield "time", [begins[min(PARTS_OF_TIME - 1, int((each.occurred_at - since) / length))] for each in scores]
