"""Records that retention deletes before a running worker has read them are named and counted, and the worker goes on."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer
from tests.support.remade_topics import trim
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings

pytestmark = pytest.mark.kafka


def test_a_worker_that_retention_has_overtaken_says_what_it_missed_and_reads_on(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    before = [f"before-{number}" for number in range(8)]
    send(kafka, prefix, before)
    worker = fleet.start("w")
    assert closed(kafka, prefix, before) == before

    worker.freeze()
    try:
        # The fetch that waits at the broker brings the first of them.
        for part in range(5):
            send(kafka, prefix, [f"gone-{part}-{number}" for number in range(8)])
        trim(settings, f"{prefix}invocations")
        after = [f"after-{number}" for number in range(8)]
        send(kafka, prefix, after)
    finally:
        worker.thaw()
    assert set(after) <= set(closed(kafka, prefix, after)), worker.log.read_text()
    assert not worker.ended
    log = worker.log.read_text()
    assert "the broker does not have the next offset of" in log
    assert "were never read: retention has deleted the records" in log
    letter = first_dead_letter(kafka, prefix)
    assert letter["traceweir.reason"] == b"missed"
    assert letter["traceweir.detail"].decode() in log


def first_dead_letter(kafka: str, prefix: str) -> dict[str, bytes]:
    """Waits for a dead letter, and returns its headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": f"{prefix}reader-of-letters",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([f"{prefix}dead-letters"])
    try:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        return dict(message.headers())
    finally:
        consumer.close()
