"""Reads everything that the worker writes: the output topics and the changelog, committed records only."""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id, changelog
from traceweir.streams.cli.demo.observed import Observed
from traceweir.streams.worker.kafka.client_options import confluent_options


class Observer:
    """Reads the topics from their beginning, within a `with` block."""

    def __init__(self, settings: Settings, metrics: int = 0) -> None:
        self.seen = seen = Observed(metrics)
        topics = settings.topics
        self._handlers = {
            topics.results: lambda message: seen.result(message.value()),
            topics.network: lambda message: seen.published(message.key().decode(), message.value()),
            topics.dead_letters: lambda message: seen.dead_letter(
                message.key(), message.value(), message.headers() or ()
            ),
            topics.sessions: lambda message: seen.closed(message.value()),
            topics.strays: lambda _: seen.outputs.update(["forwarded"]),
            topics.candidates: lambda _: seen.outputs.update(["candidates"]),
            changelog(application_id(settings.topic_prefix, STAGES)): self._row,
        }
        own = {"group.id": "traceweir-demo", "enable.auto.commit": False, "isolation.level": "read_committed"}
        fetching = {"fetch.wait.max.ms": 50, "log_level": 0}
        self._consumer = Consumer(confluent_options(settings) | own | fetching)
        self._places = [
            TopicPartition(topic, partition, 0) for topic in self._handlers for partition in range(settings.partitions)
        ]

    def __enter__(self) -> Observer:
        self._consumer.assign(self._places)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def poll(self, timeout_s: float) -> None:
        """Processes the available records; waits at most `timeout_s` seconds for them.

        Raises:
            KafkaException: the broker reports an error.
        """
        for message in self._consumer.consume(num_messages=500, timeout=timeout_s):
            if message.error() is not None:
                raise KafkaException(message.error())
            self._handlers[message.topic()](message)

    def _row(self, message: Message) -> None:
        stage, _, key = message.key().partition(b"/")
        if key == b"#":
            self.seen.counted(stage.decode(), message.partition(), message.value())
