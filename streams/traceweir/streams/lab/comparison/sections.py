"""Writes a comparison as sections of text, which a terminal and Markdown then show. Text in cells is not escaped yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from traceweir.schemas.figures import counted, figure, needed, threshold_figure
from traceweir.scorers.databricks_names import short_name
from traceweir.streams.lab.comparison.document import (
    BoundCheck,
    Diff,
    Difference,
    Flip,
    FlipSide,
    MetricComparison,
    SideFigures,
    SideSummary,
)

NONE = "-"
_UNRELATED = "warning: no session is on both sides, so the two sides are compared as independent samples"
_BOUND_NAMES = {"max_drop": "max drop", "max_rise": "max rise", "max_flips": "max flips"}


class Section(NamedTuple):
    """A table with a title and remarks."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()


class FlipText(NamedTuple):
    """A flip, as a person reads it. All fields but `change` contain text of agents and models."""

    session_id: str
    place: str
    change: str
    base: str
    challenger: str


class Flips(NamedTuple):
    """The flips of a metric."""

    metric: str
    flips: Sequence[FlipText]
    left_out: int


def sections_of(comparison: Diff) -> Iterator[Section]:
    """Yields the tables of a comparison that have rows."""
    every = [*comparison.metrics, *([comparison.gate] if comparison.gate else [])]
    sections = (
        Section(
            "scores",
            ("", "name", "results", "sessions", "replaced", "unusable"),
            [_side("base", comparison.base), _side("challenger", comparison.challenger)],
            [] if comparison.common_sessions else [_UNRELATED],
        ),
        Section(
            "differences of means",
            ("metric", "level", "compared", "n", "base", "challenger", "difference", "95 % interval", "p", "p (Holm)"),
            [row for each in comparison.metrics if (row := _value(each))],
            _remarks(comparison),
        ),
        Section(
            "verdicts",
            (
                "metric",
                "level",
                "pass rate",
                "95 % interval",
                "pairs",
                "to FAILED",
                "to PASSED",
                "p (McNemar)",
                "p (Holm)",
                "kappa",
            ),
            [row for each in comparison.metrics if (row := _verdicts(each))],
        ),
        Section(
            "gate",
            (
                "decisions",
                "base",
                "challenger",
                "acceptance rate",
                "95 % interval",
                "to rejected",
                "to accepted",
                "p (McNemar)",
            ),
            [_gate(comparison.gate)] if comparison.gate else [],
        ),
        Section(
            "not evaluated (in no mean)",
            ("metric", "level", "base", "challenger", "lost", "gained"),
            [row for each in every if (row := _not_evaluated(each))],
        ),
        Section(
            "cost of the judge",
            ("metric", "level", "base USD", "challenger USD", "USD per result", "95 % interval", "tokens", "cached"),
            [row for each in every if (row := _cost(each))],
        ),
        Section(
            "bounds",
            ("metric", "level", "bound", "on", "limit", "measured", "outcome"),
            [_bound(each) for each in comparison.bounds],
        ),
    )
    return (section for section in sections if section.rows)


def flips_of(comparison: Diff) -> Iterator[Flips]:
    """Yields the flips of each metric that has any, those of the gate first."""
    for each in [*([comparison.gate] if comparison.gate else []), *comparison.metrics]:
        if each.verdicts is not None and (each.verdicts.flips or each.verdicts.flips_left_out):
            texts = [_flip(flip, is_gate=each is comparison.gate) for flip in each.verdicts.flips]
            yield Flips(f"{short_name(each.metric)} ({each.level})", texts, each.verdicts.flips_left_out)


def verdict_of(comparison: Diff) -> str:
    """Returns a sentence about the bounds; empty without bounds."""
    if not comparison.bounds:
        return ""
    broken = sum(not bound.kept for bound in comparison.bounds)
    return f"{broken} of {counted(len(comparison.bounds), 'bound')} broken" if broken else "every bound is kept"


def _side(role: str, side: SideSummary) -> Sequence[str]:
    return (role, side.name, *map(str, (side.results, side.sessions, side.replaced, side.unusable)))


def _remarks(comparison: Diff) -> list[str]:
    remarks = []
    for side, names in (("base", comparison.only_in_base), ("challenger", comparison.only_in_challenger)):
        if names:
            remarks.append(f"only in {side}: {', '.join(names)}")
    partly = [
        f"{_name(each)}: {counted(each.pairs, 'pair')} of {each.base.results} and {each.challenger.results} results"
        + (f", {each.other_revision} in different revisions" if each.other_revision else "")
        for each in comparison.metrics
        if each.pairing == "unpaired" or each.pairs < max(each.base.results, each.challenger.results)
    ]
    judged = [
        f"warning: {_name(each)} has values of different judges, so a difference can be theirs: "
        f"base {_judges(each.base)}; challenger {_judges(each.challenger)}"
        for each in comparison.metrics
        if each.has_several_judges
    ]
    return [*remarks, *partly, *judged]


def _judges(side: SideFigures) -> str:
    return ", ".join(f"{judge} ({count})" for judge, count in side.judges.items()) or "none named"


