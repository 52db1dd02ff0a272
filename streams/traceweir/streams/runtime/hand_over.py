"""Passes the outputs of a stage to the next stage within the transaction that sends them.

A session needs three stages: it is closed, scored, and its traces are decided on. If each stage waited for the former
one's transaction and for a fetch, the session would wait for three transactions and two fetches. But the broker's answer
to a send has the offset of the records, and nobody can remove them any more without ending this worker: if the
transaction fails, the lanes with all that they have taken are dropped. So the lanes of this worker take the records at
once, and what follows from them is sent in the same transaction, or in a later one.

The consumer reads the same records later, and a lane leaves out what it has taken. Records that do not directly follow
what the lane has read are left to the consumer: another worker can have written in between.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from aiokafka import TopicPartition

from traceweir.schemas.dead_letter import Headers
from traceweir.streams.runtime.checkpoint_content import CheckpointContent
from traceweir.streams.runtime.delivery import Changes
from traceweir.streams.runtime.lane import Lane
from traceweir.streams.runtime.suspects import StageFailed
from traceweir.streams.stages.base import Output

ROUNDS = 2
"""Number of times that what follows from records is sent in the same transaction: scores, then decisions."""
HOLD_S = 0.005
"""Maximum time that a transaction waits for work of stages that take their time, in seconds."""


class Appended(NamedTuple):
    """A record as this worker has appended it to a topic."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class HandOver:
    """Hands over the outputs of one checkpoint."""

    def __init__(self, lanes: Mapping[int, Lane], content: CheckpointContent) -> None:
        """Starts with nothing handed over.

        Args:
            lanes: The owned partitions.
            content: What the checkpoint sends; further cuts are added to it.
        """
        self._lanes, self._content = lanes, content
        self._given: dict[tuple[Lane, str], None] = {}
        self._rounds = 0

    async def further(self, firsts: Mapping[TopicPartition, int]) -> Changes | None:
        """Hands over the outputs that were sent last, and returns what has to be sent in the same transaction.

        Args:
            firsts: The offset of the first sent record of each partition whose records have consecutive offsets.
        """
        before = {number: lane.in_flight() for number, lane in self._lanes.items()}
        takers = self._give(firsts)
        if not takers or self._rounds == ROUNDS or any(lane.far_behind() for lane in self._lanes.values()):
            return None  # throughput is more important than the time of one session: the next checkpoint is larger
        self._rounds += 1
        await self._until_done(takers, before)
        return self._content.cut([lane for lane in takers if not lane.dead])

    def committed(self) -> None:
        """Notes that the transaction was committed."""
        for lane, topic in self._given:
            lane.note_committed(topic)

    def _give(self, firsts: Mapping[TopicPartition, int]) -> list[Lane]:
        takers: dict[Lane, None] = {}
        for place, outputs in _by_place(self._content.sent).items():
            lane, first = self._lanes.get(place.partition), firsts.get(place)
            if lane is None or first is None or place.topic not in lane.handed_topics:
                continue
            records = [
                Appended(offset, output.timestamp or 0, output.key, output.value, output.headers)
                for offset, output in enumerate(outputs, first)
            ]
            try:
                if not lane.take_appended(place.topic, records):
                    continue
            except StageFailed as raised:
                self._content.failed[lane] = raised
            takers[lane] = None
            self._given[lane, place.topic] = None
        return list(takers)

    async def _until_done(self, takers: Collection[Lane], before: Mapping[int, int]) -> None:
        """Waits until the takers have done as much work as they got, at most for `HOLD_S`."""
        worked = asyncio.Event()
        for lane in takers:
            lane.worked = worked.set
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                while any(not lane.dead and lane.in_flight() > before[lane.number] for lane in takers):
                    worked.clear()
                    await worked.wait()


def _by_place(outputs: Iterable[Output]) -> Mapping[TopicPartition, Sequence[Output]]:
    found: dict[TopicPartition, list[Output]] = defaultdict(list)
    for output in outputs:
        found[TopicPartition(output.topic, output.partition)].append(output)
    return found
