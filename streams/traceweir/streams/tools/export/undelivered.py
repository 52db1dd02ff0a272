"""Decides what becomes of the scores that a target has not taken: they wait, or are dead letters.

A score that waits is written to the topic `export-waiting` in the transaction that moves the offset over it. Later scores
of its session wait behind it; those of other sessions go on. A score that the target refuses for good, or has not taken in
time, is a dead letter, and `traceweir dlq replay` lets it wait again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Generic, NamedTuple

from traceweir.schemas.dead_letter import DeadLetter, Reason
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.answers import Refused
from traceweir.streams.tools.export.not_taken import NotTaken
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.source import ExportSource, Found, FoundRecord
from traceweir.streams.tools.export.waiting import Load, WaitingScores
from traceweir.streams.tools.export.waiting_score import Place, WaitingScore
from traceweir.streams.tools.export.waiting_topic import WaitingTopic

STAGE = "export"
"""The stage of the dead letters."""


class Settled(NamedTuple):
    """What is written about scores, and what counts once it is committed."""

    outputs: list[Output]
    counts: Counter[str]
    """`waited`: scores that begin to wait; `refused` and `given_up`: dead letters."""


class Undelivered(Generic[Found]):
    """What waits in the partitions of this process, and what is written about it.

    Args:
        settings: Where Kafka is, and after how long a score is given up.
        source: What the records are.
        topic: The topic on which scores wait.
        problems: Logs what becomes a dead letter, and that nothing is read.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        settings: Settings,
        source: ExportSource[Found],
        topic: WaitingTopic,
        problems: ProblemLog,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._source = source
        self._problems = problems
        self._now = now
        self._topic = topic
        self._waiting = WaitingScores()
        self._forgotten = 0
        """How often partitions have moved to other processes."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def loaded(self) -> int:
        """Number of waiting scores in memory; the others are on the topic alone."""
        return self._waiting.loaded

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing else is read."""
        return self._waiting.full

    @property
    def next_attempt(self) -> datetime | None:
        """When a score is sent again; None if none waits."""
        due_s = self._waiting.next_due_s
        return None if due_s is None else max(self._now(), datetime.fromtimestamp(due_s, UTC))

    async def take_over(self, partitions: Collection[int]) -> None:
        """Reads what waits in the partitions of this process.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
        """
        self.forget()
        number = self._forgotten
        sessions: dict[Place, tuple[int, str]] = {}
        async with aclosing(self._topic.open(partitions)) as rows:
            async for row in rows:
                if self._forgotten != number:
                    # The partitions have moved meanwhile: their rows are those of another process.
                    return
                # The newest row of a score counts, also for its order.
                if (session := sessions.pop(row.place, None)) is not None:
                    self._waiting.discard(session, row.place)
                if row.score is not None:
                    sessions[row.place] = row.score.session
                    self._waiting.add(row.score, row.row_at)

    def begin_load(self) -> Load | None:
        """Returns which part of the topic `load` is to read; None: no session that is due needs it, or there is no room."""
        return self._waiting.begin_load(self._now().timestamp())

    async def load(self, load: Load) -> None:
        """Reads a part of what is on the topic alone.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
        """
        read_to: int | None = None
        async with aclosing(self._topic.read(load.partition, load.begin)) as rows:
            async for row in rows:
                if not self._waiting.load(load, row):
                    read_to = row.row_at + 1
                    break
        self._waiting.end_load(load, read_to)

    def forget(self) -> None:
        """Forgets what waits: other processes take it over."""
        self._forgotten += 1
        self._waiting.clear()

    async def close(self) -> None:
        """Forgets what waits, and disconnects."""
        self.forget()
        await self._topic.close()

    def due(self, most: int) -> list[Found]:
        """Returns up to `most` scores that are to be sent again, each session's in their order.

        Raises:
            KafkaUnreachableError: the topic cannot be read any more.
        """
        while not self.full and (row := self._topic.next_replayed()) is not None:
            if row.score is not None:
                self._waiting.add(row.score, row.row_at)
        found: list[Found] = []
        for score in self._waiting.due(self._now().timestamp(), most):
            try:
                found.append(self._source.read(score.at_ms, score.partition, score.offset, score.value))
            except ValueError:
                self._problems.no_score(score.partition, score.offset)
                self._waiting.remove(score)
        return found

    def split(self, scores: Sequence[Found]) -> tuple[list[Found], list[Found]]:
        """Returns the scores of sessions of which none waits, and the others."""
        free: list[Found] = []
        behind: list[Found] = []
        for found in scores:
            waits = self._waiting.holds((found.partition, found.key))
            (behind if waits else free).append(found)
        return free, behind

    def settle_new(self, not_taken: Sequence[NotTaken], behind: Sequence[FoundRecord]) -> Settled:
        """Returns what is written about scores that were read now.

        Args:
            not_taken: Those that the target has not taken, each session's in their order.
            behind: Those that were not sent, because an earlier one of their session waits.
        """
        now_s = self._now().timestamp()
        settled = Settled([], Counter())
        for each in not_taken:
            if isinstance(each.because, Refused):
                self._dead_letter(settled, each, "refused")
                continue
            session = each.found.partition, each.found.key
            is_first = not self._waiting.holds(session)
            self._wait(settled, each.found, now_s)
            if is_first:
                self._waiting.failed(session, now_s, each.because.after_s)
        for found in behind:
            self._wait(settled, found, now_s)
        return settled

    def settle_due(self, due: Sequence[FoundRecord], not_taken: Sequence[NotTaken]) -> Settled:
        """Returns what is written about scores that were sent again.

        Only the first score of a session that is not taken was surely sent: those behind it keep waiting. Nothing is written
        about a score that is not waiting here any more: its new owner sends it again.
        """
        now_s = self._now().timestamp()
        open_ = {(each.found.partition, each.found.offset, each.found.at_ms): each for each in not_taken}
        held: set[tuple[int, str]] = set()
        settled = Settled([], Counter())
        for found in due:
            score = self._waiting.in_memory(found)
            if score is None:
                continue
            each = open_.get(score.place)
            if each is None:
                self._remove(settled, score)
            elif isinstance(each.because, Refused):
                self._dead_letter(settled, each, "refused")
                self._remove(settled, score)
            elif score.session not in held:
                held.add(score.session)
                if now_s - score.since_s >= self._settings.export_give_up_after_s:
                    self._dead_letter(settled, each, "given_up")
                    self._remove(settled, score)
                else:
                    self._waiting.failed(score.session, now_s, each.because.after_s)
        return settled

    def _wait(self, settled: Settled, found: FoundRecord, now_s: float) -> None:
        score = WaitingScore.of(found, now_s)
        # Otherwise it was read again after a crash, and waits since its first time.
        if self._waiting.add(score):
            settled.counts["waited"] += 1
            settled.outputs.append(self._topic.row(score))

    def _remove(self, settled: Settled, score: WaitingScore) -> None:
        self._waiting.remove(score)
        settled.outputs.append(self._topic.tombstone(score))

    def _dead_letter(self, settled: Settled, each: NotTaken, reason: Reason) -> None:
        settled.counts[reason] += 1
        found = each.found
        topics = self._settings.topics
        waited_s = self._settings.export_give_up_after_s
        detail = (
            each.because.reason
            if reason == "refused"
            else f"not taken for {waited_s:g} s; the last attempt: {each.because.reason}"
        )
        self._problems.lost(found, detail)
        letter = DeadLetter(
            reason=reason,
            detail=detail,
            stage=STAGE,
            topic=self._source.topic,
            partition=found.partition,
            offset=found.offset,
            key=found.key.encode(),
            value=found.value,
            timestamp=found.at_ms,
            group=self._topic.group,
        )
        settled.outputs.append(
            Output(topics.dead_letters, found.partition, letter.key, letter.wire_value(), letter.wire_headers())
        )
