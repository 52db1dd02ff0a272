"""Puts together what a worker needs for challengers: their processes, and the watch over their topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.challengers import Challengers, ChallengerScoring
from traceweir.streams.pipeline.score.judge_retries import ReadRecord
from traceweir.streams.pipeline.topology import pool_of_challengers
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.isolation.challenger_processes import ChallengerProcesses
from traceweir.streams.scoring.isolation.processes import ScoringProcesses
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.worker.kafka.challenger_topics import ChallengerTopics


class WorkerChallengers(NamedTuple):
    """The challengers of a worker."""

    challengers: Challengers
    """For the score stage."""
    processes: ChallengerProcesses
    topics: ChallengerTopics

    @classmethod
    def of(
        cls,
        settings: Settings,
        setup: Setup,
        folder: Path,
        scoring: ScoringProcesses,
        configs: ConfigLog,
        pool: WorkPool,
        read: ReadRecord,
        beacon: Any,
    ) -> WorkerChallengers:
        """Returns the challengers of a worker whose champions `scoring` scores.

        Args:
            settings: Where Kafka is, and every limit.
            setup: What the scoring processes of the champions need.
            folder: The local folder of the application.
            scoring: The scoring processes of the champions.
            configs: The configs of the topic `configs`.
            pool: The work of the champions.
            read: Reads a session from its topic again.
            beacon: The place of the services in the worker.
        """
        processes = scoring.challengers = ChallengerProcesses(setup, folder, scoring.references, beacon=beacon)
        topics = ChallengerTopics(settings, lambda: challengers.in_effect, processes.keep, beacon=beacon)
        places = pool_of_challengers(settings, pool)
        challenger_scoring = ChallengerScoring(
            processes.score, processes.available, topics.writable, processes.record_spend, read, places
        )
        challengers = Challengers(setup.plan.challenger, configs, challenger_scoring)
        return cls(challengers, processes, topics)

    @property
    def services(self) -> Sequence[Any]:
        """The services that run as long as the worker."""
        return self.processes, self.topics

    @property
    def problems(self) -> list[str]:
        """A sentence for each challenger that cannot score, or whose scores cannot be written."""
        return [*self.topics.problems, *self.processes.problems]