def _value(each: MetricComparison) -> Sequence[str] | None:
    found = each.value
    if found is None:
        return None
    return (
        *(short_name(each.metric), each.level, each.pairing, _number(found)),
        *(figure(found.base_mean), figure(found.challenger_mean)),
        *(_signed(found.difference), _interval(found), _p(found.p_value), _p(found.p_value_holm)),
    )


def _verdicts(each: MetricComparison) -> Sequence[str] | None:
    found = each.verdicts
    rate = each.pass_rate
    if rate is None:
        return None
    shown = (
        short_name(each.metric),
        each.level,
        _rates(rate),
        _rate_interval(rate),
    )
    if found is None:
        return (*shown, "0", *[NONE] * 5)
    return (
        *shown,
        str(found.both_passed + found.both_failed + found.to_failed + found.to_passed),
        *(str(found.to_failed), str(found.to_passed), _p(found.p_value), _p(found.p_value_holm)),
        NONE if found.kappa is None else figure(found.kappa),
    )


def _gate(gate: MetricComparison) -> Sequence[str]:
    found = gate.verdicts
    rate = gate.pass_rate
    sides = (f"{side.passed} of {side.passed + side.failed}" for side in (gate.base, gate.challenger))
    return (
        *("accepted", *sides),
        *((NONE, NONE) if rate is None else (_rates(rate), _rate_interval(rate))),
        *([NONE] * 3 if found is None else (str(found.to_failed), str(found.to_passed), _p(found.p_value))),
    )


def _not_evaluated(each: MetricComparison) -> Sequence[str] | None:
    if not (each.base.not_evaluated or each.challenger.not_evaluated):
        return None
    sides = (_reasons(side.not_evaluated) for side in (each.base, each.challenger))
    return (short_name(each.metric), each.level, *sides, str(each.lost_values), str(each.gained_values))


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "0"


def _cost(each: MetricComparison) -> Sequence[str] | None:
    sides = (each.base, each.challenger)
    if not any(side.cost_usd or side.input_tokens or side.output_tokens or side.cached for side in sides):
        return None
    found = each.cost_usd
    return (
        *(short_name(each.metric), each.level, figure(each.base.cost_usd), figure(each.challenger.cost_usd)),
        *((NONE, NONE) if found is None else (_signed(found.difference), _interval(found))),
        f"{_tokens(each.base)} to {_tokens(each.challenger)}",
        f"{each.base.cached} to {each.challenger.cached}",
    )


def _tokens(side: SideFigures) -> str:
    return str(side.input_tokens + side.output_tokens)


def _bound(bound: BoundCheck) -> Sequence[str]:
    return (
        *(short_name(bound.metric), bound.level or NONE, _BOUND_NAMES[bound.kind]),
        "count" if bound.kind == "max_flips" else bound.on,
        threshold_figure(bound.limit),
        NONE if bound.measured is None else _exactly(bound),
        "kept" if bound.kept else f"broken: {bound.reason}" if bound.reason else "broken",
    )


def _exactly(bound: BoundCheck) -> str:
    """Returns what was measured, with enough digits to see on which side of the limit it is."""
    measured = bound.measured or 0.0
    if bound.kind == "max_flips":
        return f"{measured:.0f}"
    shown = figure(measured)
    is_true_to_limit = (float(shown.replace(",", "")) <= bound.limit) == (measured <= bound.limit)
    return shown if is_true_to_limit else repr(measured)


def _flip(flip: Flip, *, is_gate: bool) -> FlipText:
    subject = flip.subject_id or (f"segment {flip.segment}" if flip.segment else "session")
    change = " to ".join(_decision(side) if is_gate else _verdict(side) for side in (flip.base, flip.challenger))
    return FlipText(
        flip.session_id, f"{flip.session_id}  {subject}", change, flip.base.rationale, flip.challenger.rationale
    )


def _decision(side: FlipSide) -> str:
    return "accepted" if side.status == "PASSED" else "rejected"


def _verdict(side: FlipSide) -> str:
    needs = (
        "" if side.threshold is None or side.status == "PASSED" else f" (needs {needed(side.value, side.threshold)})"
    )
    return f"{figure(side.value, side.threshold)} {side.status}{needs}"


def _name(each: MetricComparison) -> str:
    return f"{short_name(each.metric)} ({each.level})"


def _number(found: Difference) -> str:
    if found.base_values == found.challenger_values:
        return str(found.base_values)
    return f"{found.base_values} and {found.challenger_values}"


def _signed(value: float) -> str:
    return f"+{figure(value)}" if value > 0 else figure(value)


def _interval(found: Difference) -> str:
    if found.low is None or found.high is None:
        return NONE
    return f"{_signed(found.low)} to {_signed(found.high)}"


def _rates(found: Difference) -> str:
    return f"{found.base_mean:.1%} to {found.challenger_mean:.1%}"


def _rate_interval(found: Difference) -> str:
    if found.low is None or found.high is None:
        return NONE
    return f"{found.low:+.1%} to {found.high:+.1%}"


def _p(value: float | None) -> str:
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
