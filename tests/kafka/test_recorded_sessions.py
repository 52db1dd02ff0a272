"""Recorded sessions of a real agent on Apache Kafka, if there are some."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.support.recorded import check_recorded_sessions, recorded_sessions


@pytest.fixture(scope="module", autouse=True)
def file() -> Path:
    """Asked for first: without the file no Kafka is started."""
    return recorded_sessions()


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_each_is_closed_valued_and_decided_once_though_emitted_twice(kafka: str, tmp_path: Path) -> None:
    check_recorded_sessions(kafka, f"recorded-{uuid.uuid4().hex[:8]}.", tmp_path)
