"""Later: sessions whose judge could not be asked, because it was down or its budget spent, and when they are to be scored once more.

What comes of it is one more revision of their scores, though the session has none: the score stage then counts ahead of the session, by
as much for all that may still come of that segment.
"""

from __future__ import annotations

import heapq
import struct
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from tracegate.schemas.judge_config import RetryLater
from tracegate.scorers.plan import Plan
from tracegate.streams.stage import Rows

_KEY = b"r"
_VERSION = 1
_ROW = struct.Struct(">BIqqqII")
_SEGMENT = 4
AT_ONCE = 16
"""How many of a partition are scored once more at the same time: what is scored for the first time does not wait behind thousands."""


class OnceMore(NamedTuple):
    """What is done about sessions whose judge could not be asked."""

    config: RetryLater
    read: Callable[[str, int, int], Awaitable[Any]]
    """Reads a record by topic, partition and offset; None if it is gone. Raises `NotHad`."""
    regates: bool
    """Whether the gate requires a judged criterion, so that candidates follow from what the judge says."""

    @classmethod
    def of(cls, plan: Plan, read: Callable[[str, int, int], Awaitable[Any]]) -> OnceMore | None:
        """As the plan has it; None if it says nothing of it."""
        config = plan.judge.retry_later
        return None if config is None else cls(config, read, not plan.judged.isdisjoint(plan.gate.required))


@dataclass(frozen=True, slots=True)
class Again:
    """A segment whose scores count ahead of it, or will."""

    ahead: int
    """By how many revisions."""
    last_record: int
    """Timestamp of its last record, in milliseconds since 1970."""
    offset: int = -1
    """Where the session stands on its topic."""
    due: int = 0
    """When it is to be scored once more, in milliseconds since 1970."""
    unanswered: int = 0
    """How many of its scores wait for a judge; 0: none any more."""
    left: int = 0
    """How many more times it is tried."""


class Later:
    """What of a partition is to be scored once more.

    Args:
        config: When, and how often; None: never.
        kept: By how many milliseconds of record time a session may lie behind the latest one and still come again.
    """

    def __init__(self, config: RetryLater | None, kept: int) -> None:
        self._config, self._kept = config, kept
        self._again: OrderedDict[bytes, Again] = OrderedDict()
        self._due: list[tuple[int, bytes]] = []
        self._out: set[bytes] = set()
        self._changed: dict[bytes, bytes | None] = {}
        self._now = self._latest = 0

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the rows of the last finished checkpoint.

        Raises:
            ValueError: a row was written by a version that this one does not read.
        """
        for key, row in rows.items():
            if key.startswith(_KEY):
                if row[0] != _VERSION:
                    raise ValueError(
                        f"row of a session to be scored once more of format {row[0]}; this version reads {_VERSION}"
                    )
                _, *fields = _ROW.unpack(row)
                self._put(key, Again(*fields))
        self._changed.clear()

    def note(self, session: bytes, segment: int, offset: int, last_record: int, unanswered: int) -> bool:
        """A revision is scored, and so many of its scores wait for a judge. Returns whether it is scored once more for that."""
        key = _name(session, segment)
        self._forget(last_record)
        before = self._again.get(key)
        again = Again(before.ahead if before else 0, last_record)
        if unanswered and self._config is not None:
            due = self._now + round(self._config.after_s * 1000)
            again = replace(again, offset=offset, due=due, unanswered=unanswered, left=self._config.attempts)
        if again.ahead or again.unanswered:
            self._put(key, again)
        elif before is not None:
            self._drop(key)
        return again.unanswered > 0

    def ahead(self, session: bytes, value: bytes) -> int:
        """By how many revisions the scores of a session, as it stands on its topic, count ahead of it."""
        if not self._again:
            return 0
        try:
            again = self._again.get(_name(session, _segment(value).segment))
        except msgspec.DecodeError:  # scoring it will say so
            return 0
        return again.ahead if again else 0

    def tick(self, now: float) -> list[bytes]:
        """It is so many seconds since 1970. Returns the names of those whose time has come, each once until it is told what came of it."""
        self._now = round(now * 1000)
        names = []
        while self._due and len(self._out) < AT_ONCE and self._due[0][0] <= self._now:
            due, name = heapq.heappop(self._due)
            again = self._again.get(name)
            if again is not None and again.unanswered and again.due == due and name not in self._out:
                self._out.add(name)
                names.append(name)
        return names

    def get(self, name: bytes) -> Again | None:
        """What is to be scored once more by this name; None if it need not be any more."""
        again = self._again.get(name)
        return again if again is not None and again.unanswered else None

    def put_back(self, name: bytes) -> None:
        """It was not tried: another revision of it is at work."""
        self._out.discard(name)
        if (again := self._again.get(name)) is not None and again.unanswered:
            heapq.heappush(self._due, (again.due, name))

    def tried(self, name: bytes, unanswered: int, *, better: bool) -> None:
        """It was scored once more, and so many of its scores still wait; `better`: this made a revision."""
        self._out.discard(name)
        if (again := self._again.get(name)) is None:  # too many wait, and it was the oldest
            return
        again = replace(again, ahead=again.ahead + better, unanswered=unanswered, left=again.left - 1)
        if unanswered and again.left and self._config is not None:
            again = replace(again, due=self._now + round(self._config.after_s * 1000))
        else:
            again = replace(again, unanswered=0, left=0, offset=-1, due=0)
        if again.ahead or again.unanswered:
            self._put(name, again)
        else:
            self._drop(name)

    def rows(self) -> Rows:
        """What changed since the last call."""
        rows, self._changed = list(self._changed.items()), {}
        return rows

    def _put(self, name: bytes, again: Again) -> None:
        self._again.pop(name, None)
        self._again[name] = again
        fields = again.ahead, again.last_record, again.offset, again.due, again.unanswered, again.left
        self._changed[name] = _ROW.pack(_VERSION, *fields)
        if again.unanswered:
            heapq.heappush(self._due, (again.due, name))
            if self._config is not None and len(self._again) > self._config.max_sessions:
                self._drop(next(iter(self._again)))

    def _drop(self, name: bytes) -> None:
        del self._again[name]
        self._changed[name] = None

    def _forget(self, last_record: int) -> None:
        self._latest = max(self._latest, last_record)
        while self._again:
            name, again = next(iter(self._again.items()))
            if again.unanswered or again.last_record >= self._latest - self._kept:
                break
            self._drop(name)


def raised(value: bytes, by: int) -> bytes:
    """A session as it stands on its topic, its revision raised. All else stays as it was written, to the digit.

    >>> raised(b'{"segment":0,"revision":1,"events":[1.50]}', 2)
    b'{"segment":0,"revision":3,"events":[1.50]}'
    """
    document = _members(value)
    document["revision"] = msgspec.Raw(b"%d" % (int(bytes(document["revision"])) + by))
    return msgspec.json.encode(document)


class _Segment(msgspec.Struct):
    segment: int


_segment = msgspec.json.Decoder(_Segment).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _name(session: bytes, segment: int) -> bytes:
    return _KEY + session + segment.to_bytes(_SEGMENT)
