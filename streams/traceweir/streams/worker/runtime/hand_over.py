"""Passes the outputs of a stage to the next stage within the transaction that sends them.

Without this, a session waits for three transactions and two fetches until its traces are decided on. The broker's answer
to a send contains the offset of the records, while the transaction is open. The lanes of this worker take the records at
that moment. What follows from them is sent in the same transaction, or in a later one. If the transaction fails,
these lanes are dropped.

The consumer reads the same records later, and a lane leaves out what it has taken. Records that do not directly follow
what the lane has read are left to the consumer: another worker can have written in between.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from aiokafka import TopicPartition

from traceweir.schemas.dead_letter import Headers
from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.runtime.checkpoint_content import CheckpointContent
from traceweir.streams.worker.runtime.delivery import CheckpointChanges, Firsts
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.suspects import StageFailed

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

    def __init__(self, lanes: Mapping[int, Lane], content: CheckpointContent, worked: asyncio.Event) -> None:
        """Starts with nothing handed over.

        Args:
            lanes: The owned partitions.
            content: What the checkpoint sends; further cuts are added to it.
            worked: Set each time that work of a stage is done.
        """
        self._lanes = lanes
        self._content = content
        self._worked = worked
        self._rounds = 0

    async def further(self, firsts: Firsts) -> CheckpointChanges | None:
        """Hands over the outputs that were sent last, and returns what has to be sent in the same transaction."""
        takers = self._give(firsts)
        if not takers or self._rounds == ROUNDS:
            return None
        # What follows comes with the next checkpoint, which is larger, or does not make this one too large.
        if self._content.full or any(lane.far_behind() for lane in self._lanes.values()):
            return None
        self._rounds += 1
        await self._until_done(takers)
        return self._content.cut([lane for lane in takers if not lane.dead])

    def _give(self, firsts: Firsts) -> Mapping[Lane, int]:
        """Returns the lanes that have taken records, with the number of records on which they worked before."""
        takers: dict[Lane, int] = {}
        for place, outputs in self._handed().items():
            lane = self._lanes.get(place.partition)
            first = firsts.get(place)
            if lane is None or first is None:
                continue
            records = [_record(offset, output) for offset, output in enumerate(outputs, first)]
            before = lane.in_flight()
            try:
                if not lane.take_appended(place.topic, records):
                    continue
            except StageFailed as raised:
                self._content.failed[lane] = raised
            takers.setdefault(lane, before)
        return takers

    def _handed(self) -> Mapping[TopicPartition, Sequence[Output]]:
        """Returns the outputs that were sent last and that a stage of a worker reads, by partition."""
        found: dict[tuple[str, int], list[Output]] = defaultdict(list)
        for output in self._content.sent:
            if output.topic in self._content.handed:
                found[output.topic, output.partition].append(output)
        return {TopicPartition(*place): outputs for place, outputs in found.items()}

    async def _until_done(self, takers: Mapping[Lane, int]) -> None:
        """Waits until the takers have done as much work as they got, at most for `HOLD_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                while any(not lane.dead and lane.in_flight() > before for lane, before in takers.items()):
                    self._worked.clear()
                    await self._worked.wait()


def _record(offset: int, output: Output) -> Appended:
    if output.timestamp is None:
        raise ValueError(
            f"an output for {output.topic} has no timestamp, so its reader would see another than the broker"
        )
    return Appended(offset, output.timestamp, output.key, output.value, output.headers)
