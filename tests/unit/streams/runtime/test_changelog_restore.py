"""The catch-up of a table, and what it does not wait for."""

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
        """It is."""

    def reached(self, partition: int) -> int:
        return -1

    def source(self, partition: int) -> str:
        return "id"


class Connection:
    """One that is over when it is cut, and not before, as by TLS with a fetch under way."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self._writer = SimpleNamespace(transport=SimpleNamespace(abort=self.over.set))

    def close(self) -> None:
        """It would say goodbye."""


class Client:
    def __init__(self) -> None:
        self._conns = {number: Connection() for number in range(3)}

    async def close(self) -> None:
        for connection in self._conns.values():
            await connection.over.wait()


class SlowConsumer:
    """Reads empty topics, and stops when its connections are over."""

    def __init__(self, **options: object) -> None:
        self._client, self._fetcher = Client(), None

    async def start(self) -> None:
        """At once."""

    async def stop(self) -> None:
        await self._client.close()

    def assign(self, places: Collection[TopicPartition]) -> None:
        """All of them."""

    def pause(self, *places: TopicPartition) -> None:
        """All of them."""

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Nothing is there."""

    async def position(self, place: TopicPartition) -> int:
        return 0

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    beginning_offsets = end_offsets


async def test_it_does_not_wait_for_a_connection_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_restore, "AIOKafkaConsumer", SlowConsumer)
    table: Any = EmptyTable()

    async def changelog_id() -> str:
        return "id"

    found = await ChangelogRestore(table, {}, lambda: None, lambda: False).read([3], changelog_id(), ["a"])

    assert found == {TopicPartition("a", 3): 0}
