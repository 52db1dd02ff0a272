"""The consumer groups of workers say which workers run and how far they are behind."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.workers import check_workers, look_at_workers
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.group_states import GroupReader

pytestmark = [pytest.mark.kafka]


def test_a_worker_is_counted_while_it_runs_and_missed_afterwards(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    reader = GroupReader(settings)

    def found() -> list[Finding]:
        while True:
            with suppress(KafkaUnreachableError):  # the first question for a group creates the topic of the offsets
                return list(check_workers(look_at_workers(reader, settings), settings))

    (first,) = found()
    assert first.text.startswith("no consumer group of a worker is seen: start `traceweir worker`")

    names = [f"s-{number}" for number in range(20)]
    worker = fleet.start("w")
    worker.until_ready()
    send(kafka, prefix, names)
    assert closed(kafka, prefix, names) == sorted(names)
    done = Finding("workers", "ok", f"{prefix}assemble-score-gate: 1 worker, 0 records behind (127.0.0.1 0)")
    while done not in (findings := found()):  # the last sessions are being scored
        assert not worker.ended, findings
    assert Finding("removed records", "ok", "no unread record was removed from an input") in findings

    worker.terminate(30)
    missing = (
        "no worker runs the stages assemble, score, gate: start `traceweir worker`; or grant Describe on the groups"
    )
    (red,) = [each for each in found() if each.state == "failure"]
    assert red.text.startswith(missing)
    assert red.text.endswith("; 0 records behind")
