"""Reading a record again while its transaction is open: a stage can have it before it is committed."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.worker.kafka.record_reader import RecordReader

pytestmark = pytest.mark.kafka


async def test_a_record_of_an_open_transaction_is_unavailable_until_it_is_committed(kafka: str) -> None:
    topic = f"sessions-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    (created,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
    created.result()
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic})
    producer.init_transactions(30)

    def begin(value: bytes) -> None:
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0

    begin(b"committed")
    producer.commit_transaction(30)
    begin(b"open")  # at the offset 2, after the marker
    async with RecordReader({"bootstrap_servers": kafka}) as reader:
        assert (await reader.read(topic, 0, 0)).value == b"committed"
        with pytest.raises(RecordUnavailable):
            await reader.read(topic, 0, 2)
        assert await reader.read(topic, 0, 3) is None  # the log has no such record
        producer.commit_transaction(30)
        while True:
            try:
                record = await reader.read(topic, 0, 2)
                break
            except RecordUnavailable:  # the broker answers a commit before it has written the marker
                continue
        assert record.value == b"open"
