"""The stages without Kafka: topics, table and transactions in memory, and time as an argument."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.judges.budget import Paid
from traceweir.streams.judges.service import Judging
from traceweir.streams.runtime.lane import Lane
from traceweir.streams.scoring.session_scoring import Measure, SessionScoring, score_bytes
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import MAX_BATCH_BYTES, Cut, End, Output, StageSpec
from traceweir.streams.stages.counters import COUNTERS_ROW
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.testing.builders import START_S
from traceweir.streams.testing.held_scoring import HeldScoring
from traceweir.streams.testing.memory import MemoryTable, Message
from traceweir.streams.topics import STAGES, StageName, Topics
from traceweir.streams.topology import Resources, ScoringResources, Topology

_BATCH_OVERHEAD_BYTES = 100
_FETCH = 500
_FULL = 20_000
"""Records of a partition that wait for a checkpoint before it takes no more."""


class _OwnSettings(Settings):
    """The documented defaults and what the test changes: a test must not depend on the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read what is handed in, and nothing else."""
        return (init_settings,)


class Flow:
    """The stages of a worker, over topics in memory. Make it inside a running event loop.

    Real are the stages, how they are built (`Topology`), the order in which they get records, the scoring, and the checkpoint: rows,
    outputs and offsets become visible together, and a record that does not fit a batch fails the test.

    Not simulated are: consumer groups, rebalances and fencing; retention, compaction, and the holes that transactions leave between
    offsets; the local state directory; the process that scoring runs in, and its end by a scorer; the topic `references` (put the
    reference into the event). Each partition has work pools of its own, as if each were owned by a worker of its own. Timeouts of scorers
    are those of the settings, in real time.

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
        **settings: Any,
    ) -> None:
        """Begin at `START_S` with empty topics and tables.

        Args:
            plan: What is measured, and what the gate asks for; by default that of no config.
            stages: The stages that run, in the order of the path: names of shipped ones, or a `StageSpec` for one of your own.
            embedder: Makes the vectors that novelty is measured by; None: novelty is 0.5.
            judging: Given the flow's clock, makes what asks judges; None: what asks a judge is NOT_EVALUATED `error`.
            hold: Wraps the scoring of a session; `HeldScoring` lets the test decide when a session is scored.
            settings: Settings by the names of their fields, such as `idle_gap_s=60`; for all others their defaults hold, whatever
                the environment says, but for `partitions`, which is 1.

        Raises:
            pydantic.ValidationError: a setting does not exist or is out of its range.
        """
        self.settings: Settings = _OwnSettings(**({"partitions": 1} | settings))
        self.partitions = self.settings.partitions
        self.plan = plan if plan is not None else read_plan(None)
        self.topics = Topics.of(self.settings.topic_prefix)
        self.now = START_S
        """Seconds since 1970."""
        self.logs: dict[tuple[str, int], list[Message]] = defaultdict(list)
        """By topic and partition, the records that lie there; the index is the offset."""
        self.table = MemoryTable()
        self.lanes: dict[int, Lane] = {}
        """By partition, what runs the stages there."""
        self.failures: list[BaseException] = []
        """What would have ended the worker."""
        self._stages = tuple(stages)
        self._judging = judging(self.clock) if judging is not None else None
        scoring: Measure = SessionScoring(
            self.plan,
            embedder,
            self.clock,
            timeout_s=self.settings.score_timeout_s,
            judging=self._judging,
            judge_timeout_s=self.settings.judge_timeout_s,
        )
        self.scoring = hold(scoring) if hold is not None else scoring
        """What scores a session."""
        self._pools: dict[int, list[WorkPool]] = {}
        for partition in range(self.partitions):
            self._begin(partition)

    def clock(self) -> datetime:
        """The flow's time, as it stands in `evaluated_at`."""
        return datetime.fromtimestamp(self.now, UTC)

    # What the world outside does

    def send(
        self,
        topic: str,
        value: bytes | Mapping[str, Any] | None,
        key: bytes | None = None,
        *,
        partition: int = 0,
        headers: Headers = (),
        at: float | None = None,
    ) -> Message:
        """Append a record to a topic. No stage has read it yet.

        Args:
            topic: The full name of the topic, such as `flow.topics.traces`.
            value: Bytes, an object to be written as JSON, or None for a tombstone.
            key: The record's key.
            partition: Where it lies. A record whose session lives elsewhere is forwarded by assemble, as in a worker.
            headers: The record's headers.
            at: Its timestamp, in seconds after the start; None: now.
        """
        log = self.logs[topic, partition]
        timestamp = round(((self.now - START_S if at is None else at) + START_S) * 1000)
        raw = orjson.dumps(value) if isinstance(value, Mapping) else value
        log.append(Message(topic, partition, len(log), timestamp, key, raw, headers))
        return log[-1]

    def pass_time(self, seconds: float) -> None:
        """Move the clock on, and tell every stage the time and how far its inputs are read. `settle` then takes what came of it."""
        self.now += seconds
        for partition in self.lanes:
            self.tick(partition)

    def crash(self, partition: int = 0) -> None:
        """Lose what a partition has in memory, and begin again from its last finished checkpoint."""
        self.lanes[partition].drop()
        self._begin(partition)

    # What a worker does, step by step

    def tick(self, partition: int = 0) -> None:
        """Tell the stages of a partition the time, and which inputs are read to their end, as after a fetch."""
        lane = self.lanes[partition]
        ends = {
            (topic, partition): End(position, len(self.logs[topic, partition]), self.now)
            for topic, position in lane.position.items()
        }
        lane.fetched(ends, self.now)

    async def take(self, topic: str, count: int | None = None, partition: int = 0) -> int:
        """Give the next records of a topic to its stage, in one batch, as a fetch does.

        Args:
            topic: The topic.
            count: At most so many; None: all that are there.
            partition: The partition.

        Returns:
            How many there were.
        """
        lane = self.lanes[partition]
        lane.pending_seeks()  # a consumer would seek; here `position` is where it reads
        start = lane.position[topic]
        batch = self.logs[topic, partition][start:][:count]
        if batch:
            await lane.take(topic, batch)
        self.tick(partition)
        return len(batch)

    async def run_scoring(self) -> None:
        """Let sessions be scored until all that are left wait for something else than a turn of the event loop.

        Raises:
            BaseException: the first of what would have ended the worker.
        """
        before: object = None
        unchanged = 0
        while unchanged < 5:  # work that gives way to others goes on one turn of the loop later
            await asyncio.sleep(0)
            counters = [
                dict(getattr(stage, "counters", {})) for lane in self.lanes.values() for stage in lane.stages.values()
            ]
            seen = (counters, len(self.scoring.begun) if isinstance(self.scoring, HeldScoring) else 0)
            unchanged = unchanged + 1 if seen == before else 0
            before = seen
        self._raise_failure()

    async def finish_scoring(self) -> None:
        """Wait until no session is being scored: for scorers and judges that wait for a thread, a socket or real time.

        It never returns while `HeldScoring` holds a session.

        Raises:
            BaseException: the first of what would have ended the worker.
        """
        for pools in self._pools.values():
            for pool in pools:
                await pool.idle()
        self._raise_failure()

    def cut(self, partition: int = 0) -> Cut:
        """The first half of a checkpoint: what came about since the last one. Nothing of it is visible before `commit`."""
        return self.lanes[partition].cut()

    def commit(self, cut: Cut, partition: int = 0) -> list[Message]:
        """The second half of a checkpoint: rows and outputs become visible at once.

        Returns:
            The outputs, as they lie in their topics.

        Raises:
            AssertionError: an output does not fit a batch, or goes to a topic that no running stage names among its outputs.
        """
        for output in cut.outputs:
            if output.topic not in self._outputs:
                raise AssertionError(f"no stage names {output.topic!r} among its outputs: {sorted(self._outputs)}")
        for output in [*(Output("rows", partition, *row) for row in cut.rows), *cut.outputs]:
            _require_that_it_fits(output)
        self.table.write(partition, cut.rows)
        return [self._publish(output) for output in cut.outputs]

    def checkpoint(self, partition: int = 0) -> list[Message]:
        """Both halves of a checkpoint, with nothing in between."""
        return self.commit(self.cut(partition), partition)

    async def settle(self) -> None:
        """Read, score and checkpoint until no partition has anything left to do. Time stands still."""
        busy = True
        while busy:
            busy = False
            for partition, lane in self.lanes.items():
                for topic in lane.position:
                    if not lane.full(topic, _FULL):
                        busy = bool(await self.take(topic, _FETCH, partition)) or busy
                await self.run_scoring()
                busy = bool(self.checkpoint(partition)) or busy

    async def finish(self) -> None:
        """Settle, let time pass until every open session has closed, and settle again."""
        await self.settle()
        self.pass_time(self.settings.idle_gap_s + self.settings.close_linger_s + 1)
        await self.settle()

    async def read_record(self, topic: str, partition: int, offset: int) -> Message | None:
        """Returns a record again, as the score stage reads it for `judge.retry_later`; None if the topic has no such record.

        Override this method to let records disappear, or brokers fail.
        """
        log = self.logs[topic, partition]
        return log[offset] if offset < len(log) else None

    # What a reader sees

    def read(self, topic: str) -> list[Message]:
        """All records of a topic, partition by partition."""
        return [message for partition in range(self.partitions) for message in self.logs[topic, partition]]

    def sessions(self) -> list[Any]:
        """The closed sessions, each revision of each, parsed from JSON."""
        return [message.json for message in self.read(self.topics.sessions)]

    def results(self, metric: str | None = None) -> list[Any]:
        """The scores of one metric or of all, parsed from JSON, each revision of each."""
        scores = [message.json for message in self.read(self.topics.results)]
        return [score for score in scores if metric in (None, score["metric"])]

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters: why which record could not be used."""
        return [message.dead_letter for message in self.read(self.topics.dead_letters)]

    def counters(self, stage: str) -> dict[str, int]:
        """The counts of a stage as of the last checkpoint, over all partitions."""
        total: dict[str, int] = defaultdict(int)
        for partition in range(self.partitions):
            row = self.table.read(partition, stage.encode() + b"/" + COUNTERS_ROW)
            for name, count in orjson.loads(row or b"{}").items():
                total[name] += count
        return dict(total)

    def rows(self, prefix: bytes = b"", partition: int = 0) -> dict[bytes, bytes]:
        """The rows of a partition whose keys begin with this prefix, as of the last checkpoint. A stage's rows begin with its name."""
        return {key: row for key, row in self.table.rows(partition).items() if key.startswith(prefix)}

    def _publish(self, output: Output) -> Message:
        at = None if output.timestamp is None else output.timestamp / 1000 - START_S
        return self.send(
            output.topic, output.value, output.key, partition=output.partition, headers=output.headers, at=at
        )

    def _begin(self, partition: int) -> None:
        pool = WorkPool(self.settings.score_concurrency, self.failures.append)
        scoring = ScoringResources(score_bytes(self.scoring), pool, self._record_spend, self.read_record)
        topology = Topology.of(self.settings, self.plan, Resources(self.clock, scoring))
        self._pools[partition] = [pool, *([topology.retries] if topology.retries is not None else [])]
        specs = [stage if isinstance(stage, StageSpec) else topology.spec(stage) for stage in self._stages]
        self._outputs = {topic for spec in specs for topic in spec.outputs}
        beginnings = dict.fromkeys((topic for spec in specs for topic in spec.inputs), 0)
        lane = self.lanes[partition] = Lane(partition, specs, self.table, beginnings, self.now)
        lane.pending_seeks()

    def _record_spend(self, paid: Paid) -> None:
        if self._judging is not None:
            self._judging.budget.record_spend(paid)

    def _raise_failure(self) -> None:
        if self.failures:
            raise self.failures[0]


def _require_that_it_fits(output: Output) -> None:
    size = len(output.key or b"") + len(output.value or b"")
    size += sum(len(name) + len(content or b"") for name, content in output.headers)
    if size > MAX_BATCH_BYTES - _BATCH_OVERHEAD_BYTES:
        raise AssertionError(
            f"a record of {size} bytes for {output.topic!r} does not fit a batch of {MAX_BATCH_BYTES} bytes: its stage must divide it, or "
            "put the record that it comes from aside as a dead letter"
        )
