"""Sends a ledger's records at a steady rate, and counts them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.support.ledger import Sending

from traceweir.streams.worker.kafka.client_options import IDEMPOTENT

FLUSH_S = 60.0


class NotSentError(RuntimeError):
    """The broker did not accept a record, so the ledger would be wrong."""


class Source(Protocol):
    """A ledger of records to send. Times are in seconds since 1970."""

    def records(self, count: int, now: float) -> list[Sending]:
        """Returns the next records, at least `count`."""

    def rest(self, now: float) -> list[Sending]:
        """Returns all remaining records."""


class Load:
    """The agents of a ledger, and their producer."""

    def __init__(self, ledger: Source, bootstrap_servers: str, prefix: str, rate: int, *, idempotent: bool) -> None:
        self._ledger, self._prefix, self._rate = ledger, prefix, rate
        quiet = {"log_level": 0, "error_cb": lambda _: None}
        options = {**(IDEMPOTENT if idempotent else {}), "bootstrap.servers": bootstrap_servers, "linger.ms": 5}
        self._producer = Producer({**quiet, **options})
        self._admin = AdminClient({**quiet, "bootstrap.servers": bootstrap_servers})
        self._began = time.monotonic()
        self._refused: list[str] = []
        self._places: set[tuple[str, int, int]] = set()
        self.sent = 0
        """Number of records passed to the producer."""

    @property
    def passed_s(self) -> float:
        """Seconds since the last `restart`."""
        return time.monotonic() - self._began

    def restart(self) -> None:
        """Starts the clock of the load."""
        self._began = time.monotonic()

    def go_on(self, seconds: float) -> None:
        """Sends the records that are due within a number of seconds."""
        self._send(self._ledger.records(max(1, round(self._rate * seconds)), time.time()))

    def finish(self) -> None:
        """Sends the remaining records of the ledger's sessions, and waits until the broker has acknowledged them.

        Raises:
            NotSentError: the broker did not accept a record.
        """
        self._send(self._ledger.rest(time.time()))
        left = self._producer.flush(FLUSH_S)
        if left or self._refused:
            raise NotSentError(f"{left} records not sent within {FLUSH_S:g} s, and refused: {self._refused[:3]}")
        self._count()

    def _count(self) -> None:
        """Checks that the broker has all acknowledged records.

        Otherwise the audit would take a record that the broker lost for a loss by the worker.
        """
        partitions = [TopicPartition(topic, number) for topic, number in {place[:2] for place in self._places}]
        ends = self._admin.list_offsets({place: OffsetSpec.latest() for place in partitions}, request_timeout=FLUSH_S)
        written = sum(end.result().offset for end in ends.values())
        if not self.sent == len(self._places) == written:
            raise NotSentError(
                f"{self.sent} records sent, {len(self._places)} acknowledged at distinct offsets, {written} in the topics"
            )

    def _send(self, sendings: Iterable[Sending]) -> None:
        now = time.time()
        for topic, partition, key, value, headers, at in sendings:
            self._producer.produce(
                self._prefix + topic,
                value,
                key,
                partition,
                on_delivery=self._delivered,
                timestamp=int((now if at is None else at) * 1000),
                headers=headers,
            )
            self.sent += 1
        self._producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self._refused.append(f"{message.topic()}: {error}")
        else:
            self._places.add((message.topic(), message.partition(), message.offset()))
