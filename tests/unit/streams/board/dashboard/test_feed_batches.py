"""A batch of the feed has the records of all answers that come in time, however few records an answer has."""

from __future__ import annotations

import asyncio

from aiokafka import TopicPartition

from traceweir.streams.board.dashboard.feed import UNWATCHED_EVERY_S, read_batch

FIRST, SECOND = TopicPartition("results", 0), TopicPartition("results", 1)


class Answers:
    """A consumer that gives these answers, one for each call, and then none."""

    def __init__(self, *answers: dict[TopicPartition, list[int]]) -> None:
        self.left = list(answers)
        self.most: list[int] = []

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[int]]:
        self.most.append(max_records)
        if self.left:
            return self.left.pop(0)
        await asyncio.sleep(0)
        return {}


async def test_a_batch_has_the_records_of_several_answers_in_their_order() -> None:
    consumer = Answers({FIRST: [1, 2]}, {SECOND: [3]}, {FIRST: [4, 5]}, {FIRST: [6]})
    much_later_s = asyncio.get_running_loop().time() + 1_000
    assert await read_batch(consumer, much_later_s, most=5) == {FIRST: [1, 2, 4, 5], SECOND: [3]}
    assert consumer.most == [5, 3, 2]


async def test_records_that_come_late_are_a_batch_at_once() -> None:
    consumer = Answers({FIRST: [1]}, {FIRST: [2]})
    assert await read_batch(consumer, 0.0) == {FIRST: [1]}


async def test_a_batch_ends_in_time() -> None:
    soon_s = asyncio.get_running_loop().time() + 0.01
    assert await read_batch(Answers({FIRST: [1]}), soon_s) == {FIRST: [1]}
    assert await read_batch(Answers(), 0.0) == {}


async def test_a_batch_is_larger_while_nobody_looks_and_ends_when_somebody_does() -> None:
    is_watched = iter([False, False, False, True])
    consumer = Answers({FIRST: [1]}, {FIRST: [2]}, {FIRST: [3]}, {FIRST: [4]})
    now_s = asyncio.get_running_loop().time()

    found = await read_batch(consumer, now_s, is_watched=lambda: next(is_watched))

    assert found == {FIRST: [1, 2, 3]}


async def test_a_batch_ends_though_nobody_looks() -> None:
    long_ago_s = asyncio.get_running_loop().time() - UNWATCHED_EVERY_S
    assert await read_batch(Answers({FIRST: [1]}), long_ago_s, is_watched=lambda: False) == {FIRST: [1]}
