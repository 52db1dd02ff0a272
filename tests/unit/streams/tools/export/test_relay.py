"""While partitions move, an exporter sends nothing: what waits and what was read is sent by the owner after the move."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, NoOffsetForPartitionError, OffsetOutOfRangeError
from tests.support.results import make_score

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics
from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Accepted, Later, Refused
from traceweir.streams.tools.export.not_taken import Delivered, NotTaken
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.relay import Relay
from traceweir.streams.tools.export.source import scores_of
from traceweir.streams.tools.export.waiting_score import WaitingRow, WaitingScore
from traceweir.streams.tools.export.waiting_topic import WaitingTopic
from traceweir.streams.tools.results.reader import FoundScore
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.silence import LastAnswer

PLACE = TopicPartition("traceweir.results", 0)
LIMIT_S = 30.0
READ_ONCE = ["sent read", "committed 8", "noted 8"]
"""What `records` leads to when they are read by their owner."""
WAITED = ["sent waits-1", "committed 3", "noted 3"]
"""What a score that waits leads to: the offset stays, and Kafka compares the member."""
Records = Mapping[TopicPartition, Sequence[Any]]


def waiting(offset: int) -> WaitingScore:
    score = make_score(f"waits-{offset}")
    return WaitingScore(0, offset, 1_000, score.session_id, score.wire(), 0.0)


async def records() -> Records:
    value = make_score("read").wire()
    return {PLACE: [SimpleNamespace(value=value, offset=7, timestamp=1_000)]}


class Group:
    """Stands for Kafka and the target: a script says what each read returns, and what happens meanwhile."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.rows: list[WaitingScore] = []
        self.stop = asyncio.Event()
        self.reads: list[Callable[[], Awaitable[Records]]] = []
        self.meanwhile: dict[str, Callable[[], Awaitable[None]]] = {}
        """What happens during a call, once, by its name."""
        self.listener: Any = None
        self.offsets: dict[TopicPartition, int] = {}
        self.lost = False
        """Whether Kafka has given the partitions to another process, which this one does not know yet."""
        self.max_records = 10
        self.acceptance = Acceptance()
        self.answer: Accepted | Later | Refused = Accepted()
        self.left_out = 0
        self.relay: Any = None

    async def revoke(self) -> None:
        self.log.append("moving")
        await self.listener.on_partitions_revoked({PLACE})
        self.log.append("left")

    async def assigned(self) -> Records:
        await self.listener.on_partitions_assigned({PLACE})
        return {}

    async def moved(self) -> Records:
        await self.revoke()
        return await self.assigned()

    async def during(self, name: str) -> None:
        if name in self.meanwhile:
            await self.meanwhile.pop(name)()

    # --- the target

    async def deliver(self, scores: Sequence[FoundScore]) -> Delivered:
        self.log += [f"sent {each.score.session_id}" for each in scores]
        self.acceptance.note(scores, self.answer)
        if isinstance(self.answer, Accepted):
            return Delivered((), self.left_out)
        return Delivered([NotTaken(each, self.answer) for each in scores], self.left_out)

    # --- the consumer

    def subscribe(self, topics: Collection[str], listener: object) -> None:
        self.listener = listener

    async def start(self) -> None:
        await self.during("join")
        await self.assigned()

    async def getmany(self, **limits: int) -> Records:
        if not self.reads:
            self.stop.set()
            return {}
        return await self.reads.pop(0)()

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset({PLACE})

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset()

    def resume(self, *places: TopicPartition) -> None: ...

    # --- positions and checkpoints

    async def open(self) -> None:
        await self.during("open")

    async def close(self) -> None: ...

    async def begin(self, consumer: object, places: Collection[TopicPartition], has_moved: Callable[[], bool]) -> int:
        moved = has_moved()
        self.log.append("moved" if moved else "begin")
        self.offsets = {} if moved else dict.fromkeys(places, 3)
        await self.during("begin")
        return 0

    def note(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.log += [f"noted {offset}" for offset in offsets.values()]
        self.offsets |= offsets

    def forget(self) -> None:
        self.offsets.clear()

    async def write_if_due(self) -> None:
        await self.during("write_if_due")


class Positions:
    """The positions of a group, of which `write` is told apart from that of the checkpoints."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def __getattr__(self, name: str) -> Any:
        return getattr(self.group, name)

    async def write(self) -> None:
        await self.group.during("write")


class ExportTransactions(Positions):
    """Commits nothing, and notes what it was told."""

    async def open(self) -> None:
        await self.group.during("fence")

    async def write(self, consumer: object = None, outputs: object = (), offsets: Any = None) -> None:
        await self.group.during("commit")
        if self.group.lost and offsets:
            raise CommitFailedError
        self.group.log += [f"committed {offset}" for offset in (offsets or {}).values()]


class Consumer(Positions):
    """The client, as far as the relay uses it."""

    async def stop(self) -> None: ...


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    group, relay = Group(), "traceweir.streams.tools.export.relay"

    async def rows(topic: WaitingTopic, partitions: Collection[int]) -> AsyncIterator[WaitingRow]:
        await group.during("rows")
        for row_at, score in enumerate(group.rows):
            yield WaitingRow(score.place, row_at, score)

    @asynccontextmanager
    async def unwatched(consumer: object, **limits: float) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(f"{relay}.RETRY_AFTER_S", (0.0,))
    monkeypatch.setattr(WaitingTopic, "open", rows)
    monkeypatch.setattr(f"{relay}.Positions", lambda *_, **__: Positions(group))
    monkeypatch.setattr(f"{relay}.ExportTransactions", lambda *_: ExportTransactions(group))
    monkeypatch.setattr(f"{relay}.group_consumer", lambda *_: Consumer(group))
    monkeypatch.setattr(f"{relay}.failing_with_client", unwatched)
    monkeypatch.setattr(f"{relay}.check_partitions", lambda *_: [])
    monkeypatch.setattr(f"{relay}.check_group_use", lambda *_: None)
    monkeypatch.setattr(f"{relay}.read_as_parsed", lambda _: None)
    group.relay = Relay(
        Settings(), scores_of(Topics.of()), group, group="hook", problems=ProblemLog("traceweir.results", lambda: 0.0)
    )
    return group


async def run(group: Group) -> None:
    await asyncio.wait_for(group.relay.run(group.stop, 10.0), LIMIT_S)


async def test_while_the_exporter_notes_where_it_stands_nothing_is_sent(group: Group) -> None:
    """The callback of the rebalance runs beside the reads; it goes on after the second of them."""
    writes, has_read = asyncio.Event(), asyncio.Event()
    moving: list[asyncio.Task[None]] = []

    async def move() -> None:
        moving.append(asyncio.create_task(group.revoke()))
        await writes.wait()

    async def write() -> None:
        writes.set()
        await has_read.wait()

    async def end_of_the_move() -> Records:
        has_read.set()
        await moving[0]
        return await group.assigned()

    group.rows = [waiting(1)]
    group.meanwhile = {"begin": move, "write": write}
    group.reads = [records, end_of_the_move, records]
    await run(group)
    assert group.log == ["begin", "moving", "left", "begin", *WAITED, *READ_ONCE]


async def test_records_that_were_read_before_a_move_are_read_again_after_it(group: Group) -> None:
    group.meanwhile = {"write_if_due": group.revoke}
    group.reads = [records, group.assigned, records]
    await run(group)
    assert group.log == ["begin", "moving", "left", "begin", *READ_ONCE]


async def test_an_offset_that_is_missing_during_a_move_gives_no_partition_back(group: Group) -> None:
    async def out_of_range() -> Records:
        await group.revoke()
        raise OffsetOutOfRangeError({PLACE: 5})

    async def no_offset() -> Records:
        raise NoOffsetForPartitionError(PLACE)

    group.reads = [out_of_range, no_offset, records, group.assigned, records]
    await run(group)
    assert group.log == ["begin", "moving", "left", "begin", *READ_ONCE]


async def test_partitions_that_move_while_what_waits_is_read_get_no_position(group: Group) -> None:
    group.rows = [waiting(1)]
    group.meanwhile = {"rows": group.revoke}
    group.reads = [records, group.assigned, records]
    await run(group)
    assert group.log == ["moving", "left", "moved", "begin", *WAITED, *READ_ONCE]


async def test_what_is_sent_again_commits_the_offset_where_the_group_stands(group: Group) -> None:
    group.rows = [waiting(1)]
    group.reads = [records]
    await run(group)
    assert group.log == ["begin", *WAITED, *READ_ONCE]


async def test_a_process_that_has_lost_its_partitions_goes_on_with_what_waits_when_it_has_them_again(
    group: Group,
) -> None:
    async def owner_again() -> Records:
        group.lost = False
        return await group.moved()

    group.rows = [waiting(1)]
    group.lost = True
    group.reads = [owner_again]
    await run(group)
    assert group.log == ["begin", "sent waits-1", "moving", "left", "begin", *WAITED]


async def test_nothing_is_sent_again_before_the_partitions_have_a_position(group: Group) -> None:
    """Without one, what is written about it would commit no offset."""

    async def moved_away() -> None:
        group.offsets.clear()
        raise CommitFailedError

    group.rows = [waiting(1)]
    group.meanwhile = {"begin": moved_away}
    group.reads = [group.moved]
    await run(group)
    assert group.log == ["begin", "moving", "left", "begin", *WAITED]


async def test_an_exporter_is_ready_while_it_reads_its_partitions_and_not_while_they_move(group: Group) -> None:
    told: list[tuple[str, list[int]]] = []

    def tell() -> None:
        told.append((group.relay.readiness.phase, group.relay.readiness.partitions))

    async def moves() -> Records:
        tell()
        await group.revoke()
        tell()
        found = await group.assigned()
        tell()
        return found

    async def reads_again() -> Records:
        tell()
        return {}

    tell()
    group.reads = [moves, reads_again]
    await run(group)
    tell()
    assert told == [
        ("starting", []),
        ("ready", [0]),
        ("joining", []),
        ("catching up", []),
        ("ready", [0]),
        ("stopping", []),
    ]


async def test_an_exporter_that_cannot_read_says_why_until_it_reads_again(group: Group) -> None:
    told: list[str | None] = []

    async def second_attempt() -> None:
        told.append(group.relay.readiness.trouble)

    async def first_attempt() -> None:
        group.meanwhile["open"] = second_attempt
        raise KafkaUnreachableError("no broker answers")

    async def reads() -> Records:
        told.append(group.relay.readiness.trouble)
        return {}

    group.meanwhile["open"] = first_attempt
    group.reads = [reads]
    await run(group)
    assert told == ["no score is read now: no broker answers", None]


AWAY = "the target takes nothing now: busy"


async def test_a_target_that_takes_nothing_is_told_until_what_waits_has_moved_to_another_process(group: Group) -> None:
    told: list[str | None] = []

    async def moves_away() -> Records:
        told.append(group.acceptance.problem)
        assert group.relay.next_attempt is not None
        await group.revoke()
        told.append(group.acceptance.problem)
        assert group.relay.next_attempt is None
        return {}

    group.answer = Later("busy")
    group.reads = [records, moves_away]
    await run(group)
    assert told == [AWAY, None]


@pytest.mark.parametrize(("since", "expected"), [(timedelta(days=4), None), (timedelta(hours=4), AWAY)])
async def test_a_target_that_takes_nothing_is_told_until_what_waits_is_given_up(
    group: Group, since: timedelta, expected: str | None
) -> None:
    told: list[str | None] = []

    async def tell() -> Records:
        told.append(group.acceptance.problem)
        return {}

    group.rows = [waiting(1)._replace(since_s=(utc_now() - since).timestamp())]
    group.answer = Later("busy")
    group.reads = [tell]
    await run(group)
    assert told == [expected]
    assert group.relay.counts["given_up"] == (expected is None)


async def test_after_a_failure_of_kafka_nothing_is_told_of_a_target_that_was_away(group: Group) -> None:
    """What waits is sent again at once, by whoever has the partitions then."""
    told: list[str | None] = []

    async def fails() -> Records:
        told.append(group.acceptance.problem)
        raise KafkaUnreachableError("no broker answers")

    async def second_attempt() -> None:
        told.append(group.acceptance.problem)

    group.answer = Later("busy")
    group.reads = [records, fails]

    async def first_attempt() -> None:
        group.meanwhile["open"] = second_attempt

    group.meanwhile["begin"] = first_attempt
    await run(group)
    assert told == [AWAY, None]


async def test_a_commit_under_way_is_known(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr("traceweir.streams.tools.export.readiness.UNKNOWN_AFTER_S", 0.0)

    async def tell() -> Records:
        told.append(len(group.relay.readiness.obstacles))
        return {}

    async def commit() -> None:
        await tell()

    group.meanwhile = {"commit": commit}
    group.reads = [tell, records, tell]
    await run(group)
    assert told == [0, 1, 0]


async def test_records_whose_commit_fails_count_when_they_are_read_again_and_committed(group: Group) -> None:
    """What a target has acknowledged counts each time: it has received it as often."""
    told: list[Counter[str]] = []

    async def with_others() -> Records:
        (score,) = (await records())[PLACE]
        return {PLACE: [SimpleNamespace(value=b"no score", offset=6, timestamp=1_000), score]}

    async def fails() -> None:
        told.append(group.relay.counts)
        raise KafkaUnreachableError("no broker answers")

    group.answer = Refused("too large")
    group.left_out = 1
    group.meanwhile = {"commit": fails}
    group.reads = [with_others, with_others]
    await run(group)
    assert not any(told[0].values())
    assert group.relay.counts == {"read": 2, "unreadable": 1, "left_out": 1, "refused": 1}


@pytest.mark.parametrize("answer", [Later("busy"), Refused("too large")])
async def test_what_waits_counts_when_it_is_committed(group: Group, answer: Later | Refused) -> None:
    told: list[Counter[str]] = []

    async def moves() -> None:
        told.append(group.relay.counts)
        raise CommitFailedError

    group.answer = answer
    group.meanwhile = {"commit": moves}
    group.reads = [records, group.moved, records]
    await run(group)
    assert not any(told[0].values())
    counted = group.relay.counts
    assert (counted["read"], counted["waited"], counted["refused"]) == (
        1,
        answer == Later("busy"),
        answer != Later("busy"),
    )


@pytest.fixture
def s(group: Group) -> list[float]:
    """The clock of the answers of brokers."""
    s = [0.0]
    group.relay.readiness.last_answer = LastAnswer(lambda: s[0])
    return s


async def test_brokers_are_asked_while_the_exporter_waits_for_a_coordinator_and_for_its_group(
    group: Group, s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def reach(settings: Settings, timeout_s: float) -> None:
        loop.call_soon_threadsafe(asked.set)

    async def waits() -> None:
        s[0] += 60.0
        while group.relay.readiness.last_answer.problem is not None:
            asked.clear()
            await asked.wait()
            await asyncio.sleep(0)

    monkeypatch.setattr("traceweir.streams.worker.kafka.silence.ASK_EVERY_S", 0.0)
    monkeypatch.setattr("traceweir.streams.worker.kafka.silence.reach", reach)
    group.meanwhile = {"fence": waits, "join": waits}
    await run(group)
    assert group.meanwhile == {}


async def test_that_the_exporter_begins_to_join_its_group_is_no_answer_of_a_broker(
    group: Group, s: list[float]
) -> None:
    told: list[str | None] = []

    async def fence() -> None:
        s[0] += 60.0

    async def join() -> None:
        await asyncio.sleep(0)
        told.append(group.relay.readiness.last_answer.problem)

    group.meanwhile = {"fence": fence, "join": join}
    await run(group)
    assert told == ["no Kafka broker has answered for more than 15 s: check that the brokers run"]
