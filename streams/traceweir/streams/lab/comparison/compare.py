"""Compares two sides: by pairs where both have the same results, else as two samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceweir.schemas.figures import counted
from traceweir.schemas.score import GATE
from traceweir.schemas.text import listed
from traceweir.streams.base.statistics.intervals import CONFIDENCE, Estimate, paired_difference, unpaired_difference
from traceweir.streams.base.statistics.significance import holm
from traceweir.streams.lab.comparison.document import Diff, Difference, MetricComparison, SideFigures, SideSummary
from traceweir.streams.lab.comparison.pairing import Indexes, Pairs, pair
from traceweir.streams.lab.comparison.rows import (
    FAILED,
    NOT_EVALUATED,
    PASSED,
    REASONS,
    Kind,
    Kinds,
    Rows,
    Side,
)
from traceweir.streams.lab.comparison.texts import Texts
from traceweir.streams.lab.comparison.verdicts import compare_verdicts

ENOUGH_PAIRS = 0.5
"""A metric is compared by pairs if at least this share of the values of its smaller side has a partner with a value."""
_LISTED = 12

Mask = NDArray[np.bool_]


class NoOverlapError(Exception):
    """The sides have no metric in common, or one of them is empty; the message says what each side has."""


def compare(
    base: Side, challenger: Side, kinds: Kinds, texts: Texts, *, flips: int, unusable: tuple[int, int] = (0, 0)
) -> Diff:
    """Returns what differs between two sides, without bounds.

    Args:
        base: What is compared with.
        challenger: What is compared.
        kinds: The numbers of the metrics of both sides.
        texts: The texts of both sides.
        flips: Maximum number of flips that are listed for each metric.
        unusable: Number of inputs of the base and of the challenger that are not scores.

    Raises:
        NoOverlapError: no metric is on both sides.
    """
    names = kinds.all()
    shared = np.intersect1d(base.rows["kind"], challenger.rows["kind"])
    if not len(shared):
        raise NoOverlapError(
            "the two sides have no metric at the same level in common.\n"
            f"  base {_contents(base, names)}\n  challenger {_contents(challenger, names)}\n"
            "Compare two sets of scores of the same metrics."
        )
    pairs = pair(base.rows, challenger.rows)
    found = [
        _compare_metric(
            _Samples.of(number, names[number], base.rows, challenger.rows, pairs), texts, flips, kinds.judges()
        )
        for number in sorted(shared, key=names.__getitem__)
    ]
    metrics = _corrected([each for each in found if each.metric != GATE])
    only = [_only(side, shared, names) for side in (base, challenger)]
    return Diff(
        base=_summary(base, unusable[0]),
        challenger=_summary(challenger, unusable[1]),
        confidence=CONFIDENCE,
        common_sessions=len(np.intersect1d(base.rows["session"], challenger.rows["session"])),
        metrics=metrics,
        gate=next((each for each in _corrected([each for each in found if each.metric == GATE])), None),
        only_in_base=only[0],
        only_in_challenger=only[1],
        bounds=[],
    )


class _Samples(NamedTuple):
    """The rows of a metric: all of each side, and the pairs."""

    kind: Kind
    base: Rows
    challenger: Rows
    paired_base: Rows
    paired_challenger: Rows
    other_revision: int

    @classmethod
    def of(cls, number: int, kind: Kind, base: Rows, challenger: Rows, pairs: Pairs) -> _Samples:
        def chosen(indexes: Indexes) -> Mask:
            mask: Mask = base["kind"][indexes] == number
            return mask

        these = chosen(pairs.base)
        return cls(
            kind,
            base[base["kind"] == number],
            challenger[challenger["kind"] == number],
            base[pairs.base[these]],
            challenger[pairs.challenger[these]],
            int(chosen(pairs.other_revision).sum()),
        )

    def compared(self, is_value: Callable[[Rows], Mask], *, paired: bool) -> tuple[Rows, Rows]:
        """Returns the rows that are compared: those of both sides with a value, of pairs only if paired."""
        if not paired:
            return self.base[is_value(self.base)], self.challenger[is_value(self.challenger)]
        both = is_value(self.paired_base) & is_value(self.paired_challenger)
        return self.paired_base[both], self.paired_challenger[both]


def _compare_metric(samples: _Samples, texts: Texts, flips: int, judges: Sequence[str]) -> MetricComparison:
    before = samples.paired_base
    after = samples.paired_challenger
    with_values = int((_has_value(before) & _has_value(after)).sum())
    smaller = min(int(_has_value(samples.base).sum()), int(_has_value(samples.challenger).sum()))
    paired = bool(with_values) and with_values >= ENOUGH_PAIRS * smaller

    def difference(
        is_value: Callable[[Rows], Mask], measure: Callable[[Rows], NDArray[np.float64]]
    ) -> Difference | None:
        return _difference(*samples.compared(is_value, paired=paired), measure, paired=paired)

    return MetricComparison(
        metric=samples.kind.metric,
        level=samples.kind.level,
        pairing="paired" if paired else "unpaired",
        base=_figures(samples.base, judges),
        challenger=_figures(samples.challenger, judges),
        pairs=len(before),
        pairs_with_values=with_values,
        other_revision=samples.other_revision,
        lost_values=int((_has_value(before) & ~_has_value(after)).sum()),
        gained_values=int((~_has_value(before) & _has_value(after)).sum()),
        value=difference(_has_value, lambda rows: rows["value"]),
        pass_rate=difference(_is_judged, lambda rows: (rows["status"] == PASSED).astype(np.float64)),
        cost_usd=difference(_is_any, lambda rows: rows["usd"])
        if samples.base["usd"].any() or samples.challenger["usd"].any()
        else None,
        verdicts=compare_verdicts(before, after, texts, flips),
    )


def _difference(
    base: Rows, challenger: Rows, measure: Callable[[Rows], NDArray[np.float64]], *, paired: bool
) -> Difference | None:
    if not (len(base) and len(challenger)):
        return None
    before = measure(base)
    after = measure(challenger)
    estimate: Estimate
    if paired:
        estimate = paired_difference(before, after, base["session"])
    else:
        estimate = unpaired_difference(before, base["session"], after, challenger["session"])
    return Difference(
        base_values=len(base), challenger_values=len(challenger), p_value_holm=estimate.p_value, **estimate._asdict()
    )


def _figures(rows: Rows, judges: Sequence[str]) -> SideFigures:
    # The number 0 is that of no judge.
    judged = np.bincount(rows["judge"][_has_value(rows)], minlength=len(judges) + 1)[1:]
    reasons = np.bincount(rows["reason"][rows["status"] == NOT_EVALUATED], minlength=len(REASONS))
    return SideFigures(
        results=len(rows),
        passed=int((_is_judged(rows) & (rows["status"] == PASSED)).sum()),
        failed=int((_is_judged(rows) & (rows["status"] == FAILED)).sum()),
        not_evaluated={name: int(count) for name, count in zip(REASONS, reasons, strict=True) if count},
        cost_usd=float(rows["usd"].sum()),
        input_tokens=int(rows["input_tokens"].sum(dtype=np.int64)),
        output_tokens=int(rows["output_tokens"].sum(dtype=np.int64)),
        cached=int(rows["cached"].sum()),
        judges={name: int(count) for name, count in zip(judges, judged, strict=True) if count},
    )


def _corrected(found: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Returns the metrics with p-values that are corrected within each kind of test."""
    values = holm([each.value.p_value if each.value else None for each in found])
    rates = holm([each.pass_rate.p_value if each.pass_rate else None for each in found])
    verdicts = holm([each.verdicts.p_value if each.verdicts else None for each in found])
    return [
        each.model_copy(
            update={
                "value": each.value and each.value.model_copy(update={"p_value_holm": value}),
                "pass_rate": each.pass_rate and each.pass_rate.model_copy(update={"p_value_holm": rate}),
                "verdicts": each.verdicts and each.verdicts.model_copy(update={"p_value_holm": verdict}),
            }
        )
        for each, value, rate, verdict in zip(found, values, rates, verdicts, strict=True)
    ]


