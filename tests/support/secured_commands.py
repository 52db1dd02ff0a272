"""Runs commands of Traceweir against a secured Kafka, and waits for what a worker writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.audit.committed import Committed
from tests.support.workers import Worker

from traceweir.streams.testing import event, trace

PATIENCE_S = 90
COMMAND_LIMIT_S = 60
"""Limit in seconds; a command that runs longer retries without end."""
SESSIONS = 6


def traceweir(*arguments: str, prefix: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "traceweir.streams.cli.main", *arguments],
        env={**os.environ, "TRACEWEIR_TOPIC_PREFIX": prefix, **variables},
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )


def sample(folder: Path, first: int) -> Path:
    """Writes a file of sessions, each with one trace and its end."""
    file = folder / f"{first}.jsonl"
    names = [f"s{number}" for number in range(first, first + SESSIONS)]
    documents = [each for name in names for each in (trace(name, name), event("session.ended", name, 1))]
    file.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return file


def until(holds: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    """Reads until the condition holds; fails the test if the worker ends or the deadline passes."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if worker.ended or time.monotonic() > deadline:
            found = {topic: len(rows) for topic, rows in committed.rows.items()}
            pytest.fail(
                f"the condition did not hold in time; there are {found}; the worker's log:\n{worker.log.read_text()}"
            )
        committed.read(0.1)
