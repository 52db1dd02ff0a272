"""Later: sessions whose judge could not be asked, because it was down or its budget spent, and when they are to be scored once more.

What comes of it is one more revision of their scores, though the session has none: the scores of all its later revisions then count one
more ahead of it.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from traceweir.schemas.judge_config import RetryLater
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.score.session_header import SessionHeader
from traceweir.streams.stages.base import Rows
from traceweir.streams.stages.work_pool import WorkPool

_KEY = b"r"
_VERSION = b"\x01"
_SEGMENT = 4
AT_ONCE = 16
"""How many of a partition may be tried, or wait for their turn to be tried, at the same time."""
PAUSE_S = 10.0
"""How long one waits that could not be tried."""


ReadRecord = Callable[[str, int, int], Awaitable[Any]]
"""Reads a record again, by topic, partition and offset; gives None if it is gone. Raises `RecordUnavailable`."""


class RetryPolicy(NamedTuple):
    """What is done about sessions whose judge could not be asked."""

    config: RetryLater
    read: ReadRecord
    pool: WorkPool
    """Bounds how many are tried at the same time, over all partitions: what is scored for the first time goes before."""
    regates: bool
    """Whether the gate requires a judged criterion, so that candidates follow from what the judge says."""

    @classmethod
    def of(cls, plan: Plan, read: ReadRecord, pool: WorkPool) -> RetryPolicy | None:
        """As the plan has it; None if it says nothing of it."""
        config = plan.judge.retry_later
        return None if config is None else cls(config, read, pool, not plan.judged.isdisjoint(plan.gate.required))


class PendingRetry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is to be scored once more."""

    offset: int
    """Where the session stands on its topic."""
    due: int
    """When, in milliseconds since 1970."""
    unanswered: int
    """How many of its scores wait for a judge."""
    left: int
    """How many more times it is tried."""


class RetryState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A segment of which scores wait for a judge, or waited."""

    revision: int
    """The session's latest one."""
    last_record: int
    """Timestamp of its last record, in milliseconds since 1970."""
    steps: tuple[int, ...] = ()
    """The revisions of the session of which there was one more of its scores, as often as there was."""
    waits: PendingRetry | None = None
    said: int = 0
    """When its last record came by what the session itself says: of two revisions of a segment the later one never says less."""

    @property
    def next(self) -> int:
        """By how many revisions its scores count ahead of it if there is one more of them."""
        return len(self.steps) + 1


