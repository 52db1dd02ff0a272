"""While a minute of many streams is closed, the partitions can move to another process: the rest of the minute is then its."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from tests.support.alert_story import RULE, score
from tests.support.stores import FakeRecord

from traceweir.schemas.alert import Alert
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts import watcher as watcher_module
from traceweir.streams.tools.alerts.alert_watch import AlertCut, AlertWatch
from traceweir.streams.tools.alerts.open_minutes import QUIET_S
from traceweir.streams.tools.alerts.watcher import Watcher
from traceweir.streams.tools.alerts.write_pace import write_after_s

LIMIT_S = 30.0
APPS = 6
PLACE = TopicPartition(Settings().topics.results, 0)
SCORES = [score(number, 0, True, app_name=f"app-{number}") for number in range(APPS)]


class Group:
    """A group of one process, whose partition has a minute of scores; it stands for all that the watcher asks Kafka."""

    position = 0
    listener: ConsumerRebalanceListener
    watcher: Watcher

    def __init__(self, *, leaves: bool) -> None:
        self.leaves = leaves
        self.now_s = 0.0
        self.reads = 0
        self.written: list[AlertCut] = []
        self.watches: list[AlertWatch] = []
        self.stop_now = asyncio.Event()

    def watch(self) -> AlertWatch:
        """Returns a watch of one rule, and keeps it."""
        watch = AlertWatch()
        watch.put_rule(RULE.id, RULE)
        self.watches.append(watch)
        return watch

    # The consumer.
    def subscribe(self, topics: Sequence[str], listener: ConsumerRebalanceListener) -> None:
        self.listener = listener

    async def start(self) -> None:
        await self.listener.on_partitions_assigned({PLACE})

    async def stop(self) -> None: ...

    def assignment(self) -> set[TopicPartition]:
        return {PLACE}

    def seek(self, place: TopicPartition, offset: int) -> None: ...

    def pause(self, place: TopicPartition) -> None: ...

    def resume(self, place: TopicPartition) -> None: ...

    async def beginning_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {PLACE: 0}

    async def end_offsets(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {PLACE: APPS}

    def highwater(self, place: TopicPartition) -> int:
        return APPS

    async def getmany(self, **limits: int) -> Mapping[TopicPartition, Sequence[FakeRecord]]:
        """Returns the scores; at the second call the minute is over, and at the third everything ends."""
        self.reads += 1
        if self.reads == 1:
            return {PLACE: [FakeRecord(each.wire(), number) for number, each in enumerate(SCORES)]}
        self.now_s += QUIET_S + write_after_s(APPS)
        if self.reads == 2 and self.leaves:
            self.leaving = asyncio.create_task(self.leave())
        if self.reads > 2:
            self.stop_now.set()
        return {}

    async def leave(self) -> None:
        """Moves the partition, and then ends everything."""
        await self.listener.on_partitions_revoked({PLACE})
        self.stop_now.set()

    # The topic of the state, and the rules.
    async def open(self, begin: int = 0) -> dict[bytes, bytes]:
        return {}

    async def read_raised(self) -> list[Alert]:
        return []

    async def write(self, consumer: object, cut: AlertCut, offsets: Mapping[TopicPartition, int]) -> None:
        self.written.append(cut)

    async def close(self) -> None: ...

    def apply(self, watch: AlertWatch) -> bool:
        return False


async def played(monkeypatch: pytest.MonkeyPatch, *, leaves: bool) -> Group:
    """Returns the group after a minute was closed, in parts of one stream."""
    monkeypatch.setattr("traceweir.streams.tools.alerts.alert_watch.STREAMS_A_PART", 1)

    @asynccontextmanager
    async def nothing(*_: object, **__: object) -> AsyncIterator[None]:
        yield

    group = Group(leaves=leaves)
    parts: dict[str, Any] = {
        "StateTopic": lambda settings: group,
        "RuleLog": lambda settings: group,
        "AlertWatch": group.watch,
        "group_consumer": lambda *_, **__: group,
        "failing_with_client": nothing,
        "asking_bootstrap_servers": nothing,
        "check_partitions": lambda *_: [],
        "topic_ids": lambda *_: {},
        "read_as_parsed": lambda _: None,
        "read_position": lambda *_: None,
        "member_of": lambda _: SimpleNamespace(generation=1),
    }
    for name, part in parts.items():
        monkeypatch.setattr(watcher_module, name, part)
    group.watcher = Watcher(Settings(), now=lambda: group.now_s)
    await asyncio.wait_for(group.watcher.run(group.stop_now), LIMIT_S)
    return group


async def test_a_watch_that_is_lost_between_two_parts_writes_nothing_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    group = await played(monkeypatch, leaves=True)
    (watch,) = group.watches
    assert watch.changed_streams == 0
    assert group.written == []
    assert group.watcher.counts["read"] == APPS


async def test_a_watch_that_is_kept_closes_the_whole_minute_and_writes_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    group = await played(monkeypatch, leaves=False)
    rows = [key for cut in group.written for key, _ in cut.rows if key.startswith(b"stream/")]
    assert len(rows) == len({*rows}) == APPS
    assert group.watcher.counts["read"] == APPS
