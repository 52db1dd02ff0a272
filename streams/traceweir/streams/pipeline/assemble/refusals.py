"""Keeps what a session knows of its records that became dead letters, in bounded size."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from traceweir.schemas.dead_letter import REPLAY_OF, Headers, Reason, last_header
from traceweir.streams.base.stages.base import Rows

KEPT = 16
"""Refused records that a session keeps; the others are counted."""
WAITING = 10_000
"""Sessions of one partition whose refused records wait for a record that opens the session."""
TELLING: frozenset[Reason] = frozenset(
    ("empty", "too_large", "not_json", "not_an_object", "invalid", "future_timestamp", "poison")
)
"""The reasons of dead letters whose sessions are told: those of records that the session lacks.

A `late` record can have been joined before its session was forgotten, and the other reasons are of no single record.
"""


class StoredRefusal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A refused record; `RefusedRecord` says what the fields mean. Each field is bounded, so that a session is."""

    topic: str
    partition: int
    offset: int
    reason: str
    type: str | None = None
    invocation_id: str | None = None
    trace_id: str | None = None
    event_id: str | None = None

    @property
    def place(self) -> str:
        """Topic, partition and offset, as the header `REPLAY_OF` has them."""
        return f"{self.topic}/{self.partition}/{self.offset}"


class Refusals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The refused records of a session, in order of arrival."""

    refused: tuple[StoredRefusal, ...] = ()
    refused_more: int = 0
    """Number of those that are not kept."""

    def __bool__(self) -> bool:
        return bool(self.refused or self.refused_more)

    def with_one(self, refusal: StoredRefusal) -> Refusals:
        """Returns these and one more; without effect for a record that is among these.

        A delivery without transactions can bring a record twice.
        """
        if any(each.place == refusal.place for each in self.refused):
            return self
        if len(self.refused) == KEPT:
            return Refusals(self.refused, self.refused_more + 1)
        return Refusals((*self.refused, refusal), self.refused_more)

    def without(self, place: str | None) -> Refusals:
        """Returns these without the record at a place, which has come again; the same object if it is not among these."""
        kept = tuple(each for each in self.refused if each.place != place)
        return self if len(kept) == len(self.refused) else Refusals(kept, self.refused_more)

    def pack(self) -> bytes:
        """Returns the bytes of a row; no bytes for no refusals."""
        return _encode(self) if self else b""

    def members(self) -> bytes:
        """Returns the members that the JSON of a session has for these, after a comma; no bytes for no refusals."""
        return b"," + _encode(self)[1:-1] if self else b""

    @classmethod
    def unpack(cls, row: bytes) -> Refusals:
        """Returns the refusals from their bytes."""
        return _decode(row) if row else NO_REFUSALS


NO_REFUSALS = Refusals()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Refusals).decode


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the partition that has refused a record sends to the home of its session."""

    refusal: StoredRefusal
    instead_of: str | None = None
    """The place of the earlier refusal of the same record, which was replayed."""

    def pack(self) -> bytes:
        """Returns the value of the record."""
        return _encode(self)

    @classmethod
    def unpack(cls, value: bytes) -> Notice:
        """Returns the notice from the value of its record.

        Raises:
            ValueError: the value is no notice.
        """
        return _decode_notice(value)


_decode_notice = msgspec.json.Decoder(Notice).decode


def replayed_place(headers: Headers) -> str | None:
    """Returns the place of the record whose dead letter was replayed as this record; None if it is no replay."""
    return last_header(headers, REPLAY_OF)


class _Waiting(NamedTuple):
    until: int
    refusals: Refusals


class WaitingRefusals:
    """The refused records of sessions that are not open: those of no session are forgotten after some time.

    Args:
        most: Number of sessions; above it, those that would be forgotten first are.
    """

    def __init__(self, most: int = WAITING) -> None:
        self._most = most
        self._waiting: dict[bytes, _Waiting] = {}
        self._due: list[tuple[int, bytes]] = []
        self._changed: set[bytes] = set()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the refusals of the last finished checkpoint."""
        for key, row in rows.items():
            if key.startswith(b"r"):
                until, refusals = _decode_row(row)
                self._waiting[key[1:]] = _Waiting(until, refusals)
        self._due = [(each.until, name) for name, each in self._waiting.items()]
        heapq.heapify(self._due)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, session: bytes, notice: Notice, until: int) -> int:
        """Adds a refused record of a session that is not open.

        Args:
            session: The session.
            notice: The record.
            until: Timestamp of the latest record that can open the session with this one, in milliseconds since 1970.

        Returns:
            The number of sessions whose refusals were forgotten because there are too many.
        """
        found = self._waiting.get(session)
        former = NO_REFUSALS if found is None else found.refusals.without(notice.instead_of)
        latest = until if found is None else max(until, found.until)
        self._waiting[session] = _Waiting(latest, former.with_one(notice.refusal))
        self._changed.add(session)
        if found is None:
            # Later records of the session change no entry, so that their number does not count.
            heapq.heappush(self._due, (latest, session))
        forgotten = 0
        while len(self._waiting) > self._most:
            forgotten += self._forget_if_due()
        return forgotten

    def take(self, session: bytes, timestamp: int) -> Refusals:
        """Returns and removes the refusals of a session that begins with a record of this timestamp."""
        found = self._waiting.pop(session, None)
        if found is None:
            return NO_REFUSALS
        self._changed.add(session)
        return found.refusals if timestamp <= found.until else NO_REFUSALS

    def forget(self, watermark: int) -> None:
        """Forgets the refusals whose session no record has opened in time."""
        while self._due and self._due[0][0] < watermark:
            self._forget_if_due()

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        changed = sorted(self._changed)
        self._changed = set()
        return [
            (
                b"r" + name,
                None if (found := self._waiting.get(name)) is None else _encode((found.until, found.refusals)),
            )
            for name in changed
        ]

    def _forget_if_due(self) -> bool:
        """Takes the first entry, and returns whether its session was forgotten; a later record has delayed others."""
        until, session = heapq.heappop(self._due)
        found = self._waiting.get(session)
        if found is None:
            return False
        if found.until > until:
            heapq.heappush(self._due, (found.until, session))
            return False
        del self._waiting[session]
        self._changed.add(session)
        return True


_decode_row = msgspec.json.Decoder(tuple[int, Refusals]).decode
