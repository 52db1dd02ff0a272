"""Keeps the scores that a target has not taken yet, session by session, and says when each session is due again.

All of them are on the topic `export-waiting`. The first ones of each session are in memory too, as far as there is room; of
the others a session has the number.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from traceweir.schemas.score import Score
from traceweir.streams.tools.results.reader import FoundScore

FIRST_PAUSE_S, MAX_PAUSE_S = 5.0, 3600.0
"""Seconds between two attempts: they double from the first number to the second, and are up to a tenth longer, so that not
all sessions are due together."""
MAX_LOADED, MAX_LOADED_BYTES = 10_000, 32_000_000
"""Scores, and bytes of them, in memory; further ones are on the topic alone until there is room."""
SESSIONS_AT_LEAST = 10
"""A session has at most one part in so many of that memory, so that it does not keep the others out."""
MAX_WAITING = 200_000
"""Scores from which on no further ones are read. If each has a session of its own, this takes about 100 MB."""


class WaitingScore(NamedTuple):
    """A score that waits."""

    partition: int
    offset: int
    """The place on `results`."""
    at_ms: int
    """The timestamp on `results`, in milliseconds since 1970."""
    session_id: str
    value: bytes
    """The score as JSON, as on `results`."""
    since_s: float
    """Since when it waits, in seconds since 1970."""

    @classmethod
    def of(cls, found: FoundScore, since_s: float) -> WaitingScore:
        """Returns a score that waits from now on."""
        return cls(found.partition, found.offset, found.at_ms, found.score.session_id, found.value, since_s)

    @property
    def found(self) -> FoundScore:
        """The score as it was read from `results`."""
        score = Score.model_validate_json(self.value)
        return FoundScore(self.at_ms, self.partition, self.offset, score, self.value)

    @property
    def session(self) -> tuple[int, str]:
        """Partition and session: what keeps its order."""
        return self.partition, self.session_id


@dataclass(slots=True)
class _Session:
    due_s: float = 0.0
    """When its first score is sent again, in seconds since 1970."""
    failures: int = 0
    scores: dict[tuple[int, int], WaitingScore] = field(default_factory=dict)
    """Those in memory by offset and timestamp, in the order in which they are sent."""
    size: int = 0
    """Bytes of these."""
    unloaded: int = 0
    """Number of those behind them that are on the topic alone."""


class Waiting:
    """Scores that wait, in the order of their sessions."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str], _Session] = {}
        self._bytes = self._loaded = self._unloaded = 0
        self._nothing_loaded = 0
        """Number of sessions whose scores are all on the topic alone."""

    def __len__(self) -> int:
        return self._loaded + self._unloaded

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing else is read."""
        return len(self) >= MAX_WAITING

    @property
    def can_load(self) -> bool:
        """Whether a session needs scores that are on the topic alone, and there is room for them."""
        rest = 1 - 1 / SESSIONS_AT_LEAST
        has_room = self._loaded <= MAX_LOADED * rest and self._bytes <= MAX_LOADED_BYTES * rest
        return has_room and self._nothing_loaded > 0

    def holds(self, session: tuple[int, str]) -> bool:
        """Returns whether a score of this session waits, so that later ones must wait behind it."""
        return session in self._sessions

    def has(self, score: WaitingScore) -> bool:
        """Returns whether this score waits."""
        session = self._sessions.get(score.session)
        return session is not None and (score.offset, score.at_ms) in session.scores

    def add(self, score: WaitingScore) -> bool:
        """Adds a score behind those of its session that wait; returns False if it waits in memory already."""
        session = self._sessions.setdefault(score.session, _Session())
        key = score.offset, score.at_ms
        if key in session.scores:
            return False
        if self._has_room(session):
            session.scores[key] = score
            session.size += len(score.value)
            self._loaded += 1
            self._bytes += len(score.value)
        else:
            self._nothing_loaded += not session.scores and not session.unloaded
            session.unloaded += 1
            self._unloaded += 1
        return True

    def begin_load(self) -> None:
        """Forgets how many scores are on the topic alone. Then each score of the topic is to be added in its order."""
        for session in self._sessions.values():
            session.unloaded = 0
        self._unloaded = self._nothing_loaded = 0

    def end_load(self) -> None:
        """Forgets the sessions of which no score was added."""
        self._sessions = {key: each for key, each in self._sessions.items() if each.scores or each.unloaded}

    def remove(self, score: WaitingScore) -> None:
        """Removes a score that waits no longer. The next one of its session is due at once."""
        session = self._sessions[score.session]
        del session.scores[score.offset, score.at_ms]
        session.size -= len(score.value)
        session.failures = 0
        session.due_s = 0.0
        self._loaded -= 1
        self._bytes -= len(score.value)
        if not session.scores:
            if session.unloaded:
                self._nothing_loaded += 1
            else:
                del self._sessions[score.session]

    def failed(self, session: tuple[int, str], now_s: float, after_s: float | None) -> None:
        """Notes that the first score of a session was not taken, and makes the session due later.

        Args:
            session: Partition and session.
            now_s: The time, in seconds since 1970.
            after_s: Seconds that the target asks to wait; None if it names none.
        """
        found = self._sessions[session]
        spread = 1 + zlib.crc32(session[1].encode(errors="replace")) / 2**32 / 10
        pause_s = min(FIRST_PAUSE_S * 2 ** min(found.failures, 30), MAX_PAUSE_S) * spread
        found.failures += 1
        found.due_s = now_s + max(pause_s, after_s or 0.0)

    def due(self, now_s: float, most: int) -> list[WaitingScore]:
        """Returns up to `most` scores of the sessions that are due, each session's in their order, the longest due first."""
        with_scores = (each for each in self._sessions.values() if each.scores and each.due_s <= now_s)
        due = sorted(with_scores, key=lambda each: each.due_s)
        found: list[WaitingScore] = []
        for session in due:
            for score in session.scores.values():
                if len(found) == most:
                    return found
                found.append(score)
        return found

    def clear(self) -> None:
        """Forgets all: other processes take them over."""
        self._sessions.clear()
        self._bytes = self._loaded = self._unloaded = self._nothing_loaded = 0

    def _has_room(self, session: _Session) -> bool:
        if session.unloaded or self._loaded >= MAX_LOADED or self._bytes >= MAX_LOADED_BYTES:
            return False
        return (
            len(session.scores) < MAX_LOADED / SESSIONS_AT_LEAST and session.size < MAX_LOADED_BYTES / SESSIONS_AT_LEAST
        )
