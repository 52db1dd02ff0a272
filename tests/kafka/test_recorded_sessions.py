"""Recorded sessions of a real agent pass a worker on Apache Kafka; skipped if there are none."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.support.recorded import check_recorded_sessions, recorded_sessions


@pytest.fixture(scope="module", autouse=True)
def file() -> Path:
    """Skips the module before Kafka is started if the file is missing."""
    return recorded_sessions()


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_a_recorded_session_that_is_emitted_twice_is_closed_scored_and_decided_once(kafka: str, tmp_path: Path) -> None:
    check_recorded_sessions(kafka, f"recorded-{uuid.uuid4().hex[:8]}.", tmp_path)
