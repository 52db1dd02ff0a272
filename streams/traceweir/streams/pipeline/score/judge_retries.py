"""Schedules retries of sessions whose judge was unavailable or whose budget was spent.

A successful retry publishes the scores of the same revision again, under the next attempt number. Each waiting session
has a row in the stage's table. The row changes in the checkpoint that publishes the scores, so that a crash neither
loses a retry nor publishes it twice.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from traceweir.schemas.judge_config import RetryLater
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.score.session_header import row_key_of
from traceweir.streams.scoring.sessions.result import ScoringResult

_KEY = b"r"
_VERSION = 2
AT_ONCE = 16
"""Maximum number of sessions of a partition that are retried, or wait for a place in the pool, at the same time."""
PAUSE_S = 10.0
"""Seconds until the next try for a session that could not be read, or that was being scored for another reason."""


ReadRecord = Callable[[str, int, int], Awaitable[Any]]
"""Reads a record again, by topic, partition and offset; returns None if the topic no longer contains the record.

Raises `RecordUnavailable`.
"""


class RetryPolicy(NamedTuple):
    """Defines how sessions are retried after a judge was unavailable."""

    config: RetryLater
    read: ReadRecord
    pool: WorkPool
    """Limits how many sessions of all partitions are retried at the same time; smaller than the pool of first scorings."""
    regates: bool
    """Whether the gate requires a judged criterion, so that a retry can change the gate's decision."""

    @classmethod
    def of(cls, plan: Plan, read: ReadRecord, pool: WorkPool) -> RetryPolicy | None:
        """Returns the policy of a plan; None if its config has no `retry_later`."""
        config = plan.judge.retry_later
        return None if config is None else cls(config, read, pool, not plan.judged.isdisjoint(plan.gate.required))


