"""Reading single records again: present and deleted records; neither a stop nor a dead broker ends the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer

from traceweir.streams.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.kafka.record_reader import RecordReader
from traceweir.streams.stages.errors import RecordUnavailable

pytestmark = pytest.mark.broker

RECORDS = 20
LIMIT_S = 20
"""What would go on for ever fails a test after so long; no test takes it."""


def filled(servers: str) -> RecordReader:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    return RecordReader({"bootstrap_servers": servers})


async def asked(rereading: RecordReader, offsets: Sequence[int]) -> list[Any]:
    """What comes of questions that are asked at once: a value, None, or the kind of what is raised."""
    found = await asyncio.gather(*(rereading.read("t", 0, offset) for offset in offsets), return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each and each.value for each in found]


async def test_a_record_is_read_wherever_it_stands_and_none_where_there_is_none(
    embedded_broker: EmbeddedBroker,
) -> None:
    async with filled(embedded_broker.bootstrap_servers) as rereading:
        assert await asked(rereading, [7, 0, 19, 7, RECORDS]) == [b"7", b"0", b"19", b"7", None]


async def nothing_goes_on_but(tasks: Collection[asyncio.Task[Any]]) -> None:
    """All other tasks end by themselves.

    To be called when the broker is gone: a client that was left alone would ask for it for ever.
    """
    others = asyncio.all_tasks() - {*tasks, asyncio.current_task()}
    _, going_on = await asyncio.wait(others, timeout=LIMIT_S) if others else (set(), set())
    assert not going_on


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 5, 20, 100])
async def test_a_stop_ends_what_is_asked_and_nothing_connects_or_goes_on_after_it(connected: bool, turns: int) -> None:
    with EmbeddedBroker() as broker:
        rereading = filled(broker.bootstrap_servers)
        before = asyncio.all_tasks()
        await rereading.start()
        if connected:
            assert await asked(rereading, [3]) == [b"3"]
        reads = asyncio.create_task(asked(rereading, range(8)))
        for _ in range(turns):
            await asyncio.sleep(0)
        await rereading.stop()
        assert set(await reads) <= {RecordUnavailable, *(b"%d" % number for number in range(8))}
        assert await asked(rereading, [3]) == [RecordUnavailable]
    await nothing_goes_on_but(before)


async def test_a_broker_that_goes_away_in_the_middle_of_a_read_gives_no_record_and_cancels_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("traceweir.streams.kafka.record_reader.READ_WITHIN_S", 2.0)
    with EmbeddedBroker() as broker:
        async with filled(broker.bootstrap_servers) as rereading:
            before = asyncio.all_tasks()
            assert await asked(rereading, [3]) == [b"3"]
            seek = AIOKafkaConsumer.seek

            def gone(self: AIOKafkaConsumer, *place: Any) -> Any:
                broker.__exit__(None, None, None)
                return seek(self, *place)

            monkeypatch.setattr(AIOKafkaConsumer, "seek", gone)
            assert await asked(rereading, [4, 5]) == [RecordUnavailable, RecordUnavailable]
            await nothing_goes_on_but(before)
