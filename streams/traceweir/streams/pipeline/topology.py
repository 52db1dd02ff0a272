"""Lists the stages with their topics, and builds each stage from the settings and the eval config.

The worker, scoring without Kafka and `traceweir.streams.testing` all build their stages here; only their `Resources`
differ. This module opens no connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.redaction.entities import EntityFinder
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import NewStage, Read, Stage, StageSpec
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.base.topics import StageName, Topics
from traceweir.streams.pipeline.assemble.closing_rules import ClosingRules
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.pipeline.gate.stage import GateStage
from traceweir.streams.pipeline.score.judge_retries import RetryPolicy
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.pipeline.score.resources import Bounds, ScoringResources
from traceweir.streams.pipeline.score.stage import ScoreStage

# OpenTelemetry's SDK is loaded only where traces are on.
if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans

log = logging.getLogger(__name__)

_CONCURRENCY_PER_RETRY = 8
"""Of each 8 sessions that are scored at the same time, at least 1 can be a retry, which is a session that is scored again,
and at least 1 can be a new session. The other 6 are new sessions, or retries while no new session waits."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that stages use and do not own; all partitions of a process share one value."""

    clock: Callable[[], datetime]
    """Returns the time that results carry. No stage bases a decision on this time."""
    scoring: ScoringResources | None
    """None where the score stage does not run."""
    encode_score: Callable[[Score], bytes] = Score.wire
    """Serialises a score of the gate, as `SessionScoring` does with the scores of the criteria."""
    entities: EntityFinder | None = None
    """Recognises the names of `gate.presidio`; None where the gate does not run, or the plan has no such section."""
    spans: SessionSpans | None = None
    """Writes what the stages assemble and gate do as spans; None: traces are off."""
    limits: RecordLimits = field(default_factory=RecordLimits)
    """The largest records that the topics accept."""


