"""A lane: one owned partition, with a stage object of each stage that runs here, and what they share."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import orjson

from traceweir.streams.runtime.state_directory import FORMAT, check_format
from traceweir.streams.stages.base import Cut, End, Output, Read, Record, Stage, StageSpec

OFFSETS = b"checkpoint/offsets"
"""Row of the input offsets, written with everything else: no broker can answer with older ones than the rows."""
FORMAT_ROW = b"checkpoint/format"
"""Row of the format of all rows of the partition; without it they are of format 1."""

TICK_S = 0.02
STALE_S = 1.0
"""From this age on the time of the last tick is too old to judge records by."""
SLICE = 2_000
"""How many records a stage takes before others get their turn."""
GROUP_OFFSETS_EVERY_S = 1.0
"""How often the consumer group is told the offsets. They are for those who watch its lag: what counts is the row."""
QUEUE = 4_000
"""How many records of an input may wait for another input that is behind."""
QUEUE_BYTES = 16 << 20
"""And how many bytes of values."""


class StateTable(Protocol):
    """The rows of an application, by partition, as of the last finished checkpoint."""

    @property
    def changelog(self) -> str:
        """Name of the topic that the rows can be rebuilt from."""

    def rows(self, partition: int) -> Mapping[bytes, bytes]:
        """All rows of a partition."""

    def read(self, partition: int, key: bytes) -> bytes | None:
        """One row."""


class Inbox:
    """The inputs of a stage. While one of them is behind, records come in the order of their timestamps, then of the inputs.

    So a backlog reaches the stage as it would have live, however far the broker lets one input run ahead of another. Records of one
    topic stay in their order, whatever their timestamps. One from the future has no place in that order and is handed on as it comes:
    to wait for its time would let the other inputs run ahead of all that stands behind it.
    """

    def __init__(self, stage: Stage, topics: Sequence[str]) -> None:
        self.stage = stage
        self.latest = math.inf
        """Timestamps beyond this one are of the future. Milliseconds since 1970."""
        self.behind: Collection[str] = topics
        self.waiting: dict[str, deque[Record]] = {topic: deque() for topic in topics}
        self._seen = dict.fromkeys(topics, 0)

    def put(self, topic: str, records: Sequence[Record]) -> None:
        """Queue records of a topic."""
        self.waiting[topic].extend(records)
        if records[-1].timestamp <= self.latest:
            self._seen[topic] = max(self._seen[topic], records[-1].timestamp)

    def full(self, topic: str) -> bool:
        """Whether so much of a topic waits that no more should be fetched."""
        queue = self.waiting[topic]
        # Hardly ever is there a queue at all, so its bytes are not counted as it grows and shrinks.
        return len(queue) >= QUEUE or (bool(queue) and sum(len(r.value or b"") for r in queue) >= QUEUE_BYTES)

    def feed(self) -> int:
        """Hand a run of records of one topic to the stage, `SLICE` at most; gives how many. 0: the rest has to wait for another input."""
        turn = min(
            ((self._due(queue), place) for place, queue in enumerate(self.waiting.values()) if queue), default=None
        )
        if turn is None:
            return 0
        topics = list(self.waiting)
        first = topics[turn[1]]
        queue = self.waiting[first]
        until = min(
            (self._next_of(topic) - (place < turn[1]) for place, topic in enumerate(topics) if topic != first),
            default=math.inf,
        )
        run: list[Record] = []
        latest = self.latest
        while queue and ((at := queue[0].timestamp) <= until or at > latest) and len(run) < SLICE:
            run.append(queue.popleft())
        if run:
            self.stage.apply(first, run)
        return len(run)

    def _next_of(self, topic: str) -> float:
        """The timestamp that a topic's next record will have, at least."""
        if self.waiting[topic]:
            return self._due(self.waiting[topic])
        return self._seen[topic] if topic in self.behind else math.inf

    def _due(self, queue: deque[Record]) -> float:
        """The timestamp by which the first of a queue has its turn."""
        at = queue[0].timestamp
        return at if at <= self.latest else 0.0


