"""Tests checkpoints during a rebalance, with records and at the end, on a stub of the Faust app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, ProducerFenced
from faust.types import TP
from tests.support.next_format import NEXT_FORMATS
from tests.unit.streams.worker.runtime.test_lane import Listing, ends, make_lane, records

from traceweir.streams.base.stages.base import End, StageSpec
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.changelog_restore import ChangelogRestore, Sources
from traceweir.streams.worker.runtime.checkpoint import MAX_LOSSES, Checkpoints
from traceweir.streams.worker.runtime.delivery import NoTransactionsError
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW, ROW_FORMATS, RowFormats


class GatedDelivery:
    """A delivery that starts and sends when the test lets it, and counts its checkpoints."""

    def __init__(self) -> None:
        self.may_start, self.may_send = asyncio.Event(), asyncio.Event()
        self.begun = self.ended = 0

    async def start(self) -> None:
        await self.may_start.wait()

    async def send(self, rows: RowsByPlace, *others: object) -> dict[TopicPartition, int]:
        self.begun += 1
        await self.may_send.wait()
        self.ended += 1
        return dict.fromkeys(rows, 1)

    async def stop(self) -> None:
        """Does nothing: there is no connection."""


class Owner:
    """Claims nothing; each partition counts as a step once the delivery may start."""

    hands_over = True

    def __init__(self, delivery: GatedDelivery | None = None) -> None:
        self.delivery, self.stopped = delivery or GatedDelivery(), 0
        self.compared: list[Mapping[TopicPartition, int]] = []

    async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
        for _ in numbers:
            await self.delivery.start()
            stepped()
            await asyncio.sleep(0)

    async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
        return {}

    async def compare_clocks(self, ends: Mapping[TopicPartition, int], since: float) -> None:
        self.compared.append(ends)

    async def stop(self) -> None:
        self.stopped += 1


def app_of(*, ready: bool = True, rebalancing: bool = False, started: bool = True) -> MagicMock:
    app = MagicMock(should_stop=False, rebalancing=rebalancing, rebalancing_count=1, crash=AsyncMock())
    app.configure_mock(**{"tables.actives_ready": ready, "_consumer.started": started, "assignor.row_format": FORMAT})
    app.tables.on_rebalance = AsyncMock()
    return app


def checkpoints_of(
    app: MagicMock, owner: Owner | None = None, *specs: StageSpec, formats: RowFormats = ROW_FORMATS
) -> Checkpoints:
    """Returns the checkpoints of one stage that reads the topic `a`, without a pause between checkpoints."""
    table = MagicMock(changelog_topic_name="changelog", data=MagicMock(offset_key=b"offset"))
    specs = specs or (StageSpec("one", ("a",), (), lambda partition, read, changed: Listing()),)
    found = owner or Owner()
    facts = AsyncMock(return_value="id")
    return Checkpoints(app, table, specs, lambda: found, facts, {}, partitions=4, interval_s=0.0, formats=formats)


def checkpoints_of_two_partitions(**app: bool) -> Checkpoints:
    """Returns checkpoints of two partitions, each with a lane whose last fetch ended at offset 5."""
    found = checkpoints_of(app_of(**app))
    found.lanes.update({0: lane(0), 1: lane(1)})
    found.fetched({TP("a", number): End(5, 5, 100.0) for number in found.lanes})
    return found


def lane(number: int, *, woken: bool = False, in_checkpoint: bool = False, full: bool = False) -> MagicMock:
    places = {"a": Place("a", number)}
    found = MagicMock(rounds=7, pending_bytes=0, woken=woken, in_checkpoint=in_checkpoint, places=places)
    found.full.return_value = full
    return found


async def assign(
    app: MagicMock, numbers: Sequence[int], inputs: Collection[str] = ("a",), added: Collection[TP] = ()
) -> asyncio.Task[None]:
    """Assigns these partitions, as Faust does after a rebalance; returns the takeover that has begun."""
    places = {TP(topic, number) for topic in (*inputs, "changelog") for number in numbers} | {*added}
    await app.tables.on_rebalance(places, set(), places)
    task: asyncio.Task[None] = app.tables.on_rebalance.__self__.takeover_task
    return task


async def take_over(
    app: MagicMock, numbers: Sequence[int], inputs: Collection[str] = ("a",), added: Collection[TP] = ()
) -> None:
    """Assigns these partitions, and waits for the end of the takeover."""
    await (await assign(app, numbers, inputs, added))
    app.tables.actives_ready = True


def empty(inputs: Collection[TopicPartition]) -> Sources:
    """Returns what empty inputs hold."""
    ends = dict.fromkeys(inputs, 0)
    return Sources({place.topic: f"cluster/{place.topic}" for place in inputs}, ends, ends)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def due(found: Checkpoints) -> dict[str, object]:
    return {duty.name: duty.mark for duty in found.duties() if duty.due}


# Duties


def test_the_only_duty_of_an_idle_partition_is_fetching() -> None:
    assert due(checkpoints_of_two_partitions()) == {
        "partition 0: fetching a": (5, 100.0),
        "partition 1: fetching a": (5, 100.0),
    }


def test_a_partition_that_was_never_fetched_has_the_duty_of_fetching() -> None:
    found = checkpoints_of_two_partitions()
    found.fetched({TP("a", 0): End(5, 5, 100.0)})
    assert due(found)["partition 1: fetching a"] is None


def test_a_full_partition_has_no_duty_of_fetching() -> None:
    found = checkpoints_of_two_partitions()
    found.lanes[1] = lane(1, full=True)
    assert due(found).keys() == {"partition 0: fetching a"}


@pytest.mark.parametrize("busy", [{"woken": True}, {"in_checkpoint": True}])
def test_a_checkpoint_is_due_when_records_are_pending_or_a_checkpoint_has_begun(busy: dict[str, bool]) -> None:
    found = checkpoints_of_two_partitions()
    found.lanes[0] = lane(0, **busy)
    assert due(found)["partition 0: the next checkpoint"] == 7


async def test_each_producer_that_starts_counts_as_progress_of_catching_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unending(
        self: ChangelogRestore,
        numbers: object,
        begun: Awaitable[object],
        facts: Awaitable[object],
        inputs: object,
        claim: object,
    ) -> None:
        await facts
        await begun
        await asyncio.Event().wait()

    monkeypatch.setattr(ChangelogRestore, "read", unending)
    app, first, second = app_of(ready=False), asyncio.Event(), asyncio.Event()

    class TwoSteps(Owner):
        async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
            for may_start in (first, second):
                await may_start.wait()
                stepped()

    found = checkpoints_of(app, TwoSteps())
    await assign(app, [0, 1])
    await turns()
    assert found.state() == {"phase": "catching up", "partitions": [0, 1]}
    ((name, before),) = due(found).items()
    assert name == "catching up (partition 0, partition 1)"
    first.set()
    await turns()
    assert due(found)[name] != before

    second.set()
    await turns()
    await found.revoke()
    assert found.state() == {"phase": "joining", "partitions": []}


def test_joining_the_group_is_a_duty() -> None:
    assert due(checkpoints_of(app_of(ready=False))).keys() == {"joining (no partition yet)"}


def test_a_worker_without_partitions_is_ready_and_has_no_duties() -> None:
    found = checkpoints_of(app_of())
    assert found.state() == {"phase": "ready", "partitions": []}
    assert due(found) == {}


@pytest.mark.parametrize(
    ("given", "phase"),
    [
        ({"ready": True}, "ready"),
        ({"ready": True, "rebalancing": True}, "joining"),
        ({"ready": False}, "joining"),
        ({"ready": False, "started": False}, "starting"),
    ],
)
def test_the_phase_follows_the_group(given: dict[str, bool], phase: str) -> None:
    assert checkpoints_of(app_of(**given)).phase == phase


def test_a_worker_that_gives_up_or_stops_has_the_phase_stopping_and_no_duties() -> None:
    app = app_of()
    given_up, stopped = checkpoints_of_two_partitions(), checkpoints_of(app)
    given_up.problems.append("the worker stops after ProducerFenced; its log contains the details")
    app.should_stop = True
    assert [(each.phase, due(each)) for each in (given_up, stopped)] == [("stopping", {})] * 2


# Records, and the last checkpoint


async def owning(
    app: MagicMock,
    delivery: GatedDelivery,
    monkeypatch: pytest.MonkeyPatch,
    *specs: StageSpec,
    partitions: int = 1,
) -> tuple[Checkpoints, dict[int, Lane]]:
    """Returns checkpoints and lanes of assigned partitions that are read to their end."""

    async def read(
        self: ChangelogRestore,
        numbers: Sequence[int],
        begun: Awaitable[object],
        facts: Awaitable[object],
        inputs: Collection[TopicPartition],
        claim: object,
    ) -> Sources:
        await facts
        await begun
        return empty(inputs)

    monkeypatch.setattr(ChangelogRestore, "read", read)
    delivery.may_start.set()
    checkpoints = checkpoints_of(app, Owner(delivery), *specs)
    await take_over(app, range(partitions), checkpoints.inputs)
    lanes = dict(checkpoints.lanes)
    for one in lanes.values():
        one.pending_seeks()
        one.fetched(ends(one), 100.0)
    return checkpoints, lanes


async def test_a_lane_observes_the_clock_before_it_takes_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes = await owning(app_of(), GatedDelivery(), monkeypatch)
    stage = lanes[0].stages["one"]
    assert isinstance(stage, Listing)
    stage.ticks.clear()

    await checkpoints.take(TP("a", 0), records("a", 1))

    assert [behind for _, behind in stage.ticks] == [["a"]]


async def test_while_nothing_is_fetched_the_stages_get_the_time_with_all_inputs_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, lanes = await owning(app_of(), GatedDelivery(), monkeypatch, partitions=2)
    stages = [lane.stages["one"] for lane in lanes.values()]
    for stage in stages:
        assert isinstance(stage, Listing)
        stage.ticks.clear()
    for module in ("checkpoint", "unread_records"):
        monkeypatch.setattr(f"traceweir.streams.worker.runtime.{module}.seconds_now", lambda: 1_000.0)
    checkpoints.waited()
    checkpoints.waited()
    assert [stage.ticks for stage in stages] == [[(1_000.0, ["a"])]] * 2  # type: ignore[attr-defined]


async def test_a_revoked_partition_begins_no_checkpoint_after_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sends = GatedDelivery()
    checkpoints, lanes = await owning(app_of(), sends, monkeypatch, partitions=2)
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert sends.begun == 1

    await checkpoints.take(TP("a", 1), records("a", 1, first=1))
    revoked = asyncio.create_task(checkpoints.revoke())
    for more in range(2, 50):
        await checkpoints.take(TP("a", 1), records("a", 1, first=more))
        await asyncio.sleep(0)
    assert (sends.begun, revoked.done()) == (1, False)

    sends.may_send.set()
    await revoked
    await turns()
    assert sends.begun == sends.ended == 2  # the checkpoint that was in progress, and the last
    assert all(lane.dead for lane in lanes.values())
    assert checkpoints.lanes == {}


# Added partitions


async def test_the_lane_of_a_number_reads_the_added_partitions_that_follow_it_in_steps_of_all_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = app_of()
    Restoring(monkeypatch).may_end.set()
    found = checkpoints_of(app, owner_that_starts())
    await take_over(app, [1, 2], added=[TP("a", 5), TP("a", 9), TP("a", 6)])
    places = [TP("a", 1), TP("a", 5), TP("a", 9), TP("a", 2), TP("a", 6)]
    assert sorted(found.pending_seeks()) == sorted((place, 0) for place in places)
    found.fetched({place: End(0, number, 100.0) for number, place in enumerate(places)})
    assert found.unread.lag() == {"a": 10}
    assert {name for name in due(found) if "fetching" in name} == {
        *("partition 1: fetching a", "partition 1: fetching a/5", "partition 1: fetching a/9"),
        *("partition 2: fetching a", "partition 2: fetching a/6"),
    }

    await found.take(TP("a", 5), records("a", 1, 2))
    assert found.lanes[1].position == {"a": 0, "a/5": 2, "a/9": 0}
    found.dropped(TP("a", 5))
    assert found.pending_seeks() == [(TP("a", 5), 2)]


# Takeovers


class Restoring:
    """Restores when the test lets it, without a row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

        async def read(
            restore: ChangelogRestore,
            numbers: Sequence[int],
            begun: Awaitable[object],
            facts: Awaitable[object],
            inputs: Collection[TopicPartition],
            claim: object,
        ) -> Sources:
            await facts
            await begun
            self.began.set()
            await self.may_end.wait()
            return empty(inputs)

        monkeypatch.setattr(ChangelogRestore, "read", read)


