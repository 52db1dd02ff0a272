"""Writes accepted requests to the OTLP topics, and waits for Kafka's acknowledgement."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from traceweir.streams.endpoint.errors import EndpointError
from traceweir.streams.endpoint.receiver import WriteError
from traceweir.streams.kafka.client_options import aiokafka_options
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.produced_topics import batch_limits, topic_problem
from traceweir.streams.kafka.topic_admin import reach
from traceweir.streams.kafka.topic_options import KAFKAS_BATCH_BYTES
from traceweir.streams.otlp.json_requests import Signal
from traceweir.streams.settings import Settings

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

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topics: dict[Signal, str] = {
            "spans": settings.topics.otlp_spans,
            "logs": settings.topics.otlp_logs,
        }
        self.max_record_bytes = 0
        """The largest value of a record; known in the `async with` block."""

    async def __aenter__(self) -> KafkaWriter:
        settings, names = self._settings, tuple(self._topics.values())
        embedded = is_embedded(await asyncio.to_thread(reach, settings))
        limits = {} if embedded else await asyncio.to_thread(batch_limits, settings, names)
        limit = min(limits.get(name, KAFKAS_BATCH_BYTES) for name in names)
        self.max_record_bytes = limit - _BATCH_FRAME_BYTES
        options: dict[str, Any] = dict(aiokafka_options(settings))
        self._producer = AIOKafkaProducer(
            **options,
            acks="all",
            request_timeout_ms=round(settings.otlp_write_timeout_s * 1000),
            linger_ms=_LINGER_MS,
            max_batch_size=min(_BATCH_BYTES, limit),
            max_request_size=limit,
        )
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
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def write(self, signal: Signal, values: Sequence[bytes]) -> None:
        """Writes the values to the topic of the signal, and returns when Kafka has all of them.

        Raises:
            WriteError: Kafka has not acknowledged a record in time; it can have taken others.
        """
        topic = self._topics[signal]
        try:
            answers = [await self._producer.send(topic, value=value) for value in values]
            found = await asyncio.gather(*answers, return_exceptions=True)
        except KafkaError as error:
            raise WriteError(f"{topic}: {error!r}") from error
        for each in found:
            if isinstance(each, BaseException):
                raise WriteError(f"{topic}: {each!r}") from each

    async def _stop(self) -> None:
        with suppress(TimeoutError):  # without the limit, `stop` waits for a dead broker without end
            await asyncio.wait_for(self._producer.stop(), self._settings.otlp_write_timeout_s)
