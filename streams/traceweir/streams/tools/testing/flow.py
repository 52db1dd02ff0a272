"""Runs the stages without Kafka: topics, the table and transactions are in memory, and the test sets the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from traceweir.schemas.base import JsonObject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import Challenger, Plan, read_plan
from traceweir.scorers.redaction.entities import EntityFinder
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Cut, End, Output, StageSpec
from traceweir.streams.base.stages.record_limits import RecordLimits, record_bytes
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.base.topics import STAGES, StageName
from traceweir.streams.pipeline.gate.presidio import load_entities
from traceweir.streams.pipeline.score.challengers import Challengers, ChallengerScoring
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.pipeline.score.resources import ScoringResources
from traceweir.streams.pipeline.topology import Resources, Topology, pool_of_challengers
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import HOME, records_of
from traceweir.streams.scoring.configs.selectors import Configs, selector
from traceweir.streams.scoring.configs.topic_record import parsed
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.config_scoring import ConfigScoring
from traceweir.streams.scoring.sessions.options import ScoringOptions, ScoringOutputs
from traceweir.streams.scoring.sessions.result import Scoring, ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure, SessionScoring, score_bytes
from traceweir.streams.tools.testing.builders import START_S
from traceweir.streams.tools.testing.flow_topics import FlowTopics
from traceweir.streams.tools.testing.held_scoring import HeldScoring
from traceweir.streams.tools.testing.isolated_settings import IsolatedSettings
from traceweir.streams.tools.testing.memory import Message
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.suspects import StageFailed, Suspects

if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans

_FETCH_RECORDS = 500
"""Maximum number of records of a topic that the stages take in one batch."""
_MAX_WAITING_RECORDS = 20_000
"""Number of records waiting for a checkpoint at which a partition stops fetching."""


class Flow(FlowTopics):
    """Runs the stages of a worker on topics in memory. Create a flow inside a running event loop.

    The flow uses the worker's own stages, wiring (`Topology`), order of records, scoring and checkpoints: rows, outputs
    and offsets become visible together, and a record that is too large for a batch fails the test.

    The flow does not simulate consumer groups, rebalances and fencing; retention, compaction, and the gaps that
    transactions leave between offsets; the local state directory; the scoring process and a scorer that ends it; the
    topic `references` (put the reference into the event). `push_config` writes to the topic `configs`, which all
    partitions follow. Each partition has its own work pools, as if a separate worker owned each partition. Timeouts of
    scorers are those of the settings, in real time.

    >>> import asyncio
    >>> from traceweir.streams.testing import Flow, event, trace
    >>> async def story() -> None:
    ...     flow = Flow(idle_gap_s=60)
    ...     flow.send(flow.topics.traces, trace(1, session_id="s"))
    ...     await flow.settle()
    ...     print(flow.sessions())
    ...     flow.crash()
    ...     flow.pass_time(61)
    ...     await flow.settle()
    ...     print([(score["metric"], score["status"]) for score in flow.results()])
    >>> asyncio.run(story())
    []
    [('trace_value', 'PASSED'), ('gate', 'PASSED')]
    """

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        stages: Sequence[StageName | StageSpec] = STAGES,
        embedder: Embedder | None = None,
        judging: Callable[[Callable[[], datetime]], Judging] | None = None,
        hold: Callable[[Measure], Measure] | None = None,
        entities: EntityFinder | None = None,
        spans: SessionSpans | None = None,
        **settings: Any,
    ) -> None:
        """Starts at the time `START_S` with empty topics and tables.

        Args:
            plan: The metrics and the conditions of the gate; by default those of an empty config.
            stages: The stages that run, in the order of processing: names of Traceweir's stages, or a `StageSpec` for a
                custom stage.
            embedder: Returns the vectors for novelty; with None, novelty is 0.5.
            judging: Returns the judge service for the flow's clock; with None, metrics that ask a judge are
                NOT_EVALUATED `error`.
            hold: Wraps the scoring of a session; with `HeldScoring` the test decides when a session is scored.
            entities: Recognises the names of `gate.presidio`; with None, Presidio does, if the plan has the section.
            spans: Writes what the stages do as spans of OpenTelemetry; with None, traces are off.
            settings: Settings by the names of their fields, such as `idle_gap_s=60`. Other settings have their
                defaults, independent of the environment, except `partitions`, which is 1.

        Raises:
            pydantic.ValidationError: a setting does not exist, or its value is out of range.
            PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
        """
        self.settings: Settings = IsolatedSettings(**({"partitions": 1} | settings))
        super().__init__(self.settings.topics, self.settings.partitions)
        self.plan = plan if plan is not None else read_plan({})
        self.limits = RecordLimits(self.topics.dead_letters)
        """The largest records that the topics accept; a change has an effect from the next `crash` on."""
        self.lanes: dict[int, Lane] = {}
        """The lanes, which run the stages, by partition."""
        self.failures: list[BaseException] = []
        """The errors that would have stopped a worker."""
        self._stages = tuple(stages)
        self._entities = entities if entities is not None else load_entities(self.plan.gate.presidio)
        self._spans = spans
        self._make_judging = judging
        self._judging = judging(self.clock) if judging is not None else None
        self._challengers: dict[str, tuple[Measure, Judging | None]] = {}
        self.refused_topics: set[str] = set()
        """Topics of challengers that the worker may not write."""
        self._embedder = embedder
        scoring: Measure = self._scoring_by(self.plan)
        self.scoring = hold(scoring) if hold is not None else scoring
        """The scoring of a session."""
        self._config_scoring = ConfigScoring(scoring, partial(self._scoring_by, pushed=True))
        self.configs: dict[int, ConfigLog] = {}
        """What the worker of each partition has read of the topic `configs`."""
        self._pools: dict[int, list[WorkPool]] = {}
        for partition in range(self.partitions):
            self._start_partition(partition)

    def _scoring_by(self, plan: Plan, *, pushed: bool = False, judging: Judging | None = None) -> SessionScoring:
        return SessionScoring(
            plan,
            self._embedder,
            self.clock,
            replace(ScoringOptions.of(self.settings), settles=True),
            judging=judging or self._judging,
            in_place_of=self.plan if pushed else None,
            outputs=ScoringOutputs(spans=self._spans),
        )

    def _read_configs(self) -> ConfigLog:
        """Returns what a worker that starts now reads of the topic `configs`."""
        log = ConfigLog(partial(usable_plan, file=self.plan))
        for message in self.read(self.topics.configs):
            log.read(parsed(message))
        log.catch_up()
        log.note_position(len(self.logs[self.topics.configs, HOME]))
        return log

    def _scoring_of(self, log: ConfigLog, configs: Configs) -> Scoring:
        for name, document in log.documents(configs).items():
            self._config_scoring.add(name, document)
        measure = self._config_scoring.under(configs)
        return score_bytes(self.scoring.around(measure) if isinstance(self.scoring, HeldScoring) else measure)

    def _challenger(self, challenger: Challenger) -> tuple[Measure, Judging | None]:
        """Returns the scoring by a challenger, whose judge has a budget of its own."""
        if (found := self._challengers.get(challenger.id)) is None:
            plan = limited(challenger.plan, challenger.budget_usd)
            judging = self._make_judging(self.clock) if self._make_judging is not None else None
            if judging is not None:
                judging.budget = JudgeBudget(plan.judge.budget, self.clock)
            measure: Measure = self._scoring_by(plan, judging=judging)
            measure = self.scoring.around(measure) if isinstance(self.scoring, HeldScoring) else measure
            found = self._challengers[challenger.id] = measure, judging
        return found

    async def score_by_challenger(
        self, challenger: Challenger, raw: bytes, known: Sequence[JudgeVerdict]
    ) -> ScoringResult:
        """Scores a session by a challenger. Override the method to let a challenger fail."""
        return await score_bytes(self._challenger(challenger)[0])(raw, known)

    def _challengers_of(self, log: ConfigLog, pool: WorkPool) -> Challengers:
        def record_spend(challenger: str, paid: Paid) -> None:
            found = challengers.in_effect.get(challenger)
            if found is not None and (judging := self._challenger(found)[1]) is not None:
                judging.budget.record_spend(paid)

        def writable(name: str) -> bool:
            return self.topics.shadow_results(name) not in self.refused_topics

        places = pool_of_challengers(self.settings, pool)
        challenger_scoring = ChallengerScoring(
            self.score_by_challenger, lambda challenger: True, writable, record_spend, self.read_record, places
        )
        challengers = Challengers(self.plan.challenger, log, challenger_scoring)
        return challengers

    # Events outside the worker

    def push_config(
        self, config: JsonObject | None, app: str | None = None, environment: str | None = None, version: int = 1
    ) -> str | None:
        """Writes a config to the topic `configs` as `traceweir config push` does, and lets all workers read it.

        The stages take the config with their next record or tick.

        Args:
            config: The config; None withdraws the one that is in effect.
            app: The app that the config is for; None: all apps.
            environment: The environment that the config is for; None: all environments.
            version: The number of the version.

        Returns:
            The `config_digest` of the scores with this config; None for a withdrawal.

        Raises:
            ConfigError: the config is invalid. To push an invalid config, `send` its record and pass it to `configs[partition].take`.
        """
        digest = read_plan(config).digest if config is not None else None
        pushed = PushedConfig(
            envelope=ENVELOPE,
            selector=selector(app, environment),
            version=version,
            digest=digest,
            config=config,
            pushed_at=self.clock(),
        )
        for key, value in records_of(pushed):
            message = self.send(self.topics.configs, value, key, partition=HOME)
            for log in self.configs.values():
                log.take(message)
        return digest

    def pass_time(self, seconds: float) -> None:
        """Advances the clock, and passes the time and the read positions to every stage.

        Call `settle` afterwards to process the effects.
        """
        self.now += seconds
        for partition in self.lanes:
            self.tick(partition)

    def crash(self, partition: int = 0) -> None:
        """Drops the in-memory state of a partition, and restarts the partition from its last finished checkpoint."""
        self.lanes[partition].drop()
        self._start_partition(partition)

    # Single steps of a worker

    def tick(self, partition: int = 0) -> None:
        """Passes the time and the end offsets of the inputs to the stages of a partition, as after a fetch."""
        lane = self.lanes[partition]
        ends = {
            (topic, partition): End(position, len(self.logs[topic, partition]), self.now)
            for topic, position in lane.position.items()
        }
        try:
            lane.fetched(ends, self.now)
        except StageFailed as failed:
            self.isolate(partition, failed)

    async def take(self, topic: str, count: int | None = None, partition: int = 0) -> int:
        """Passes the next records of a topic to its stage, in one batch, as after a fetch.

        Args:
            topic: The topic.
            count: Maximum number of records; by default all records.
            partition: The partition.

        Returns:
            The number of records.
        """
        lane = self.lanes[partition]
        # A consumer would seek; the flow reads from `position`.
        lane.pending_seeks()
        start = lane.position[topic]
        batch = self.logs[topic, partition][start:][:count]
        if batch:
            try:
                await lane.take(topic, batch)
            except StageFailed as failed:
                self.isolate(partition, failed)
                return len(batch)
        self.tick(partition)
        return len(batch)

    async def run_scoring(self) -> None:
        """Runs the event loop until scoring makes no more progress without external events.

        Raises:
            BaseException: the first error that would have stopped a worker.
        """
        before: object = None
        unchanged = 0
        # A task that yields to other tasks continues in a later iteration of the loop.
        while unchanged < 5:
            await asyncio.sleep(0)
            counters = [
                dict(getattr(stage, "counters", {})) for lane in self.lanes.values() for stage in lane.stages.values()
            ]
            seen = (counters, len(self.scoring.begun) if isinstance(self.scoring, HeldScoring) else 0)
            unchanged = unchanged + 1 if seen == before else 0
            before = seen
        self._raise_failure()

    async def finish_scoring(self) -> None:
        """Waits until no session is being scored. Use this for scorers and judges that need threads, sockets or time.

        This method does not return while `HeldScoring` holds a session.

        Raises:
            BaseException: the first error that would have stopped a worker.
        """
        for pools in self._pools.values():
            for pool in pools:
                await pool.idle()
        self._raise_failure()

    def cut(self, partition: int = 0) -> Cut:
        """Starts a checkpoint: returns the changes since the last checkpoint, which become visible with `commit`.

        Raises:
            AssertionError: a stage with `has_outputs` has outputs, and did not tell so after its last call.
        """
        lane = self.lanes[partition]
        urgent = lane.urgent
        try:
            cut = lane.cut()
        except StageFailed as failed:
            self.isolate(partition, failed)
            return Cut([], [], {})
        if cut.outputs and not urgent:
            raise AssertionError(
                f"a stage has outputs and has not told so, so that a worker's checkpoint would come late: {cut.outputs[0]}; "
                "correct `has_outputs` of the stage"
            )
        return cut

    def commit(self, cut: Cut, partition: int = 0) -> list[Message]:
        """Finishes a checkpoint: rows and outputs become visible together.

        Returns:
            The outputs as records of their topics.

        Raises:
            AssertionError: an output is too large for a batch, or no running stage declares its topic as an output.
        """
        for output in cut.outputs:
            if output.topic not in self._outputs and not output.topic.startswith(self.topics.shadow_results_prefix):
                raise AssertionError(
                    f"no running stage declares the topic {output.topic!r} as an output; "
                    f"declared: {sorted(self._outputs)}; add the topic to `outputs` of the stage's StageSpec"
                )
        for output in [*(Output("rows", partition, *row) for row in cut.rows), *cut.outputs]:
            self._require_fits_batch(output)
        self.table.write(partition, cut.rows)
        return [self._publish(self.limits.fitted(output)) for output in cut.outputs]

    def checkpoint(self, partition: int = 0) -> list[Message]:
        """Makes a whole checkpoint, `cut` and `commit`, and returns its outputs."""
        return self.commit(self.cut(partition), partition)

    async def settle(self) -> None:
        """Reads, scores and makes checkpoints until no partition has any work left. The clock does not move."""
        busy = True
        while busy:
            busy = False
            for partition in self.lanes:
                for topic in self.lanes[partition].position:
                    if not self.lanes[partition].full(topic, _MAX_WAITING_RECORDS):
                        busy = bool(await self.take(topic, _FETCH_RECORDS, partition)) or busy
                await self.run_scoring()
                busy = bool(self.checkpoint(partition)) or self.lanes[partition].suspects.isolating or busy

    async def finish(self) -> None:
        """Settles, advances the clock until every open session has closed, and settles again."""
        await self.settle()
        self.pass_time(self.settings.idle_gap_s + self.settings.close_linger_s + 1)
        await self.settle()
        while any(getattr(stage, "open_sessions", 0) for lane in self.lanes.values() for stage in lane.stages.values()):
            # A reopened session can wait for more late records.
            self.pass_time(self.settings.grace_s + 1)
            await self.settle()

    async def read_record(self, topic: str, partition: int, offset: int) -> Message | None:
        """Returns a record for a retry of the score stage (`judge.retry_later`); None if the topic has no such record.

        Override this method to simulate deleted records or failures of brokers.
        """
        log = self.logs[topic, partition]
        return log[offset] if offset < len(log) else None

    def wrap(self, spec: StageSpec) -> StageSpec:
        """Returns the spec of a stage that the flow runs. Override the method to let a stage fail."""
        return spec

    def _publish(self, output: Output) -> Message:
        at = None if output.timestamp is None else output.timestamp / 1000 - START_S
        return self.send(
            output.topic, output.value, output.key, partition=output.partition, headers=output.headers, at=at
        )

    def isolate(self, partition: int, failed: StageFailed) -> None:
        """Starts a partition again from the last finished checkpoint, as a worker does after a stage raised.

        Raises:
            Exception: no record is the cause, or the record is poison already, so that a worker would end.
        """
        lane = self.lanes[partition]
        try:
            suspects = lane.suspects.after(failed)
        except StageFailed:
            raise failed.error from None
        lane.drop()
        self._start_partition(partition, suspects)

    def _start_partition(self, partition: int, suspects: Suspects | None = None) -> None:
        pool = WorkPool(self.settings.score_concurrency, self.failures.append)
        log = self.configs[partition] = self._read_configs()
        challengers = self._challengers_of(log, pool)
        scoring = ScoringResources(
            score_bytes(self.scoring),
            pool,
            self._record_spend,
            self.read_record,
            FollowedConfigs(log, partial(self._scoring_of, log), partial(_check, log)),
            challengers=challengers,
        )
        topology = Topology.of(
            self.settings,
            self.plan,
            Resources(self.clock, scoring, entities=self._entities, spans=self._spans, limits=self.limits),
        )
        retries = [topology.retries] if topology.retries is not None else []
        self._pools[partition] = [pool, *retries, challengers.challenger_scoring.pool]
        specs = [self.wrap(stage if isinstance(stage, StageSpec) else topology.spec(stage)) for stage in self._stages]
        self._outputs = {topic for spec in specs for topic in spec.outputs}
        beginnings = dict.fromkeys((topic for spec in specs for topic in spec.inputs), 0)
        lane = self.lanes[partition] = Lane(partition, specs, self.table, beginnings, self.now, suspects)
        lane.pending_seeks()

    def _record_spend(self, paid: Paid) -> None:
        if self._judging is not None:
            self._judging.budget.record_spend(paid)

    def _require_fits_batch(self, output: Output) -> None:
        most = self.limits.batch_bytes(output.topic)
        _, _, key, value, headers, _ = self.limits.fitted(output)
        if (size := record_bytes(key, value, headers)) > most:
            raise AssertionError(
                f"a record that takes {size} bytes of a batch for the topic {output.topic!r} does not fit one of {most} bytes; "
                "the stage must split the record, or write a dead letter for the input record"
            )

    def _raise_failure(self) -> None:
        if self.failures:
            raise self.failures[0]


async def _check(log: ConfigLog, name: str) -> None:
    log.check(name)
