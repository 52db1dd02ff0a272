"""Plays simulations in processes of their own, because a simulation replaces the clocks of its process.

All but one of these tests are for `make test-simulation`, because each takes 10 to 30 s of CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from traceweir.streams.worker.runtime.row_formats import FORMAT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def simulate(*words: str) -> tuple[int, str]:
    done = run("tests.simulation", *words)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.simulation
def test_nothing_is_wrong_after_faults() -> None:
    code, printed = simulate("--from", "1", "--count", "3", "--jobs", "1", "--seconds", "280")
    assert code == 0, printed
    assert "3 seeds (" in printed
    assert " 0 wrong" in printed


@pytest.mark.simulation
def test_nothing_is_wrong_when_configs_are_pushed_beside_faults() -> None:
    code, printed = simulate("--from", "1012", "--count", "2", "--jobs", "1", "--seconds", "280")
    assert code == 0, printed
    assert "2 seeds (" in printed
    assert " 0 wrong" in printed
    assert "config pushed: " in printed
    assert "record that is no config: " in printed


@pytest.mark.simulation
def test_the_gate_rests_on_no_judge_without_a_certificate_beside_faults() -> None:
    code, printed = simulate("--from", "1025", "--count", "2", "--jobs", "1", "--seconds", "280")
    assert code == 0, printed
    assert " 0 wrong" in printed
    assert "certificate pushed: " in printed


@pytest.mark.simulation
@pytest.mark.parametrize(("seed", "reads_anchors"), [(1043, False), (1059, True)])
def test_each_alert_is_raised_and_resolved_once_beside_faults(seed: int, reads_anchors: bool) -> None:
    """In one of them an alert is raised for so long that a watch reads the verdicts on anchors."""
    code, printed = simulate("--seed", str(seed), "--trace")
    assert code == 0, printed
    assert " is frozen " in printed
    assert ("the verdicts on anchors are read" in printed) == reads_anchors


@pytest.mark.simulation
@pytest.mark.parametrize("seed", [pytest.param(3, id="workers"), pytest.param(1043, id="watches")])
def test_a_seed_gives_the_same_records_in_every_run(seed: int) -> None:
    first, second = (simulate("--seed", str(seed), "--trace") for _ in range(2))
    assert first == second
    assert "digest" in first[1]


@pytest.mark.simulation
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1020, id="a pushed config equals the config file: a fault of the audit"),
    ],
)
def test_what_a_seed_has_found_stays_mended(seed: int) -> None:
    code, printed = simulate("--seed", str(seed), "--seconds", "30")
    assert code == 0, printed


@pytest.mark.simulation
def test_a_bug_is_found_and_its_story_printed() -> None:
    code, printed = simulate("--seed", "14", "--bug", "strays_are_forwarded_twice", "--seconds", "30")
    assert code == 1, printed
    assert "WRONG: " in printed
    assert " raise" not in printed.split("WRONG: ", 1)[1], "the patch or the simulation itself is broken"
    assert " s  w1 starts" in printed


@pytest.mark.simulation
@pytest.mark.parametrize(
    "bug",
    [
        "certificate_that_has_ended_counts",
        "counters_are_not_restored",
        "position_from_the_group",
        "retry_publishes_without_a_new_value",
        "spans_of_other_partitions_are_dropped",
        "state_is_written_before_the_alerts",
        "strays_are_forwarded_twice",
    ],
)
def test_a_bug_is_found_where_the_file_says_or_at_another_seed(bug: str) -> None:
    code, printed = simulate("--bugs", bug, "--jobs", "1")
    assert code == 0, printed
    assert "1 bugs played, not found: none" in printed


def test_a_seed_without_the_bug_is_right() -> None:
    code, printed = simulate("--seed", "14")
    assert code == 0, printed
    assert "WRONG" not in printed


@pytest.mark.simulation
def test_a_group_writes_the_next_format_of_rows_when_the_last_worker_that_does_not_read_it_has_left() -> None:
    done = run("tests.simulation.rolling_upgrade")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown.pop("wrong") == {}
    present, both, more, left, following = shown.values()
    assert [each["formats"] for each in shown.values()] == [[FORMAT]] * 4 + [[FORMAT + 1]]
    assert [each["rows"]["done"] for each in (present, both, more, left)] == [0, 0, 0, 0]
    assert all(before["rows"]["d"] < after["rows"]["d"] for before, after in pairwise((present, both, more, left)))
    assert following["rows"]["done"] > 0
    # Old workers take partitions over from new ones, and none ends.
    assert all(isinstance(owned, list) for owned in more["workers"].values())
    assert sorted(number for owned in more["workers"].values() for number in owned) == [0, 1, 2, 3]
    assert left["workers"]["present-2"] == following["workers"]["present"] == "exit 0"
    assert following["workers"]["next"] == [0, 1, 2, 3]
