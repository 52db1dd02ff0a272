"""Charts show the whole span with its gaps, and small ones the trend of rates and of means of any size."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.scoring import NOW

from traceweir.streams.board.dashboard.page.charts import MAX_MARKS, count_chart, mean_chart, pass_rate_chart, sparkline
from traceweir.streams.board.dashboard.page.marks import ChartMark, marks_of
from traceweir.streams.board.store.answers import Change, SeriesPoint
from traceweir.streams.board.store.missing_answers import CountPoint
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.worker.config_topic import TopicState

SPAN = Selection(NOW - timedelta(minutes=2), NOW + timedelta(minutes=6))


def spark(means: list[float], **counts: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"metric": "latency", "level": "session", "results": 40, "evaluated": 40}
    series = [
        SeriesPoint(
            **fields | {"begins_at": NOW + timedelta(minutes=at), "mean": mean, "passed": 0, "failed": 0} | counts
        )
        for at, mean in enumerate(means)
    ]
    found = sparkline(series, ("latency", "session"), 60, SPAN)
    assert found is not None
    return found


@pytest.mark.parametrize("scale", [0.001, 1.0, 1e6])
def test_the_margin_of_means_is_a_tenth_of_their_range(scale: float) -> None:
    found = spark([2 * scale, 3 * scale])
    assert found["of"] == "mean"
    assert found["margin"] == pytest.approx(0.1 * scale)


@pytest.mark.parametrize("mean", [0.0, -3.0, 5e5])
def test_equal_means_have_a_margin(mean: float) -> None:
    assert spark([mean, mean])["margin"] > 0


def test_rates_have_the_same_margin_everywhere() -> None:
    found = spark([2.0, 3.0], passed=30, failed=10)
    assert (found["of"], found["margin"]) == ("pass rate", 2)
    assert found["values"] == [None, None, 75.0, 75.0, None, None, None, None]


def points(*minutes: int, metric: str = "match", passed: int = 30) -> list[SeriesPoint]:
    common: dict[str, Any] = {"metric": metric, "level": "session", "results": 40, "evaluated": 40, "mean": 0.5}
    return [
        SeriesPoint(begins_at=NOW + timedelta(minutes=minute), passed=passed, failed=40 - passed, **common)
        for minute in minutes
    ]


def test_the_axis_is_the_chosen_span_and_gaps_are_gaps() -> None:
    place = ("match", "session")
    for chart in (pass_rate_chart, mean_chart):
        found = chart(points(0, 3), [place], [], 60, SPAN)

        assert found is not None
        assert found["span"] == [SPAN.since.timestamp(), SPAN.until.timestamp()]
        assert [at - found["x"][0] for at in found["x"]] == [60 * minute for minute in range(8)]
        (line,) = found["lines"]
        assert [at for at, value in enumerate(line["values"]) if value is not None] == [2, 5]


def test_one_point_of_today_makes_no_axis_of_its_own() -> None:
    month = Selection(NOW - timedelta(days=30), NOW + timedelta(hours=6))
    found = pass_rate_chart(points(0), [("match", "session")], [], 21_600, month)
    assert found is not None
    assert (len(found["x"]), found["span"][0]) == (121, month.since.timestamp())


def test_steps_without_any_result_of_any_metric_are_an_outage() -> None:
    series = [*points(0, 3), *points(1, metric="other")]
    found = pass_rate_chart(series, [("match", "session")], [], 60, SPAN)
    assert found is not None
    assert [(at - NOW.timestamp()) // 60 for at in found["empty"]] == [-2, -1, 2, 4, 5]


def test_every_version_config_model_and_judge_is_marked() -> None:
    kinds = ["agent_version", "config_digest", "model", "judge"]
    changes = [Change(kind=kind, value="v" * 20, agent_name=None, first_seen_at=NOW) for kind in kinds * 10]
    found = pass_rate_chart(points(0, 3), [("match", "session")], marks_of(changes, TopicState()), 60, SPAN)
    assert found is not None
    assert len(found["marks"]) == 40
    assert {each["label"] for each in found["marks"]} == {
        "v" * 20,
        "config vvvvvvvv",
        f"model {'v' * 20}",
        f"judge {'v' * 20}",
    }


def test_counts_are_zero_where_there_is_none() -> None:
    counts = [CountPoint(begins_at=NOW + timedelta(minutes=at), reason="not_json", number=2) for at in (0, 2)]
    found = count_chart(counts, [], 60, SPAN)
    assert found is not None
    assert [(line["label"], line["values"]) for line in found["lines"]] == [("not json", [0, 0, 2, 0, 2, 0, 0, 0])]
    assert (found["empty"], count_chart([], [], 60, SPAN)) == ([], None)


def test_many_alerts_remove_the_oldest_alerts_and_no_mark_of_a_version() -> None:
    minute = timedelta(minutes=1)
    changes = marks_of(
        [Change(kind="agent_version", value="2", agent_name=None, first_seen_at=NOW - 500 * minute)], TopicState()
    )
    alerts = [ChartMark(NOW - at * minute, f"alert {at}", (NOW - at * minute, NOW)) for at in range(2 * MAX_MARKS)]
    found = pass_rate_chart(points(0, 3), [("match", "session")], [*changes, *alerts], 60, SPAN)
    assert found is not None
    expected = ["2", *(f"alert {at}" for at in reversed(range(MAX_MARKS - 1)))]
    assert [each["label"] for each in found["marks"]] == expected