@dataclass(frozen=True, slots=True)
class StageTopics:
    """The input, output and followed topics of a stage."""

    inputs: tuple[str, ...]
    """Topics from which the stage consumes records and commits offsets.

    Among records with equal timestamps, records of the topic that is listed first come first.
    """
    outputs: tuple[str, ...]
    """Topics that the stage writes to."""
    followed: tuple[str, ...] = ()
    """Topics of which every worker that runs the stage reads all partitions, without assignment and commits."""
    also_written: tuple[str, ...] = ()
    """Topics that a worker writes to outside its checkpoints; the stage also works without the right to."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """A row of the table of stages below."""

    topics: Callable[[Topics], StageTopics]
    factory: Callable[[Topology], NewStage]


def topics_of(stage: StageName, topics: Topics) -> StageTopics:
    """Returns the topics of a stage.

    >>> topics_of("gate", Topics.of("acme.")).inputs
    ('acme.candidates',)
    """
    return _TABLE[stage].topics(topics)


@dataclass(frozen=True, slots=True)
class Topology:
    """Builds the stages of a process."""

    settings: Settings
    plan: Plan
    topics: Topics
    closing: ClosingRules
    resources: Resources
    retries: WorkPool | None
    """Limits how many sessions are scored again at a time because a judge was not available; None without scoring."""

    @classmethod
    def of(cls, settings: Settings, plan: Plan, resources: Resources, topics: Topics | None = None) -> Topology:
        """Returns the topology that a worker with these settings uses.

        Args:
            settings: The number of partitions, the topics' prefix, and every limit.
            plan: The metrics, and the requirements of the gate.
            resources: The resources that the stages use and do not own.
            topics: The names of the topics; by default those of the settings.
        """
        scoring = resources.scoring
        retries = None
        if scoring is not None:
            retries = WorkPool(
                partial(_places_for_retries, settings.score_concurrency, scoring.pool), scoring.pool.failed
            )
        topics = settings.topics if topics is None else topics
        return cls(settings, plan, topics, ClosingRules.of(settings), resources, retries)

    def spec(self, stage: StageName) -> StageSpec:
        """Returns the name, the topics and the factory of a stage.

        Raises:
            ValueError: a resource that the stage needs is None: `scoring`, or `entities` for a plan with
                `gate.presidio`.
        """
        row = _TABLE[stage]
        topics = row.topics(self.topics)
        spec = StageSpec(stage, topics.inputs, topics.outputs, row.factory(self))
        # A language model can need a second for a trace; meanwhile, no other task of the worker runs.
        return replace(spec, max_records=1) if stage == "gate" and self.resources.entities is not None else spec

    def specs(self, stages: Sequence[StageName]) -> list[StageSpec]:
        """Returns the specs of several stages, in the order of `stages`."""
        return [self.spec(stage) for stage in stages]


def _places_for_retries(concurrency: int, pool: WorkPool) -> int:
    reserved = concurrency // _CONCURRENCY_PER_RETRY
    return max(1, reserved, min(concurrency - reserved, concurrency - pool.running))


def pool_of_challengers(settings: Settings, pool: WorkPool) -> WorkPool:
    """Returns the pool for sessions that challengers score: the places that `pool` leaves free, and at least one.

    Its work runs in processes of its own, so that this one place takes nothing from the champion but time of a core.
    """

    def places() -> int:
        reserved = settings.score_concurrency // _CONCURRENCY_PER_RETRY
        return max(1, settings.score_concurrency - reserved - pool.running)

    return WorkPool(places, lambda error: log.warning("a challenger's work on a session has ended early: %s", error))


def _collect(topology: Topology) -> NewStage:
    # The readers of spans take a tenth of a second to import, and most workers read none.
    from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
    from traceweir.streams.pipeline.collect.stage import CollectStage

    partitions = topology.settings.partitions
    rules = CollectingRules.of(topology.settings)

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        limits = topology.resources.limits
        # Read here, because a worker learns the limits before each takeover.
        sessions = topology.closing.within(limits.room(topology.topics.sessions))
        fitting = replace(rules, max_session_bytes=sessions.max_bytes)
        return CollectStage(partition, partitions, topology.topics, read, changed, fitting, limits)

    return new


def _assemble(topology: Topology) -> NewStage:
    partitions = topology.settings.partitions
    spans = None
    if topology.resources.spans is not None:
        from traceweir.streams.scoring.tracing.stage_spans import AssembleSpans

        spans = AssembleSpans(topology.resources.spans)

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return AssembleStage(
            partition, partitions, topology.topics, read, topology.closing, spans, topology.resources.limits
        )

    return new


def _score(topology: Topology) -> NewStage:
    settings = topology.settings
    plan = topology.plan
    scoring = topology.resources.scoring
    retries = topology.retries
    if scoring is None or retries is None:
        raise ValueError("stage 'score' needs Resources.scoring, which is None: pass a ScoringResources")
    policy = RetryPolicy.of(plan, scoring.read_record, retries)

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return ScoreStage(
            partition,
            settings.partitions,
            topology.topics,
            scoring,
            changed,
            bounds=Bounds(settings.sessions_in_window, topology.closing.revised_within_ms, topology.resources.limits),
            judge_rows=JudgeRows(plan.judge.cache, scoring.record_spend),
            retry_policy=policy,
        )

    return new


def _gate(topology: Topology) -> NewStage:
    settings = topology.settings
    resources = topology.resources
    if topology.plan.gate.presidio is not None and resources.entities is None:
        raise ValueError("gate.presidio needs Resources.entities, which is None: pass what load_entities returns")
    spans = None
    if resources.spans is not None:
        from traceweir.streams.scoring.tracing.stage_spans import GateSpans

        spans = GateSpans(resources.spans)

    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        return GateStage(
            partition,
            settings.partitions,
            topology.topics,
            topology.plan,
            clock=resources.clock,
            encode_score=resources.encode_score,
            entities=resources.entities,
            spans=spans,
            read=read,
            limits=resources.limits,
        )

    return new


_TABLE: Mapping[StageName, _Stage] = {
    "collect": _Stage(
        lambda topics: StageTopics(
            inputs=(topics.otlp_spans, topics.otlp_logs, topics.spans),
            outputs=(topics.spans, topics.invocations, topics.traces, topics.dead_letters),
        ),
        _collect,
    ),
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
            followed=(topics.references, topics.configs),
            also_written=(topics.configs,),
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
"""One entry per stage, in the order of a trace's path. A new stage needs an entry here and its name in `StageName`."""
