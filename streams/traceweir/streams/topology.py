"""The stages that there are: what each of them reads and writes, and how it is built from the settings and the eval config.

The worker, scoring without Kafka and `traceweir.streams.testing` all build their stages here. They differ in their `Resources` only.
Nothing here connects to anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.assemble.closing_rules import ClosingRules
from traceweir.streams.assemble.stage import AssembleStage
from traceweir.streams.gate.stage import GateStage
from traceweir.streams.judges.budget import Paid
from traceweir.streams.score.judge_retries import ReadRecord, RetryPolicy
from traceweir.streams.score.judge_rows import JudgeRows
from traceweir.streams.score.stage import ScoreStage
from traceweir.streams.scoring.result import Scoring
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import NewStage, Read, Stage, StageSpec
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.topics import StageName, Topics

_SHARE_OF_RETRIES = 8
"""One of so many sessions that are scored at the same time may be one that is scored again."""


@dataclass(frozen=True, slots=True)
class ScoringResources:
    """What the score stage uses and does not own; one value serves all partitions of a process."""

    score: Scoring
    """Scores the bytes of a session."""
    pool: WorkPool
    """Bounds how many sessions are scored, or wait inside `score`, at the same time. Its `failed` is told what ends the worker."""
    record_spend: Callable[[Paid], object]
    """Told what counts against the judges' budget of this process; negative when a partition has moved away."""
    read_record: ReadRecord
    """Reads a session from its topic again: by topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What stages use and do not own; one value serves all partitions of a process."""

    clock: Callable[[], datetime]
    """The time that stands in results. No stage takes a decision by it."""
    scoring: ScoringResources | None
    """None where the score stage does not run."""


@dataclass(frozen=True, slots=True)
class StageTopics:
    """The topics of a stage."""

    inputs: tuple[str, ...]
    """Whose records the stage takes and whose offsets it commits. At equal timestamps the first of them comes first."""
    outputs: tuple[str, ...]
    """Which the stage writes to."""
    followed: tuple[str, ...] = ()
    """Of which every worker that runs the stage reads all partitions, whichever it owns, and commits no offset."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage: a row of the table below."""

    topics: Callable[[Topics], StageTopics]
    factory: Callable[[Topology], NewStage]


def topics_of(stage: StageName, topics: Topics) -> StageTopics:
    """The topics of a stage.

    >>> topics_of("gate", Topics.of("acme.")).inputs
    ('acme.candidates',)
    """
    return _TABLE[stage].topics(topics)


@dataclass(frozen=True, slots=True)
class Topology:
    """How the stages of a process are built."""

    settings: Settings
    plan: Plan
    topics: Topics
    closing: ClosingRules
    resources: Resources
    retries: WorkPool | None
    """Bounds how many sessions are scored again at the same time because a judge could not be asked; None without scoring."""

    @classmethod
    def of(cls, settings: Settings, plan: Plan, resources: Resources) -> Topology:
        """The stages as a worker builds them.

        Args:
            settings: The number of partitions, the topics' prefix, and every limit.
            plan: What is measured, and what the gate asks for.
            resources: What the stages use and do not own.
        """
        scoring, retries = resources.scoring, None
        if scoring is not None:
            retries = WorkPool(max(1, settings.score_concurrency // _SHARE_OF_RETRIES), scoring.pool.failed)
        topics = Topics.of(settings.topic_prefix)
        return cls(settings, plan, topics, ClosingRules.of(settings), resources, retries)

    def spec(self, stage: StageName) -> StageSpec:
        """A stage as whoever runs it needs it.

        Raises:
            ValueError: the score stage is asked for, and the resources have no scoring.
        """
        row = _TABLE[stage]
        topics = row.topics(self.topics)
        return StageSpec(stage, topics.inputs, topics.outputs, row.factory(self))

    def specs(self, stages: Sequence[StageName]) -> list[StageSpec]:
        """Several stages, in the order in which they are named."""
        return [self.spec(stage) for stage in stages]


def _assemble(topology: Topology) -> NewStage:
    partitions = topology.settings.partitions

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return AssembleStage(partition, partitions, topology.topics, read, topology.closing)

    return new


def _score(topology: Topology) -> NewStage:
    settings, plan, scoring, retries = topology.settings, topology.plan, topology.resources.scoring, topology.retries
    if scoring is None or retries is None:
        raise ValueError("stage 'score' needs Resources.scoring, which is None: hand in what scores sessions")
    policy = RetryPolicy.of(plan, scoring.read_record, retries)

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return ScoreStage(
            partition,
            settings.partitions,
            topology.topics,
            scoring.score,
            scoring.pool,
            changed,
            window=settings.score_window,
            revised_within_ms=topology.closing.revised_within_ms,
            judge_rows=JudgeRows(plan.judge.cache, scoring.record_spend),
            once_more=policy,
        )

    return new


def _gate(topology: Topology) -> NewStage:
    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return GateStage(
            partition, topology.settings.partitions, topology.topics, topology.plan, topology.resources.clock
        )

    return new


_TABLE: Mapping[StageName, _Stage] = {
    "assemble": _Stage(
        lambda topics: StageTopics(
            inputs=(topics.traces, topics.invocations, topics.strays),
            outputs=(topics.strays, topics.sessions, topics.dead_letters),
        ),
        _assemble,
    ),
    "score": _Stage(
        lambda topics: StageTopics(
            inputs=(topics.sessions,),
            outputs=(topics.results, topics.candidates, topics.dead_letters),
            followed=(topics.references,),
        ),
        _score,
    ),
    "gate": _Stage(
        lambda topics: StageTopics(
            inputs=(topics.candidates,),
            outputs=(topics.results, topics.network, topics.dead_letters),
        ),
        _gate,
    ),
}
"""One entry per stage, in the order of a trace's path. A new stage is an entry here, and its name in `StageName`."""
