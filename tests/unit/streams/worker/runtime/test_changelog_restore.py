"""Tests that the restore of a table from its changelog does not wait for connections to close."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from traceweir.streams.testing import Message
from traceweir.streams.worker.kafka.log_facts import LogFacts
from traceweir.streams.worker.runtime import changelog_restore
from traceweir.streams.worker.runtime.changelog_restore import ChangelogRestore, RestoreTooSlowError
from traceweir.streams.worker.runtime.checkpoint_rows import WRITER_ROW

NOW = 1_000_000.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_restore, "seconds_now", lambda: NOW)


class EmptyTable:
    changelog = "changelog"

    def open(self, partition: int) -> None:
        """Does nothing: the table is always open."""

    def reached(self, partition: int) -> int:
        return -1

    def source(self, partition: int) -> str:
        return "id"

    def current_at(self, partition: int) -> float | None:
        return NOW

    def read(self, partition: int, key: bytes) -> bytes | None:
        return None


async def begin() -> None:
    """Does nothing: nobody else claims the partitions."""


async def facts() -> LogFacts:
    return LogFacts({"changelog": "id", "a": "other id"}, "cluster", 86_400.0)


async def claim_nothing(writers: Collection[str]) -> dict[int, int]:
    return {}


class Connection:
    """A connection that ends only when it is aborted, as a TLS connection does during a fetch."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._writer = SimpleNamespace(transport=SimpleNamespace(abort=self.ended.set))

    def close(self) -> None:
        """Does nothing: a graceful close does not end the connection."""


class Client:
    def __init__(self) -> None:
        self._conns = {number: Connection() for number in range(3)}
        self._request_timeout_ms = 40_000

    async def _get_conn(self, node_id: int) -> Connection:
        return self._conns[node_id]

    async def bootstrap(self) -> None:
        """Does nothing: the consumer starts immediately."""

    async def close(self) -> None:
        for connection in self._conns.values():
            await connection.ended.wait()


class Fetcher:
    """The parts of a fetcher that the product uses."""

    def __init__(self) -> None:
        self._isolation_level, self._pending_tasks, self._fetch_task = 1, set[object](), None

    async def close(self) -> None:
        """Does nothing: nothing is fetched."""


class SlowConsumer:
    """A consumer that reads empty topics, and stops only after its connections have ended."""

    def __init__(self, **options: object) -> None:
        self._client, self._coordinator = Client(), None
        self._fetcher = Fetcher()

    async def start(self) -> None:
        """Does nothing: the consumer starts immediately."""

    async def stop(self) -> None:
        await self._client.close()

    def assign(self, places: Collection[TopicPartition]) -> None:
        """Does nothing: every partition is empty."""

    def pause(self, *places: TopicPartition) -> None:
        """Does nothing: every partition is empty."""

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Does nothing: every partition is empty."""

    async def position(self, place: TopicPartition) -> int:
        return 0

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    beginning_offsets = end_offsets


async def test_the_restore_does_not_wait_for_connections_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", SlowConsumer)
    table: Any = EmptyTable()

    found = await ChangelogRestore(table, {}, lambda: None).read(
        [3], begin(), facts(), [TopicPartition("a", 3)], claim_nothing
    )

    assert found.ids["a"] == "other id"
    assert found.begins == found.ends == {TopicPartition("a", 3): 0}


class BatchConsumer(SlowConsumer):
    """A consumer of a changelog with four rows, which returns two rows per fetch."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._position = 0

    async def position(self, place: TopicPartition) -> int:
        return self._position

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 4)

    async def beginning_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    async def getmany(self, *places: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Message]]:
        first = self._position
        self._position += 2
        return {place: [Message("changelog", 3, first + row, 0, b"k", b"row") for row in range(2)] for place in places}


class Rows(EmptyTable):
    def __init__(self) -> None:
        self.written: list[int] = []

    def write(self, partition: int, rows: Sequence[object], offset: int) -> None:
        self.written.append(offset)

    def reach(self, partition: int, offset: int, current_at: float) -> None:
        """Does nothing: the last row is the end."""


async def test_every_restored_batch_is_a_step_so_that_the_watchdog_sees_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", BatchConsumer)
    table: Any = Rows()
    steps: list[int] = []

    remaining: list[int] = []

    def stepped() -> None:
        steps.append(len(table.written))
        remaining.append(restore.remaining)

    restore = ChangelogRestore(table, {}, stepped)
    await restore.read([3], begin(), facts(), [], claim_nothing)

    assert (table.written, steps) == ([1, 3], [1, 2])
    assert (restore.rows, restore.bytes) == (4, 16)
    assert (remaining, restore.remaining) == ([4, 2], 0)


