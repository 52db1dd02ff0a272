"""Computes now and then how far judges agree with people, as metrics for Prometheus. No scrape waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.repeated_look import LookPace, RepeatedLook
from traceweir.streams.board.store.judged import judged_scores
from traceweir.streams.board.store.labels import given_labels, labelled_criteria
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.worker.telemetry import tool_catalogue
from traceweir.streams.worker.telemetry.catalogue import Instrument
from traceweir.streams.worker.telemetry.measured import Point

if TYPE_CHECKING:
    from traceweir.streams.base.statistics.people_only import Estimated
    from traceweir.streams.lab.trust import LabelledScores

FIRST_LOOK_AFTER_S = 20.0
"""Seconds from the start to the first computation, so that the store has read what waits."""
LOOK_EVERY_S = 300.0
"""Least seconds between two computations."""
DAYS = 30
"""The days up to now whose sessions count."""
MAX_CRITERIA = 50
"""The most criteria, those with the most random reviews."""
MAX_JUDGES = 10
"""The most judges of a criterion, those with the latest scores."""
_VALUE_CHARS = 120
_Attributes = tuple[str, str]
"""Criterion and judge, as the metrics have them."""


def trust_look(store: Readable, now: Callable[[], datetime]) -> RepeatedLook[Sequence[Point]]:
    """Returns what computes the points of the metrics now and then, whether somebody looks or not; none before the first time.

    Args:
        store: Has scores and labels.
        now: The clock.
    """

    async def read(at: datetime) -> Sequence[Point]:
        return await _points(store, at)

    def former(points: Sequence[Point], _problem: str) -> Sequence[Point]:
        # The time among them tells their age.
        return points

    points: Sequence[Point] = ()
    return RepeatedLook(
        "the labels for the metrics of trust", read, points, former, LookPace(LOOK_EVERY_S, FIRST_LOOK_AFTER_S), now
    )


async def _points(store: Readable, now: datetime) -> Sequence[Point]:
    since = now - timedelta(days=DAYS)
    criteria = await asyncio.to_thread(labelled_criteria, store, since, MAX_CRITERIA)
    series: dict[_Attributes, list[Point]] = {}
    for criterion in criteria:
        # One after another, so that the dashboard can end between two.
        selection = Selection(since, now + timedelta(minutes=1), metric=criterion)
        found = await asyncio.to_thread(_series, store, selection)
        # Two long names can be the same when they are cut, and a scrape with two series of one name fails as a whole.
        series = {**found, **series}
    points = [point for each in series.values() for point in each]
    return [*points, Point(tool_catalogue.TRUST_TIME, (), now.timestamp())]


def _series(store: Readable, selection: Selection) -> dict[_Attributes, list[Point]]:
    """Returns the points of each judge of the selected criterion: those of its newest prompt, options and scorer.

    Of judges whose names are the same when they are cut, the one with the latest score is there.
    """
    # NumPy and SciPy are imported where they are needed: a dashboard without labels does without.
    from traceweir.streams.lab.trust import joined

    criterion = selection.metric or ""
    scores, _ = judged_scores(store, selection)
    newest: dict[str, tuple[datetime, LabelledScores]] = {}
    for group in joined(scores, given_labels(store, criterion, selection.since)).groups:
        if group.subjects is None:
            continue
        found = max(score.occurred_at for score in group.scores), group
        judge = group.measured.judge
        newest[judge] = max(newest.get(judge, found), found, key=lambda each: each[0])
    latest = sorted(newest.items(), key=lambda each: each[1][0], reverse=True)[:MAX_JUDGES]
    found_series: dict[_Attributes, list[Point]] = {}
    for judge, (_, group) in latest:
        attributes = printable(criterion, _VALUE_CHARS), printable(judge, _VALUE_CHARS)
        if attributes not in found_series:
            found_series[attributes] = list(_of_judge(attributes, group))
    return found_series


def _of_judge(attributes: _Attributes, group: LabelledScores) -> Iterator[Point]:
    from traceweir.streams.base.statistics.rate_statement import state_rate

    if group.subjects is None:
        return
    stated = state_rate(group.subjects)
    yield Point(tool_catalogue.TRUST_LABELS, attributes, stated.labels)
    yield Point(tool_catalogue.TRUST_RAW, attributes, stated.raw)
    if stated.value is not None and stated.low is not None and stated.high is not None:
        yield from _with_bounds(tool_catalogue.TRUST_CORRECTED, attributes, (stated.value, stated.low, stated.high))
    made = group.agreement
    if made is not None:
        yield from _of_rate(tool_catalogue.TRUST_TPR, attributes, made.passing)
        yield from _of_rate(tool_catalogue.TRUST_TNR, attributes, made.failing)


def _of_rate(instrument: Instrument, attributes: _Attributes, found: Estimated | None) -> Iterator[Point]:
    if found is not None:
        yield from _with_bounds(instrument, attributes, (found.value, found.low, found.high))


def _with_bounds(
    instrument: Instrument, attributes: _Attributes, values: tuple[float, float, float]
) -> Iterator[Point]:
    for bound, value in zip(("estimate", "low", "high"), values, strict=True):
        yield Point(instrument, (*attributes, bound), value)
