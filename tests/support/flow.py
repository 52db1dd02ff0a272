"""The three stages without a broker: topics, table and transaction in memory, and time as an argument.

In the spirit of Kafka Streams' TopologyTestDriver, with one difference: a checkpoint is taken in two steps, so that a test can let records,
time or a crash come in between.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from faust.types import TP

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.schemas.session import Session
from traceweir.scorers.embedding import Embedder
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.assemble.stage import AssembleStage, ClosingRules
from traceweir.streams.gate.stage import GateStage
from traceweir.streams.judges.service import Judging
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.kafka.faust_adapter import End
from traceweir.streams.runtime.delivery import MAX_BATCH_BYTES
from traceweir.streams.runtime.lane import Lane, StageSpec
from traceweir.streams.score.judge_retries import RetryPolicy
from traceweir.streams.score.judge_rows import JudgeRows
from traceweir.streams.score.stage import ScoreStage
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.session_scoring import Measure, SessionScoring, score_bytes
from traceweir.streams.stages.base import Cut, Output, Read
from traceweir.streams.stages.errors import RecordUnavailable
from traceweir.streams.stages.work_pool import WorkPool
from traceweir.streams.topics import STAGES, StageName, Topics

TOPICS = Topics.of()
START = 1_767_225_600.0
"""2026-01-01T00:00:00Z, when every flow begins."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record that lies in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def json(self) -> Any:
        """The value, read."""
        return orjson.loads(self.value or b"null")

    @property
    def letter(self) -> DeadLetter:
        """The value and headers of a dead letter, read."""
        return DeadLetter.read(self.key, self.value, self.headers)


class MemoryTable:
    """What Faust's table is to a lane, and what a checkpoint does to it."""

    changelog = "changelog"

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        self.written: list[tuple[bytes, bytes | None]] = []
        """Every row that was ever written, in order."""

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """All rows of a partition."""
        return dict(self._rows[partition])

    def read(self, partition: int, key: bytes) -> bytes | None:
        """One row."""
        return self._rows[partition].get(key)

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]], offset: int) -> None:
        """Write rows; None deletes."""
        for key, value in rows:
            self.written.append((key, value))
            if value is None:
                self._rows[partition].pop(key, None)
            else:
                self._rows[partition][key] = value


class HeldScoring:
    """A scoring that waits, session by session, until it is let go; so a test says in which order sessions finish."""

    def __init__(self, inner: Measure) -> None:
        self._inner = inner
        self._waiting: list[tuple[str, asyncio.Event]] = []
        self.begun: list[str] = []
        """Ids of the sessions that were begun, each as often as it was."""

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = ()) -> ScoringResult:
        self.begun.append(session.session_id)
        go = asyncio.Event()
        place = (session.session_id, go)
        self._waiting.append(place)
        try:
            await go.wait()
        finally:
            self._waiting.remove(place)
        return await self._inner(session, known)

    @property
    def waiting(self) -> list[str]:
        """Ids of the sessions that wait, in the order in which they began."""
        return [name for name, go in self._waiting if not go.is_set()]

    def release(self, session_id: str) -> None:
        """Let a session be scored; all waiting ones of that id."""
        for name, go in self._waiting:
            if name == session_id:
                go.set()