def owner_that_starts() -> Owner:
    owner = Owner()
    owner.delivery.may_start.set()
    return owner


async def test_the_callback_of_an_assignment_returns_before_the_partitions_are_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restoring, app = Restoring(monkeypatch), app_of()
    found = checkpoints_of(app, owner_that_starts())
    taking = await assign(app, [0, 1])
    await restoring.began.wait()
    assert (found.phase, found.lanes, taking.done()) == ("catching up", {}, False)
    assert app.tables.actives_ready is False

    restoring.may_end.set()
    await taking
    assert found.lanes.keys() == {0, 1}


async def test_a_revocation_waits_until_the_takeover_has_ended_and_closed_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restoring, app, owner = Restoring(monkeypatch), app_of(), owner_that_starts()
    found = checkpoints_of(app, owner)
    taking = await assign(app, [0])
    await restoring.began.wait()
    assert owner.stopped == 0

    await found.revoke()
    assert (taking.done(), owner.stopped, found.lanes, found.problems) == (True, 1, {}, [])


async def test_what_a_stopped_takeover_has_loaded_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Listing] = []
    revoked: list[asyncio.Task[None]] = []

    def new(partition: int, read: object, changed: object) -> Listing:
        if loaded:
            revoked.append(asyncio.create_task(found.revoke()))
        loaded.append(Listing())
        return loaded[-1]

    restoring, app = Restoring(monkeypatch), app_of()
    restoring.may_end.set()
    found = checkpoints_of(app, owner_that_starts(), StageSpec("one", ("a",), (), new))
    taking = await assign(app, [0, 1])
    await asyncio.wait([taking])
    await revoked[0]
    assert [stage.dropped for stage in loaded] == [True, True]
    assert (found.lanes, found.problems) == ({}, [])


