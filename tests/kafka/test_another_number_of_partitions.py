"""The steps of "Another number of partitions" in docs/operations.md: each session is scored once, and nothing stays behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.metrics import samples
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet, Worker

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import check_topics, create_topics

pytestmark = pytest.mark.kafka

WITHIN_S = 90.0


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def is_drained(worker: Worker) -> bool:
    status, page = worker.get("/metrics")
    found = samples(page)
    lags = [value for name, value in found.items() if name[0] == "consumer_lag"]
    return status == 200 and len(lags) > 1 and not any(lags) and found["sessions_open",] == 0


def test_a_second_deployment_with_another_number_takes_over_while_the_first_is_drained(
    prefix: str, settings: Settings, fleet: Fleet, tmp_path: Path
) -> None:
    kafka, following = settings.kafka_bootstrap_servers, f"next-{prefix}"
    former = fleet.start("former")
    before = [f"before-{number}" for number in range(12)]
    send(kafka, prefix, before)
    assert closed(kafka, prefix, before) == sorted(before)

    new = settings.model_copy(update={"topic_prefix": following, "partitions": 6})
    assert create_topics(new).wrong == ()
    variables = {"TRACEWEIR_TOPIC_PREFIX": following, "TRACEWEIR_PARTITIONS": "6"}
    successor = fleet.start("successor", variables=variables)
    assert successor.until_ready()["partitions"] == [0, 1, 2, 3, 4, 5]
    last, first = ([f"{part}-{number}" for number in range(12)] for part in ("last", "first"))
    send(kafka, prefix, last)
    send(kafka, following, first)
    assert closed(kafka, prefix, last) == sorted(before + last)
    wait_until(lambda: is_drained(former))
    former.terminate(30)

    after = [f"after-{number}" for number in range(12)]
    send(kafka, following, after)
    assert closed(kafka, following, after) == sorted(first + after)
    assert closed(kafka, prefix, last) == sorted(before + last)
    assert check_topics(new) == []
    assert not successor.ended
