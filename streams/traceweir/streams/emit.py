"""Emit: sends recorded traces and events to Kafka as agents would have sent them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from traceweir.streams.formats.base import AgentRecord, DocumentRecords
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.topic_admin import reach
from traceweir.streams.settings import Settings, aiokafka_options, confluent_options
from traceweir.streams.stages.partitioner import partition_of
from traceweir.streams.topics import Topics

DEFAULT_LIMIT = 1_048_588
"""The largest batch that Kafka's brokers accept unless configured otherwise, in bytes."""
ANSWER_TIMEOUT_S = 30.0
_BATCH = 65_536
_IN_FLIGHT = 2_000


class EmitError(Exception):
    """Sending could not begin or had to stop; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class EmitReport:
    """What was sent."""

    documents: int
    """Documents read, usable or not."""
    sent: Mapping[str, int]
    """Acknowledged records by topic, of both input topics."""
    problems: tuple[str, ...]
    """A sentence for each document that was not sent, or not in full; in the order of the input."""


async def emit(
    settings: Settings, records: Iterable[DocumentRecords], *, progress: Callable[[int], None]
) -> EmitReport:
    """Send traces to `traces` and everything else to `invocations`, unreadable records too: the worker says what is wrong with them.

    Each value goes out byte for byte, with its session id as the key and to its session's home; without a session id it has no key, and the
    documents take turns on the partitions. The records of one session stay in order and are written once, whatever the
    connection does. A record that is larger than the broker takes is a problem of its document, and the next is sent.

    Args:
        settings: Where Kafka is.
        records: What `read_input` gives. It is read in a thread, so that a slow pipe holds nothing back.
        progress: Called with the number of documents dealt with so far.

    Raises:
        KafkaUnreachable: no broker answers.
        EmitError: a topic is missing or wrong, or the brokers stopped answering.
        InputError: the input cannot be read on.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    topics = Topics.of(settings.topic_prefix)
    limits = {} if embedded else await asyncio.to_thread(_limits, settings, topics)
    producer = AIOKafkaProducer(
        **_options(settings),
        enable_idempotence=True,
        request_timeout_ms=int(ANSWER_TIMEOUT_S * 1000),
        linger_ms=5,
        max_batch_size=min([_BATCH, *limits.values()]),
        max_request_size=max([DEFAULT_LIMIT, *limits.values()]),
    )
    sending = _Sending(producer, settings.partitions, topics, limits)
    try:
        await producer.start()
        await _check_topics(producer, settings, topics, embedded)
        iterator = iter(records)
        while (found := await asyncio.to_thread(next, iterator, None)) is not None:
            await sending.document(found)
            progress(sending.documents)
        await sending.finish()
    except (KafkaError, TimeoutError) as error:
        raise EmitError(
            f"Kafka at {settings.kafka_bootstrap_servers} stopped taking records ({error!r}); {sending.sent.total()} are acknowledged. "
            "See that it runs, then emit the same input again: what arrives twice counts once"
        ) from error
    finally:
        with suppress(TimeoutError):  # it would wait for a dead broker for ever
            await asyncio.wait_for(producer.stop(), ANSWER_TIMEOUT_S if not sending.failed else 1.0)
    return EmitReport(sending.documents, {name: sending.sent[name] for name in sending.names}, tuple(sending.problems))


class _Sending:
    """The records under way."""

    def __init__(self, producer: AIOKafkaProducer, partitions: int, topics: Topics, limits: Mapping[str, int]) -> None:
        self.documents = 0
        self.sent: Counter[str] = Counter()
        self.problems: list[str] = []
        self.failed = False
        self.names = (topics.traces, topics.invocations)
        self._producer, self._partitions, self._topics, self._limits = producer, partitions, topics, limits
        self._in_flight: deque[asyncio.Future[Any]] = deque()

    async def document(self, found: DocumentRecords) -> None:
        self.documents += 1
        if found.problem is not None:
            self.problems.append(str(found.problem))
        for record in found.records:
            await self._send(found.document.number, record)

    async def finish(self) -> None:
        while self._in_flight:
            await self._settle_oldest()

    async def _send(self, number: int, record: AgentRecord) -> None:
        topic = self._topics.traces if record.kind == "trace" else self._topics.invocations
        key = record.session_id.encode() if record.session_id is not None else None
        size = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, record.value, [])
        limit = self._limits.get(topic, DEFAULT_LIMIT)
        if size > limit:  # asked first: after a refused record an idempotent producer's next one is out of sequence
            self.problems.append(
                f"document {number}: a record of {size} bytes is not sent, as topic {topic!r} takes {limit} at most (max.message.bytes)"
            )
            return
        partition = number % self._partitions if key is None else partition_of(key, self._partitions)
        try:
            answer = await self._producer.send(topic, value=record.value, key=key, partition=partition)
        except KafkaError:
            self.failed = True
            raise
        answer.add_done_callback(partial(self._count, topic))
        self._in_flight.append(answer)
        if len(self._in_flight) > _IN_FLIGHT:
            await self._settle_oldest()

    async def _settle_oldest(self) -> None:
        try:
            await asyncio.wait_for(self._in_flight.popleft(), ANSWER_TIMEOUT_S)
        except (KafkaError, TimeoutError):
            self.failed = True
            raise

    def _count(self, topic: str, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self.sent[topic] += 1


def _options(settings: Settings) -> dict[str, Any]:
    return dict(aiokafka_options(settings))


def _limits(settings: Settings, topics: Topics) -> dict[str, int]:
    """By topic, the largest batch that it takes; without what the broker does not tell us."""
    client = AdminClient(confluent_options(settings) | {"log_level": 0})
    names = (topics.traces, topics.invocations)
    answers = client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=10)
    limits = {}
    for resource, answer in answers.items():
        with suppress(KafkaException):  # not there, or not for us to see; Kafka's default holds then
            limits[resource.name] = int(answer.result()["max.message.bytes"].value)
    return limits


async def _check_topics(producer: AIOKafkaProducer, settings: Settings, topics: Topics, embedded: bool) -> None:
    known = await producer.client.fetch_all_metadata()
    for name in (topics.traces, topics.invocations):
        # An embedded broker makes a topic when asked for it by name. Kafka may do so too, but with a partition count of its own choice.
        found = await producer.partitions_for(name) if embedded else known.partitions_for_topic(name)
        if not found:
            raise EmitError(f"topic {name!r} does not exist: run `traceweir topics create`")
        if len(found) != settings.partitions:
            raise EmitError(
                f"topic {name!r} has {len(found)} partitions, expected {settings.partitions}: run `traceweir topics check`, "
                f"or set TRACEWEIR_PARTITIONS={len(found)}"
            )
