"""Ctrl-C as a wish that is heard where it is safe to stop."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any


class Interrupted(Exception):  # noqa: N818  # an outcome that the caller handles
    """The user wants it to end."""


class Interruption:
    """Counts Ctrl-C, SIGTERM and a closed terminal instead of letting them strike anywhere, as long as its block lasts.

    An exception in the middle of anything could lose a process that was just started, or half of the clearing up.
    """

    _SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

    def __init__(self) -> None:
        self.wanted = 0
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for name in self._SIGNALS:
            if (number := getattr(signal, name, None)) is not None:
                self._former[number] = signal.signal(number, self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def check(self, allowed: int = 0) -> None:
        """Stop here if the user asked for it more than `allowed` times.

        Raises:
            Interrupted: so it is.
        """
        if self.wanted > allowed:
            raise Interrupted

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.wanted += 1
