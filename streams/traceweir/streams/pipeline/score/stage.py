"""Defines the score stage, which scores every closed session and sends its traces to the gate as candidates.

Sessions finish in any order (`offset_tracker`), so that a slow judge delays only its own session. The revisions of one
session are scored one after the other (`revision_queue`). Sessions are scored again if criteria wait for a later
revision, or if a judge was unavailable (`judge_retries`). With configs of the topic `configs`, the offset of a session
decides by which one it is scored (`config_spans`). A challenger scores a part of the sessions too, afterwards
(`challenger_work`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from traceweir.schemas.dead_letter import Reason, is_replay
from traceweir.schemas.text import printable
from traceweir.streams.base.stages.base import MAX_KEY_BYTES, Cut, Output, Record, dead_letter
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordFailed, RecordRejected, RecordUnavailable
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.watermark import Watermark
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.score.candidate_changes import CandidateChanges
from traceweir.streams.pipeline.score.challenger_work import ChallengerWork
from traceweir.streams.pipeline.score.judge_retries import JudgeRetries, RetryPolicy
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker
from traceweir.streams.pipeline.score.pending_retry import PendingRetry
from traceweir.streams.pipeline.score.resources import Bounds, ScoringResources
from traceweir.streams.pipeline.score.revision_queue import RevisionQueue
from traceweir.streams.pipeline.score.session_configs import SessionConfigs
from traceweir.streams.pipeline.score.session_header import is_revision, segment_of, session_of
from traceweir.streams.scoring.sessions.errors import SessionRejected
from traceweir.streams.scoring.sessions.result import OfferedCandidate, ScoringResult

_DONE = b"d"
DETAIL_CHARS = 4_000
"""Maximum number of characters in the detail of a bad config's dead letter."""
WINDOW_BYTES = 64 << 20
"""Maximum number of bytes of sessions in flight; `window` sessions of the largest size would take gigabytes."""


