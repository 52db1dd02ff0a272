"""Workers of the present version go on beside those of a version with another format of rows, until the last has left."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import chain

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.workers import START_WITHIN_S, Fleet, Worker

from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SESSIONS = 20


def until_shared(workers: Sequence[Worker]) -> None:
    """Waits until these workers have all partitions, each at least one."""
    deadline = time.monotonic() + START_WITHIN_S
    while True:
        states = [worker.ask("/readyz")[1] for worker in workers]
        owned = [state["partitions"] for state in states if state["ready"]]
        if len(owned) == len(workers) and all(owned) and sorted(chain(*owned)) == [0, 1, 2, 3]:
            return
        assert time.monotonic() < deadline, states
        time.sleep(0.1)


def test_old_workers_go_on_beside_new_ones_and_the_new_format_comes_when_the_last_has_left(
    kafka: str, prefix: str, fleet: Fleet
) -> None:
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0})

    with Committed(kafka, prefix, application_id(prefix, STAGES)) as committed:

        def formats_after_sessions(name: str) -> set[int]:
            """Lets the workers join and close sessions; returns the formats of the partitions."""
            sessions = {f"{name}-{number}" for number in range(SESSIONS)}
            for session in sessions:
                for kind in ("model.called", "session.ended"):
                    producer.produce(f"{prefix}invocations", json.dumps(event(kind, session)), session)
            producer.flush(30)
            deadline = time.monotonic() + START_WITHIN_S
            while sessions - {row.document["session_id"] for row in committed.rows["sessions"]}:
                assert time.monotonic() < deadline, [worker.log.read_text() for worker in fleet.started]
                committed.read(0.1)
            return {int(row or 0) for row in committed.last_rows(FORMAT_ROW).values()}

        old = fleet.start("old")
        until_shared([old])
        assert formats_after_sessions("alone") == {FORMAT}

        new = fleet.start("new", next_version=True)
        until_shared([old, new])
        assert formats_after_sessions("both") == {FORMAT}
        assert f"does not write format {FORMAT + 1} yet" in new.log.read_text()

        other = fleet.start("other")  # takes partitions over from both
        until_shared([old, new, other])
        assert formats_after_sessions("three") == {FORMAT}

        other.terminate(START_WITHIN_S)
        old.terminate(START_WITHIN_S)
        until_shared([new])
        assert formats_after_sessions("new") == {FORMAT + 1}
        assert committed.rows["dead-letters"] == []

    too_late = fleet.start("old")
    too_late.wait_for_end(START_WITHIN_S, code=1)
    assert f"was written by a newer Traceweir (format {FORMAT + 1};" in too_late.log.read_text()