@pytest.mark.parametrize("moment", ["begin", "loading", "last step"])
async def test_a_stop_while_partitions_are_taken_over_is_orderly(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of()

    class Owning(Owner):
        async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
            app.should_stop |= moment == "begin"

    def new(partition: int, read: object, changed: object) -> Listing:
        app.should_stop |= moment == "loading"
        return Listing()

    async def stop(*_: object) -> None:
        app.should_stop |= moment == "last step"

    app.tables.on_rebalance.side_effect = stop
    Restoring(monkeypatch).may_end.set()
    owner = Owning()
    found = checkpoints_of(app, owner, StageSpec("one", ("a",), (), new))
    await take_over(app, [0, 1])
    await found.revoke()

    assert (found.lanes, found.problems) == ({}, [])
    assert (owner.stopped, owner.delivery.begun) == (1, 0)


async def test_a_takeover_that_fails_ends_the_worker_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Owner):
        async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
            raise NoTransactionsError("refused")

    app = app_of()
    found = checkpoints_of(app, Failing())
    await take_over(app, [0])
    assert found.problems == ["the worker stops after NoTransactionsError; its log contains the details"]
    assert app.crash.await_count == 1


async def test_a_worker_that_is_fenced_while_it_takes_over_joins_its_group_again() -> None:
    class Overtaken(Owner):
        async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
            raise ProducerFenced

    app = app_of()
    found = checkpoints_of(app, Overtaken())
    await take_over(app, [0])
    assert (found.lanes, found.problems) == ({}, [])
    assert app.consumer.join_again.call_count == 1


