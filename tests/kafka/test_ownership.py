"""Tests on Apache Kafka that exactly one worker can write to a partition, whatever partitions its former owner had."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ProducerFenced
from tests.kafka.test_delivery import NOTHING, Ground

from traceweir.streams.runtime.ownership import ClaimedPartitions
from traceweir.streams.stages.base import Rows

Begin = Callable[[Collection[int]], "asyncio.Future[ClaimedPartitions] | asyncio.Task[ClaimedPartitions]"]


@pytest.fixture
def ground(kafka: str) -> Ground:
    return Ground(kafka)


@pytest.fixture
def steps() -> list[int]:
    """Returns a list that has an entry for each step of a takeover."""
    return []


@pytest.fixture
async def begin(ground: Ground, steps: list[int]) -> AsyncIterator[Begin]:
    """Returns a function that connects a worker and keeps others from claiming its partitions."""
    async with AsyncExitStack() as stack:

        async def begin(numbers: Collection[int]) -> ClaimedPartitions:
            owner = ClaimedPartitions(
                {"bootstrap_servers": [ground.servers]}, ground.group, ground.changelog, lambda delivery: delivery
            )
            stack.push_async_callback(owner.stop)
            await owner.begin(numbers, lambda: steps.append(len(numbers)))
            return owner

        yield lambda numbers: asyncio.ensure_future(begin(numbers))


def in_both(ground: Ground, value: str) -> dict[TopicPartition, Rows]:
    return {TopicPartition(ground.changelog, number): [(b"k", value.encode())] for number in range(2)}


async def test_workers_that_take_over_different_partitions_fence_their_common_owner(
    ground: Ground, begin: Begin, steps: list[int]
) -> None:
    former = await begin([0, 1])
    assert len(steps) == 1 + 2
    assert (await former.claim([])).keys() == {0, 1}
    assert len(steps) == 1 + 2 + 2
    await former.delivery.send(in_both(ground, "old"), [ground.output("old")], ground.offsets(1))
    names = {row for row in (await ground.visible())[0] if row.startswith(ground.group)}
    assert len(names) == 1

    heirs = await asyncio.gather(begin([0]), begin([1]))
    await asyncio.gather(*(heir.claim(names) for heir in heirs))
    assert steps.count(1) == 2 * (2 + 1 + 1)  # each starts two producers, fences one writer and claims one partition
    with pytest.raises(ProducerFenced):
        await former.delivery.send(in_both(ground, "zombie"), [ground.output("zombie")], ground.offsets(9))

    for number, heir in enumerate(heirs):
        await heir.delivery.send(
            {TopicPartition(ground.changelog, number): [(b"k", b"new")]}, [ground.output("new", number)], {}
        )
    rows, outputs, offset = await ground.visible()
    assert sorted(row for row in rows if row in {"old", "new", "zombie"}) == ["new", "new", "old", "old"]
    assert (sorted(outputs), offset) == (["new", "new", "old"], 1)


async def test_an_open_transaction_of_the_former_writer_is_aborted(ground: Ground, begin: Begin) -> None:
    former = await begin([0])
    await former.claim([])
    before = await ground.visible()
    name = before[0][0]
    too_large = ground.output("x" * 1_100_000)
    with pytest.raises(ValueError, match="does not fit a batch"):  # which leaves the transaction open
        await former.delivery.send(ground.rows(k="open"), [too_large], {})

    reader = AIOKafkaConsumer(bootstrap_servers=[ground.servers], isolation_level="read_uncommitted")
    await reader.start()
    try:
        place = TopicPartition(ground.changelog, 0)
        reader.assign([place])
        await reader.seek_to_beginning(place)
        values: list[bytes] = []
        while b"open" not in values:
            values.append((await asyncio.wait_for(reader.getone(), 30)).value)
    finally:
        await reader.stop()
    assert await ground.visible() == before

    heir = await begin([0])
    await heir.claim([name])

    rows, _, _ = await ground.visible()
    assert len({row for row in rows if row.startswith(ground.group)} - {name}) == 1
    assert "open" not in rows


async def test_a_worker_cannot_claim_a_partition_after_another_has_begun_to(ground: Ground, begin: Begin) -> None:
    slow = await begin([0])
    await begin([0])
    with pytest.raises(ProducerFenced):
        await slow.claim([])
    assert await ground.visible() == NOTHING
