"""Tests the simulation of anchors on few runs, with seeds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.anchors import JudgeWorld, calm, simulated

pytestmark = pytest.mark.slow


def test_a_silent_bump_is_the_judges_and_a_drop_is_the_agents() -> None:
    bump = [simulated(JudgeWorld(stricter=0.2), np.random.default_rng(seed)).said for seed in range(3)]
    drop = [simulated(JudgeWorld(dropped=0.2), np.random.default_rng(seed)).said for seed in range(3)]
    assert [said.verdict for said in bump if said is not None] == ["judge"] * 3
    assert [said.verdict for said in drop if said is not None] == ["agent"] * 3


def test_a_judge_is_found_while_the_scores_of_the_agent_stay() -> None:
    found = simulated(JudgeWorld(stricter=0.05, milder=0.45), np.random.default_rng(1))
    assert found.alarm is None
    assert found.judge is not None


def test_a_calm_stream_rings_only_by_the_z_test() -> None:
    assert calm(JudgeWorld(), np.random.default_rng(1), days=30) == (False, True)
