"""The bounded reader on the embedded broker reads chosen partitions from chosen offsets to the ends at the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.support.batches import send_claiming

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import UnreadableBatch
from traceweir.streams.worker.kafka import cluster
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("bounded")]

TOPIC = "traceweir.results"
UNKNOWN = 6


class UnreadableError(Exception):
    pass


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    return settings


def put(settings: Settings, *records: tuple[int, bytes], at_ms: int = 0) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for partition, value in records:
        producer.produce(TOPIC, value, b"key", partition, timestamp=at_ms)
    assert producer.flush(30) == 0


def values(records: Sequence[Any]) -> list[bytes]:
    return [record.value for record in records]


async def test_partitions_are_read_in_order_and_again_without_later_records(settings: Settings) -> None:
    put(settings, (2, b"c"), (0, b"a"), (0, b"b"))
    async with BoundedReader(settings, TOPIC, UnreadableError) as reader:
        first = [record async for record in reader.records()]
        put(settings, (0, b"later"))
        again = [record async for record in reader.records({0: 1})]
    assert (values(first), values(again)) == ([b"a", b"b", b"c"], [b"b"])


async def test_a_batch_that_cannot_be_decompressed_is_an_error_or_a_record_for_a_caller_that_asks(
    settings: Settings, restored_fetcher: None
) -> None:
    put(settings, (0, b"a"))
    await send_claiming(settings.kafka_bootstrap_servers, TOPIC, UNKNOWN)
    put(settings, (0, b"b"))
    with pytest.raises(
        UnreadableError, match=r"^traceweir\.results\[0\]: offsets 1 to 3, a batch of 3 records compressed"
    ):
        async with BoundedReader(settings, TOPIC, UnreadableError) as reader:
            [record async for record in reader.records()]
    async with BoundedReader(settings, TOPIC, UnreadableError, batches=True) as reader:
        found = [(record.offset, isinstance(record, UnreadableBatch)) async for record in reader.records()]
    assert found == [(0, False), (3, True), (4, False)]


@pytest.mark.parametrize("topic", [TOPIC, "traceweir.traces"])
async def test_one_client_asks_for_the_partitions(
    settings: Settings, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[object] = []

    def counted(options: dict[str, Any]) -> AdminClient:
        built.append(options)
        return AdminClient(options)

    monkeypatch.setattr(cluster, "AdminClient", counted)
    async with BoundedReader(settings, topic, UnreadableError) as reader:
        assert [*reader.ends] == [0, 1, 2, 3]
    assert len(built) == 1


async def test_a_missing_topic_is_the_error_of_the_caller(settings: Settings) -> None:
    with pytest.raises(
        UnreadableError, match=r"^topic 'traceweir\.absent' does not exist: run `traceweir topics create`"
    ):
        async with BoundedReader(settings, "traceweir.absent", UnreadableError):
            pass


async def test_only_the_chosen_partitions_are_read(settings: Settings) -> None:
    put(settings, (0, b"a"), (2, b"c"))
    async with BoundedReader(settings, TOPIC, UnreadableError, partitions={2}) as reader:
        assert values([record async for record in reader.records()]) == [b"c"]
        assert (reader.begins, reader.ends) == ({2: 0}, {2: 1})


async def test_the_times_are_those_of_the_oldest_and_the_newest_record_of_all_partitions(settings: Settings) -> None:
    async with BoundedReader(settings, TOPIC, UnreadableError) as reader:
        assert (await reader.times(), await reader.time_of_first(0)) == (None, None)
    for at_ms in (3_000, 4_000, 5_000):
        put(settings, (0, b"a"), at_ms=at_ms)
    for at_ms in (1_000, 2_000):
        put(settings, (2, b"c"), at_ms=at_ms)
    async with BoundedReader(settings, TOPIC, UnreadableError) as reader:
        assert await reader.times() == (1_000, 5_000)
        assert [await reader.time_of_first(number) for number in (0, 1, 2)] == [3_000, None, 1_000]
    async with BoundedReader(settings, TOPIC, UnreadableError, partitions={0}) as reader:
        assert await reader.times() == (3_000, 5_000)


async def test_a_missing_topic_is_reported_by_the_error_of_the_caller(settings: Settings) -> None:
    with pytest.raises(UnreadableError, match=r"'nobody\.results' does not exist: run `traceweir topics create`"):
        await BoundedReader(settings, "nobody.results", UnreadableError).__aenter__()
