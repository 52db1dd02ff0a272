"""Says which scores a target has not taken, and why."""

from __future__ import annotations

from typing import NamedTuple

from traceweir.streams.tools.export.answers import Later, Refused
from traceweir.streams.tools.results.reader import FoundScore


class NotTaken(NamedTuple):
    """A score that a target has not taken."""

    found: FoundScore
    because: Later | Refused
    """Whether it can be sent again later, or is refused however often it is sent."""