class Place(NamedTuple):
    """Where a revision stands, on its topic and in time."""

    offset: int
    last_record: int
    """Timestamp of its last record, in milliseconds since 1970; not later than it was written."""
    said: int
    """The same, as the session itself says it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RetryState).decode


class JudgeRetries:
    """What of a partition is to be scored once more.

    Args:
        config: When, and how often; None: never.
        kept: By how many milliseconds of record time a session may lie behind the latest one and still come again.
    """

    def __init__(self, config: RetryLater | None, kept: int) -> None:
        self._config, self._kept = config, kept
        self._most = (config or RetryLater()).max_sessions
        self._waiting: OrderedDict[bytes, RetryState] = OrderedDict()
        self._settled: OrderedDict[bytes, RetryState] = OrderedDict()
        self._when: dict[bytes, int] = {}
        self._queue: list[tuple[int, bytes]] = []
        self._out: set[bytes] = set()
        self._changed: dict[bytes, bytes | None] = {}
        self._now = self._latest = 0

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the rows of the last finished checkpoint. Without a config nothing waits any more.

        Raises:
            ValueError: a row was written by a version that this one does not read.
        """
        found = []
        for key, row in rows.items():
            if key.startswith(_KEY):
                if row[:1] != _VERSION:
                    raise ValueError(
                        f"row of a session to be scored once more of format {row[0]}; this version reads {_VERSION[0]}"
                    )
                found.append((key, _decode(row[1:])))
        for key, again in sorted(found, key=lambda item: item[1].last_record):
            self._latest = max(self._latest, again.last_record)
            self._keep(key, again)
            if again.waits and self._config is None:
                self._put(key, msgspec.structs.replace(again, waits=None))

    @property
    def is_active(self) -> bool:
        """Whether what comes of a session may depend on it."""
        return self._config is not None or bool(self._waiting or self._settled)

    def note(self, session: bytes, head: SessionHeader, place: Place, unanswered: int) -> bool:
        """A revision is scored, and so many of its scores wait for a judge. Returns whether it is scored once more for that."""
        name, config = _name(session, head.segment), self._config
        before = self._get(name)
        if before is not None and (place.said, head.revision) < (before.said, before.revision):
            return False  # as a replay may bring it
        # An id that is used again begins at revision 0 again, as do the revisions of its scores.
        steps = before.steps if before is not None and head.revision >= before.revision else ()
        waits = None
        if unanswered and config is not None:
            waits = PendingRetry(place.offset, self._now + round(config.after_s * 1000), unanswered, config.attempts)
        self._put(name, RetryState(head.revision, place.last_record, steps, waits, place.said))
        self._make_room(place.last_record)
        return waits is not None

    def revision_offset(self, session: bytes, head: SessionHeader | None) -> int:
        """By how many revisions the scores of a session count ahead of it."""
        again = self._get(_name(session, head.segment)) if head else None
        return sum(step < head.revision for step in again.steps) if head and again else 0

    def tick(self, now: float) -> list[bytes]:
        """It is so many seconds since 1970. Returns the names of those whose time has come, each once until it is told what came of it."""
        self._now = round(now * 1000)
        names = []
        while self._queue and self._queue[0][0] <= self._now and len(self._out) < AT_ONCE and not self._crowded():
            due, name = heapq.heappop(self._queue)
            if self._when.get(name) == due:
                del self._when[name]
                self._out.add(name)
                names.append(name)
        return names

    def get(self, name: bytes) -> RetryState | None:
        """What is to be scored once more by this name; None if nothing is any more."""
        return self._waiting.get(name)

    def put_back(self, name: bytes) -> None:
        """It could not be tried now."""
        self._out.discard(name)
        if name in self._waiting:
            self._plan(name, self._now + round(PAUSE_S * 1000))

    def tried(self, name: bytes, unanswered: int, *, better: bool) -> None:
        """It was scored once more, and so many of its scores still wait; `better`: this made a revision."""
        self._out.discard(name)
        again, config = self._waiting[name], self._config
        steps, waits = again.steps + (again.revision,) * better, None
        if again.waits and again.waits.left > 1 and unanswered and config is not None:
            due = self._now + round(config.after_s * 1000)
            waits = PendingRetry(again.waits.offset, due, unanswered, again.waits.left - 1)
        self._put(name, msgspec.structs.replace(again, steps=steps, waits=waits))

    def rows(self) -> Rows:
        """What changed since the last call."""
        rows, self._changed = list(self._changed.items()), {}
        return rows

    def _get(self, name: bytes) -> RetryState | None:
        return self._waiting.get(name) or self._settled.get(name)

    def _put(self, name: bytes, again: RetryState) -> None:
        known = self._waiting.pop(name, None) or self._settled.pop(name, None)
        self._when.pop(name, None)
        if again.waits or again.steps:
            self._keep(name, again)
            self._changed[name] = _VERSION + _encode(again)
        elif known:
            self._changed[name] = None

    def _keep(self, name: bytes, again: RetryState) -> None:
        if again.waits:
            self._waiting[name] = again
            if name not in self._out:
                self._plan(name, again.waits.due)
        else:
            self._settled[name] = again

    def _plan(self, name: bytes, due: int) -> None:
        self._when[name] = due
        heapq.heappush(self._queue, (due, name))
        if len(self._queue) > 2 * len(self._when) + 64:
            self._queue = [(due, name) for name, due in self._when.items()]
            heapq.heapify(self._queue)

    def _make_room(self, last_record: int) -> None:
        self._latest = max(self._latest, last_record)
        while len(self._waiting) > self._most:
            name = next((name for name in self._waiting if name not in self._out), None)
            if name is None:
                break
            self._put(name, msgspec.structs.replace(self._waiting[name], waits=None))
        while len(self._settled) > self._most and not self._crowded():
            name, _ = self._settled.popitem(last=False)
            self._changed[name] = None

    def _crowded(self) -> bool:
        """Whether there is no room for what a further success has to be remembered by for as long as its session may come again."""
        if len(self._settled) < self._most:
            return False
        oldest = next(iter(self._settled.values()))
        return oldest.last_record >= self._latest - self._kept


def session_of(name: bytes) -> bytes:
    """The session's key in a name."""
    return name[len(_KEY) : -_SEGMENT]


def segment_of(name: bytes) -> int:
    """The segment in a name."""
    return int.from_bytes(name[-_SEGMENT:])


def _name(session: bytes, segment: int) -> bytes:
    return _KEY + session + segment.to_bytes(_SEGMENT)
