"""Says which scores a target has not taken, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from traceweir.streams.tools.export.answers import Later, Refused
from traceweir.streams.tools.export.source import FoundRecord


class NotTaken(NamedTuple):
    """A score that a target has not taken."""

    found: FoundRecord
    because: Later | Refused
    """Whether it can be sent again later, or is refused however often it is sent."""


class Delivered(NamedTuple):
    """What has become of scores that were given to a target."""

    not_taken: Sequence[NotTaken]
    """Those that it has not taken, each session's in their order."""
    left_out: int = 0
    """Number of those that were not sent, because they are not selected."""
