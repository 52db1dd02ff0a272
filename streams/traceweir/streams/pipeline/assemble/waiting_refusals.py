"""Keeps what is known of refused records whose session is not open, until the session begins."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.pipeline.assemble.refusals import MAX_NOTES, RefusalNote

PREFIX = b"n"
"""The first byte of the keys of these rows."""
MAX_WAITING = 1_000
"""Most notes that wait in a partition, each of at most `MAX_NOTE_BYTES`, and `MAX_NOTES` of one session.

A further one takes the place of the oldest, or of the oldest of its session if that has `MAX_NOTES`.

A producer of broken records with ever other sessions must not fill the partition.
"""
_VERSION = 1
_HEAD = struct.Struct(">BqI16s")
_NUMBER = struct.Struct(">Q")


class _Waiting(NamedTuple):
    until: int
    """The latest moment at which a record begins the session with this note, in milliseconds since 1970."""
    refusal: RefusalNote

    def pack(self) -> bytes:
        session_id, identity, note = self.refusal
        return _HEAD.pack(_VERSION, self.until, len(session_id), identity) + session_id + note


class WaitingRefusals:
    """The notes of one partition that wait for their sessions, in the order in which the records were refused."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._of_session: dict[bytes, list[int]] = {}
        self._next = 0
        self._dirty: set[int] = set()

    @property
    def held_bytes(self) -> int:
        """Size of the notes in memory, in bytes."""
        return sum(len(each.refusal.session_id) + len(each.refusal.note) for each in self._waiting.values())

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the notes of the last finished checkpoint.

        Raises:
            ValueError: this version cannot read the format of a row.
        """
        for key in sorted(key for key in rows if key.startswith(PREFIX)):
            row = rows[key]
            version, until, length, identity = _HEAD.unpack_from(row)
            if version != _VERSION:
                raise ValueError(f"row of a waiting note of format {version}; this version reads {_VERSION}")
            (self._next,) = _NUMBER.unpack(key[len(PREFIX) :])
            note = _HEAD.size + length
            self._put(_Waiting(until, RefusalNote(row[_HEAD.size : note], identity, row[note:])))

    def add(self, refusal: RefusalNote, until: int) -> bool:
        """Adds a note, unless it waits already. Returns whether an older one was dropped for it.

        Args:
            refusal: The note.
            until: The latest moment at which a record begins the session with this note, in milliseconds since 1970.
        """
        numbers = self._of_session.get(refusal.session_id, [])
        if any(self._waiting[number].refusal.identity == refusal.identity for number in numbers):
            return False
        dropped = None
        if len(numbers) >= MAX_NOTES:
            dropped = numbers[0]
        elif len(self._waiting) >= MAX_WAITING:
            dropped = next(iter(self._waiting))
        if dropped is not None:
            self._remove(dropped)
        self._dirty.add(self._next)
        self._put(_Waiting(until, refusal))
        return dropped is not None

    def take(self, session_id: bytes, moment: int) -> list[RefusalNote]:
        """Removes and returns the notes of a session that begins, without those that have waited for too long.

        Args:
            session_id: The session.
            moment: The later of the watermark and the timestamp of its first record, in milliseconds since 1970.
        """
        found = [self._remove(number) for number in self._of_session.get(session_id, [])[:]]
        return [each.refusal for each in found if moment <= each.until]

    def forget(self, watermark: int) -> None:
        """Removes the notes that have waited for too long."""
        while self._waiting and (first := next(iter(self._waiting.items())))[1].until < watermark:
            self._remove(first[0])

    def rows(self) -> Rows:
        """Returns the rows that have changed since the last call."""
        dirty = self._dirty
        self._dirty = set()
        return [(PREFIX + _NUMBER.pack(number), self._row(number)) for number in sorted(dirty)]

    def _row(self, number: int) -> bytes | None:
        waiting = self._waiting.get(number)
        return None if waiting is None else waiting.pack()

    def _put(self, waiting: _Waiting) -> None:
        self._waiting[self._next] = waiting
        self._of_session.setdefault(waiting.refusal.session_id, []).append(self._next)
        self._next += 1

    def _remove(self, number: int) -> _Waiting:
        found = self._waiting.pop(number)
        numbers = self._of_session[found.refusal.session_id]
        numbers.remove(number)
        if not numbers:
            del self._of_session[found.refusal.session_id]
        self._dirty.add(number)
        return found
