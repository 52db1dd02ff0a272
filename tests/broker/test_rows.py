"""Evaluation rows that pass a worker on the embedded broker have the scores that `score` computes for the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.recorded_rows import check_rows

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker


@pytest.mark.broker
def test_online_and_offline_scores_are_equal(embedded_broker: EmbeddedBroker, tmp_path: Path) -> None:
    check_rows(embedded_broker.bootstrap_servers, "traceweir.", tmp_path)
