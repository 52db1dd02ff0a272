"""Checks a comparison against bounds: on the drop or the rise of a mean, and on the number of flips to FAILED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.spelling import did_you_mean
from traceweir.streams.lab.comparison.document import BoundCheck, BoundKind, BoundOn, Diff, MetricComparison


class UnknownMetricError(Exception):
    """A bound names a metric of which neither side has a result; the message lists the known ones."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest drop or rise of a metric's mean, or the largest number of its flips to FAILED."""

    kind: BoundKind
    metric: str
    """Full or short name of the metric."""
    limit: float
    """At least 0."""


def checked(comparison: Diff, bounds: Sequence[Bound], on: BoundOn) -> Diff:
    """Returns the comparison with the outcome of each bound, at each level of its metric.

    A drop is base minus challenger. With `interval`, the largest drop or rise that the 95 % interval contains is
    compared, so that a bound is kept only if the data excludes more. A bound on flips always compares their number.

    Raises:
        UnknownMetricError: neither side has a result of the metric.
    """
    known = [*comparison.metrics, *([] if comparison.gate is None else [comparison.gate])]
    one_sided = {name.rpartition(" (")[0] for name in (*comparison.only_in_base, *comparison.only_in_challenger)}
    checks: list[BoundCheck] = []
    for bound in bounds:
        name = full_name(bound.metric)
        found = [each for each in known if each.metric == name]
        if not found and name not in one_sided:
            names = {each.metric for each in known} | one_sided
            raise UnknownMetricError(
                f"{bound.metric!r}: neither side has a result of this metric; {did_you_mean(bound.metric, names)}"
            )
        checks += [_check(bound, each, on) for each in found] or [_one_sided(bound, name, on)]
    return comparison.model_copy(update={"bounds": checks})


def _check(bound: Bound, found: MetricComparison, on: BoundOn) -> BoundCheck:
    measured, reason = _measured(bound, found, on)
    return BoundCheck(
        kind=bound.kind,
        metric=found.metric,
        level=found.level,
        limit=bound.limit,
        on=on,
        measured=measured,
        kept=measured is not None and measured <= bound.limit,
        reason=reason,
    )


def _measured(bound: Bound, found: MetricComparison, on: BoundOn) -> tuple[float | None, str]:
    if bound.kind == "max_flips":
        if found.verdicts is None:
            return None, "no pair has a verdict on both sides"
        return found.verdicts.to_failed, ""
    if found.value is None:
        return None, "a side has no value"
    drops = bound.kind == "max_drop"
    moved: float | None = found.value.difference
    if on == "interval":
        moved = found.value.low if drops else found.value.high
    if moved is None:
        return None, "there is no interval, because a side has one session only"
    return (0.0 - moved if drops else moved), ""


def _one_sided(bound: Bound, name: str, on: BoundOn) -> BoundCheck:
    return BoundCheck(
        kind=bound.kind,
        metric=name,
        level="",
        limit=bound.limit,
        on=on,
        measured=None,
        kept=False,
        reason="only one side has results of this metric",
    )
