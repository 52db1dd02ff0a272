"""The topics of challengers are checked before anything is written to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

import pytest

from traceweir.scorers.evaluation.plan import Challenger, read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka import challenger_topics
from traceweir.streams.worker.kafka.challenger_topics import ChallengerTopics
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

V2 = Challenger("v2", 1.0, None, read_plan({}), {})
TOPIC = "traceweir.results.shadow.v2"


class World:
    """The challengers in effect, and what the cluster says about their topics."""

    def __init__(self) -> None:
        self.in_effect: dict[str, Challenger] = {}
        self.problems: dict[str, str] = {}
        self.is_reachable = True
        self.error: Exception | None = None
        self.keep_error: Exception | None = None
        self.checks = self.checks_before_keep = 0
        self.kept: list[set[str]] = []
        self.topics = ChallengerTopics(Settings(), self._challengers, self._keep, check=self._check)
        self.broken_looks = 0
        self.looked = asyncio.Event()

    def _challengers(self) -> Mapping[str, Challenger]:
        if self.broken_looks:
            self.broken_looks -= 1
            raise ValueError("a bug")
        return self.in_effect

    async def _keep(self, challengers: Collection[str]) -> None:
        self.kept.append(set(challengers))
        self.checks_before_keep = self.checks
        self.looked.set()
        if self.keep_error is not None:
            raise self.keep_error

    def _check(self, settings: Settings, topics: Collection[str]) -> Mapping[str, str]:
        self.checks += 1
        if self.error is not None:
            raise self.error
        if not self.is_reachable:
            raise KafkaUnreachableError("no broker")
        return {topic: problem for topic, problem in self.problems.items() if topic in topics}


@pytest.fixture
async def world() -> World:
    return World()


async def test_nothing_can_be_written_before_the_first_check(world: World) -> None:
    world.in_effect = {V2.id: V2}
    assert not world.topics.writable("v2")
    await world.topics.look()
    assert world.topics.writable("v2")
    assert world.kept == [{V2.id}]


async def test_without_a_challenger_the_cluster_is_not_asked(world: World) -> None:
    await world.topics.look()
    assert world.checks == 0


async def test_a_missing_topic_is_a_problem_that_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.in_effect, world.problems = {V2.id: V2}, {TOPIC: f"topic {TOPIC!r} does not exist"}
    with caplog.at_level(logging.WARNING):
        await world.topics.look()
        monkeypatch.setattr(challenger_topics, "CHECK_EVERY_S", 0)
        await world.topics.look()
    assert (world.checks, world.topics.writable("v2"), len(caplog.records)) == (2, False, 1)
    (problem,) = world.topics.problems
    assert f"because topic {TOPIC!r} does not exist" in problem


async def test_a_topic_that_comes_or_goes_is_noticed_at_the_next_check(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.in_effect = {V2.id: V2}
    await world.topics.look()
    world.problems = {TOPIC: "gone"}
    await world.topics.look()
    assert world.topics.writable("v2")  # checked a moment ago
    monkeypatch.setattr(challenger_topics, "CHECK_EVERY_S", 0)
    await world.topics.look()
    assert not world.topics.writable("v2")


async def test_while_no_broker_answers_the_last_answer_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.in_effect = {V2.id: V2}
    await world.topics.look()
    world.is_reachable = False
    monkeypatch.setattr(challenger_topics, "CHECK_EVERY_S", 0)
    await world.topics.look()
    assert world.topics.writable("v2")


async def test_a_challenger_that_has_ended_leaves_no_problem(world: World) -> None:
    world.in_effect, world.problems = {V2.id: V2}, {TOPIC: "gone"}
    await world.topics.look()
    world.in_effect = {}
    await world.topics.look()
    assert (world.topics.problems, world.topics.writable("v2")) == ([], False)


async def test_an_unexpected_error_of_the_check_or_of_an_end_is_logged_once_and_costs_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.in_effect, world.error, world.keep_error = {V2.id: V2}, ValueError("a bug"), OSError("another bug")
    await world.topics.look()
    await world.topics.look()
    assert (world.kept, world.topics.writable("v2")) == ([{V2.id}, {V2.id}], False)
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [world.error, world.keep_error]
    world.error = None
    await world.topics.look()
    assert world.topics.writable("v2")


async def test_topics_are_checked_before_processes_end_which_can_take_seconds(world: World) -> None:
    world.in_effect = {V2.id: V2}
    await world.topics.look()
    assert world.checks_before_keep == 1


async def test_the_service_goes_on_after_an_unexpected_error(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenger_topics, "LOOK_EVERY_S", 0.001)
    world.in_effect, world.broken_looks = {V2.id: V2}, 2
    async with world.topics, asyncio.timeout(10):
        await world.looked.wait()
    assert world.topics.writable("v2")
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert errors == ["looking for challengers failed; it is tried again"]
