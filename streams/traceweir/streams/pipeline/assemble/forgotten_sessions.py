"""Remembers which sessions of a partition were closed and forgotten, in eight bytes each.

Without the guard of its session, nobody knows whether a late record was joined before. If the session was never
forgotten, it was not.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from traceweir.streams.base.stages.base import Rows

if TYPE_CHECKING:
    from traceweir.streams.pipeline.assemble.sorted_digests import SortedDigests

PREFIX = b"f"
"""The first byte of the keys of these rows."""
DIGEST = 8
"""Size of the digest of a session id, in bytes. Two ids with one digest only make a late record a dead letter."""
CHUNK_IDS = 64
"""Digests in a row. The last row is written again with each cut that forgets sessions, so it must be small."""
RECENT_IDS = 65_536
"""Digests that are searched in a set; beyond them, all digests are sorted again, which takes about 0.1 s for a million."""
_VERSION = 1
_HEAD = struct.Struct(">Bqq")
_NUMBER = struct.Struct(">I")


class _Chunk:
    __slots__ = ("closed_until", "digests")

    def __init__(self, closed_until: int, digests: bytes) -> None:
        self.closed_until = closed_until
        self.digests = bytearray(digests)


class ForgottenSessions:
    """The sessions of one partition whose guards were deleted, in the order in which they were forgotten.

    Args:
        most: Number of sessions that are remembered. Beyond it, the oldest `CHUNK_IDS` sessions are dropped, and the
            time of their last close remains.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._unknown_until: int | None = 0
        """A time that no record of a forgotten session exceeds that is not remembered here, in milliseconds since 1970."""
        self._chunks: dict[int, _Chunk] = {}
        self._sorted: SortedDigests | None = None
        self._recent: set[int] = set()
        self._dirty: set[int] = set()
        self._count = self._next = 0
        self._written = False

    def load(self, rows: Mapping[bytes, bytes], *, knows_all: bool) -> None:
        """Restores the sessions of the last finished checkpoint.

        If an earlier version was the last to write the rows, also between two workers of this version, they do not tell
        what it has forgotten; see `note_time`.

        Args:
            rows: All rows of the stage.
            knows_all: Whether their last writer has kept the sessions that it forgot.

        Raises:
            ValueError: this version cannot read the format of a row.
        """
        found = sorted(key for key in rows if key.startswith(PREFIX))
        bounds = []
        for key in found:
            version, closed_until, unknown_until = _HEAD.unpack_from(rows[key])
            if version != _VERSION:
                raise ValueError(f"row of forgotten sessions of format {version}; this version reads {_VERSION}")
            (number,) = _NUMBER.unpack(key[len(PREFIX) :])
            bounds.append(unknown_until)
            self._chunks[number] = _Chunk(closed_until, rows[key][_HEAD.size :])
            self._count += len(self._chunks[number].digests) // DIGEST
            self._next = number
        self._written = bool(found)
        self._unknown_until = None if rows and not (found and knows_all) else max(bounds, default=0)
        self._sort()

    def note_time(self, latest: int) -> None:
        """Takes a time that no record exceeds that was joined so far, in milliseconds since 1970.

        An earlier version can have forgotten sessions with records until then. Other calls have no effect.
        """
        if self._unknown_until is None:
            self._unknown_until = latest
            # The last row gets the time.
            self._written = False

    def add(self, name: bytes, closed_at: int) -> None:
        """Adds a session whose guard is deleted, with the time of its close in milliseconds since 1970."""
        last = self._chunks.get(self._next)
        if last is not None and len(last.digests) >= CHUNK_IDS * DIGEST:
            self._next += 1
            last = None
        if last is None:
            last = self._chunks[self._next] = _Chunk(closed_at, b"")
        digest = _digest(name)
        last.digests += digest
        last.closed_until = max(last.closed_until, closed_at)
        self._dirty.add(self._next)
        self._count += 1
        self._recent.add(int.from_bytes(digest, "big"))
        if self._count > self._most and len(self._chunks) > 1:
            self._drop_oldest()
        if len(self._recent) >= RECENT_IDS:
            self._sort()

    def can_have(self, name: bytes, timestamp: int) -> bool:
        """Returns whether a session with this id that had a record of this time can have been forgotten.

        A session closes no earlier than at its last record. So a record that is later than the close of every session that
        is not remembered here was joined by none of them.

        Args:
            name: The session.
            timestamp: The record's timestamp, in milliseconds since 1970.
        """
        if self._unknown_until is None or timestamp <= self._unknown_until:
            return True
        digest = int.from_bytes(_digest(name), "big")
        if digest in self._recent:
            return True
        return self._sorted is not None and digest in self._sorted

    def rows(self) -> Rows:
        """Returns the rows that have changed since the last call; at least one row in the life of a partition."""
        if self._unknown_until is None:
            return []
        if not self._written:
            self._chunks.setdefault(self._next, _Chunk(0, b""))
            self._dirty.add(self._next)
            self._written = True
        dirty = self._dirty
        self._dirty = set()
        return [(_key(number), self._row(number, self._unknown_until)) for number in sorted(dirty)]

    def _row(self, number: int, unknown_until: int) -> bytes | None:
        chunk = self._chunks.get(number)
        if chunk is None:
            return None
        return _HEAD.pack(_VERSION, chunk.closed_until, unknown_until) + chunk.digests

    def _drop_oldest(self) -> None:
        number = next(iter(self._chunks))
        chunk = self._chunks.pop(number)
        self._unknown_until = max(self._unknown_until or 0, chunk.closed_until)
        self._count -= len(chunk.digests) // DIGEST
        # The last row has the time that takes the place of the deleted one.
        self._dirty |= {number, self._next}

    def _sort(self) -> None:
        digests = b"".join([chunk.digests for chunk in self._chunks.values()])
        self._sorted = None
        if digests:
            # Here, because it needs numpy, and scoring without Kafka forgets no session.
            from traceweir.streams.pipeline.assemble.sorted_digests import SortedDigests

            self._sorted = SortedDigests(digests)
        self._recent = set()


def _digest(name: bytes) -> bytes:
    return blake2b(name, digest_size=DIGEST).digest()


def _key(number: int) -> bytes:
    return PREFIX + _NUMBER.pack(number)
