"""Evaluation rows through the embedded broker give the scores that the file gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.recorded_rows import check_rows

from traceweir.streams.kafka.embedded_broker import EmbeddedBroker


@pytest.mark.broker
def test_online_and_offline_give_the_same_scores(embedded_broker: EmbeddedBroker, tmp_path: Path) -> None:
    check_rows(embedded_broker.bootstrap_servers, "traceweir.", tmp_path)
