"""Tests that a pause of the whole process is no error of the consumer's thread."""

from __future__ import annotations

import asyncio
import itertools
import logging

import mode.threads
import pytest
from mode.threads import ServiceThread

from traceweir.streams.worker.kafka.steady_thread import SteadyThread

WAKES = 30


class Thread(ServiceThread):  # type: ignore[misc]  # untyped
    """A thread that wakes up without waiting, and tells when it has woken up often enough."""

    def __init__(self) -> None:
        super().__init__()
        self.woken, self.done = 0, asyncio.Event()

    async def sleep(self, n: object) -> None:
        await asyncio.sleep(0)
        if n:
            self.woken += 1
        if self.woken == WAKES:
            self.parent_loop.call_soon_threadsafe(self.done.set)


class OwnThread(SteadyThread, Thread):
    """The same thread with Traceweir's keepalive."""


@pytest.mark.parametrize(("kind", "errors"), [(Thread, True), (OwnThread, False)], ids=["mode", "traceweir"])
async def test_only_modes_own_keepalive_reports_a_pause_of_the_process(
    kind: type[Thread], errors: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        mode.threads, "monotonic", itertools.count(100, 10.0).__next__
    )  # 10 s pass between two wake-ups
    thread = kind()
    with caplog.at_level(logging.ERROR):
        await thread.start()
        await thread.done.wait()
        await thread.stop()
    assert ("Thread keepalive is not responding" in caplog.text) == errors
