"""A worker whose clock is wrong takes nothing over, so that the records are scored by the next worker."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.workers import START_WITHIN_S, Fleet

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.tools.doctor import clock as doctor_clock
from traceweir.streams.tools.doctor.clock import check_clock

pytestmark = pytest.mark.kafka

SESSIONS = 20
DEADLINE_S = 90


@pytest.mark.parametrize(("ahead_s", "words"), [(7_200, "ahead of the cluster's"), (-7_200, "behind the cluster's")])
def test_a_worker_with_a_wrong_clock_ends_and_makes_no_record_late(
    ahead_s: int, words: str, kafka: str, prefix: str, fleet: Fleet
) -> None:
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0})
    for number in range(SESSIONS):
        session = f"s{number}"
        for kind in ("model.called", "session.ended"):
            producer.produce(f"{prefix}invocations", json.dumps(event(kind, session)), session)
    producer.flush(30)

    wrong = fleet.start("wrong", ahead_s=ahead_s)
    wrong.wait_for_end(START_WITHIN_S, code=1)
    assert words in wrong.log.read_text()

    right = fleet.start("right")
    deadline = time.monotonic() + DEADLINE_S
    with Committed(kafka, prefix, application_id(prefix, STAGES)) as committed:
        while len({row.document["session_id"] for row in committed.rows["sessions"]}) < SESSIONS:
            assert not right.ended, right.log.read_text()
            assert time.monotonic() < deadline, right.log.read_text()
            committed.read(0.1)
        assert committed.rows["dead-letters"] == []
    assert b"traceweir_clock_ahead_seconds" in right.get("/metrics")[1]


def test_doctor_knows_the_difference_only_while_workers_commit(
    kafka: str, prefix: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)
    with monkeypatch.context() as patched:
        patched.setattr(doctor_clock, "WATCHED_S", 0.1)
        found = asyncio.run(check_clock(settings, STAGES, seconds_now))
    assert (found.state, found.check) == ("not checked", "broker clock")

    async def watched() -> tuple[str, str]:
        check = asyncio.create_task(check_clock(settings, STAGES, seconds_now))
        worker = fleet.start("worker")
        await asyncio.to_thread(worker.wait_for_log, "took over partitions")
        found = await check
        return found.state, found.text

    monkeypatch.setattr(doctor_clock, "WATCHED_S", START_WITHIN_S)
    state, text = asyncio.run(watched())
    assert state == "ok", text

    monkeypatch.setattr(doctor_clock, "WATCHED_S", 0.1)
    found = asyncio.run(check_clock(settings, STAGES, lambda: seconds_now() - 7_200))
    assert found.state == "failure"
    assert "behind the broker" in found.text
