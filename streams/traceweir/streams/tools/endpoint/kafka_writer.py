"""Writes accepted requests to the OTLP topics, and waits for Kafka's acknowledgement."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.otlp.json_requests import Signal
from traceweir.streams.tools.endpoint.errors import EndpointError
from traceweir.streams.tools.endpoint.receiver import WriteError
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.fast_close import close_producer
from traceweir.streams.worker.kafka.produced_topics import batch_limits, topic_problem
from traceweir.streams.worker.kafka.silence import LOST_AFTER_S, LastAnswer, until_lost
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.kafka.topic_options import KAFKAS_BATCH_BYTES

log = logging.getLogger(__name__)

RETRY_AFTER_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds to the next start of the producer after a failed one, by the number of failures so far; then the last of them."""
CREATE = "traceweir topics create --stages collect,assemble,score,gate"
_BATCH_BYTES = 262_144
_LINGER_MS = 5
_BATCH_FRAME_BYTES = 200
"""More than Kafka adds to the only record of a batch."""


class KafkaWriter:
    """Writes to the OTLP topics within an `async with` block.

    Records have no key, because the stage `collect` takes spans from any partition. The producer is not idempotent: a
    client whose acknowledgement was lost sends its request again, and `collect` drops the repeated spans.

    Raises:
        KafkaUnreachableError: no broker answers.
        EndpointError: a topic is missing or has a wrong number of partitions.
    """

    def __init__(
        self, settings: Settings, *, lost_after_s: float = LOST_AFTER_S, last_answer: LastAnswer | None = None
    ) -> None:
        """Stores the arguments; the `async with` block connects.

        Args:
            settings: Where Kafka is, and the limits.
            lost_after_s: Seconds without an answer of Kafka after which the producer is started again.
            last_answer: Receives each answer of a broker; None: a new one.
        """
        self._settings = settings
        self._topics: dict[Signal, str] = {
            "spans": settings.topics.otlp_spans,
            "logs": settings.topics.otlp_logs,
        }
        self._lost_after_s = lost_after_s
        self.max_record_bytes = 0
        """The largest value of a record; known in the `async with` block."""
        self._lost: str | None = None
        """Why there is no producer now; None if there is one."""
        self._last_answer = LastAnswer() if last_answer is None else last_answer

    @property
    def problem(self) -> str | None:
        """Why nothing can be written now; None if records can be written, as far as is known."""
        return self._lost or self._last_answer.problem

    async def __aenter__(self) -> KafkaWriter:
        settings = self._settings
        names = tuple(self._topics.values())
        embedded = is_embedded(await asyncio.to_thread(reach, settings))
        limits = {} if embedded else await asyncio.to_thread(batch_limits, settings, names)
        limit = min(limits.get(name, KAFKAS_BATCH_BYTES) for name in names)
        self.max_record_bytes = limit - _BATCH_FRAME_BYTES
        self._producer = self._new_producer()
        try:
            await self._producer.start()
            problem = await topic_problem(self._producer, settings, names, embedded=embedded, create=CREATE)
        except KafkaError as error:
            await self._stop()
            raise EndpointError(
                f"Kafka at {settings.kafka_bootstrap_servers} stopped answering during the start ({error!r}); check that "
                "Kafka runs, and start the endpoint again"
            ) from error
        except BaseException:
            await self._stop()
            raise
        if problem is not None:
            await self._stop()
            raise EndpointError(problem)
        self._keeping = asyncio.create_task(self._start_again_when_lost())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeping.cancel()
        await asyncio.wait({self._keeping})
        await self._stop()

    async def write(self, signal: Signal, values: Sequence[bytes]) -> None:
        """Writes the values to the topic of the signal, and returns when Kafka has all of them.

        Raises:
            WriteError: Kafka has not acknowledged a record in time; it can have taken others.
        """
        topic = self._topics[signal]
        if self._lost is not None:
            raise WriteError(self._lost)
        try:
            # The producer itself gives up after half of this time, except one that is closed because Kafka is lost.
            async with asyncio.timeout(2 * self._settings.otlp_write_timeout_s):
                answers = [await self._producer.send(topic, value=value) for value in values]
                found = await asyncio.gather(*answers, return_exceptions=True)
        except (KafkaError, TimeoutError) as error:
            raise WriteError(f"{topic}: {error!r}") from error
        for each in found:
            if isinstance(each, BaseException):
                raise WriteError(f"{topic}: {each!r}") from each

    def _new_producer(self) -> AIOKafkaProducer:
        limit = self.max_record_bytes + _BATCH_FRAME_BYTES
        producer = AIOKafkaProducer(
            **producer_options(self._settings),
            acks="all",
            request_timeout_ms=round(self._settings.otlp_write_timeout_s * 1000),
            linger_ms=_LINGER_MS,
            max_batch_size=min(_BATCH_BYTES, limit),
            max_request_size=limit,
        )
        require_broker_list(producer)
        create_no_topics(producer)
        return producer

    async def _start_again_when_lost(self) -> None:
        """Starts the producer again whenever none of the nodes that it knows answers."""
        while True:
            self._lost = await until_lost(self._producer, lost_after_s=self._lost_after_s, last=self._last_answer)
            log.warning("%s", self._lost)
            failures = 0
            while self._lost is not None:
                # Nothing is flushed: the nodes of this producer are lost.
                await close_producer(self._producer)
                try:
                    # Reads certificates again.
                    self._producer = self._new_producer()
                    await self._producer.start()
                    self._lost = None
                except (KafkaError, KafkaUnreachableError, OSError) as error:
                    problem = f"Kafka cannot be reached: {printable(str(error) or repr(error), 1_000)}"
                    if problem != self._lost:
                        self._lost = problem
                        log.warning("%s; it is tried again", problem)
                    await asyncio.sleep(RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)])
                    failures += 1
            log.info("Kafka answers again: the endpoint writes to it")

    async def _stop(self) -> None:
        # Without the limit, `stop` waits for a dead broker without end.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._producer.stop(), self._settings.otlp_write_timeout_s)
