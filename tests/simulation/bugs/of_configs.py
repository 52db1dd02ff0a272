"""Bugs of the configs of the topic `configs`, and of the row that says which of them counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from tests.simulation.bugs.registry import bug_of_higher_seeds, put
from tests.simulation.world import World

from traceweir.streams.base import service_tasks
from traceweir.streams.pipeline.gate.stage import GateStage
from traceweir.streams.pipeline.score.config_spans import ConfigSpans
from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker
from traceweir.streams.pipeline.score.session_configs import SessionConfigs
from traceweir.streams.pipeline.score.stage import ScoreStage
from traceweir.streams.worker.kafka import consumer_tasks, followed_topics


@bug_of_higher_seeds
def row_of_configs_is_not_written(world: World) -> None:
    """The row in the checkpoint does not say which configs count from which session on."""
    put(ConfigSpans, "rows", _with_others(lambda spans: []))


@bug_of_higher_seeds
def row_of_configs_comes_after_the_first_scores(world: World) -> None:
    """The row says it one checkpoint later than the first scores of a new config come."""

    def former(spans: Any) -> Any:
        due, spans.due = getattr(spans, "due", []), [*spans._spans]
        return due

    put(ConfigSpans, "rows", _with_others(former))


def _with_others(chosen: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a method that returns the row as it would be with other spans."""
    rows = ConfigSpans.rows

    def with_others(spans: Any) -> Any:
        present, spans._spans = spans._spans, chosen(spans)
        try:
            return rows(spans)
        finally:
            spans._spans = present

    return with_others


@bug_of_higher_seeds
def begin_of_configs_is_forgotten_at_reload(world: World) -> None:
    """After a restart the latest configs count for all sessions, also for those that were begun before."""
    load = ConfigSpans.load

    def forget(self: Any, rows: Any) -> None:
        load(self, rows)
        self._spans = [(0, configs) for _, configs in self._spans[-1:]]

    put(ConfigSpans, "load", forget)


@bug_of_higher_seeds
def worker_that_is_behind_takes_an_earlier_config(world: World) -> None:
    """A worker that has read less of the topic than the former owner of a partition puts its own state in effect."""

    def take(self: Any, frontier: int) -> bool:
        log, spans = self._followed.log, self._spans
        if log.current == spans.latest:
            return False
        spans.begin(frontier, log.current, log.position)
        return True

    put(SessionConfigs, "take", take)


@bug_of_higher_seeds
def new_configs_count_for_sessions_in_flight(world: World) -> None:
    """A new config counts from the oldest session that is not done, and not from the next one."""
    frontier = OffsetTracker.frontier

    def oldest(self: Any, offset: int) -> int:
        mark = self.mark
        return frontier(self, offset) if mark is None else mark

    put(OffsetTracker, "frontier", oldest)


@bug_of_higher_seeds
def configs_of_waiting_sessions_are_dropped(world: World) -> None:
    """The config of a session that waits for a judge is dropped when all sessions below the next config are done."""
    put(ScoreStage, "_floor", lambda self: self._offsets.mark)


@bug_of_higher_seeds
def each_owner_reports_bad_configs(world: World) -> None:
    """How far invalid records are dead letters is not restored."""
    load = ConfigSpans.load

    def forget(self: Any, rows: Any) -> None:
        load(self, rows)
        self.reported = 0

    put(ConfigSpans, "load", forget)


@bug_of_higher_seeds
def configs_are_read_uncommitted(world: World) -> None:
    """A worker follows a push that is aborted."""

    def lenient(**options: Any) -> Any:
        return AIOKafkaConsumer(**options | {"isolation_level": "read_uncommitted"})

    put(followed_topics, "AIOKafkaConsumer", lenient)


@bug_of_higher_seeds
def nobody_notices_that_configs_are_not_followed(world: World) -> None:
    """A worker whose task that follows the topic is cancelled goes on with the configs that it has read."""
    put(service_tasks, "TaskCancelledError", lambda text: asyncio.CancelledError())


@bug_of_higher_seeds
def gate_decides_by_the_file(world: World) -> None:
    """The gate does not read the rules of a candidate."""
    put(GateStage, "_plan_of", lambda self, candidate: self._plan)


@bug_of_higher_seeds
def cancelled_task_of_a_client_is_not_reported(world: World) -> None:
    """A background task of aiokafka that is cancelled ends in silence."""
    of_ended = consumer_tasks._of_ended

    def lenient(consumer: Any, name: str, task: Any) -> Any:
        return None if task.cancelled() else of_ended(consumer, name, task)

    put(consumer_tasks, "_of_ended", lenient)
