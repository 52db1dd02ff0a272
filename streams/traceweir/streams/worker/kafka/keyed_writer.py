"""Writes records to a compacted topic, each to the partition of its key, and waits until Kafka has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from traceweir.schemas.figures import counted
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options
from traceweir.streams.worker.kafka.topic_admin import check_partitions

FLUSH_S = 30.0


class KeyedWriter:
    """Writes to a compacted topic. One thread at a time may call `write`.

    Args:
        settings: Where Kafka is.
        topic: The full name of the topic.
        noun: What a record is, for messages, in the singular.
        again: What a user does if Kafka did not accept a record.
        answer_within_s: How long Kafka has to accept the records.
    """

    def __init__(
        self, settings: Settings, topic: str, *, noun: str, again: str, answer_within_s: float = FLUSH_S
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._noun = noun
        self._again = again
        self._answer_within_s = answer_within_s
        self._producer: Any = None

    def write(self, records: Mapping[bytes, bytes | None]) -> None:
        """Writes records by their keys, and waits until Kafka has acknowledged them; None is a tombstone.

        Raises:
            KafkaUnreachableError: no broker answers.
            NotReadyError: the topic is missing or wrong, or Kafka did not accept a record.
        """
        if problems := check_partitions(self._settings, [self._topic]):
            raise NotReadyError("\n".join(problems))
        refused: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                refused.append(error.str())

        if self._producer is None:
            # A record that Kafka has not accepted in this time must not arrive later, when its sender was refused.
            options = {**confluent_options(self._settings), **IDEMPOTENT, "log_level": 0}
            options["message.timeout.ms"] = int(self._answer_within_s * 1000)
            self._producer = Producer(options)
        for key, value in records.items():
            partition = partition_of(key, self._settings.partitions)
            while True:
                try:
                    self._producer.produce(self._topic, value, key, partition=partition, on_delivery=delivered)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        left = self._producer.flush(self._answer_within_s + 1)
        if left or refused:
            # An idempotent producer that gave up a record cannot always go on.
            self._producer = None
            why = refused[0] if refused else f"no answer within {self._answer_within_s:g} s"
            raise NotReadyError(
                f"Kafka did not accept {counted(left + len(refused), self._noun)} on {self._topic!r}, the first with: {why}. "
                f"{self._again}: a {self._noun} that is written twice counts once"
            )
