"""Sends sessions of one event each, which close at once, and reads which sessions have closed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection

from confluent_kafka import Consumer, Producer

from traceweir.streams.base.clock import utc_now


def send(servers: str, prefix: str, names: Collection[str]) -> None:
    """Sends a session under each of these ids."""
    producer = Producer({"bootstrap.servers": servers})
    for name in names:
        event = {
            "type": "session.ended",
            "session_id": name,
            "occurred_at": utc_now().isoformat(),
            "expects": {"events": 1, "traces": 0},
        }
        producer.produce(f"{prefix}invocations", key=name, value=json.dumps(event))
    assert producer.flush(30) == 0


def closed(
    servers: str,
    prefix: str,
    names: Collection[str],
    *,
    within_s: float = 90.0,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[str]:
    """Returns the ids of all closed sessions in order, once each of these names is there or the time is over.

    A session that was published twice is there twice.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"reader-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([f"{prefix}sessions"])
    found: list[str] = []
    deadline = time.monotonic() + within_s
    while not set(names) <= set(found) and time.monotonic() < deadline:
        meanwhile()
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value() or b"")["session_id"])
    consumer.close()
    return sorted(found)
