"""Sends recorded traces and events to Kafka in the form in which agents send them."""

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

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import record_bytes
from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.formats.base import AgentRecord, DocumentRecords
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.produced_topics import batch_limits, topic_problem
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.kafka.topic_options import KAFKAS_BATCH_BYTES

ANSWER_TIMEOUT_S = 30.0
_BATCH = 65_536
_IN_FLIGHT = 2_000


class EmitError(Exception):
    """Sending could not start or had to stop; the message states the reason and the way out."""


@dataclass(frozen=True, slots=True)
class EmitReport:
    """The counts and problems of one call of `emit`."""

    documents: int
    """Number of documents read, usable or not."""
    sent: Mapping[str, int]
    """Number of acknowledged records per topic, for both input topics."""
    problems: tuple[str, ...]
    """One sentence for each document that was not sent or was sent in part, in the order of the input."""


async def emit(
    settings: Settings, records: Iterable[DocumentRecords], *, progress: Callable[[int], None]
) -> EmitReport:
    """Sends traces to `traces` and all other records to `invocations`; returns what was sent.

    Unreadable records are sent too: the worker reports in a dead letter why it cannot read them. Each value is sent
    byte for byte. The key is the session id, and the partition is the session's home partition. A record without a
    session id has no key, and the partitions receive such documents in turn. The records of one session stay in order
    and are written once, also when the connection breaks. A record that is larger than the broker accepts becomes a
    problem of its document, and sending continues with the next record.

    Args:
        settings: Where Kafka is.
        records: The result of `read_input`. A thread reads the records, so that a slow pipe does not block sending.
        progress: Called with the number of documents processed so far.

    Raises:
        KafkaUnreachableError: no broker answers.
        EmitError: a topic is missing or has the wrong number of partitions, or the brokers stopped answering.
        InputError: the rest of the input cannot be read.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    topics = settings.topics
    names = (topics.traces, topics.invocations)
    limits = {} if embedded else await asyncio.to_thread(batch_limits, settings, names)
    producer = AIOKafkaProducer(
        **_options(settings),
        enable_idempotence=True,
        request_timeout_ms=int(ANSWER_TIMEOUT_S * 1000),
        linger_ms=5,
        max_batch_size=min([_BATCH, *limits.values()]),
        max_request_size=max([KAFKAS_BATCH_BYTES, *limits.values()]),
    )
    create_no_topics(producer)
    sending = _Sending(producer, settings.partitions, topics, limits)
    try:
        await producer.start()
        if (
            problem := await topic_problem(
                producer, settings, names, embedded=embedded, create="traceweir topics create"
            )
        ) is not None:
            raise EmitError(problem)
        iterator = iter(records)
        while (found := await asyncio.to_thread(next, iterator, None)) is not None:
            await sending.document(found)
            progress(sending.documents)
        await sending.finish()
    except (KafkaError, TimeoutError) as error:
        raise EmitError(
            f"Kafka at {settings.kafka_bootstrap_servers} stopped accepting records ({error!r}); {sending.sent.total()} "
            "records are acknowledged. Check that Kafka runs, then emit the same input again: a record that arrives twice "
            "counts once"
        ) from error
    finally:
        # Without the limit, `stop` waits for a dead broker without end.
        with suppress(TimeoutError):
            await asyncio.wait_for(producer.stop(), ANSWER_TIMEOUT_S if not sending.failed else 1.0)
    return EmitReport(sending.documents, {name: sending.sent[name] for name in sending.names}, tuple(sending.problems))


class _Sending:
    """Sends records and tracks those that the broker has not acknowledged yet."""

    def __init__(self, producer: AIOKafkaProducer, partitions: int, topics: Topics, limits: Mapping[str, int]) -> None:
        self.documents = 0
        self.sent: Counter[str] = Counter()
        self.problems: list[str] = []
        self.failed = False
        self.names = (topics.traces, topics.invocations)
        self._producer = producer
        self._partitions = partitions
        self._topics = topics
        self._limits = limits
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
        size = record_bytes(key, record.value)
        limit = self._limits.get(topic, KAFKAS_BATCH_BYTES)
        # Checked before sending: after a refused record an idempotent producer is out of sequence.
        if size > limit:
            self.problems.append(
                f"document {number}: a record of {size} bytes is not sent, because topic {topic!r} accepts at most {limit} bytes "
                "(max.message.bytes)"
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
    return dict(producer_options(settings))