class Lane:
    """The stages of one partition and their memory. It lives exactly as long as the partition is owned."""

    def __init__(
        self, number: int, specs: Sequence[StageSpec], table: StateTable, beginnings: Mapping[str, int], now: float
    ) -> None:
        """Load the stages from the table.

        Args:
            number: The partition.
            specs: The stages, in the order of the path.
            table: Caught up with its changelog.
            beginnings: By input topic, the first offset that there is.
            now: Seconds since 1970.

        Raises:
            StateDirectoryError: the rows are of a format that cannot be read.
        """
        self.number, self._specs = number, specs
        self.wake, self.lock = asyncio.Event(), asyncio.Lock()
        self.task: asyncio.Task[None] | None = None
        self.dead = False
        self.pending = 0
        self.rounds = 0
        """How many checkpoints have ended, those included that had nothing to write."""
        self.committed: dict[str, int] = {}
        self.stages: dict[str, Stage] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._inbox_of: dict[str, Inbox] = {}
        self._trusted: set[str] = set()
        self._pending_seeks: set[str] = set()
        self._asked: dict[str, int] = {}
        self._ticked = 0.0
        self.lag = 0
        """Records that were there and not read when the last fetch returned."""
        self._group_offsets: dict[str, int] = {}
        self._group_offsets_at = -math.inf
        rows = table.rows(number)
        self._format = int(rows.get(FORMAT_ROW, b"0"))
        check_format(self._format or 1, f"the state of partition {number}, in {table.changelog},")
        shares = _shares(rows)
        for spec in specs:
            stage = spec.new(number, _reader(table, number, spec.name.encode() + b"/"), self.wake.set)
            stage.load(shares.pop(spec.name.encode(), {}))
            stage.tick(now, spec.inputs)
            self.stages[spec.name] = stage
            inbox = self._inboxes[spec.name] = Inbox(stage, spec.inputs)
            self._inbox_of |= dict.fromkeys(spec.inputs, inbox)
        self._set_latest(now)
        self.committed = orjson.loads(rows.get(OFFSETS, b"{}"))
        # Without an offset: the first record there is, else records that were lost in a rebalance would not be missed.
        self.position = {topic: max(self.committed.get(topic, 0), first) for topic, first in beginnings.items()}
        self._pending_seeks.update(self.position)

    def full(self, topic: str, limit: int) -> bool:
        """Whether to leave this topic's records where they are."""
        inbox = self._inbox_of[topic]
        return self.pending >= limit or inbox.full(topic) or inbox.stage.full()

    def busy(self) -> bool:
        """Whether a stage has as much to do as it takes."""
        return any(stage.full() for stage in self.stages.values())

    def pending_seeks(self) -> dict[str, int]:
        """Where the consumer has to go, by topic, before it reads on; asked for once."""
        places = {topic: self.position[topic] for topic in self._pending_seeks}
        self._pending_seeks.clear()
        return places

    def lose(self, topic: str) -> None:
        """A batch of this topic was dropped: it has to be read again."""
        self._trusted.discard(topic)
        self._pending_seeks.add(topic)

    def has_gap_before(self, topic: str, first: int) -> bool:
        """Whether records are missing before `first`; they are then asked for again.

        Only the first batch after a change of hands or a dropped batch is questioned: afterwards the consumer's own sequence holds, in
        which transaction markers and compaction leave holes. The same answer twice is such a hole.
        """
        if first > self.position[topic] and topic not in self._trusted and self._asked.get(topic) != first:
            self._asked[topic] = first
            self._pending_seeks.add(topic)
            return True
        self._trusted.add(topic)
        return False

    def observe_clock(self, now: float) -> None:
        """The time, before records come: after a pause of the process they would seem to be from the future.

        As nothing is known of how far the inputs are read, nothing is closed by the clock.
        """
        if now - self._ticked > STALE_S:
            self._ticked = now
            self._set_latest(now)
            for spec in self._specs:
                self.stages[spec.name].tick(now, spec.inputs)

    async def take(self, topic: str, records: Sequence[Record]) -> None:
        """Apply records, as far as they need not wait for another input, and let others have their turn in between."""
        expected = self.position[topic]
        if records[0].offset < expected:
            records = [record for record in records if record.offset >= expected]
        if not records:
            return
        inbox = self._inbox_of[topic]
        inbox.put(topic, records)
        self.position[topic] = records[-1].offset + 1
        taken = 0
        while not self.dead and (count := inbox.feed()):
            self._fed(count)
            taken += count
            if taken >= SLICE:  # not after each run: inputs that alternate make short ones
                taken = 0
                await asyncio.sleep(0)

    def fetched(self, ends: Mapping[tuple[str, int], End], now: float) -> None:
        """Tell the stages how far their inputs are read, by topic and partition, and the time.

        An input is at its end as of the moment at which the broker said so; that, and not now, is the time when all are.
        """
        due = now - self._ticked >= TICK_S
        self._set_latest(now)
        self.lag = 0
        for spec in self._specs:
            inbox = self._inboxes[spec.name]
            found = {topic: ends.get((topic, self.number)) for topic in spec.inputs}
            self.lag += sum(end.stable - end.position for end in found.values() if end is not None)
            inbox.behind = [
                t for t, e in found.items() if e is None or e.position < e.stable or t in self._pending_seeks
            ]
            while count := inbox.feed():
                self._fed(count)
            if due:
                behind = [topic for topic in spec.inputs if topic in inbox.behind or inbox.waiting[topic]]
                read = [end.at for end in found.values() if end is not None]
                inbox.stage.tick(now if behind else min(now, *read), behind)
        if due:
            self._ticked = now
            self.wake.set()

    def _set_latest(self, now: float) -> None:
        for inbox in self._inboxes.values():
            inbox.latest = (now + STALE_S) * 1000  # it is told again before it is as old

    def _fed(self, count: int) -> None:
        self.pending += count
        self.wake.set()

    def cut(self) -> Cut:
        """What all stages cut, in one moment: nothing awaits in here."""
        rows: list[tuple[bytes, bytes | None]] = []
        outputs: list[Output] = []
        offsets: dict[str, int] = {}
        for name, stage in self.stages.items():
            cut = stage.cut()
            prefix = name.encode() + b"/"
            rows += [(prefix + key, value) for key, value in cut.rows]
            outputs += cut.outputs
            offsets |= cut.offsets
        self.pending = 0
        if offsets:
            self.committed |= offsets
            rows.append((OFFSETS, orjson.dumps(self.committed)))
            if self._format != FORMAT:
                self._format = FORMAT
                rows.append((FORMAT_ROW, b"%d" % FORMAT))
        return Cut(rows, outputs, offsets)

    def offsets_to_commit(self, now: float, *, last: bool = False) -> dict[str, int]:
        """The offsets that the consumer group is to be told with this checkpoint: what has changed, every
        `GROUP_OFFSETS_EVERY_S`, and with the last one.

        To tell them takes two requests of the five that a small transaction takes.

        Args:
            now: Seconds of any clock.
            last: Whether it is the last checkpoint.
        """
        if not last and now - self._group_offsets_at < GROUP_OFFSETS_EVERY_S:
            return {}
        found = {topic: offset for topic, offset in self.committed.items() if self._group_offsets.get(topic) != offset}
        self._group_offsets |= found
        self._group_offsets_at = now
        return found

    def drop(self) -> None:
        """Forget everything: memory must not outlive ownership, least of all under a new producer."""
        self.dead = True
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
        for stage in self.stages.values():
            stage.drop()


def _shares(rows: Mapping[bytes, bytes]) -> dict[bytes, dict[bytes, bytes]]:
    """The rows of each stage, by its name, under their keys without it."""
    shares: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    for key, row in rows.items():
        name, _, own = key.partition(b"/")
        shares[name][own] = row
    return shares


def _reader(table: StateTable, partition: int, prefix: bytes) -> Read:
    return lambda key: table.read(partition, prefix + key)
