"""Keeps the scores that a target has not taken yet, session by session, and says when each session is due again.

All of them are on the topic `export-waiting`. The first ones of each session are in memory too, as far as there is room; of
the others a session has the places. They are loaded when a session is due that has none in memory, and half of that room is
free: each load reads a part of the topic. Sessions in their pauses make room for those that are due.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, zip_longest

from traceweir.streams.tools.export.source import FoundRecord
from traceweir.streams.tools.export.waiting_score import Place, WaitingRow, WaitingScore

FIRST_PAUSE_S, MAX_PAUSE_S = 5.0, 3600.0
"""Seconds between two attempts: they double from the first number to the second, and are up to a tenth longer, so that not
all sessions are due together."""
MAX_LOADED, MAX_LOADED_BYTES = 10_000, 32_000_000
"""Scores, and bytes of them, in memory; further ones are on the topic alone until there is room."""
FREE_TO_LOAD = 0.5
"""The part of that memory that is free before scores are loaded from the topic, so that the loads are few."""
FREE_FOR_DUE = 0.25
"""The part of that memory that a load fills only with scores of sessions that are due."""
MAKE_ROOM_EVERY_S = 60.0
"""Seconds between two times at which sessions in their pauses make room: each leads to a load, and during an outage more
sessions can be in their pauses than the memory has room for."""
SESSIONS_AT_LEAST = 10
"""A session has at most one part in so many of that memory, so that it does not keep the others out."""
MAX_WAITING = 200_000
"""Scores from which on no further ones are read. If each has a session of its own, this takes about 150 MB."""


@dataclass(slots=True)
class Load:
    """One reading of a part of the topic."""

    partition: int
    begin: int
    """The first offset to read."""
    due: set[tuple[int, str]]
    """The sessions that are due and have room for scores of this part."""
    paused: set[tuple[int, str]]
    """The others that have room; they leave `FREE_FOR_DUE`."""
    passed: dict[Place, int] = field(default_factory=dict)
    """The offsets of the rows for which a session had no room."""


@dataclass(slots=True)
class _Session:
    due_s: float = 0.0
    """When its first score is sent again, in seconds since 1970."""
    failures: int = 0
    rows: dict[Place, int] = field(default_factory=dict)
    """What waits, in the order in which it is sent, each with an offset of the topic before which its row is not."""
    scores: dict[Place, WaitingScore] = field(default_factory=dict)
    """The first ones of these, in memory; the others are on the topic alone."""
    size: int = 0
    """Bytes of those in memory."""
    served: int = 0
    """How many scores of all sessions had left when the last one of this session did."""

    @property
    def is_loaded(self) -> bool:
        """Whether all of its scores are in memory."""
        return len(self.scores) == len(self.rows)

    def needs_load(self, now_s: float) -> bool:
        """Returns whether it is due, and nothing of it is in memory."""
        return not self.scores and self.due_s <= now_s


class WaitingScores:
    """Scores that wait, in the order of their sessions."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str], _Session] = {}
        self._number = self._bytes = self._loaded = 0
        self._served = 0
        self._tried_at_once = 1
        """How many sessions whose first score was not taken before are sent in a turn: twice as many after each that is taken
        now, and one after each that is not."""
        self._room_made_s = -math.inf
        """When sessions in their pauses last made room, in seconds since 1970."""
        self._read_to: dict[int, int] = {}
        """By partition an offset of the topic before which no row is that is written from now on."""

    def __len__(self) -> int:
        return self._number

    @property
    def loaded(self) -> int:
        """Number of those in memory; the others are on the topic alone."""
        return self._loaded

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing else is read."""
        return len(self) >= MAX_WAITING

    def holds(self, session: tuple[int, str]) -> bool:
        """Returns whether a score of this session waits, so that later ones must wait behind it."""
        return session in self._sessions

    def in_memory(self, found: FoundRecord) -> WaitingScore | None:
        """Returns what is in memory of a score; None if it waits no longer, or is on the topic alone."""
        session = self._sessions.get((found.partition, found.key))
        return None if session is None else session.scores.get((found.partition, found.offset, found.at_ms))

    def add(self, score: WaitingScore, row_at: int | None = None) -> bool:
        """Adds a score behind those of its session that wait; returns False, and changes nothing, if it waits already.

        Args:
            score: The score.
            row_at: The offset of its row on the topic; None if the row is not written yet.
        """
        session = self._sessions.setdefault(score.session, _Session())
        place = score.place
        if place in session.rows:
            return False
        if session.is_loaded and self._has_free(0) and _has_room(session):
            self._keep(session, score)
        session.rows[place] = self._read_to.get(score.partition, 0) if row_at is None else row_at
        self._number += 1
        if row_at is not None:
            self._note_read(score.partition, row_at + 1)
        return True

    def discard(self, session_key: tuple[int, str], place: Place) -> None:
        """Removes a score of which the topic says that it waits no longer."""
        session = self._sessions[session_key]
        if place in session.scores:
            self._drop(session, place)
        del session.rows[place]
        self._number -= 1
        self._forget_empty(session_key)

    @property
    def next_due_s(self) -> float | None:
        """When the next session is due, in seconds since 1970; 0: at once; None: nothing waits."""
        return min((each.due_s for each in self._sessions.values()), default=None)

    def begin_load(self, now_s: float) -> Load | None:
        """Returns which part of the topic is to be read now; None: no session that is due needs it, or there is no room.

        Where sessions in their pauses take up more than half of the memory, their scores are on the topic alone again.
        """
        can_make_room = now_s - self._room_made_s >= MAKE_ROOM_EVERY_S
        if self._loaded == self._number or not (can_make_room or self._has_free(FREE_TO_LOAD)):
            return None
        needing = ((each.due_s, key[0]) for key, each in self._sessions.items() if each.needs_load(now_s))
        _, partition = min(needing, default=(0.0, None))
        if partition is None:
            return None
        if not self._has_free(FREE_TO_LOAD):
            self._make_room(now_s)
        if not self._has_free(FREE_TO_LOAD):
            return None
        begins: list[int] = []
        load = Load(partition, 0, set(), set())
        for key, session in self._sessions.items():
            if key[0] == partition and not session.is_loaded and _has_room(session):
                (load.due if session.due_s <= now_s else load.paused).add(key)
                begins.append(min(islice(session.rows.values(), len(session.scores), None)))
        load.begin = min(begins)
        return load

    def load(self, load: Load, row: WaitingRow) -> bool:
        """Takes the next row of a part into memory if it is needed; returns whether a further one is."""
        self._note_read(load.partition, row.row_at + 1)
        score = row.score
        session = None if score is None else self._sessions.get(score.session)
        if (
            score is None
            or session is None
            or row.place in session.scores
            or row.row_at < session.rows.get(row.place, row.row_at + 1)
        ):
            # In memory, or not the last row of this score, or known only when a replay is read.
            return True
        wanting = load.due if score.session in load.due else load.paused
        has_room = self._has_free(0 if wanting is load.due else FREE_FOR_DUE) and _has_room(session)
        if not has_room or row.place != next(islice(session.rows, len(session.scores), None)):
            load.passed[row.place] = row.row_at
            return True
        session.rows[row.place] = row.row_at
        self._keep(session, score)
        if session.is_loaded or not _has_room(session):
            wanting.discard(score.session)
        return self._has_free(0) and bool(load.due or (load.paused and self._has_free(FREE_FOR_DUE)))

    def end_load(self, load: Load, read_to: int | None) -> None:
        """Notes what a load has passed.

        Args:
            load: The load.
            read_to: The offset before which all was read; None: all was read. Then what was not found is forgotten: it is
                gone from the topic.
        """
        mine = [(key, each) for key, each in self._sessions.items() if key[0] == load.partition and not each.is_loaded]
        for key, session in mine:
            kept: dict[Place, int] = {}
            for place, row_at in session.rows.items():
                if place in session.scores:
                    kept[place] = row_at
                elif place in load.passed:
                    kept[place] = load.passed[place]
                elif row_at < load.begin:
                    kept[place] = row_at
                elif read_to is not None:
                    kept[place] = max(row_at, read_to)
            self._number -= len(session.rows) - len(kept)
            session.rows = kept
            self._forget_empty(key)

    def remove(self, score: WaitingScore) -> None:
        """Removes a score in memory that waits no longer. The next one of its session is due at once."""
        session = self._sessions[score.session]
        if session.failures:
            self._tried_at_once = min(2 * self._tried_at_once, MAX_LOADED)
        session.failures = 0
        session.due_s = 0.0
        self._served += 1
        session.served = self._served
        self.discard(score.session, score.place)

    def failed(self, session: tuple[int, str], now_s: float, after_s: float | None) -> None:
        """Notes that the first score of a session was not taken, and makes the session due later.

        Args:
            session: Partition and session.
            now_s: The time, in seconds since 1970.
            after_s: Seconds that the target asks to wait; None if it names none.
        """
        self._tried_at_once = 1
        found = self._sessions[session]
        spread = 1 + zlib.crc32(session[1].encode(errors="replace")) / 2**32 / 10
        pause_s = min(FIRST_PAUSE_S * 2 ** min(found.failures, 30), MAX_PAUSE_S) * spread
        found.failures += 1
        found.due_s = now_s + max(pause_s, after_s or 0.0)

    def due(self, now_s: float, most: int) -> list[WaitingScore]:
        """Returns up to `most` scores of the sessions that are due, in turns, the longest due first; each session's in their
        order.

        Of the sessions whose first score was not taken before, few are among them until one is taken: a target that takes a
        batch as a whole refuses those of all others with it, and the search for several causes takes long.
        """
        with_scores = [each for each in self._sessions.values() if each.scores and each.due_s <= now_s]
        tried = nsmallest(self._tried_at_once, (each for each in with_scores if each.failures), key=_place_in_line)
        due = nsmallest(most, [*tried, *(each for each in with_scores if not each.failures)], key=_place_in_line)
        turns = zip_longest(*(each.scores.values() for each in due))
        return list(islice((score for turn in turns for score in turn if score is not None), most))

    def clear(self) -> None:
        """Forgets all: other processes take them over."""
        self._sessions.clear()
        self._read_to.clear()
        self._number = self._bytes = self._loaded = 0

    def _keep(self, session: _Session, score: WaitingScore) -> None:
        session.scores[score.place] = score
        session.size += len(score.value)
        self._loaded += 1
        self._bytes += len(score.value)

    def _drop(self, session: _Session, place: Place) -> None:
        size = len(session.scores.pop(place).value)
        session.size -= size
        self._loaded -= 1
        self._bytes -= size

    def _forget_empty(self, session_key: tuple[int, str]) -> None:
        session = self._sessions[session_key]
        if not session.rows:
            del self._sessions[session_key]

    def _note_read(self, partition: int, end: int) -> None:
        self._read_to[partition] = max(end, self._read_to.get(partition, 0))

    def _has_free(self, part: float, without: int = 0, without_bytes: int = 0) -> bool:
        """Whether more than nothing, and at least this part of the memory, is free without so many scores and bytes of it."""
        number = MAX_LOADED - self._loaded + without
        size = MAX_LOADED_BYTES - self._bytes + without_bytes
        return number > 0 and size > 0 and number >= MAX_LOADED * part and size >= MAX_LOADED_BYTES * part

    def _make_room(self, now_s: float) -> None:
        """Lets sessions in their pauses be on the topic alone until there is room for a load, the latest due first.

        Each keeps its first score while that suffices, so that its next attempt needs no load.
        """
        paused = [each for each in self._sessions.values() if each.scores and each.due_s > now_s]
        if not self._has_free(
            FREE_TO_LOAD, sum(len(each.scores) for each in paused), sum(each.size for each in paused)
        ):
            # The others are sent first.
            return
        self._room_made_s = now_s
        paused.sort(key=lambda each: each.due_s, reverse=True)
        for first in (1, 0):
            for session in paused:
                if self._has_free(FREE_TO_LOAD):
                    return
                for place in list(islice(session.scores, first, None)):
                    self._drop(session, place)


def _place_in_line(session: _Session) -> tuple[float, int]:
    return session.due_s, session.served


def _has_room(session: _Session) -> bool:
    return len(session.scores) < MAX_LOADED / SESSIONS_AT_LEAST and session.size < MAX_LOADED_BYTES / SESSIONS_AT_LEAST
