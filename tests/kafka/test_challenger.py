"""A challenger scores sessions of workers on Apache Kafka that are killed: each once, and the champion notices nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.kafka.test_config_log import emit, read, scores, until_scored, version_of
from tests.support.metrics import samples
from tests.support.workers import Fleet, Worker

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.shadow.challenger_name import create_topic, require_usable_name
from traceweir.streams.worker.config_topic import push, read_topic
from traceweir.streams.worker.kafka.topic_admin import create_named

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CHAMPION: dict[str, Any] = {"criteria": {"latency": {}}}
CHALLENGER: dict[str, Any] = {"criteria": {"tool_call_accuracy": {"expected_tool": "find", "threshold": 0.5}}}
BOTH = CHAMPION | {"challenger": {"name": "v2", "config": CHALLENGER}}
DEADLINE_S = 90.0


@pytest.fixture
def settings(kafka: str, prefix: str, tmp_path: Path) -> Settings:
    """Returns the settings of the fleet's prefix; the fleet creates the topics."""
    (tmp_path / "config.json").write_text(json.dumps(CHAMPION))
    return Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)


def prepare(settings: Settings) -> None:
    challenger = read_plan(BOTH).challenger
    assert challenger is not None
    require_usable_name(settings, asyncio.run(read_topic(settings)), "*", challenger)
    create_topic(settings, challenger.name)


def until_challenged(settings: Settings, names: set[str]) -> list[Any]:
    topic, deadline = settings.topics.shadow_results("v2"), time.monotonic() + DEADLINE_S
    while True:
        found = [json.loads(record.value) for record in asyncio.run(read(settings, topic))]
        if not (missing := names - {score["session_id"] for score in found}):
            return found
        assert time.monotonic() < deadline, f"not challenged: {sorted(missing)[:5]} and {len(missing)} in all"
        time.sleep(0.2)


def test_under_kills_each_session_is_challenged_once_until_the_challenger_is_promoted(
    fleet: Fleet, settings: Settings
) -> None:
    rounds = {name: [f"{name}-{number}" for number in range(60)] for name in ("plain", "both", "killed", "promoted")}
    workers = [fleet.start("a"), fleet.start("b")]
    for each in workers:
        each.until_ready()
    emit(settings, rounds["plain"])
    until_scored(settings, set(rounds["plain"]))
    prepare(settings)
    asyncio.run(push(settings, version_of(BOTH)))
    for each in workers:
        each.wait_for_log("version 1 of *")
    emit(settings, rounds["both"])
    until_challenged(settings, set(rounds["both"]))

    emit(settings, rounds["killed"])
    until_scored(settings, {rounds["killed"][0]})
    workers[0].kill()
    restarted = fleet.start("a")
    restarted.until_ready()
    until_challenged(settings, set(rounds["both"]) | set(rounds["killed"]))

    asyncio.run(push(settings, version_of(CHALLENGER)))
    for each in (workers[1], restarted):
        each.wait_for_log("version 2 of *")
    emit(settings, rounds["promoted"])
    found = until_scored(settings, {name for names in rounds.values() for name in names})

    challenged = until_challenged(settings, set())
    assert {score["session_id"] for score in challenged} == {*rounds["both"], *rounds["killed"]}
    assert max(Counter((score["result_id"], score["revision"]) for score in challenged).values()) == 1
    assert max(Counter((score["result_id"], score["revision"]) for score in found).values()) == 1
    digests = {
        name: {s["config_digest"] for s in found if s["session_id"] in set(names)} for name, names in rounds.items()
    }
    champion, challenger = read_plan(CHAMPION).digest, read_plan(CHALLENGER).digest
    assert digests == {"plain": {champion}, "both": {champion}, "killed": {champion}, "promoted": {challenger}}
    assert {score["config_digest"] for score in challenged} == {challenger}
    assert asyncio.run(read(settings, settings.topics.dead_letters)) == []


def test_without_its_topic_a_challenger_waits_and_the_champion_goes_on(fleet: Fleet, settings: Settings) -> None:
    worker = fleet.start("a")
    worker.until_ready()
    asyncio.run(push(settings, version_of(BOTH)))
    worker.wait_for_log("no score of a challenger is written, because topic")
    emit(settings, ["first"])
    until_scored(settings, {"first"})
    status, ready = worker.ask("/readyz")
    assert (status, len(ready["challenger_problems"])) == (200, 1)
    assert worker.ask("/healthz")[0] == 200
    assert gauges(worker) == (1, 1)

    topic = settings.topics.shadow_results("v2")
    create_named(settings, {topic: "delete"}, {})
    assert {score["session_id"] for score in until_challenged(settings, {"first"})} == {"first"}
    assert gauges(worker) == (0, 0)
    assert "challenger_problems" not in worker.ask("/readyz")[1]
    assert {score["session_id"] for score in scores(settings)} == {"first"}


def gauges(worker: Worker) -> tuple[float, float]:
    """Returns how many challengers cannot be written, and how many sessions wait for one."""
    found = samples(worker.get("/metrics")[1])
    return found["challengers_unusable",], found["challenger_waiting",]