@dataclass
class Flow:
    """Lanes over topics in memory. Make it inside a running event loop.

    Real are the lanes, the stages, the pool and the scoring, that rows, outputs and offsets of a checkpoint become visible together, and
    that a record larger than a batch stops the worker. Not simulated: consumer groups and rebalances, fencing, what a broker does to
    headers, keys or timestamps, retention and compaction, the holes that transaction markers leave between offsets, a state directory
    that is behind its changelog, and threads. A record is readable as soon as its transaction is committed.
    """

    partitions: int = 1
    plan: Plan = field(default_factory=lambda: read_plan(None))
    embedder: Embedder | None = None
    closing: ClosingRules = field(default_factory=ClosingRules)
    stages: Sequence[StageName] = STAGES
    window: int = 2_000
    concurrency: int = 64
    hold: Callable[[Measure], Measure] | None = None
    """Wraps the scoring; `HeldScoring` for one."""
    judging: Judging | None = None

    def __post_init__(self) -> None:
        self.now = START
        self.logs: dict[tuple[str, int], list[Message]] = defaultdict(list)
        self.table = MemoryTable()
        self.lanes: dict[int, Lane] = {}
        scoring: Measure = SessionScoring(self.plan, self.embedder, self.clock, timeout_s=60, judging=self.judging)
        self.scoring = self.hold(scoring) if self.hold else scoring
        self._score_bytes = score_bytes(self.scoring)
        self.failures: list[BaseException] = []
        self.begins = 0
        """Records below this offset can be read once more no longer."""
        self.read_again: list[int] = []
        """Offsets of the records that were read once more."""
        self.reading: asyncio.Event | None = None
        """Whoever reads a record once more waits for it."""
        self.broken = False
        """Whether brokers answer nothing to who reads a record once more."""
        for partition in range(self.partitions):
            self._begin(partition)

    def clock(self) -> datetime:
        """Now, as `evaluated_at` shows it."""
        return datetime.fromtimestamp(self.now, UTC)

    # What the outside does

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
        """Append a record, its timestamp `at` seconds after the start; by default now."""
        log = self.logs[topic, partition]
        timestamp = round(((self.now - START if at is None else at) + START) * 1000)
        raw = orjson.dumps(value) if isinstance(value, Mapping) else value
        log.append(Message(topic, partition, len(log), timestamp, key, raw, headers))
        return log[-1]

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and tell every lane, as after a fetch, how far its inputs are read."""
        self.now += seconds
        for partition in self.lanes:
            self.tick(partition)

    def tick(self, partition: int = 0) -> None:
        """Tell a lane, as after a fetch, the time, and how far its inputs are read: to their end when all of their log was taken."""
        lane = self.lanes[partition]
        ends = {
            TP(topic, partition): End(lane.position[topic], len(self.logs[topic, partition]), self.now)
            for topic in lane.position
        }
        lane.fetched(ends, self.now)

    # What a worker does

    async def take(self, topic: str, count: int | None = None, partition: int = 0) -> int:
        """One fetch, which brings the next records of a topic as one batch; gives how many."""
        lane = self.lanes[partition]
        lane.pending_seeks()  # a consumer would seek; `position` says it all here
        start = lane.position[topic]
        batch = self.logs[topic, partition][start:][:count]
        if batch:
            await lane.take(topic, batch)
        self.tick(partition)
        return len(batch)

    def cut(self, partition: int = 0) -> Cut:
        """The first half of a checkpoint. Whatever comes before `commit` must find the former one's rows."""
        return self.lanes[partition].cut()

    def commit(self, cut: Cut, partition: int = 0) -> list[Message]:
        """The second half: rows and outputs, the offsets' row among them, become visible. Gives the outputs as they lie in their topics."""
        for output in [*(Output("rows", partition, *row) for row in cut.rows), *cut.outputs]:
            _must_fit(output)
        self.table.write(partition, cut.rows, 0)
        return [self._publish(output) for output in cut.outputs]

    def checkpoint(self, partition: int = 0) -> list[Message]:
        """Both halves."""
        return self.commit(self.cut(partition), partition)

    def crash(self, partition: int = 0) -> None:
        """Lose a lane's memory, and begin again from what is committed."""
        self.lanes[partition].drop()
        self._begin(partition)

    async def breathe(self) -> None:
        """Let the scoring run until what is left of it waits for a test."""
        before: object = None
        still = 0
        while still < 5:  # work that gives way to others goes on one turn of the loop later
            await asyncio.sleep(0)
            all_counters = [
                dict(lane.stages["score"].counters) for lane in self.lanes.values() if "score" in lane.stages
            ]  # type: ignore[attr-defined]
            seen = (all_counters, len(self.scoring.begun) if isinstance(self.scoring, HeldScoring) else 0)
            still = still + 1 if seen == before else 0
            before = seen
        if self.failures:
            raise self.failures[0]

    async def settle(self) -> None:
        """Take, score and checkpoint until nothing is left to be read. Time stands still."""
        busy = True
        while busy:
            busy = False
            for partition, lane in self.lanes.items():
                for topic in lane.position:
                    if not lane.full(topic, 20_000):
                        busy = bool(await self.take(topic, 500, partition)) or busy
                await self.breathe()
                busy = bool(self.checkpoint(partition)) or busy

    async def finish(self) -> None:
        """Settle, let all open sessions run out, and settle again."""
        await self.settle()
        self.pass_time((self.closing.idle_gap_ms + self.closing.linger_ms) / 1000 + 1)
        await self.settle()

    # What a reader sees

    def read(self, topic: str) -> list[Message]:
        """All records of a topic, partition by partition."""
        return [message for partition in range(self.partitions) for message in self.logs[topic, partition]]

    def sessions(self) -> list[Any]:
        """The closed sessions."""
        return [message.json for message in self.read(TOPICS.sessions)]

    def letters(self) -> list[DeadLetter]:
        """The dead letters."""
        return [message.letter for message in self.read(TOPICS.dead_letters)]

    def results(self, metric: str | None = None) -> list[Any]:
        """The scores, of one metric or of all."""
        scores = [message.json for message in self.read(TOPICS.results)]
        return [score for score in scores if metric in (None, score["metric"])]

    def counters(self, stage: str) -> dict[str, int]:
        """The committed counts of a stage, over all partitions."""
        total: dict[str, int] = defaultdict(int)
        for partition in range(self.partitions):
            for name, count in orjson.loads(self.table.read(partition, stage.encode() + b"/#") or b"{}").items():
                total[name] += count
        return dict(total)

    def rows(self, prefix: bytes = b"", partition: int = 0) -> dict[bytes, bytes]:
        """The committed rows whose keys begin so."""
        return {key: row for key, row in self.table.rows(partition).items() if key.startswith(prefix)}

    def _publish(self, output: Output) -> Message:
        at = None if output.timestamp is None else output.timestamp / 1000 - START
        return self.send(
            output.topic, output.value, output.key, partition=output.partition, headers=output.headers, at=at
        )

    async def _reread(self, topic: str, partition: int, offset: int) -> Message | None:
        self.read_again.append(offset)
        if self.reading is not None:
            await self.reading.wait()
        if self.broken:
            raise RecordUnavailable
        return None if offset < self.begins else self.logs[topic, partition][offset]

    def _begin(self, partition: int) -> None:
        pool = WorkPool(self.concurrency, self.failures.append)
        self.retries = WorkPool(8, self.failures.append)
        specs = [StageSpec(name, TOPICS.inputs_of(name), self._maker(name, pool)) for name in self.stages]
        beginnings = dict.fromkeys((topic for spec in specs for topic in spec.inputs), 0)
        lane = self.lanes[partition] = Lane(partition, specs, self.table, beginnings, self.now)  # type: ignore[arg-type]
        lane.pending_seeks()

    def _maker(self, name: StageName, pool: WorkPool) -> Callable[[int, Read, Callable[[], None]], Any]:
        def make(partition: int, read: Read, changed: Callable[[], None]) -> Any:
            if name == "assemble":
                return AssembleStage(partition, self.partitions, TOPICS, read, self.closing)
            if name == "score":
                rows = JudgeRows(
                    self.plan.judge.cache, self.judging.budget.record_spend if self.judging else lambda paid: None
                )
                return ScoreStage(
                    partition,
                    self.partitions,
                    TOPICS,
                    self._score_bytes,
                    pool,
                    changed,
                    window=self.window,
                    judge_rows=rows,
                    once_more=RetryPolicy.of(self.plan, self._reread, self.retries),
                )
            return GateStage(partition, self.partitions, TOPICS, self.plan, self.clock)

        return make