async def test_a_takeover_that_something_else_cancels_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    restoring, app = Restoring(monkeypatch), app_of()
    found = checkpoints_of(app, owner_that_starts())
    taking = await assign(app, [0])
    await restoring.began.wait()
    taking.cancel()
    await asyncio.wait([taking])
    assert found.problems == ["the worker stops after TaskCancelledError; its log contains the details"]


async def test_a_failure_elsewhere_ends_the_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    restoring, app = Restoring(monkeypatch), app_of()
    found = checkpoints_of(app, owner_that_starts())
    taking = await assign(app, [0])
    await restoring.began.wait()
    await found.fail(NoTransactionsError("refused"))
    restoring.may_end.set()
    await asyncio.wait([taking])
    assert found.lanes == {}


# Transactions that Kafka has ended


class Fenced(GatedDelivery):
    """A delivery whose transactions Kafka refuses."""

    async def send(self, rows: RowsByPlace, *others: object) -> dict[TopicPartition, int]:
        raise ProducerFenced


async def test_a_worker_whose_transaction_kafka_has_ended_drops_its_lanes_and_joins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = app_of()
    checkpoints, lanes = await owning(app, Fenced(), monkeypatch, partitions=2)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await turns()
    assert (checkpoints.lanes, checkpoints.problems, checkpoints.phase) == ({}, [], "joining")
    assert all(lane.dead for lane in lanes.values())
    assert app.consumer.join_again.call_count == 1


