"""Recorded sessions of a real agent pass a worker on the embedded broker; skipped if there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.recorded import check_recorded_sessions

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker


@pytest.mark.broker
def test_a_recorded_session_that_is_emitted_twice_is_closed_scored_and_decided_once(
    embedded_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    check_recorded_sessions(embedded_broker.bootstrap_servers, "traceweir.", tmp_path)
