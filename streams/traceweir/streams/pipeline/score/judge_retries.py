"""Schedules further attempts at sessions: their criteria wait for a later revision, or their judge was unavailable.

A successful attempt publishes the scores of the same revision again, under the next attempt number. Each waiting session
has a row in the stage's table. The row changes in the checkpoint that publishes the scores, so that a crash neither
loses an attempt nor publishes it twice.

A session settles by the watermark, so that the same topic gives the same attempts however fast it is read. Retries after
an outage are due by the clock, because a provider recovers by the clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from math import ceil
from typing import Any, NamedTuple

import msgspec

from traceweir.schemas.judge_config import RetryLater
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.due_times import DueTimes
from traceweir.streams.pipeline.score.pending_retry import PendingRetry, read_row, row_of
from traceweir.streams.pipeline.score.session_header import row_key_of
from traceweir.streams.scoring.sessions.result import ScoringResult

_KEY = b"r"
AT_ONCE = 16
"""Maximum number of sessions of a partition that are retried, or wait for a place in the pool, at the same time."""
PAUSE_S = 10.0
"""Seconds until the next try for a session that could not be read, or that was being scored for another reason."""
MAX_SETTLING = RetryLater().max_sessions
"""Maximum number of settling sessions of a partition without `retry_later`, and of those whose wait was ended early."""


ReadRecord = Callable[[str, int, int], Awaitable[Any]]
"""Reads a record again, by topic, partition and offset; returns None if the topic no longer contains the record.

Raises `RecordUnavailable`.
"""


class RetryPolicy(NamedTuple):
    """Defines how sessions are scored again."""

    config: RetryLater | None
    """When, after a judge was unavailable; None: only sessions with criteria that wait are scored again."""
    read: ReadRecord
    pool: WorkPool
    """Limits how many sessions of all partitions are retried at the same time; smaller than the pool of first scorings."""
    regates: bool
    """Whether the gate requires a judged criterion, so that a retry can change the gate's decision."""

    @classmethod
    def of(cls, plan: Plan, read: ReadRecord, pool: WorkPool) -> RetryPolicy:
        """Returns the policy of a plan."""
        return cls(plan.judge.retry_later, read, pool, not plan.judged.isdisjoint(plan.gate.required))


