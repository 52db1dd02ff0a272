"""Score: measures every closed session by the configured criteria, and sends its traces on to the gate.

Sessions finish in any order (see `progress`); one slow judge delays its own session and nobody else's. The revisions of one session
follow each other (see `turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tracegate.schemas.dead_letter import Reason, is_replay
from tracegate.schemas.judge_config import VerdictCache
from tracegate.streams.judge_rows import JudgeRows
from tracegate.streams.partitioner import partition_of
from tracegate.streams.pool import Pool
from tracegate.streams.progress import Progress
from tracegate.streams.revisions import Revisions
from tracegate.streams.scoring import Scoring, Unscorable
from tracegate.streams.stage import Cut, Output, Record, dead_letter
from tracegate.streams.tally import Tally
from tracegate.streams.topics import Topics
from tracegate.streams.turns import Turns

_DONE = b"d"
WINDOW_BYTES = 64 << 20
"""How many bytes of sessions may be in flight: a window of the largest would be gigabytes."""


class Score:
    """The closed sessions of one partition."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        scoring: Scoring,
        pool: Pool[Record],
        changed: Callable[[], None],
        *,
        window: int = 2_000,
        revised_within: int = 1_200_000,
        judge_rows: JudgeRows | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            partition: Its number.
            partitions: How many there are.
            topics: Their names.
            scoring: Scores the bytes of a session.
            pool: Bounds how many are scored at the same time, over all partitions.
            changed: Called when there is something to cut.
            window: How many sessions may be in flight; those that wait for an earlier revision count, too.
            revised_within: By how many milliseconds of record time a session may lie behind the latest one and still come again.
            judge_rows: What is remembered of judges.
        """
        self._partition, self._partitions, self._topics = partition, partitions, topics
        self._scoring, self._pool, self._changed, self._window = scoring, pool, changed, window
        self._progress = Progress()
        self._bytes = 0
        self._turns = Turns()
        self._revisions = Revisions(revised_within)
        self._judge_rows = judge_rows or JudgeRows(VerdictCache())
        self._written = b""
        self._committed: int | None = None
        self._outputs: list[Output] = []
        self._dropped = False
        self.tally = Tally()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the rows of the last finished checkpoint."""
        self.tally.load(rows)
        self._written = rows.get(_DONE, b"")
        self._progress.load(self._written)
        self._revisions.load(rows)
        self._judge_rows.load(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Begin to score the sessions that are not done yet."""
        for record in records:
            if not self._progress.begin(record.offset):
                continue
            self._bytes += len(record.value or b"")
            now, worthless = self._turns.take(record)
            if now:
                self._pool.add(self._work, record)
            elif worthless is not None:
                self.tally["superseded"] += 1
                self._finish(worthless)

    def tick(self, now: float, behind: Collection[str]) -> None:
        """Old verdicts are forgotten; nothing else depends on the time."""
        self._judge_rows.tick(now)

    def full(self) -> bool:
        """Whether as many sessions are in flight as fit the window, or as many bytes."""
        return len(self._progress) >= self._window or self._bytes >= WINDOW_BYTES

    def cut(self) -> Cut:
        """The scores and candidates that came about, and how far everything is done."""
        offsets, rows = {}, [*self._revisions.rows(), *self._judge_rows.rows(), *self.tally.rows()]
        mark = self._progress.mark
        if mark is not None and mark != self._committed:
            offsets[self._topics.sessions] = self._committed = mark
        row = self._progress.row()
        if row != self._written:
            self._written = row
            rows.append((_DONE, row or None))
        outputs, self._outputs = self._outputs, []
        return Cut(rows, outputs, offsets)

    def drop(self) -> None:
        """What still runs publishes nothing."""
        self._dropped = True
        self._judge_rows.drop()

    async def _work(self, record: Record) -> None:
        if self._dropped:
            return
        key = record.key or b""
        try:
            scored = await self._scoring(record.value or b"", self._judge_rows.known(key))
        except Unscorable as why:
            if not self._dropped:
                self._judge_rows.learn(key, why.judged)
                self._put_aside(record, why.reason, why.detail)
                self._go_on(record)
            return
        if self._dropped:
            return
        self._judge_rows.learn(key, scored.judged)
        at = min(scored.last_record, record.timestamp)  # what it says itself may be any time
        candidates = self._revisions.changed(key, scored.segment, scored.revision, at, scored.candidates)
        self.tally["scored"] += 1
        self.tally["candidates"] += len(candidates)
        if unchanged := len(scored.candidates) - len(candidates):
            self.tally["unchanged"] += unchanged
        for outcome, count in scored.outcomes.items():
            self.tally[f"scores.{outcome}"] += count
        self._outputs += [Output(self._topics.results, self._partition, record.key, score) for score in scored.results]
        for candidate in candidates:
            scope = candidate.scope.encode()
            home = partition_of(scope, self._partitions)
            self._outputs.append(Output(self._topics.candidates, home, scope, candidate.value))
        self._go_on(record)

    def _put_aside(self, record: Record, reason: Reason, detail: str) -> None:
        self.tally[f"dead_lettered.{reason}"] += 1
        to, source = self._topics.dead_letters, self._topics.sessions
        self._outputs.append(dead_letter(to, source, self._partition, record, "score", reason, detail))

    def _go_on(self, record: Record) -> None:
        self._finish(record)
        following = self._turns.give(record)
        if following is not None:
            self._pool.add(self._work, following)

    def _finish(self, record: Record) -> None:
        self.tally["consumed"] += 1  # only now: what is in flight at a crash is read again
        if is_replay(record.headers):
            self.tally["replayed"] += 1
        self._bytes -= len(record.value or b"")
        self._progress.end(record.offset)
        self._changed()
