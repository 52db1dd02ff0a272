"""Recorded sessions of a real agent on the embedded broker, if there are some."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.recorded import check_recorded_sessions

from traceweir.streams.kafka.embedded_broker import EmbeddedBroker


@pytest.mark.broker
def test_each_is_closed_valued_and_decided_once_though_emitted_twice(
    embedded_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    check_recorded_sessions(embedded_broker.bootstrap_servers, "traceweir.", tmp_path)
