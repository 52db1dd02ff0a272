"""Tests a lane: its read positions, the order of its inputs, and the calls to its stages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import orjson
import pytest
from faust.types import TP
from tests.support.next_format import FORMER, NEXT_FORMATS, of_next_version

from traceweir.streams.base.stages.base import Cut, End, Read, Record, Rows, StageSpec, UnreadableBatch
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.testing import MemoryTable, Message
from traceweir.streams.worker.runtime.checkpoint_rows import INPUTS_ROW, OFFSETS
from traceweir.streams.worker.runtime.inbox import QUEUE
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.positions import InputLogs
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW
from traceweir.streams.worker.runtime.suspects import StageFailed, Suspects


class Listing:
    """A stage that records its calls."""

    def __init__(self) -> None:
        self.loaded: dict[bytes, bytes] = {}
        self.applied: list[tuple[str, list[int]]] = []
        self.ticks: list[tuple[float, list[str]]] = []
        self.rejected: list[tuple[str, int, str]] = []
        self.next: dict[str, int] = {}
        self.rows: Rows = []
        self.is_full = self.dropped = False

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        self.loaded = dict(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        self.applied.append((topic, [record.timestamp for record in records]))
        self.next[topic] = records[-1].offset + 1

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        self.rejected.append((topic, record.offset, why.detail))
        self.next[topic] = record.offset + 1

    def tick(self, now: float, behind: Collection[str]) -> None:
        self.ticks.append((now, sorted(behind)))

    def full(self) -> bool:
        return self.is_full

    def cut(self) -> Cut:
        cut = Cut(self.rows, [], self.next)
        self.rows, self.next = [], {}
        return cut

    def drop(self) -> None:
        self.dropped = True


class Telling(Listing):
    """A stage that tells whether it has outputs: for each record from 200 on."""

    def has_outputs(self) -> bool:
        return any(at >= 200 for _, timestamps in self.applied for at in timestamps)


def make_lane(
    table: MemoryTable | None = None,
    inputs: tuple[str, ...] = ("a", "b"),
    first: int = 0,
    kind: type[Listing] = Listing,
) -> tuple[Lane, Listing]:
    stage = kind()
    spec = StageSpec("one", inputs, (), lambda partition, read, changed: stage)
    lane = Lane(0, [spec], table or MemoryTable(), dict.fromkeys(inputs, first), 100.0)
    stage.ticks.clear()
    return lane, stage


def records(topic: str, *timestamps: int, first: int = 0) -> list[Message]:
    return [Message(topic, 0, first + number, at, None, b"") for number, at in enumerate(timestamps)]


def ends(lane: Lane, at: float = 100.0, **left: int) -> dict[TP, End]:
    """Returns the ends that a fetch reports: `left` is the number of unread records per topic, 0 by default."""
    return {TP(t, 0): End(place, place + left.get(t, 0), at) for t, place in lane.position.items()}


async def test_records_are_applied_in_timestamp_order_while_an_input_is_behind() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()

    await lane.take("a", records("a", 1, 2, 7, 3, 9))
    assert stage.applied == []  # the end of b is unknown
    await lane.take("b", records("b", 2, 8))
    assert stage.applied == [("a", [1, 2]), ("b", [2]), ("a", [7, 3]), ("b", [8])]
    lane.fetched(ends(lane, b=1), 100.0)
    assert stage.applied[4:] == []  # the next record of b can have the timestamp 8 again
    lane.fetched(ends(lane), 100.0)
    assert stage.applied[4:] == [("a", [9])]


async def test_other_tasks_run_after_as_many_records_as_the_spec_of_a_stage_allows() -> None:
    stage, applied = Listing(), []
    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: stage, max_records=1)
    lane = Lane(0, [spec], MemoryTable(), {"a": 0}, 100.0)
    lane.pending_seeks()

    async def other() -> None:
        for _ in range(3):
            applied.append(len(stage.applied))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(lane.take("a", records("a", 1, 2, 3)))
        group.create_task(other())
    assert (stage.applied, applied) == ([("a", [1]), ("a", [2]), ("a", [3])], [1, 2, 3])


async def test_a_timestamp_in_the_future_does_not_let_an_input_run_ahead() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()

    await lane.take("b", records("b", 3, 900_000, 4))
    await lane.take("a", records("a", 1, 900_000, 2, 5))

    assert stage.applied == [("a", [1, 900_000, 2]), ("b", [3, 900_000, 4])]
    await lane.take("b", records("b", 900_000, first=3))
    assert stage.applied[2:] == [("b", [900_000])]  # says nothing about its own next timestamp
    lane.fetched(ends(lane), 100.0)
    assert stage.applied[3:] == [("a", [5])]


async def test_inputs_that_are_read_to_their_end_do_not_wait_for_other_inputs() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()
    lane.fetched(ends(lane), 100.0)

    await lane.take("b", records("b", 50, 40))
    await lane.take("a", records("a", 10))

    assert stage.applied == [("b", [50, 40]), ("a", [10])]


async def test_an_input_with_old_timestamps_holds_others_back_only_until_its_records_of_that_time_are_read() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()
    lane.fetched({TP("a", 0): End(0, 5, 100.0), TP("b", 0): End(0, 9, 100.0)}, 100.0)
    lane.fetched({TP("a", 0): End(0, 8, 200.0), TP("b", 0): End(0, 9, 200.0)}, 200.0)
    await lane.take("b", records("b", 99_000, 101_000))
    await lane.take("a", records("a", 1, 2, 3, 4))
    assert [topic for topic, _ in stage.applied] == ["a"]
    await lane.take("a", records("a", 3, first=4))
    assert stage.applied[2:] == [("b", [99_000])]  # the next record of a was appended after 100 s
    await lane.take("a", records("a", 1, 1, 1, first=5))
    assert stage.applied[4:] == [("b", [101_000])]


async def test_waiting_records_are_not_committed_and_their_input_counts_as_behind() -> None:
    table = MemoryTable()
    lane, stage = make_lane(table)
    lane.pending_seeks()
    await lane.take("b", records("b", 5))
    await lane.take("a", records("a", 1, 9))
    lane.fetched(ends(lane, b=3), 101.0)

    cut = lane.cut()
    assert (cut.offsets, lane.position) == ({"a": 1, "b": 1}, {"a": 2, "b": 1})
    assert stage.ticks == [(101.0, ["a", "b"])]
    table.write(0, cut.rows)
    again, _ = make_lane(table)
    assert again.position == {"a": 1, "b": 1}


async def test_an_input_that_runs_ahead_is_paused_and_the_input_behind_is_not() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()
    await lane.take("a", records("a", *range(1, QUEUE)))
    assert not lane.full("a", 20_000)
    await lane.take("a", records("a", QUEUE, first=QUEUE - 1))

    assert (lane.full("a", 20_000), lane.full("b", 20_000)) == (True, False)
    lane.fetched(ends(lane), 100.0)
    assert not lane.full("a", 20_000)
    assert sum(len(found) for _, found in stage.applied) == QUEUE
    assert max(len(found) for _, found in stage.applied) <= 2_000
    assert (lane.full("b", QUEUE), lane.full("b", QUEUE + 1)) == (True, False)  # the number of pending records
    stage.is_full = True
    assert lane.full("b", 20_000)


async def test_large_waiting_records_fill_the_queue_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceweir.streams.worker.runtime.inbox.QUEUE_BYTES", 1_000)
    lane, _ = make_lane()
    lane.pending_seeks()

    await lane.take("a", [Message("a", 0, 0, 1, None, b"x" * 999)])
    assert not lane.full("a", 10)
    await lane.take("a", [Message("a", 0, 1, 1, None, b"x")])
    assert (lane.full("a", 10), lane.full("b", 10)) == (True, False)
    lane.fetched(ends(lane), 100.0)
    assert not lane.full("a", 10)


async def test_records_that_were_already_taken_are_skipped() -> None:
    lane, stage = make_lane(inputs=("a",))
    await lane.take("a", records("a", 0, 1, 2))
    await lane.take("a", records("a", 1, 2, 3, first=1))
    await lane.take("a", records("a", 2, 3, first=2))

    assert stage.applied == [("a", [0, 1, 2]), ("a", [3])]
    assert lane.cut().offsets == {"a": 4}


async def test_a_dropped_lane_takes_no_records() -> None:
    lane, stage = make_lane(inputs=("a",))
    lane.drop()
    await lane.take("a", records("a", 0))

    assert (stage.applied, stage.dropped) == ([], True)


@pytest.mark.parametrize(("committed", "first", "place"), [({}, 0, 0), ({}, 7, 7), ({"a": 9}, 7, 9), ({"a": 3}, 7, 7)])
def test_reading_starts_at_the_committed_offset_or_at_the_first_existing_record(
    committed: dict[str, int], first: int, place: int
) -> None:
    table = MemoryTable()
    table.write(0, [(FORMAT_ROW, b"%d" % FORMAT), (OFFSETS, orjson.dumps(committed))])
    lane, _ = make_lane(table, ("a",), first)

    assert lane.pending_seeks() == {"a": place}
    assert lane.pending_seeks() == {}


def test_a_gap_after_an_assignment_is_fetched_again_once_and_then_accepted() -> None:
    lane, _ = make_lane(inputs=("a",))
    lane.pending_seeks()

    assert lane.has_gap_before("a", 3)
    assert lane.pending_seeks() == {"a": 0}
    assert not lane.has_gap_before("a", 3)
    assert not lane.has_gap_before("a", 9)  # afterwards the consumer returns records in sequence
    lane.lose("a")
    assert lane.pending_seeks() == {"a": 0}
    assert lane.has_gap_before("a", 9)


def test_the_tick_with_no_input_behind_has_the_time_of_the_brokers_answer() -> None:
    lane, stage = make_lane()
    lane.fetched(ends(lane), 101.0)  # before the first seek
    lane.pending_seeks()
    lane.fetched({TP("a", 0): End(0, 0, 101.5)}, 102.0)
    lane.fetched({TP("a", 0): End(0, 0, 102.5), TP("b", 0): End(0, 0, 102.9)}, 103.0)
    lane.fetched(ends(lane, at=103.0), 103.001)  # each answer counts, however soon it comes

    assert stage.ticks == [(101.0, ["a", "b"]), (102.0, ["b"]), (102.5, []), (103.0, [])]


def test_stages_see_only_their_own_rows_and_one_cut_contains_all_stages() -> None:
    table = MemoryTable()
    table.write(0, [(b"one/k", b"1"), (b"two/k", b"2"), (FORMAT_ROW, b"%d" % FORMAT), (OFFSETS, b'{"a":5,"b":6}')])
    stages = {"one": Listing(), "two": Listing()}
    reads = {}

    def spec_of(name: str, topic: str) -> StageSpec:
        def make(partition: int, read: object, changed: object) -> Listing:
            reads[name] = read
            return stages[name]

        return StageSpec(name, (topic,), (), make)

    lane = Lane(0, [spec_of("one", "a"), spec_of("two", "b")], table, {"a": 0, "b": 0}, 100.0)
    assert (stages["one"].loaded, stages["two"].loaded) == ({b"k": b"1"}, {b"k": b"2"})
    assert reads["two"](b"k") == b"2"  # type: ignore[operator]
    stages["one"].rows, stages["two"].rows = [(b"x", b"1")], [(b"x", None)]
    stages["one"].next = {"a": 9}

    cut = lane.cut()
    assert cut.rows[:2] == [(b"one/x", b"1"), (b"two/x", None)]
    assert (cut.rows[2][0], orjson.loads(cut.rows[2][1] or b"")) == (OFFSETS, {"a": 9, "b": 6})
    assert lane.cut() == Cut([], [], {})


async def test_after_a_pause_the_stages_get_a_tick_with_every_input_behind() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()
    lane.fetched(ends(lane), 100.0)
    stage.ticks.clear()

    lane.observe_clock(100.5)
    assert stage.ticks == []
    lane.observe_clock(500.0)
    assert stage.ticks == [(500.0, ["a", "b"])]


async def test_the_lag_is_the_number_of_records_that_the_last_fetch_left() -> None:
    lane, _ = make_lane()
    await lane.take("a", records("a", 1, 2))
    lane.fetched(ends(lane, a=7, b=2), 100.0)
    assert lane.lag == 9
    lane.fetched(ends(lane), 100.1)
    assert lane.lag == 0


async def test_offsets_are_committed_at_intervals_and_at_the_end() -> None:
    lane, _ = make_lane()
    lane.pending_seeks()
    lane.fetched(ends(lane), 100.0)
    committed = []
    for number, now in enumerate((0.0, 0.5, 1.0, 1.1)):
        await lane.take("a", records("a", 1, first=number))
        lane.cut()
        committed.append(lane.offsets.to_commit(now))
    assert committed == [{"a": 1}, {}, {"a": 3}, {}]
    assert lane.offsets.to_commit(1.2, last=True) == {"a": 4}
    assert lane.offsets.to_commit(9.0) == {}


async def test_the_format_row_is_written_once_with_the_first_offsets() -> None:
    table = MemoryTable()
    for first, expected in ((0, [(FORMAT_ROW, b"%d" % FORMAT)]), (1, []), (2, [])):
        lane, _ = make_lane(table, ("a",))
        lane.pending_seeks()
        lane.fetched(ends(lane), 100.0)
        assert lane.cut() == Cut([], [], {})
        await lane.take("a", records("a", 1, first=first))
        rows = lane.cut().rows
        table.write(0, rows)
        assert [row for row in rows if row[0] != OFFSETS] == expected


async def test_rows_without_an_offset_are_never_without_the_format() -> None:
    table = MemoryTable()
    lane, stage = make_lane(table, ("a",))
    lane.pending_seeks()
    stage.rows = [(b"due", b"row")]
    assert (FORMAT_ROW, b"%d" % FORMAT) in lane.cut().rows


async def test_the_format_comes_before_the_offsets_so_that_no_rest_of_a_cut_has_offsets_without_a_format() -> None:
    lane, _ = make_lane(MemoryTable(), ("a",))
    await lane.take("a", records("a", 1))
    keys = [key for key, _ in lane.cut().rows]
    assert keys.index(FORMAT_ROW) < keys.index(OFFSETS)


async def test_a_lane_writes_the_format_that_the_group_has_agreed_on_and_reads_all_formats() -> None:
    table = MemoryTable()
    written: list[Rows] = []
    for number, (agreed, row) in enumerate(((FORMAT, b"one"), (FORMAT + 1, b"two"), (FORMAT, b"three"))):
        stage = Listing()
        spec = of_next_version(StageSpec("score", ("a",), (), lambda partition, read, changed, s=stage: s))  # type: ignore[misc]
        formats = NEXT_FORMATS._replace(agreed=agreed)
        lane = Lane(0, [spec], table, {"a": 0}, 100.0, formats=formats)
        assert stage.loaded.get(FORMER) == (b"one", b"two")[number - 1] if number else FORMER not in stage.loaded
        lane.pending_seeks()
        lane.fetched(ends(lane), 100.0)
        stage.rows = [(FORMER, row)]
        await lane.take("a", records("a", 1, first=number))
        rows = lane.cut().rows
        written.append([(key, value) for key, value in rows if key != OFFSETS])
        table.write(0, rows)
    assert written == [
        [(b"score/d", b"one"), (FORMAT_ROW, b"%d" % FORMAT)],
        [(b"score/d", None), (b"score/done", b"two"), (FORMAT_ROW, b"%d" % (FORMAT + 1))],
        # Never back: an older worker has refused this partition since.
        [(b"score/d", None), (b"score/done", b"three")],
    ]


@pytest.mark.parametrize("error", [RuntimeError("IO error"), OSError("No space left on device"), MemoryError()])
async def test_a_table_that_cannot_be_read_is_no_fault_of_a_record(error: Exception) -> None:
    class Unreadable(MemoryTable):
        def read(self, partition: int, key: bytes) -> bytes | None:
            raise error

    class Reads(Listing):
        def __init__(self, read: Read) -> None:
            super().__init__()
            self.read = read

        def apply(self, topic: str, records: Sequence[Record]) -> None:
            self.read(b"k")

    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: Reads(read))
    lane = Lane(0, [spec], Unreadable(), {"a": 0}, 100.0)
    with pytest.raises(StageFailed) as raised:
        await lane.take("a", records("a", 1))

    assert lane.dead
    with pytest.raises(StageFailed, match="the state of partition 0 cannot be read"):
        lane.suspects.after(raised.value)


@pytest.mark.parametrize("error", [OSError("No space left on device"), MemoryError()])
async def test_a_fault_of_the_machine_is_no_fault_of_a_record(error: Exception) -> None:
    class Raises(Listing):
        def apply(self, topic: str, records: Sequence[Record]) -> None:
            raise error

    lane = Lane(0, [StageSpec("one", ("a",), (), lambda *_: Raises())], MemoryTable(), {"a": 0}, 100.0)
    with pytest.raises(StageFailed) as raised:
        await lane.take("a", records("a", 1))
    with pytest.raises(StageFailed):
        lane.suspects.after(raised.value)


async def test_only_the_stage_that_raised_takes_its_records_in_small_batches() -> None:
    stages = {"one": Listing(), "two": Listing()}
    specs = [
        StageSpec(name, (topic,), (), lambda partition, read, changed, name=name: stages[name])  # type: ignore[misc]
        for name, topic in (("one", "a"), ("two", "b"))
    ]
    suspects = Suspects().after(StageFailed("two", KeyError("k"), {"b": (0, 4)}, 5))
    lane = Lane(0, specs, MemoryTable(), {"a": 0, "b": 0}, 100.0, suspects)
    await lane.take("b", records("b", 1, 2, 3, 4, 5))
    for number in range(5):
        await lane.take("a", records("a", 1, 1, 1, first=3 * number))  # a lively input of the other stage
        lane.cut()
        lane.fetched(ends(lane), 101.0)

    assert stages["two"].applied == [("b", [number]) for number in range(1, 6)]
    assert [times for _, times in stages["one"].applied] == [[1, 1, 1]] * 5
    assert not lane.suspects.isolating


class PanicError(BaseException):
    """An exception that is no Exception, such as a panic of a library in Rust."""


async def test_a_panic_of_a_library_kills_the_lane_and_is_blamed_on_the_record() -> None:
    class Panics(Listing):
        def apply(self, topic: str, records: Sequence[Record]) -> None:
            raise PanicError

    lane = Lane(0, [StageSpec("one", ("a",), (), lambda *_: Panics())], MemoryTable(), {"a": 0}, 100.0)
    with pytest.raises(StageFailed) as raised:
        await lane.take("a", records("a", 1))

    assert lane.dead
    assert (raised.value.records, raised.value.count) == ({"a": (0, 0)}, 1)


async def test_a_checkpoint_is_urgent_when_the_stage_has_outputs() -> None:
    lane, _ = make_lane(inputs=("a",), kind=Telling)
    await lane.take("a", records("a", 100, 101))
    assert lane.woken
    assert not lane.urgent
    await lane.take("a", records("a", 200, first=2))
    assert lane.urgent


async def test_each_record_is_urgent_to_a_stage_that_does_not_tell_its_outputs() -> None:
    lane, _ = make_lane(inputs=("a",))
    await lane.take("a", records("a", 100))
    assert lane.urgent


async def test_work_that_a_stage_has_finished_is_urgent() -> None:
    told: list[Callable[[], None]] = []

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Listing:
        told.append(changed)
        return Telling()

    lane = Lane(0, [StageSpec("one", ("a",), (), new)], MemoryTable(), {"a": 0}, 100.0)
    assert not lane.urgent
    told[0]()
    assert lane.urgent


async def test_a_batch_that_cannot_be_decompressed_is_rejected_between_its_neighbours() -> None:
    lane, stage = make_lane(inputs=("a",))
    bad = [UnreadableBatch("a", 0, last, 100, b"raw", f"offset {last}") for last in (1, 4, 7)]
    good = {offset: records("a", 100, first=offset)[0] for offset in (2, 5, 6)}
    await lane.take("a", [bad[0], good[2], bad[1], good[5], good[6], bad[2]])
    lane.fetched({("a", 0): End(8, 8, 101.0)}, 101.0)
    assert stage.rejected == [("a", 1, "offset 1"), ("a", 4, "offset 4"), ("a", 7, "offset 7")]
    assert stage.applied == [("a", [100]), ("a", [100, 100])]
    assert lane.position == lane.cut().offsets == {"a": 8}

    await lane.take("a", records("a", 102, first=8))
    assert (len(stage.rejected), stage.applied[-1]) == (3, ("a", [102]))


async def test_a_batch_that_cannot_be_decompressed_waits_for_its_turn() -> None:
    lane, stage = make_lane()
    lane.pending_seeks()
    lane.fetched({("a", 0): End(0, 1, 99.0), ("b", 0): End(0, 1, 99.0)}, 100.0)
    await lane.take("b", [UnreadableBatch("b", 0, 0, 99_500, b"raw", "why")])
    assert stage.rejected == []
    await lane.take("a", records("a", 99_400))
    lane.fetched({("a", 0): End(1, 1, 100.0), ("b", 0): End(1, 1, 100.0)}, 100.0)
    assert (stage.applied, stage.rejected) == ([("a", [99_400])], [("b", 0, "why")])


# Added partitions


async def test_an_added_partition_is_an_input_of_its_own_with_its_own_end_and_offset() -> None:
    stage, table = Listing(), MemoryTable()
    spec = StageSpec("one", ("a", "b"), (), lambda partition, read, changed: stage)
    lane = Lane(1, [spec], table, {"a": 0, "b": 0, "a/5": 0}, 100.0)
    assert lane.pending_seeks() == {"a": 0, "b": 0, "a/5": 0}
    stage.ticks.clear()

    def read_to(added: int) -> dict[TP, End]:
        return {TP("a", 1): End(2, 2, 100.0), TP("a", 5): End(2, added, 100.0), TP("b", 1): End(0, 0, 100.0)}

    await lane.take("a", records("a", 3, 8))
    await lane.take("a/5", records("a", 5, 6))
    lane.fetched(read_to(3), 100.0)
    assert stage.applied == [("a", [3]), ("a/5", [5, 6])]  # the next record of the added partition can be older than 8
    assert lane.lag == 1
    lane.fetched(read_to(2), 100.0)
    assert stage.applied[2:] == [("a", [8])]

    rows = dict(lane.cut().rows)
    assert orjson.loads(rows[OFFSETS] or b"") == {"a": 2, "a/5": 2}
    assert lane.offsets.to_commit(0.0) == {"a": 2, "a/5": 2}


def test_a_partition_that_is_not_there_any_more_gets_no_offset_of_the_group_and_keeps_its_row() -> None:
    table = MemoryTable()
    ids = orjson.dumps({"a": "c/1", "a/5": "c/1"})
    table.write(1, [(FORMAT_ROW, b"%d" % FORMAT), (OFFSETS, orjson.dumps({"a": 7, "a/5": 9})), (INPUTS_ROW, ids)])
    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: Listing())
    lane = Lane(1, [spec], table, {"a": 0}, 100.0, logs=InputLogs({"a": "c/1"}, {"a": 9}))
    assert (lane.offsets.to_commit(0.0), lane.offsets.log_ids) == ({"a": 7}, {"a": "c/1"})
    again = Lane(1, [spec], table, {"a": 0, "a/5": 0}, 100.0, logs=InputLogs({"a": "c/1"}, {"a": 9, "a/5": 9}))
    assert again.position == {"a": 7, "a/5": 9}
