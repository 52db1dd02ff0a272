"""Defines an open session: its state in memory, its rows, and its document after the close."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from operator import itemgetter

import orjson

from traceweir.schemas.session import ClosingReason
from traceweir.streams.base.stages.base import Read
from traceweir.streams.pipeline.assemble.closing_rules import Expectation
from traceweir.streams.pipeline.assemble.refusals import has_all_notes
from traceweir.streams.pipeline.assemble.session_rows import (
    CHUNK,
    EVENT,
    REFUSED,
    REPLAYED,
    TRACE,
    ChunkHeader,
    chunk_key,
    entry_head,
    identities,
    is_among,
    split,
    unpack,
)


class OpenSession:
    """Holds an open session: the identities of all joined records, and the records outside sealed chunks."""

    __slots__ = (
        "bytes",
        "closed_because",
        "closes_because",
        "contexts",
        "count",
        "deadline",
        "dirty",
        "due",
        "expected",
        "first_record",
        "id",
        "identities",
        "last_record",
        "new",
        "revision",
        "saved",
        "sealed",
        "segment",
        "tail",
        "traces",
    )

    def __init__(self, session_id: bytes, segment: int, timestamp: int) -> None:
        self.id = session_id
        self.segment = segment
        self.first_record = self.last_record = self.deadline = self.due = timestamp
        self.revision = self.count = self.traces = self.bytes = self.sealed = self.saved = 0
        self.identities = bytearray()
        self.tail = b""
        self.new: list[bytes] = []
        self.dirty = False
        self.closes_because = ClosingReason.IDLE
        """Why the session closes at its deadline. Its rows keep the reason, so that a restart does not change it."""
        self.closed_because: ClosingReason | None = None
        """Why the session has closed; None while it is open."""
        self.expected: Expectation | None = None
        self.contexts: dict[bytes, None] | None = None

    @property
    def held_bytes(self) -> int:
        """Size in bytes of the records in memory, which are those outside sealed chunks."""
        return len(self.tail) + sum(map(len, self.new))

    @property
    def is_complete(self) -> bool:
        """Whether exactly the records have come that the producer has announced.

        A later segment has only a part of the records, so its numbers say nothing.
        """
        return not self.segment and (self.count - self.traces, self.traces) == self.expected

    def knows(self, identity: bytes) -> bool:
        """Returns whether a record with this identity was joined."""
        return is_among(identity, self.identities)

    def note(self, kind: bytes, identity: bytes, raw: bytes) -> bool:
        """Notes something about a refused record, which only takes room in the session.

        The result is False if it was noted before, or if the session has as many refused records as it can know.

        Args:
            kind: `REFUSED` or `REPLAYED`.
            identity: The identity of the note, 16 bytes.
            raw: A `RefusedRecord` in JSON, or the place of one.
        """
        if self.knows(identity) or (kind == REFUSED and has_all_notes(self.identities)):
            return False
        self.new += (entry_head(kind, identity, 0.0, raw), raw)
        self.identities += identity
        self.bytes += len(raw) + 1
        return True

    def add(self, kind: bytes, identity: bytes, at: float, raw: bytes, timestamp: int) -> None:
        """Joins a record.

        Args:
            kind: `EVENT` or `TRACE`.
            identity: The record's identity, 16 bytes.
            at: Time that orders the record in the session, in seconds since 1970.
            raw: The record's value.
            timestamp: The record's timestamp, in milliseconds since 1970.
        """
        self.new += (entry_head(kind, identity, at, raw), raw)
        self.identities += identity
        self.count += 1
        if kind == TRACE:
            self.traces += 1
        self.bytes += len(raw) + 1
        if timestamp > self.last_record:
            self.last_record = timestamp

    def key(self, chunk: int) -> bytes:
        """Returns the key of a chunk row."""
        return chunk_key(self.id, self.segment, chunk)

    def row(self) -> tuple[bytes, bytes]:
        """Returns the last chunk row, including all new records.

        A chunk of at least `CHUNK` bytes is sealed, and its records leave memory.
        """
        self.tail = b"".join([self.tail, *self.new])
        self.new.clear()
        head = ChunkHeader(
            self.first_record,
            self.last_record,
            self.deadline,
            self.count,
            self.bytes,
            self.revision,
            self.closes_because,
            self.expected,
        )
        key = self.key(self.sealed)
        value = head.pack() + self.tail
        self.saved = self.sealed + 1
        if len(self.tail) >= CHUNK:
            self.sealed += 1
            self.tail = b""
        return key, value

    def restore(self, number: int, head: ChunkHeader, body: bytes) -> None:
        """Restores a chunk row; rows must be restored in order."""
        self.first_record = head.first_record
        self.last_record = head.last_record
        self.deadline = head.deadline
        self.count = head.joined
        self.bytes = head.size
        self.revision = head.revision
        self.closes_because = head.closes_because
        self.expected = head.expected
        self.identities += b"".join(identities(body))
        self.traces += sum(kind == TRACE for kind, _, _ in unpack(body))
        self.saved = number + 1
        self.sealed = number + (len(body) >= CHUNK)
        self.tail = body if self.sealed == number else b""

    def saved_row(self, chunk: int, read: Read) -> bytes:
        """Returns a chunk row as of the last cut.

        Raises:
            RuntimeError: the row is missing from the table.
        """
        row = read(self.key(chunk))
        if row is None:
            raise RuntimeError(f"row {chunk} of session {self.id!r} is missing from the table; the state is damaged")
        return row

    def document(self, read: Read) -> bytes:
        """Returns the Session as JSON: events ordered by `occurred_at`, traces by `created_at` and id, notes by their place.

        For each trace id, the document contains the trace that arrived last.

        Raises:
            RuntimeError: the session is open, or a sealed row is missing from the table.
        """
        if self.closed_because is None:
            raise RuntimeError(f"session {self.id!r} is open; only a closed session has a document")
        bodies = [split(self.saved_row(number, read))[1] for number in range(self.sealed)]
        found: dict[bytes, list[tuple[float, bytes]]] = {EVENT: [], TRACE: [], REFUSED: [], REPLAYED: []}
        for kind, at, raw in unpack(b"".join([*bodies, self.tail, *self.new])):
            found[kind].append((at, raw))
        events = found[EVENT]
        traces = found[TRACE]
        # A stable sort: ties keep the order of arrival.
        events.sort(key=_AT)
        return _DOCUMENT % {
            b"id": orjson.dumps(self.id.decode()),
            b"segment": self.segment,
            b"revision": self.revision,
            b"why": self.closed_because.encode(),
            b"first": _moment(self.first_record),
            b"last": _moment(self.last_record),
            b"events": b",".join([raw for _, raw in events]),
            b"traces": b",".join([raw for _, raw in _last_contents(traces)]),
            b"refused": _refused(found[REFUSED], {raw for _, raw in found[REPLAYED]}),
        }


_AT = itemgetter(0)
_DOCUMENT = (
    b'{"session_id":%(id)b,"segment":%(segment)d,"revision":%(revision)d,"closed_because":"%(why)b",'
    b'"first_record_at":%(first)b,"last_record_at":%(last)b,"events":[%(events)b],"traces":[%(traces)b]%(refused)b}'
)


def _last_contents(traces: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """Returns the last content of each trace id, ordered by creation time and id."""
    if len(traces) < 2:
        return traces
    last = {str(orjson.loads(raw)["id"]): (at, raw) for at, raw in traces}
    return [found for _, found in sorted(last.items(), key=lambda item: (item[1][0], item[0]))]


def _refused(refused: list[tuple[float, bytes]], replayed: Collection[bytes]) -> bytes:
    """Returns the member `refused` of the document, after a comma; no bytes if there is none."""
    if not refused:
        return b""
    places = [(orjson.loads(raw)["place"], raw) for _, raw in refused]
    # The dead letters of several partitions arrive in any order.
    kept = [raw for place, raw in sorted(places, key=_in_log_order) if place.encode() not in replayed]
    return b',"refused":[%b]' % b",".join(kept) if kept else b""


def _in_log_order(note: tuple[str, bytes]) -> tuple[str, int, int]:
    log, _, offset = note[0].rpartition("@")
    topic, _, partition = log.rpartition("-")
    return topic, int(partition), int(offset)


def _moment(milliseconds: int) -> bytes:
    return orjson.dumps(datetime.fromtimestamp(milliseconds / 1000, UTC))