class MarkedLater(BatchConsumer):
    """A consumer of a changelog whose last transaction gets its mark after some looks at the end."""

    looks = 0
    marked_at = 4

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        MarkedLater.looks += 1
        return dict.fromkeys(places, 4 if MarkedLater.looks >= self.marked_at else 2)


class Written(Rows):
    """Local rows that reach offset 2 of the changelog."""

    def __init__(self) -> None:
        super().__init__()
        self.cleared: list[int] = []

    def reached(self, partition: int) -> int:
        return 2

    def start_over(self, partition: int, source: str, now: float) -> int:
        self.cleared.append(partition)
        return 3


@pytest.mark.slow
@pytest.mark.parametrize(("marked_at", "cleared"), [(4, []), (10_000, [3])])
async def test_rows_of_a_transaction_that_is_not_marked_yet_are_kept_and_rows_that_the_changelog_lost_are_not(
    marked_at: int, cleared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", MarkedLater)
    monkeypatch.setattr(MarkedLater, "looks", 0)
    monkeypatch.setattr(MarkedLater, "marked_at", marked_at)
    table: Any = Written()

    await ChangelogRestore(table, {}, lambda: None).read([3], begin(), facts(), [], claim_nothing)

    assert table.cleared == cleared


class Claimed(BatchConsumer):
    """A consumer of a changelog to which a claim adds two rows, the second after some looks at the end."""

    ends: Iterator[int] = iter(())

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, next(Claimed.ends, 6))


class Named(Rows):
    """Rows that name their writer."""

    def read(self, partition: int, key: bytes) -> bytes | None:
        return b"former" if key == WRITER_ROW and self.written else None


async def test_the_former_writer_is_named_to_the_claim_and_the_rows_up_to_the_claim_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", Claimed)
    monkeypatch.setattr(Claimed, "ends", iter([2, 4, 4, 6]))
    table: Any = Named()
    claims: list[tuple[Collection[str], list[int]]] = []

    async def claim(writers: Collection[str]) -> dict[int, int]:
        claims.append((writers, [*table.written]))
        return {3: 4}

    await ChangelogRestore(table, {}, lambda: None).read([3], begin(), facts(), [], claim)

    assert claims == [({"former"}, [1])]
    assert table.written == [1, 3, 5]


async def test_no_end_of_the_changelog_is_asked_for_before_the_claims_of_others_are_shut_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    class Noted(SlowConsumer):
        async def start(self) -> None:
            steps.append("connected")

        async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            steps.append("ends")
            return dict.fromkeys(places, 0)

    async def shut_out() -> None:
        # Ends after everything that does not wait for it.
        for _ in range(20):
            await asyncio.sleep(0)
        steps.append("shut out")

    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", Noted)
    table: Any = EmptyTable()
    await ChangelogRestore(table, {}, lambda: None).read([3], shut_out(), facts(), [], claim_nothing)

    assert steps[:3] == ["connected", "shut out", "ends"]


class Aged(Written):
    """Local rows that were complete at a time."""

    def __init__(self, current_at: float) -> None:
        super().__init__()
        self._current_at = current_at

    def current_at(self, partition: int) -> float | None:
        return self._current_at

    def start_over(self, partition: int, source: str, now: float) -> int:
        self._current_at = now
        return super().start_over(partition, source, now)

    def reach(self, partition: int, offset: int, current_at: float) -> None:
        self._current_at = current_at


@pytest.mark.parametrize(("age_s", "cleared"), [(70_000.0, []), (80_000.0, [3])])
async def test_rows_that_are_older_than_the_deletions_of_the_changelog_are_restored_from_its_beginning(
    age_s: float, cleared: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", BatchConsumer)
    table: Any = Aged(NOW - age_s)
    await ChangelogRestore(table, {}, lambda: None).read([3], begin(), facts(), [], claim_nothing)
    assert table.cleared == cleared
    assert ("deletion is not there any more" in caplog.text) == bool(cleared)
    assert table.current_at(3) == NOW


async def test_a_restore_that_takes_longer_than_deletions_are_kept_ends_with_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", BatchConsumer)
    times = iter([NOW, NOW])
    monkeypatch.setattr(changelog_restore, "seconds_now", lambda: next(times, NOW + 100_000))
    with pytest.raises(
        RestoreTooSlowError, match=r"longer than changelog keeps deletions \(24 h, delete\.retention\.ms\)"
    ):
        await ChangelogRestore(Aged(NOW), {}, lambda: None).read([3], begin(), facts(), [], claim_nothing)  # type: ignore[arg-type]
