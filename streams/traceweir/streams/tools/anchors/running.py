"""Judges anchors at a steady rate, writes the verdicts, and says when a judge has changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

from traceweir.schemas.anchor import AnchorVerdict
from traceweir.schemas.text import printable
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.tools.anchors.interleave import drawn_anchor, latest_due, next_due
from traceweir.streams.tools.anchors.judging import AnchorSet, judged_anchor
from traceweir.streams.tools.anchors.listing import change_in_words
from traceweir.streams.tools.anchors.watch import AnchorWatch, SeenVerdict
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

PROBLEM_CHARS = 300
Pause = Callable[[float], Awaitable[bool]]
"""Waits this many seconds; returns whether the run goes on."""


class VerdictWriter(Protocol):
    """What writes verdicts to the topic, and waits until Kafka has them."""

    def write(self, records: Mapping[bytes, bytes | None]) -> None:
        """Writes records by their keys."""


class AnchorRun:
    """Judges one anchor after the other, each at its time.

    Args:
        sets: The anchors of each criterion; at least one.
        judging: Asks the judges; stores no verdicts.
        writer: Writes the verdicts.
        watch: The judges, as the verdicts of the topic show them.
        per_day: How many anchors are judged a day.
        clock: Returns the current time.
        pause: Waits for the next time.
        timeout_s: Seconds that a judge can take.
    """

    def __init__(
        self,
        sets: Mapping[str, AnchorSet],
        judging: Judging,
        writer: VerdictWriter,
        watch: AnchorWatch,
        *,
        per_day: int,
        clock: Callable[[], datetime],
        pause: Pause,
        timeout_s: float,
    ) -> None:
        self._of = {name: each for each in sets.values() for name in each.anchors}
        self._ids = {criterion: list(each.anchors) for criterion, each in sets.items()}
        self._judging = judging
        self._writer = writer
        self._watch = watch
        self._per_day = per_day
        self._clock = clock
        self._pause = pause
        self._timeout_s = timeout_s
        self._of_hour = Counter[str]()
        self._said: set[str] = set()
        self._hour: int | None = None

    async def run(self, limit: int | None = None) -> int:
        """Judges anchors until `pause` says that it ends, or this many were judged; returns how many have a verdict."""
        known = [each.last_at for each in self._watch.criteria.values() if each.last_at is not None]
        last_due = max(known, default=None)
        number = 0
        judged = 0
        while limit is None or number < limit:
            now = self._clock()
            # The turn that has begun is taken at once, unless it was.
            due_at = latest_due(now, self._per_day)
            if last_due is not None and due_at <= last_due:
                due_at = next_due(last_due, self._per_day)
            if last_due is not None and number and next_due(last_due, self._per_day) < due_at:
                self._of_hour["skipped"] += 1
            if not await self._pause(max(0.0, (due_at - now).total_seconds())):
                break
            last_due = due_at
            number += 1
            judged += await self._judge(due_at)
        self._summarise()
        return judged

    async def _judge(self, due_at: datetime) -> bool:
        """Judges the anchor whose turn it is; returns whether there is a verdict, and Kafka has it."""
        self._begin_hour(due_at)
        name = drawn_anchor(due_at, self._per_day, self._ids)
        verdict, problem = await judged_anchor(
            self._of[name], name, self._judging.session(), due_at, self._clock, self._timeout_s
        )
        if problem:
            self._say_missing(verdict, problem)
        try:
            await asyncio.to_thread(self._writer.write, {name.encode(): verdict.wire()})
        except (KafkaUnreachableError, NotReadyError) as error:
            self._of_hour["not written"] += 1
            log.error("anchors: a verdict is lost: %s", error)  # noqa: TRY400  # the message says everything
            return False
        self._of_hour["without a verdict" if verdict.passed is None else "judged"] += 1
        for criterion, change in self._watch.add(SeenVerdict.of(verdict)):
            log.warning("anchors: %s", change_in_words(criterion, change))
        return verdict.passed is not None

    def _say_missing(self, verdict: AnchorVerdict, problem: str) -> None:
        """Logs why there is no verdict, once an hour for each reason."""
        why = f"{verdict.criterion}: {verdict.cause or verdict.not_evaluated_because}"
        if why not in self._said:
            self._said.add(why)
            log.warning(
                "anchors: no verdict on an anchor of %s; nothing is taken in its place: %s",
                printable(why, PROBLEM_CHARS),
                printable(problem, PROBLEM_CHARS),
            )

    def _begin_hour(self, now: datetime) -> None:
        hour = int(now.timestamp()) // 3600
        if self._hour is not None and hour != self._hour:
            self._summarise()
        self._hour = hour

    def _summarise(self) -> None:
        if self._of_hour:
            done = ", ".join(f"{number:,} {what}" for what, number in sorted(self._of_hour.items()))
            log.info("anchors: %s; so far %s", done, self._judging.bill.text() or "no question")
        self._of_hour.clear()
        self._said.clear()
