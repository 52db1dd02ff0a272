"""Sends records with confluent-kafka, whose C library connects, batches and retries in threads of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from traceweir.client.delivery import Done

KafkaOptions = Mapping[str, str | int | float | bool]
"""Options of librdkafka by name, such as `security.protocol`."""

MAX_RECORD_BYTES = 1_000_000
"""What a broker takes with Kafka's default `message.max.bytes`, less the overhead of a record."""

_DEFAULTS: KafkaOptions = {
    "acks": "all",
    # A topic that does not exist would get the brokers' default number of partitions, and no worker would start.
    "allow.auto.create.topics": False,
    "client.id": "traceweir-client",
    # Of all kinds, every Kafka client in Python reads this one without a further package.
    "compression.type": "gzip",
    "enable.idempotence": True,
    "linger.ms": 50,
    # The state of connections is no news for an agent; what was lost is reported by its count.
    "log_level": 2,
    # With several requests in flight, brokers before 4.5 can acknowledge and lose the first records of a new topic.
    "max.in.flight.requests.per.connection": 1,
    "message.max.bytes": MAX_RECORD_BYTES,
    # Java's partitioner: equal keys meet on one partition, whoever wrote the record.
    "partitioner": "murmur2_random",
}


class KafkaTransport:
    """A producer. Options of librdkafka that its caller names replace the defaults of this package."""

    def __init__(self, bootstrap_servers: str, options: KafkaOptions | None = None) -> None:
        """Makes the producer, which connects in the background.

        Raises:
            KafkaException: an option is unknown, or its value is not valid.
        """
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, **_DEFAULTS, **(options or {})}
        self._producer = Producer(settings, logger=_QUIET)

    def send(self, topic: str, key: bytes, value: bytes, done: Done) -> None:
        """Takes a record without waiting.

        Raises:
            BufferError: the producer's buffer is full.
            KafkaException: the record cannot be sent, for example because it is too large.
        """
        self._producer.produce(
            topic, value, key, on_delivery=lambda error, _: done("" if error is None else _reason(error))
        )

    def poll(self, timeout_s: float) -> None:
        """Calls `done` for records whose fate is known; waits at most `timeout_s` for the first of them."""
        self._producer.poll(timeout_s)

    def close(self) -> None:
        """Gives up what is not delivered yet, without waiting for the broker."""
        self._producer.purge(blocking=False)


def refusal_of(error: Exception) -> str:
    """Returns why a record was refused, without what it contains: only the texts of librdkafka are known to be free of it."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return _reason(error.args[0])
    return type(error).__name__


def _reason(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"


_QUIET = logging.getLogger("traceweir.client.librdkafka")
"""Takes librdkafka's own messages, which are else printed on stderr."""
