"""What waits is read from the topic row by row, and a replay is read only as fast as its scores are taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from tests.support.results import make_score

from traceweir.schemas.dead_letter import REPLAY
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import export_waiting_key
from traceweir.streams.tools.export.waiting_topic import MAX_REPLAYED, WaitingTopic
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

MANY = 3 * MAX_REPLAYED


def record(offset: int, of: int, value: bytes | None = b"") -> Any:
    """Returns a record about the score at the offset `of`; `b""` stands for the score."""
    wire = make_score(f"s{of}").wire() if value == b"" else value
    key = export_waiting_key("hook", of, 1_000)
    headers = [(REPLAY, b"0@0")]
    return SimpleNamespace(partition=0, offset=offset, key=key, value=wire, timestamp=5_000, headers=headers)


class Topic:
    """Stands for the reader of a topic; counts the records that were read after its end."""

    def __init__(self, *, before: list[Any], after: Iterable[Any] = ()) -> None:
        self.before, self.after = before, after
        self.followed = 0

    async def __aenter__(self) -> Topic:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def records(self, begins: Mapping[int, int] | None = None) -> AsyncIterator[Any]:
        for each in self.before:
            if begins is None or each.offset >= begins.get(each.partition, 1_000_000):
                yield each

    async def following(self, trouble: Callable[[str], None]) -> AsyncIterator[Any]:
        for each in self.after:
            self.followed += 1
            yield each
        await asyncio.Event().wait()


def opened(topic: Topic) -> WaitingTopic:
    return WaitingTopic(Settings(), "hook", "session_id", reader=lambda *_, **__: cast("BoundedReader", topic))


async def test_the_rows_of_the_group_are_read_in_the_order_of_the_topic() -> None:
    before = [record(0, 7), record(1, 8), record(2, 9, b"no score"), record(3, 8, None), record(4, 7)]
    waiting = opened(Topic(before=before))
    rows = [(each.row_at, each.place[1], each.score and each.score.key) async for each in waiting.open({0})]
    assert rows == [(0, 7, "s7"), (1, 8, "s8"), (3, 8, None), (4, 7, "s7")]
    await waiting.close()


async def test_a_part_of_the_topic_is_read_beside_the_replays_that_are_followed() -> None:
    topic = Topic(before=[record(0, 0), record(1, 1)], after=[record(2, 2)])
    waiting = opened(topic)
    assert len([each async for each in waiting.open({0})]) == 2
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [each.row_at async for each in waiting.read(0, 1)] == [1]
    replayed = waiting.next_replayed()
    assert replayed is not None
    assert replayed.row_at == 2
    await waiting.close()


async def test_a_replay_is_read_on_only_when_its_scores_are_taken() -> None:
    topic = Topic(before=[], after=(record(number, number) for number in range(MANY)))
    waiting = opened(topic)
    assert [each async for each in waiting.open({0})] == []
    taken: list[int] = []
    for _ in range(MANY):
        for _ in range(3):
            await asyncio.sleep(0)
        assert topic.followed - len(taken) <= MAX_REPLAYED + 1
        row = waiting.next_replayed()
        assert row is not None
        taken.append(row.row_at)
    assert taken == list(range(MANY))
    assert waiting.next_replayed() is None
    await waiting.close()
