"""Collects what the lanes of one checkpoint send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from aiokafka import TopicPartition

from traceweir.streams.clock import seconds_now
from traceweir.streams.runtime.delivery import Changes
from traceweir.streams.runtime.lane import Lane
from traceweir.streams.runtime.suspects import StageFailed
from traceweir.streams.stages.base import Output, Rows


class CheckpointContent:
    """The changes of one checkpoint, which can cut a lane several times."""

    def __init__(self, changelog: str, now: float, dated: Collection[str], *, last: bool) -> None:
        """Starts without changes.

        Args:
            changelog: The changelog topic.
            now: When the checkpoint began, in seconds of a monotonic clock.
            dated: The topics whose outputs need a timestamp before they are sent.
            last: Whether this is the last checkpoint of its lanes.
        """
        self._changelog, self._now, self._dated, self._last = changelog, now, dated, last
        self.tried: dict[Lane, None] = {}
        """All lanes that were cut, with changes or without."""
        self.failed: dict[Lane, StageFailed] = {}
        """The lanes whose stage raised. Nothing of the cut that raised is sent."""
        self.rows: dict[Lane, Rows] = defaultdict(list)
        """All rows of each lane."""
        self.counted: list[tuple[Lane, Mapping[str, int], Sequence[Output]]] = []
        """What each cut with changes has counted, and its outputs."""
        self.offsets: dict[TopicPartition, int] = {}
        """The offsets for the consumer group."""
        self.sent: Sequence[Output] = ()
        """The outputs of the last call of `cut`."""

    def cut(self, lanes: Iterable[Lane]) -> Changes | None:
        """Cuts lanes, and returns their changes; None if there are none."""
        rows: dict[TopicPartition, Rows] = {}
        outputs: list[Output] = []
        offsets: dict[TopicPartition, int] = {}
        before = len(self.counted)
        for lane in lanes:
            self.tried[lane] = None
            lane.cut_at, lane.in_checkpoint = self._now, True
            try:
                cut = lane.cut()
            except StageFailed as raised:
                self.failed[lane] = raised
                continue
            group_offsets = lane.offsets_to_commit(self._now, last=self._last)
            if any(cut) or group_offsets:
                dated = self._with_timestamps(cut.outputs)
                self.counted.append((lane, lane.counted.changes(), dated))
                outputs += dated
                if cut.rows:
                    self.rows[lane] += cut.rows
                    rows[self.place(lane)] = cut.rows
                offsets |= {TopicPartition(topic, lane.number): offset for topic, offset in group_offsets.items()}
        self.sent = outputs
        self.offsets |= offsets
        return Changes(rows, outputs, offsets) if len(self.counted) > before else None

    def place(self, lane: Lane) -> TopicPartition:
        """Returns the partition of the changelog that has the rows of a lane."""
        return TopicPartition(self._changelog, lane.number)

    @property
    def lanes(self) -> list[Lane]:
        """The lanes that have changes."""
        return list(dict.fromkeys(lane for lane, _, _ in self.counted))

    def _with_timestamps(self, outputs: Sequence[Output]) -> Sequence[Output]:
        if not self._dated:
            return outputs
        now = int(seconds_now() * 1000)
        return [
            output._replace(timestamp=now) if output.timestamp is None and output.topic in self._dated else output
            for output in outputs
        ]
