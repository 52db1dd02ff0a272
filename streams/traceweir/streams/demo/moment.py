"""What a running demo tells whoever shows it. The command line draws it; nothing here prints."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from traceweir.streams.demo.observer import Observed


@dataclass(frozen=True, slots=True)
class Moment:
    """How far the demo is."""

    at_s: float
    """Seconds since it began."""
    phase: str
    emitted: int
    planned: int


class View(Protocol):
    """Shows a demo while it runs."""

    def update(self, moment: Moment, seen: Observed) -> None:
        """Show what has come out by now."""


class NoView:
    """Shows nothing."""

    def __enter__(self) -> NoView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, moment: Moment, seen: Observed) -> None:
        """Show nothing."""
