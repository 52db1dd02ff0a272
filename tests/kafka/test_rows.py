"""Evaluation rows through Apache Kafka give the scores that the file gives."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.support.recorded_rows import check_rows


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_online_and_offline_give_the_same_scores(kafka: str, tmp_path: Path) -> None:
    check_rows(kafka, f"rows-{uuid.uuid4().hex[:8]}.", tmp_path)
