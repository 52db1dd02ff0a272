"""Tests that the restore of a table from its changelog does not wait for connections to close."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from traceweir.streams.runtime import changelog_restore
from traceweir.streams.runtime.changelog_restore import ChangelogRestore


class EmptyTable:
    changelog = "changelog"

    def open(self, partition: int) -> None:
        """Does nothing: the table is always open."""

    def reached(self, partition: int) -> int:
        return -1

    def source(self, partition: int) -> str:
        return "id"


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

    async def close(self) -> None:
        for connection in self._conns.values():
            await connection.ended.wait()


class SlowConsumer:
    """A consumer that reads empty topics, and stops only after its connections have ended."""

    def __init__(self, **options: object) -> None:
        self._client, self._fetcher = Client(), None

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

    async def changelog_id() -> str:
        return "id"

    found = await ChangelogRestore(table, {}, lambda: None, lambda: False).read([3], changelog_id(), ["a"])

    assert found == {TopicPartition("a", 3): 0}
