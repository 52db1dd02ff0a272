"""Stores the sessions that a challenger has yet to score, and what its judges have cost, as rows of the checkpoint.

The row of a session is written in the checkpoint that publishes the champion's scores, and is deleted in the checkpoint
that publishes those of the challenger. So a crash neither loses a session of the challenger nor scores it twice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from traceweir.streams.base.stages.base import Record, Rows
from traceweir.streams.pipeline.score.session_header import row_key_of
from traceweir.streams.scoring.judges.budget import Paid, Spending
from traceweir.streams.scoring.sessions.result import ScoringResult

_KEY = b"w"
_PAID = b"p"
_VERSION = 1
_WITH_ACCOUNTS = 2
"""The format of a row of spending for accounts beside that of all questions."""
MAX_WAITING = 10_000
"""Maximum number of sessions of a partition that wait for a challenger; beyond it, a new one is not scored by it."""
HELD_BYTES = 16 << 20
"""Maximum number of bytes of waiting sessions that a process keeps in memory; the others are read again."""
PAUSE_S = 10.0
"""Seconds until the next try for a session that could not be scored now."""
MAX_PAYERS = 100
"""Number of challengers whose cost a partition remembers: those that have paid last."""


class WaitingSession(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The latest revision of a segment that a challenger has yet to score."""

    offset: int
    """Offset of the revision on the topic `sessions`."""
    revision: int
    last_record_ms: int
    """The session's `last_record_at`, in milliseconds since 1970."""
    challenger: str
    """The id of the challenger."""


_encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(WaitingSession).decode
_decode_paid = msgspec.msgpack.Decoder(list[tuple[str, list[Paid]]]).decode


class HeldBytes:
    """Counts the bytes of waiting sessions in memory; all partitions of a process share one object.

    Args:
        most: The limit.
    """

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._left = most

    def take(self, size: int) -> bool:
        """Returns whether there was room for a session of this size, which now counts."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        """Makes room: a session of this size is no longer in memory."""
        self._left += size


class ChallengerRows:
    """The waiting sessions of one partition, and the cost of challengers there.

    Args:
        held_bytes: Limits the sessions in memory.
    """

    def __init__(self, held_bytes: HeldBytes) -> None:
        self._held_bytes = held_bytes
        self._waiting: dict[bytes, WaitingSession] = {}
        self._held: dict[bytes, Record] = {}
        self._ready: OrderedDict[bytes, None] = OrderedDict()
        self._paused: deque[tuple[float, bytes]] = deque()
        self._spending: OrderedDict[str, Spending] = OrderedDict()
        self._changed: dict[bytes, bytes | None] = {}
        self._now = 0.0

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the rows of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of a row.
        """
        found = []
        for row_key, row in rows.items():
            if row_key[:1] not in (_KEY, _PAID):
                continue
            if row[0] not in (_VERSION, _WITH_ACCOUNTS):
                raise ValueError(
                    f"a row of a challenger has the format {row[0]}; this version reads the formats {_VERSION} and "
                    f"{_WITH_ACCOUNTS}"
                )
            if row_key == _PAID:
                for challenger, payments in _decode_paid(row[1:]):
                    self._spending[challenger] = spending = Spending()
                    for paid in payments:
                        spending.add(paid)
            else:
                found.append((row_key, _decode(row[1:])))
        self._waiting = dict(sorted(found, key=lambda item: item[1].offset))
        self._ready = OrderedDict.fromkeys(self._waiting)

    def __len__(self) -> int:
        """Returns the number of waiting sessions."""
        return len(self._waiting)

    def note(self, record: Record, result: ScoringResult) -> str:
        """Notes that the champion has scored a revision that a challenger scores too.

        Returns:
            What became of it: `waiting`; `superseded` if it takes the place of an earlier revision; `earlier` if a later
            revision waits already; `dropped` if there is no room.
        """
        row_key = row_key_of(_KEY, record.key or b"", result.segment)
        before = self._waiting.get(row_key)
        state = "waiting"
        if before is not None:
            if (result.last_record_ms, result.revision) < (before.last_record_ms, before.revision):
                return "earlier"
            state = "superseded"
            self._release(row_key)
        elif len(self._waiting) >= MAX_WAITING:
            return "dropped"
        waiting = WaitingSession(record.offset, result.revision, result.last_record_ms, result.challenger)
        self._waiting[row_key] = waiting
        self._changed[row_key] = bytes([_VERSION]) + _encode(waiting)
        self._ready[row_key] = None
        if self._held_bytes.take(len(record.value or b"")):
            self._held[row_key] = record
        return state

    def get(self, row_key: bytes) -> WaitingSession | None:
        """Returns the waiting session of a row key; None if it no longer waits."""
        return self._waiting.get(row_key)

    def held(self, row_key: bytes) -> Record | None:
        """Returns the record of a waiting session, if it is in memory."""
        return self._held.get(row_key)

    def forget_records(self) -> None:
        """Removes all records from memory; the sessions still wait."""
        for row_key in list(self._held):
            self._release(row_key)

    def take_ready(self, now: float | None = None) -> list[bytes]:
        """Returns the row keys of the sessions that can be tried now, each once until `put_back`.

        Args:
            now: Seconds since 1970; None: those that no pause keeps.
        """
        if now is not None:
            self._now = now
            while self._paused and self._paused[0][0] <= now:
                _, row_key = self._paused.popleft()
                if row_key in self._waiting:
                    self._ready[row_key] = None
        if not self._ready:
            return []
        ready = list(self._ready)
        self._ready = OrderedDict()
        return ready

    def put_back(self, row_key: bytes) -> None:
        """Lets a session wait for `PAUSE_S` and be tried again."""
        if row_key in self._waiting:
            self._paused.append((self._now + PAUSE_S, row_key))

    def end(self, row_key: bytes) -> None:
        """Removes a session that no longer waits."""
        self._release(row_key)
        del self._waiting[row_key]
        self._changed[row_key] = None

    def pay(self, challenger: str, payments: list[Paid] | tuple[Paid, ...]) -> None:
        """Adds what judges have cost for a challenger."""
        if not payments:
            return
        spending = self._spending.setdefault(challenger, Spending())
        self._spending.move_to_end(challenger)
        for paid in payments:
            spending.add(paid)
        while len(self._spending) > MAX_PAYERS:
            self._spending.popitem(last=False)
        found = self.paid()
        if any(each.account for _, entries in found for each in entries):
            self._changed[_PAID] = bytes([_WITH_ACCOUNTS]) + _encode(found)
        else:
            # As earlier versions read it.
            without = [(name, [each[:3] for each in entries]) for name, entries in found]
            self._changed[_PAID] = bytes([_VERSION]) + _encode(without)

    def paid(self) -> list[tuple[str, list[Paid]]]:
        """Returns the payments by the id of the challenger."""
        return [(challenger, spending.entries()) for challenger, spending in self._spending.items()]

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        rows = list(self._changed.items())
        self._changed = {}
        return rows

    def _release(self, row_key: bytes) -> None:
        record = self._held.pop(row_key, None)
        if record is not None:
            self._held_bytes.give_back(len(record.value or b""))