def _summary(side: Side, unusable: int) -> SideSummary:
    return SideSummary(
        name=side.name,
        results=len(side.rows),
        replaced=side.replaced,
        sessions=len(np.unique(side.rows["session"])),
        unusable=unusable,
    )


def _contents(side: Side, names: Sequence[Kind]) -> str:
    if not len(side.rows):
        return f"{side.name}: has no results"
    counts = np.bincount(side.rows["kind"], minlength=len(names))
    known = sorted((names[number], int(count)) for number, count in enumerate(counts) if count)
    metrics = listed([f"{kind.metric} ({kind.level}) {count}" for kind, count in known], most=_LISTED, separator=", ")
    sessions = counted(len(np.unique(side.rows["session"])), "session")
    return f"{side.name}: {counted(len(side.rows), 'result')} of {sessions}: {metrics}"


def _only(side: Side, shared: NDArray[np.uint16], names: Sequence[Kind]) -> list[str]:
    own = np.setdiff1d(side.rows["kind"], shared)
    return [f"{kind.metric} ({kind.level})" for kind in sorted(names[number] for number in own)]


def _has_value(rows: Rows) -> Mask:
    mask: Mask = rows["status"] != NOT_EVALUATED
    return mask


def _is_judged(rows: Rows) -> Mask:
    mask: Mask = rows["judged"]
    return mask


def _is_any(rows: Rows) -> Mask:
    return np.ones(len(rows), np.bool_)
