"""Tests on Apache Kafka that exactly one worker can write to a partition, whatever partitions its former owner had."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ProducerFenced
from tests.kafka.test_delivery import NOTHING, Ground

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.worker.runtime.cluster_clock import EVERY_S, ClocksApartError, ClusterClock
from traceweir.streams.worker.runtime.ownership import ClaimedPartitions
from traceweir.streams.worker.runtime.row_formats import FORMAT

pytestmark = pytest.mark.kafka

FORMATS = {0: FORMAT, 1: FORMAT}
Begin = Callable[[Collection[int]], "asyncio.Future[ClaimedPartitions] | asyncio.Task[ClaimedPartitions]"]


@pytest.fixture
def ground(kafka: str) -> Ground:
    return Ground(kafka)


@pytest.fixture
def steps() -> list[int]:
    """Returns a list that has an entry for each step of a takeover."""
    return []


@dataclass
class Clock:
    """The clock of the workers of one test."""

    ahead_s: float = 0.0
    """Seconds by which it is ahead of the real one."""
    elapsed_s: float = 0.0
    """Seconds that have passed for the workers."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def begin(ground: Ground, steps: list[int], clock: Clock) -> AsyncIterator[Begin]:
    """Returns a function that connects a worker and keeps others from claiming its partitions."""
    async with AsyncExitStack() as stack:

        async def begin(numbers: Collection[int]) -> ClaimedPartitions:
            owner = ClaimedPartitions(
                {"bootstrap_servers": [ground.servers]},
                ground.group,
                ground.changelog,
                lambda delivery: delivery,
                ClusterClock(clock=lambda: seconds_now() + clock.ahead_s, elapsed=lambda: clock.elapsed_s),
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
    assert (await former.claim([], FORMATS)).keys() == {0, 1}
    assert len(steps) == 1 + 2 + 2
    await former.delivery.send(in_both(ground, "old"), [ground.output("old")], ground.offsets(1))
    names = {row for row in (await ground.visible())[0] if row.startswith(ground.group)}
    assert len(names) == 1

    heirs = await asyncio.gather(begin([0]), begin([1]))
    await asyncio.gather(*(heir.claim(names, FORMATS) for heir in heirs))
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
    await former.claim([], FORMATS)
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
    await heir.claim([name], FORMATS)

    rows, _, _ = await ground.visible()
    assert len({row for row in rows if row.startswith(ground.group)} - {name}) == 1
    assert "open" not in rows


async def test_a_worker_cannot_claim_a_partition_after_another_has_begun_to(ground: Ground, begin: Begin) -> None:
    slow = await begin([0])
    await begin([0])
    with pytest.raises(ProducerFenced):
        await slow.claim([], FORMATS)
    assert await ground.visible() == NOTHING


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(3_600, "s ahead of the cluster's"), (-3_600, "s behind the cluster's")]
)
async def test_a_worker_with_a_wrong_clock_claims_nothing_that_it_keeps(
    ahead_s: float, words: str, begin: Begin, clock: Clock
) -> None:
    clock.ahead_s = ahead_s
    worker = await begin([0, 1])
    with pytest.raises(ClocksApartError, match=words):
        await worker.claim([], FORMATS)


async def test_a_clock_that_jumps_while_the_worker_runs_is_found_at_the_next_comparison(
    ground: Ground, begin: Begin, clock: Clock
) -> None:
    worker = await begin([0, 1])
    await worker.claim([], FORMATS)
    clock.ahead_s = 3_600

    async def commit(value: str) -> None:
        since = seconds_now() + clock.ahead_s
        ends = await worker.delivery.send(in_both(ground, value), [], {})
        await worker.compare_clocks(ends, since)

    await commit("within the minute")
    clock.elapsed_s = EVERY_S
    with pytest.raises(ClocksApartError, match="ahead of the cluster's"):
        await commit("after the minute")