class ScoreStage:
    """Scores the closed sessions of one partition."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        resources: ScoringResources,
        changed: Callable[[], None],
        *,
        bounds: Bounds,
        judge_rows: JudgeRows,
        retry_policy: RetryPolicy,
    ) -> None:
        """Starts without sessions.

        Args:
            partition: Number of this partition.
            partitions: Number of partitions.
            topics: Names of the topics.
            resources: What the stage uses and does not own.
            changed: Called when there are changes to cut.
            bounds: How many sessions are in flight, how long a session can get revisions, and the largest records.
            judge_rows: Stored verdicts and spending of judges.
            retry_policy: How sessions are scored again.
        """
        self._limits = limits = bounds.records
        self._partition = partition
        self._partitions = partitions
        self._topics = topics
        self._pool = resources.pool
        self._changed = changed
        self._window = bounds.window
        self._offsets = OffsetTracker()
        self._bytes = 0
        self._revision_queue = RevisionQueue()
        self._candidate_changes = CandidateChanges(bounds.revised_within_ms)
        self._judge_rows = judge_rows
        self._retry_policy = retry_policy
        self._selects = resources.selects
        self._judge_retries = JudgeRetries(retry_policy.config)
        self._watermark = Watermark()
        self._configs = applied = SessionConfigs(partition, resources.score, resources.configs)
        self._written = b""
        self._committed: int | None = None
        self._outputs: list[Output] = []
        self._dropped = False
        self._failed: RecordFailed | None = None
        self.counters = Counters()
        # Without `self` in the function, nothing in the stage refers to the stage, so that it is freed at its last use.
        self._challenger_work = ChallengerWork(
            partition,
            topics,
            resources.challengers,
            judge_rows,
            self.counters,
            changed,
            lambda: applied.is_behind,
            limits,
        )

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint."""
        self.counters.load(rows)
        self._written = rows.get(_DONE, b"")
        self._offsets.load(self._written)
        self._candidate_changes.load(rows)
        self._judge_rows.load(rows)
        self._judge_retries.load(rows)
        self._configs.load(rows)
        self._challenger_work.load(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Starts to score the sessions that are not done yet."""
        self._configs.take(self._offsets.frontier(records[0].offset))
        for record in records:
            self._watermark.note_reached(topic, record.timestamp)
            if not self._offsets.begin(record.offset):
                continue
            self._bytes += len(record.value or b"")
            if len(record.key or b"") > MAX_KEY_BYTES:
                detail = (
                    f"the record's key has {len(record.key or b'')} bytes; a session id has {MAX_KEY_BYTES} at most"
                )
                self._reject(record, "too_large", detail)
                self._finish(record)
                continue
            if not self._selects(record):
                self.counters["left_out"] += 1
                self._finish(record)
                continue
            now, superseded = self._revision_queue.admit(record)
            if now:
                self._pool.add(self._work, record)
            elif superseded is not None:
                self.counters["superseded"] += 1
                self._finish(superseded)

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        """Turns the next record of the input topic into a dead letter, without any other effect."""
        if self._offsets.begin(record.offset):
            self._bytes += len(record.value or b"")
            self._reject(record, why.reason, why.detail)
            self._finish(record)
        elif why.reason == "missed":
            # The last of the missed records was scored before; others were not.
            self._reject(record, why.reason, why.detail)
            self.counters["consumed"] += 1
            self._changed()

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Takes new configs, deletes expired verdicts, and scores the sessions again whose next attempt is due."""
        # Without a record so far, the offset of the next session is unknown. The row of new configs is written now, so that
        # they do not wait for a session to be known.
        if self._offsets.mark is not None and self._configs.take(self._offsets.frontier(0)):
            self._changed()
        self._report_bad_configs()
        self._judge_rows.tick(now)
        self._challenger_work.tick(now)
        # No row keeps the watermark: a lower one after a restart only prolongs the waits.
        self._watermark.advance(now, behind)
        for row_key in self._judge_retries.take_due(now, self._watermark.at):
            self._retry_policy.pool.add(self._retry, row_key)

    def full(self) -> bool:
        """Returns whether the limit of sessions, or of bytes of sessions, in flight is reached."""
        return len(self._offsets) >= self._window or self._bytes >= WINDOW_BYTES

    @property
    def in_flight(self) -> int:
        """Number of sessions that were taken and are not scored."""
        return len(self._offsets)

    def has_outputs(self) -> bool:
        """Returns whether there are new scores, candidates or dead letters, or a failure that the next cut raises."""
        return bool(self._outputs or self._challenger_work.outputs) or self._failed is not None

    @property
    def settling(self) -> int:
        """Number of sessions of which criteria wait for a later revision."""
        return self._judge_retries.settling

    @property
    def waiting_for_judge(self) -> int:
        """Number of sessions that are scored again because a judge was unavailable."""
        return len(self._judge_retries) - self._judge_retries.settling

    @property
    def waiting_for_challenger(self) -> int:
        """Number of sessions that a challenger has yet to score."""
        return len(self._challenger_work)

    def cut(self) -> Cut:
        """Returns new scores and candidates, and the offset below which all sessions are done.

        Raises:
            RecordFailed: the stage could not take up the result of a session.
        """
        if self._failed is not None:
            raise self._failed
        offsets = {}
        rows = [
            *self._candidate_changes.rows(),
            *self._judge_rows.rows(),
            *self._judge_retries.rows(),
            *self._challenger_work.rows(),
            *self.counters.rows(),
        ]
        mark = self._offsets.mark
        rows += self._configs.rows(self._floor)
        if mark is not None and mark != self._committed:
            offsets[self._topics.sessions] = self._committed = mark
        row = self._offsets.row()
        if row != self._written:
            self._written = row
            rows.append((_DONE, row or None))
        outputs = [*self._outputs, *self._challenger_work.outputs]
        self._outputs = []
        self._challenger_work.outputs = []
        return Cut(rows, outputs, offsets)

    def _floor(self) -> int | None:
        """Returns the offset below which no session can be scored any more; None if it is unknown."""
        mark = self._offsets.mark
        waiting = self._judge_retries.first_offset
        return mark if mark is None or waiting is None else min(mark, waiting)

    def drop(self) -> None:
        """Prevents running work from publishing, and subtracts the partition's spending from the budget."""
        self._dropped = True
        self._judge_rows.drop()
        self._challenger_work.drop()

    async def _work(self, record: Record) -> None:
        if self._dropped:
            return
        key = record.key or b""
        result: ScoringResult | SessionRejected
        try:
            scoring = await self._configs.scoring_at(record.offset)
            result = await scoring(record.value or b"", self._judge_rows.known(key))
        except SessionRejected as why:
            result = why
        if self._dropped:
            return
        try:
            self._take_up(record, key, result)
        except Exception as error:  # noqa: BLE001  # the lane decides whether the record is poison
            self._failed = self._failed or RecordFailed(self._topics.sessions, record.offset, error)
            self._changed()

    def _take_up(self, record: Record, key: bytes, result: ScoringResult | SessionRejected) -> None:
        self._judge_rows.learn(key, result.judged)
        if isinstance(result, SessionRejected):
            self._reject(record, result.reason, result.detail)
        elif (problem := self._too_large(key, result)) is not None:
            self._reject(record, "too_large", problem)
        else:
            self.counters["scored"] += 1
            if self._judge_retries.note(key, record.offset, record.timestamp, result):
                self.counters["settling" if result.settle_s else "deferred"] += 1
            if self._judge_retries.dropped:
                self.counters["retries.dropped"] += self._judge_retries.dropped
                self._judge_retries.dropped = 0
            self._publish(record, result, result.candidates)
            self._challenger_work.note(record, result)
        self._complete(record)

    async def _retry(self, row_key: bytes) -> None:
        """Retries a session, if its record can be read and no revision of the session is in flight."""
        retries = self._judge_retries
        policy = self._retry_policy
        key = session_of(row_key)
        pending = retries.get(row_key)
        if self._dropped or pending is None or self._revision_queue.busy(key):
            retries.put_back(row_key)
            return
        try:
            record = await policy.read(self._topics.sessions, self._partition, pending.offset)
        except RecordUnavailable:
            self.counters["retries.unread"] += 1
            retries.put_back(row_key)
            return
        if self._dropped:
            return
        # A later revision came meanwhile.
        if pending != retries.get(row_key) or self._revision_queue.busy(key):
            retries.put_back(row_key)
        elif not is_revision(record, key, segment_of(row_key), pending.revision):
            self.counters["retries.expired"] += 1
            retries.give_up(row_key)
        else:
            self._revision_queue.admit(record)
            # With the config of the first attempt, so that the attempts of a revision differ in nothing else.
            configs = self._configs.at(pending.offset)
            await self._score_again(row_key, pending, record, policy.regates or bool(configs))
        self._changed()

    async def _score_again(self, row_key: bytes, pending: PendingRetry, record: Record, regates: bool) -> None:
        """Scores a session again, and publishes under the next attempt number."""
        key = record.key or b""
        result: ScoringResult | SessionRejected
        try:
            scoring = await self._configs.scoring_at(pending.offset)
            result = await scoring(record.value or b"", self._judge_rows.known(key), pending.attempt + 1)
        except SessionRejected as why:
            result = why
        if self._dropped:
            return
        self._judge_rows.learn(key, result.judged)
        before = len(self._outputs)
        try:
            self._take_up_again(row_key, pending, record, result, regates)
        except Exception as error:  # noqa: BLE001  # the session has its scores of before, and another attempt would raise again
            del self._outputs[before:]
            self._judge_retries.give_up(row_key)
            self.counters["retries.failed"] += 1
            if pending.settle_ms:
                detail = f"the scores after the wait of settle_s could not be taken up: {type(error).__name__}: {error}"
                self._reject_settled(record, "scoring_failed", detail)
        self._next_turn(record)

    def _take_up_again(
        self,
        row_key: bytes,
        pending: PendingRetry,
        record: Record,
        result: ScoringResult | SessionRejected,
        regates: bool,
    ) -> None:
        """Publishes the result of a further attempt.

        After an outage of a judge, only if more scores than before have a value. After a wait, in any case, because
        the published scores say that they wait; without a result and a further attempt, the session is a dead letter.
        """
        settles = pending.settle_ms > 0
        reason: Reason = "too_large"
        if isinstance(result, SessionRejected):
            reason = result.reason
            problem: str | None = result.detail
            waiting = max(pending.unanswered, int(settles))
        else:
            problem = self._too_large(record.key or b"", result)
            waiting = result.waiting if settles or result.replied else pending.unanswered
            if problem is None and (settles or result.unanswered < pending.unanswered):
                self._publish(record, result, result.candidates if regates else ())
                self._judge_retries.retried(row_key, result.waiting, published=True)
                self.counters["retried"] += 1
                return
        self.counters["retries.unsuccessful"] += 1
        goes_on = self._judge_retries.retried(row_key, waiting, published=False)
        if settles and problem is not None and not goes_on:
            self._reject_settled(record, reason, problem)

    def _reject_settled(self, record: Record, reason: Reason, detail: str) -> None:
        # The session is counted as scored too, by its first attempt.
        self.counters["retries.rejected"] += 1
        self._reject(record, reason, detail)

    def _publish(self, record: Record, result: ScoringResult, offered: Sequence[OfferedCandidate]) -> None:
        # The session itself can claim any time.
        last_record_ms = min(result.last_record_ms, record.timestamp)
        candidates = self._candidate_changes.changed(record.key or b"", result, last_record_ms, offered)
        self.counters["candidates"] += len(candidates)
        if unchanged := len(result.candidates) - len(candidates):
            self.counters["unchanged"] += unchanged
        for outcome, count in result.outcomes.items():
            self.counters[f"scores.{outcome}"] += count
        self._outputs += [Output(self._topics.results, self._partition, record.key, score) for score in result.scores]
        for candidate in candidates:
            scope = candidate.scope.encode()
            home = partition_of(scope, self._partitions)
            self._outputs.append(Output(self._topics.candidates, home, scope, candidate.value))

    def _too_large(self, key: bytes, result: ScoringResult) -> str | None:
        """Returns a sentence if one of the outputs does not fit its topic. The session is then published in no part."""
        topics = self._topics
        outputs = [(topics.results, key, score) for score in result.scores]
        outputs += [(topics.candidates, each.scope.encode(), each.value) for each in result.candidates]
        return next(filter(None, (self._limits.problem(*output) for output in outputs)), None)

    def _report_bad_configs(self) -> None:
        for bad in self._configs.bad_records():
            self.counters["configs.refused"] += 1
            to = self._topics.dead_letters
            source = self._topics.configs
            detail = printable(bad.detail, DETAIL_CHARS)
            self._outputs.append(dead_letter(to, source, self._partition, bad.record, "score", "invalid", detail))

    def _reject(self, record: Record, reason: Reason, detail: str) -> None:
        self.counters[f"dead_lettered.{reason}"] += 1
        to = self._topics.dead_letters
        source = self._topics.sessions
        self._outputs.append(dead_letter(to, source, self._partition, record, "score", reason, detail))

    def _complete(self, record: Record) -> None:
        self._finish(record)
        self._next_turn(record)

    def _next_turn(self, record: Record) -> None:
        following = self._revision_queue.release(record)
        if following is not None:
            self._pool.add(self._work, following)

    def _finish(self, record: Record) -> None:
        # Counted at the end, because sessions in flight at a crash are read again.
        self.counters["consumed"] += 1
        if is_replay(record.headers):
            self.counters["replayed"] += 1
        self._bytes -= len(record.value or b"")
        self._offsets.end(record.offset)
        self._changed()
