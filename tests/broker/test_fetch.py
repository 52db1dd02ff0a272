"""A consumer on a broker reads past a header whose name is not UTF-8."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from tests.support.batches import rename_header

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.fetch import read_as_parsed

pytestmark = pytest.mark.broker


@pytest.mark.usefixtures("restored_fetcher")
async def test_a_consumer_reads_past_a_header_name_that_is_not_utf8() -> None:
    with EmbeddedBroker() as broker:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for name in (b"NAME", b"\xff\xfeME", b"NAME"):
                batch = producer.create_batch()
                for number in range(3):
                    headers = [("NAME", b"x")] if number == 1 else []
                    batch.append(key=None, value=b"%d" % number, timestamp=None, headers=headers)
                rename_header(batch, b"NAME", name)
                await (await producer.send_batch(batch, "t", partition=0))

        read_as_parsed(["t"])
        async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            await consumer.seek_to_beginning()
            found: list[tuple[int, bytes, list[str]]] = []
            while len(found) < 9:
                for records in (await consumer.getmany(timeout_ms=5_000)).values():
                    found += [(r.offset, r.value, [name for name, _ in r.headers]) for r in records]

    named = {1: ["NAME"], 4: [r"\xff\xfeME"], 7: ["NAME"]}
    assert found == [(offset, b"%d" % (offset % 3), named.get(offset, [])) for offset in range(9)]
