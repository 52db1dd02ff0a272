"""A checkpoint on Apache Kafka is one transaction of rows, outputs and offsets; an unfinished one is invisible."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, ProducerFenced
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.workers import ROOT

from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.delivery import CheckpointChanges, Firsts, Transaction
from traceweir.streams.worker.runtime.failure import in_words

pytestmark = pytest.mark.kafka

PARTITIONS = 2


class Ground:
    """The topics and the consumer group of one test, and a `read_committed` reader."""

    def __init__(self, servers: str) -> None:
        name = uuid.uuid4().hex[:8]
        self.servers, self.group = servers, f"group-{name}"
        self.source, self.results, self.changelog = f"source-{name}", f"results-{name}", f"changelog-{name}"
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self.create(self.source, self.results, self.changelog)

    def create(self, *topics: str) -> None:
        for future in self._admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
            future.result()

    def create_with_times_of_the_broker(self, topic: str) -> None:
        """Creates a topic whose records get the time of their append, whatever the producer says."""
        config = {"message.timestamp.type": "LogAppendTime"}
        (created,) = self._admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=config)]).values()
        created.result()

    def create_for_small_batches(self, topic: str, most: int) -> None:
        """Creates a topic that refuses batches of more than `most` bytes."""
        config = {"max.message.bytes": str(most)}
        (created,) = self._admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=config)]).values()
        created.result()

    def owner(self) -> Transaction:
        """Returns a new sender of the checkpoints of partition 0, which fences earlier ones when it starts."""
        return Transaction({"bootstrap_servers": [self.servers]}, f"{self.group}-0", self.group)

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.changelog, 0)

    def rows(self, **values: str) -> RowsByPlace:
        """Returns rows of partition 0, by their keys."""
        return {self.place: [(key.encode(), value.encode()) for key, value in values.items()]}

    def output(self, value: str, partition: int = 0) -> Output:
        return Output(self.results, partition, b"key", value.encode())

    def offsets(self, offset: int) -> Mapping[TopicPartition, int]:
        return {TopicPartition(self.source, 0): offset}

    async def visible(self) -> tuple[list[str], list[str], int | None]:
        """Returns the visible values of the rows and of the outputs, and the group's offset."""
        rows, outputs = await asyncio.gather(
            asyncio.to_thread(self._read, self.changelog), asyncio.to_thread(self._read, self.results)
        )
        return rows, outputs, await asyncio.to_thread(self._offset)

    def _offset(self) -> int | None:
        asked = ConsumerGroupTopicPartitions(self.group)
        answer = self._admin.list_consumer_group_offsets([asked])[self.group].result()
        found = {place.topic: place.offset for place in answer.topic_partitions}
        return found.get(self.source)

    def _read(self, topic: str) -> list[str]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader-of-tests",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,  # Reports the end of the committed records.
            }
        )
        consumer.assign([Place(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        ends, values = 0, []
        try:
            while ends < PARTITIONS:
                message = consumer.poll(30)
                assert message is not None, f"{topic} does not end"
                if message.error() is None:
                    values.append(message.value().decode())
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    ends += 1
        finally:
            consumer.close()
        return values


NOTHING: tuple[Sequence[str], Sequence[str], int | None] = ([], [], None)


@pytest.fixture
def ground(kafka: str) -> Ground:
    return Ground(kafka)


@pytest.fixture
async def owner(ground: Ground) -> AsyncIterator[Transaction]:
    owner = ground.owner()
    await owner.start()
    yield owner
    await owner.stop()


async def test_rows_outputs_and_offsets_become_visible_together(
    ground: Ground, owner: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    commit = AIOKafkaProducer.commit_transaction

    async def look_and_commit(producer: AIOKafkaProducer) -> None:
        seen.append(await ground.visible())
        await commit(producer)

    monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", look_and_commit)
    await owner.send(ground.rows(k="row"), [ground.output("one"), ground.output("two", 1)], ground.offsets(7))

    assert seen == [NOTHING]
    rows, outputs, offset = await ground.visible()
    assert (rows, sorted(outputs), offset) == (["row"], ["one", "two"], 7)


async def test_what_follows_from_the_first_part_becomes_visible_with_it(ground: Ground, owner: Transaction) -> None:
    place = TopicPartition(ground.results, 0)
    seen: list[object] = []

    async def further(firsts: Firsts) -> CheckpointChanges | None:
        seen.append((firsts[place], await ground.visible()))
        if len(seen) == 1:
            return CheckpointChanges(ground.rows(k="later"), [ground.output("three")], ground.offsets(8))
        return None

    outputs = [ground.output("one"), ground.output("two")]
    ends = await owner.send(ground.rows(k="row"), outputs, ground.offsets(7), further)

    assert seen == [(0, NOTHING), (2, NOTHING)]
    assert ends == {ground.place: 1}
    assert await ground.visible() == (["row", "later"], ["one", "two", "three"], 8)


async def test_the_marker_of_a_transaction_takes_one_offset_before_the_next_record(
    ground: Ground, owner: Transaction
) -> None:
    found: list[int] = []

    async def further(firsts: Firsts) -> None:
        found.append(firsts[TopicPartition(ground.results, 0)])

    for number in range(20):
        await owner.send({}, [ground.output(str(number))], {}, further)
    assert found == [2 * number for number in range(20)]


async def test_a_topic_with_the_time_of_the_broker_has_no_known_offsets(ground: Ground, owner: Transaction) -> None:
    ground.create_with_times_of_the_broker(topic := f"{ground.results}-late")
    found: list[Firsts] = []

    async def further(firsts: Firsts) -> None:
        found.append(firsts)

    await owner.send({}, [Output(topic, 0, b"key", b"value", timestamp=1), ground.output("one")], {}, further)
    assert found == [{TopicPartition(ground.results, 0): 0}]


async def test_a_new_owner_fences_the_old_owner_and_its_checkpoint_stays_invisible(
    ground: Ground, owner: Transaction
) -> None:
    await owner.send(ground.rows(k="old"), [ground.output("old")], ground.offsets(1))
    successor = ground.owner()
    await successor.start()

    with pytest.raises(ProducerFenced):
        await owner.send(ground.rows(k="zombie"), [ground.output("zombie")], ground.offsets(9))

    assert await ground.visible() == (["old"], ["old"], 1)
    await successor.send(ground.rows(k="new"), [ground.output("new")], ground.offsets(2))
    await successor.stop()
    assert await ground.visible() == (["old", "new"], ["old", "new"], 2)


CHECKPOINT_AND_DIE = """
import asyncio, sys
from aiokafka import TopicPartition
from tests.support.dying_worker import Death, install
from traceweir.streams.worker.runtime.delivery import Transaction
from traceweir.streams.base.stages.base import Output
servers, group, source, results, changelog, step, moment = sys.argv[1:]
async def main():
    owner = Transaction({"bootstrap_servers": [servers]}, f"{group}-0", group)
    await owner.start()
    death = Death()
    install(death)
    death.draw(step, moment, 1)
    await owner.send({TopicPartition(changelog, 0): [(b"k", b"dead")]}, [Output(results, 1, b"k", b"dead")], {TopicPartition(source, 0): 5})
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("step", "moment", "whole"),
    [
        ("send_batch", "after", False),
        ("send_offsets_to_transaction", "midway", False),
        ("send_offsets_to_transaction", "after", False),
        ("commit_transaction", "before", False),
        ("commit_transaction", "after", True),
    ],
)
async def test_a_process_killed_during_a_checkpoint_commits_all_of_it_or_nothing(
    ground: Ground, step: str, moment: str, whole: bool
) -> None:
    topics = (ground.source, ground.results, ground.changelog)
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", CHECKPOINT_AND_DIE, ground.servers, ground.group, *topics, step, moment],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -9, ended.stderr

    successor = ground.owner()
    await successor.start()  # It aborts the open transaction.
    left = await ground.visible()
    await successor.send(ground.rows(k="next"), [ground.output("next")], ground.offsets(6))
    await successor.stop()

    assert left == ((["dead"], ["dead"], 5) if whole else NOTHING)
    rows, outputs, offset = await ground.visible()
    assert (rows, sorted(outputs), offset) == ([*left[0], "next"], [*left[1], "next"], 6)


async def test_send_returns_the_offset_of_the_last_row_for_any_number_of_batches(
    ground: Ground, owner: Transaction
) -> None:
    wide = "x" * 300_000
    rows = ground.rows(**{f"r{number}": f"{number}{wide}" for number in range(10)})

    first = await owner.send(rows, [], {})
    second = await owner.send(ground.rows(a="last but one", b="last"), [], {})

    values, outputs, offset = await ground.visible()
    assert values == [value.decode() for _, value in rows[ground.place] if value] + ["last but one", "last"]
    assert (outputs, offset) == ([], None)
    assert (first, second) == (
        {ground.place: 9},
        {ground.place: 12},
    )  # The marker of the first transaction has offset 10.


async def test_send_without_rows_returns_no_offset(ground: Ground, owner: Transaction) -> None:
    assert await owner.send({}, [ground.output("one")], ground.offsets(3)) == {}
    assert await ground.visible() == ([], ["one"], 3)


async def test_a_record_too_large_for_a_batch_is_reported_and_the_checkpoint_stays_invisible(
    ground: Ground, owner: Transaction
) -> None:
    large = ground.output("x" * 1_100_000)

    with pytest.raises(ValueError, match=rf"a record of 1100003 bytes for {ground.results} does not fit a batch"):
        await owner.send(ground.rows(k="row"), [ground.output("one"), large], ground.offsets(3))

    successor = ground.owner()
    await successor.start()
    assert await ground.visible() == NOTHING
    await successor.stop()


async def test_a_topic_that_was_created_later_can_be_written_beside_earlier_ones(kafka: str) -> None:
    ground = Ground(kafka)
    owner = ground.owner()
    await owner.start()
    try:
        await owner.send(ground.rows(a="1"), [ground.output("first")], ground.offsets(1))
        later = f"later-{ground.group}"
        ground.create(later)
        outputs = [Output(later, 0, b"key", b"later"), ground.output("second")]
        async with asyncio.timeout(20):
            await owner.send(ground.rows(a="2"), outputs, ground.offsets(2))
    finally:
        await owner.stop()
    assert await ground.visible() == (["1", "2"], ["first", "second"], 2)


async def test_a_batch_that_a_topic_refuses_for_its_size_is_reported_with_topic_and_option(ground: Ground) -> None:
    ground.results += "-small"
    ground.create_for_small_batches(ground.results, 100_000)
    owner = ground.owner()
    await owner.start()
    try:
        with pytest.raises(MessageSizeTooLargeError) as raised:
            await owner.send(ground.rows(a="1"), [ground.output("x" * 200_000)], {})
    finally:
        await owner.stop()
    sentence = in_words(raised.value) or ""
    assert f"topic '{ground.results}' refuses a batch of 200" in sentence
    assert "because its max.message.bytes is below that: set it to 1000000 or more" in sentence
