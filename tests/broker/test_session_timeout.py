"""A worker runs with every session timeout that its settings allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.workers import Fleet

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.parametrize("timeout_s", ["91", "1800"])
def test_a_worker_with_a_session_timeout_above_90_s_takes_over_partitions(timeout_s: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with (
        EmbeddedBroker() as broker,
        Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet,
    ):
        worker = fleet.start("worker", variables={"TRACEWEIR_SESSION_TIMEOUT_S": timeout_s})
        worker.wait_for_log("took over partitions")
        worker.terminate(30)
