"""Tells of stored rows once a second at most, so that all who look share what is computed for one state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.tools.doctor.finding import Finding

EVERY_S = 1.0
"""Least seconds between two states with other rows."""


class PacedState:
    """The state of the feed, whose rows change once in `EVERY_S` at most. All methods are for the event loop's thread.

    Args:
        present: Returns the state as it is.
        notify: Called when the state has changed, by rows or by a problem.
        health: Returns what is known of the health.
        every_s: Least seconds between two states with other rows.
    """

    def __init__(
        self,
        present: Callable[[], FeedState],
        notify: Callable[[], object],
        health: Callable[[], Sequence[Finding]] = tuple,
        every_s: float = EVERY_S,
    ) -> None:
        self._present = present
        self._notify = notify
        self._health = health
        self._every_s = every_s
        self._rows = 0
        self._next_at_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def state(self) -> FeedState:
        """Returns the state; its problem is that of now."""
        return replace(self._present(), stored_rows=self._rows)

    def key(self) -> Hashable:
        """Returns from what answers follow beside the store's answers to their questions."""
        found = self.state()
        health = tuple((part.check, part.state) for part in self._health())
        return found.stored_rows, found.problem, tuple(found.unreadable.items()), health

    def changed(self) -> None:
        """Notes a stored batch or a problem: tells of it now, or when `EVERY_S` are over."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            return
        if loop.time() >= self._next_at_s:
            self._tell()
        else:
            self._timer = loop.call_at(self._next_at_s, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._next_at_s = asyncio.get_running_loop().time() + self._every_s
        self._rows = self._present().stored_rows
        self._notify()
