"""Assemble: joins events and traces into sessions, and closes a session on its end, on idleness or at a size limit."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NoReturn

import orjson

from traceweir.schemas.dead_letter import KEPT_BYTES, ORIGIN
from traceweir.schemas.session import Closed
from traceweir.streams.assemble.closed_sessions import ClosedSessions
from traceweir.streams.assemble.closing_rules import ClosingRules
from traceweir.streams.assemble.open_session import OpenSession
from traceweir.streams.assemble.parse import present, read_event, read_trace
from traceweir.streams.assemble.session_rows import (
    EVENT,
    TRACE,
    Guard,
    split,
    split_chunk_key,
)
from traceweir.streams.stages.base import Cut, Output, Read, Record, Rows, dead_letter
from traceweir.streams.stages.counters import Counters
from traceweir.streams.stages.errors import RecordRejected
from traceweir.streams.stages.partitioner import partition_of
from traceweir.streams.topics import Topics

_MARKS = b"w"
_SETTLING = 5_000
"""Milliseconds for which records that came late set the clock back, at least, and from which on inputs are a backlog."""
_SHARE = 10
"""After a longer backlog it is so much of it: who forwards strays may have begun to read as much later."""
_CALM = 60_000
"""At most so long; and so long after a backlog late records set nothing back: else one sender with a slow clock would keep all open."""


class AssembleStage:
    """The sessions whose home is one partition."""

    def __init__(self, partition: int, partitions: int, topics: Topics, read: Read, closing: ClosingRules) -> None:
        self._partition, self._partitions, self._topics, self._read = partition, partitions, topics, read
        self._closing = closing
        self._open: dict[bytes, OpenSession] = {}
        self._closed = ClosedSessions(read, self._closing.grace_ms, self._closing.guard_ms)
        self._due: list[tuple[int, bytes]] = []
        self._dirty: list[OpenSession] = []
        self._high: dict[str, int] = {}
        self._marks = b""
        self._watermark = self._now = 0
        self._lateness = self._settled_at = self._backlog_at = 0
        self._restored = False
        self._next: dict[str, int] = {}
        self._rows: Rows = []
        self._outputs: list[Output] = []
        self.counters = Counters()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the open sessions, guards and watermarks of the last finished checkpoint."""
        self.counters.load(rows)
        guards: dict[bytes, Guard] = {}
        for key in sorted(rows):
            if key.startswith(b"c"):
                self._load_chunk(key, rows[key])
            elif key.startswith(b"g"):
                guards[key[1:]] = Guard.unpack(rows[key])
        contents = [session for session in self._open.values() if _has_closed(session, guards.get(session.id))]
        for session in contents:
            del self._open[session.id]
        self._closed.load(((guard.closed_at, name) for name, guard in guards.items()), contents)
        for session in self._open.values():
            self._await(session, session.deadline)
        self._marks = rows.get(_MARKS, b"")
        if self._marks:
            marks = orjson.loads(self._marks)
            self._watermark, self._high = marks["watermark"], marks["high"]
            self._restored = True

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Join the records to their sessions; forward those that are not at home; put aside those that cannot be used.

        All that comes in passes this loop, so it is written for speed; what is not plainly the next record of an open session leaves it.
        """
        self._next[topic] = records[-1].offset + 1
        opened, dirty, closing = self._open, self._dirty, self._closing
        idle_gap, max_events, max_bytes = closing.idle_gap_ms, closing.max_events, closing.max_bytes
        latest, horizon = self._now + closing.max_future_ms, self._watermark - closing.guard_ms
        traces, strays = topic == self._topics.traces, topic == self._topics.strays
        high, used, joined = self._high.get(topic, 0), None, 0
        for record in records:
            try:
                timestamp = record.timestamp
                if timestamp > latest:
                    self._refuse_future(f"the record's timestamp {timestamp}")
                if timestamp > high:
                    high = timestamp
                value = record.value
                if not value or record.headers or len(value) > max_bytes or len(record.key or b"") > KEPT_BYTES:
                    value = present(record, max_bytes)
                is_trace = traces or (strays and self._was_trace(record))
                session_id, at, identity, ends = read_trace(record, value) if is_trace else read_event(record, value)
                if at * 1_000 > latest:
                    self._refuse_future(f"{'metadata.created_at' if is_trace else 'occurred_at'}: {_moment(at)}")
                session = opened.get(session_id)
                if (
                    session is None
                    or session.segment
                    or session.identities.find(identity) >= 0
                    or not horizon <= timestamp <= session.deadline
                    or session.count >= max_events
                    or session.bytes + len(value) > max_bytes
                ):
                    session = self._place(session, session_id, identity, topic, record)
                used = timestamp
                if session is None:
                    continue
                session.add(TRACE if is_trace else EVENT, identity, at, value, timestamp)
                joined += 1
                if not session.ended:
                    if ends:
                        session.ended, session.deadline = True, timestamp + closing.linger_ms
                        self._await(session, session.deadline)
                    else:
                        session.deadline = session.last_record + idle_gap
                if not session.dirty:
                    session.dirty = True
                    dirty.append(session)
            except RecordRejected as why:
                self._put_aside(topic, record, why)
        self._high[topic] = high
        self.counters["consumed"] += len(records)
        if joined:
            self.counters["joined"] += joined
        if used is not None:
            self._note_lateness(used)

    def tick(self, now: float, behind: Collection[str]) -> None:
        """Close what is due.

        The watermark is the lowest of the highest timestamps seen on the inputs that are still behind, so that an input read faster
        than another closes nothing early; once all are read to their end, the clock moves it, set back while records came late.
        """
        self._now = int(now * 1000)
        if self._restored:  # while nobody was here, the strays of other partitions became late, too
            self._restored, self._backlog_at = False, self._now
            self._note_lateness(max(self._watermark, *self._high.values()))
        if behind:
            reached = min(self._high.get(topic, 0) for topic in behind)
            if self._now - reached > _SETTLING:
                self._backlog_at = self._now
        else:
            reached = self._now - (self._lateness if self._now < self._settled_at else 0)
        self._watermark = max(self._watermark, reached)
        while self._due and self._due[0][0] < self._watermark:
            due, name = heapq.heappop(self._due)
            session = self._open.get(name)
            if session is None or session.due != due:
                continue
            if session.deadline < self._watermark:
                self._close(session)
            else:
                self._await(session, session.deadline)
        self._closed.forget(self._watermark)

    def _note_lateness(self, timestamp: int) -> None:
        """How late records come, which sets the clock back for a while.

        After a backlog the strays of other partitions come as late as our own records did. Closing by the plain clock would cut them off.
        """
        if self._now - self._backlog_at > _CALM:
            return
        lateness = max(0, self._now - timestamp)
        if lateness >= self._lateness or self._now >= self._settled_at:
            settling = min(max(_SETTLING, lateness // _SHARE), _CALM)
            self._lateness, self._settled_at = lateness, self._now + settling

    def full(self) -> bool:
        """Never: joining is quicker than reading."""
        return False

    def cut(self) -> Cut:
        """Changed and closed sessions, strays and dead letters since the last cut."""
        rows, outputs, topic = self._rows, self._outputs, self._topics.sessions
        outputs += [Output(topic, self._partition, *found) for found in self._closed.documents()]
        written = [s.row() for s in self._dirty if s.why is None or self._closed.keeps(s)]
        # Deletions come first: a session that was forgotten may have begun again, under the same keys.
        rows += self._closed.rows()
        rows += written
        for session in self._dirty:
            session.dirty = False
        rows += self.counters.rows()
        marks = orjson.dumps({"watermark": self._watermark, "high": self._high}) if self._next else self._marks
        if marks != self._marks:
            rows.append((_MARKS, marks))
        cut = Cut(rows, outputs, self._next)
        self._marks = marks
        self._rows, self._outputs, self._next, self._dirty = [], [], {}, []
        return cut

    def drop(self) -> None:
        """Nothing runs on: there is nothing to stop."""

    def _place(
        self, session: OpenSession | None, session_id: bytes, identity: bytes, topic: str, record: Record
    ) -> OpenSession | None:
        """The session that a record joins: the open one, a closed one's next revision, or the next segment.

        None: it is a duplicate, or forwarded to its home.
        """
        if session is None and topic != self._topics.strays:
            home = partition_of(session_id, self._partitions)
            if home != self._partition:
                self._forward(record, session_id, home, topic)
                return None
        if record.timestamp < self._watermark - self._closing.guard_ms:
            raise RecordRejected(
                "late",
                f"the record's timestamp {record.timestamp} is more than {self._closing.guard_ms} ms behind the "
                f"watermark {self._watermark}; its session may be closed and forgotten",
            )
        guard = self._closed.guard_of(session_id) if session is None or session.segment else None
        if (session is not None and session.knows(identity)) or (guard is not None and guard.knows(identity)):
            self.counters["duplicate"] += 1
            return None
        size = len(record.value or b"")
        if session is not None:
            if record.timestamp > session.deadline:
                self._close(session)  # reading live, the clock would have closed it before this record came
            elif session.count < self._closing.max_events and session.bytes + size <= self._closing.max_bytes:
                return session
            else:
                self._close(session, "size_limit")
        return self._reopen(session_id, record.timestamp, size) or self._begin(session_id, record.timestamp)

    def _put_aside(self, topic: str, record: Record, why: RecordRejected) -> None:
        self.counters[f"dead_lettered.{why.reason}"] += 1
        letters, number = self._topics.dead_letters, self._partition
        self._outputs.append(dead_letter(letters, topic, number, record, "assemble", why.reason, why.detail))

    def _refuse_future(self, what: str) -> NoReturn:
        raise RecordRejected("future_timestamp", f"{what} is more than {self._closing.max_future_ms} ms ahead of now")

    def _was_trace(self, stray: Record) -> bool:
        origins = [content for name, content in stray.headers if name == ORIGIN]
        return origins[-1:] == [self._topics.traces.encode()]  # the last is ours; a producer may have sent one too

    def _forward(self, record: Record, session_id: bytes, home: int, topic: str) -> None:
        self.counters["forwarded"] += 1
        headers = [*record.headers, (ORIGIN, topic.encode())]
        self._outputs.append(Output(self._topics.strays, home, session_id, record.value, headers, record.timestamp))

    def _reopen(self, session_id: bytes, timestamp: int, size: int) -> OpenSession | None:
        closing, moment = self._closing, max(timestamp, self._watermark)
        session = self._closed.take_back(session_id, moment, closing.max_events - 1, closing.max_bytes - size)
        if session is not None:
            self.counters["closed"] -= 1
        else:
            session = self._closed.reopen(session_id, moment, closing.max_events - 1, closing.max_bytes - size)
            if session is None:
                return None
            self.counters["reopened"] += 1
        self._open[session_id] = session
        self._await(session, moment + closing.linger_ms)  # more may come with it
        if session.ended:
            session.deadline = max(session.deadline, timestamp + closing.linger_ms)
        return session

    def _begin(self, session_id: bytes, timestamp: int) -> OpenSession:
        self.counters["opened"] += 1
        guard = self._closed.guard_of(session_id)
        self._closed.drop_content(session_id)
        session = self._open[session_id] = OpenSession(session_id, guard.segment + 1 if guard else 0, timestamp)
        closing = self._closing
        self._await(
            session, max(timestamp + closing.idle_gap_ms, self._watermark + closing.linger_ms)
        )  # more may be as late
        return session

    def _await(self, session: OpenSession, moment: int) -> None:
        """Look at it when the watermark is past this moment; an earlier wish counts no more."""
        session.due = moment
        heapq.heappush(self._due, (moment, session.id))

    def _close(self, session: OpenSession, why: Closed | None = None) -> None:
        session.why = why or ("session.ended" if session.ended else "idle")
        self.counters["closed"] += 1
        del self._open[session.id]
        self._closed.add(session, self._watermark)

    def _load_chunk(self, key: bytes, row: bytes) -> None:
        name, segment, number = split_chunk_key(key)
        head, body = split(row)
        session = self._open.get(name)
        if session is None:
            session = self._open[name] = OpenSession(name, segment, head.first_record)
        session.restore(number, head, body)


def _has_closed(session: OpenSession, guard: Guard | None) -> bool:
    """Whether rows that were found are what is kept of a closed session, which the guard then tells."""
    return guard is not None and guard.segment == session.segment and guard.revision >= session.revision


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError):  # the zone may carry the end of the year 9999 into the next
        return f"{seconds:.0f} s after 1970"
