"""The small charts show the course of rates and of means of any size."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.scoring import NOW

from traceweir.streams.board.dashboard.page.charts import sparkline
from traceweir.streams.board.store.answers import SeriesPoint


def spark(means: list[float], **counts: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"metric": "latency", "level": "session", "results": 40, "evaluated": 40}
    series = [
        SeriesPoint(
            **fields | {"begins_at": NOW + timedelta(minutes=at), "mean": mean, "passed": 0, "failed": 0} | counts
        )
        for at, mean in enumerate(means)
    ]
    found = sparkline(series, ("latency", "session"), 60)
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
    assert (found["of"], found["values"], found["margin"]) == ("pass rate", [75.0, 75.0], 2)
