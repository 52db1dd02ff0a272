"""Puts together what a worker needs for challengers: their processes, and the watch over their topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from traceweir.streams.configs.log import ConfigLog
from traceweir.streams.kafka.challenger_topics import ChallengerTopics
from traceweir.streams.score.challengers import Challengers, ChallengerScoring
from traceweir.streams.score.judge_retries import ReadRecord
from traceweir.streams.scoring.challenger_processes import ChallengerProcesses
from traceweir.streams.scoring.processes import ScoringProcesses
from traceweir.streams.scoring.protocol import Setup
from traceweir.streams.settings import Settings
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.topology import pool_of_challengers


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
        how = ChallengerScoring(
            processes.score, processes.available, topics.writable, processes.record_spend, read, places
        )
        challengers = Challengers(setup.plan.challenger, configs, how)
        return cls(challengers, processes, topics)

    @property
    def services(self) -> Sequence[Any]:
        """The services that run as long as the worker."""
        return self.processes, self.topics

    @property
    def problems(self) -> list[str]:
        """A sentence for each challenger that cannot score, or whose scores cannot be written."""
        return [*self.topics.problems, *self.processes.problems]
