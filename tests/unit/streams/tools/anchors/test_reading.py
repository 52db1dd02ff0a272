"""Tests that anchors are read again with what has come since alone, and say what a reading of everything says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support.anchors import CRITERION, anchor, verdict
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.anchors import reading
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.topics import AnchorsError

SETTINGS = Settings()
LOG: dict[str, list[FakeRecord]] = defaultdict(list)
"""The records of each topic, in its only partition."""
READ: list[int] = []
"""The offsets that were read."""


class FakeReader:
    """Reads the only partition of a topic in memory."""

    def __init__(self, settings: Settings, topic: str, error: Any) -> None:
        self.topic = topic
        self.begins = {0: 0}
        self.ends = {0: len(LOG[topic])}

    async def __aenter__(self) -> FakeReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def records(self, begins: Mapping[int, int]) -> AsyncIterator[FakeRecord]:
        for record in LOG[self.topic][begins[0] :]:
            READ.append(record.offset)
            yield record


@pytest.fixture(autouse=True)
def topics(monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.clear()
    READ.clear()
    monkeypatch.setattr(reading, "BoundedReader", FakeReader)


def send(topic: str, value: bytes | None, key: bytes = b"k", written_at: datetime = NOW) -> None:
    LOG[topic].append(FakeRecord(value, len(LOG[topic]), key, timestamp=int(written_at.timestamp() * 1000)))


def judged(minutes: int, name: str = "a", *, written_at: datetime | None = None) -> None:
    """Sends a verdict that was due so many minutes after NOW, and written then if nothing else is given."""
    at = NOW + timedelta(minutes=minutes)
    value = verdict(name, due_at=at, judged_at=at).wire()
    send(SETTINGS.topics.anchor_verdicts, value, written_at=at if written_at is None else written_at)


async def test_a_second_look_reads_what_has_come_and_says_what_a_first_one_would() -> None:
    kept, removed = anchor("a"), anchor("b")
    for each in (kept, removed):
        send(SETTINGS.topics.anchors, each.wire(), each.anchor_id.encode())
    judged(0)
    send(SETTINGS.topics.anchor_verdicts, b"{")
    reader = AnchorReader(SETTINGS)
    now = NOW + timedelta(hours=2)
    _, unreadable = await reader.look(now)
    assert unreadable == {"anchor": [], "verdict": ["0/1"]}

    READ.clear()
    # Both are of an hour that had ended at the first look; another process has taken the turn of the first one too.
    twice = verdict("a", judged_at=NOW + timedelta(seconds=1))
    send(SETTINGS.topics.anchor_verdicts, twice.wire())
    judged(30, "b")
    send(SETTINGS.topics.anchors, None, removed.anchor_id.encode())
    again, _ = await reader.look(now)
    assert READ == [2, 2, 3]
    anew, _ = await AnchorReader(SETTINGS).look(now)
    assert [each.known for each in again] == [each.known for each in anew]
    assert again[0].known.verdicts == 2
    assert [each.anchor_id for each in again[0].anchors] == [kept.anchor_id]


async def test_a_verdict_that_was_due_before_others_lets_everything_be_read_again() -> None:
    judged(60)
    reader = AnchorReader(SETTINGS)
    await reader.look(NOW + timedelta(hours=1))
    judged(0)
    await reader.look(NOW + timedelta(hours=1))
    # The first look, the new record, and both once more.
    assert READ == [0, 1, 0, 1]


async def test_after_12_hours_and_after_removed_records_everything_is_read_again() -> None:
    judged(0)
    reader = AnchorReader(SETTINGS)
    await reader.look(NOW)
    await reader.look(NOW + timedelta(hours=12))
    assert READ == [0, 0]
    LOG[SETTINGS.topics.anchor_verdicts].clear()
    found, _ = await reader.look(NOW + timedelta(hours=13))
    assert found == []


async def test_too_many_records_are_not_read_and_the_command_is_named() -> None:
    judged(0)
    judged(1)
    with pytest.raises(AnchorsError, match=r"has 2 records to read, and at most 1 .* `traceweir anchors list`"):
        await AnchorReader(SETTINGS, most=1).look(NOW)
    assert READ == []


async def test_verdicts_that_are_due_much_later_than_a_clock_are_left_out_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`anchors run` would wait for their time, and the watch of the judge for its hour."""
    judged(0)
    judged(60 * 24 * 365, written_at=NOW)
    judged(6, "c", written_at=NOW)
    judged(5, "b")
    now = NOW + timedelta(minutes=1)
    # A broker has written the times of the records. So the third one stays left out when its time has come.
    for at in (now, NOW + timedelta(hours=1)):
        caplog.clear()
        found, unreadable = await AnchorReader(SETTINGS).look(at)
        assert unreadable == {"anchor": [], "verdict": ["0/1", "0/2"]}
        assert found[0].known.verdicts == 2
        (said,) = caplog.messages
        assert said.startswith("2 verdicts of traceweir.anchor-verdicts left out, the first at 0/1: ")
        assert f" due, {NOW.year + 1}-" in said
        assert f" written at {NOW:%Y-%m-%dT%H:%M:%S}Z by the clock of its writer" in said
        assert f" read at {at:%Y-%m-%dT%H:%M:%S}+00:00 by that of this machine" in said
    watch = await AnchorReader(SETTINGS).watch(now)
    assert max(each.last_at for each in watch.criteria.values() if each.last_at) == NOW + timedelta(minutes=5)


async def test_the_watch_alone_reads_new_verdicts_and_no_anchor() -> None:
    """`traceweir alerts run` has no right to read anchors."""
    send(SETTINGS.topics.anchors, anchor("a").wire(), b"a")
    judged(0)
    reader = AnchorReader(SETTINGS)
    assert (await reader.watch(NOW)).criteria[CRITERION].verdicts == 1
    assert READ == [0]
    judged(1, "b")
    assert (await reader.watch(NOW)).criteria[CRITERION].verdicts == 2
    assert READ == [0, 1]
