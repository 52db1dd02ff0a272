"""Nothing of a worker grows in three days, and a leak is found. The days are virtual: they take a minute or two of CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.simulation]

ROOT = Path(__file__).parents[2]


def run(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.long_run", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


@pytest.mark.timeout(620)
def test_nothing_grows_in_72_hours() -> None:
    shown = run("--hours", "72")
    assert shown["grown"] == {}
    assert shown["losses"] == [], "the worker has lost its partitions, although nothing disturbs it"
    assert shown["sessions"] > 300
    assert shown["places"] > 1_000


def test_a_leak_is_found_at_its_place() -> None:
    shown = run("--hours", "12", "--leak")
    assert "leak.<locals>.apply_and_keep.kept" in shown["grown"]
