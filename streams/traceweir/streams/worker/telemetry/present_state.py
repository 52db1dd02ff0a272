"""Reads the present state of a worker as gauges, when somebody asks for the metrics."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from time import monotonic
from typing import Any, Protocol

import psutil
from mode import Service

from traceweir.streams.base.service_tasks import service_task
from traceweir.streams.scoring.isolation.activity import ScoringActivity
from traceweir.streams.worker.runtime.unread_records import UnreadRecords
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.measured import Point

LOOP_WINDOW_S = 15.0
_LOOP_STEP_S = 0.25


class ObservedWorker(Protocol):
    """What the gauges read of a worker's checkpoints."""

    @property
    def lanes(self) -> Mapping[int, Any]: ...
    @property
    def phase(self) -> str: ...
    @property
    def restoring(self) -> int:
        """Number of offsets of changelogs that are still to be read."""

    @property
    def transaction_timeout_s(self) -> float:
        """Seconds after which Kafka aborts a transaction."""

    @property
    def unread(self) -> UnreadRecords:
        """What no checkpoint contains yet."""

    @property
    def retention_s(self) -> Mapping[str, float]:
        """How long Kafka keeps the records of an input, in seconds by topic."""


class ObservedScoring(Protocol):
    """What the gauges read of the scoring processes."""

    @property
    def restarts(self) -> int: ...
    @property
    def activity(self) -> ScoringActivity: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def suspects(self) -> int: ...
    @property
    def pids(self) -> Sequence[int]: ...

    def on_activity(self, active: Callable[[ScoringActivity], object]) -> None:
        """Sets what is called with what any of the processes says each second."""


class LoopLag(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Measures how late the event loop runs its timers."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._late: deque[tuple[float, float]] = deque()

    def longest_s(self) -> float:
        """Returns the longest delay in the last 15 s."""
        return max((late for _, late in self._late), default=0.0)

    @service_task("measures the event loop")
    async def _measure(self) -> None:
        while not self.should_stop:
            began = monotonic()
            await self.sleep(_LOOP_STEP_S)
            now = monotonic()
            self._late.append((now, max(0.0, now - began - _LOOP_STEP_S)))
            while self._late[0][0] < now - LOOP_WINDOW_S:
                self._late.popleft()


class PresentState:
    """Reads the gauges.

    Args:
        worker: The worker's checkpoints.
        scoring: Its scoring processes; None if this worker does not score.
        problems: Returns the problems that `/healthz` lists.
        checkpoint_age_s: Returns the seconds since the checkpoint in work began.
        loop_lag_s: Returns the longest delay of the event loop.
        clock_ahead_s: Returns by how much the clock of the worker is ahead of the brokers'; None: not compared yet.
    """

    def __init__(
        self,
        worker: ObservedWorker,
        scoring: ObservedScoring | None,
        problems: Callable[[], Sequence[str]],
        checkpoint_age_s: Callable[[], float],
        loop_lag_s: Callable[[], float],
        config_problems: Callable[[], Sequence[str]] = tuple,
        challenger_problems: Callable[[], Sequence[str]] = tuple,
        clock_ahead_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._clock_ahead_s = clock_ahead_s
        self._config_problems = config_problems
        self._challenger_problems = challenger_problems
        self._worker = worker
        self._scoring = scoring
        self._problems = problems
        self._checkpoint_age_s = checkpoint_age_s
        self._loop_lag_s = loop_lag_s
        self._version = version("traceweir")

    def points(self) -> Iterator[Point]:
        """Yields the gauges. A gauge of a stage that this worker does not run is left out."""
        worker = self._worker
        yield Point(catalogue.BUILD, (self._version,), 1)
        yield Point(catalogue.READY, (), int(worker.phase == "ready"))
        yield Point(catalogue.PROBLEMS, (), len(self._problems()))
        yield Point(catalogue.PARTITIONS, (), len(worker.lanes))
        yield Point(catalogue.RESTORING, (), worker.restoring)
        yield Point(catalogue.CHECKPOINT_AGE, (), self._checkpoint_age_s())
        yield Point(catalogue.TRANSACTION_TIMEOUT, (), worker.transaction_timeout_s)
        yield Point(catalogue.LOOP_LAG, (), self._loop_lag_s())
        if (ahead_s := self._clock_ahead_s()) is not None:
            yield Point(catalogue.CLOCK_AHEAD, (), ahead_s)
        for topic, number in worker.unread.lag().items():
            yield Point(catalogue.LAG, (topic,), number)
        for topic, age_s in worker.unread.age_s().items():
            yield Point(catalogue.UNREAD_AGE, (topic,), age_s)
        for topic, kept_s in worker.retention_s.items():
            yield Point(catalogue.RETENTION, (topic,), kept_s)
        for topic, age_s in worker.unread.held_back_s().items():
            yield Point(catalogue.HELD_BACK, (topic,), age_s)
        yield from self._of_stages()
        yield from _memory("worker", psutil.Process())
        if (scoring := self._scoring) is not None:
            yield Point(catalogue.CONFIGS_UNUSABLE, (), len(self._config_problems()))
            yield Point(catalogue.CHALLENGERS_UNUSABLE, (), len(self._challenger_problems()))
            yield Point(catalogue.SCORING_RESTARTS, (), scoring.restarts)
            yield Point(catalogue.SCORING_IN_FLIGHT, (), scoring.in_flight)
            yield Point(catalogue.SCORING_SUSPECTS, (), scoring.suspects)
            for model, is_open in scoring.activity.breakers.items():
                yield Point(catalogue.JUDGE_BREAKER, (model,), int(is_open))
            for metric, models in scoring.activity.unfit.items():
                for model, is_unfit in models.items():
                    yield Point(catalogue.JUDGE_UNFIT, (metric, model), int(is_unfit))
            for limit, left in scoring.activity.budget_left.items():
                yield Point(catalogue.JUDGE_BUDGET_LEFT, (limit,), left)
            try:
                yield from _memory("scoring", *map(psutil.Process, scoring.pids))
            except psutil.Error:
                # One has just ended, and another one replaces it.
                return

    def _of_stages(self) -> Iterator[Point]:
        def all_of(name: str) -> list[Any]:
            found = [lane.stages[name] for lane in self._worker.lanes.values() if name in lane.stages]
            # A shadow wraps its stages.
            return [getattr(stage, "of_worker", stage) for stage in found]

        if assembling := all_of("assemble"):
            yield Point(catalogue.OPEN_SESSIONS, (), sum(stage.open_sessions for stage in assembling))
            marks = [stage.watermark_ms for stage in assembling if stage.watermark_ms]
            if marks:
                yield Point(catalogue.WATERMARK_LAG, (), max(0.0, time.time() - min(marks) / 1000))
        if scoring := all_of("score"):
            yield Point(catalogue.JUDGE_WAITING, ("settling",), sum(stage.settling for stage in scoring))
            yield Point(catalogue.JUDGE_WAITING, ("unavailable",), sum(stage.waiting_for_judge for stage in scoring))
            yield Point(catalogue.CHALLENGER_WAITING, (), sum(stage.waiting_for_challenger for stage in scoring))
        if deciding := all_of("gate"):
            yield Point(catalogue.SCOPES, (), sum(stage.scopes for stage in deciding))


def _memory(name: str, *processes: psutil.Process) -> Iterator[Point]:
    yield Point(catalogue.MEMORY, (name,), sum(process.memory_info().rss for process in processes))
