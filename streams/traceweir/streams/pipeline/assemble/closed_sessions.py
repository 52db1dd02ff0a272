"""Keeps the closed sessions of a partition.

Their contents are kept for the grace period, in which a late event reopens the session; their guards are kept longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from traceweir.schemas.session import ClosingReason
from traceweir.streams.base.stages.base import Read, Rows
from traceweir.streams.base.stages.errors import SessionFailed
from traceweir.streams.pipeline.assemble.forgotten_sessions import ForgottenSessions
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.session_rows import Guard, chunk_key, guard_key, split


class _Content(NamedTuple):
    segment: int
    chunks: int
    events: int
    size: int
    revision: int
    until: int
    """Watermark and record timestamp up to which the session can be reopened, in milliseconds since 1970."""


class _Fresh(NamedTuple):
    session: OpenSession
    guard_before: Guard | None


class ClosedSessions:
    """The closed sessions of one partition.

    Args:
        read: Reads a row as of the last cut.
        grace: Time after the due close in which a session can be reopened, in milliseconds.
        guard: Time after the close for which the guard of a session is kept, in milliseconds. The guard must be kept at
            least as long as the content: content without a guard looks like the content of an open session.
        gap: Maximum time from the last record of a session to its due close, in milliseconds. A session with late records
            is open for longer, and cannot be reopened: the score stage, which goes by record time, has forgotten it.
        most: Number of sessions that are remembered; beyond it, the session that closed first is forgotten. The digests of up to the same
            number of forgotten sessions are remembered.
    """

    def __init__(self, read: Read, grace: int, guard: int, gap: int, most: int) -> None:
        self._read = read
        self._grace = grace
        self._guard = guard
        self._gap = gap
        self._most = most
        self._forgotten = ForgottenSessions(most)
        self._published: dict[OpenSession, None] = {}
        # Closed since the last cut.
        self._fresh: dict[bytes, _Fresh] = {}
        # In the last cut, whose rows may not be readable yet.
        self._settling: dict[bytes, OpenSession] = {}
        self._fresh_guards: dict[bytes, Guard] = {}
        self._settling_guards: dict[bytes, Guard] = {}
        # The time of each close, in the order of the closes.
        self._guarded: dict[bytes, int] = {}
        self._contents: dict[bytes, _Content] = {}
        self._rows: Rows = []

    @property
    def held_bytes(self) -> int:
        """Size of the records in memory: of sessions that are not published, or whose rows may not be readable yet."""
        fresh = (each.session for each in self._fresh.values())
        return sum(session.held_bytes for session in {*self._published, *fresh, *self._settling.values()})

    def load(
        self,
        guards: Iterable[tuple[int, bytes]],
        contents: Iterable[OpenSession],
        rows: Mapping[bytes, bytes],
        *,
        knows_all: bool,
    ) -> None:
        """Restores the sessions of the last finished checkpoint.

        Args:
            guards: The id of each session with a guard, after the time of its close.
            contents: The sessions whose contents are kept.
            rows: All rows of the stage, for the forgotten sessions.
            knows_all: Whether their last writer has kept the sessions that it forgot.
        """
        self._forgotten.load(rows, knows_all=knows_all)
        self._guarded = {name: closed_at for closed_at, name in sorted(guards)}
        for session in sorted(contents, key=lambda each: each.deadline):
            self._keep(session)

    def add(self, session: OpenSession, reason: ClosingReason, watermark: int) -> None:
        """Adds a session that closes. Its guard is the row that keeps the reason.

        A session that closed at the size limit cannot be reopened, so its content is not kept.
        """
        session.closed_because = reason
        name = session.id
        closed_at = max(watermark, session.last_record)
        former = self.guard_of(name) if session.segment or session.revision else None
        before = self._fresh_guards.get(name)
        self._fresh_guards[name] = Guard.of(
            session.segment, session.revision, closed_at, reason, bytes(session.identities), former
        )
        self._guarded.pop(name, None)
        self._guarded[name] = closed_at
        self._published[session] = None
        if reason is ClosingReason.SIZE_LIMIT:
            self._delete(name, session.segment, session.saved)
        else:
            self._fresh[name] = _Fresh(session, before)
            self._keep(session)

    def guard_of(self, name: bytes) -> Guard | None:
        """Returns the guard of a session; None if there is no guard."""
        if name not in self._guarded:
            return None
        guard = self._fresh_guards.get(name) or self._settling_guards.get(name)
        if guard is None:
            row = self._read(guard_key(name))
            guard = Guard.unpack(row) if row else None
        return guard

    def can_have_joined(self, name: bytes, timestamp: int) -> bool:
        """Returns whether a session can have joined a late record whose identity is no longer known.

        Args:
            name: The session.
            timestamp: The record's timestamp, in milliseconds since 1970.
        """
        guard = self.guard_of(name)
        return self._forgotten.can_have(name, timestamp) or (guard is not None and guard.is_full)

    def can_reopen(self, name: bytes, moment: int, max_events: int, max_bytes: int) -> bool:
        """Returns whether a late record can join a closed session; False if the session is unknown.

        Args:
            name: The session.
            moment: The later of the watermark and the timestamp of the record; the grace period must contain it.
            max_events: Maximum number of events in the session.
            max_bytes: Maximum number of bytes in the session.
        """
        content = self._contents.get(name)
        return (
            content is not None
            and moment <= content.until
            and content.events <= max_events
            and content.size <= max_bytes
        )

    def revision_of(self, name: bytes) -> int:
        """Returns the revision of a session that can be reopened."""
        return self._contents[name].revision

    def take_back(self, name: bytes) -> OpenSession | None:
        """Undoes the close of a session that can be reopened; None if the close is published already.

        Without this method, a backlog would publish a revision at every pause of a session.
        """
        if name not in self._fresh:
            return None
        session, guard = self._fresh.pop(name)
        del self._contents[name], self._published[session], self._fresh_guards[name]
        if guard is not None:
            self._fresh_guards[name] = guard
        return session

    def reopen(self, name: bytes) -> OpenSession:
        """Returns the next revision of a session that can be reopened.

        Raises:
            RuntimeError: a row is missing from the table.
        """
        content = self._contents.pop(name)
        session = self._settling.pop(name, None) or self._restored(name, content)
        session.revision += 1
        return session

    def drop_content(self, name: bytes) -> None:
        """Deletes the content of a session, so that the session cannot be reopened."""
        content = self._contents.pop(name, None)
        if content is not None:
            self._fresh.pop(name, None)
            self._settling.pop(name, None)
            self._delete(name, content.segment, content.chunks)

    def forget(self, watermark: int, latest: int) -> int:
        """Deletes expired contents and guards, and the oldest guards beyond the maximum.

        Args:
            watermark: The watermark.
            latest: The latest timestamp that a joined record can have.

        Returns:
            The number of guards that were deleted because of the maximum.
        """
        self._forgotten.note_time(latest)
        while self._contents and (first := next(iter(self._contents.items())))[1].until < watermark:
            self.drop_content(first[0])
        early = 0
        while self._guarded:
            name, closed_at = next(iter(self._guarded.items()))
            expired = closed_at < watermark - self._guard
            if name in self._fresh_guards or not (expired or len(self._guarded) > self._most):
                # A fresh guard is not written yet.
                break
            early += not expired
            self.drop_content(name)
            del self._guarded[name]
            self._forgotten.add(name, closed_at)
            self._rows.append((guard_key(name), None))
        return early

    def keeps(self, session: OpenSession) -> bool:
        """Returns whether the content of a session that closed since the last cut must be written."""
        fresh = self._fresh.get(session.id)
        return fresh is not None and fresh.session is session

    @property
    def has_unpublished(self) -> bool:
        """Whether a session has closed since the last cut."""
        return bool(self._published)

    @property
    def unpublished(self) -> list[OpenSession]:
        """The sessions that closed since the last cut, in order."""
        return list(self._published)

    def documents(self) -> list[tuple[bytes, bytes]]:
        """Returns ids and documents of the sessions that closed since the last cut, in order.

        Call this method before `rows`.

        Raises:
            SessionFailed: the document of this session cannot be made.
        """
        published = self._published
        self._published = {}
        found = []
        for session in published:
            try:
                found.append((session.id, session.document(self._read)))
            except Exception as error:
                # Whatever the session's rows cause must not stop the other sessions.
                raise SessionFailed(session.id, error) from error
        return found

    def rows(self) -> Rows:
        """Returns the changed rows since the last cut, without the contents.

        Call this method after the contents were written.
        """
        rows = self._rows
        self._rows = []
        for name, fresh in self._fresh.items():
            self._contents[name] = self._contents[name]._replace(chunks=fresh.session.saved)
        rows += [(guard_key(name), guard.pack()) for name, guard in self._fresh_guards.items()]
        self._settling = {name: fresh.session for name, fresh in self._fresh.items()}
        self._fresh = {}
        self._settling_guards = self._fresh_guards
        self._fresh_guards = {}
        return rows

    def forgotten_rows(self) -> Rows:
        """Returns the changed rows of forgotten sessions. The first checkpoint with any row must contain one of them."""
        return self._forgotten.rows()

    def _keep(self, session: OpenSession) -> None:
        until = min(session.deadline, session.last_record + self._gap) + self._grace
        self._contents[session.id] = _Content(
            session.segment, session.saved, session.count, session.bytes, session.revision, until
        )

    def _delete(self, name: bytes, segment: int, chunks: int) -> None:
        self._rows += [(chunk_key(name, segment, number), None) for number in range(chunks)]

    def _restored(self, name: bytes, content: _Content) -> OpenSession:
        session = OpenSession(name, content.segment, 0)
        for number in range(content.chunks):
            session.restore(number, *split(session.saved_row(number, self._read)))
        return session