class TooLarge(GatedDelivery):
    """A delivery whose topics have got smaller limits."""

    async def send(self, rows: RowsByPlace, *others: object) -> dict[TopicPartition, int]:
        raise MessageSizeTooLargeError("topic 'results' refuses a batch of 70000 bytes")


async def test_a_worker_whose_batch_is_too_large_for_its_topic_takes_its_partitions_over_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of()
    checkpoints, lanes = await owning(app, TooLarge(), monkeypatch)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await turns()
    assert (checkpoints.lanes, checkpoints.problems) == ({}, [])
    assert all(lane.dead for lane in lanes.values())
    assert app.consumer.join_again.call_count == 1
    assert "topic 'results' refuses a batch of 70000 bytes. A worker learns the limit when it takes" in caplog.text


async def test_a_worker_that_loses_its_partitions_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of()
    found = checkpoints_of(app)
    for _ in range(MAX_LOSSES):
        await found.lose(ProducerFenced())
    assert found.problems == []
    await found.lose(ProducerFenced())
    assert found.problems == ["the worker stops after ProducerFenced; its log contains the details"]


async def test_a_last_checkpoint_that_kafka_refuses_does_not_ask_for_another_rebalance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = app_of()
    delivery = GatedDelivery()
    checkpoints, _ = await owning(app, delivery, monkeypatch)
    monkeypatch.setattr(delivery, "send", Fenced().send)
    checkpoints.rounds.end()
    await checkpoints.take(TP("a", 0), records("a", 1))
    await checkpoints.revoke()
    assert (checkpoints.lanes, checkpoints.problems) == ({}, [])
    assert app.consumer.join_again.mock_calls == []


