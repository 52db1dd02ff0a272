"""Checkpoints come at once after a pause, and not faster than the interval under load."""

from __future__ import annotations

import itertools
import math

import pytest

from traceweir.streams.worker.runtime.checkpoint_pace import BURST, MIN_GAP_S, PATIENCE, QUIET_S, CheckpointPace

INTERVAL_S = 0.05


def starts(seconds: float, *, urgent: bool = True, behind: bool = False) -> list[float]:
    """Returns when checkpoints begin if one is always due."""
    pace, now, found = CheckpointPace(INTERVAL_S), 0.0, list[float]()
    while now < seconds:
        last = found[-1] if found else -math.inf
        now += max(0.0, pace.wait_s(now, last, urgent=urgent, behind=behind))
        pace.begin(now)
        found.append(now)
    return found


def test_the_first_checkpoint_waits_for_nothing() -> None:
    assert CheckpointPace(INTERVAL_S).wait_s(7.0, -math.inf, urgent=True, behind=False) <= 0
    assert CheckpointPace(INTERVAL_S).wait_s(7.0, -math.inf, urgent=False, behind=True) <= 0


def test_after_a_pause_the_three_checkpoints_of_a_session_come_with_the_minimum_gap() -> None:
    assert starts(1.0)[: BURST + 1] == pytest.approx([MIN_GAP_S * number for number in range(BURST + 1)])


def test_under_load_there_is_one_checkpoint_per_interval() -> None:
    found = starts(60.0)
    assert len(found) == pytest.approx(60 / INTERVAL_S, abs=BURST + 2)
    assert [after - before for before, after in itertools.pairwise(found[10:])] == pytest.approx(
        [INTERVAL_S] * (len(found) - 11)
    )


@pytest.mark.parametrize("urgent", [True, False])
def test_far_behind_the_checkpoints_are_rarer(urgent: bool) -> None:
    assert len(starts(60.0, urgent=urgent, behind=True)) == pytest.approx(60 / INTERVAL_S / PATIENCE, abs=2)


def test_without_outputs_there_is_one_checkpoint_a_second() -> None:
    assert len(starts(60.0, urgent=False)) == pytest.approx(60 / QUIET_S, abs=2)


@pytest.mark.parametrize(("interval_s", "quiet_s"), [(0.01, 0.5), (0.1, 1.0), (1.0, 8.0)])
def test_without_outputs_a_checkpoint_never_comes_sooner_than_far_behind(interval_s: float, quiet_s: float) -> None:
    pace = CheckpointPace(interval_s)
    pace.begin(1.0)
    assert pace.wait_s(1.0, 1.0, urgent=False, behind=False) == pytest.approx(quiet_s)


def test_an_interval_below_the_minimum_gap_is_kept() -> None:
    pace = CheckpointPace(0.001)
    for _ in range(20):
        pace.begin(1.0)
    assert pace.wait_s(1.0, 1.0, urgent=True, behind=False) == pytest.approx(0.001 * (20 - BURST))
    fresh = CheckpointPace(0.001)
    fresh.begin(1.0)
    assert fresh.wait_s(1.0, 1.0, urgent=True, behind=False) == pytest.approx(0.001)


def test_a_partition_without_outputs_does_not_wait_for_the_checkpoints_of_others() -> None:
    pace = CheckpointPace(INTERVAL_S)
    pace.begin(5.0)
    assert pace.wait_s(5.0, 3.0, urgent=False, behind=False) == pytest.approx(3.0 + QUIET_S - 5.0)
    assert pace.wait_s(5.0, 3.0, urgent=True, behind=False) == pytest.approx(MIN_GAP_S)


def test_partitions_that_are_far_behind_come_into_step() -> None:
    pace, now = CheckpointPace(INTERVAL_S), 1.0
    lasts, checkpoints = [0.9, 0.95, 1.0], list[int]()
    for _ in range(10):
        waits = [pace.wait_s(now, last, urgent=True, behind=True) for last in lasts]
        now += min(waits)
        due = [number for number, wait in enumerate(waits) if wait <= min(waits) + pace.early_s(behind=True)]
        lasts = [now if number in due else last for number, last in enumerate(lasts)]
        checkpoints.append(len(due))
    assert checkpoints[-5:] == [3] * 5