def _must_fit(output: Output) -> None:
    own = len(output.key or b"") + len(output.value or b"")
    size = own + sum(len(name) + len(content or b"") for name, content in output.headers)
    if size > MAX_BATCH_BYTES - 100:
        raise AssertionError(f"a record of {size} bytes for {output.topic} does not fit a batch of {MAX_BATCH_BYTES}")


def event(kind: str = "model.called", session_id: str = "s", at: float = 0, **fields: Any) -> dict[str, Any]:
    """An event that occurred so many seconds after the start; what its type needs is filled in."""
    needs: dict[str, dict[str, Any]] = {
        "model.called": {"model": "m"},
        "tool.called": {"name": "find"},
        "tool.returned": {"name": "find"},
    }
    occurred_at = instant(at)
    return {
        "type": kind,
        "session_id": session_id,
        "invocation_id": "i",
        "occurred_at": occurred_at,
        **needs.get(kind, {}),
        **fields,
    }


def trace(
    number: int | str = 1, session_id: str | None = "s", at: float = 0, domain: str = "travel", **changes: Any
) -> dict[str, Any]:
    """A trace worth publishing; `metadata` and `outcome` are merged, the rest replaced."""
    document: dict[str, Any] = {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": instant(at),
            "task_domain": domain,
            "success": True,
            "quality_score": 0,
            "visibility": "network",
            "privacy_level": "aggregated",
            **({} if session_id is None else {"session_id": session_id}),
        },
        "task": {"objective": f"Book seat {number}"},
        "steps": [
            {"step_id": 0, "type": "thought", "content": f"Think of {number}."},
            {"step_id": 1, "type": "tool_call", "content": "Look.", "tool": {"name": "search"}},
            {"step_id": 2, "type": "error_recovery", "content": "Again.", "tool": {"name": "book"}},
            {"step_id": 3, "type": "observation", "content": "Found."},
        ],
        "outcome": {"result_summary": "Booked", "confidence": 1.0},
    }
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(document.get(key), dict) else value
    return document


def instant(at: float) -> str:
    """So many seconds after the start, as a UTC date-time that ends in Z."""
    moment = datetime.fromtimestamp(START, UTC) + timedelta(seconds=at)
    return moment.isoformat().replace("+00:00", "Z")
