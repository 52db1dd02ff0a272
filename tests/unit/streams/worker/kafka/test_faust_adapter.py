"""What the worker changes in Faust: the log of a rebalance, and fetches while no partition has room."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import faust
import pytest
from faust.types import TP

from traceweir.streams.worker.kafka import faust_adapter


class _Intake:
    inputs: dict[str, object] = {}

    def __init__(self) -> None:
        self.waits = 0

    def full(self, tp: TP) -> bool:
        return True

    def waited(self) -> None:
        self.waits += 1


def test_the_log_leaves_out_the_seeks_of_a_rebalance_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    faust_adapter.install(faust.App("seeks"), _Intake(), "changelog")  # type: ignore[arg-type]
    log = logging.getLogger(faust_adapter.__name__)
    with caplog.at_level(logging.WARNING):
        log.warning("[^--Consumer]: exception performing seek when flow not active No current assignment")
        log.warning("[^--Consumer]: another warning")
    assert [record.getMessage() for record in caplog.records] == ["[^--Consumer]: another warning"]


async def test_nothing_is_fetched_while_no_partition_has_room_and_the_intake_is_told() -> None:
    app, intake, full = faust.App("full"), _Intake(), TP("sessions", 0)
    faust_adapter.install(app, intake, "changelog")  # type: ignore[arg-type]

    class Consumer(app.transport.Consumer):  # type: ignore[misc, name-defined]
        def _new_consumer_thread(self) -> SimpleNamespace:
            return SimpleNamespace(beacon=None)

        def _get_active_partitions(self) -> set[TP]:
            return {full}

    consumer = Consumer(app.transport, print, print, print)
    consumer.resume_flow()
    assert [record async for record in consumer.getmany(timeout=1.0)] == []
    assert intake.waits == 1
