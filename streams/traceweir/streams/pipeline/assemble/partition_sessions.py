"""Keeps the sessions of one partition: which are open, until when, how they close, and how they are opened again."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from traceweir.schemas.dead_letter import first_place
from traceweir.schemas.session import ClosingReason
from traceweir.streams.base.stages.base import CUT_BYTES, Record
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import SessionFailed
from traceweir.streams.base.stages.watermark import Watermark
from traceweir.streams.pipeline.assemble.closed_sessions import ClosedSessions
from traceweir.streams.pipeline.assemble.closing_rules import ClosingRules
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.refusals import (
    RefusalNote,
    has_all_notes,
    place_of_letter,
    refused_identity,
    replayed_identity,
)
from traceweir.streams.pipeline.assemble.session_rows import REFUSED, REPLAYED, Guard, split, split_chunk_key
from traceweir.streams.pipeline.assemble.waiting_refusals import WaitingRefusals

SEGMENTS_APART = 1_000_000
"""Distance of the first segments before and after a watermark was set back; a session has fewer segments in an hour."""


class PartitionSessions:
    """Holds the open and the closed sessions of one home partition, and what waits for sessions that have not begun."""

    def __init__(self, closed: ClosedSessions, closing: ClosingRules, watermark: Watermark, counters: Counters) -> None:
        self._closing = closing
        self._watermark = watermark
        self._counters = counters
        self.open: dict[bytes, OpenSession] = {}
        """The open sessions by id."""
        self.closed = closed
        self.waiting = WaitingRefusals()
        self.planned: list[tuple[int, bytes]] = []
        """The scheduled checks of sessions as a heap, including outdated checks."""
        self.changed: list[OpenSession] = []
        """The sessions that have changed since the last cut, closed ones included."""
        self.closed_bytes = 0
        """Bytes of the sessions that have closed since the last cut."""

    @property
    def held_bytes(self) -> int:
        """Size in bytes of the records in memory; the table contains all other records."""
        opened = sum(session.held_bytes for session in self.open.values())
        return opened + self.closed.held_bytes + self.waiting.held_bytes

    def load(self, rows: Mapping[bytes, bytes], *, knows_all: bool) -> None:
        """Restores open sessions and guards from the last finished checkpoint, after the watermark.

        Args:
            rows: The rows of the stage.
            knows_all: Whether the rows have the digests of all sessions that were forgotten.
        """
        guards: dict[bytes, Guard] = {}
        for key in sorted(rows):
            if key.startswith(b"c"):
                self._load_chunk(key, rows[key])
            elif key.startswith(b"g"):
                guards[key[1:]] = Guard.unpack(rows[key])
        contents = [session for session in self.open.values() if _has_closed(session, guards.get(session.id))]
        for session in contents:
            del self.open[session.id]
        self.waiting.load(rows)
        self.closed.load(
            ((guard.closed_at, name) for name, guard in guards.items()), contents, rows, knows_all=knows_all
        )
        for session in self.open.values():
            # No row says when a session was reopened, so a restart begins its hold again; the grace still bounds the hold.
            held = self._hold_until(session, self._watermark.at) if session.revision else 0
            self.schedule(session, max(session.deadline, held))

    def close_due(self) -> None:
        """Closes the sessions that are due by the watermark. Those beyond `CUT_BYTES` close in a call after the next cut."""
        watermark = self._watermark.at
        # After a pause of a session's agents, or of the workers, many sessions can be due at the same time.
        while self.planned and self.planned[0][0] < watermark and self.closed_bytes < CUT_BYTES:
            due, name = heapq.heappop(self.planned)
            session = self.open.get(name)
            if session is None or session.due != due:
                continue
            if session.deadline < watermark:
                self.close(session, session.closes_because)
            else:
                self.schedule(session, session.deadline)

    def begin(self, session_id: bytes, timestamp: int, size: int) -> OpenSession:
        """Begins the next segment of a session, with the notes that wait for it.

        Args:
            session_id: The session.
            timestamp: The time of its first record, in milliseconds since 1970.
            size: The size of this record in bytes.
        """
        self._counters["opened"] += 1
        guard = self.closed.guard_of(session_id)
        self.closed.drop_content(session_id)
        self._make_room()
        session = self.open[session_id] = OpenSession(
            session_id, guard.segment + 1 if guard else self._first_segment(), timestamp
        )
        closing = self._closing
        for refusal in self.waiting.take(session_id, max(timestamp, self._watermark.at)):
            self._add_note(session, refusal, size)
        # More records can be as late as this record, so the session stays open for at least the linger.
        self.schedule(session, max(timestamp + closing.idle_gap_ms, self._watermark.at + closing.linger_ms))
        return session

    def reopen(self, session_id: bytes, timestamp: int, size: int, *, for_note: bool = False) -> OpenSession | None:
        """Returns a closed session as open again; None if it cannot be reopened.

        Args:
            session_id: The session.
            timestamp: The time of the record, in milliseconds since 1970.
            size: Its size in bytes, or that of its note.
            for_note: Whether the record was refused, so that it does not count and keeps the session open for the hold only.
        """
        closing = self._closing
        moment = max(timestamp, self._watermark.at)
        most_events = closing.max_events if for_note else closing.max_events - 1
        if not self.closed.can_reopen(session_id, moment, most_events, closing.max_bytes - size):
            return None
        session = self.closed.take_back(session_id)
        if session is not None:
            self._counters["closed"] -= 1
            if session.closed_because is ClosingReason.SESSION_LIMIT:
                self._counters["session_limit"] -= 1
            hold_until = max(session.due, moment + closing.linger_ms)
        elif self.closed.revision_of(session_id) >= closing.max_revisions:
            if not for_note:
                self._counters["revision_limit"] += 1
            return None
        else:
            session = self.closed.reopen(session_id)
            self._counters["reopened"] += 1
            hold_until = 0
        session.closed_because = None
        self._make_room()
        self.open[session_id] = session
        if not for_note:
            gap_ms = closing.idle_gap_ms if session.closes_because is ClosingReason.IDLE else closing.linger_ms
            session.deadline = max(session.deadline, timestamp + gap_ms)
        self.schedule(session, hold_until or self._hold_until(session, moment))
        return session

    def close(self, session: OpenSession, reason: ClosingReason) -> None:
        """Closes an open session.

        Raises:
            SessionFailed: the rows of the session cannot be used.
        """
        self._counters["closed"] += 1
        self.closed_bytes += session.bytes
        del self.open[session.id]
        try:
            self.closed.add(session, reason, self._watermark.at)
        except Exception as error:
            # Whatever the session's rows cause must not stop the other sessions.
            raise SessionFailed(session.id, error) from error

    def wait_for_more(self, session: OpenSession) -> None:
        """Keeps a session open for the idle gap after a late record, also after its end.

        The other records of the session come as late, from other partitions and topics too.
        """
        session.deadline = max(session.deadline, self._watermark.at + self._closing.idle_gap_ms)

    def end_waits(self) -> None:
        """Lets sessions that wait for more late records close by their own time: they wait until a time of a fast clock."""
        for session in self.open.values():
            due = session.last_record + self._closing.longest_gap_ms
            if due < session.deadline:
                session.deadline = due
                self.schedule(session, due)

    def schedule(self, session: OpenSession, moment: int) -> None:
        """Schedules the next check of a session, and replaces an earlier one."""
        session.due = moment
        heapq.heappush(self.planned, (moment, session.id))

    def note_refusal(self, refusal: RefusalNote, at: int) -> None:
        """Notes in a session that a record of it was refused.

        A closed session is reopened for the note, as for a late record. If there is none, the note waits for the session:
        for the idle gap and the grace. A valid record would have joined the session within this time. So it does not
        matter which topic is read first. The note begins no session, and keeps none open.

        Args:
            refusal: The note.
            at: The time of the record, in milliseconds since 1970.
        """
        session_id, identity, raw = refusal
        session = self.open.get(session_id)
        guard = self.closed.guard_of(session_id) if session is None or session.segment else None
        if guard is not None and guard.knows(identity):
            return
        if session is not None and at > session.deadline + self._closing.grace_ms:
            # When reading live, the clock would have closed the session, and forgotten its content.
            session = None
        elif session is None:
            if guard is not None and has_all_notes(guard.own_identities):
                self._counters["notes.dropped"] += 1
                return
            session = self.reopen(session_id, at, len(raw), for_note=True)
        if session is None:
            until = max(at + self._closing.grace_ms, self._watermark.at) + self._closing.idle_gap_ms
            if self.waiting.add(refusal, until):
                self._counters["notes.dropped"] += 1
        else:
            self._add_note(session, refusal, 0)

    def note_replay(self, session: OpenSession, record: Record) -> None:
        """Notes in a session that a record of it which was refused has come back with this record."""
        where = first_place(record.headers)
        if where is not None and session.knows(refused_identity(where)):
            session.note(REPLAYED, replayed_identity(where), place_of_letter(where).encode())

    def _add_note(self, session: OpenSession, refusal: RefusalNote, size: int) -> None:
        """Notes a refused record in an open session, if there is room for it beside a record of a size in bytes."""
        _, identity, raw = refusal
        if session.knows(identity):
            return
        if session.bytes + len(raw) + size <= self._closing.max_bytes and session.note(REFUSED, identity, raw):
            self._mark_changed(session)
        else:
            self._counters["notes.dropped"] += 1

    def _mark_changed(self, session: OpenSession) -> None:
        if not session.dirty:
            session.dirty = True
            self.changed.append(session)

    def _hold_until(self, session: OpenSession, moment: int) -> int:
        """Returns until when a session that was reopened at a moment stays open for more late records."""
        remaining_ms = session.deadline + self._closing.grace_ms - moment
        return moment + self._closing.hold_ms(session.revision, remaining_ms)

    def _first_segment(self) -> int:
        """Returns the number of the first segment of a session that has no guard.

        An owner with a fast clock has forgotten sessions before their time. Until the time of their guards is over, new
        segments have numbers that those sessions have not used, so that their ids do not come twice.
        """
        marks = self._watermark
        forgot = marks.set_backs and marks.at <= marks.set_back_at + self._closing.guard_ms
        return marks.set_backs * SEGMENTS_APART if forgot else 0

    def _make_room(self) -> None:
        """Closes the session that is due first if the partition has as many open sessions as it can have.

        A restart with a lower limit finds more sessions. It closes two for each new one, because closing all of them at once
        would make one checkpoint of all of them.
        """
        for _ in range(2):
            if len(self.open) < self._closing.max_open_sessions:
                return
            self.close(self._first_due(), ClosingReason.SESSION_LIMIT)
            self._counters["session_limit"] += 1

    def _first_due(self) -> OpenSession:
        """Returns the open session that is due first, and removes its planned check.

        A check that a later record has outdated is planned again, so that each record causes at most one more check.
        """
        while True:
            due, name = heapq.heappop(self.planned)
            session = self.open.get(name)
            if session is None or session.due != due:
                continue
            if session.deadline <= due:
                return session
            self.schedule(session, session.deadline)

    def _load_chunk(self, key: bytes, row: bytes) -> None:
        name, segment, number = split_chunk_key(key)
        head, body = split(row)
        session = self.open.get(name)
        if session is None:
            session = self.open[name] = OpenSession(name, segment, head.first_record)
        session.restore(number, head, body)


def _has_closed(session: OpenSession, guard: Guard | None) -> bool:
    """Returns whether loaded rows belong to a closed session, according to the session's guard."""
    return guard is not None and guard.segment == session.segment and guard.revision >= session.revision