class JudgeRetries:
    """Holds the sessions of one partition that wait for a further attempt.

    Args:
        config: The interval and the number of retries; with None, no session is retried after an outage.
    """

    def __init__(self, config: RetryLater | None) -> None:
        self._config = config
        self._pending: dict[bytes, PendingRetry] = {}
        # Each waiting session is in one of the three, in the order in which the sessions came into it.
        self._retrying: OrderedDict[bytes, None] = OrderedDict()
        self._settling: OrderedDict[bytes, None] = OrderedDict()
        # Those whose wait was ended early. After a restart, they are in `_settling` again, and still due.
        self._early: OrderedDict[bytes, None] = OrderedDict()
        self._by_clock = DueTimes()
        self._by_watermark = DueTimes()
        self._taken: set[bytes] = set()
        self._changed: dict[bytes, bytes | None] = {}
        self._now_ms = 0
        self._watermark_ms = 0
        self._restored = False
        self.dropped = 0
        """Number of sessions that were dropped beyond the maximum; the stage counts them and sets the number back."""

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the waiting sessions from the rows of the last finished checkpoint.

        Without a config, no session waits for a retry any more.

        Raises:
            ValueError: this version does not read the format of a row.
        """
        found = []
        for row_key, row in rows.items():
            if row_key.startswith(_KEY):
                pending = read_row(row)
                if pending is None or not (self._config or pending.settle_ms):
                    self._changed[row_key] = None
                else:
                    found.append((row_key, pending))
        for row_key, pending in sorted(found, key=lambda item: item[1].offset):
            self._remember(row_key, pending)
        self._restored = True

    def note(self, session: bytes, offset: int, timestamp: int, result: ScoringResult) -> bool:
        """Notes that a revision was scored for the first time.

        Args:
            session: The key of the session's record.
            offset: The offset of the session's record.
            timestamp: The timestamp of the session's record, in milliseconds since 1970: when the session closed.
            result: The result of scoring the session.

        Returns:
            Whether the session is scored again: criteria wait for a later revision, or scores for a judge.
        """
        if not (result.settle_s or result.waiting or self._pending):
            return False
        row_key = row_key_of(_KEY, session, result.segment)
        before = self._pending.get(row_key)
        if before and (result.last_record_ms, result.revision) <= (before.last_record_ms, before.revision):
            # A replay of an earlier or the same revision leaves the schedule unchanged.
            return False
        config = self._config
        # Rounded up: what waits is never without a later attempt.
        settle_ms = ceil(result.settle_s * 1000)
        if result.settle_s:
            # A worker with a fast clock can have written the record.
            due_ms = min(timestamp, self._now_ms) + settle_ms
        elif config is not None and result.waiting:
            due_ms = self._now_ms + round(config.after_s * 1000)
        else:
            self._remove(row_key)
            return False
        # So that it becomes the last one.
        self._leave(row_key)
        left = config.attempts if config is not None else 0
        version = offset, result.revision, 0, result.last_record_ms
        self._keep(row_key, PendingRetry(*version, due_ms, result.waiting, left, settle_ms))
        self._make_room(config.max_sessions if config is not None else MAX_SETTLING)
        return True

    def take_due(self, now: float, watermark_ms: int) -> list[bytes]:
        """Returns the row keys of the due sessions.

        The first call after `load` plans an attempt again that is further away than its wait: an owner with a fast clock
        has planned it.

        A returned key is not returned again until `put_back`, `give_up` or `retried` is called for the key. At most
        `AT_ONCE` keys are in progress at the same time.

        Args:
            now: Seconds since 1970.
            watermark_ms: The watermark of the stage, in milliseconds since 1970.
        """
        self._now_ms = round(now * 1000)
        self._watermark_ms = watermark_ms
        if self._restored:
            self._restored = False
            self._plan_again()
        due = self._by_watermark.take(watermark_ms, AT_ONCE - len(self._taken))
        self._taken.update(due)
        retried = self._by_clock.take(self._now_ms, AT_ONCE - len(self._taken))
        self._taken.update(retried)
        return due + retried

    @property
    def settling(self) -> int:
        """Number of sessions of which criteria wait for a later revision."""
        return len(self._settling) + len(self._early)

    def __len__(self) -> int:
        """Returns the number of waiting sessions."""
        return len(self._pending)

    @property
    def first_offset(self) -> int | None:
        """The lowest offset of a waiting session; None if no session waits. Looks at all of them."""
        return min((pending.offset for pending in self._pending.values()), default=None)

    def get(self, row_key: bytes) -> PendingRetry | None:
        """Returns the waiting session of a row key; None if the session no longer waits."""
        return self._pending.get(row_key)

    def put_back(self, row_key: bytes) -> None:
        """Schedules a session again because it could not be scored now, or because a later revision waits instead."""
        self._taken.discard(row_key)
        if (pending := self._pending.get(row_key)) is None:
            return
        if pending.settle_ms and pending.due_ms > self._watermark_ms:
            self._plan(row_key, pending)
        else:
            self._by_clock.plan(row_key, max(pending.due_ms, self._now_ms + round(PAUSE_S * 1000)))

    def give_up(self, row_key: bytes) -> None:
        """Ends the retries of a session; its scores stay unchanged."""
        self._taken.discard(row_key)
        self._remove(row_key)

    def retried(self, row_key: bytes, unanswered: int, *, published: bool) -> bool:
        """Notes that a retry has ended.

        A session that settles goes on to settle until an attempt is published.

        Args:
            row_key: The row key of the session.
            unanswered: Number of its scores that still wait for a judge; 0 ends the retries.
            published: Whether its scores are published under the next attempt number.

        Returns:
            Whether another attempt follows.
        """
        self._taken.discard(row_key)
        pending = self._pending[row_key]
        # The attempt after a wait is no retry if it is published.
        left = pending.left if pending.settle_ms and published else pending.left - 1
        if self._config is None or not unanswered or left < 1:
            self._remove(row_key)
            return False
        settle_ms = 0 if published else pending.settle_ms
        due_ms = (self._watermark_ms if settle_ms else self._now_ms) + round(self._config.after_s * 1000)
        attempt = pending.attempt + published
        again = {"attempt": attempt, "due_ms": due_ms, "unanswered": unanswered, "left": left, "settle_ms": settle_ms}
        self._keep(row_key, msgspec.structs.replace(pending, **again))
        return True

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        rows = list(self._changed.items())
        self._changed = {}
        return rows

    def _keep(self, row_key: bytes, pending: PendingRetry) -> None:
        self._remember(row_key, pending)
        self._changed[row_key] = row_of(pending)

    def _remember(self, row_key: bytes, pending: PendingRetry) -> None:
        self._pending[row_key] = pending
        if not pending.settle_ms:
            self._settling.pop(row_key, None)
            self._early.pop(row_key, None)
            self._retrying.setdefault(row_key)
        elif row_key not in self._early:
            self._settling.setdefault(row_key)
        if row_key not in self._taken:
            self._plan(row_key, pending)

    def _remove(self, row_key: bytes) -> None:
        if self._pending.pop(row_key, None) is not None:
            self._leave(row_key)
            self._by_clock.cancel(row_key)
            self._by_watermark.cancel(row_key)
            self._changed[row_key] = None

    def _leave(self, row_key: bytes) -> None:
        for row_keys in (self._retrying, self._settling, self._early):
            row_keys.pop(row_key, None)

    def _plan(self, row_key: bytes, pending: PendingRetry) -> None:
        settles = bool(pending.settle_ms)
        (self._by_clock if settles else self._by_watermark).cancel(row_key)
        (self._by_watermark if settles else self._by_clock).plan(row_key, pending.due_ms)

    def _plan_again(self) -> None:
        after_ms = round(self._config.after_s * 1000) if self._config is not None else 0
        for row_key, pending in [*self._pending.items()]:
            latest = self._now_ms + (pending.settle_ms or after_ms)
            if pending.due_ms > latest:
                self._keep(row_key, msgspec.structs.replace(pending, due_ms=latest))

    def _make_room(self, limit: int) -> None:
        while len(self._settling) > limit and (oldest := self._oldest(self._settling)) is not None:
            # Its score says that its judge will be asked. Without an attempt it would say so for ever.
            del self._settling[oldest]
            self._early[oldest] = None
            pending = self._pending[oldest]
            self._keep(oldest, msgspec.structs.replace(pending, due_ms=min(pending.due_ms, self._watermark_ms)))
        for row_keys, most in ((self._retrying, limit), (self._early, MAX_SETTLING)):
            while len(row_keys) > most and (oldest := self._oldest(row_keys)) is not None:
                self._drop(oldest)

    def _oldest(self, row_keys: OrderedDict[bytes, None]) -> bytes | None:
        return next((row_key for row_key in row_keys if row_key not in self._taken), None)

    def _drop(self, row_key: bytes) -> None:
        self._remove(row_key)
        self.dropped += 1
