"""Defines what a running demo reports to its view.

The command line implements the view; this module prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from traceweir.streams.cli.demo.observer import Observed


@dataclass(frozen=True, slots=True)
class Moment:
    """The progress of the demo."""

    at_s: float
    """Seconds since the demo started."""
    phase: str
    emitted: int
    planned: int


class DemoView(Protocol):
    """Displays a demo while it runs."""

    def update(self, moment: Moment, seen: Observed) -> None:
        """Displays the progress and the output so far."""


class NoView:
    """A view that displays nothing."""

    def __enter__(self) -> NoView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, moment: Moment, seen: Observed) -> None:
        """Does nothing."""
