"""Compares lists of scores, as `traceweir diff` compares its sides."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.score import Score
from traceweir.streams.lab.comparison.compare import compare
from traceweir.streams.lab.comparison.document import Diff, MetricComparison
from traceweir.streams.lab.comparison.rows import Kinds, SideRows
from traceweir.streams.lab.comparison.texts import Texts


def compared(base: Sequence[Score], challenger: Sequence[Score], *, flips: int = 10) -> Diff:
    """Returns the comparison of two lists of scores, all of them selected."""
    kinds = Kinds()
    with Texts() as texts:
        sides = [SideRows(name, kinds, texts) for name in ("base", "challenger")]
        for side, scores in zip(sides, (base, challenger), strict=True):
            for score in scores:
                side.add(score)
        return compare(sides[0].counting(), sides[1].counting(), kinds, texts, flips=flips)


def only_metric(comparison: Diff) -> MetricComparison:
    """Returns the metric of a comparison that has one."""
    (metric,) = comparison.metrics
    return metric
