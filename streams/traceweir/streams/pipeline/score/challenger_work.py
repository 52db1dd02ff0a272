"""Scores sessions by a challenger, after the champion's scores of the session are ready to be published.

Nothing here delays, fails or changes the champion: what a challenger cannot score is counted, and costs nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from traceweir.streams.base.stages.base import Output, Record, Rows
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.score.challenger_rows import ChallengerRows, HeldBytes, WaitingSession
from traceweir.streams.pipeline.score.challengers import Challengers
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.pipeline.score.session_header import is_revision, segment_of, session_of
from traceweir.streams.scoring.judges.verdicts import JudgeUsage
from traceweir.streams.scoring.sessions.errors import ChallengerUnavailable, SessionRejected
from traceweir.streams.scoring.sessions.result import ScoringResult

log = logging.getLogger(__name__)


class ChallengerWork:
    """The work of challengers on one partition.

    Args:
        partition: Number of the partition.
        topics: Names of the topics.
        challengers: The challengers in effect; None: none ever is, and sessions that a former worker left keep waiting.
        verdicts: The stored verdicts of judges, which champion and challenger share.
        counters: Receives the counts, as `challenger.*`.
        changed: Called when there are changes to cut.
        is_behind: Returns whether this process has read less of the topic `configs` than the partition's former owner.
        limits: The largest records that the topics accept.
    """

    def __init__(
        self,
        partition: int,
        topics: Topics,
        challengers: Challengers | None,
        verdicts: JudgeRows,
        counters: Counters,
        changed: Callable[[], None],
        is_behind: Callable[[], bool],
        limits: RecordLimits,
    ) -> None:
        self._limits = limits
        self._partition = partition
        self._topics = topics
        self._challengers = challengers
        self._verdicts = verdicts
        self._counters = counters
        self._changed = changed
        self._is_behind = is_behind
        self._rows = ChallengerRows(HeldBytes(0) if challengers is None else challengers.held_bytes)
        self._running: dict[bytes, WaitingSession] = {}
        self._dropped = False
        self.outputs: list[Output] = []
        """The scores that the next cut takes."""

    def __len__(self) -> int:
        """Returns the number of sessions that wait."""
        return len(self._rows)

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint."""
        self._rows.load(rows)
        self._record_spend(1)

    def note(self, record: Record, result: ScoringResult) -> None:
        """Takes a session whose scores by the champion are ready, if a challenger scores it too."""
        if not result.challenger or self._challengers is None or self._dropped:
            return
        state = self._rows.note(record, result)
        if state != "waiting":
            self._counters[f"challenger.{state}"] += 1
        self._start(None)

    def tick(self, now: float) -> None:
        """Starts what can be scored; `now` is in seconds since 1970."""
        self._start(now)

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        return self._rows.rows()

    def drop(self) -> None:
        """Prevents running work from publishing, and subtracts the partition's spending from the budgets, once."""
        if not self._dropped:
            self._dropped = True
            self._record_spend(-1)
            self._rows.forget_records()

    def _record_spend(self, sign: int) -> None:
        if self._challengers is not None:
            for challenger, payments in self._rows.paid():
                for paid in payments:
                    self._challengers.challenger_scoring.record_spend(challenger, paid if sign > 0 else paid.taken_back)

    def _start(self, now: float | None) -> None:
        if self._challengers is not None:
            for row_key in self._rows.take_ready(now):
                self._challengers.challenger_scoring.pool.add(self._work, row_key)

    async def _work(self, row_key: bytes) -> None:
        waiting = self._rows.get(row_key)
        challengers = self._challengers
        if self._dropped or waiting is None or challengers is None or self._running.get(row_key) is waiting:
            return
        self._running[row_key] = waiting
        try:
            await self._score(row_key, waiting, challengers)
        except (RecordUnavailable, ChallengerUnavailable):
            self._put_back(row_key, waiting)
        except asyncio.CancelledError:
            # Also of a future that the work awaits: the session would never be scored.
            self._put_back(row_key, waiting)
            raise
        except Exception:
            log.exception("a challenger could not score a session, which is left out for it")
            self._end(row_key, waiting, "failed")
        finally:
            if self._running.get(row_key) is waiting:
                del self._running[row_key]

    async def _score(self, row_key: bytes, waiting: WaitingSession, challengers: Challengers) -> None:
        """Scores a session once.

        Raises:
            RecordUnavailable: the session cannot be read now.
            ChallengerUnavailable: the challenger cannot score, or its scores cannot be written, now.
        """
        challenger_scoring = challengers.challenger_scoring
        key = session_of(row_key)
        challenger = challengers.in_effect.get(waiting.challenger)
        if challenger is None:
            if self._is_behind():
                raise ChallengerUnavailable
            self._end(row_key, waiting, "ended")
            return
        if not (challenger_scoring.writable(challenger.name) and challenger_scoring.available(challenger)):
            raise ChallengerUnavailable
        record = self._rows.held(row_key) or await challenger_scoring.read(
            self._topics.sessions, self._partition, waiting.offset
        )
        if self._dropped or self._rows.get(row_key) is not waiting:
            return
        if not is_revision(record, key, segment_of(row_key), waiting.revision):
            self._end(row_key, waiting, "expired")
            return
        scores: Sequence[bytes] = ()
        try:
            result = await challenger_scoring.score(challenger, record.value or b"", self._verdicts.known(key))
            judged = result.judged
            scores = result.scores
            outcome = "scored"
            topic = self._topics.shadow_results(challenger.name)
            if any(self._limits.problem(topic, key, score) for score in scores):
                scores = ()
                outcome = "rejected.too_large"
        except SessionRejected as why:
            judged = why.judged
            outcome = f"rejected.{why.reason}"
        if self._dropped:
            return
        self._rows.pay(challenger.id, list(judged.paid))
        # A retry of the champion can have got another answer to the same question meanwhile: the champion's answer stays.
        known = {verdict.key for verdict in self._verdicts.known(key)}
        new = [verdict for verdict in judged.verdicts if verdict.key not in known]
        self._verdicts.learn(key, JudgeUsage(new, known_cases=judged.known_cases))
        # The topic has gone meanwhile.
        if not challenger_scoring.writable(challenger.name):
            self._changed()
            raise ChallengerUnavailable
        self._end(row_key, waiting, outcome, challenger.name, scores)

    def _put_back(self, row_key: bytes, waiting: WaitingSession) -> None:
        # Else a later revision has come, which is tried already.
        if self._rows.get(row_key) is waiting:
            self._rows.put_back(row_key)

    def _end(
        self, row_key: bytes, waiting: WaitingSession, outcome: str, name: str = "", scores: Sequence[bytes] = ()
    ) -> None:
        # Else a later revision has come, which is counted already.
        if self._rows.get(row_key) is waiting:
            topic = self._topics.shadow_results(name) if scores else ""
            self.outputs += [Output(topic, self._partition, session_of(row_key), score) for score in scores]
            self._rows.end(row_key)
            self._counters[f"challenger.{outcome}"] += 1
        self._changed()
