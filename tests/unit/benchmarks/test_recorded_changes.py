"""Tests the planted changes on a few invented sessions: what is drawn, and that a change is found and named."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.recorded_changes import CHANGE, Recorded, calm, changed_rows, changes, drawn, said

from traceweir.streams.base.statistics.watched_stream import DAY

pytestmark = pytest.mark.slow

# Four tasks, each played five times: the first metric is the success, and a tool fails in the last task.
SUCCEEDED = np.array([number % 5 < 4 for number in range(20)])
FOUND = Recorded(
    ["`success` >= 1", "`no_tool_errors` >= 1"],
    np.stack([SUCCEEDED, np.arange(20) < 15], axis=1),
    SUCCEEDED,
    np.arange(20) // 5,
)


def test_chances_have_the_sum_one_and_replace_what_they_say() -> None:
    always, half, tool = changes(FOUND)
    rates = []
    for each in (always, half, tool):
        assert each.after is not None
        assert each.after.sum() == pytest.approx(1)
        rates.append((each.after @ FOUND.passed).round(3).tolist())
    assert rates == [[0.0, 0.75], [0.4, 0.75], [0.8, 0.6]]


def test_in_bursts_the_sessions_of_ten_minutes_are_of_one_task() -> None:
    _, bursts = calm(FOUND)
    sessions = drawn(FOUND, bursts, DAY, np.random.default_rng(1))
    tasks: dict[int, set[int]] = {}
    for minute, place in sessions:
        tasks.setdefault(minute // 10, set()).add(int(FOUND.tasks[place]))
    assert len(tasks) > 100
    assert {len(each) for each in tasks.values()} == {1}
    assert set().union(*tasks.values()) == {0, 1, 2, 3}


def test_a_change_is_found_after_it_came_and_its_version_is_named() -> None:
    always = changes(FOUND)[0]
    sessions = drawn(FOUND, always, CHANGE + 300, np.random.default_rng(2))
    alerts = said(FOUND, always, sessions)
    (alert,) = alerts["`success` >= 1"]
    assert alerts["`no_tool_errors` >= 1"] == []
    assert (alert.suspects[0].field, alert.suspects[0].value) == ("agent_version", "2")
    assert alert.onset.earliest <= alert.suspects[0].first_seen <= alert.since


@pytest.mark.large
def test_a_row_says_whether_and_when() -> None:
    rows = changed_rows(FOUND, 1)
    assert rows[-1] == "False alarms before a change: 0"
    first = next(row for row in rows if row.startswith("| a version that always fails | `success`"))
    assert first.split(" | ")[2:4] == ["0.800, 0.000", "1 of 1"]
