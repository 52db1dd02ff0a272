"""Times in which a metric had results and no values are found; values that are missing by chance are none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.support.scoring import NOW

from traceweir.streams.board.dashboard.page.charts import mean_chart, pass_rate_chart
from traceweir.streams.board.dashboard.page.outages import Outage, outages
from traceweir.streams.board.store.answers import SeriesPoint
from traceweir.streams.board.store.selection import Selection

SPAN = Selection(NOW, NOW + timedelta(hours=1))


def series(evaluated: list[int], metric: str = "judged", level: str = "session", results: int = 4) -> list[SeriesPoint]:
    """Returns a point for each minute, with as many values as named."""
    return [
        SeriesPoint(
            begins_at=NOW + timedelta(minutes=minute), metric=metric, level=level, results=results, evaluated=number,
            passed=number, failed=0, mean=1.0 if number else None,
        )
        for minute, number in enumerate(evaluated)
    ]  # fmt: skip


def test_an_outage_of_a_judge_is_found_to_the_minute_and_shaded_on_its_charts() -> None:
    points = [*series([4] * 20 + [0] * 5 + [4] * 35), *series([4] * 60, "by code")]

    found = outages(points, 60)

    since = NOW + timedelta(minutes=20)
    until = NOW + timedelta(minutes=25)
    assert found == [Outage("judged", since, until, 20)]
    for chart in (pass_rate_chart, mean_chart):
        of_judge = chart(points, [("judged", "session")], [], 60, SPAN, found)
        of_code = chart(points, [("by code", "session")], [], 60, SPAN, found)
        assert of_judge is not None
        assert of_code is not None
        assert of_judge["without_values"] == [[since.timestamp(), until.timestamp()]]
        assert of_code["without_values"] == []


def test_a_time_without_results_does_not_end_an_outage() -> None:
    points = [each for each in series([4] * 20 + [0] * 6 + [4] * 34) if each.begins_at.minute % 3]
    ((_, since, until, results),) = outages(points, 60)
    assert (results % 4, until - since > timedelta(minutes=3)) == (0, True)


def test_few_results_without_a_value_are_no_outage() -> None:
    assert outages(series([4] * 20 + [0] * 2 + [4] * 38), 60) == []


@pytest.mark.slow
def test_values_that_are_missing_by_chance_are_no_outage() -> None:
    chance = random.Random(5)
    found = 0
    for _ in range(200):
        found += len(outages(series([int(chance.random() < 0.4) for _ in range(500)], results=1), 60))
    assert found <= 0.05 * 200


def test_a_metric_without_any_value_has_no_outage() -> None:
    assert outages(series([0] * 60), 60) == []


def test_the_results_of_sessions_count_before_those_of_invocations() -> None:
    points = [*series([4] * 20 + [0] * 5 + [4] * 35), *series([8] * 60, level="invocation", results=8)]
    assert [each.results for each in outages(points, 60)] == [20]


def test_sessions_whose_results_lack_their_values_together_are_no_outage() -> None:
    chance = random.Random(1)
    found = 0
    for _ in range(100):
        points = []
        for minute in range(60):
            # Each session has 15 invocations; in every sixth minute there is one session.
            valued = [chance.random() >= 0.3 for _ in range(4 if minute % 6 else 1)]
            (point,) = series([15 * sum(valued)], level="invocation", results=15 * len(valued))
            points.append(point.model_copy(update={"begins_at": NOW + timedelta(minutes=minute)}))
        found += len(outages(points, 60))
    assert found <= 0.05 * 100


def test_an_outage_is_found_among_invocations_too() -> None:
    chance = random.Random(1)
    evaluated = [0 if minute in range(20, 30) else 15 * (chance.random() < 0.7) for minute in range(60)]
    assert [each.results for each in outages(series(evaluated, level="invocation", results=15), 60)] != []


def test_many_metrics_are_looked_at_once_each() -> None:
    class Counting(list[SeriesPoint]):
        passes = 0

        def __iter__(self) -> Iterator[SeriesPoint]:
            self.passes += 1
            return super().__iter__()

    points = Counting(each for name in range(50) for each in series([4] * 3, str(name)))
    outages(points, 60)
    assert points.passes <= 3
