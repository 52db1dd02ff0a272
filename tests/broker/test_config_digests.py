"""A running worker keeps the config of each digest of its scores on the topic `configs`, and writes it once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.workers import Fleet, Worker

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("config digests")]

DEADLINE_S = 60


def test_a_worker_writes_its_config_once_and_that_of_a_push_with_another_digest(tmp_path: Path) -> None:
    config: JsonObject = {"criteria": {"response_match_score": 0.5}}
    pushed: JsonObject = {"criteria": {"response_match_score": 0.8}}
    own, foreign = f"digest:{read_plan(json.dumps(config)).digest}", f"digest:{read_plan(json.dumps(pushed)).digest}"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with (
        EmbeddedBroker() as broker,
        Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, tmp_path / "config.json") as fleet,
        Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed,
    ):

        def keys() -> list[str]:
            return [(row.key or b"").decode() for row in committed.rows["configs"]]

        first = fleet.start("first")
        until(lambda: own in keys(), committed, first)
        first.terminate(DEADLINE_S)

        second = fleet.start("second")
        record = PushedConfig(
            envelope=1, selector="*", version=1, digest="of another version", config=pushed, pushed_at=utc_now()
        )
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        producer.produce("traceweir.configs", record.wire(), b"*", partition=0)
        assert not producer.flush(10)
        until(lambda: foreign in keys(), committed, second)
        assert keys() == [own, "*", foreign]


def until(holds: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if worker.ended or time.monotonic() > deadline:
            pytest.fail(f"the condition did not hold in time; the worker says\n{worker.log.read_text()}")
        committed.read(0.1)
