"""Reading single records again: present and deleted records; neither a stop nor a dead broker ends the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Producer

from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.record_reader import RecordReader

pytestmark = pytest.mark.broker

RECORDS = 20
LIMIT_S = 20
"""The limit after which a wait without end fails a test, in seconds; a passing test needs far less."""


def filled(servers: str) -> RecordReader:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    return RecordReader({"bootstrap_servers": servers})


async def read_all(reader: RecordReader, offsets: Sequence[int]) -> list[Any]:
    """Reads all offsets concurrently; returns for each the value, None, or the type of the exception."""
    found = await asyncio.gather(*(reader.read("t", 0, offset) for offset in offsets), return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each and each.value for each in found]


async def test_a_record_is_read_at_any_offset_and_none_is_returned_past_the_end(
    embedded_broker: EmbeddedBroker,
) -> None:
    async with filled(embedded_broker.bootstrap_servers) as reader:
        assert await read_all(reader, [7, 0, 19, 7, RECORDS]) == [b"7", b"0", b"19", b"7", None]


@pytest.fixture
def seeks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the offsets to which the reader seeks."""
    found, seek = list[int](), AIOKafkaConsumer.seek

    def noted(self: AIOKafkaConsumer, place: Any, offset: int) -> Any:
        found.append(offset)
        return seek(self, place, offset)

    monkeypatch.setattr(AIOKafkaConsumer, "seek", noted)
    return found


async def test_reads_that_wait_together_are_one_range(embedded_broker: EmbeddedBroker, seeks: list[int]) -> None:
    async with filled(embedded_broker.bootstrap_servers) as reader:
        offsets = [*range(RECORDS), RECORDS + 1]
        assert await read_all(reader, offsets) == [*(b"%d" % number for number in range(RECORDS)), None]
    # The first read does not wait for others. The second looks for the end of the log, because a record is missing.
    assert seeks == [0, RECORDS, 1]


async def test_a_long_gap_between_two_records_is_skipped(
    embedded_broker: EmbeddedBroker, seeks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.record_reader.SKIPPED_AT_MOST", 3)
    getmany = AIOKafkaConsumer.getmany

    async def one(self: AIOKafkaConsumer, *places: Any, **options: Any) -> Any:
        return await getmany(self, *places, **(options | {"max_records": 1}))

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", one)
    async with filled(embedded_broker.bootstrap_servers) as reader:
        assert await read_all(reader, [0, 1, 4, 15, 19]) == [b"0", b"1", b"4", b"15", b"19"]
    assert seeks == [0, 1, 15]


async def test_what_was_read_before_a_failure_is_kept(
    embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    getmany, calls = AIOKafkaConsumer.getmany, 0

    async def two_and_no_more(self: AIOKafkaConsumer, *places: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KafkaConnectionError("the broker is gone")
        return await getmany(self, *places, **(options | {"max_records": 1}))

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", two_and_no_more)
    async with filled(embedded_broker.bootstrap_servers) as reader:
        found = await read_all(reader, [0, 5, 6, 7, 8])
    assert found == [b"0", b"5", b"6", RecordUnavailable, RecordUnavailable]


async def test_a_read_that_is_cancelled_while_it_waits_is_not_read(
    embedded_broker: EmbeddedBroker, seeks: list[int]
) -> None:
    async with filled(embedded_broker.bootstrap_servers) as reader:
        first = asyncio.create_task(reader.read("t", 0, 3))
        second, third = (asyncio.create_task(reader.read("t", 0, offset)) for offset in (1, 9))
        await asyncio.sleep(0)
        second.cancel()
        assert [(await first).value, (await third).value] == [b"3", b"9"]
    assert seeks == [3, 9]


@pytest.mark.parametrize(("topic", "partition"), [("t", 9), ("nobody", 0)], ids=["partition", "topic"])
async def test_an_unknown_place_is_refused_without_waiting_for_it_to_appear(
    topic: str, partition: int, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.record_reader.READ_WITHIN_S", 3_600.0)
    async with asyncio.timeout(LIMIT_S), filled(embedded_broker.bootstrap_servers) as reader:
        with pytest.raises(RecordUnavailable):
            await reader.read(topic, partition, 0)
        assert await read_all(reader, [7]) == [b"7"]


async def assert_only_these_tasks_remain(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Checks that all other tasks end by themselves.

    The broker must be gone: a client that was not closed would then try to connect without end.
    """
    others = asyncio.all_tasks() - {*tasks, asyncio.current_task()}
    _, remaining = await asyncio.wait(others, timeout=LIMIT_S) if others else (set(), set())
    assert not remaining


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 5, 20, 100])
async def test_a_stop_ends_pending_reads_and_leaves_no_task_or_connection(connected: bool, turns: int) -> None:
    with EmbeddedBroker() as broker:
        reader = filled(broker.bootstrap_servers)
        before = asyncio.all_tasks()
        await reader.start()
        if connected:
            assert await read_all(reader, [3]) == [b"3"]
        reads = asyncio.create_task(read_all(reader, range(8)))
        for _ in range(turns):
            await asyncio.sleep(0)
        await reader.stop()
        assert set(await reads) <= {RecordUnavailable, *(b"%d" % number for number in range(8))}
        assert await read_all(reader, [3]) == [RecordUnavailable]
    await assert_only_these_tasks_remain(before)


async def test_a_read_from_a_broker_that_stops_raises_record_unavailable_and_cancels_no_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.record_reader.READ_WITHIN_S", 2.0)
    with EmbeddedBroker() as broker:
        async with filled(broker.bootstrap_servers) as reader:
            before = asyncio.all_tasks()
            assert await read_all(reader, [3]) == [b"3"]
            seek = AIOKafkaConsumer.seek

            def stop_broker_and_seek(self: AIOKafkaConsumer, *place: Any) -> Any:
                broker.__exit__(None, None, None)
                return seek(self, *place)

            monkeypatch.setattr(AIOKafkaConsumer, "seek", stop_broker_and_seek)
            assert await read_all(reader, [4, 5]) == [RecordUnavailable, RecordUnavailable]
            await assert_only_these_tasks_remain(before)
