"""Reads and writes the topic `shadows`: the definition of each shadow, and the request to stop its processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from confluent_kafka import KafkaException, Producer
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.settings import Settings, confluent_options
from traceweir.streams.shadow.definition import Definition
from traceweir.streams.shadow.errors import ShadowError
from traceweir.streams.shadow.names import ShadowNames
from traceweir.streams.stages.partitioner import partition_of

_STOP = b"/stop"
_SENT_WITHIN_S = 30.0


async def read_definition(settings: Settings, name: str) -> Definition | None:
    """Returns the definition of a shadow; None if no shadow has this name. The topic `shadows` must exist.

    Of several processes that create a shadow at the same time, the one whose record comes first wins.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic or the record cannot be read.
    """
    first: bytes | None = None
    async with _reader(settings, name) as reader, aclosing(reader.records()) as records:
        async for record in records:
            if record.key == name.encode():
                first = None if record.value is None else first or record.value
    if first is None:
        return None
    try:
        return Definition.model_validate_json(first)
    except ValidationError as error:
        raise ShadowError(
            f"the definition of shadow {name!r} cannot be read ({explain(error)}): it comes from another version of "
            f"Traceweir, or another program wrote it; remove the shadow with `traceweir shadow --name {name} --drop`"
        ) from None


def write_definition(settings: Settings, definition: Definition) -> None:
    """Writes a definition, and returns when Kafka has acknowledged it.

    Raises:
        ShadowError: Kafka did not acknowledge the record.
    """
    _write(settings, definition.name, {definition.name.encode(): definition.model_dump_json().encode()})


def write_stop(settings: Settings, name: str) -> None:
    """Asks the running processes of a shadow to stop.

    Raises:
        ShadowError: Kafka did not acknowledge the record.
    """
    _write(settings, name, {name.encode() + _STOP: b"{}"})


def forget(settings: Settings, name: str) -> None:
    """Removes the definition of a shadow.

    Raises:
        ShadowError: Kafka did not acknowledge the record.
    """
    _write(settings, name, {name.encode(): None, name.encode() + _STOP: None})


async def stop_requests(settings: Settings, name: str) -> AsyncIterator[str]:
    """Yields, without end, a phrase for each record from now on that asks the processes of a shadow to stop.

    Raises:
        KafkaUnreachableError: no broker answers at the start.
        ShadowError: the topic cannot be read.
    """
    async with _reader(settings, name) as reader:
        async for record in reader.following(lambda sentence: None):
            if record.key == name.encode() + _STOP and record.value is not None:
                yield "`traceweir shadow --stop` asked for it"
            elif record.key == name.encode() and record.value is None:
                yield "the shadow was dropped"


def _reader(settings: Settings, name: str) -> BoundedReader:
    home = partition_of(name.encode(), settings.partitions)
    return BoundedReader(settings, ShadowNames.of(settings, name).shadows, ShadowError, partitions=[home])


def _write(settings: Settings, name: str, records: Mapping[bytes, bytes | None]) -> None:
    topic, home = ShadowNames.of(settings, name).shadows, partition_of(name.encode(), settings.partitions)
    send(settings, topic, [(home, key, value) for key, value in records.items()])


def send(settings: Settings, topic: str, records: list[tuple[int, bytes, bytes | None]]) -> None:
    """Writes records, as partition, key and value, and returns when Kafka has acknowledged all of them.

    Raises:
        ShadowError: Kafka did not acknowledge a record.
    """
    failures: list[str] = []

    def acknowledged(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(error.str())

    options = confluent_options(settings) | {"acks": "all", "log_level": 0, "enable.idempotence": False}
    try:
        producer = Producer(options)
        for partition, key, value in records:
            while True:
                try:
                    producer.produce(topic, value, key, partition, on_delivery=acknowledged)
                    break
                except BufferError:
                    producer.poll(0.1)
        left = producer.flush(_SENT_WITHIN_S)
    except KafkaException as error:
        failures.append(error.args[0].str())
        left = 0
    if failures or left:
        why = failures[0] if failures else f"no answer within {_SENT_WITHIN_S:g} s"
        raise ShadowError(f"topic {topic!r} could not be written ({why}); check that the brokers run, and try again")
