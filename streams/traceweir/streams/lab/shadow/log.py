"""Reads and writes the topic `shadows`: the definition of each shadow, what it has lost, and the request to stop it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress

from aiokafka.errors import KafkaError
from pydantic import TypeAdapter, ValidationError

from traceweir.schemas.base import explain
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import SHADOW_NAME, shadows_topic
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.runtime.delivery import PlainSends, stop_in_time

_STOP = b"/stop"
_LOST = b"/lost"
Stretches = Mapping[int, Mapping[int, int]]
"""Stretches of offsets by partition: the offset after each, by its first offset."""
_STRETCHES: TypeAdapter[dict[int, dict[int, int]]] = TypeAdapter(dict[int, dict[int, int]])
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


async def read_definitions(settings: Settings) -> list[Definition]:
    """Returns the definitions of all shadows that this version can read. The topic `shadows` must exist.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic cannot be read.
    """
    found = []
    for value in (await _records_by_name(settings)).values():
        with suppress(ValidationError):
            found.append(Definition.model_validate_json(value))
    return found


async def names_of_shadows(settings: Settings) -> list[str]:
    """Returns the names of all shadows. The topic `shadows` must exist.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic cannot be read.
    """
    return sorted(await _records_by_name(settings))


async def _records_by_name(settings: Settings) -> dict[str, bytes]:
    """Returns the first record of each shadow that was not removed, by name: two creations agree on the first."""
    found: dict[str, bytes] = {}
    async with BoundedReader(settings, shadows_topic(settings.topic_prefix), ShadowError) as reader:
        async for record in reader.records():
            name = (record.key or b"").decode("utf-8", "replace")
            # A request to stop, or a record of another program.
            if re.fullmatch(SHADOW_NAME, name) is None:
                continue
            if record.value is None:
                found.pop(name, None)
            else:
                found.setdefault(name, record.value)
    return found


def write_definition(settings: Settings, definition: Definition) -> None:
    """Writes a definition, and returns when Kafka has acknowledged it.

    Raises:
        ShadowError: Kafka did not acknowledge the record.
    """
    _write(settings, definition.name, {definition.name.encode(): definition.model_dump_json().encode()})


async def read_lost(settings: Settings, name: str) -> Stretches:
    """Returns the offsets of which `write_lost` has said that they expired before they were scored.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic or the record cannot be read.
    """
    found: Stretches = {}
    async with _reader(settings, name) as reader, aclosing(reader.records()) as records:
        async for record in records:
            if record.key == name.encode() + _LOST:
                try:
                    found = {} if record.value is None else _STRETCHES.validate_json(record.value)
                except ValidationError as error:
                    raise ShadowError(
                        f"which sessions shadow {name!r} has lost cannot be read ({explain(error)}): another program wrote it; "
                        f"remove the shadow with `traceweir shadow --name {name} --drop`"
                    ) from None
    return found


def write_lost(settings: Settings, name: str, lost: Stretches) -> None:
    """Writes which offsets of a shadow expired before they were scored, in place of what was written before.

    Raises:
        ShadowError: Kafka did not acknowledge the record.
    """
    _write(settings, name, {name.encode() + _LOST: _STRETCHES.dump_json({n: dict(of) for n, of in lost.items()})})


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
    _write(settings, name, {name.encode() + part: None for part in (b"", _STOP, _LOST)})


async def end_of_requests(settings: Settings, name: str) -> int:
    """Returns the offset after the last request to stop: a process that starts now heeds those from this offset on.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: the topic cannot be read.
    """
    async with _reader(settings, name) as reader:
        (end,) = reader.ends.values()
        return end


async def stop_requests(settings: Settings, name: str, begin: int) -> AsyncGenerator[str]:
    """Yields, without end, a phrase for each record that asks the processes of a shadow to stop.

    Args:
        settings: Where Kafka is.
        name: The name of the shadow.
        begin: The offset of the first record, as `end_of_requests` returned it at the start of the process.

    Raises:
        KafkaUnreachableError: no broker answers at the start.
        ShadowError: the topic cannot be read.
    """
    async with _reader(settings, name) as reader:
        begins = dict.fromkeys(reader.begins, begin)
        async with aclosing(reader.records(begins)) as missed:
            async for record in missed:
                if (why := _reason_to_stop(name, record.key, record.value)) is not None:
                    yield why
        async for record in reader.following(lambda sentence: None):
            if (why := _reason_to_stop(name, record.key, record.value)) is not None:
                yield why


def _reason_to_stop(name: str, key: bytes | None, value: bytes | None) -> str | None:
    if key == name.encode() + _STOP and value is not None:
        return "`traceweir shadow --stop` asked for it"
    return "the shadow was dropped" if key == name.encode() and value is None else None


def _reader(settings: Settings, name: str) -> BoundedReader:
    home = partition_of(name.encode(), settings.partitions)
    return BoundedReader(settings, ShadowNames.of(settings, name).shadows, ShadowError, partitions=[home])


def _write(settings: Settings, name: str, records: Mapping[bytes, bytes | None]) -> None:
    topic = ShadowNames.of(settings, name).shadows
    home = partition_of(name.encode(), settings.partitions)
    send(settings, topic, [(home, key, value) for key, value in records.items()])


def send(settings: Settings, topic: str, records: Iterable[tuple[int, bytes, bytes | None]]) -> None:
    """Writes records, as partition, key and value, and returns when Kafka has acknowledged all of them.

    Raises:
        ShadowError: Kafka did not acknowledge a record.
    """
    asyncio.run(_send(settings, topic, [Output(topic, number, key, value) for number, key, value in records]))


async def _send(settings: Settings, topic: str, outputs: Sequence[Output]) -> None:
    delivery = PlainSends(producer_options(settings))
    try:
        async with asyncio.timeout(_SENT_WITHIN_S):
            await delivery.start()
            await delivery.send({}, outputs, {})
    except (KafkaError, OSError) as error:
        # A `TimeoutError` is an `OSError`.
        raise ShadowError(
            f"topic {topic!r} could not be written ({error!r}); check that the brokers run, and try again"
        ) from error
    finally:
        await stop_in_time(delivery)
