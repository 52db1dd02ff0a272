"""Delays Ctrl-C until the program reaches a point where it is safe to stop."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class Interrupted(Exception):  # noqa: N818  # an outcome that the caller handles
    """The user requested a stop, with Ctrl-C or another signal."""

    def __init__(self, totals: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.totals = totals or {}
        """What came out until then: observed counts by name; empty if the demo had not started."""


class Interruption:
    """Counts SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) within its `with` block.

    A KeyboardInterrupt at an arbitrary point could lose a process that was just started, or leave the cleanup
    incomplete. The signals therefore only increase `wanted`, and `check` raises where a stop is safe.
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
        """Raises `Interrupted` if more than `allowed` signals have arrived.

        Raises:
            Interrupted: the user requested a stop more than `allowed` times.
        """
        if self.wanted > allowed:
            raise Interrupted

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.wanted += 1
