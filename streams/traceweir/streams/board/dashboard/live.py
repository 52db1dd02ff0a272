"""Tells the browsers that show pages when the store has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from time import monotonic

EVERY_S = 1.0
"""Least seconds between two messages to a browser, so that a busy feed does not keep its pages busy."""
MAX_STREAMS = 100
"""Maximum number of streams at a time. A browser needs one for all its pages; without one it asks for the state."""

LOOKS_S = 60.0
"""Seconds after a request in which somebody counts as looking."""


class Live:
    """Passes changes of the feed on to the browsers that listen. All methods are for the thread of the event loop.

    Args:
        clock: Returns the seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        # Who starts a dashboard looks at it.
        self._asked_at_s = clock()
        self._listeners: set[asyncio.Event] = set()
        self._ended = False

    def note_request(self) -> None:
        """Notes that somebody has asked for what is in the store."""
        self._asked_at_s = self._clock()

    @property
    def is_watched(self) -> bool:
        """Whether a browser listens, or somebody has asked for what is in the store in the last `LOOKS_S`."""
        return bool(self._listeners) or self._clock() - self._asked_at_s < LOOKS_S

    @property
    def streams(self) -> int:
        """Number of streams that are open."""
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether no further browser can listen."""
        return self.streams >= MAX_STREAMS

    def changed(self) -> None:
        """Wakes all listeners."""
        for each in self._listeners:
            each.set()

    def end(self) -> None:
        """Ends all streams, so that the server can stop."""
        self._ended = True
        self.changed()

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yields at once, and after each change; changes within `EVERY_S` are one."""
        woken = asyncio.Event()
        self._listeners.add(woken)
        try:
            while not self._ended:
                woken.clear()
                yield
                await woken.wait()
                if not self._ended:
                    await asyncio.sleep(EVERY_S)
        finally:
            self._listeners.discard(woken)
