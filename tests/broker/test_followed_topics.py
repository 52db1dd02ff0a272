"""Following the topics of configs and references: checks of configs run beside the event loop, newest first."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

from traceweir.schemas.reference import Reference
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import config_id
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.followed_topics import FollowedTopics

pytestmark = pytest.mark.broker

FILE = read_plan({})
GOOD: dict[str, Any] = {"criteria": {"latency": {}}}
OTHER: dict[str, Any] = {"criteria": {"response_match_score": 0.3}}
LIMIT_S = 60
"""The limit after which a wait without end fails a test, in seconds; a passing test needs far less."""


class NoReferences:
    """Takes references."""

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Forgets it."""


class Checks:
    """The configs that were checked, and the threads that did it."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self.threads: set[int] = set()

    def __call__(self, document: bytes) -> Plan:
        self.documents.append(json.loads(document))
        self.threads.add(threading.get_ident())
        return usable_plan(document, FILE)


def write(servers: str, *configs: dict[str, Any], key: str = "*") -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("references", b"", partition=0)  # so that the topic exists
    for config in configs:
        value = {"envelope": 1, "selector": "*", "version": 1, "digest": None, "pushed_at": "2026-01-31T12:00:00Z"}
        producer.produce("configs", json.dumps(value | {"config": config}), key, partition=0)
    assert producer.flush(30) == 0


def followed(servers: str, log: ConfigLog) -> FollowedTopics:
    return FollowedTopics(NoReferences(), log, ("references", "configs"), 1, {"bootstrap_servers": [servers]})


async def until_read(log: ConfigLog, position: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        await log.reach(position)


async def test_a_worker_starts_with_the_newest_config_and_checks_the_others_beside(
    embedded_broker: EmbeddedBroker,
) -> None:
    hostile = [{"criteria": {f"metric_of_nobody_{number}": 1, "x" * 50_000: 1}} for number in range(5)]
    write(embedded_broker.bootstrap_servers, *hostile, GOOD)
    checks = Checks()
    log = ConfigLog(checks)
    reader = followed(embedded_broker.bootstrap_servers, log)
    await reader.start()
    try:
        assert log.current == (("*", config_id(GOOD)),)
        assert checks.documents[0] == GOOD
        write(embedded_broker.bootstrap_servers, OTHER)
        await until_read(log, 7)
        assert log.current == (("*", config_id(OTHER)),)
        async with asyncio.timeout(LIMIT_S):
            while log.has_older:
                await asyncio.to_thread(lambda: None)
    finally:
        await reader.stop()
    assert [each.record.offset for each in log.bad_records_from(0, 0)] == list(range(5))
    assert threading.get_ident() not in checks.threads
    assert log.problems == []


async def test_a_worker_whose_newest_config_is_bad_starts_with_the_former_one(embedded_broker: EmbeddedBroker) -> None:
    write(embedded_broker.bootstrap_servers, GOOD, key="version:*:1")
    write(embedded_broker.bootstrap_servers, OTHER, GOOD, {"criteria": {"no": 1}})
    log = ConfigLog(partial(usable_plan, file=FILE))
    reader = followed(embedded_broker.bootstrap_servers, log)
    await reader.start()
    try:
        assert log.current == (("*", config_id(GOOD)),)
        (problem,) = log.problems
        assert "0/3" in problem
    finally:
        await reader.stop()
