"""Score: measures every closed session by the configured criteria, and sends its traces on to the gate.

Sessions finish in any order. Committed is the offset below which all are done; a row keeps the numbers of those done above it. One
slow judge delays its own session and nobody else's.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

from pydantic import ValidationError

from tracegate.schemas.base import explain
from tracegate.schemas.candidate import Candidate
from tracegate.schemas.dead_letter import Reason
from tracegate.schemas.score import Score as ScoreRecord
from tracegate.schemas.session import Session
from tracegate.scorers.runner import cancelled_from_outside
from tracegate.streams.partitioner import partition_of
from tracegate.streams.pool import Pool
from tracegate.streams.stage import MAX_OUTPUT_BYTES, Cut, Output, Record, dead_letter
from tracegate.streams.tally import Tally
from tracegate.streams.topics import Topics

_DONE = b"d"

Scored = tuple[Sequence[ScoreRecord], Sequence[Candidate]]
Scoring = Callable[[Session], Awaitable[Scored]]
"""Measures a session: its scores, and its traces as candidates."""


class Score:
    """The closed sessions of one partition."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        scoring: Scoring,
        pool: Pool,
        changed: Callable[[], None],
        window: int = 2_000,
    ) -> None:
        self._partition, self._partitions, self._topics = partition, partitions, topics
        self._scoring, self._pool, self._changed, self._window = scoring, pool, changed, window
        self._started: deque[int] = deque()
        self._done: set[int] = set()
        self._written = b""
        self._next: int | None = None
        self._committed: int | None = None
        self._outputs: list[Output] = []
        self._dropped = False
        self.tally = Tally()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the numbers of those that are done above the committed offset."""
        self.tally.load(rows)
        self._written = rows.get(_DONE, b"")
        self._done = set(_numbers(self._written))

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Begin to score the sessions that are not done yet."""
        self._next = records[-1].offset + 1
        for record in records:
            self._started.append(record.offset)
            if record.offset not in self._done:
                self._pool.add(self._work, record)

    def tick(self, now: float, behind: Collection[str]) -> None:
        """Nothing depends on the time."""

    def full(self) -> bool:
        """Whether as many sessions are in flight as fit the window."""
        return len(self._started) >= self._window

    def cut(self) -> Cut:
        """The scores and candidates that came about, and how far everything is done."""
        started, done = self._started, self._done
        while started and started[0] in done:
            done.discard(started.popleft())
        offsets, rows = {}, self.tally.rows()
        mark = started[0] if started else self._next
        if mark is not None and mark != self._committed:
            offsets[self._topics.sessions] = self._committed = mark
            self._done = done = {number for number in done if number >= mark}  # a hole in the log leaves some behind
        row = array("q", sorted(done)).tobytes()
        if row != self._written:
            self._written = row
            rows.append((_DONE, row or None))
        outputs, self._outputs = self._outputs, []
        return Cut(rows, outputs, offsets)

    def drop(self) -> None:
        """What still runs publishes nothing."""
        self._dropped = True

    async def _work(self, record: Record) -> None:
        if self._dropped:
            return
        try:
            session = Session.model_validate_json(record.value or b"")
        except ValidationError as error:
            self._finish(record, [self._put_aside(record, "unreadable_session", explain(error))])
            return
        try:
            scores, candidates = await self._scoring(session)
            outputs = [*map(partial(self._result, record), scores), *map(self._candidate, candidates)]
        except (Exception, asyncio.CancelledError) as error:  # whatever a session provokes must not stop its neighbours
            if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
                raise
            self._finish(record, [self._put_aside(record, "scoring_failed", f"{type(error).__name__}: {error}")])
            return
        largest = max((len(output.value or b"") for output in outputs), default=0)
        if largest > MAX_OUTPUT_BYTES:
            detail = f"a score or candidate of it has {largest} bytes; at most {MAX_OUTPUT_BYTES} are sent"
            self._finish(record, [self._put_aside(record, "too_large", detail)])
            return
        self.tally["scored"] += 1
        self.tally["candidates"] += len(candidates)
        self.tally.update(_outcome(score) for score in scores)
        self._finish(record, outputs)

    def _result(self, record: Record, score: ScoreRecord) -> Output:
        return Output(self._topics.results, self._partition, record.key, score.wire())

    def _candidate(self, candidate: Candidate) -> Output:
        scope = candidate.scope.encode()
        value = candidate.model_dump_json(by_alias=True, exclude_unset=True).encode()
        return Output(self._topics.candidates, partition_of(scope, self._partitions), scope, value)

    def _put_aside(self, record: Record, reason: Reason, detail: str) -> Output:
        self.tally[f"dead_lettered.{reason}"] += 1
        topics = self._topics
        return dead_letter(topics.dead_letters, topics.sessions, self._partition, record, "score", reason, detail)

    def _finish(self, record: Record, outputs: Sequence[Output]) -> None:
        if not self._dropped:
            self.tally["consumed"] += 1  # only now: what is in flight at a crash is read again
            self._outputs += outputs
            self._done.add(record.offset)
            self._changed()


def _outcome(score: ScoreRecord) -> str:
    because = score.not_evaluated_because
    return f"scores.{score.status}" if because is None else f"scores.{score.status}.{because}"


def _numbers(row: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(row)
    return numbers