async def test_partitions_are_claimed_in_the_format_that_the_group_has_agreed_on_until_the_next_takeover(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    waits = f"reads rows up to format {FORMAT} only, so this worker does not write format {FORMAT + 1} yet"
    claimed: list[Mapping[int, int]] = []

    class Claiming(Owner):
        async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
            claimed.append(formats)
            return {}

    async def read(
        self: ChangelogRestore,
        numbers: object,
        begun: Awaitable[object],
        facts: Awaitable[object],
        inputs: Collection[TopicPartition],
        claim: Callable[[Collection[str]], Awaitable[object]],
    ) -> Sources:
        await facts
        await begun
        await claim([])
        return empty(inputs)

    monkeypatch.setattr(ChangelogRestore, "read", read)
    monkeypatch.setattr(PartitionTable, "read", lambda self, number, key: b"%d" % FORMAT)
    monkeypatch.setattr(PartitionTable, "rows", lambda self, number: {FORMAT_ROW: b"%d" % FORMAT})
    owner = Claiming()
    owner.delivery.may_start.set()
    app = app_of()
    checkpoints = checkpoints_of(app, owner, formats=NEXT_FORMATS)
    await take_over(app, [0, 1])
    assert claimed == [{0: FORMAT, 1: FORMAT}]
    assert waits in caplog.text
    caplog.clear()
    app.assignor.row_format = FORMAT + 1
    await checkpoints.revoke()
    await take_over(app, [1])
    assert claimed[1:] == [{1: FORMAT + 1}]
    assert waits not in caplog.text


async def test_a_worker_that_cannot_write_the_format_of_the_group_does_not_say_that_it_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    app = app_of()
    app.assignor.row_format = FORMAT - 1
    await owning(app, GatedDelivery(), monkeypatch)
    assert "does not write format" not in caplog.text
    assert "Stop all workers of the earlier version" in caplog.text


async def test_rows_of_a_newer_format_are_refused_before_the_partition_is_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claimed: list[tuple[Collection[str], Mapping[int, int]]] = []

    class Claiming(Owner):
        async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
            claimed.append((writers, formats))
            return {}

    async def read(
        self: ChangelogRestore,
        numbers: object,
        begun: Awaitable[object],
        facts: Awaitable[object],
        inputs: Collection[TopicPartition],
        claim: Callable[[Collection[str]], Awaitable[object]],
    ) -> Sources:
        await facts
        await begun
        await claim(["former"])
        return empty(inputs)

    monkeypatch.setattr(ChangelogRestore, "read", read)
    formats = {0: FORMAT}
    monkeypatch.setattr(
        PartitionTable, "read", lambda self, number, key: b"%d" % formats[number] if key == FORMAT_ROW else None
    )
    owner = Claiming()
    owner.delivery.may_start.set()
    app = app_of()
    checkpoints_of(app, owner)
    await take_over(app, [0])
    assert claimed == [(["former"], {0: FORMAT})]

    formats[0] = FORMAT + 1
    app = app_of()
    refusing = checkpoints_of(app, owner)
    await take_over(app, [0])
    assert refusing.problems == ["the worker stops after StateDirectoryError; its log contains the details"]
    assert claimed == [(["former"], {0: FORMAT})]


async def test_the_age_of_an_input_is_that_of_the_oldest_record_that_no_checkpoint_contains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("checkpoint", "unread_records"):
        monkeypatch.setattr(f"traceweir.streams.worker.runtime.{module}.seconds_now", lambda: 1_000.0)
    checkpoints = checkpoints_of(app_of())
    for number in range(2):
        checkpoints.lanes[number], _ = make_lane(inputs=("a",))
    first, second = checkpoints.lanes.values()
    assert checkpoints.unread.age_s() == {"a": 0.0}

    await first.take("a", records("a", 400_000, 700_000))
    await second.take("a", records("a", 900_000))
    assert checkpoints.unread.age_s() == {"a": 600.0}
    first.fetched(ends(first), 1_000.0)
    first.cut()
    assert checkpoints.unread.age_s() == {"a": 100.0}
    # One record is left that was not read: it can be deleted when the last one before it can be.
    checkpoints.fetched({TP("a", 0): End(2, 3, 1_000.0)})
    assert checkpoints.unread.age_s() == {"a": 300.0}
