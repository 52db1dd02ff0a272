"""Tests the simulation of alerts on few streams, with seeds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.alerts import ON_LINE, World, detector, old_rule, on_line, oracle

pytestmark = pytest.mark.slow


def test_the_old_rule_rings_without_a_change_and_the_detector_does_not() -> None:
    world = World(100, 0.7, families=20)
    assert old_rule(world, np.random.default_rng(1), 10).false > 10
    assert detector(world, np.random.default_rng(1), 10).false == 0


def test_streams_whose_baselines_are_short_share_one_promise() -> None:
    world = World(5, 0.8, streams=20, families=5)
    assert detector(world, np.random.default_rng(2), 10).false == 0


def test_a_drop_is_found_in_every_run_and_not_before_the_one_who_knows_it() -> None:
    world = World(500, 0.9, dropped=0.1, families=50)
    found = detector(world, np.random.default_rng(3), 3)
    known = oracle(world, np.random.default_rng(3), 3)
    assert found.false == 0
    assert np.isfinite(found.delays).all()
    assert np.median(known.delays) <= np.median(found.delays) < 4 * np.median(known.delays)
    assert not np.isfinite(old_rule(world, np.random.default_rng(3), 2).delays).any()


def test_on_the_line_the_mean_time_to_an_alarm_is_not_below_the_promise() -> None:
    passing, sessions = ON_LINE[0]
    runs, mean = on_line(passing, sessions, np.random.default_rng(4), runs=100).split(" | ")
    share, half = (float(part) for part in mean.split(" +/- "))
    assert runs == "100"
    assert share + half >= 1
    assert share - half < 2
