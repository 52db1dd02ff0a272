"""Holds when what waits is due."""

from __future__ import annotations

import heapq


class DueTimes:
    """The due times of rows, in milliseconds since 1970. Each row has one.

    >>> due = DueTimes()
    >>> due.plan(b"a", 20), due.plan(b"b", 10), due.plan(b"a", 5)
    (None, None, None)
    >>> due.take(9, most=1), due.take(9, most=1), due.take(10, most=1)
    ([b'a'], [], [b'b'])
    """

    def __init__(self) -> None:
        self._due: dict[bytes, int] = {}
        self._queue: list[tuple[int, bytes]] = []

    def plan(self, row_key: bytes, due_ms: int) -> None:
        """Sets the due time of a row, in place of the one that it has."""
        self._due[row_key] = due_ms
        heapq.heappush(self._queue, (due_ms, row_key))
        # Most entries were planned again or cancelled.
        if len(self._queue) > 2 * len(self._due) + 64:
            self._queue = [(due_ms, row_key) for row_key, due_ms in self._due.items()]
            heapq.heapify(self._queue)

    def cancel(self, row_key: bytes) -> None:
        """Removes the due time of a row, if it has one."""
        self._due.pop(row_key, None)

    def take(self, now_ms: int, most: int) -> list[bytes]:
        """Removes and returns the rows that are due, the earliest first, and at most this number of them."""
        found: list[bytes] = []
        while self._queue and self._queue[0][0] <= now_ms and len(found) < most:
            due_ms, row_key = heapq.heappop(self._queue)
            # Otherwise the row was planned again, or cancelled.
            if self._due.get(row_key) == due_ms:
                del self._due[row_key]
                found.append(row_key)
        return found
