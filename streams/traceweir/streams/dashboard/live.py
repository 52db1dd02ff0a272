"""Tells open pages when the store has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

EVERY_S = 1.0
"""Least seconds between two messages to a page, so that a busy feed does not keep the pages busy."""
MAX_PAGES = 100
"""Maximum number of pages that are told."""


class Live:
    """Passes changes of the feed on to the pages that listen. All methods are for the thread of the event loop."""

    def __init__(self) -> None:
        """Starts without a listener."""
        self._listeners: set[asyncio.Event] = set()
        self._ended = False

    @property
    def full(self) -> bool:
        """Whether no further page can listen."""
        return len(self._listeners) >= MAX_PAGES

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
