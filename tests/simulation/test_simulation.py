"""Plays simulations in processes of their own, because a simulation replaces the clocks of its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def simulate(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_wrong_after_faults() -> None:
    code, printed = simulate("--from", "1", "--count", "3", "--jobs", "1", "--seconds", "280")
    assert code == 0, printed
    assert "3 seeds (" in printed
    assert " 0 wrong" in printed


def test_nothing_is_wrong_when_configs_are_pushed_beside_faults() -> None:
    code, printed = simulate("--from", "1012", "--count", "2", "--jobs", "1", "--seconds", "280")
    assert code == 0, printed
    assert "2 seeds (" in printed
    assert " 0 wrong" in printed
    assert "config pushed: " in printed
    assert "record that is no config: " in printed


def test_a_seed_gives_the_same_records_in_every_run() -> None:
    first, second = (simulate("--seed", "3", "--trace") for _ in range(2))
    assert first == second
    assert "digest" in first[1]


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1020, id="a pushed config equals the config file: a fault of the audit"),
    ],
)
def test_what_a_seed_has_found_stays_mended(seed: int) -> None:
    code, printed = simulate("--seed", str(seed), "--seconds", "30")
    assert code == 0, printed


def test_a_bug_is_found_and_its_story_printed() -> None:
    code, printed = simulate("--seed", "14", "--bug", "strays_are_forwarded_twice", "--seconds", "30")
    assert code == 1, printed
    assert "WRONG: " in printed
    assert " raise" not in printed.split("WRONG: ", 1)[1], "the patch or the simulation itself is broken"
    assert " s  w1 starts" in printed


@pytest.mark.parametrize(
    "bug",
    [
        "counters_are_not_restored",
        "position_from_the_group",
        "retry_publishes_without_a_new_value",
        "spans_of_other_partitions_are_dropped",
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
