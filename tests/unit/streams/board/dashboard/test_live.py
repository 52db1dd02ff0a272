"""Browsers that listen are told of changes, and hold nothing up when the dashboard ends."""

from __future__ import annotations

import asyncio

import pytest

from traceweir.streams.board.dashboard import live as module
from traceweir.streams.board.dashboard.live import LOOKS_S, Live


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(module, "EVERY_S", 0)
    return Live()


async def test_a_page_is_told_at_once_and_after_each_change(live: Live) -> None:
    changes = live.changes()
    await anext(changes)
    live.changed()
    await asyncio.wait_for(anext(changes), 10)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(changes), 0.01)


async def test_all_streams_end_with_the_dashboard(live: Live) -> None:
    async def listen() -> int:
        return len([None async for _ in live.changes()])

    listeners = [asyncio.create_task(listen()) for _ in range(3)]
    await asyncio.sleep(0)
    live.end()

    assert await asyncio.wait_for(asyncio.gather(*listeners), 10) == [1, 1, 1]


async def test_no_more_streams_are_open_than_the_limit(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STREAMS", 1)
    changes = live.changes()
    await anext(changes)

    assert live.full
    await changes.aclose()
    assert not live.full


async def test_somebody_looks_who_listens_or_has_just_asked() -> None:
    now_s = 1_000.0
    live = Live(lambda: now_s)
    assert live.is_watched

    now_s += LOOKS_S
    assert not live.is_watched

    live.note_request()
    assert live.is_watched

    now_s += LOOKS_S
    changes = live.changes()
    await anext(changes)
    assert live.is_watched

    await changes.aclose()
    assert not live.is_watched
