"""Tests the benchmark of watching on a few streams: its traffic counts, and its parts are measured."""

from __future__ import annotations

import pytest
from benchmarks.alerts_watch import METRICS, PARTS, WARM_MINUTES, watched

pytestmark = pytest.mark.slow


def test_all_streams_are_watched_and_written_and_each_part_is_measured() -> None:
    used = watched(minutes=1, apps=2, scores=20)
    assert used.scores == 20 * 60
    assert used.streams == 2 * METRICS
    assert {*PARTS, "load", "write"} == used.seconds.keys()
    # Each row has the history of a stream.
    assert used.written["stream"] > 2 * METRICS * 8_000
    # Open minutes are not written, only the sessions of those that are over.
    assert used.written["seen"] < 20 * 60 * WARM_MINUTES * 8
    assert "open" not in used.written
