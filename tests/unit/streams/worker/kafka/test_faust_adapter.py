"""What the worker changes in Faust: the log of a rebalance, and fetches while no partition has room."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import faust
import pytest
from faust.types import TP

from traceweir.streams.worker.kafka import faust_adapter


class _Intake:
    inputs: dict[str, object] = {}

    def __init__(self) -> None:
        self.waits = 0

    def full(self, tp: TP) -> bool:
        return True

    def waited(self) -> None:
        self.waits += 1


async def test_faust_asks_for_no_committed_offset_because_the_intake_names_every_position() -> None:
    app = faust.App("seeks")
    faust_adapter.install(app, _Intake(), "changelog")  # type: ignore[arg-type]

    class Consumer(app.transport.Consumer):  # type: ignore[misc, name-defined]
        def _new_consumer_thread(self) -> SimpleNamespace:
            # Has nothing that asks a broker.
            return SimpleNamespace(beacon=None)

    await Consumer(app.transport, print, print, print).perform_seek()


async def test_nothing_is_fetched_while_no_partition_has_room_and_the_intake_is_told() -> None:
    app, intake, full = faust.App("full"), _Intake(), TP("sessions", 0)
    faust_adapter.install(app, intake, "changelog")  # type: ignore[arg-type]

    class Consumer(app.transport.Consumer):  # type: ignore[misc, name-defined]
        def _new_consumer_thread(self) -> SimpleNamespace:
            return SimpleNamespace(beacon=None)

        def _get_active_partitions(self) -> set[TP]:
            return {full}

    consumer = Consumer(app.transport, print, print, print)
    consumer.resume_flow()
    assert [record async for record in consumer.getmany(timeout=1.0)] == []
    assert intake.waits == 1


def test_a_worker_that_reads_for_long_is_not_said_to_have_committed_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, tp = faust.App("commits"), TP("sessions", 0)
    faust_adapter.install(app, _Intake(), "changelog")  # type: ignore[arg-type]
    monkeypatch.setattr(app.topics, "acks_enabled_for", lambda topic: True)
    consumer = app.transport.Consumer(app.transport, print, print, print)
    thread = consumer._thread  # noqa: SLF001  # Faust has no public name for it
    behind = SimpleNamespace(highwater=9, position=8, timestamp=1.0)
    assignment = SimpleNamespace(active=True, state_value=lambda _: behind)
    subscriptions = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
    fetcher = SimpleNamespace(_subscriptions=subscriptions)
    thread._consumer = SimpleNamespace(_fetcher=fetcher)  # noqa: SLF001  # the state that Faust reads
    thread.time_started = 0.0
    thread.tp_fetch_request_timeout_secs = float("inf")
    now = 2 * thread.tp_commit_timeout_secs
    app.monitor.stream_inbound_time[tp] = now

    with caplog.at_level(logging.ERROR):
        consumer.verify_event_path(now, tp)
    thread.thread_loop.close()

    assert caplog.messages == []
