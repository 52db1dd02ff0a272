"""Defines the assemble stage, which joins events and traces into sessions.

docs/closing.md states when and why a session closes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from traceweir.schemas.dead_letter import KEPT_BYTES, ORIGIN, DeadLetter, first_place, place_text
from traceweir.schemas.session import ClosingReason
from traceweir.streams.base.stages.base import Cut, Output, Read, Record, Rows, dead_letter
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordRejected, SessionFailed
from traceweir.streams.base.stages.inputs import place_of
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.stages.watermark import SET_BACK, Watermark
from traceweir.streams.base.topics import Topics
from traceweir.streams.pipeline.assemble.closed_sessions import ClosedSessions
from traceweir.streams.pipeline.assemble.closing_rules import ClosingRules
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.parse import InOtherForm, checked_value, read_event, read_trace
from traceweir.streams.pipeline.assemble.partition_sessions import PartitionSessions
from traceweir.streams.pipeline.assemble.poison_session import dead_letters
from traceweir.streams.pipeline.assemble.refusals import (
    RefusalNote,
    letter_in_stray,
    refusal_of,
)
from traceweir.streams.pipeline.assemble.session_rows import (
    EVENT,
    TRACE,
)

# OpenTelemetry's SDK is loaded only where traces are on.
if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.stage_spans import AssembleSpans

log = logging.getLogger(__name__)

FORGOTTEN_ARE_KEPT = 2
"""The version of this stage from which on it keeps the digests of the sessions that it forgets."""


class AssembleStage:
    """Joins the records of the sessions of one home partition."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        topics: Topics,
        read: Read,
        closing: ClosingRules,
        spans: AssembleSpans | None = None,
        limits: RecordLimits | None = None,
    ) -> None:
        self._spans = spans
        self._partition = partition
        self._partitions = partitions
        self._topics = topics
        self._read = read
        self._limits = limits or RecordLimits()
        closing = self._closing = closing.within(self._limits.room(topics.sessions))
        self._watermark = Watermark(FORGOTTEN_ARE_KEPT)
        self._next: dict[str, int] = {}
        self._rows: Rows = []
        self._outputs: list[Output] = []
        self.counters = Counters()
        closed = ClosedSessions(
            read, closing.grace_ms, closing.guard_ms, closing.longest_gap_ms, closing.max_closed_sessions
        )
        self._sessions = PartitionSessions(closed, closing, self._watermark, self.counters)

    @property
    def held_bytes(self) -> int:
        """Size in bytes of the records in memory; the table contains all other records."""
        return self._sessions.held_bytes

    @property
    def open_sessions(self) -> int:
        """Number of open sessions."""
        return len(self._sessions.open)

    @property
    def watermark_ms(self) -> int:
        """The watermark in milliseconds since 1970; 0 before the first look at the clock."""
        return self._watermark.at

    @property
    def planned_looks(self) -> int:
        """Number of scheduled checks of sessions, including outdated checks."""
        return len(self._sessions.planned)

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores open sessions, guards and watermarks from the last finished checkpoint."""
        self.counters.load(rows)
        self._watermark.load(rows)
        self._sessions.load(rows, knows_all=self._watermark.written_by >= FORGOTTEN_ARE_KEPT)

    def apply(self, source: str, records: Sequence[Record]) -> None:
        """Joins records to their sessions, forwards misrouted records, and turns unusable records into dead letters.

        This loop handles every incoming record, so it is written for speed. `_place` handles the records that are not
        simply the next record of an open session.
        """
        self._next[source] = records[-1].offset + 1
        topic = place_of(source, self._partition).topic
        sessions = self._sessions
        opened = sessions.open
        dirty = sessions.changed
        closing = self._closing
        idle_gap = closing.idle_gap_ms
        max_events = closing.max_events
        max_bytes = closing.max_bytes
        now = self._watermark.now
        latest = now + closing.max_future_ms
        horizon = self._watermark.at - closing.guard_ms
        traces = topic == self._topics.traces
        strays = topic == self._topics.strays
        traced = self._spans
        idle = ClosingReason.IDLE
        high = self._watermark.high.get(source, 0)
        used = None
        joined = 0
        for record in records:
            try:
                timestamp = record.timestamp
                if high < timestamp <= now:
                    high = timestamp
                if strays and (sent := self._letter_in(record)) is not None:
                    self._take_letter(record, *sent)
                    continue
                if timestamp > latest:
                    self._refuse_future(f"the record's timestamp {timestamp}")
                value = record.value
                if not value or record.headers or len(value) > max_bytes or len(record.key or b"") > KEPT_BYTES:
                    value = checked_value(record, max_bytes)
                is_trace = traces or (strays and self._was_trace(record))
                try:
                    session_id, at, identity, ending = (
                        read_trace(record, value) if is_trace else read_event(record, value)
                    )
                except InOtherForm as found:
                    value, (session_id, at, identity, ending) = found.value, found.key
                    # Rewriting writes some numbers with more digits.
                    if len(value) > max_bytes:
                        raise RecordRejected(
                            "too_large",
                            f"the record has {len(value)} bytes in the form of the schema; a session can have at most "
                            f"{max_bytes}",
                        ) from None
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
                    session = self._place(session, session_id, identity, topic, record, len(value))
                is_late = timestamp < horizon
                if not is_late:
                    used = timestamp
                if session is None:
                    continue
                session.add(TRACE if is_trace else EVENT, identity, at, value, timestamp)
                joined += 1
                if record.headers:
                    sessions.note_replay(session, record)
                    if traced is not None:
                        traced.note(session, record.headers)
                if session.closes_because is idle:
                    if ending is not None:
                        session.closes_because, session.expected = ending
                        session.deadline = timestamp + closing.linger_ms
                        sessions.schedule(session, session.deadline)
                    elif (deadline := session.last_record + idle_gap) > session.deadline:
                        session.deadline = deadline
                if is_late:
                    sessions.wait_for_more(session)
                if not session.dirty:
                    session.dirty = True
                    dirty.append(session)
                if session.expected is not None and session.is_complete:
                    sessions.close(session, session.closes_because)
            except RecordRejected as why:
                self._reject(source, record, why)
        self._watermark.high[source] = high
        self.counters["consumed"] += len(records)
        if joined:
            self.counters["joined"] += joined
        if used is not None:
            self._watermark.note_lateness(used)

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Moves the watermark, and closes due sessions. Those beyond `CUT_BYTES` close in a tick after the next cut."""
        if ahead_ms := self._watermark.advance(now, behind):
            self.counters["watermark_set_back"] += 1
            log.warning(SET_BACK, self._partition, "assemble", ahead_ms / 1000)
            self._sessions.end_waits()
        sessions = self._sessions
        sessions.close_due()
        watermark = self._watermark.at
        if forgotten := sessions.closed.forget(watermark, self._watermark.now + self._closing.max_future_ms):
            self.counters["forgotten_early"] += forgotten
        sessions.waiting.forget(watermark)

    def has_outputs(self) -> bool:
        """Returns whether sessions have closed, or records were forwarded or rejected, since the last cut."""
        return bool(self._outputs) or self._sessions.closed.has_unpublished

    def full(self) -> bool:
        """Returns False, because joining is faster than fetching."""
        return False

    def cut(self) -> Cut:
        """Returns changed and closed sessions, strays and dead letters since the last cut.

        Raises:
            SessionFailed: the document of this session cannot be made, or does not fit its topic.
        """
        sessions = self._sessions
        rows = self._rows
        outputs = self._outputs
        topic = self._topics.sessions
        closed = sessions.closed.unpublished if self._spans is not None else ()
        for session_id, document in sessions.closed.documents():
            if (problem := self._limits.problem(topic, session_id, document)) is not None:
                # The limit was higher when the session's last record came.
                raise SessionFailed(session_id, RecordRejected("too_large", problem))
            outputs.append(Output(topic, self._partition, session_id, document))
        if self._spans is not None:
            self._spans.closed(closed)
        written = [s.row() for s in sessions.changed if s.closed_because is None or sessions.closed.keeps(s)]
        # Deletions come first: a forgotten session can have started again under the same keys.
        rows += sessions.closed.rows()
        rows += written
        rows += sessions.waiting.rows()
        for session in sessions.changed:
            session.dirty = False
        rows += self.counters.rows()
        # What the watermark has closed or forgotten is never without it.
        if self._next or rows or outputs:
            rows += self._watermark.rows() + sessions.closed.forgotten_rows()
        cut = Cut(rows, outputs, self._next)
        self._rows = []
        self._outputs = []
        self._next = {}
        sessions.changed = []
        sessions.closed_bytes = 0
        return cut

    def drop(self) -> None:
        """Does nothing, because this stage has no running work."""

    def _place(
        self, session: OpenSession | None, session_id: bytes, identity: bytes, topic: str, record: Record, size: int
    ) -> OpenSession | None:
        """Returns the session that a record joins, or None.

        The session is the open session, the next revision of a closed session, or the next segment. The result is None
        for a duplicate and for a record that is forwarded to its home partition.
        """
        if session is None and topic != self._topics.strays:
            home = partition_of(session_id, self._partitions)
            if home != self._partition:
                self._forward(record, session_id, home, topic)
                return None
        is_late = record.timestamp < self._watermark.at - self._closing.guard_ms
        if is_late and self._sessions.closed.can_have_joined(session_id, record.timestamp):
            raise RecordRejected(
                "late",
                f"the record's timestamp {record.timestamp} is more than {self._closing.guard_ms} ms behind the "
                f"watermark {self._watermark.at}; its session can have been closed with this record and forgotten",
            )
        guard = self._sessions.closed.guard_of(session_id) if session is None or session.segment else None
        if (session is not None and session.knows(identity)) or (guard is not None and guard.knows(identity)):
            self.counters["duplicate"] += 1
            return None
        if session is not None:
            if record.timestamp > session.deadline:
                # When reading live, the clock would have closed the session before this record arrived.
                self._sessions.close(session, session.closes_because)
            elif session.count < self._closing.max_events and session.bytes + size <= self._closing.max_bytes:
                return session
            else:
                self._sessions.close(session, ClosingReason.SIZE_LIMIT)
        return self._sessions.reopen(session_id, record.timestamp, size) or self._sessions.begin(
            session_id, record.timestamp, size
        )

    def reject(self, source: str, record: Record, why: RecordRejected) -> None:
        """Turns the next record of an input into a dead letter. Only its timestamp counts, as that of every dead letter."""
        self._next[source] = record.offset + 1
        self._watermark.note_reached(source, record.timestamp)
        self.counters["consumed"] += 1
        strays = place_of(source, self._partition).topic == self._topics.strays
        if strays and (sent := self._letter_in(record)) is not None:
            # The stage raised on a dead letter: it goes the way of all dead letters, with the record's own place.
            self._take_letter(record, *sent)
        else:
            self._reject(source, record, why)

    def set_aside(self, session: bytes, why: RecordRejected) -> None:
        """Turns the records of an open session into dead letters, because the stage cannot close the session."""
        found = self._sessions.open.pop(session, None)
        if found is None:
            return
        outputs = dead_letters(found, self._read, self._topics, self._partition, why)
        self._outputs += outputs
        self._rows += [(found.key(number), None) for number in range(found.saved)]
        self.counters["joined"] -= len(outputs)
        self.counters[f"dead_lettered.{why.reason}"] += len(outputs)
        self.counters["reopened" if found.revision else "opened"] -= 1

    def _reject(self, source: str, record: Record, why: RecordRejected) -> None:
        """Makes a dead letter of a record. If the record's session has another home, the letter goes there for its note."""
        reason = why.reason
        letter = dead_letter(self._topics.dead_letters, source, self._partition, record, "assemble", reason, why.detail)
        place = place_of(source, self._partition)
        where = first_place(record.headers) or place_text(*place, record.offset)
        is_trace = place.topic == self._topics.traces or (
            place.topic == self._topics.strays and self._was_trace(record)
        )
        refusal = refusal_of(record, where, reason, is_trace=is_trace)
        home = self._partition if refusal is None else partition_of(refusal.session_id, self._partitions)
        at = self._time_of_note(record.timestamp)
        if refusal is not None and home != self._partition:
            strays = self._topics.strays
            headers = [*letter.headers, refusal.header()]
            fits = self._limits.problem(strays, letter.key, letter.value, headers) is None
            if fits and place.topic != strays:
                self.counters["forwarded"] += 1
                self._outputs.append(Output(strays, home, letter.key, letter.value, headers, at))
                return
            refusal = None
        self._write(letter, reason)
        if refusal is not None:
            self._sessions.note_refusal(refusal, at)

    def _letter_in(self, stray: Record) -> tuple[DeadLetter, RefusalNote] | None:
        """Returns the dead letter that another partition has sent here; None for any other stray."""
        inputs = (self._topics.traces, self._topics.invocations)
        return letter_in_stray(stray, inputs, self._partition, self._partitions)

    def _take_letter(self, stray: Record, letter: DeadLetter, refusal: RefusalNote) -> None:
        """Writes the dead letter of a record that another partition has refused, and notes it in the session."""
        headers = list(stray.headers[:-1])
        self._write(Output(self._topics.dead_letters, self._partition, stray.key, stray.value, headers), letter.reason)
        timestamp = stray.timestamp if letter.timestamp is None else letter.timestamp
        self._sessions.note_refusal(refusal, self._time_of_note(timestamp))

    def _write(self, letter: Output, reason: str) -> None:
        self.counters[f"dead_lettered.{reason}"] += 1
        self._outputs.append(letter)

    def _time_of_note(self, timestamp: int) -> int:
        """Returns the time that counts for a note: now, for a record with a timestamp that is refused as of the future."""
        now = self._watermark.now
        return timestamp if timestamp <= now + self._closing.max_future_ms else now

    def _refuse_future(self, what: str) -> NoReturn:
        raise RecordRejected("future_timestamp", f"{what} is more than {self._closing.max_future_ms} ms ahead of now")

    def _was_trace(self, stray: Record) -> bool:
        origins = [content for name, content in stray.headers if name == ORIGIN]
        return origins[-1:] == [
            self._topics.traces.encode()
            # A producer can have sent the same header; the worker appends its own header as the last.
        ]

    def _forward(self, record: Record, session_id: bytes, home: int, topic: str) -> None:
        headers = [*record.headers, (ORIGIN, topic.encode())]
        if (problem := self._limits.problem(self._topics.strays, session_id, record.value, headers)) is not None:
            raise RecordRejected("too_large", problem)
        self.counters["forwarded"] += 1
        self._outputs.append(Output(self._topics.strays, home, session_id, record.value, headers, record.timestamp))


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError):
        # A time zone can move the end of the year 9999 into the next year.
        return f"{seconds:.0f} s after 1970"
