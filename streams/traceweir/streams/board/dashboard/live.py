"""Tells the browsers that show pages when the store has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

EVERY_S = 1.0
"""Least seconds between two messages to a browser, so that a busy feed does not keep its pages busy."""
MAX_STREAMS = 100
"""Maximum number of streams at a time. A browser needs one for all its pages; without one it asks for the state."""


class Live:
    """Passes changes of the feed on to the browsers that listen. All methods are for the thread of the event loop."""

    def __init__(self) -> None:
        """Starts without a listener."""
        self._listeners: set[asyncio.Event] = set()
        self._ended = False

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
