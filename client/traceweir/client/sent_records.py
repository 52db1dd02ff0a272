"""Counts the records of a session, so that its end can say how many there are."""

from __future__ import annotations

from threading import Lock


class SentRecords:
    """What one session has sent. Threads and tasks of the session share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._events = self._traces = self._open = 0

    def began(self) -> None:
        """Notes that an invocation began: more events follow."""
        with self._lock:
            self._open += 1

    def ended(self) -> None:
        """Notes that an invocation ended."""
        with self._lock:
            self._open -= 1

    def add_event(self) -> None:
        """Counts an event."""
        with self._lock:
            self._events += 1

    def add_trace(self) -> None:
        """Counts a reasoning trace."""
        with self._lock:
            self._traces += 1

    def at_the_end(self) -> tuple[int, int] | None:
        """Returns the number of events, the end of the session included, and of traces; None if more are to come."""
        with self._lock:
            return None if self._open else (self._events + 1, self._traces)
