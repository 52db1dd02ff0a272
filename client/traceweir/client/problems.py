"""Logs problems of the recording at most once a minute each: an agent's log is not for Traceweir to fill."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

LOG = logging.getLogger("traceweir.client")
"""The logger of all messages of this package."""
REPEAT_AFTER_S = 60.0


class ThrottledLog:
    """Counts problems by kind, and logs the first of a kind and then one a minute."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Starts without problems.

        Args:
            clock_s: Returns seconds from any start.
        """
        self._clock_s = clock_s
        self._logged_at: dict[str, float] = {}
        self._unlogged: dict[str, int] = {}

    def report(self, kind: str, message: str) -> None:
        """Logs a warning, unless a problem of this kind was logged less than a minute ago; raises nothing.

        Args:
            kind: What the limit counts by; few kinds exist.
            message: One line. It names no content of the agent.
        """
        now = self._clock_s()
        last = self._logged_at.get(kind)
        if last is not None and now - last < REPEAT_AFTER_S:
            self._unlogged[kind] = self._unlogged.get(kind, 0) + 1
            return
        self._logged_at[kind] = now
        before = self._unlogged.pop(kind, 0)
        more = f" ({before} more like this since the last message)" if before else ""
        # A filter or handler of the agent's logging can raise.
        with suppress(Exception):
            LOG.warning("%s%s", message, more)

    def raised(self, doing: str, error: BaseException) -> None:
        """Logs an error of the recording itself, by the name of its class: its text can contain the agent's content."""
        self.report("raised", f"recording failed while {doing}: {type(error).__name__}; the agent goes on")
