"""Tests that a running worker notices topics that were deleted and created again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.runtime.topic_watch import TopicWatch


class World:
    """A cluster with topics, and a worker with two partitions of the input `a` that follows `b`."""

    def __init__(self) -> None:
        self.ids: Mapping[str, str] | None = {"a": "c/1", "b": "c/2"}
        self.ends: list[tuple[str, str]] = []
        self.watch = TopicWatch(self.ask, lambda: [{"a": "c/1"}] * 2, ["b"], self.lose, self.fail)

    async def ask(self) -> Mapping[str, str]:
        if self.ids is None:
            raise KafkaUnreachableError("no broker")
        return self.ids

    async def lose(self, error: BaseException) -> None:
        self.ends.append(("lose", str(error)))

    async def fail(self, error: BaseException) -> None:
        self.ends.append(("fail", str(error)))


@pytest.fixture
async def world() -> World:
    world = World()
    await world.watch.look()
    assert world.ends == []
    return world


async def test_an_input_that_was_made_again_lets_the_worker_take_its_partitions_over_again(world: World) -> None:
    world.ids = {"a": "c/7", "b": "c/2"}
    await world.watch.look()
    ((what, why),) = world.ends
    assert what == "lose"
    assert "the topic a was deleted and created again under the running worker (its id was c/1, and is c/7)" in why


async def test_a_followed_topic_that_was_made_again_ends_the_worker(world: World) -> None:
    world.ids = {"a": "c/1", "b": "c/8"}
    await world.watch.look()
    assert [what for what, _ in world.ends] == ["fail"]


async def test_a_cluster_that_does_not_answer_is_asked_again_later(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.ids = None
    await world.watch.look()
    assert (world.ends, "cannot be compared now: no broker" in caplog.text) == ([], True)

    world.ids = {"a": "c/7", "b": "c/2"}
    await world.watch.look()
    assert [what for what, _ in world.ends] == ["lose"]


async def test_topics_without_ids_are_not_compared(world: World) -> None:
    world.ids = {}
    await world.watch.look()
    assert world.ends == []
