"""Configs are pushed to workers on Apache Kafka that are killed: each session is scored once, by one config."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.metrics import samples
from tests.support.workers import Fleet

from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.configs.selectors import selector
from traceweir.streams.tools.testing.builders import instant
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, push, read_topic
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

FILE: dict[str, Any] = {"criteria": {"latency": {}}}
ONE: dict[str, Any] = {"criteria": {"tool_call_accuracy": {"expected_tool": "find", "threshold": 0.5}}}
TWO: dict[str, Any] = {"criteria": {"latency": {}, "tool_call_accuracy": {"expected_tool": "find", "threshold": 0.9}}}
DEADLINE_S = 90.0


@pytest.fixture
def settings(kafka: str, prefix: str) -> Settings:
    """Returns the settings of the fleet's prefix; the fleet creates the topics."""
    return Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix)


def version_of(config: dict[str, Any]) -> Callable[[TopicState], PushedConfig]:
    def decide(state: TopicState) -> PushedConfig:
        digest, number = read_plan(config).digest, state.next_version(selector())
        return PushedConfig(
            envelope=ENVELOPE,
            selector=selector(),
            version=number,
            digest=digest,
            config=config,
            pushed_at=utc_now(),
        )

    return decide


def emit(settings: Settings, names: Sequence[str]) -> None:
    """Sends a session of two events for each name."""
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for name in names:
        for kind in ("tool.called", "session.ended"):
            record = {
                "type": kind,
                "session_id": name,
                "invocation_id": "i",
                "occurred_at": instant(0),
                **({"name": "find"} if kind == "tool.called" else {}),
            }
            producer.produce(settings.topics.invocations, json.dumps(record).encode(), name.encode())
    producer.flush()


async def read(settings: Settings, topic: str) -> list[Any]:
    async with BoundedReader(settings, topic, RuntimeError) as reader:
        return [record async for record in reader.records()]


def scores(settings: Settings) -> list[Any]:
    return [json.loads(record.value) for record in asyncio.run(read(settings, settings.topics.results))]


def until_scored(settings: Settings, names: set[str]) -> list[Any]:
    deadline = time.monotonic() + DEADLINE_S
    found = scores(settings)
    while missing := names - {score["session_id"] for score in found}:
        assert time.monotonic() < deadline, f"not scored: {sorted(missing)[:5]} and {len(missing)} in all"
        time.sleep(0.2)
        found = scores(settings)
    return found


def test_pushes_and_kills_lose_double_and_mix_nothing(fleet: Fleet, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FILE))
    rounds = {name: [f"{name}-{number}" for number in range(60)] for name in ("file", "one", "killed", "two")}
    worker, other = fleet.start("a"), fleet.start("b")
    for each in (worker, other):
        each.until_ready()
    emit(settings, rounds["file"])
    until_scored(settings, set(rounds["file"]))

    asyncio.run(push(settings, version_of(ONE)))
    for each in (worker, other):
        each.wait_for_log("version 1 of *")
    emit(settings, rounds["one"])
    until_scored(settings, set(rounds["one"]))

    emit(settings, rounds["killed"])
    asyncio.run(push(settings, version_of(TWO)))
    for each in (worker, other):
        each.wait_for_log("version 2 of *")
    worker.kill()  # its partitions move to the other worker, or wait for its return
    emit(settings, rounds["two"])
    fleet.start("a").until_ready()
    everything = {name for names in rounds.values() for name in names}
    found = until_scored(settings, everything)

    digests: dict[str, set[str]] = defaultdict(set)
    for score in found:
        digests[score["session_id"]].add(score["config_digest"])
    file, one, two = (read_plan(config).digest for config in (FILE, ONE, TWO))
    assert {name: each for name, each in digests.items() if len(each) != 1} == {}
    assert all(digests[name] == {file} for name in rounds["file"])
    assert all(digests[name] == {one} for name in rounds["one"])
    assert all(digests[name] <= {one, two} for name in rounds["killed"])
    assert all(digests[name] == {two} for name in rounds["two"])
    assert max(Counter((score["result_id"], score["revision"]) for score in found).values()) == 1
    assert asyncio.run(read(settings, settings.topics.dead_letters)) == []


def test_an_invalid_config_of_another_program_is_never_in_effect_and_is_reported(
    fleet: Fleet, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FILE))
    worker = fleet.start("a")
    worker.until_ready()
    emit(settings, ["first"])
    until_scored(settings, {"first"})
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    producer.produce(settings.topics.configs, b'{"criteria": {}}', b"*", partition=0)
    producer.flush()

    worker.wait_for_log("the former config stays in effect")
    emit(settings, ["second"])
    found = until_scored(settings, {"second"})

    assert {score["config_digest"] for score in found} == {read_plan(FILE).digest}
    status, ready = worker.ask("/readyz")
    assert (status, len(ready["config_problems"])) == (200, 1)
    assert worker.ask("/healthz")[0] == 200
    assert samples(worker.get("/metrics")[1])["configs_unusable",] == 1
    (letter,) = asyncio.run(read(settings, settings.topics.dead_letters))
    assert dict(letter.headers)["traceweir.topic"].decode() == settings.topics.configs


def test_of_two_pushes_at_a_time_one_is_refused_and_versions_are_not_doubled(fleet: Fleet, settings: Settings) -> None:
    async def both() -> list[object]:
        return await asyncio.gather(
            *(push(settings, version_of(config)) for config in (ONE, TWO)), return_exceptions=True
        )

    ended = asyncio.run(both())
    versions = asyncio.run(read_topic(settings)).versions["*"]
    done = [each for each in ended if isinstance(each, PushedConfig)]
    assert len(done) == len(versions)
    assert all(isinstance(each, PushedConfig | ConfigTopicError) for each in ended)