class PendingRetry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The latest revision of a segment that has scores waiting for a judge."""

    offset: int
    """Offset of the revision on the topic `sessions`."""
    revision: int
    attempt: int
    """The latest published attempt of this revision; 0 for its first scoring."""
    last_record_ms: int
    """The session's `last_record_at`, in milliseconds since 1970; never less than that of an earlier revision."""
    due_ms: int
    """Time of the next retry, in milliseconds since 1970."""
    unanswered: int
    """Number of waiting scores."""
    left: int
    """Number of remaining retries."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PendingRetry).decode


class JudgeRetries:
    """Holds the sessions of one partition that wait for a judge.

    Args:
        config: The interval and the number of retries; with None, no session is retried.
    """

    def __init__(self, config: RetryLater | None) -> None:
        self._config = config
        # In the order in which they were noted.
        self._pending: OrderedDict[bytes, PendingRetry] = OrderedDict()
        self._due: dict[bytes, int] = {}
        self._queue: list[tuple[int, bytes]] = []
        self._taken: set[bytes] = set()
        self._changed: dict[bytes, bytes | None] = {}
        self._now_ms = 0
        self._restored = False

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the waiting sessions from the rows of the last finished checkpoint.

        Without a config, no session waits any more.

        Raises:
            ValueError: this version does not read the format of a row.
        """
        found = []
        for row_key, row in rows.items():
            if row_key.startswith(_KEY):
                pending = _read(row)
                if pending is None or self._config is None:
                    self._changed[row_key] = None
                else:
                    found.append((row_key, pending))
        for row_key, pending in sorted(found, key=lambda item: item[1].offset):
            self._pending[row_key] = pending
            self._schedule(row_key, pending.due_ms)
        self._restored = True

    def note(self, session: bytes, offset: int, result: ScoringResult) -> bool:
        """Notes that a revision was scored for the first time.

        Args:
            session: The key of the session's record.
            offset: The offset of the session's record.
            result: The result of scoring the session.

        Returns:
            Whether the session will be retried because some of its scores wait for a judge.
        """
        if self._config is None:
            return False
        row_key = row_key_of(_KEY, session, result.segment)
        before = self._pending.get(row_key)
        if before and (result.last_record_ms, result.revision) <= (before.last_record_ms, before.revision):
            # A replay of an earlier or the same revision leaves the schedule unchanged.
            return False
        if not result.waiting:
            self._remove(row_key)
            return False
        due_ms = self._now_ms + round(self._config.after_s * 1000)
        # Removed first, so that it becomes the last one.
        self._pending.pop(row_key, None)
        left = self._config.attempts
        self._keep(
            row_key,
            PendingRetry(offset, result.revision, 0, result.last_record_ms, due_ms, result.waiting, left),
        )
        self._make_room(self._config.max_sessions)
        return True

    def take_due(self, now: float) -> list[bytes]:
        """Returns the row keys of the due sessions.

        The first call after `load` plans a retry again that is further away than the interval: an owner with a fast clock
        has planned it.

        A returned key is not returned again until `put_back`, `give_up` or `retried` is called for the key. At most
        `AT_ONCE` keys are in progress at the same time.

        Args:
            now: Seconds since 1970.
        """
        self._now_ms = round(now * 1000)
        if self._restored:
            self._restored = False
            self._plan_again()
        due = []
        while self._queue and self._queue[0][0] <= self._now_ms and len(self._taken) < AT_ONCE:
            due_ms, row_key = heapq.heappop(self._queue)
            # Otherwise the session was scheduled again.
            if self._due.get(row_key) == due_ms:
                del self._due[row_key]
                self._taken.add(row_key)
                due.append(row_key)
        return due

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
        if (pending := self._pending.get(row_key)) is not None:
            self._schedule(row_key, max(pending.due_ms, self._now_ms + round(PAUSE_S * 1000)))

    def give_up(self, row_key: bytes) -> None:
        """Ends the retries of a session; its scores stay unchanged."""
        self._taken.discard(row_key)
        self._remove(row_key)

    def retried(self, row_key: bytes, unanswered: int, *, published: bool) -> None:
        """Notes that a retry has ended.

        Args:
            row_key: The row key of the session.
            unanswered: Number of its scores that still wait for a judge; 0 ends the retries.
            published: Whether its scores are published under the next attempt number.
        """
        self._taken.discard(row_key)
        pending = self._pending[row_key]
        if self._config is None or not unanswered or pending.left <= 1:
            self._remove(row_key)
            return
        due_ms = self._now_ms + round(self._config.after_s * 1000)
        attempt = pending.attempt + published
        left = pending.left - 1
        self._keep(
            row_key, msgspec.structs.replace(pending, attempt=attempt, due_ms=due_ms, unanswered=unanswered, left=left)
        )

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        rows = list(self._changed.items())
        self._changed = {}
        return rows

    def _keep(self, row_key: bytes, pending: PendingRetry) -> None:
        self._pending[row_key] = pending
        self._changed[row_key] = bytes([_VERSION]) + _encode(pending)
        if row_key not in self._taken:
            self._schedule(row_key, pending.due_ms)

    def _remove(self, row_key: bytes) -> None:
        if self._pending.pop(row_key, None) is not None:
            self._due.pop(row_key, None)
            self._changed[row_key] = None

    def _schedule(self, row_key: bytes, due_ms: int) -> None:
        self._due[row_key] = due_ms
        heapq.heappush(self._queue, (due_ms, row_key))
        # Most entries were scheduled again or removed.
        if len(self._queue) > 2 * len(self._due) + 64:
            self._queue = [(due_ms, row_key) for row_key, due_ms in self._due.items()]
            heapq.heapify(self._queue)

    def _plan_again(self) -> None:
        if self._config is None:
            return
        latest = self._now_ms + round(self._config.after_s * 1000)
        for row_key, pending in [*self._pending.items()]:
            if pending.due_ms > latest:
                self._keep(row_key, msgspec.structs.replace(pending, due_ms=latest))

    def _make_room(self, limit: int) -> None:
        while len(self._pending) > limit:
            oldest = next((row_key for row_key in self._pending if row_key not in self._taken), None)
            if oldest is None:
                break
            self._remove(oldest)


def _read(row: bytes) -> PendingRetry | None:
    if row[0] == 1:
        return _read_version_1(row[1:])
    if row[0] != _VERSION:
        raise ValueError(
            f"a row of a session that waits for a judge has the format {row[0]}; "
            f"this version reads the formats 1 and {_VERSION}"
        )
    return _decode(row[1:])


def _read_version_1(row: bytes) -> PendingRetry | None:
    """Reads a row of the version that published a successful retry under the next revision number.

    A session with such a retry is not retried again, because its scores already have a higher revision than the
    session.
    """
    revision, _, retried_revisions, waits, last_record_ms = msgspec.msgpack.decode(row)
    if retried_revisions or waits is None:
        return None
    offset, due_ms, unanswered, left = waits
    return PendingRetry(offset, revision, 0, last_record_ms, due_ms, unanswered, left)
