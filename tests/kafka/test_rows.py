"""Evaluation rows that pass a worker on Apache Kafka have the scores that `score` computes for the file."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.support.recorded_rows import check_rows


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_online_and_offline_scores_are_equal(kafka: str, tmp_path: Path) -> None:
    check_rows(kafka, f"rows-{uuid.uuid4().hex[:8]}.", tmp_path)
