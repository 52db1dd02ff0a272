"""Tests which outputs the next stage takes before their transaction is committed, and what follows from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from aiokafka import TopicPartition
from faust.types import TP
from tests.unit.streams.worker.runtime.test_lane import Listing

from traceweir.streams.base.stages.base import Cut, End, Output, Read, Record, StageSpec, handed_topics
from traceweir.streams.testing import MemoryTable, Message
from traceweir.streams.worker.runtime import hand_over
from traceweir.streams.worker.runtime.checkpoint_content import CheckpointContent
from traceweir.streams.worker.runtime.delivery import CheckpointChanges
from traceweir.streams.worker.runtime.hand_over import HandOver
from traceweir.streams.worker.runtime.lane import FAR_BEHIND, Lane
from traceweir.streams.worker.runtime.suspects import Suspects

SESSIONS, PLACE = "sessions", TopicPartition("sessions", 0)


class Passing(Listing):
    """A stage that sends the value of each record to another topic, and writes it into a row."""

    def __init__(self, to: str, read: Read) -> None:
        super().__init__()
        self.to, self.read, self.outputs = to, read, list[Output]()
        self.taken: list[Record] = []

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        super().apply(topic, records)
        self.taken += records
        self.outputs += [Output(self.to, 0, record.key, record.value) for record in records]
        self.rows += [(b"last", record.value) for record in records]

    def cut(self) -> Cut:
        outputs, self.outputs = self.outputs, []
        return super().cut()._replace(outputs=outputs)


class Slow(Passing):
    """A stage whose work on a record ends, and has an output, when the test says so."""

    def __init__(self, to: str, read: Read) -> None:
        super().__init__(to, read)
        self.working: list[Output] = []
        self.changed: Callable[[], None] = lambda: None

    @property
    def in_flight(self) -> int:
        return len(self.working)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        super().apply(topic, records)
        self.working, self.outputs = self.outputs, []

    def end_one(self) -> None:
        """Ends the work on the first record."""
        self.outputs.append(self.working.pop(0))
        self.changed()


class Raising(Passing):
    """A stage that raises on each record."""

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        raise KeyError("nobody expected this")


class Ground:
    """A partition with two stages: the first reads `events` and writes `sessions`, which the second reads."""

    def __init__(self, second: type[Passing] = Passing, *, read_to: int | None = 7, max_records: int = 2_000) -> None:
        self.built: dict[str, Passing] = {}

        def spec(name: str, source: str, to: str, kind: type[Passing], limit: int = 2_000) -> StageSpec:
            def new(partition: int, read: Read, changed: Callable[[], None]) -> Passing:
                stage = self.built[name] = kind(to, read)
                if isinstance(stage, Slow):
                    stage.changed = changed
                return stage

            return StageSpec(name, (source,), (to,), new, limit)

        specs = [spec("one", "events", SESSIONS, Passing), spec("two", SESSIONS, "results", second, max_records)]
        self.table = MemoryTable()
        self.lane = Lane(0, specs, self.table, {"events": 0, SESSIONS: 0}, 100.0)
        self.lane.pending_seeks()
        if read_to is not None:
            # The first batch after an assignment shows that nothing is missing before it.
            self.lane.has_gap_before(SESSIONS, 0)
            self.fetched(read_to)
        self.content = CheckpointContent("changelog", 5.0, handed_topics(specs), last=False)
        self.worked = asyncio.Event()
        self.lane.worked = self.worked.set
        self.hand_over = HandOver({0: self.lane}, self.content, self.worked)

    def fetched(self, position: int, unread: int = 0) -> None:
        """Passes on that the consumer has read `sessions` up to a position."""
        self.lane.fetched({TP(SESSIONS, 0): End(position, position + unread, 100.0)}, 100.0)

    async def events(self, *values: str, first: int = 0) -> CheckpointChanges:
        """Takes events, and returns the first part of a checkpoint."""
        batch = [Message("events", 0, first + n, 1, b"key", value.encode()) for n, value in enumerate(values)]
        await self.lane.take("events", batch)
        changes = self.content.cut([self.lane])
        assert changes is not None
        return changes

    @property
    def second(self) -> Passing:
        return self.built["two"]

    def taken(self) -> list[tuple[int, bytes | None]]:
        """Returns offset and value of what the second stage has taken."""
        return [(record.offset, record.value) for record in self.second.taken]


def values(changes: CheckpointChanges | None) -> list[tuple[str, bytes | None]]:
    return [(output.topic, output.value) for output in changes.outputs] if changes else []


async def test_what_follows_from_an_output_is_sent_in_the_same_transaction() -> None:
    ground = Ground()
    first = await ground.events("a", "b")
    assert values(first) == [(SESSIONS, b"a"), (SESSIONS, b"b")]
    more = await ground.hand_over.further({PLACE: 7})
    assert ground.taken() == [(7, b"a"), (8, b"b")]
    assert values(more) == [("results", b"a"), ("results", b"b")]
    assert ground.lane.offsets.committed[SESSIONS] == 9
    assert await ground.hand_over.further({TopicPartition("results", 0): 0}) is None  # nobody here reads results


async def test_the_next_stage_sees_the_timestamp_that_the_broker_gets() -> None:
    ground = Ground()
    (sent,) = (await ground.events("a")).outputs
    await ground.hand_over.further({PLACE: 7})
    assert sent.timestamp is not None
    assert ground.second.taken[0].timestamp == sent.timestamp


async def test_what_follows_comes_with_the_next_transaction_if_this_one_has_no_room() -> None:
    ground = Ground()
    ground.content = CheckpointContent("changelog", 5.0, ground.content.handed, last=False, most_bytes=20)
    ground.hand_over = HandOver({0: ground.lane}, ground.content, ground.worked)
    await ground.events("a longer value")
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == [(7, b"a longer value")]
    assert ground.lane.woken


@pytest.mark.parametrize("first", [6, 8, 9])
async def test_records_that_do_not_follow_what_was_read_are_left_to_the_consumer(first: int) -> None:
    ground = Ground()
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: first}) is None
    assert ground.taken() == []


async def test_records_without_known_offsets_are_left_to_the_consumer() -> None:
    ground = Ground()
    await ground.events("a")
    assert await ground.hand_over.further({}) is None


async def test_a_lane_takes_nothing_over_before_its_first_batch_of_a_topic() -> None:
    ground = Ground(read_to=None)
    ground.fetched(7)  # the consumer can be anywhere, as long as no batch of it was compared with the lane's position
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is None


async def test_a_dropped_batch_ends_the_hand_over_until_it_was_read_again() -> None:
    ground = Ground()
    ground.lane.lose(SESSIONS)
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is None
    ground.lane.pending_seeks()
    await ground.lane.take(SESSIONS, [Message(SESSIONS, 0, 7, 1, b"key", b"again")])
    assert not ground.lane.has_gap_before(SESSIONS, 7)
    ground.fetched(9)
    assert await second_checkpoint(ground, 9) is not None


async def test_a_record_that_was_handed_over_is_not_taken_again_from_a_fetch() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    assert not ground.lane.has_gap_before(SESSIONS, 7)
    await ground.lane.take(SESSIONS, [Message(SESSIONS, 0, n, 1, b"key", b"%d" % n) for n in (7, 8)])
    assert ground.taken() == [(7, b"a"), (8, b"8")]


async def test_a_record_that_was_fetched_is_not_handed_over() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.lane.take(SESSIONS, [Message(SESSIONS, 0, 7, 1, b"key", b"fetched")])
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == [(7, b"fetched")]


async def second_checkpoint(ground: Ground, first: int) -> CheckpointChanges | None:
    await ground.events("b", first=1)
    return await HandOver({0: ground.lane}, ground.content, ground.worked).further({PLACE: first})


@pytest.mark.parametrize(("first", "taken"), [(8, False), (9, True), (10, False)])
async def test_the_marker_of_a_transaction_takes_one_offset(first: int, taken: bool) -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    ground.lane.note_committed()
    assert (await second_checkpoint(ground, first) is not None) == taken


async def test_a_marker_that_the_consumer_has_read_already_is_not_counted_twice() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    ground.fetched(9)  # the answer to the commit comes later
    ground.lane.note_committed()
    assert await second_checkpoint(ground, 10) is None  # the record at 9 is of somebody else


async def test_rows_of_the_first_part_are_readable_in_the_second() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    assert ground.built["one"].read(b"last") == b"a"
    ground.lane.note_committed()  # from now on the table has them
    assert ground.built["one"].read(b"last") is None


async def test_the_rows_of_all_parts_are_written() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    assert [key for key, _ in ground.content.rows[ground.lane] if key.endswith(b"last")] == [b"one/last", b"two/last"]


async def test_a_stage_that_raises_leaves_the_first_part_in_the_transaction() -> None:
    ground = Ground(Raising)
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.lane.dead
    assert list(ground.content.failed) == [ground.lane]
    assert [[output.value for output in cut.outputs] for cut in ground.content.counted] == [[b"a"]]


async def test_a_transaction_waits_for_work_until_the_last_of_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "HOLD_S", 1_000.0)
    ground = Ground(Slow)
    await ground.events("a", "b")
    waiting = asyncio.create_task(ground.hand_over.further({PLACE: 7}))
    await asyncio.sleep(0)
    slow = ground.second
    assert isinstance(slow, Slow)
    slow.end_one()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    slow.end_one()
    assert values(await waiting) == [("results", b"a"), ("results", b"b")]


async def test_a_transaction_does_not_wait_longer_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "HOLD_S", 0.0)
    ground = Ground(Slow)
    await ground.events("a")
    assert values(await ground.hand_over.further({PLACE: 7})) == []
    assert ground.lane.in_flight() == 1


async def test_far_behind_the_records_are_handed_over_and_nothing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hand_over, "HOLD_S", 1_000.0)
    ground = Ground(Slow)
    await ground.events("a")
    ground.lane.lag = FAR_BEHIND + 1
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == [(7, b"a")]


async def test_a_stage_that_takes_one_record_at_a_time_gets_its_records_from_fetches() -> None:
    ground = Ground(max_records=1)
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == []


async def test_more_records_than_a_stage_takes_at_a_time_come_with_a_fetch() -> None:
    ground = Ground(max_records=2)
    await ground.events("a", "b", "c")
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == []


async def test_two_parts_of_a_transaction_have_no_marker_between_them() -> None:
    ground = Ground()
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    assert await second_checkpoint(ground, 8) is not None


async def test_the_lane_of_another_partition_takes_what_is_for_it() -> None:
    ground, other = Ground(), Ground()
    await ground.events("a")
    content = ground.content
    content.sent = [output._replace(partition=3) for output in content.sent]
    found = HandOver({0: ground.lane, 3: other.lane}, content, other.worked)
    assert values(await found.further({TopicPartition(SESSIONS, 3): 7})) == [("results", b"a")]
    assert (ground.taken(), other.taken()) == ([], [(7, b"a")])
    assert list(content.rows) == [ground.lane, other.lane]


async def test_a_stage_that_is_full_gets_its_records_from_fetches() -> None:
    ground = Ground()
    ground.second.is_full = True
    await ground.events("a")
    await ground.hand_over.further({PLACE: 7})
    assert ground.taken() == []


async def test_a_transaction_has_a_bounded_number_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "ROUNDS", 1)
    ground = Ground()
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is not None
    await ground.events("b", first=1)
    assert await ground.hand_over.further({PLACE: 8}) is None
    assert ground.taken() == [(7, b"a"), (8, b"b")]  # the next checkpoint sends what follows from the second


async def test_a_lane_that_isolates_a_suspect_takes_no_more_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground()
    monkeypatch.setattr(Suspects, "isolating", True)
    await ground.events("a")
    assert await ground.hand_over.further({PLACE: 7}) is None
    assert ground.taken() == []
