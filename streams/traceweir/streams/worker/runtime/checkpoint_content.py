"""Collects what the lanes of one checkpoint send."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import Cut, Output, Rows
from traceweir.streams.worker.runtime.delivery import CheckpointChanges
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.suspects import StageFailed


class Counted(NamedTuple):
    """A cut with changes."""

    lane: Lane
    rows: int
    """Number of its rows."""
    counts: Mapping[str, int]
    """What the stages have counted since the cut before."""
    outputs: Sequence[Output]


class CheckpointContent:
    """The changes of one checkpoint, which can cut a lane several times."""

    def __init__(
        self, changelog: str, now: float, handed: Collection[str], *, last: bool, most_bytes: float = math.inf
    ) -> None:
        """Starts without changes.

        Args:
            changelog: The changelog topic.
            now: When the checkpoint began, in seconds of a monotonic clock.
            handed: The topics whose records can be handed over. Their outputs get the timestamp here, so that the stage
                and the broker have the same one.
            last: Whether this is the last checkpoint of its lanes.
            most_bytes: Bytes of keys and values beyond which no further lane is cut. A single cut can be larger.
        """
        self._changelog = changelog
        self._now = now
        self.handed = handed
        self._last = last
        self._most_bytes = most_bytes
        self.bytes = self.taken_bytes = 0
        """Bytes of keys and values of all changes, and bytes of the records that the stages took for them."""
        self.tried: dict[Lane, None] = {}
        """All lanes that were cut, with changes or without."""
        self.failed: dict[Lane, StageFailed] = {}
        """The lanes whose stage raised. Nothing of the cut that raised is sent."""
        self.rows: dict[Lane, Rows] = {}
        """All rows of each lane."""
        self.counted: list[Counted] = []
        """All cuts with changes."""
        self.offsets: dict[TopicPartition, int] = {}
        """The offsets for the consumer group."""
        self.sent: Sequence[Output] = ()
        """The outputs of the last call of `cut`."""

    @property
    def full(self) -> bool:
        """Whether the changes have as many bytes as a transaction can have."""
        return self.bytes >= self._most_bytes

    def cut(self, lanes: Iterable[Lane]) -> CheckpointChanges | None:
        """Cuts lanes, and returns their changes; None if there are none.

        Lanes whose changes do not fit the transaction are left out, and come with a later checkpoint.
        """
        rows: dict[TopicPartition, Rows] = {}
        outputs: list[Output] = []
        offsets: dict[TopicPartition, int] = {}
        before = len(self.counted)
        timestamp = int(seconds_now() * 1000)
        for lane in lanes:
            if self.bytes and self.bytes + lane.pending_bytes > self._most_bytes:
                continue
            taken = lane.pending_bytes
            self.tried[lane] = None
            lane.cut_at = self._now
            lane.in_checkpoint = True
            try:
                cut = lane.cut()
            except StageFailed as raised:
                self.failed[lane] = raised
                continue
            group_offsets = lane.offsets.to_commit(self._now, last=self._last)
            if any(cut) or group_offsets:
                dated = self._dated(cut.outputs, timestamp)
                self.counted.append(Counted(lane, len(cut.rows), lane.counted.changes(), dated))
                outputs += dated
                self.taken_bytes += taken
                self.bytes += _size(cut)
                if cut.rows:
                    self.rows.setdefault(lane, []).extend(cut.rows)
                    rows[self.place(lane)] = cut.rows
                offsets |= {TopicPartition(*lane.places[name]): offset for name, offset in group_offsets.items()}
        self.sent = outputs
        self.offsets |= offsets
        return CheckpointChanges(rows, outputs, offsets) if len(self.counted) > before else None

    def place(self, lane: Lane) -> TopicPartition:
        """Returns the partition of the changelog that has the rows of a lane."""
        return TopicPartition(self._changelog, lane.number)

    def _dated(self, outputs: Sequence[Output], timestamp: int) -> Sequence[Output]:
        if not self.handed:
            return outputs
        return [
            output._replace(timestamp=timestamp) if output.timestamp is None and output.topic in self.handed else output
            for output in outputs
        ]


def _size(cut: Cut) -> int:
    size = 0
    for key, row in cut.rows:
        size += len(key) + len(row or b"")
    for output in cut.outputs:
        size += len(output.key or b"") + len(output.value or b"")
    return size
