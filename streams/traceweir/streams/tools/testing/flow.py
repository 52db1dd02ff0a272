"""Runs the stages without Kafka: topics, the table and transactions are in memory, and the test sets the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.redaction.entities import EntityFinder
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Cut, End, Output, StageSpec
from traceweir.streams.base.stages.record_limits import RecordLimits, record_bytes
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.base.topics import STAGES, StageName
from traceweir.streams.pipeline.gate.presidio import load_entities
from traceweir.streams.pipeline.topology import Resources, Topology
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.sessions.session_scoring import Measure
from traceweir.streams.tools.testing.builders import START_S
from traceweir.streams.tools.testing.flow_scoring import FlowScoring
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


class Flow(FlowScoring):
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
        isolated: Settings = IsolatedSettings(**({"partitions": 1} | settings))
        super().__init__(isolated, plan if plan is not None else read_plan({}), embedder, judging, hold, spans)
        self.limits = RecordLimits(self.topics.dead_letters)
        """The largest records that the topics accept; a change has an effect from the next `crash` on."""
        self.lanes: dict[int, Lane] = {}
        """The lanes, which run the stages, by partition."""
        self.failures: list[BaseException] = []
        """The errors that would have stopped a worker."""
        self._stages = tuple(stages)
        self._entities = entities if entities is not None else load_entities(self.plan.gate.presidio)
        self._pools: dict[int, list[WorkPool]] = {}
        for partition in range(self.partitions):
            self._start_partition(partition)

    # Events outside the worker

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
        scoring = self._resources_of(partition, pool)
        topology = Topology.of(
            self.settings,
            self.plan,
            Resources(self.clock, scoring, entities=self._entities, spans=self._spans, limits=self.limits),
        )
        retries = [topology.retries] if topology.retries is not None else []
        challengers = [scoring.challengers.challenger_scoring.pool] if scoring.challengers is not None else []
        self._pools[partition] = [pool, *retries, *challengers]
        specs = [self.wrap(stage if isinstance(stage, StageSpec) else topology.spec(stage)) for stage in self._stages]
        self._outputs = {topic for spec in specs for topic in spec.outputs}
        beginnings = dict.fromkeys((topic for spec in specs for topic in spec.inputs), 0)
        lane = self.lanes[partition] = Lane(partition, specs, self.table, beginnings, self.now, suspects)
        lane.pending_seeks()

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
